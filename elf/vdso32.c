#include "elf/vdso32.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/proc.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAP_VDSO_32 0x2002 /* ARCH_MAP_VDSO_32 of asm/prctl.h */
#define MAP_AT UINT64_C(0x50000000)
#define PAGE ((size_t)4096)
#define DATA_PAGES_MAX 64 /* pages of data that the kernel maps before the code */
#define PARTS_MAX 8

/* Our own vdso and its data. */
struct own_maps {
	struct {
		uint64_t start, end;
	} v[PARTS_MAX];
	size_t n;
};

static int find_own(struct own_maps *own)
{
	AUTO_FREE char *text = NULL;
	struct proc_map map;
	char *cursor;
	size_t len;
	int r = proc_read(getpid(), 0, "maps", PROC_MAPS_MAX, &text, &len);

	for (cursor = text; !r && proc_map_next(&cursor, &map);)
		if ((!strcmp(map.path, "[vdso]") || !strncmp(map.path, "[vvar", 5)) &&
		    own->n < PARTS_MAX) {
			own->v[own->n].start = map.start;
			own->v[own->n++].end = map.end;
		}
	return r;
}

/* The kernel refuses a second vdso, so removes the first. Uses system calls only. */
static int write_vdso(const struct own_maps *own, int fd)
{
#ifdef SYS_arch_prctl
	for (size_t i = 0; i < own->n; i++)
		if (syscall(SYS_munmap, own->v[i].start, own->v[i].end - own->v[i].start))
			return errno;
	long bytes = syscall(SYS_arch_prctl, MAP_VDSO_32, MAP_AT);

	if (bytes <= 0)
		return bytes < 0 ? errno : ENOTSUP;
	for (uint64_t at = MAP_AT; at < MAP_AT + DATA_PAGES_MAX * PAGE; at += PAGE) {
		char magic[SELFMAG];
		struct iovec to = {magic, SELFMAG}, from = {(void *)(uintptr_t)at, SELFMAG};

		if (syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1, &from, 1, 0) ==
			    SELFMAG &&
		    !memcmp(magic, ELFMAG, SELFMAG))
			return syscall(SYS_write, fd, at, bytes) == bytes ? 0 : EIO;
	}
#else
	(void)own;
	(void)fd;
#endif
	return ENOTSUP;
}

int vdso32_read(void **ret_data, size_t *ret_bytes)
{
	AUTO_CLOSE int fd = memfd_create("vdso32", MFD_CLOEXEC);
	AUTO_FREE void *data = malloc(VDSO32_BYTES_MAX);
	struct own_maps own = {0};
	int status = 0, r = fd < 0 ? -errno : data ? find_own(&own) : -ENOMEM;
	pid_t pid = r ? -1 : fork();

	if (!pid)
		_exit(write_vdso(&own, fd));
	if (r || pid < 0)
		return r ? r : -errno;
	/* The kernel discards the status if SIGCHLD is ignored. */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WIFEXITED(status) && WEXITSTATUS(status) == EIO ? -EIO : -ENOTSUP;
	ssize_t n = pread(fd, data, VDSO32_BYTES_MAX, 0);

	if (n <= 0)
		return n < 0 ? -errno : -ENOTSUP;
	*ret_bytes = (size_t)n;
	*ret_data = TAKE_PTR(data);
	return 0;
}
