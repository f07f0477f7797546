/* Waits while events are off most of the time: what is estimated is held against what the simulated threads did. */
#include "sampler/offcpu.h"
#include "sampler/shed.h"

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
#define ANSWERS 16
#define US UINT64_C(1000)
#define MS NS_PER_MS
#define BEGIN_NS (100 * NS_PER_S)

/* A thread runs and waits in turn. Which wait comes next, and how long, its kind tells. */
struct sim_thread {
	uint64_t now_ns; /* it is about to leave its CPU */
	uint64_t out_ns, woken_ns, in_ns; /* its present wait, and the time that it gets its CPU */
	uint32_t stack;
	bool preempted;
	unsigned n;
	struct schedstat stat; /* up to now_ns */
	uint64_t met_count, met_ns; /* since when a look has found it in this wait */
	bool asked;
};

/* A stack that was read from outside. */
struct sim_answer {
	uint64_t due_ns, count;
	pid_t tid;
	uint32_t stack;
};

struct sim {
	struct offcpu *o;
	struct sim_thread threads[THREADS];
	size_t nthreads;
	void (*next)(struct sim *sim, size_t thread); /* fills out_ns to preempted */
	uint64_t random;
	bool open, wakings, answers;
	uint64_t tick_ns; /* 0: none */
	struct sim_answer come[ANSWERS]; /* from next_answer on; it is told answer_ns after it was read */
	size_t nanswers, next_answer;
	uint64_t answer_ns;
	uint64_t switches;
	/* What they did */
	uint64_t blocked[THREADS][STACKS], runnable[THREADS][STACKS], ran[THREADS];
	/* What came out */
	uint64_t got_blocked[THREADS][STACKS + 1], got_runnable[THREADS][STACKS + 1];
	struct offcpu_totals totals[THREADS];
	size_t wrong_waker;
};

static double chance(struct sim *sim)
{
	sim->random = sim->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(sim->random >> 11) / 9007199254740992.0;
}

static uint64_t around(struct sim *sim, uint64_t mean)
{
	return (uint64_t)(-log(1 - chance(sim)) * (double)mean) + 1;
}

static int take_interval(void *ctx, const struct offcpu_interval *i)
{
	struct sim *sim = ctx;
	uint32_t stack = i->stack == OFFCPU_NO_STACK ? STACKS : i->stack;

	sim->got_blocked[i->tid][stack] += i->blocked_ns;
	sim->got_runnable[i->tid][stack] += i->runnable_ns;
	/* Whoever wakes from a stack has its number and 100. */
	sim->wrong_waker += i->waker && i->stack != OFFCPU_NO_STACK && (i->waker != (pid_t)(stack + 100) || i->waker_stack != stack + 100);
	return 0;
}

/* Who stays in a wait is read from outside, at once and once. */
static void meet(struct sim *sim, size_t i, uint64_t time_ns)
{
	struct sim_thread *t = &sim->threads[i];

	if (!t->met_ns || t->met_count != t->stat.count) {
		t->met_count = t->stat.count;
		t->met_ns = time_ns;
		t->asked = false;
	}
	if (!sim->answers || t->asked || !t->in_ns || time_ns - t->met_ns < OFFCPU_STAY_NS || !offcpu_wants(sim->o, (pid_t)i, t->met_count))
		return;
	assert_true(sim->nanswers - sim->next_answer < ANSWERS);
	sim->come[sim->nanswers++ % ANSWERS] = (struct sim_answer){time_ns + sim->answer_ns, t->met_count, (pid_t)i, t->stack};
	t->asked = true;
}

static void tell_answers(struct sim *sim, uint64_t now_ns)
{
	for (; sim->next_answer < sim->nanswers && sim->come[sim->next_answer % ANSWERS].due_ns <= now_ns; sim->next_answer++) {
		const struct sim_answer *a = &sim->come[sim->next_answer % ANSWERS];

		assert_int_equal(offcpu_seen(sim->o, a->tid, a->count, a->stack), 0);
	}
}

static int take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t)
{
	((struct sim *)ctx)->totals[tid] = *t;
	assert_int_equal(t->running_ns + t->blocked_ns + t->runnable_ns + t->unknown_ns, t->end_ns - t->begin_ns);
	return 0;
}

