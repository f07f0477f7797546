#include "profcpu/record/windows.h"

#include "base/clock.h"

#include <math.h>

static void enter_state(struct record_windows *s, enum record_windows_state state, uint64_t due_ns)
{
	s->state = state;
	s->due_ns = due_ns;
	s->hooks.alarm(s->hooks.ctx, due_ns);
}

static void count_open(struct record_windows *s, uint64_t now_ns)
{
	s->report.open_ns += now_ns - s->opened_ns;
	s->opened_ns = now_ns;
}

static void count_records(struct record_windows *s, const struct switch_rings_load *load)
{
	s->report.records += load->records;
	s->report.records_cpu += load->records_cpu;
}

/* Counts the work since before_ns, and returns its cost. */
static uint64_t count_work(struct record_windows *s, uint64_t before_ns)
{
	uint64_t cost_ns = s->hooks.thread_ns(s->hooks.ctx) - before_ns;

	s->report.throttle_work_ns += cost_ns;
	return cost_ns;
}

static void spend(struct record_windows *s, uint64_t cost_ns)
{
	s->credit_ns -= s->credit_ns < cost_ns ? s->credit_ns : cost_ns;
}

static void turn(struct record_windows *s, bool on)
{
	uint64_t before_ns = s->hooks.thread_ns(s->hooks.ctx);

	s->hooks.turn(s->hooks.ctx, on);
	count_work(s, before_ns);
}

static int poll(struct record_windows *s, uint64_t time_ns)
{
	uint64_t before_ns = s->hooks.thread_ns(s->hooks.ctx);
	double width = 0;
	int r = s->hooks.poll(s->hooks.ctx, time_ns, &width);

	s->cost_ns = count_work(s, before_ns);
	if (width > 0)
		s->width = width;
	return r;
}

/* Adds the mark OFFCPU_CLOSE or OFFCPU_WHOLE, and polls threads. */
static int mark_and_poll(struct record_windows *s, enum offcpu_kind kind, uint64_t now_ns)
{
	int r = s->hooks.mark(s->hooks.ctx, kind, now_ns);

	return r ? r : poll(s, now_ns);
}

static bool may_poll_all(const struct record_windows *s)
{
	return s->credit_ns >= s->cost_ns + (s->waiting ? s->reserve_ns : 0);
}

/* Schedules the next poll while the budget lasts, and doubles the interval. */
static void schedule_poll(struct record_windows *s, uint64_t now_ns)
{
	bool may = may_poll_all(s) ||
		   (s->waiting && s->credit_ns && s->credit_ns / s->waiting >= s->follow_ns);

	s->poll_ns = may ? now_ns + s->interval_ns : UINT64_MAX;
	/* The next one doubles the time since the window. */
	s->interval_ns = now_ns + s->interval_ns - s->closed_ns;
	if (s->interval_ns > RECORD_WINDOWS_INTERVAL_MAX_NS)
		s->interval_ns = RECORD_WINDOWS_INTERVAL_MAX_NS;
}

/* Enters a state with events off until due_ns, with polls in between. */
static void enter_closed(struct record_windows *s, enum record_windows_state state, uint64_t due_ns)
{
	enter_state(s, state, due_ns);
	if (s->poll_ns < due_ns)
		s->hooks.alarm(s->hooks.ctx, s->poll_ns);
}

/* Polls the threads in sampled waits. */
static int follow(struct record_windows *s, uint64_t now_ns)
{
	uint64_t before_ns = s->hooks.thread_ns(s->hooks.ctx);
	const size_t n = s->waiting;
	int r = s->hooks.follow(s->hooks.ctx, now_ns, &s->waiting);
	uint64_t cost_ns = count_work(s, before_ns);

	s->follow_ns = n ? cost_ns / n : 0;
	spend(s, cost_ns);
	return r;
}

