/*
 * A second thread with a lock for the data that it shares with its owner. The owner can abandon it,
 * because it may wait forever for a file system or for another process's memory.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKER_FOREVER UINT64_MAX

struct worker {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the shared data and the members below */
	pthread_cond_t wake;
	void (*run)(void *ctx);
	void *ctx;
	bool stopping; /* run must return */
	bool ended;    /* run has returned */
};

/* Calls run(ctx) in a new thread (thread_start). *w must not move. 0 or -errno. */
int worker_start(struct worker *w, const char *name, void (*run)(void *ctx), void *ctx);

void worker_lock(struct worker *w);
void worker_unlock(struct worker *w);

/* Needs the lock. Wakes all threads in worker_wait. */
void worker_wake(struct worker *w);

/*
 * Needs the lock, and releases it while waiting. Waits for worker_wake, at most until until_ns
 * (CLOCK_MONOTONIC, or WORKER_FOREVER); may also return early. Returns false after that time.
 */
bool worker_wait(struct worker *w, uint64_t until_ns);

/*
 * Makes run return and waits at most in_ns for it. True: it returned, and the thread is gone.
 * False: the thread is abandoned and continues to use *w and all its data.
 */
bool worker_end(struct worker *w, uint64_t in_ns);

#endif
