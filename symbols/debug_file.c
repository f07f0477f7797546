#include "symbols/debug_file.h"

#include "base/cleanup.h"
#include "container/resolve.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <zlib.h>

#define LINK_BYTES_MAX ((uint64_t)NAME_MAX + 16)
#define CRC_CHUNK ((size_t)256 << 10)

/* As openat2 does, in steps. Only what was reached is opened, as what it is: a pipe would be waited for. */
static int open_by_steps(int root_fd, const char *path, int flags)
{
	AUTO_CLOSE int at = -1;
	char reached[32];
	struct stat st;
	int r = resolve_by_steps(root_fd, path, &at);

	if (r)
		return r;
	if (fstat(at, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	snprintf(reached, sizeof(reached), "/proc/self/fd/%d", at);
	int fd = open(reached, flags);

	return fd < 0 ? -errno : fd;
}

int debug_file_open_in_root(int root_fd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	struct stat st;

	while (*path == '/')
		path++;
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	/* Kernels before 5.6 lack it, some seccomp filters refuse it. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return open_by_steps(root_fd, path, (int)how.flags);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return TAKE_FD(fd);
}

/* What is looked for, and what was found. */
struct search {
	const struct elf_file *image;
	struct image_build_id build_id;
	char link[NAME_MAX + 1]; /* "" where the image has none */
	uint32_t link_crc;
	int root;
	bool no_memory; /* then looking ends */
	struct elf_file *ret_debug;
	int *ret_fd;
};

static void read_link(struct search *s)
{
	const struct elf_section *section = elf_file_section(s->image, ".gnu_debuglink", 0);
	AUTO_FREE unsigned char *data = NULL;

	int error = section ? elf_file_read(s->image, section->file_off, section->bytes, LINK_BYTES_MAX, &data) : -ENOENT;

	s->no_memory |= error == -ENOMEM;
	if (error)
		return;
	size_t len = strlen((const char *)data), crc_at = (len + 4) & ~(size_t)3;

	if (!len || len > NAME_MAX || memchr(data, '/', len) || crc_at + 4 > section->bytes)
		return;
	memcpy(s->link, data, len + 1);
	memcpy(&s->link_crc, data + crc_at, 4);
}

static int crc_of(int fd, uint32_t *ret_crc)
{
	AUTO_FREE unsigned char *chunk = malloc(CRC_CHUNK);
	unsigned long crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = pread(fd, chunk, CRC_CHUNK, at)) > 0) {
		crc = crc32(crc, chunk, (unsigned int)n);
		at += n;
	}
	*ret_crc = (uint32_t)crc;
	return n < 0 ? -errno : 0;
}

static bool belongs(struct search *s, const struct elf_file *debug, int fd, bool by_link)
{
	struct image_build_id id = {0};
	uint32_t crc = 0;
	bool by_id = s->build_id.len;

	if (!elf_file_section(debug, ".symtab", SHT_SYMTAB) || (!by_id && !by_link))
		return false;
	int error = by_id ? elf_file_build_id(debug, &id) : crc_of(fd, &crc);

	s->no_memory |= error == -ENOMEM;
	if (error)
		return false;
	return by_id ? id.len == s->build_id.len && !memcmp(id.bytes, s->build_id.bytes, id.len)
		     : crc == s->link_crc;
}

/* Tries one path made by format. True: found, or memory is out. */
static bool __attribute__((format(printf, 3, 4)))
try_path(struct search *s, bool by_link, const char *format, ...)
{
	char path[PATH_MAX];
	struct elf_file debug;
	va_list args;

	va_start(args, format);
	int n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	AUTO_CLOSE int fd = debug_file_open_in_root(s->root, path);

	int error = fd < 0 ? fd : elf_file_open(&debug, fd, NULL, 0, NULL);

	s->no_memory |= error == -ENOMEM;
	if (error)
		return s->no_memory;
	if (!belongs(s, &debug, fd, by_link)) {
		elf_file_close(&debug);
		return s->no_memory;
	}
	*s->ret_debug = debug;
	*s->ret_fd = TAKE_FD(fd);
	return true;
}

static bool try_link(struct search *s, const char *path, int dir_len)
{
	return path && s->link[0] &&
	       (try_path(s, true, "%.*s/%s", dir_len, path, s->link) ||
		try_path(s, true, "%.*s/.debug/%s", dir_len, path, s->link) ||
		try_path(s, true, "/usr/lib/debug%.*s/%s", dir_len, path, s->link));
}

static bool try_build_id(struct search *s)
{
	char hex[2 * IMAGE_BUILD_ID_MAX + 1];

	if (s->build_id.len < 2)
		return false;
	image_build_id_hex(&s->build_id, hex);
	return try_path(s, false, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static bool try_root(struct search *s, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	int dir_len = slash ? (int)(slash - path) : 0;

	path = slash && path[0] == '/' && strlen(path) < PATH_MAX ? path : NULL;
	if (try_link(s, path, dir_len))
		return true;
	if (path && (try_path(s, false, "/usr/lib/debug%s.debug", path) ||
		     try_path(s, false, "/usr/lib/debug%s", path)))
		return true;
	if (try_build_id(s))
		return true;
	if (!path || elf_file_section(s->image, ".symtab", SHT_SYMTAB))
		return false;
	return try_path(s, false, "%.*s/.debug%s", dir_len, path, slash) ||
	       (!strncmp(path, "/usr/lib/", 9) && try_path(s, false, "/usr/lib/debug%s", path + 4));
}

int debug_file_find(const struct elf_file *image, const char *path, const int *roots, size_t nroots,
		    struct elf_file *ret_debug, int *ret_fd)
{
	struct search s = {.image = image, .ret_debug = ret_debug, .ret_fd = ret_fd};

	int error = elf_file_build_id(image, &s.build_id);

	if (error)
		s.build_id.len = 0;
	s.no_memory = error == -ENOMEM;
	read_link(&s);
	for (size_t i = 0; i < nroots && !s.no_memory; i++) {
		s.root = roots[i];
		if (try_root(&s, path) && !s.no_memory)
			return 0;
	}
	return s.no_memory ? -ENOMEM : -ENOENT;
}
