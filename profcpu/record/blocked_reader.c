#include "profcpu/record/blocked_reader.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "base/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64                                   /* threads read before a pause */
#define KNOWN_MAX (4 * RECORD_BLOCKED_THREADS_MAX) /* threads with a remembered state */

struct blocked_request {
	int32_t pid, tid;
	bool more;           /* the whole stack, not only its first bytes */
	uint64_t skip_count; /* count of a wait to skip, because its stack is known */
};

struct blocked_result {
	struct blocked_request request;
	struct blocked_stack found;
	uint64_t count, since_ns; /* since_ns: CLOCK_MONOTONIC */
	unsigned char *stack;
	bool is_32, done;
	int error; /* of reading */
};

/* State of a thread between requests. */
struct blocked_thread {
	int32_t tid;
	bool pending;   /* it has a request */
	bool refused;   /* no permission; not retried */
	bool dropped;   /* its request was dropped */
	bool more;      /* request the whole stack, because the first copy was too short */
	uint64_t count; /* the last wait read or tried; UINT64_MAX: none */
};

struct record_blocked {
	const char *proc;
	unsigned char *buffer; /* BLOCKED_STACK_MAX bytes, used by the thread only */
	/* Results that are not finished; used by the caller only. */
	VEC(struct blocked_result) unwinding;
	struct worker worker;                 /* its lock guards the members below */
	VEC(struct blocked_request) requests; /* from `next` on */
	size_t next, reading;                 /* reading: requests that the thread has taken */
	VEC(struct blocked_result) results;
	VEC(struct blocked_thread) known;
	struct hashmap by_tid; /* tid to index of known */
	size_t bytes;          /* of all results, unwinding included */
	struct record_blocked_stats stats;
	bool no_rest; /* read without pauses */
	bool closed;  /* requests are ignored */
};

/* Keeps only threads with a pending request; the others may be requested again. */
static int forget(struct record_blocked *w)
{
	size_t kept = 0;
	int r = 0;

	hashmap_free(&w->by_tid);
	for (size_t i = 0; i < w->known.len && !r; i++) {
		if (!w->known.v[i].pending) {
			w->stats.dropped -=
				w->known.v[i].dropped; /* counted again when dropped again */
			continue;
		}
		r = hashmap_put(&w->by_tid, (uint32_t)w->known.v[i].tid, (uint32_t)kept);
		w->known.v[kept++] = w->known.v[i];
	}
	w->known.len = kept;
	return r;
}

/* The state of a thread; NULL: no memory. */
static struct blocked_thread *thread_of(struct record_blocked *w, int32_t tid)
{
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)tid);

	if (index)
		return &w->known.v[*index];
	if ((w->known.len == KNOWN_MAX && forget(w)) ||
	    vec_push(&w->known, ((struct blocked_thread){.tid = tid, .count = UINT64_MAX})) ||
	    hashmap_put(&w->by_tid, (uint32_t)tid, (uint32_t)w->known.len - 1))
		return NULL;
	return &w->known.v[w->known.len - 1];
}

static int push_request(struct record_blocked *w, struct blocked_thread *known, int32_t pid)
{
	bool room = w->requests.len - w->next < RECORD_BLOCKED_THREADS_MAX;

	w->stats.dropped += !room && !known->dropped;
	w->stats.dropped -= room && known->dropped;
	known->dropped = !room;
	known->pending =
		room &&
		!vec_push(&w->requests, ((struct blocked_request){.pid = pid, .tid = known->tid}));
	return room && !known->pending ? -ENOMEM : 0;
}

/* Does not wake the thread, because each switch of ours costs as much as one of a target. */
static int request(struct record_blocked *w, int32_t pid, int32_t tid, bool more)
{
	int r = 0;

	worker_lock(&w->worker);
	if (!w->closed && !w->worker.ended) {
		struct blocked_thread *known = thread_of(w, tid);

		r = known ? 0 : -ENOMEM;
		if (known)
			known->more = known->more || more;
		if (known && !known->pending && !known->refused)
			r = push_request(w, known, pid);
	}
	worker_unlock(&w->worker);
	return r;
}

