/* Simulated threads that run and wait, for tests of estimated waits: their events, counters and
 * true times. */
#ifndef OFFCPU_SIM_H
#define OFFCPU_SIM_H

#include "sampler/offcpu/offcpu.h"
#include "sampler/offcpu/throttle.h"

#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define STACKS 8
#define THREADS 6
#define REPLIES 16
#define US UINT64_C(1000)
#define MS NS_PER_MS
#define BEGIN_NS (100 * NS_PER_S)

/* A thread that runs and waits in turn. `next` decides its next wait and the wait's length. */
struct sim_thread {
	uint64_t now_ns; /* end of its time on a CPU */
	uint64_t out_ns, woken_ns,
		in_ns; /* its present wait, and the time at which it gets its CPU */
	uint32_t stack;
	bool preempted;
	unsigned n;
	struct schedstat stat;            /* state at now_ns */
	uint64_t polled_count, polled_ns; /* first poll that found it in this wait */
	bool requested;
};

/* A stack that was read from outside. */
struct sim_reply {
	uint64_t due_ns, count;
	pid_t tid;
	uint32_t stack;
};

struct sim {
	struct offcpu *o;
	struct sim_thread threads[THREADS];
	size_t nthreads;
	void (*next)(struct sim *sim, size_t thread); /* sets out_ns to preempted */
	uint64_t random;
	bool open, wakings, reads_blocked;
	uint64_t tick_ns; /* 0: no ticks */
	struct sim_reply
		replies[REPLIES]; /* from next_reply on; each arrives reply_ns after it was read */
	size_t nreplies, next_reply;
	uint64_t reply_ns;
	uint64_t switches;
	/* True times */
	uint64_t blocked[THREADS][STACKS], runnable[THREADS][STACKS], ran[THREADS];
	/* Estimated times */
	uint64_t got_blocked[THREADS][STACKS + 1], got_runnable[THREADS][STACKS + 1];
	struct offcpu_totals totals[THREADS];
	size_t wrong_waker;
};

static inline double chance(struct sim *sim)
{
	sim->random = sim->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(sim->random >> 11) / 9007199254740992.0;
}

static inline uint64_t around(struct sim *sim, uint64_t mean)
{
	return (uint64_t)(-log(1 - chance(sim)) * (double)mean) + 1;
}

static inline int take_interval(void *ctx, const struct offcpu_interval *i)
{
	struct sim *sim = ctx;
	uint32_t stack = i->stack == OFFCPU_NO_STACK ? STACKS : i->stack;

	sim->got_blocked[i->tid][stack] += i->blocked_ns;
	sim->got_runnable[i->tid][stack] += i->runnable_ns;
	/* A waker has the number of the woken stack plus 100. */
	sim->wrong_waker += i->waker && i->stack != OFFCPU_NO_STACK &&
			    (i->waker != (pid_t)(stack + 100) || i->waker_stack != stack + 100);
	return 0;
}

/* A thread that stays in a wait is read from outside once, at once. */
static inline void note_poll(struct sim *sim, size_t i, uint64_t time_ns)
{
	struct sim_thread *t = &sim->threads[i];

	if (!t->polled_ns || t->polled_count != t->stat.count) {
		t->polled_count = t->stat.count;
		t->polled_ns = time_ns;
		t->requested = false;
	}
	if (!sim->reads_blocked || t->requested || !t->in_ns ||
	    time_ns - t->polled_ns < OFFCPU_STAY_NS ||
	    !offcpu_wants_stack(sim->o, (pid_t)i, t->polled_count))
		return;
	assert_true(sim->nreplies - sim->next_reply < REPLIES);
	sim->replies[sim->nreplies++ % REPLIES] =
		(struct sim_reply){time_ns + sim->reply_ns, t->polled_count, (pid_t)i, t->stack};
	t->requested = true;
}

static inline void send_replies(struct sim *sim, uint64_t now_ns)
{
	for (; sim->next_reply < sim->nreplies &&
	       sim->replies[sim->next_reply % REPLIES].due_ns <= now_ns;
	     sim->next_reply++) {
		const struct sim_reply *a = &sim->replies[sim->next_reply % REPLIES];

		assert_int_equal(offcpu_add_stack(sim->o, a->tid, a->count, a->stack), 0);
	}
}