static void tell(struct sim *sim, enum offcpu_kind kind, uint64_t time_ns, size_t tid, uint32_t stack, bool preempted)
{
	const struct offcpu_event e = {.time_ns = time_ns,
				       .tid = (pid_t)tid,
				       .by = (pid_t)stack,
				       .stack = stack,
				       .kind = (uint8_t)kind,
				       .flags = preempted ? OFFCPU_PREEMPTED : 0};

	assert_int_equal(offcpu_add(sim->o, &e), 0);
}

/* One thread up to until_ns, with what is told of it. */
static void advance(struct sim *sim, size_t i, uint64_t until_ns)
{
	struct sim_thread *t = &sim->threads[i];

	for (;;) {
		if (!t->in_ns) { /* it runs, until out_ns */
			if (t->out_ns >= until_ns)
				return;
			t->stat.run_ns += t->out_ns - t->now_ns;
			sim->ran[i] += t->out_ns - t->now_ns;
			t->now_ns = t->out_ns;
			t->in_ns = t->woken_ns + around(sim, 20 * US);
			if (sim->open)
				tell(sim, OFFCPU_OUT, t->out_ns, i, t->stack, t->preempted);
			sim->switches++;
		}
		if (!t->preempted && t->woken_ns > t->now_ns && t->woken_ns < until_ns) {
			sim->blocked[i][t->stack] += t->woken_ns - t->now_ns;
			t->now_ns = t->woken_ns;
			if (sim->open && sim->wakings)
				tell(sim, OFFCPU_WAKING, t->woken_ns, i, t->stack + 100, false);
		}
		if (t->in_ns >= until_ns)
			return;
		sim->runnable[i][t->stack] += t->in_ns - t->now_ns;
		t->stat.wait_ns += t->in_ns - (t->preempted ? t->out_ns : t->woken_ns);
		t->stat.count++;
		t->now_ns = t->in_ns;
		if (sim->open)
			tell(sim, OFFCPU_IN, t->in_ns, i, 0, false);
		t->in_ns = 0;
		t->preempted = false;
		sim->next(sim, i);
	}
}

/* As the kernel: a thread that runs is up to date, or up to its CPU's last tick, a wait for a CPU comes with its end. */
static void look(struct sim *sim, uint64_t time_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++) {
		struct sim_thread *t = &sim->threads[i];
		struct schedstat s = t->stat;

		if (!t->in_ns)
			s.run_ns += sim->tick_ns ? (time_ns - t->now_ns) / sim->tick_ns * sim->tick_ns : time_ns - t->now_ns;
		meet(sim, i, time_ns);
		assert_int_equal(offcpu_look(sim->o, (pid_t)i, time_ns, &s), 0);
	}
}

static void advance_only(struct sim *sim, uint64_t until_ns)
{
	for (size_t i = 0; i < sim->nthreads; i++)
		advance(sim, i, until_ns);
}

static void advance_all(struct sim *sim, uint64_t until_ns)
{
	advance_only(sim, until_ns);
	assert_int_equal(offcpu_round(sim->o), 0);
	tell_answers(sim, until_ns);
}

/* The time at the end that is not over yet. */
static void end_truth(struct sim *sim, uint64_t end_ns)
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

static void sim_begin(struct sim *sim, size_t nthreads, void (*next)(struct sim *sim, size_t thread))
{
	const struct offcpu_listener listener = {sim, take_interval, NULL, take_thread};

	*sim = (struct sim){.nthreads = nthreads, .next = next, .random = 4711, .open = true, .wakings = true, .answers = true};
	assert_int_equal(offcpu_new(BEGIN_NS, 0, &listener, &sim->o), 0);
	for (size_t i = 0; i < nthreads; i++) {
		sim->threads[i].now_ns = BEGIN_NS;
		tell(sim, OFFCPU_BEGIN, BEGIN_NS, i, 0, false);
		next(sim, i);
	}
	look(sim, BEGIN_NS);
}

static void set_open(struct sim *sim, uint64_t at_ns, bool open)
{
	sim->open = open;
	tell(sim, open ? OFFCPU_OPEN : OFFCPU_CLOSE, at_ns, 0, 0, false);
	if (!open)
		look(sim, at_ns);
}

