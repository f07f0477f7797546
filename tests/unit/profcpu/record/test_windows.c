/* The control of windows against a simulated target with known records, clocks and counts. */
#include "profcpu/record/windows.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RING 500 /* records */
#define RECORD_NS 5000
#define RATE 60000 /* records a second while events are on */
#define WORK_NS 2000
#define POLL_NS 20000
#define FOLLOW_NS 2000 /* of one thread */

struct play {
	uint64_t now_ns, process_ns;
	bool on;
	double rate;   /* records a second of a thread that is always on a CPU */
	double here;   /* in the ring */
	uint64_t read; /* and since the last call of load */
	uint64_t alarm_ns;
	struct {
		enum offcpu_kind kind;
		uint64_t time_ns;
		bool on; /* whether events were on at that moment */
	} reported[100000];
	size_t nreported, polls, follows;
	double noted;          /* here, when switches were noted */
	bool was_open;         /* the last report came in a window */
	size_t polls_before;   /* polls before it */
	size_t begins_waiting; /* threads whose wait begins in a window; one ends at each follow */
	size_t waiting;
	uint64_t poll_ns; /* cost of a poll */
	bool overran;     /* whether the ring was full */
	uint64_t on_ns;
	int error; /* result of report */
};

static void pass(struct play *p, uint64_t ns)
{
	p->now_ns += ns;
	if (!p->on)
		return;
	p->on_ns += ns;
	p->here += p->rate * (double)ns / 1e9;
	p->overran |= p->here > RING;
	p->here = p->here > RING ? RING : p->here;
}

static void turn(void *ctx, bool on)
{
	struct play *p = ctx;

	pass(p, 20000);
	p->on = on;
	pass(p, 20000);
	p->process_ns += 40000;
}

static struct switch_rings_load load(void *ctx)
{
	struct play *p = ctx;
	struct switch_rings_load load = {
		.records = p->read, .records_cpu = p->read, .unread_cpu = (uint64_t)p->here};

	p->read = 0;
	return load;
}

static uint64_t others(void *ctx)
{
	(void)ctx;
	return 0;
}

static int report(void *ctx, enum offcpu_kind kind, uint64_t time_ns)
{
	struct play *p = ctx;

	assert_true(p->nreported < sizeof(p->reported) / sizeof(p->reported[0]));
	p->was_open = p->nreported && p->reported[p->nreported - 1].kind == OFFCPU_OPEN;
	p->polls_before = p->polls;
	p->reported[p->nreported].kind = kind;
	p->reported[p->nreported].on = p->on;
	p->reported[p->nreported++].time_ns = time_ns;
	return p->error;
}

static int poll_threads(void *ctx, uint64_t time_ns, double *ret_width)
{
	struct play *p = ctx;

	/* The time is that of the last CLOSE or WHOLE. */
	assert_int_equal(time_ns, p->reported[p->nreported - 1].time_ns);
	assert_true(p->reported[p->nreported - 1].kind != OFFCPU_OPEN);
	p->polls++;
	p->process_ns += p->poll_ns;
	pass(p, p->poll_ns);
	*ret_width = 1;
	return 0;
}

static void alarm_at(void *ctx, uint64_t time_ns)
{
	((struct play *)ctx)->alarm_ns = time_ns;
}

static uint64_t now_ns(void *ctx)
{
	return ((struct play *)ctx)->now_ns;
}

static uint64_t process_ns(void *ctx)
{
	return ((struct play *)ctx)->process_ns;
}

static void note_moved(void *ctx)
{
	struct play *p = ctx;

	p->noted = p->here;
}

static int find_waiting(void *ctx, uint64_t time_ns, size_t *ret_waiting)
{
	struct play *p = ctx;

	/* In a window events are still on, and no other thread was polled: waits do not end unseen.
	 */
	assert_true(p->on == p->was_open);
	assert_int_equal(p->polls, p->polls_before);
	assert_true(p->noted >= p->here);
	assert_int_equal(time_ns, p->reported[p->nreported - 1].time_ns);
	p->waiting = p->begins_waiting;
	*ret_waiting = p->waiting;
	return 0;
}

