/*
 * Starts threads that can report a crash: each has a name and a signal stack of its own, so that a
 * handler also runs after an overflow of the stack.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Signals of a crash. */
#define THREAD_CRASH_SIGNALS                                     \
	{                                                        \
		SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS \
	}

/*
 * Calls run(ctx) in a new thread. Signals that the caller has blocked stay blocked in it, except
 * those of a crash. name: at most 15 bytes; static. 0 or -errno.
 */
int thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *ctx), void *ctx);

/*
 * Gives the calling thread a signal stack, unless it has one; thread_start calls it. Returns the
 * memory for thread_end_signal_stack, or NULL: it has one, or none can be made.
 */
void *thread_begin_signal_stack(void);
void thread_end_signal_stack(void *stack);

#endif
