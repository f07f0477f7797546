#include "base/worker.h"

#include "base/clock.h"
#include "base/thread.h"

static void *worker_main(void *ctx)
{
	struct worker *w = ctx;

	w->run(w->ctx);
	worker_lock(w);
	w->ended = true;
	worker_wake(w);
	worker_unlock(w);
	return NULL;
}

static void destroy(struct worker *w)
{
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
}

int worker_start(struct worker *w, const char *name, void (*run)(void *ctx), void *ctx)
{
	pthread_condattr_t attr;

	*w = (struct worker){.run = run, .ctx = ctx};
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	int r = thread_start(&w->thread, name, worker_main, w);

	if (r)
		destroy(w);
	return r;
}

void worker_lock(struct worker *w)
{
	pthread_mutex_lock(&w->lock);
}

void worker_unlock(struct worker *w)
{
	pthread_mutex_unlock(&w->lock);
}

void worker_wake(struct worker *w)
{
	pthread_cond_broadcast(&w->wake);
}

bool worker_wait(struct worker *w, uint64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);

	return until_ns == WORKER_FOREVER ? !pthread_cond_wait(&w->wake, &w->lock)
					  : !pthread_cond_timedwait(&w->wake, &w->lock, &until);
}

bool worker_end(struct worker *w, uint64_t in_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + in_ns;
	bool ended;

	worker_lock(w);
	w->stopping = true;
	worker_wake(w);
	while (!w->ended && worker_wait(w, until_ns))
		;
	ended = w->ended;
	worker_unlock(w);
	if (!ended) {
		pthread_detach(w->thread);
		return false;
	}
	pthread_join(w->thread, NULL);
	destroy(w);
	return true;
}
