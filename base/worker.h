/*
 * A thread beside its owner's, with the lock of what both use. It can be left behind: what it waits for (a file system, the memory of another process)
 * may never answer.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define WORKER_EVER UINT64_MAX

struct worker {
	pthread_t thread;
	pthread_mutex_t lock; /* of what both use, and of what follows */
	pthread_cond_t wake;
	void (*run)(void *ctx);
	void *ctx;
	bool stopping; /* run is to return; */
	bool ended; /* it has */
};

/* Calls run(ctx) in a thread; signals that the caller has blocked stay blocked in it. 0 or -errno. *w stays where it is. */
int worker_start(struct worker *w, void (*run)(void *ctx), void *ctx);

void worker_lock(struct worker *w);
void worker_unlock(struct worker *w);

/* With the lock: whoever is in worker_wait looks again. */
void worker_wake(struct worker *w);

/* With the lock, which others may have meanwhile: until somebody wakes, at most to until_ns (CLOCK_MONOTONIC, or WORKER_EVER). Whether that is not over. */
bool worker_wait(struct worker *w, uint64_t until_ns);

/* Has run return. True: it did in that time, and nothing is left of the thread; false: it is left behind, and keeps *w and all that it uses. */
bool worker_end(struct worker *w, uint64_t in_ns);

#endif
