#include "profcpu/record_waiting.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "base/worker.h"
#include "sampler/waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 64 /* threads that are read before it rests */
#define KNOWN_MAX (4 * RECORD_WAITING_THREADS_MAX) /* threads of which something is remembered */

struct waiting_question {
	int32_t pid, tid;
	bool more; /* of the stack than the first bytes */
	uint64_t but; /* unless it is in the wait with this count */
};

struct waiting_answer {
	struct waiting_question question;
	struct waiting found;
	uint64_t count, since_ns; /* since_ns: CLOCK_MONOTONIC */
	unsigned char *stack;
	bool is_32, done;
	int error; /* of reading */
};

/* What is remembered of a thread. */
struct waiting_known {
	int32_t tid;
	bool pending; /* a question waits */
	bool refused; /* its memory may not be read: once is enough */
	bool over; /* there was no room for its question */
	bool more; /* of its question: the stack of the wait that was read last is longer */
	uint64_t count; /* of the wait that was read last, or could not be; UINT64_MAX: none was */
};

struct record_waiting {
	const char *proc;
	unsigned char *buffer; /* the thread's, WAITING_STACK_MAX */
	VEC(struct waiting_answer) unwinding; /* the caller's: read, and to be unwound or unwound better */
	struct worker worker; /* its lock is of what follows */
	VEC(struct waiting_question) questions; /* from `next` on */
	size_t next, asking; /* asking: questions that the thread has taken */
	VEC(struct waiting_answer) answers;
	VEC(struct waiting_known) known;
	struct hashmap by_tid; /* to known */
	size_t bytes; /* of all answers, those of unwinding too */
	struct record_waiting_stats stats;
	bool hurrying; /* no rest */
	bool closed; /* no question is taken any more */
};

/* Only those of which a question waits are remembered then: the others may be asked for once more. */
static int forget(struct record_waiting *w)
{
	size_t kept = 0;
	int r = 0;

	hashmap_free(&w->by_tid);
	for (size_t i = 0; i < w->known.len && !r; i++) {
		if (!w->known.v[i].pending) {
			w->stats.dropped -= w->known.v[i].over; /* it is counted again if there is no room again */
			continue;
		}
		r = hashmap_put(&w->by_tid, (uint32_t)w->known.v[i].tid, (uint32_t)kept);
		w->known.v[kept++] = w->known.v[i];
	}
	w->known.len = kept;
	return r;
}

/* NULL: memory is out. */
static struct waiting_known *know(struct record_waiting *w, int32_t tid)
{
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)tid);

	if (index)
		return &w->known.v[*index];
	if ((w->known.len == KNOWN_MAX && forget(w)) ||
	    vec_push(&w->known, ((struct waiting_known){.tid = tid, .count = UINT64_MAX})) ||
	    hashmap_put(&w->by_tid, (uint32_t)tid, (uint32_t)w->known.len - 1))
		return NULL;
	return &w->known.v[w->known.len - 1];
}

static int push_question(struct record_waiting *w, struct waiting_known *known, int32_t pid)
{
	bool room = w->questions.len - w->next < RECORD_WAITING_THREADS_MAX;

	w->stats.dropped += !room && !known->over;
	w->stats.dropped -= room && known->over;
	known->over = !room;
	known->pending = room && !vec_push(&w->questions, ((struct waiting_question){.pid = pid, .tid = known->tid}));
	return room && !known->pending ? -ENOMEM : 0;
}

/* Nobody is woken for each: a switch of ours costs as much as one of the target. */
static int ask(struct record_waiting *w, int32_t pid, int32_t tid, bool more)
{
	int r = 0;

	worker_lock(&w->worker);
	if (!w->closed && !w->worker.ended) {
		struct waiting_known *known = know(w, tid);

		r = known ? 0 : -ENOMEM;
		if (known)
			known->more = known->more || more;
		if (known && !known->pending && !known->refused)
			r = push_question(w, known, pid);
	}
	worker_unlock(&w->worker);
	return r;
}

int record_waiting_ask(struct record_waiting *w, int32_t pid, int32_t tid)
{
	return ask(w, pid, tid, false);
}

void record_waiting_now(struct record_waiting *w)
{
	worker_lock(&w->worker);
	worker_wake(&w->worker);
	worker_unlock(&w->worker);
}

void record_waiting_forget(struct record_waiting *w, int32_t tid)
{
	worker_lock(&w->worker);
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)tid);

	if (index) {
		w->known.v[*index].refused = false;
		w->known.v[*index].count = UINT64_MAX;
	}
	worker_unlock(&w->worker);
}

static bool has_room(const struct record_waiting *w)
{
	return w->bytes + BATCH * WAITING_STACK_MAX <= RECORD_WAITING_BYTES;
}

static struct waiting_question take_question(struct record_waiting *w)
{
	struct waiting_question q = w->questions.v[w->next++];
	const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)q.tid);
	struct waiting_known *known = index ? &w->known.v[*index] : &(struct waiting_known){.count = UINT64_MAX};

	q.more = known->more;
	q.but = known->more ? UINT64_MAX : known->count;
	known->more = false;
	return q;
}