static int follow(void *ctx, uint64_t time_ns, size_t *ret_waiting)
{
	struct play *p = ctx;

	assert_true(p->waiting > 0);
	assert_false(p->on);
	assert_true(time_ns > p->reported[p->nreported - 1].time_ns);
	p->follows++;
	p->process_ns += p->waiting * FOLLOW_NS;
	pass(p, p->waiting * FOLLOW_NS);
	*ret_waiting = --p->waiting;
	return 0;
}

static const struct record_windows_hooks player = {.turn = turn,
						   .load = load,
						   .others = others,
						   .mark = report,
						   .poll = poll_threads,
						   .note_moved = note_moved,
						   .find_waiting = find_waiting,
						   .follow = follow,
						   .alarm = alarm_at,
						   .now_ns = now_ns,
						   .process_ns = process_ns,
						   .thread_ns = process_ns,
						   .work_ns = process_ns};

static void begin(struct play *p, struct record_windows *s, double limit)
{
	const struct throttle_options options = {
		.limit = limit, .record_ns = RECORD_NS, .room_records = RING, .seed = 7};
	struct record_windows_hooks hooks = player;

	*p = (struct play){.now_ns = NS_PER_S, .on = true, .poll_ns = POLL_NS};
	hooks.ctx = p;
	assert_int_equal(record_windows_begin(s, &options, &hooks), 0);
}

/* Runs the loop of a recording. The alarm, a ring that is a quarter full, or a tenth of a second
 * wakes it. late_ns: delay after that. */
static void run(struct play *p, struct record_windows *s, double rate, double seconds,
		uint64_t late_ns)
{
	uint64_t end_ns = p->now_ns + (uint64_t)(seconds * 1e9);

	p->rate = rate;
	while (p->now_ns < end_ns) {
		uint64_t wake_ns = p->now_ns + 100 * NS_PER_MS, full_ns = p->now_ns;

		if (p->alarm_ns && p->alarm_ns < wake_ns)
			wake_ns = p->alarm_ns;
		if (p->on && p->here < RING / 4.0)
			full_ns += (uint64_t)((RING / 4.0 - p->here) / rate * 1e9) + 1;
		if (p->on && full_ns < wake_ns)
			wake_ns = full_ns;
		pass(p, (wake_ns > p->now_ns ? wake_ns - p->now_ns : 1) + late_ns);
		int r = record_windows_turn(s);

		assert_true(r >= 0);
		if (r)
			continue;
		p->noted = -1;
		record_windows_reading(s);
		/* Switches of a window are noted before they are read. */
		if (p->nreported && p->reported[p->nreported - 1].kind == OFFCPU_OPEN)
			assert_true(p->noted >= p->here || s->plan.whole);
		p->read += (uint64_t)p->here;
		p->here -= (double)(uint64_t)p->here;
		p->process_ns += 20000 + p->read * WORK_NS;
		pass(p, 20000 + p->read * WORK_NS);
		assert_int_equal(record_windows_was_read(s), 0);
	}
}

/* CLOSE (one for each poll) and OPEN alternate in order of time. Events are on at an OPEN and off
 * after a CLOSE, or a poll later for the first CLOSE after an OPEN. */
static void check_order(const struct play *p)
{
	bool closed = false;

	for (size_t i = 0; i < p->nreported; i++) {
		assert_true(!i || p->reported[i].time_ns >= p->reported[i - 1].time_ns);
		if (p->reported[i].kind == OFFCPU_CLOSE) {
			assert_true(!p->reported[i].on ||
				    (i && p->reported[i - 1].kind == OFFCPU_OPEN));
			closed = true;
		} else if (p->reported[i].kind == OFFCPU_OPEN) {
			assert_true(closed && p->reported[i].on);
			closed = false;
		} else {
			assert_int_equal(p->reported[i].kind, OFFCPU_WHOLE);
			assert_true(!closed && p->reported[i].on);
		}
	}
}

