/*
 * A preloaded library that makes one call fail: allocations and system calls, distinguished by
 * their call site.
 *
 *   INJECT_LIST=FILE   appends "SITE FUNCTION" for each call site, at its first call
 *   INJECT_SITE=SITE   fails the first call from that site
 *   INJECT_SKIP=N      fails the call after N successful ones instead
 *   INJECT_TRACE=1     prints the site's return addresses, for addr2line
 *
 * A site is a hash of the return addresses up the stack, relative to their modules. So it is the
 * same in every run.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define INJECT_DEPTH 10
#define INJECT_SITES 65536

static __thread bool inject_busy;
static int inject_list_fd = -1;
static uint64_t inject_wanted;
static long inject_skip;
static bool inject_on, inject_done, inject_trace;
static uint64_t inject_seen[INJECT_SITES];
static pid_t inject_pid;

static struct inject_module {
	uint64_t start, end, id;
} inject_modules[128];
static int inject_nmodules;

static int inject_add_module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	(void)ctx;
	for (int i = 0; i < info->dlpi_phnum && inject_nmodules < 128; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			inject_modules[inject_nmodules++] = (struct inject_module){
				info->dlpi_addr + p->p_vaddr,
				info->dlpi_addr + p->p_vaddr + p->p_memsz, p->p_memsz};
	}
	return 0;
}

__attribute__((constructor)) static void inject_start(void)
{
	const char *list = getenv("INJECT_LIST"), *site = getenv("INJECT_SITE"),
		   *skip = getenv("INJECT_SKIP");
	void *warm[4];

	inject_busy = true;
	backtrace(warm, 4); /* loads libgcc now, not inside a failing malloc */
	dl_iterate_phdr(inject_add_module, NULL);
	if (list)
		inject_list_fd = (int)syscall(SYS_openat, AT_FDCWD, list,
					      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (site)
		inject_wanted = strtoull(site, NULL, 16);
	inject_skip = skip ? atol(skip) : 0;
	inject_trace = getenv("INJECT_TRACE");
	inject_pid = (pid_t)syscall(SYS_getpid);
	inject_on = list || site;
	unsetenv("LD_PRELOAD"); /* commands started by profcpu run without failures */
	inject_busy = false;
}

static uint64_t inject_site(void)
{
	void *up[INJECT_DEPTH + 2];
	int n = backtrace(up, INJECT_DEPTH + 2);
	uint64_t h = 0;

	for (int i = 2; i < n; i++) {
		uint64_t at = (uint64_t)(uintptr_t)up[i];

		for (int m = 0; m < inject_nmodules; m++)
			if (at >= inject_modules[m].start && at < inject_modules[m].end)
				at = at - inject_modules[m].start + inject_modules[m].id * 31;
		h = (h ^ at) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	return h ? h : 1;
}

static void inject_note(uint64_t site, const char *function)
{
	char line[128];
	size_t i = site & (INJECT_SITES - 1);

	while (inject_seen[i] && inject_seen[i] != site)
		i = (i + 1) & (INJECT_SITES - 1);
	if (inject_seen[i])
		return;
	inject_seen[i] = site;
	int len = snprintf(line, sizeof(line), "%016llx %s\n", (unsigned long long)site, function);

	syscall(SYS_write, inject_list_fd, line, (size_t)len);
}

static void inject_print_site(void)
{
	void *up[INJECT_DEPTH + 2];

	backtrace_symbols_fd(up, backtrace(up, INJECT_DEPTH + 2), STDERR_FILENO);
}

/* Whether this call must fail. Only calls of the first process fail, not those of its commands. */
static __attribute__((noinline)) bool inject_fails(const char *function)
{
	if (!inject_on || inject_busy || inject_done)
		return false;
	int saved = errno;
	bool fails = false;

	inject_busy = true;
	if ((pid_t)syscall(SYS_getpid) == inject_pid) {
		uint64_t site = inject_site();

		if (inject_list_fd >= 0)
			inject_note(site, function);
		if (site == inject_wanted && inject_skip-- <= 0)
			fails = inject_done = true;
		if (fails && inject_trace)
			inject_print_site();
	}
	inject_busy = false;
	errno = saved;
	return fails;
}

/* Defines NAME to fail with ERR, or to call the next library's NAME. */
#define INJECT(type, name, params, args, failure, err)             \
	type name params                                           \
	{                                                          \
		static type(*real) params;                         \
                                                                   \
		if (!real)                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
		if (inject_fails(#name)) {                         \
			errno = err;                               \
			return failure;                            \
		}                                                  \
		return real args;                                  \
	}

INJECT(void *, malloc, (size_t n), (n), NULL, ENOMEM)
INJECT(void *, realloc, (void *p, size_t n), (p, n), NULL, ENOMEM)
INJECT(void *, reallocarray, (void *p, size_t k, size_t n), (p, k, n), NULL, ENOMEM)
INJECT(char *, strdup, (const char *s), (s), NULL, ENOMEM)
INJECT(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n), -1, EIO)
INJECT(ssize_t, pread, (int fd, void *b, size_t n, off_t o), (fd, b, n, o), -1, EIO)
INJECT(ssize_t, pread64, (int fd, void *b, size_t n, off_t o), (fd, b, n, o), -1, EIO)
INJECT(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n), -1, ENOSPC)
INJECT(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), -1, ENOSPC)
INJECT(ssize_t, pwrite64, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), -1, ENOSPC)
INJECT(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), -1, ENOSPC)
INJECT(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o),
       MAP_FAILED, ENOMEM)