static void sim_end(struct sim *sim, uint64_t end_ns)
{
	look(sim, end_ns);
	end_truth(sim, end_ns);
	assert_int_equal(offcpu_finish(sim->o, end_ns), 0);
	assert_int_equal(sim->wrong_waker, 0);
}

/* Windows of open_ns, one in `cycle_ns` on average, up to end_ns; looks in between every look_ns. */
static void run_windows_looking(struct sim *sim, uint64_t now, uint64_t end_ns, uint64_t open_ns, uint64_t cycle_ns, uint64_t look_ns)
{
	while (now < end_ns) {
		uint64_t until = now + (uint64_t)((double)(cycle_ns - open_ns) * (0.5 + chance(sim)));

		do {
			set_open(sim, now, false);
			now = until - now < 2 * look_ns ? until : now + look_ns;
			advance_all(sim, now);
		} while (now < until);
		set_open(sim, now, true);
		now += open_ns;
		advance_all(sim, now);
	}
	sim_end(sim, now);
}

static void run_windows(struct sim *sim, uint64_t now, uint64_t end_ns, uint64_t open_ns, uint64_t cycle_ns)
{
	run_windows_looking(sim, now, end_ns, open_ns, cycle_ns, cycle_ns);
}

static uint64_t sum(const uint64_t *v)
{
	uint64_t all = 0;

	for (size_t i = 0; i < STACKS; i++)
		all += v[i];
	return all;
}

/* Of each stack within `points` of 100 of the thread's time off its CPU; sums exact to what the kernel's own are. */
static void assert_shares(const struct sim *sim, size_t i, double points)
{
	uint64_t off = sum(sim->blocked[i]) + sum(sim->runnable[i]);
	const struct offcpu_totals *t = &sim->totals[i];

	for (size_t s = 0; s < STACKS; s++) {
		double real = (double)(sim->blocked[i][s] + sim->runnable[i][s]) / (double)off * 100;
		double got = (double)(sim->got_blocked[i][s] + sim->got_runnable[i][s]) / (double)off * 100;

		if (fabs(real - got) > points)
			fail_msg("thread %zu, stack %zu: %.2f %% are %.2f %%", i, s, got, real);
	}
	assert_true(llabs((long long)(t->blocked_ns + t->runnable_ns - off)) < (long long)MS);
	assert_true(llabs((long long)(t->running_ns - sim->ran[i])) < (long long)MS);
	assert_true(llabs((long long)(t->runnable_ns - sum(sim->runnable[i]))) < (long long)MS);
	assert_int_equal(t->unknown_ns, 0);
}

/* Four stacks of known shares in a fixed order, at 50000 switches a second, as a pipe between two does it. */
static void ping_pong(struct sim *sim, size_t i)
{
	static const uint32_t order[10] = {0, 1, 0, 2, 0, 1, 0, 2, 1, 3};
	struct sim_thread *t = &sim->threads[i];

	t->stack = order[t->n++ % 10];
	t->out_ns = t->now_ns + 5 * US + around(sim, 4 * US);
	t->woken_ns = t->out_ns + 4 * US + around(sim, 4 * US);
}

static void a_storm_keeps_its_shares(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 10 * NS_PER_S, 1 * MS, 25 * MS);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.0);
	assert_int_equal(sim.totals[0].no_stack_ns, 0);
	offcpu_free(sim.o);
}

/* Short waits in a hot loop, longer ones and long ones: each kind is met by its own odds. */
static void mixed(struct sim *sim, size_t i)
{
	static const uint64_t means[4] = {50 * US, 3 * MS, 60 * MS, 900 * MS};
	static const double odds[4] = {0.955, 0.04, 0.004, 0.001};
	struct sim_thread *t = &sim->threads[i];
	double x = chance(sim);

	for (t->stack = 0; t->stack < 3 && x > odds[t->stack]; t->stack++)
		x -= odds[t->stack];
	t->out_ns = t->now_ns + around(sim, 40 * US);
	t->woken_ns = t->out_ns + around(sim, means[t->stack]);
}