static void note_moved(struct record_windows *s)
{
	uint64_t before_ns = s->hooks.thread_ns(s->hooks.ctx);

	s->hooks.note_moved(s->hooks.ctx);
	count_work(s, before_ns);
}

/* Marks the end of a window and polls first the threads that began to wait in it. */
static int mark_and_find(struct record_windows *s, uint64_t now_ns)
{
	note_moved(s);
	uint64_t before_ns = s->hooks.thread_ns(s->hooks.ctx);
	int r = s->hooks.mark(s->hooks.ctx, OFFCPU_CLOSE, now_ns);

	if (!r)
		r = s->hooks.find_waiting(s->hooks.ctx, now_ns, &s->waiting);
	count_work(s, before_ns);
	return r;
}

static int poll_again(struct record_windows *s, uint64_t now_ns)
{
	bool all = may_poll_all(s);
	int r = all ? mark_and_poll(s, OFFCPU_CLOSE, now_ns) : follow(s, now_ns);

	if (all)
		spend(s, s->cost_ns);
	schedule_poll(s, now_ns);
	enter_closed(s, s->state, s->due_ns);
	return r;
}

/*
 * Ends a window. Events stay on during the poll, because waits may end before a delayed poll counts
 * them. If polls take long, events stay on only until the sampled waits are polled. They go off
 * first if there was no window: then records of earlier time may be unread.
 */
static int close_window(struct record_windows *s, uint64_t now_ns)
{
	/* Estimate: the next cycle is as long as the last. */
	uint64_t cycle_ns = s->closed_ns && now_ns - s->closed_ns < THROTTLE_CYCLE_MAX_NS
				    ? now_ns - s->closed_ns
				    : THROTTLE_CYCLE_NS;

	bool was_open = s->state == RECORD_WINDOWS_OPEN,
	     poll_first = was_open && s->cost_ns <= (now_ns - s->opened_ns) / RECORD_WINDOWS_QUICK;
	int r = was_open ? mark_and_find(s, now_ns) : 0;

	if (poll_first && !r)
		r = poll(s, now_ns);
	turn(s, false);
	count_open(s, was_open ? s->hooks.now_ns(s->hooks.ctx) : now_ns);
	s->closed_ns = now_ns;
	if (!was_open && !r)
		r = mark_and_find(s, now_ns);
	if (!poll_first && !r)
		r = poll(s, now_ns);
	s->credit_ns = (uint64_t)((double)cycle_ns * s->throttle.options.limit *
				  RECORD_WINDOWS_POLLS_SHARE);
	s->reserve_ns = s->credit_ns / RECORD_WINDOWS_FOLLOW_PART;
	/* The length of the last pause is random. */
	s->interval_ns =
		(uint64_t)((double)RECORD_WINDOWS_FIRST_POLL_NS *
			   exp2((double)(s->plan.closed_ns % RECORD_WINDOWS_FIRST_POLL_NS) /
				(double)RECORD_WINDOWS_FIRST_POLL_NS));
	schedule_poll(s, now_ns);
	/* Read the rings later: they do not fill now, and reading takes longer than short waits. */
	enter_closed(s, RECORD_WINDOWS_READ, now_ns + RECORD_WINDOWS_READ_NS);
	return r;
}

/* Opens a window. Its time begins when events are on for all CPUs. */
static int open_window(struct record_windows *s, enum record_windows_state state, uint64_t open_ns)
{
	turn(s, true);
	s->opened_ns = s->hooks.now_ns(s->hooks.ctx);
	s->windows++;
	enter_state(s, state, s->opened_ns + open_ns);
	return s->hooks.mark(s->hooks.ctx, OFFCPU_OPEN, s->opened_ns);
}