/* The next questions, when there is room for their answers. How many; 0: it is the end. */
static size_t next_questions(struct record_waiting *w, struct waiting_question questions[BATCH])
{
	size_t n = 0, left;

	worker_lock(&w->worker);
	while (!w->worker.stopping && (w->next == w->questions.len || !has_room(w)))
		(void)worker_wait(&w->worker, WORKER_EVER);
	while (!w->worker.stopping && n < BATCH && w->next < w->questions.len)
		questions[n++] = take_question(w);
	left = w->questions.len - w->next;
	if (w->next >= left) {
		if (left)
			memmove(w->questions.v, w->questions.v + w->next, left * sizeof(*w->questions.v));
		w->questions.len = left;
		w->next = 0;
	}
	w->asking = n;
	worker_unlock(&w->worker);
	return n;
}

static size_t bytes_of(const struct waiting_question *q)
{
	return q->more ? WAITING_STACK_MAX : RECORD_WAITING_FIRST_BYTES;
}

static int read_one(struct record_waiting *w, struct waiting_answer *a)
{
	int r = waiting_count(w->proc, a->question.tid, &a->count);

	if (!r && a->count == a->question.but)
		return -EEXIST;
	if (!r)
		r = waiting_read(w->proc, a->question.tid, a->count, w->buffer, bytes_of(&a->question), &a->found);
	/* Of the thread: of a process whose first one has ended nothing is to be had by its id. */
	if (!r)
		r = waiting_is_32(w->proc, a->question.tid, &a->is_32);
	if (r)
		return r;
	a->stack = malloc(a->found.bytes);
	if (!a->stack)
		return -ENOMEM;
	memcpy(a->stack, w->buffer, a->found.bytes);
	return 0;
}

/* With the lock. Without room for it, it can be asked for again. */
static void take_answer(struct record_waiting *w, struct waiting_answer *a)
{
	struct waiting_known *known = know(w, a->question.tid);
	bool refused = a->error == -EPERM || a->error == -EACCES;

	if (!a->error && vec_push(&w->answers, *a)) {
		free(a->stack);
		a->error = -ENOMEM;
	}
	w->stats.dropped += a->error == -ENOMEM;
	if (known) {
		w->stats.refused += refused && !known->refused;
		known->pending = false;
		known->refused = refused;
		/* Who runs now may be in that wait later. */
		if (a->error != -EAGAIN && a->error != -ESTALE && a->error != -ENOMEM && a->error != -EEXIST)
			known->count = a->count;
	}
	w->stats.again += a->error == -EEXIST;
	if (a->error)
		return;
	w->bytes += a->found.bytes;
	w->stats.read++;
}

static void read_all(struct record_waiting *w, const struct waiting_question *questions, size_t n)
{
	struct waiting_answer answers[BATCH] = {0};

	for (size_t i = 0; i < n; i++) {
		answers[i].question = questions[i];
		answers[i].since_ns = clock_monotonic_ns();
		answers[i].count = UINT64_MAX;
		answers[i].error = read_one(w, &answers[i]);
	}
	worker_lock(&w->worker);
	w->stats.asked += n;
	for (size_t i = 0; i < n; i++)
		take_answer(w, &answers[i]);
	w->asking = 0;
	w->stats.cpu_ns = clock_thread_ns();
	if (w->hurrying)
		worker_wake(&w->worker);
	worker_unlock(&w->worker);
}

/* Thousands of threads are not to take a CPU from the target. */
static void rest(struct record_waiting *w, uint64_t used_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + used_ns * RECORD_WAITING_IDLE_TIMES;

	worker_lock(&w->worker);
	while (!w->worker.stopping && !w->hurrying && worker_wait(&w->worker, until_ns))
		;
	worker_unlock(&w->worker);
}

static void waiting_main(void *ctx)
{
	struct waiting_question questions[BATCH];
	struct record_waiting *w = ctx;
	size_t n;

	while ((n = next_questions(w, questions))) {
		uint64_t begin_ns = clock_thread_ns();

		read_all(w, questions, n);
		rest(w, clock_thread_ns() - begin_ns);
	}
}

static void free_all(struct record_waiting *w)
{
	for (size_t i = 0; i < w->unwinding.len; i++)
		free(w->unwinding.v[i].stack);
	for (size_t i = 0; i < w->answers.len; i++)
		free(w->answers.v[i].stack);
	vec_free(&w->unwinding);
	vec_free(&w->answers);
	vec_free(&w->questions);
	vec_free(&w->known);
	hashmap_free(&w->by_tid);
	free(w->buffer);
	free(w);
}

int record_waiting_new(const char *proc, struct record_waiting **ret_waiting)
{
	struct record_waiting *w = calloc(1, sizeof(*w));
	int error = w && (w->buffer = malloc(WAITING_STACK_MAX)) ? 0 : -ENOMEM;

	if (!error) {
		w->proc = proc;
		error = worker_start(&w->worker, waiting_main, w);
	}
	if (!error)
		*ret_waiting = w;
	else if (w)
		free_all(w);
	return error;
}