static void waits_of_all_lengths_keep_their_shares(void **state)
{
	struct sim sim;
	double real[STACKS] = {0}, got[STACKS + 1] = {0}, all = 0;

	(void)state;
	sim_begin(&sim, THREADS, mixed);
	run_windows_looking(&sim, BEGIN_NS, BEGIN_NS + 200 * NS_PER_S, 5 * MS, 100 * MS, 10 * MS);
	for (size_t i = 0; i < THREADS; i++) {
		assert_shares(&sim, i, 15.0); /* of one thread few of the long ones are seen */
		for (size_t s = 0; s < STACKS; s++) {
			real[s] += (double)(sim.blocked[i][s] + sim.runnable[i][s]);
			got[s] += (double)(sim.got_blocked[i][s] + sim.got_runnable[i][s]);
		}
		all += (double)(sum(sim.blocked[i]) + sum(sim.runnable[i]));
	}
	for (size_t s = 0; s < STACKS; s++)
		if (fabs(real[s] - got[s]) / all > 0.03)
			fail_msg("stack %zu: %.2f %% are %.2f %%", s, 100 * got[s] / all, 100 * real[s] / all);
	offcpu_free(sim.o);
}

/* Waits that are longer than a window and not longer than two looks are apart are the hardest. */
static void two_lengths(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = t->n++ % 2;
	t->out_ns = t->now_ns + around(sim, 100 * US);
	t->woken_ns = t->out_ns + (t->stack ? 150 * MS : 50 * MS);
}

static void waits_as_long_as_a_cycle_keep_their_shares(void **state)
{
	struct sim sim;
	double got[2] = {0};

	(void)state;
	sim_begin(&sim, THREADS, two_lengths);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 200 * NS_PER_S, 5 * MS, 100 * MS);
	for (size_t i = 0; i < THREADS; i++)
		for (size_t s = 0; s < 2; s++)
			got[s] += (double)(sim.got_blocked[i][s] + sim.got_runnable[i][s]);
	assert_true(fabs(got[1] / (got[0] + got[1]) - 0.75) < 0.05);
	offcpu_free(sim.o);
}

/* Waits longer than a window, many of them between two; or longer than the time between two. */
static void some_milliseconds(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];
	uint64_t ms = i % 2 ? 100 : 1;

	t->stack = t->n++ % 2;
	t->out_ns = t->now_ns + around(sim, 20 * US);
	t->woken_ns = t->out_ns + (t->stack ? 3 * ms : ms) * MS;
}

/* As record_shed does it: soon behind a window, and then ever less often. Without these looks the short ones would be far too long. */
static void thin_out_looks(bool rounds, uint64_t answer_ns)
{
	struct sim sim;
	uint64_t now = BEGIN_NS, end_ns = BEGIN_NS + 200 * NS_PER_S;

	sim_begin(&sim, 2, some_milliseconds);
	sim.answer_ns = answer_ns;
	while (now < end_ns) {
		uint64_t until = now + (uint64_t)(39 * (double)MS * (0.5 + chance(&sim)));

		for (uint64_t apart = MS / 4; now < until; apart = apart < 16 * MS ? 2 * apart : apart) {
			set_open(&sim, now, false);
			now = until - now < apart ? until : now + apart;
			if (rounds)
				advance_all(&sim, now);
			else
				advance_only(&sim, now);
		}
		set_open(&sim, now, true);
		advance_all(&sim, now += 8 * MS / 10);
	}
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 2.0);
	offcpu_free(sim.o);
}

static void looks_that_thin_out_make_no_wait_longer_or_shorter(void **state)
{
	(void)state;
	thin_out_looks(true, 0);
}

/* Rings are read once for each window; by then, and by the time the answer is there, the wait is over. */
static void stacks_that_come_late_are_of_the_waits_that_they_were_read_in(void **state)
{
	(void)state;
	thin_out_looks(false, 200 * MS);
}

/* Sleeps for ever, or longer than the recording; or only runs. */
static void never(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = (uint32_t)i;
	t->out_ns = i == 1 ? UINT64_MAX / 2 : t->now_ns + 500 * MS;
	t->woken_ns = t->out_ns + 1000 * NS_PER_S;
}

static void who_never_switches_is_known_all_the_same(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, never);
	advance_all(&sim, BEGIN_NS + 900 * MS);
	run_windows(&sim, BEGIN_NS + 900 * MS, BEGIN_NS + 10 * NS_PER_S, 5 * MS, 100 * MS);
	/* Seen to begin while all was recorded. */
	assert_shares(&sim, 0, 0.1);
	assert_int_equal(sim.totals[1].running_ns, sim.totals[1].end_ns - BEGIN_NS);
	offcpu_free(sim.o);
}

