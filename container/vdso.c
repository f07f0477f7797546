#include "container/vdso.h"

#include "base/cleanup.h"
#include "container/proc.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
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
	int r = proc_read_maps(getpid(), &text);

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

/* Maps the bytes that the child wrote. */
static int map_copy(int fd, const void **ret_data, size_t *ret_bytes)
{
	off_t bytes = lseek(fd, 0, SEEK_END);

	if (bytes <= 0)
		return bytes ? -errno : -ENOTSUP;
	if ((size_t)bytes > VDSO_BYTES_MAX)
		return -E2BIG;
	void *data = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, fd, 0);

	if (data == MAP_FAILED)
		return -errno;
	*ret_data = data;
	*ret_bytes = (size_t)bytes;
	return 0;
}

/* Maps the vdso in a child process, which has none of its own, and copies it. */
static int read_vdso32(const void **ret_data, size_t *ret_bytes)
{
	AUTO_CLOSE int fd = memfd_create("vdso32", MFD_CLOEXEC);
	struct own_maps own = {0};
	int status = 0, r = fd < 0 ? -errno : find_own(&own);
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
	return map_copy(fd, ret_data, ret_bytes);
}

static struct {
	pthread_once_t once;
	int error;
	const void *data;
	size_t bytes;
} vdso32 = {.once = PTHREAD_ONCE_INIT};

static void read_vdso32_once(void)
{
	vdso32.error = read_vdso32(&vdso32.data, &vdso32.bytes);
}

int vdso_find(const char *name, const void **ret_data, size_t *ret_bytes)
{
	const Elf64_Ehdr *own = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);

	if (!strcmp(name, "[vdso32]")) {
		pthread_once(&vdso32.once, read_vdso32_once);
		if (vdso32.error)
			return vdso32.error;
		*ret_data = vdso32.data;
		*ret_bytes = vdso32.bytes;
		return 0;
	}
	if (!own || strcmp(name, "[vdso]") != 0)
		return -ENOENT;
	size_t bytes = own->e_shoff + (size_t)own->e_shnum * own->e_shentsize;

	if (bytes > VDSO_BYTES_MAX)
		return -E2BIG;
	*ret_data = own;
	*ret_bytes = bytes;
	return 0;
}