static inline int take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	((struct sim *)ctx)->totals[tid] = *t;
	assert_int_equal(t->running_ns + t->blocked_ns + t->runnable_ns + t->unknown_ns,
			 t->end_ns - t->begin_ns);
	return 0;
}

static inline void send_event(struct sim *sim, enum offcpu_kind kind, uint64_t time_ns, size_t tid,
			      uint32_t stack, bool preempted)
{
	const struct offcpu_event e = {.time_ns = time_ns,
				       .tid = (pid_t)tid,
				       .by = (pid_t)stack,
				       .stack = stack,
				       .kind = (uint8_t)kind,
				       .flags = preempted ? OFFCPU_PREEMPTED : 0};

	assert_int_equal(offcpu_add(sim->o, &e), 0);
}

/* Advances one thread to until_ns and reports its events. */
static inline void advance(struct sim *sim, size_t i, uint64_t until_ns)
{
	struct sim_thread *t = &sim->threads[i];

	for (;;) {
		if (!t->in_ns) { /* it runs until out_ns */
			if (t->out_ns >= until_ns)
				return;
			t->stat.run_ns += t->out_ns - t->now_ns;
			sim->ran[i] += t->out_ns - t->now_ns;
			t->now_ns = t->out_ns;
			t->in_ns = t->woken_ns + around(sim, 20 * US);
			if (sim->open)
				send_event(sim, OFFCPU_OUT, t->out_ns, i, t->stack, t->preempted);
			sim->switches++;
		}
		if (!t->preempted && t->woken_ns > t->now_ns && t->woken_ns < until_ns) {
			sim->blocked[i][t->stack] += t->woken_ns - t->now_ns;
			t->now_ns = t->woken_ns;
			if (sim->open && sim->wakings)
				send_event(sim, OFFCPU_WAKING, t->woken_ns, i, t->stack + 100,
					   false);
		}
		if (t->in_ns >= until_ns)
			return;
		sim->runnable[i][t->stack] += t->in_ns - t->now_ns;
		t->stat.wait_ns += t->in_ns - (t->preempted ? t->out_ns : t->woken_ns);
		t->stat.count++;
		t->now_ns = t->in_ns;
		if (sim->open)
			send_event(sim, OFFCPU_IN, t->in_ns, i, 0, false);
		t->in_ns = 0;
		t->preempted = false;
		sim->next(sim, i);
	}
}

/* Updates counters like the kernel: at once or at the last tick while it runs; waits for a CPU at
 * their end. */
static inline void poll_all(struct sim *sim, uint64_t time_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++) {
		struct sim_thread *t = &sim->threads[i];
		struct schedstat s = t->stat;

		if (!t->in_ns)
			s.run_ns += sim->tick_ns
					    ? (time_ns - t->now_ns) / sim->tick_ns * sim->tick_ns
					    : time_ns - t->now_ns;
		note_poll(sim, i, time_ns);
		assert_int_equal(offcpu_add_poll(sim->o, (pid_t)i, time_ns, &s), 0);
	}
}

/* Polls only for waits that began in the last window. */
static inline void follow_all(struct sim *sim, uint64_t time_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++)
		assert_int_equal(
			offcpu_add_follow(sim->o, (pid_t)i, time_ns, &sim->threads[i].stat), 0);
}

static inline void advance_only(struct sim *sim, uint64_t until_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++)
		advance(sim, i, until_ns);
}

static inline void advance_all(struct sim *sim, uint64_t until_ns)
{
	advance_only(sim, until_ns);
	assert_int_equal(offcpu_round(sim->o), 0);
	send_replies(sim, until_ns);
}

/* The unfinished time at the end. */
static inline void end_truth(struct sim *sim, uint64_t end_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++) {
		struct sim_thread *t = &sim->threads[i];
		uint64_t ns = end_ns - t->now_ns;

		if (!t->in_ns)
			sim->ran[i] += ns;
		else if (t->preempted || t->woken_ns <= t->now_ns)
			sim->runnable[i][t->stack] += ns;
		else
			sim->blocked[i][t->stack] += ns;
	}
}