static void without_wakings_the_sums_still_are_right(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	sim.wakings = false;
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 10 * NS_PER_S, 1 * MS, 25 * MS);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.5);
	offcpu_free(sim.o);
}

/* Half of its waits are none of its own will. */
static void preempted(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = t->n++ % 2;
	t->preempted = t->stack;
	t->out_ns = t->now_ns + around(sim, 100 * US);
	t->woken_ns = t->out_ns + (t->preempted ? 0 : around(sim, 300 * US));
}

static void waiting_for_a_cpu_is_told_from_being_blocked(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 2, preempted);
	run_windows(&sim, BEGIN_NS, BEGIN_NS + 20 * NS_PER_S, 5 * MS, 50 * MS);
	for (size_t i = 0; i < 2; i++) {
		double off = (double)(sum(sim.blocked[i]) + sum(sim.runnable[i]));

		assert_shares(&sim, i, 1.5);
		for (size_t s = 0; s < 2; s++)
			assert_true(fabs((double)sim.got_runnable[i][s] - (double)sim.runnable[i][s]) / off < 0.015);
	}
	assert_int_equal(sim.got_blocked[0][1], 0);
	offcpu_free(sim.o);
}

/* Its last look fails, as those of its process do that is being killed, or there are too many threads. */
static void who_is_not_looked_at_any_more_is_unknown_from_there(void **state)
{
	struct sim sim;
	uint64_t now = BEGIN_NS + NS_PER_S;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	advance_all(&sim, now);
	for (int i = 0; i < 100; i++) {
		set_open(&sim, now, false);
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, true);
		advance_all(&sim, now += 1 * MS);
		if (i == 79)
			sim.nthreads = 1;
	}
	sim_end(&sim, now);
	assert_shares(&sim, 0, 1.5);
	/* The look at the CLOSE before was the last one at the other. */
	assert_in_range(sim.totals[1].unknown_ns, 21 * 25 * MS - MS, 21 * 25 * MS + MS);
	assert_true(sim.totals[1].unwatched_ns == sim.totals[1].unknown_ns);
	offcpu_free(sim.o);
}

/* Whole, in windows, whole again: nothing is lost at the seams. late_ns: so long after them a thread is looked at. */
/* And then all is exact again. */
static uint64_t second_of_windows(struct sim *sim, uint64_t now)
{
	for (int i = 0; i < 40; i++) {
		set_open(sim, now, false);
		advance_all(sim, now += 24 * MS);
		set_open(sim, now, true);
		advance_all(sim, now += 1 * MS);
	}
	tell(sim, OFFCPU_WHOLE, now, 0, 0, false);
	return now;
}

static void join_times(uint64_t late_ns)
{
	struct sim sim;
	uint64_t now = BEGIN_NS + 2 * NS_PER_S;

	sim_begin(&sim, 2, ping_pong);
	for (int round = 0; round < 3; round++) {
		for (uint64_t to = now + NS_PER_S; now < to;)
			advance_all(&sim, now += 10 * MS);
		now = second_of_windows(&sim, now);
		for (uint64_t to = now + late_ns; now < to;)
			advance_all(&sim, now += 10 * MS);
		/* At the end the last look has to do. */
		if (!late_ns || round < 2)
			look(&sim, now);
	}
	advance_all(&sim, now += NS_PER_S);
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++) {
		assert_shares(&sim, i, 1.0);
		assert_in_range(sim.totals[i].estimated_ns, 2 * NS_PER_S, 3 * NS_PER_S);
	}
	assert_int_equal(offcpu_counts(sim.o)->late, 0);
	offcpu_free(sim.o);
}

static void times_with_and_without_windows_join(void **state)
{
	(void)state;
	join_times(0);
}

static void looks_may_come_late_behind_windows(void **state)
{
	(void)state;
	join_times(300 * MS);
}

/* Sleeps through the windows, and runs from shortly before it is looked at; then it sleeps and runs in turn. */
static void sleeps_through(struct sim *sim, size_t i)
{
	struct sim_thread *t = &sim->threads[i];

	t->stack = 0;
	t->out_ns = t->now_ns + (t->n ? 30 * MS : MS);
	t->woken_ns = t->n++ ? t->out_ns + 70 * MS : BEGIN_NS + 2290 * MS;
}