static void few_switches_are_all_recorded(void **state)
{
	struct play *p = *state;
	struct record_windows s;

	begin(p, &s, 0.05);
	run(p, &s, 1000, 20, 0);
	assert_int_equal(p->nreported, 0);
	assert_int_equal(record_windows_result(&s).windows, 0);
	assert_true(p->on);
}

static void many_are_recorded_in_windows_within_the_limit(void **state)
{
	struct play *p = *state;
	struct record_windows s;
	struct record_windows_result result;

	for (int percent = 2; percent <= 20; percent += 6) {
		begin(p, &s, percent / 100.0);
		run(p, &s, RATE, 2, 0); /* until the controller is stable */
		uint64_t on_ns = p->on_ns, process = p->process_ns;

		run(p, &s, RATE, 20, 0);
		double on_s = (double)(p->on_ns - on_ns) / 1e9, recorded = RATE * RECORD_NS / 1e9,
		       off = RATE * THROTTLE_OFF_NS / 1e9;
		double cost = (recorded * on_s + off / (1 - recorded) * (20 - on_s) +
			       (double)(p->process_ns - process) / 1e9) /
			      20;

		assert_true(cost < percent / 100.0);
		assert_true(cost > 0.6 * percent / 100.0);
		check_order(p);
		assert_false(p->overran);
		/* One poll at each CLOSE. */
		assert_true(p->polls >= p->nreported / 2);
		result = record_windows_result(&s);
		assert_true(result.windows > 300);
		/* The result agrees with what happened. */
		assert_true(result.throttled_ns > 21 * NS_PER_S);
		assert_true(labs((long)(result.throttled_ns - result.closed_ns) - (long)p->on_ns) <
			    (long)(p->on_ns / 5));
	}
}

/* The limit of their cost decides their number. The distance to the previous poll grows. */
static void polls_come_soon_after_windows_and_then_less_often(void **state)
{
	struct play *p = *state;
	struct record_windows s;
	size_t most = 0, n = 0, windows = 0, early = 0, late = 0;
	uint64_t closed_ns = 0;

	begin(p, &s, 0.05);
	run(p, &s, RATE, 5, 0);
	check_order(p);
	for (size_t i = 1; i < p->nreported; i++) {
		uint64_t apart_ns = p->reported[i].time_ns - p->reported[i - 1].time_ns;

		if (p->reported[i].kind == OFFCPU_OPEN) {
			windows++;
			n = 0;
			continue;
		}
		n++;
		most = n > most ? n : most;
		if (n == 2) {
			assert_in_range(apart_ns, RECORD_WINDOWS_FIRST_POLL_NS,
					2 * RECORD_WINDOWS_FIRST_POLL_NS + NS_PER_MS);
			early += apart_ns < RECORD_WINDOWS_FIRST_POLL_NS * 3 / 2;
			late += apart_ns >= RECORD_WINDOWS_FIRST_POLL_NS * 3 / 2;
		}
		if (n == 1)
			closed_ns = p->reported[i].time_ns;
		/* The time since the window doubles. */
		if (n > 2)
			assert_true(apart_ns + NS_PER_MS >= RECORD_WINDOWS_INTERVAL_MAX_NS ||
				    apart_ns + NS_PER_MS >= p->reported[i - 1].time_ns - closed_ns);
	}
	assert_true(windows > 50);
	assert_in_range(most, 6, 20);
	/* Its distance is random. */
	assert_true(early > 10 && late > 10);
	/* Each window is followed by at least one. */
	begin(p, &s, 0.005);
	run(p, &s, RATE, 20, 0);
	double more_ns = ((double)p->polls - (double)record_windows_result(&s).windows) * POLL_NS;

	assert_true(more_ns < 1.3 * 0.005 * RECORD_WINDOWS_POLLS_SHARE * 20e9 &&
		    more_ns > 0.1 * 0.005 * RECORD_WINDOWS_POLLS_SHARE * 20e9);
	check_order(p);
}

