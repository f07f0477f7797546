#include "profcpu/record_waiting.h"

#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "sampler/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 64 /* threads that are read before it rests */

struct waiting_question {
	int32_t pid, tid;
	size_t bytes;
};

struct waiting_answer {
	struct waiting_question question;
	struct waiting found;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	unsigned char *stack;
	bool done;
};

struct record_waiting {
	const char *proc;
	pthread_t thread;
	unsigned char *buffer; /* the thread's, WAITING_STACK_MAX */
	VEC(struct waiting_answer) unwinding; /* the caller's: read, and to be unwound or unwound better */
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	VEC(struct waiting_question) questions; /* from `next` on */
	size_t next;
	VEC(struct waiting_answer) answers;
	struct hashmap refused; /* threads whose memory may not be read: once is enough */
	size_t bytes; /* of all answers, those of unwinding too */
	struct record_waiting_stats stats;
	bool stopping, ended;
};

static uint64_t thread_cpu_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Nobody is woken for each: a switch of ours costs as much as one of the target. */
static int ask(struct record_waiting *w, const struct waiting_question *q)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (w->questions.len - w->next < RECORD_WAITING_THREADS_MAX && !w->ended && !hashmap_get(&w->refused, (uint32_t)q->tid))
		r = vec_push(&w->questions, *q);
	pthread_mutex_unlock(&w->lock);
	return r;
}

int record_waiting_ask(struct record_waiting *w, int32_t pid, int32_t tid)
{
	return ask(w, &(struct waiting_question){pid, tid, RECORD_WAITING_FIRST_BYTES});
}

/* The next questions, when there is room for their answers. How many; 0: it is the end. */
static size_t next_questions(struct record_waiting *w, struct waiting_question questions[BATCH])
{
	size_t n = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping && (w->next == w->questions.len || w->bytes + BATCH * WAITING_STACK_MAX > RECORD_WAITING_BYTES))
		pthread_cond_wait(&w->wake, &w->lock);
	while (!w->stopping && n < BATCH && w->next < w->questions.len)
		questions[n++] = w->questions.v[w->next++];
	if (w->next == w->questions.len)
		w->next = w->questions.len = 0;
	pthread_mutex_unlock(&w->lock);
	return n;
}

/* Without room to remember it, it is asked for again. */
static void refuse(struct record_waiting *w, int32_t tid)
{
	uint32_t *known;
	int fresh = 0;

	if (!hashmap_entry(&w->refused, (uint32_t)tid, 0, &known, &fresh))
		w->stats.refused += fresh;
}

static void read_all(struct record_waiting *w, const struct waiting_question *questions, size_t n)
{
	struct waiting_answer answers[BATCH] = {0};
	bool refused[BATCH];

	for (size_t i = 0; i < n; i++) {
		struct waiting_answer *a = &answers[i];

		a->question = questions[i];
		a->since_ns = clock_monotonic_ns();
		int r = waiting_read(w->proc, a->question.tid, w->buffer, a->question.bytes, &a->found);

		refused[i] = r == -EPERM || r == -EACCES;
		if (!r && (a->stack = malloc(a->found.bytes)))
			memcpy(a->stack, w->buffer, a->found.bytes);
	}
	pthread_mutex_lock(&w->lock);
	w->stats.asked += n;
	for (size_t i = 0; i < n; i++) {
		if (refused[i])
			refuse(w, questions[i].tid);
		if (!answers[i].stack)
			continue;
		if (vec_push(&w->answers, answers[i])) {
			free(answers[i].stack);
			continue;
		}
		w->bytes += answers[i].found.bytes;
		w->stats.read++;
	}
	w->stats.cpu_ns = thread_cpu_ns();
	pthread_mutex_unlock(&w->lock);
}

/* Thousands of threads are not to take a CPU from the target. */
static void rest(struct record_waiting *w, uint64_t used_ns)
{
	struct timespec until = clock_timespec(clock_monotonic_ns() + used_ns * RECORD_WAITING_IDLE_TIMES);

	pthread_mutex_lock(&w->lock);
	while (!w->stopping && !pthread_cond_timedwait(&w->wake, &w->lock, &until))
		;
	pthread_mutex_unlock(&w->lock);
}

static void *waiting_main(void *ctx)
{
	struct waiting_question questions[BATCH];
	struct record_waiting *w = ctx;
	size_t n;

	while ((n = next_questions(w, questions))) {
		uint64_t begin_ns = thread_cpu_ns();

		read_all(w, questions, n);
		rest(w, thread_cpu_ns() - begin_ns);
	}
	pthread_mutex_lock(&w->lock);
	w->ended = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	return NULL;
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
	hashmap_free(&w->refused);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w->buffer);
	free(w);
}

int record_waiting_new(const char *proc, struct record_waiting **ret_waiting)
{
	struct record_waiting *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int error;

	if (!w || !(w->buffer = malloc(WAITING_STACK_MAX))) {
		free(w);
		return -ENOMEM;
	}
	w->proc = proc;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	error = pthread_create(&w->thread, NULL, waiting_main, w);
	if (error)
		free_all(w);
	else
		*ret_waiting = w;
	return -error;
}

/* A thread that the kernel holds, as a process's memory does not answer, keeps what is its. */
void record_waiting_free(struct record_waiting *w)
{
	struct timespec until = clock_timespec(clock_monotonic_ns() + RECORD_WAITING_END_NS);
	bool ended;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->wake);
	while (!w->ended)
		if (pthread_cond_timedwait(&w->wake, &w->lock, &until))
			break;
	ended = w->ended;
	pthread_mutex_unlock(&w->lock);
	if (!ended) {
		pthread_detach(w->thread);
		return;
	}
	pthread_join(w->thread, NULL);
	free_all(w);
}

struct record_waiting_stats record_waiting_stats(struct record_waiting *w)
{
	struct record_waiting_stats stats;

	pthread_mutex_lock(&w->lock);
	stats = w->stats;
	pthread_mutex_unlock(&w->lock);
	return stats;
}

bool record_waiting_hopes(const struct record_waiting *w)
{
	return w->unwinding.len > 0;
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
		.abi = PERF_SAMPLE_REGS_ABI_64,
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
	told = r && r != -EAGAIN ? 0 : record_offcpu_seen(offcpu, a->question.tid, a->found.count, ret_unwound);
	return told ? told : r;
}

/* What was read since the last time. */
static int collect(struct record_waiting *w)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->answers.len && !r; i++)
		r = vec_push(&w->unwinding, w->answers.v[i]);
	w->answers.len = r ? w->answers.len : 0;
	if (w->next < w->questions.len)
		pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
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
	pthread_mutex_lock(&w->lock);
	w->bytes -= bytes;
	pthread_mutex_unlock(&w->lock);
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
		if (!r && unwound.edge && a->question.bytes < WAITING_STACK_MAX && a->found.bytes == a->question.bytes)
			r = ask(w, &(struct waiting_question){a->question.pid, a->question.tid, WAITING_STACK_MAX});
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
	/* For the next round: what this one began with is known to offcpu only then. */
	return r ? r : collect(w);
}