int record_blocked_request(struct record_blocked *w, int32_t pid, int32_t tid)
{
	return request(w, pid, tid, false);
}

void record_blocked_read_now(struct record_blocked *w)
{
	worker_lock(&w->worker);
	worker_wake(&w->worker);
	worker_unlock(&w->worker);
}

void record_blocked_forget(struct record_blocked *w, int32_t tid)
{
	worker_lock(&w->worker);
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)tid);

	if (index) {
		w->known.v[*index].refused = false;
		w->known.v[*index].count = UINT64_MAX;
	}
	worker_unlock(&w->worker);
}

/* Whether another stack fits, whatever its size. */
static bool has_room(size_t bytes)
{
	return bytes + BLOCKED_STACK_MAX <= RECORD_BLOCKED_BYTES;
}

static struct blocked_request take_request(struct record_blocked *w)
{
	struct blocked_request q = w->requests.v[w->next++];
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)q.tid);
	struct blocked_thread *known =
		index ? &w->known.v[*index] : &(struct blocked_thread){.count = UINT64_MAX};

	q.more = known->more;
	q.skip_count = known->more ? UINT64_MAX : known->count;
	known->more = false;
	return q;
}

static size_t bytes_of(const struct blocked_request *q)
{
	return q->more ? BLOCKED_STACK_MAX : RECORD_BLOCKED_FIRST_BYTES;
}

/* Waits for requests and for room for their results. Returns their number; 0: stop. */
static size_t next_requests(struct record_blocked *w, struct blocked_request requests[BATCH])
{
	size_t n = 0, left, bytes;

	worker_lock(&w->worker);
	while (!w->worker.stopping && (w->next == w->requests.len || !has_room(w->bytes)))
		(void)worker_wait(&w->worker, WORKER_FOREVER);
	bytes = w->bytes;
	while (!w->worker.stopping && n < BATCH && w->next < w->requests.len && has_room(bytes)) {
		requests[n] = take_request(w);
		bytes += bytes_of(&requests[n++]);
	}
	left = w->requests.len - w->next;
	if (w->next >= left) {
		if (left)
			memmove(w->requests.v, w->requests.v + w->next,
				left * sizeof(*w->requests.v));
		w->requests.len = left;
		w->next = 0;
	}
	w->reading = n;
	worker_unlock(&w->worker);
	return n;
}

static int read_one(struct record_blocked *w, struct blocked_result *a)
{
	int r = blocked_count(w->proc, a->request.tid, &a->count);

	if (!r && a->count == a->request.skip_count)
		return -EEXIST;
	if (!r)
		r = blocked_read(w->proc, a->request.tid, a->count, w->buffer,
				 bytes_of(&a->request), &a->found);
	/* Uses the thread id: the files of a process are empty once its first thread has ended. */
	if (!r)
		r = blocked_is_32(w->proc, a->request.tid, &a->is_32);
	if (r)
		return r;
	a->stack = malloc(a->found.bytes);
	if (!a->stack)
		return -ENOMEM;
	memcpy(a->stack, w->buffer, a->found.bytes);
	return 0;
}

/* Adds a result; without memory for it, it can be requested again. The caller has the lock. */
static void take_result(struct record_blocked *w, struct blocked_result *a)
{
	struct blocked_thread *known = thread_of(w, a->request.tid);
	bool refused = a->error == -EPERM || a->error == -EACCES;

	if (!a->error && vec_push(&w->results, *a)) {
		free(a->stack);
		a->error = -ENOMEM;
	}
	w->stats.dropped += a->error == -ENOMEM;
	if (known) {
		w->stats.refused += refused && !known->refused;
		known->pending = false;
		known->refused = refused;
		/* Skip this wait from now on, unless a later read may succeed. */
		if (a->error != -EAGAIN && a->error != -ESTALE && a->error != -ENOMEM &&
		    a->error != -EEXIST)
			known->count = a->count;
	}
	w->stats.again += a->error == -EEXIST;
	if (a->error)
		return;
	w->bytes += a->found.bytes;
	w->stats.read++;
}