static void sampled_waits_are_followed_when_polls_of_all_threads_are_dear(void **state)
{
	struct play *p = *state;
	struct record_windows s;
	double seconds = 20, limit = 0.05;

	begin(p, &s, limit);
	p->begins_waiting = 4;
	run(p, &s, RATE, seconds, 0);
	size_t windows = record_windows_result(&s).windows, cheap = p->follows;

	begin(p, &s, limit);
	p->begins_waiting = 4;
	p->poll_ns = 300 * 1000;
	run(p, &s, RATE, seconds, 0);
	/* At most two polls of all threads for a window, but all waits are followed to their end.
	 */
	assert_true(p->polls < 2 * record_windows_result(&s).windows + 2);
	assert_true(p->follows > 3 * record_windows_result(&s).windows);
	/* Else polls of all threads are enough. */
	assert_true(windows > 100 && cheap < windows);
	/* They keep to the budget, however many threads wait. */
	begin(p, &s, limit);
	p->begins_waiting = 10000;
	p->poll_ns = 300 * 1000;
	run(p, &s, RATE, seconds, 0);
	assert_in_range(p->follows, 1, 2);
	check_order(p);
}

static void after_a_storm_all_switches_are_recorded_again(void **state)
{
	struct play *p = *state;
	struct record_windows s;

	begin(p, &s, 0.05);
	run(p, &s, RATE, 3, 0);
	run(p, &s, 300, 4, 0);
	assert_int_equal(p->reported[p->nreported - 1].kind, OFFCPU_WHOLE);
	assert_true(p->on);
	/* It came with a poll and after a window. */
	assert_int_equal(p->reported[p->nreported - 2].kind, OFFCPU_OPEN);
	assert_true(p->reported[p->nreported - 1].time_ns - p->reported[p->nreported - 2].time_ns >=
		    RECORD_WINDOWS_LAST_NS);
	check_order(p);
	size_t before = p->nreported;

	run(p, &s, 300, 10, 0);
	assert_int_equal(p->nreported, before);
	/* Many switches bring windows back. */
	run(p, &s, RATE, 1, 0);
	assert_true(p->nreported > before);
	check_order(p);
}

/* We get a CPU so late that the ring overflows. */
static void windows_continue_when_reading_is_late(void **state)
{
	struct play *p = *state;
	struct record_windows s;

	begin(p, &s, 0.05);
	run(p, &s, RATE, 3, 20 * NS_PER_MS);
	assert_true(p->overran);
	assert_true(record_windows_result(&s).windows > 10);
	check_order(p);
}

static void errors_are_returned(void **state)
{
	struct play *p = *state;
	struct record_windows s;
	int r = 0;

	begin(p, &s, 0.05);
	p->error = -12;
	p->rate = RATE;
	for (int i = 0; i < 100 && !r; i++) {
		pass(p, 5 * NS_PER_MS);
		r = record_windows_turn(&s);
		p->read += (uint64_t)p->here;
		p->here = 0;
		if (!r)
			r = record_windows_was_read(&s);
	}
	assert_int_equal(r, -12);
}

static int new_play(void **state)
{
	*state = calloc(1, sizeof(struct play));
	return *state ? 0 : -1;
}

static int free_play(void **state)
{
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_switches_are_all_recorded, new_play, free_play),
		cmocka_unit_test_setup_teardown(many_are_recorded_in_windows_within_the_limit,
						new_play, free_play),
		cmocka_unit_test_setup_teardown(polls_come_soon_after_windows_and_then_less_often,
						new_play, free_play),
		cmocka_unit_test_setup_teardown(
			sampled_waits_are_followed_when_polls_of_all_threads_are_dear, new_play,
			free_play),
		cmocka_unit_test_setup_teardown(after_a_storm_all_switches_are_recorded_again,
						new_play, free_play),
		cmocka_unit_test_setup_teardown(windows_continue_when_reading_is_late, new_play,
						free_play),
		cmocka_unit_test_setup_teardown(errors_are_returned, new_play, free_play),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
