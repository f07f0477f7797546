#include "profcpu/record/windows.h"

#include "base/clock.h"

static void wait_until(struct record_windows *s, enum record_windows_state state, uint64_t due_ns)
{
	s->state = state;
	s->due_ns = due_ns;
	s->doer.alarm(s->doer.ctx, due_ns);
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

static void turn(struct record_windows *s, bool on)
{
	uint64_t before_ns = s->doer.thread_ns(s->doer.ctx);

	s->doer.turn(s->doer.ctx, on);
	s->report.throttle_work_ns += s->doer.thread_ns(s->doer.ctx) - before_ns;
}

/* Marks OFFCPU_CLOSE or OFFCPU_WHOLE, and polls threads. */
static int tell(struct record_windows *s, enum offcpu_kind kind, uint64_t now_ns)
{
	uint64_t before_ns = s->doer.thread_ns(s->doer.ctx);
	double width = 0;
	int r = s->doer.tell(s->doer.ctx, kind, now_ns);

	if (!r)
		r = s->doer.look(s->doer.ctx, now_ns, &width);
	s->cost_ns = s->doer.thread_ns(s->doer.ctx) - before_ns;
	s->report.throttle_work_ns += s->cost_ns;
	if (width > 0)
		s->width = width;
	return r;
}

/* Schedules the next poll at twice the last distance, while there is budget. */
static void look_later(struct record_windows *s, uint64_t now_ns)
{
	s->look_ns = s->credit_ns < s->cost_ns ? UINT64_MAX : now_ns + s->apart_ns;
	s->apart_ns = 2 * s->apart_ns < RECORD_WINDOWS_LOOKS_NS ? 2 * s->apart_ns
								: RECORD_WINDOWS_LOOKS_NS;
}

/* Waits with events off until due_ns, with polls in between. */
static void wait_closed(struct record_windows *s, enum record_windows_state state, uint64_t due_ns)
{
	wait_until(s, state, due_ns);
	if (s->look_ns < due_ns)
		s->doer.alarm(s->doer.ctx, s->look_ns);
}

static int look_again(struct record_windows *s, uint64_t now_ns)
{
	int r = tell(s, OFFCPU_CLOSE, now_ns);

	s->credit_ns -= s->credit_ns < s->cost_ns ? s->credit_ns : s->cost_ns;
	look_later(s, now_ns);
	wait_closed(s, s->state, s->due_ns);
	return r;
}

/* Ends a window. Records made while CPUs are disabled one by one do not count. */
static int close_window(struct record_windows *s, uint64_t now_ns)
{
	/* Estimate: the next cycle is as long as the last. */
	uint64_t cycle_ns = s->closed_ns && now_ns - s->closed_ns < THROTTLE_CYCLE_MAX_NS
				    ? now_ns - s->closed_ns
				    : THROTTLE_CYCLE_NS;

	turn(s, false);
	count_open(s, now_ns);
	s->closed_ns = now_ns;
	int r = tell(s, OFFCPU_CLOSE, now_ns);

	s->credit_ns =
		(uint64_t)((double)cycle_ns * s->throttle.options.limit * RECORD_WINDOWS_LOOKS);
	s->apart_ns = RECORD_WINDOWS_LOOK_NS;
	look_later(s, now_ns);
	/* Read later: the rings do not fill now, and reading takes longer than short waits. */
	wait_closed(s, RECORD_WINDOWS_READ, now_ns + RECORD_WINDOWS_READ_NS);
	return r;
}

/* Opens a window, which counts from when the last CPU is enabled. */
static int open_window(struct record_windows *s, enum record_windows_state state, uint64_t open_ns)
{
	turn(s, true);
	s->opened_ns = s->doer.now_ns(s->doer.ctx);
	s->windows++;
	wait_until(s, state, s->opened_ns + open_ns);
	return s->doer.tell(s->doer.ctx, OFFCPU_OPEN, s->opened_ns);
}

static void report(struct record_windows *s, uint64_t now_ns)
{
	uint64_t process_ns = s->doer.process_ns(s->doer.ctx),
		 all_ns = process_ns - s->told_process_ns;
	struct throttle_report r = s->report;

	r.elapsed_ns = now_ns - s->told_ns;
	r.other_work_ns = all_ns > r.work_ns + r.throttle_work_ns
				  ? all_ns - r.work_ns - r.throttle_work_ns
				  : 0;
	r.target_ns = (uint64_t)(s->width * (double)r.elapsed_ns);
	s->report = (struct throttle_report){0};
	s->told_ns = now_ns;
	s->told_process_ns = process_ns;
	s->plan = throttle_next(&s->throttle, &r);
}

int record_windows_begin(struct record_windows *s, const struct throttle_options *options,
			 const struct record_windows_doer *doer)
{
	*s = (struct record_windows){.doer = *doer};
	s->told_ns = s->opened_ns = doer->now_ns(doer->ctx);
	s->told_process_ns = doer->process_ns(doer->ctx);
	s->plan = throttle_begin(&s->throttle, options);
	return s->plan.whole ? 0 : close_window(s, s->told_ns);
}

int record_windows_turn(struct record_windows *s)
{
	uint64_t now_ns = s->doer.now_ns(s->doer.ctx);
	struct switch_rings_load load;
	int r;

	if ((s->state == RECORD_WINDOWS_CLOSED || s->state == RECORD_WINDOWS_READ) &&
	    now_ns < s->due_ns) {
		if (now_ns < s->look_ns)
			return s->state == RECORD_WINDOWS_READ;
		r = look_again(s, now_ns);
		return r ? r : 1;
	}
	if (s->state == RECORD_WINDOWS_CLOSED) {
		r = open_window(s, RECORD_WINDOWS_OPEN, s->plan.open_ns);
		return r ? r : 1;
	}
	if (s->state != RECORD_WINDOWS_OPEN && s->state != RECORD_WINDOWS_LAST)
		return 0;
	load = s->doer.load(s->doer.ctx);
	count_records(s, &load);
	if (now_ns < s->due_ns &&
	    !throttle_enough(&s->throttle, s->report.records_cpu + load.waiting_cpu))
		return 0;
	if (s->state == RECORD_WINDOWS_OPEN)
		return close_window(s, now_ns);
	wait_until(s, RECORD_WINDOWS_WHOLE, 0);
	return tell(s, OFFCPU_WHOLE, now_ns);
}

void record_windows_reading(struct record_windows *s)
{
	s->reading_ns = s->doer.work_ns(s->doer.ctx);
}

int record_windows_was_read(struct record_windows *s)
{
	uint64_t now_ns = s->doer.now_ns(s->doer.ctx);
	struct switch_rings_load load = s->doer.load(s->doer.ctx);

	count_records(s, &load);
	s->report.others += s->doer.others(s->doer.ctx);
	if (load.records)
		s->report.work_ns += s->doer.work_ns(s->doer.ctx) - s->reading_ns;
	if (s->state == RECORD_WINDOWS_WHOLE && now_ns - s->told_ns >= THROTTLE_REPORT_MIN_NS) {
		count_open(s, now_ns);
		report(s, now_ns);
		return s->plan.whole ? 0 : close_window(s, now_ns);
	}
	if (s->state != RECORD_WINDOWS_READ)
		return 0;
	report(s, now_ns);
	if (s->plan.whole)
		return open_window(s, RECORD_WINDOWS_LAST, RECORD_WINDOWS_LAST_NS);
	wait_closed(s, RECORD_WINDOWS_CLOSED, s->closed_ns + s->plan.closed_ns);
	return 0;
}

struct record_windows_result record_windows_result(const struct record_windows *s)
{
	return (struct record_windows_result){.throttled_ns = s->throttle.throttled_ns,
					      .closed_ns = s->throttle.closed_ns,
					      .windows = s->windows};
}