INJECT(void *, mmap64, (void *a, size_t n, int p, int f, int fd, off_t o), (a, n, p, f, fd, o),
       MAP_FAILED, ENOMEM)
INJECT(int, fstat, (int fd, struct stat *s), (fd, s), -1, EIO)
INJECT(int, fstat64, (int fd, struct stat64 *s), (fd, s), -1, EIO)
INJECT(int, fstatat, (int fd, const char *p, struct stat *s, int f), (fd, p, s, f), -1, EIO)
INJECT(int, fstatat64, (int fd, const char *p, struct stat64 *s, int f), (fd, p, s, f), -1, EIO)
INJECT(int, stat, (const char *p, struct stat *s), (p, s), -1, EIO)
INJECT(int, stat64, (const char *p, struct stat64 *s), (p, s), -1, EIO)
INJECT(int, mkdir, (const char *p, mode_t m), (p, m), -1, ENOSPC)
INJECT(int, mkdirat, (int d, const char *p, mode_t m), (d, p, m), -1, ENOSPC)
INJECT(int, renameat, (int a, const char *p, int b, const char *q), (a, p, b, q), -1, EIO)
INJECT(int, fdatasync, (int fd), (fd), -1, EIO)
INJECT(int, ftruncate, (int fd, off_t n), (fd, n), -1, EIO)
INJECT(int, ftruncate64, (int fd, off_t n), (fd, n), -1, EIO)
INJECT(off_t, lseek, (int fd, off_t o, int w), (fd, o, w), -1, EIO)
INJECT(off_t, lseek64, (int fd, off_t o, int w), (fd, o, w), -1, EIO)
INJECT(int, poll, (struct pollfd * p, nfds_t n, int t), (p, n, t), -1, EINTR)
INJECT(int, ppoll, (struct pollfd * p, nfds_t n, const struct timespec *t, const sigset_t *s),
       (p, n, t, s), -1, EINTR)
INJECT(int, signalfd, (int fd, const sigset_t *s, int f), (fd, s, f), -1, EMFILE)
INJECT(int, pipe2, (int p[2], int f), (p, f), -1, EMFILE)
INJECT(int, epoll_create1, (int f), (f), -1, EMFILE)
INJECT(int, epoll_ctl, (int e, int o, int fd, struct epoll_event *v), (e, o, fd, v), -1, ENOSPC)
INJECT(int, epoll_wait, (int e, struct epoll_event *v, int n, int t), (e, v, n, t), -1, EINTR)
INJECT(pid_t, fork, (void), (), -1, EAGAIN)
INJECT(FILE *, fopen, (const char *p, const char *m), (p, m), NULL, EMFILE)
INJECT(FILE *, fopen64, (const char *p, const char *m), (p, m), NULL, EMFILE)
INJECT(void *, opendir, (const char *p), (p), NULL, EMFILE)
INJECT(void *, fdopendir, (int fd), (fd), NULL, ENOMEM)
INJECT(ssize_t, readlinkat, (int d, const char *p, char *b, size_t n), (d, p, b, n), -1, EACCES)
INJECT(ssize_t, readlink, (const char *p, char *b, size_t n), (p, b, n), -1, EACCES)

/* dlsym itself calls calloc, so calloc must work before `real` is known. */
void *calloc(size_t k, size_t n)
{
	extern void *__libc_calloc(size_t, size_t);

	if (inject_fails("calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return __libc_calloc(k, n);
}

/* A failed close closes nevertheless: the kernel releases the descriptor first. */
int close(int fd)
{
	bool fails = inject_fails("close");
	int r = (int)syscall(SYS_close, fd);

	if (fails && !r) {
		errno = EIO;
		return -1;
	}
	return r;
}

#define INJECT_OPEN(name, first_params, first_args)                                     \
	int name first_params                                                           \
	{                                                                               \
		static int(*real) first_params;                                         \
		va_list more;                                                           \
                                                                                        \
		if (!real)                                                              \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                      \
		va_start(more, flags);                                                  \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
		va_end(more);                                                           \
		if (inject_fails(#name)) {                                              \
			errno = EMFILE;                                                 \
			return -1;                                                      \
		}                                                                       \
		return real first_args;                                                 \
	}

INJECT_OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
INJECT_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
INJECT_OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))
INJECT_OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode))

int ioctl(int fd, unsigned long request, ...)
{
	va_list more;

	va_start(more, request);
	void *arg = va_arg(more, void *);

	va_end(more);
	if (inject_fails("ioctl")) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

/* perf_event_open, openat2, pidfd_open, process_vm_readv and others without a libc wrapper. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	va_list more;
	long a[6];

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (!inject_busy && number != SYS_getpid && number != SYS_ioctl && number != SYS_close &&
	    inject_fails("syscall")) {
		errno = EMFILE;
		return -1;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