static void read_all(struct record_blocked *w, const struct blocked_request *requests, size_t n)
{
	struct blocked_result results[BATCH] = {0};

	for (size_t i = 0; i < n; i++) {
		results[i].request = requests[i];
		results[i].since_ns = clock_monotonic_ns();
		results[i].count = UINT64_MAX;
		results[i].error = read_one(w, &results[i]);
	}
	worker_lock(&w->worker);
	w->stats.requested += n;
	for (size_t i = 0; i < n; i++)
		take_result(w, &results[i]);
	w->reading = 0;
	w->stats.cpu_ns = clock_thread_ns();
	if (w->no_rest)
		worker_wake(&w->worker);
	worker_unlock(&w->worker);
}

/* Pauses after reading, so that reading thousands of stacks does not slow the target down. */
static void rest(struct record_blocked *w, uint64_t used_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + used_ns * RECORD_BLOCKED_IDLE_TIMES;

	worker_lock(&w->worker);
	while (!w->worker.stopping && !w->no_rest && worker_wait(&w->worker, until_ns))
		;
	worker_unlock(&w->worker);
}

static void reader_main(void *ctx)
{
	struct blocked_request requests[BATCH];
	struct record_blocked *w = ctx;
	size_t n;

	while ((n = next_requests(w, requests))) {
		uint64_t begin_ns = clock_thread_ns();

		read_all(w, requests, n);
		rest(w, clock_thread_ns() - begin_ns);
	}
}

static void free_all(struct record_blocked *w)
{
	for (size_t i = 0; i < w->unwinding.len; i++)
		free(w->unwinding.v[i].stack);
	for (size_t i = 0; i < w->results.len; i++)
		free(w->results.v[i].stack);
	vec_free(&w->unwinding);
	vec_free(&w->results);
	vec_free(&w->requests);
	vec_free(&w->known);
	hashmap_free(&w->by_tid);
	free(w->buffer);
	free(w);
}

int record_blocked_new(const char *proc, struct record_blocked **ret_blocked)
{
	struct record_blocked *w = calloc(1, sizeof(*w));
	int error = w && (w->buffer = malloc(BLOCKED_STACK_MAX)) ? 0 : -ENOMEM;

	if (!error) {
		w->proc = proc;
		error = worker_start(&w->worker, "blocked-reader", reader_main, w);
	}
	if (!error)
		*ret_blocked = w;
	else if (w)
		free_all(w);
	return error;
}

/* If the kernel blocks the thread in a read, its memory is not freed. */
void record_blocked_free(struct record_blocked *w)
{
	if (w && worker_end(&w->worker, RECORD_BLOCKED_END_NS))
		free_all(w);
}

/* Number of requests without a result. The caller has the lock. */
static size_t pending_requests(const struct record_blocked *w)
{
	return w->requests.len - w->next + w->reading;
}

struct record_blocked_stats record_blocked_stats(struct record_blocked *w)
{
	struct record_blocked_stats stats;

	worker_lock(&w->worker);
	stats = w->stats;
	stats.dropped += w->reading;
	for (size_t i = w->next; i < w->requests.len; i++) {
		const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)w->requests.v[i].tid);

		/* A request for more has its first bytes already. */
		stats.dropped += !index || !w->known.v[*index].more;
	}
	worker_unlock(&w->worker);
	return stats;
}

bool record_blocked_has_work(struct record_blocked *w)
{
	worker_lock(&w->worker);
	bool has_work =
		w->unwinding.len || w->results.len || (pending_requests(w) && !w->worker.ended);

	worker_unlock(&w->worker);
	return has_work;
}