/* A thread that the kernel holds, as a process's memory does not answer, keeps what is its. */
void record_waiting_free(struct record_waiting *w)
{
	if (w && worker_end(&w->worker, RECORD_WAITING_END_NS))
		free_all(w);
}

/* With the lock: questions that have no answer yet. */
static size_t unanswered(const struct record_waiting *w)
{
	return w->questions.len - w->next + w->asking;
}

struct record_waiting_stats record_waiting_stats(struct record_waiting *w)
{
	struct record_waiting_stats stats;

	worker_lock(&w->worker);
	stats = w->stats;
	stats.dropped += w->asking;
	for (size_t i = w->next; i < w->questions.len; i++) {
		const uint32_t *index = hashmap_get(&w->by_tid, (uint32_t)w->questions.v[i].tid);

		/* What began of it was read, where more was asked for. */
		stats.dropped += !index || !w->known.v[*index].more;
	}
	worker_unlock(&w->worker);
	return stats;
}

bool record_waiting_hopes(struct record_waiting *w)
{
	worker_lock(&w->worker);
	bool hopes = w->unwinding.len || w->answers.len || (unanswered(w) && !w->worker.ended);

	worker_unlock(&w->worker);
	return hopes;
}

bool record_waiting_hurry(struct record_waiting *w, uint64_t until_ns)
{
	worker_lock(&w->worker);
	w->hurrying = true;
	worker_wake(&w->worker);
	while (!w->answers.len && unanswered(w) && (w->asking || has_room(w)) && !w->worker.ended && worker_wait(&w->worker, until_ns))
		;
	bool came = w->answers.len;

	worker_unlock(&w->worker);
	return came;
}

/* Unwinds one, as far as its code is known. 0; -EAGAIN: more of it may be known later; -ENOMEM. */
static int unwind(struct unwinder *unwinder, struct record_offcpu *offcpu, struct waiting_answer *a, bool last,
		  struct unwound *ret_unwound)
{
	const uint64_t regs[] = {a->found.sp, a->found.ip};
	struct unwinder_sample sample = {
		.pid = a->question.pid,
		.tid = a->question.tid,
		.time_ns = a->since_ns,
		.regs = regs,
		.regs_mask = ARCH_PERF_SP_IP,
		.abi = a->is_32 ? PERF_SAMPLE_REGS_ABI_32 : PERF_SAMPLE_REGS_ABI_64,
		.in_kernel = true,
		.stack = a->stack,
		.stack_bytes = a->found.bytes,
		.last = last,
	};
	int r = unwinder_sample(unwinder, &sample, ret_unwound), told;

	if (r && r != -EAGAIN)
		return r;
	if (r == -EAGAIN) {
		/* What is known has to do where the wait is over before. It also asks for the code of all callers. */
		sample.last = true;
		r = unwinder_sample(unwinder, &sample, ret_unwound);
		r = r ? r : -EAGAIN;
	}
	told = r && r != -EAGAIN ? 0 : record_offcpu_seen(offcpu, a->question.tid, a->count, ret_unwound);
	return told ? told : r;
}

/* What was read since the last time. */
static int collect(struct record_waiting *w)
{
	int r;

	worker_lock(&w->worker);
	r = vec_reserve(&w->unwinding, w->answers.len);
	for (size_t i = 0; i < w->answers.len && !r; i++)
		w->unwinding.v[w->unwinding.len++] = w->answers.v[i];
	w->answers.len = r ? w->answers.len : 0;
	if (w->next < w->questions.len)
		worker_wake(&w->worker);
	worker_unlock(&w->worker);
	return r;
}

/* Those that are done make room. */
static void sweep(struct record_waiting *w)
{
	size_t kept = 0, bytes = 0;

	for (size_t i = 0; i < w->unwinding.len; i++) {
		struct waiting_answer *a = &w->unwinding.v[i];

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

/* Unwinds those that were read, up to code that is not known. 0 or -ENOMEM. */
static int unwind_all(struct record_waiting *w, struct unwinder *unwinder, struct record_offcpu *offcpu, bool last)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t i = 0; i < w->unwinding.len && !r; i++) {
		struct waiting_answer *a = &w->unwinding.v[i];
		struct unwound unwound;
		bool now = last || now_ns - a->since_ns > RECORD_WAITING_CODE_NS;

		r = unwind(unwinder, offcpu, a, now, &unwound);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		a->done = true;
		if (!r && unwound.edge && !a->question.more && a->found.bytes == bytes_of(&a->question))
			r = ask(w, a->question.pid, a->question.tid, true);
	}
	if (w->unwinding.len)
		sweep(w);
	return r;
}

int record_waiting_take(struct record_waiting *w, struct unwinder *unwinder, struct record_offcpu *offcpu, bool last)
{
	int r = last ? collect(w) : 0;

	if (!r)
		r = unwind_all(w, unwinder, offcpu, last);
	worker_lock(&w->worker);
	w->closed = w->closed || last;
	worker_unlock(&w->worker);
	/* For the next round: what this one began with is known to offcpu only then. */
	return r ? r : collect(w);
}