static void who_runs_at_its_late_look_did_not_run_before(void **state)
{
	uint64_t now = BEGIN_NS;
	struct sim sim;

	(void)state;
	sim_begin(&sim, 1, sleeps_through);
	sim.tick_ns = 4 * MS;
	for (int i = 0; i < 100; i++)
		advance_all(&sim, now += 10 * MS);
	for (int part = 0; part < 2; part++) {
		now = second_of_windows(&sim, now);
		for (int i = 0; i < 30; i++)
			advance_all(&sim, now += 10 * MS);
		look(&sim, now);
	}
	advance_all(&sim, now += NS_PER_S);
	sim_end(&sim, now);
	assert_in_range(sim.totals[0].running_ns, sim.ran[0] - 30 * MS, sim.ran[0] + 30 * MS);
	assert_in_range(sim.totals[0].runnable_ns, 0, 30 * MS);
	offcpu_free(sim.o);
}

/* It sleeps through windows and through a loss soon behind them. */
static void a_sleeper_is_known_behind_windows_whatever_is_lost(void **state)
{
	struct offcpu_event lost = {.kind = OFFCPU_LOST};
	struct sim sim;
	uint64_t now = BEGIN_NS + NS_PER_S;

	(void)state;
	sim_begin(&sim, 2, never);
	for (int i = 0; i < 10; i++) {
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, false);
		advance_all(&sim, now += 24 * MS);
		set_open(&sim, now, true);
	}
	advance_all(&sim, now += MS);
	tell(&sim, OFFCPU_WHOLE, now, 0, 0, false);
	look(&sim, now);
	advance_all(&sim, now += 10 * MS);
	lost.time_ns = now;
	lost.until_ns = now += MS;
	assert_int_equal(offcpu_add(sim.o, &lost), 0);
	for (int i = 0; i < 100; i++) {
		advance_all(&sim, now += 50 * MS);
		look(&sim, now);
	}
	sim_end(&sim, now += MS);
	assert_int_equal(sim.totals[0].unknown_ns, 0);
	offcpu_free(sim.o);
}

static void tell_us(struct sim *sim, enum offcpu_kind kind, uint64_t us, uint32_t stack)
{
	tell(sim, kind, BEGIN_NS + us * US, 0, stack, false);
}

static void look_us(struct sim *sim, uint64_t us, uint64_t run_us, uint64_t count)
{
	assert_int_equal(offcpu_look(sim->o, 0, BEGIN_NS + us * US, &(struct schedstat){run_us * US, 0, count}), 0);
}

/* A wait of 200 us in a window, and one of 350 on the way from it to the next, in which the thread runs up to a loss. */
static void what_ran_before_a_loss_in_a_window_did_not_wait(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 1, never);
	tell_us(&sim, OFFCPU_CLOSE, 1000, 0);
	look_us(&sim, 1000, 1000, 0);
	tell_us(&sim, OFFCPU_OPEN, 2000, 0);
	tell_us(&sim, OFFCPU_OUT, 2200, 2);
	tell_us(&sim, OFFCPU_IN, 2400, 0);
	tell_us(&sim, OFFCPU_OUT, 2900, 1);
	tell_us(&sim, OFFCPU_CLOSE, 3000, 0);
	look_us(&sim, 3000, 2700, 1);
	/* In at 3500, out at 3900, both unseen. */
	tell_us(&sim, OFFCPU_OPEN, 4000, 0);
	tell_us(&sim, OFFCPU_IN, 4100, 0);
	tell_us(&sim, OFFCPU_LOST, 4900, 0);
	tell_us(&sim, OFFCPU_CLOSE, 5000, 0);
	look_us(&sim, 5000, 4000, 3);
	assert_int_equal(offcpu_finish(sim.o, BEGIN_NS + 5000 * US), 0);
	assert_int_equal(sim.totals[0].running_ns, 4000 * US);
	assert_in_range(sim.got_blocked[0][1] + sim.got_runnable[0][1], 636 * US, 637 * US); /* 350 of 550, of 1000 us */
	offcpu_free(sim.o);
}