bool record_blocked_wait(struct record_blocked *w, uint64_t until_ns)
{
	worker_lock(&w->worker);
	w->no_rest = true;
	worker_wake(&w->worker);
	while (!w->results.len && pending_requests(w) && (w->reading || has_room(w->bytes)) &&
	       !w->worker.ended && worker_wait(&w->worker, until_ns))
		;
	bool has_results = w->results.len;

	worker_unlock(&w->worker);
	return has_results;
}

/* Unwinds one stack. 0; -EAGAIN: missing code may come later; -ENOMEM; the sink's. */
static int unwind(struct unwinder *unwinder, const struct record_blocked_sink *sink,
		  struct blocked_result *a, bool last, struct unwound *ret_unwound)
{
	const uint64_t regs[] = {a->found.sp, a->found.ip};
	struct unwinder_sample sample = {
		.pid = a->request.pid,
		.tid = a->request.tid,
		.time_ns = a->since_ns,
		.regs = regs,
		.regs_mask = ARCH_PERF_SP_IP,
		.abi = a->is_32 ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64,
		.in_kernel = true,
		.stack = a->stack,
		.stack_bytes = a->found.bytes,
		.last = last,
	};
	int r = unwinder_sample(unwinder, &sample, ret_unwound), error;

	if (r && r != -EAGAIN)
		return r;
	if (r == -EAGAIN) {
		/* Use the partial stack in case the wait ends before the code is known. This also
		 * requests the code of all callers. */
		sample.last = true;
		r = unwinder_sample(unwinder, &sample, ret_unwound);
		r = r ? r : -EAGAIN;
	}
	error = r && r != -EAGAIN
			? 0
			: sink->stack(sink->ctx, a->request.tid, a->count, &a->found, ret_unwound);
	return error ? error : r;
}

/* Moves new results to `unwinding`. 0 or -ENOMEM. */
static int collect(struct record_blocked *w)
{
	int r;

	worker_lock(&w->worker);
	r = vec_reserve(&w->unwinding, w->results.len);
	for (size_t i = 0; i < w->results.len && !r; i++)
		w->unwinding.v[w->unwinding.len++] = w->results.v[i];
	w->results.len = r ? w->results.len : 0;
	if (w->next < w->requests.len)
		worker_wake(&w->worker);
	worker_unlock(&w->worker);
	return r;
}

/* Frees finished results. */
static void sweep(struct record_blocked *w)
{
	size_t kept = 0, bytes = 0;

	for (size_t i = 0; i < w->unwinding.len; i++) {
		struct blocked_result *a = &w->unwinding.v[i];

		if (!a->done) {
			w->unwinding.v[kept++] = *a;
			continue;
		}
		bytes += a->found.bytes;
		free(a->stack);
	}
	w->unwinding.len = kept;
	worker_lock(&w->worker);
	w->bytes -= bytes;
	worker_unlock(&w->worker);
}

/* Unwinds results; keeps those that need unknown code. 0 or -ENOMEM. */
static int unwind_all(struct record_blocked *w, struct unwinder *unwinder,
		      const struct record_blocked_sink *sink, bool last)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t i = 0; i < w->unwinding.len && !r; i++) {
		struct blocked_result *a = &w->unwinding.v[i];
		struct unwound unwound;
		bool now = last || now_ns - a->since_ns > RECORD_BLOCKED_CODE_NS;

		r = unwind(unwinder, sink, a, now, &unwound);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		a->done = true;
		if (!r && unwound.edge && !a->request.more &&
		    a->found.bytes == bytes_of(&a->request))
			r = request(w, a->request.pid, a->request.tid, true);
	}
	if (w->unwinding.len)
		sweep(w);
	return r;
}

int record_blocked_take(struct record_blocked *w, struct unwinder *unwinder,
			const struct record_blocked_sink *sink, bool last)
{
	int r = last ? collect(w) : 0;

	if (!r)
		r = unwind_all(w, unwinder, sink, last);
	worker_lock(&w->worker);
	w->closed = w->closed || last;
	worker_unlock(&w->worker);
	/* Unwind these in the next round, because the sink knows the waits of this round only then.
	 */
	return r ? r : collect(w);
}
