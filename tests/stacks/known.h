/*
 * Programs with known stacks. Each call is made through one of these macros, which puts it into a
 * table beside the code and executes nothing for it. No function has two callers. Before its work
 * the program writes to standard output all stacks that are possible, from the start of the thread.
 * tests/stacks/check.py compares.
 *
 * Lines:
 *   - EDGE CALLER VIA CALLEE: CALLER calls CALLEE through the frames VIA, or "-".
 *     CALLEE "-": VIA contains all called functions. CALLER "-": start of a thread; "*": anything,
 *     for signal handlers.
 *   - TIMES FUNCTION N: the function calls itself until N frames of it exist, then calls another
 *     function
 *   - MAP PID LINE: an executable line of /proc/PID/maps
 *   - RESTORER PID ADDR: return address of signal handlers
 *   - READY PID
 *
 * VIA: ";" separates frames, "|" alternatives. "[NAME]" is any frame in the image of that name,
 * "[self]" any other function of the program. "+" after a frame: one or more of it.
 */
#ifndef KNOWN_H
#define KNOWN_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

struct known_edge {
	const char *caller, *via, *callee;
};

/* The calls of this image, in any order. */
extern struct known_edge __start_known_edges[] __attribute__((visibility("hidden")));
extern struct known_edge __stop_known_edges[] __attribute__((visibility("hidden")));

#define KNOWN_EDGE(caller, via, callee)                                                            \
	do {                                                                                       \
		static struct known_edge known_edge                                                \
			__attribute__((used, aligned(sizeof(void *)), section("known_edges"))) = { \
				caller, via, callee};                                              \
		(void)known_edge;                                                                  \
	} while (0)

/* The value of f(...), an unsigned; always a call, never a jump. */
#define CALL(f, ...) CALL_AS(#f, f, __VA_ARGS__)
/* The same if f is a pointer to the function of that name. */
#define CALL_AS(name, f, ...)                           \
	__extension__({                                 \
		KNOWN_EDGE(__func__, "-", name);        \
		unsigned known_ret = f(__VA_ARGS__);    \
		__asm__ volatile("" : "+r"(known_ret)); \
		known_ret;                              \
	})
/* The last statement of a function called by top: a jump, so that top becomes the caller of f. */
#ifdef __OPTIMIZE__
#define JUMP(top, f, ...)          \
	KNOWN_EDGE(#top, "-", #f); \
	return f(__VA_ARGS__)
#else
#define JUMP(top, f, ...) return CALL(f, __VA_ARGS__)
#endif
/* A statement that calls only library functions, and one that calls f through them. */
#define LIBRARY(via, statement)                    \
	do {                                       \
		KNOWN_EDGE(__func__, via, "-");    \
		statement;                         \
		__asm__ volatile("" ::: "memory"); \
	} while (0)
#define CALL_BACK(via, f, statement)               \
	do {                                       \
		KNOWN_EDGE(__func__, via, #f);     \
		statement;                         \
		__asm__ volatile("" ::: "memory"); \
	} while (0)

/* Works for n rounds of about a nanosecond in registers only. Each use has its own code, which is
 * not merged with another. */
#define BURN(x, n)                                          \
	for (unsigned burn_i = 0; burn_i < (n); burn_i++) { \
		(x) = (x)*5u + __LINE__;                    \
		__asm__ volatile("" : "+r"(x));             \
	}
#ifndef ROUNDS
#define ROUNDS 20000u
#endif
/* A function that does only this. */
#define LEAF(name, n)                             \
	static NOINLINE unsigned name(unsigned x) \
	{                                         \
		BURN(x, n);                       \
		return x;                         \
	}

#ifdef KNOWN_STATIC
#define LIBC "[self]"
#define LIBM "[self]"
#else
#define LIBC "[libc.so.6]"
#define LIBM "[libm.so.6]"
#endif
/* Any functions that a call into the C library may execute, and the return of signal handlers. */
#if defined(__x86_64__)
#define LOADER "[ld-linux-x86-64.so.2]"
#define LIBC_ANY LIBC "|" LOADER
#define RESTORER LIBC
#elif defined(__i386__)
#define LOADER "[ld-linux.so.2]"
#define LIBC_ANY LIBC "|" LOADER "|[vdso32]"
#define RESTORER "[vdso32]"
#else
#define LOADER "[ld-linux-aarch64.so.1]"
#define LIBC_ANY LIBC "|" LOADER
#define RESTORER "[vdso]"
#endif
/* A call into the C library that enters the kernel. */
#ifdef __i386__
#define LIBC_KERNEL LIBC "+;[vdso32]"
#define VDSO "[vdso32]"
#else
#define LIBC_KERNEL LIBC "+"
#define VDSO "[vdso]"
#endif
/* Since glibc 2.34 two of its functions are between _start and main, and between the system call
 * and a thread's function. */
#define ROOT_MAIN "_start;" LIBC ";" LIBC
#define ROOT_THREAD LIBC ";" LIBC

static void __attribute__((unused)) known_print_edges(void)
{
	char line[512];

	for (struct known_edge *e = __start_known_edges; e < __stop_known_edges; e++) {
		int len = snprintf(line, sizeof(line), "EDGE %s %s %s\n", e->caller, e->via,
				   e->callee);

		if (len <= 0 || write(1, line, (size_t)len) != len)
			abort();
	}
}

/* A library prints its calls when it is loaded. If it is loaded several times, its user calls
 * known_print_edges once instead. */
#ifndef KNOWN_QUIET
static void __attribute__((constructor)) known_loaded(void)
{
	known_print_edges();
}
#endif

/* Call before the work begins. The program always ends after ten minutes. */
static void __attribute__((unused)) known_ready(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long long mask;
	} action;
	struct sigaction any = {}, old;
	char line[1024], out[1100];
	int pid = getpid();
	FILE *maps = fopen("/proc/self/maps", "re");

	KNOWN_EDGE("-", ROOT_MAIN, "main");
	setvbuf(stdout, NULL, _IONBF, 0);
	while (maps && fgets(line, sizeof(line), maps)) {
		int len = snprintf(out, sizeof(out), "MAP %d %s", pid, line);

		if (strstr(line, "r-xp") && write(1, out, (size_t)len) != len)
			abort();
	}
	if (maps)
		fclose(maps);
	/* The first handler sets the library's restorer. */
	any.sa_handler = _exit;
	sigaction(SIGUSR2, &any, &old);
	if (syscall(SYS_rt_sigaction, SIGUSR2, NULL, &action, 8) == 0)
		printf("RESTORER %d %lx\n", pid, (unsigned long)action.restorer);
	sigaction(SIGUSR2, &old, NULL);
	alarm(600);
	printf("READY %d\n", pid);
}

#endif
