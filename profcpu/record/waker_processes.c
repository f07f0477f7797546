#include "profcpu/record/waker_processes.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "base/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define END_NS NS_PER_S /* a read that lasts longer is abandoned */

struct waker_processes {
	/* Used by the caller only */
	struct hashmap known; /* processes that are known or were requested */
	size_t nrequested;
	uint64_t over_limit;
	VEC(unsigned char) taken; /* records being handed over */
	/* Used by the thread only */
	struct sampler_synthesis from;
	waker_processes_read read;
	VEC(unsigned char) reading;
	struct worker worker;  /* its lock guards the members below */
	VEC(int32_t) requests; /* from `next` on */
	size_t next, done;     /* done: requests that were read, or could not be */
	size_t failed;         /* those that could not be */
	VEC(unsigned char) records;
};

static int keep(void *ctx, const void *data, size_t len)
{
	struct waker_processes *w = ctx;
	int r = vec_reserve(&w->reading, len);

	if (!r && len) {
		memcpy(w->reading.v + w->reading.len, data, len);
		w->reading.len += len;
	}
	return r;
}

/* Adds the records of one process; the caller has the lock. */
static void publish(struct waker_processes *w, int error)
{
	if (error || vec_reserve(&w->records, w->reading.len)) {
		w->failed++;
	} else if (w->reading.len) {
		memcpy(w->records.v + w->records.len, w->reading.v, w->reading.len);
		w->records.len += w->reading.len;
	}
	w->reading.len = 0;
	w->done++;
	worker_wake(&w->worker);
}

static void read_requests(void *ctx)
{
	struct waker_processes *w = ctx;

	worker_lock(&w->worker);
	while (!w->worker.stopping) {
		if (w->next == w->requests.len) {
			(void)worker_wait(&w->worker, WORKER_FOREVER);
			continue;
		}
		int32_t pid = w->requests.v[w->next++];

		worker_unlock(&w->worker);
		int r = w->read(&w->from, pid, keep, w);

		worker_lock(&w->worker);
		publish(w, r);
	}
	worker_unlock(&w->worker);
}

static void release(struct waker_processes *w)
{
	hashmap_free(&w->known);
	vec_free(&w->taken);
	vec_free(&w->reading);
	vec_free(&w->requests);
	vec_free(&w->records);
	free(w);
}

int waker_processes_new(const struct sampler_synthesis *from, waker_processes_read read,
			struct waker_processes **ret_wakers)
{
	struct waker_processes *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->from = *from;
	w->read = read;
	int r = worker_start(&w->worker, "waker-reader", read_requests, w);

	if (r)
		release(w);
	else
		*ret_wakers = w;
	return r;
}

void waker_processes_free(struct waker_processes *w)
{
	if (w && worker_end(&w->worker, END_NS))
		release(w);
}

int waker_processes_know(struct waker_processes *w, int32_t pid)
{
	return hashmap_put(&w->known, (uint32_t)pid, 1);
}

int waker_processes_request(struct waker_processes *w, int32_t pid)
{
	if (pid <= 0 || hashmap_get(&w->known, (uint32_t)pid))
		return 0;
	int r = waker_processes_know(w, pid);

	if (r)
		return r;
	if (w->nrequested == WAKER_PROCESSES_MAX) {
		w->over_limit++;
		return 0;
	}
	w->nrequested++;
	worker_lock(&w->worker);
	r = vec_push(&w->requests, pid);
	worker_wake(&w->worker);
	worker_unlock(&w->worker);
	return r ? r : 1;
}

int waker_processes_take(struct waker_processes *w, uint64_t wait_ns, sampler_synthesized take,
			 void *ctx)
{
	uint64_t until_ns = clock_monotonic_ns() + wait_ns;
	int r = 0;

	worker_lock(&w->worker);
	while (wait_ns && !w->worker.ended && w->done < w->requests.len &&
	       worker_wait(&w->worker, until_ns))
		;
	if (w->records.len) {
		r = vec_reserve(&w->taken, w->records.len);
		if (!r)
			memcpy(w->taken.v, w->records.v, w->records.len);
		w->taken.len = r ? 0 : w->records.len;
		w->records.len = 0;
	}
	worker_unlock(&w->worker);
	if (!r && w->taken.len)
		r = take(ctx, w->taken.v, w->taken.len);
	vec_free(&w->taken);
	return r;
}

uint64_t waker_processes_left_out(struct waker_processes *w)
{
	worker_lock(&w->worker);
	uint64_t unread = w->failed + (w->requests.len - w->done);

	worker_unlock(&w->worker);
	return w->over_limit + unread;
}