/* It goes to sleep and wakes up while events are off, and is read in between. What lies at both ends of that sleep is of it too. */
static void a_wait_of_which_no_window_saw_an_end_has_its_stack(void **state)
{
	struct sim sim;

	(void)state;
	sim_begin(&sim, 1, never);
	tell_us(&sim, OFFCPU_CLOSE, 1000, 0);
	look_us(&sim, 1000, 1000, 0);
	for (uint64_t us = 2000; us <= 8000; us += 3000) {
		tell_us(&sim, OFFCPU_CLOSE, us, 0);
		look_us(&sim, us, 1500, 1);
	}
	tell_us(&sim, OFFCPU_CLOSE, 9000, 0);
	look_us(&sim, 9000, 2000, 2);
	tell_us(&sim, OFFCPU_CLOSE, 10000, 0);
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_round(sim.o), 0);
	assert_int_equal(offcpu_seen(sim.o, 0, 1, 3), 0);
	look_us(&sim, 10000, 3000, 2);
	assert_int_equal(offcpu_finish(sim.o, BEGIN_NS + 10000 * US), 0);
	assert_int_equal(sim.totals[0].running_ns, 3000 * US);
	assert_int_equal(sim.totals[0].no_stack_ns, 0);
	assert_int_equal(sim.got_blocked[0][3], 7000 * US);
	offcpu_free(sim.o);
}

/* The controller in the loop: 100000 switches a second, 5 percent. */
static void the_controller_keeps_the_limit_and_the_shares(void **state)
{
	struct sim sim;
	struct shed shed;
	struct shed_plan plan = shed_begin(&shed, &(struct shed_options){.limit = 0.05, .room_records = 240, .rate = 100000});
	uint64_t now = BEGIN_NS, end_ns = BEGIN_NS + 10 * NS_PER_S, seen = 0;

	(void)state;
	sim_begin(&sim, 2, ping_pong);
	assert_false(plan.whole);
	while (now < end_ns) {
		uint64_t before;

		assert_false(plan.whole);
		set_open(&sim, now, false);
		advance_all(&sim, now += plan.closed_ns);
		set_open(&sim, now, true);
		before = sim.switches;
		advance_all(&sim, now += plan.open_ns);
		seen += sim.switches - before;
		plan = shed_next(&shed, &(struct shed_report){.elapsed_ns = plan.closed_ns + plan.open_ns,
							      .open_ns = plan.open_ns,
							      .records = sim.switches - before,
							      .records_cpu = (sim.switches - before) / 2,
							      .work_ns = (sim.switches - before) * 8000,
							      .other_work_ns = (plan.closed_ns + plan.open_ns) / 500});
	}
	sim_end(&sim, now);
	for (size_t i = 0; i < 2; i++)
		assert_shares(&sim, i, 1.5);
	assert_in_range(seen * (SHED_RECORD_NS + 8000), (uint64_t)(0.03 * (double)(now - BEGIN_NS)), (uint64_t)(0.048 * (double)(now - BEGIN_NS)));
	offcpu_free(sim.o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_keeps_its_shares),
		cmocka_unit_test(waits_of_all_lengths_keep_their_shares),
		cmocka_unit_test(waits_as_long_as_a_cycle_keep_their_shares),
		cmocka_unit_test(looks_that_thin_out_make_no_wait_longer_or_shorter),
		cmocka_unit_test(stacks_that_come_late_are_of_the_waits_that_they_were_read_in),
		cmocka_unit_test(who_never_switches_is_known_all_the_same),
		cmocka_unit_test(without_wakings_the_sums_still_are_right),
		cmocka_unit_test(waiting_for_a_cpu_is_told_from_being_blocked),
		cmocka_unit_test(who_is_not_looked_at_any_more_is_unknown_from_there),
		cmocka_unit_test(times_with_and_without_windows_join),
		cmocka_unit_test(looks_may_come_late_behind_windows),
		cmocka_unit_test(who_runs_at_its_late_look_did_not_run_before),
		cmocka_unit_test(a_sleeper_is_known_behind_windows_whatever_is_lost),
		cmocka_unit_test(what_ran_before_a_loss_in_a_window_did_not_wait),
		cmocka_unit_test(a_wait_of_which_no_window_saw_an_end_has_its_stack),
		cmocka_unit_test(the_controller_keeps_the_limit_and_the_shares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