static inline void sim_begin(struct sim *sim, size_t nthreads,
			     void (*next)(struct sim *sim, size_t thread))
{
	const struct offcpu_listener listener = {
		.ctx = sim, .interval = take_interval, .thread = take_thread};

	*sim = (struct sim){.nthreads = nthreads,
			    .next = next,
			    .random = 4711,
			    .open = true,
			    .wakings = true,
			    .reads_blocked = true};
	assert_int_equal(offcpu_new(BEGIN_NS, 0, &listener, &sim->o), 0);
	for (size_t i = 0; i < nthreads; i++) {
		sim->threads[i].now_ns = BEGIN_NS;
		send_event(sim, OFFCPU_BEGIN, BEGIN_NS, i, 0, false);
		next(sim, i);
	}
	poll_all(sim, BEGIN_NS);
}

static inline void set_open(struct sim *sim, uint64_t at_ns, bool open)
{
	sim->open = open;
	send_event(sim, open ? OFFCPU_OPEN : OFFCPU_CLOSE, at_ns, 0, 0, false);
	if (!open)
		poll_all(sim, at_ns);
}

static inline void sim_end(struct sim *sim, uint64_t end_ns)
{
	poll_all(sim, end_ns);
	end_truth(sim, end_ns);
	assert_int_equal(offcpu_finish(sim->o, end_ns), 0);
	assert_int_equal(sim->wrong_waker, 0);
}

/* Windows of open_ns, on average one in `cycle_ns`, up to end_ns. In between a poll every
 * poll_ns. */
static inline void run_windows_polling(struct sim *sim, uint64_t now, uint64_t end_ns,
				       uint64_t open_ns, uint64_t cycle_ns, uint64_t poll_ns)
{
	while (now < end_ns) {
		uint64_t until =
			now + (uint64_t)((double)(cycle_ns - open_ns) * (0.5 + chance(sim)));

		do {
			set_open(sim, now, false);
			now = until - now < 2 * poll_ns ? until : now + poll_ns;
			advance_all(sim, now);
		} while (now < until);
		set_open(sim, now, true);
		now += open_ns;
		advance_all(sim, now);
	}
	sim_end(sim, now);
}

static inline void run_windows(struct sim *sim, uint64_t now, uint64_t end_ns, uint64_t open_ns,
			       uint64_t cycle_ns)
{
	run_windows_polling(sim, now, end_ns, open_ns, cycle_ns, cycle_ns);
}

static inline uint64_t sum(const uint64_t *v)
{
	uint64_t all = 0;

	for (size_t i = 0; i < STACKS; i++)
		all += v[i];
	return all;
}

/* Each stack is within `points` percent of the thread's time off its CPU. Sums equal the kernel's
 * own exactly. */
static inline void assert_shares(const struct sim *sim, size_t i, double points)
{
	uint64_t off = sum(sim->blocked[i]) + sum(sim->runnable[i]);
	const struct offcpu_totals *t = &sim->totals[i];

	for (size_t s = 0; s < STACKS; s++) {
		double real =
			(double)(sim->blocked[i][s] + sim->runnable[i][s]) / (double)off * 100;
		double got = (double)(sim->got_blocked[i][s] + sim->got_runnable[i][s]) /
			     (double)off * 100;

		if (fabs(real - got) > points)
			fail_msg("thread %zu, stack %zu: %.2f %% are %.2f %%", i, s, got, real);
	}
	assert_true(llabs((long long)(t->blocked_ns + t->runnable_ns - off)) < (long long)MS);
	assert_true(llabs((long long)(t->running_ns - sim->ran[i])) < (long long)MS);
	assert_true(llabs((long long)(t->runnable_ns - sum(sim->runnable[i]))) < (long long)MS);
	assert_int_equal(t->unknown_ns, 0);
}

/* Four stacks of known shares in a fixed order at 50000 switches a second, like two threads with a
 * pipe. */
static inline void ping_pong(struct sim *sim, size_t i)
{
	static const uint32_t order[10] = {0, 1, 0, 2, 0, 1, 0, 2, 1, 3};
	struct sim_thread *t = &sim->threads[i];

	t->stack = order[t->n++ % 10];
	t->out_ns = t->now_ns + 5 * US + around(sim, 4 * US);
	t->woken_ns = t->out_ns + 4 * US + around(sim, 4 * US);
}

/* Sleeps for ever or longer than the recording, or only runs. */
static inline void never(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = (uint32_t)i;
	t->out_ns = i == 1 ? UINT64_MAX / 2 : t->now_ns + 500 * MS;
	t->woken_ns = t->out_ns + 1000 * NS_PER_S;
}

#endif