static void report(struct record_windows *s, uint64_t now_ns)
{
	uint64_t process_ns = s->hooks.process_ns(s->hooks.ctx),
		 all_ns = process_ns - s->reported_process_ns;
	struct throttle_report r = s->report;

	r.elapsed_ns = now_ns - s->reported_ns;
	r.other_work_ns = all_ns > r.work_ns + r.throttle_work_ns
				  ? all_ns - r.work_ns - r.throttle_work_ns
				  : 0;
	r.target_ns = (uint64_t)(s->width * (double)r.elapsed_ns);
	s->report = (struct throttle_report){0};
	s->reported_ns = now_ns;
	s->reported_process_ns = process_ns;
	s->plan = throttle_next(&s->throttle, &r);
}

int record_windows_begin(struct record_windows *s, const struct throttle_options *options,
			 const struct record_windows_hooks *hooks)
{
	*s = (struct record_windows){.hooks = *hooks};
	s->reported_ns = s->opened_ns = hooks->now_ns(hooks->ctx);
	s->reported_process_ns = hooks->process_ns(hooks->ctx);
	s->plan = throttle_begin(&s->throttle, options);
	return s->plan.whole ? 0 : close_window(s, s->reported_ns);
}

int record_windows_turn(struct record_windows *s)
{
	uint64_t now_ns = s->hooks.now_ns(s->hooks.ctx);
	struct switch_rings_load load;
	int r;

	if ((s->state == RECORD_WINDOWS_CLOSED || s->state == RECORD_WINDOWS_READ) &&
	    now_ns < s->due_ns) {
		if (now_ns < s->poll_ns)
			return s->state == RECORD_WINDOWS_READ;
		r = poll_again(s, now_ns);
		return r ? r : 1;
	}
	if (s->state == RECORD_WINDOWS_CLOSED) {
		r = open_window(s, RECORD_WINDOWS_OPEN, s->plan.open_ns);
		return r ? r : 1;
	}
	if (s->state != RECORD_WINDOWS_OPEN && s->state != RECORD_WINDOWS_LAST)
		return 0;
	load = s->hooks.load(s->hooks.ctx);
	count_records(s, &load);
	if (now_ns < s->due_ns &&
	    !throttle_enough(&s->throttle, s->report.records_cpu + load.unread_cpu))
		return 0;
	if (s->state == RECORD_WINDOWS_OPEN)
		return close_window(s, now_ns);
	enter_state(s, RECORD_WINDOWS_WHOLE, 0);
	return mark_and_poll(s, OFFCPU_WHOLE, now_ns);
}

void record_windows_reading(struct record_windows *s)
{
	/* The end of the window does not see what was read before. */
	if (s->state == RECORD_WINDOWS_OPEN)
		note_moved(s);
	s->reading_ns = s->hooks.work_ns(s->hooks.ctx);
}

int record_windows_was_read(struct record_windows *s)
{
	uint64_t now_ns = s->hooks.now_ns(s->hooks.ctx);
	struct switch_rings_load load = s->hooks.load(s->hooks.ctx);

	count_records(s, &load);
	s->report.others += s->hooks.others(s->hooks.ctx);
	if (load.records)
		s->report.work_ns += s->hooks.work_ns(s->hooks.ctx) - s->reading_ns;
	if (s->state == RECORD_WINDOWS_WHOLE && now_ns - s->reported_ns >= THROTTLE_REPORT_MIN_NS) {
		count_open(s, now_ns);
		report(s, now_ns);
		return s->plan.whole ? 0 : close_window(s, now_ns);
	}
	if (s->state != RECORD_WINDOWS_READ)
		return 0;
	report(s, now_ns);
	if (s->plan.whole)
		return open_window(s, RECORD_WINDOWS_LAST, RECORD_WINDOWS_LAST_NS);
	enter_closed(s, RECORD_WINDOWS_CLOSED, s->closed_ns + s->plan.closed_ns);
	return 0;
}

struct record_windows_result record_windows_result(const struct record_windows *s)
{
	return (struct record_windows_result){.throttled_ns = s->throttle.throttled_ns,
					      .closed_ns = s->throttle.closed_ns,
					      .windows = s->windows};
}
