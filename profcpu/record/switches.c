#include "profcpu/record/switches.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define KTHREADD 2                      /* its pid in the first PID namespace */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* Linux include/linux/proc_ns.h, PROC_PID_INIT_INO */

static bool in_first_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE;
}

int record_switches_open(struct record_switches *s, const struct record_options *o,
			 struct sampler_problem *problem)
{
	struct switch_rings_options options = {.stack_bytes = o->stack_bytes,
					       .max_stack = o->max_stack,
					       .no_kernel_stacks = o->no_kernel_stacks,
					       .roots = o->roots};

	options.wakings = true;
	options.first_pids = in_first_namespace();
	if (!o->stack_fixed && options.stack_bytes > RECORD_SWITCHES_STACK_BYTES)
		options.stack_bytes = RECORD_SWITCHES_STACK_BYTES;
	int r = o->off_cpu ? switch_rings_open(&options, &s->rings, problem) : 0;

	if (!r && s->rings && !o->wakers_unused && *switch_rings_no_wakings(s->rings))
		log_warn("off-CPU: wakers are not recorded: %s", switch_rings_no_wakings(s->rings));
	return r;
}

static void turn(void *ctx, bool on)
{
	switch_rings_turn(((struct record_switches *)ctx)->rings, on);
}

static struct switch_rings_load load(void *ctx)
{
	return switch_rings_load(((struct record_switches *)ctx)->rings);
}

static uint64_t others(void *ctx)
{
	return record_offcpu_take_others(((struct record_switches *)ctx)->offcpu);
}

static int mark(void *ctx, enum offcpu_kind kind, uint64_t time_ns)
{
	return record_offcpu_mark(((struct record_switches *)ctx)->offcpu, kind, time_ns);
}

static int poll_threads(void *ctx, uint64_t time_ns, double *ret_width)
{
	return record_offcpu_poll(((struct record_switches *)ctx)->offcpu, time_ns, ret_width);
}

static void moved(void *ctx, int32_t tid, uint64_t at_ns, bool out)
{
	record_offcpu_moved(((struct record_switches *)ctx)->offcpu, tid, at_ns, out);
}

static void note_moved(void *ctx)
{
	switch_rings_peek(((struct record_switches *)ctx)->rings, moved, ctx);
}

static int find_waiting(void *ctx, uint64_t time_ns, size_t *ret_waiting)
{
	return record_offcpu_find_waiting(((struct record_switches *)ctx)->offcpu, time_ns,
					  ret_waiting);
}

static int follow(void *ctx, uint64_t time_ns, size_t *ret_waiting)
{
	return record_offcpu_follow(((struct record_switches *)ctx)->offcpu, time_ns, ret_waiting);
}

static void alarm_at(void *ctx, uint64_t time_ns)
{
	const struct itimerspec at = {.it_value = clock_timespec(time_ns)};

	(void)timerfd_settime(((struct record_switches *)ctx)->timer_fd, TFD_TIMER_ABSTIME, &at,
			      NULL);
}

static uint64_t now_ns(void *ctx)
{
	(void)ctx;
	return clock_monotonic_ns();
}

static uint64_t process_ns(void *ctx)
{
	(void)ctx;
	return clock_process_ns();
}

static uint64_t thread_ns(void *ctx)
{
	(void)ctx;
	return clock_thread_ns();
}

static uint64_t work_ns(void *ctx)
{
	const struct record_switches *s = ctx;

	return s->unwind ? record_unwind_switches_cpu_ns(s->unwind) : 0;
}

int record_switches_start(struct record_switches *s, uint64_t begin_ns)
{
	if (!s->offcpu)
		return 0;
	switch_rings_turn(s->rings, true);
	int r = record_offcpu_begin(s->offcpu, begin_ns);

	if (r || s->max_overhead <= 0)
		return r;
	const struct record_windows_hooks hooks = {.ctx = s,
						   .turn = turn,
						   .load = load,
						   .others = others,
						   .mark = mark,
						   .poll = poll_threads,
						   .note_moved = note_moved,
						   .find_waiting = find_waiting,
						   .follow = follow,
						   .alarm = alarm_at,
						   .now_ns = now_ns,
						   .process_ns = process_ns,
						   .thread_ns = thread_ns,
						   .work_ns = work_ns};
	const struct throttle_options options = {
		.limit = s->max_overhead,
		.room_records = switch_rings_room(s->rings),
		.cpus = (unsigned)switch_rings_opened(s->rings)->nids,
		.seed = (uint32_t)clock_monotonic_ns()};

	s->windows = calloc(1, sizeof(*s->windows));
	return !s->windows ? -ENOMEM : record_windows_begin(s->windows, &options, &hooks);
}

int record_switches_begin(struct record_switches *s, const struct record_options *o)
{
	const struct record_offcpu_options options = {
		.min_ns = o->off_cpu_min_ns,
		.first_pids = in_first_namespace(),
		/* Other PID namespaces do not show kernel threads. */
		.kthreadd = in_first_namespace() ? KTHREADD : 0,
		.proc = o->roots.proc};

	int r = record_offcpu_new(&options, &s->offcpu);

	if (r || o->max_overhead >= 1)
		return r;
	if (!record_offcpu_can_poll(s->offcpu)) {
		log_warn(
			"off-CPU: --max-overhead has no effect: the kernel has no schedstat; use a "
			"kernel with CONFIG_SCHED_INFO");
		return 0;
	}
	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer_fd < 0)
		return -errno;
	s->max_overhead = o->max_overhead > 0 ? o->max_overhead : RECORD_MAX_OVERHEAD;
	return 0;
}

int record_switches_timer(const struct record_switches *s)
{
	return s->max_overhead > 0 ? s->timer_fd : -1;
}

int record_switches_begin_round(struct record_switches *s)
{
	int r = s->windows ? record_windows_turn(s->windows) : 0;

	if (s->windows && !r)
		record_windows_reading(s->windows);
	return r;
}

int record_switches_end_round(struct record_switches *s)
{
	return s->windows ? record_windows_was_read(s->windows) : 0;
}

size_t record_switches_opened(const struct record_switches *s, struct sampler_opened *ret_opened,
			      uint32_t *ret_waking_pid_offset)
{
	const struct sampler_opened *wakings =
		s->rings ? switch_rings_wakings(s->rings, ret_waking_pid_offset) : NULL;

	if (s->rings)
		ret_opened[0] = *switch_rings_opened(s->rings);
	if (wakings)
		ret_opened[1] = *wakings;
	return (s->rings != NULL) + (wakings != NULL);
}

size_t record_switches_events(const struct record_switches *s, const struct perf_event_attr *beside,
			      struct perfdata_writer_event *ret_events)
{
	static const enum perfdata_offcpu_kind kinds[RECORD_SWITCHES_EVENTS] = {
		PERFDATA_OFFCPU_WAIT, PERFDATA_OFFCPU_WAKER};
	struct sampler_opened opened[RECORD_SWITCHES_EVENTS];
	uint32_t pid_offset;
	size_t n = record_switches_opened(s, opened, &pid_offset);

	for (size_t i = 0; i < n; i++)
		ret_events[i] = (struct perfdata_writer_event){
			.attr = perfdata_offcpu_attr(beside, kinds[i]),
			.name = perfdata_offcpu_name(kinds[i]),
			.ids = opened[i].ids,
			.nids = opened[i].nids};
	return n;
}

void record_switches_mark(struct record_switches *s)
{
	if (s->rings)
		switch_rings_mark(s->rings);
}

static int take(void *ctx, const void *data, size_t len)
{
	return record_unwind_records(ctx, data, len);
}

static int take_id(void *ctx, uint64_t id)
{
	return record_unwind_switches_id(ctx, id);
}

int record_switches_take(struct record_switches *s, struct record_unwind *unwind)
{
	const struct switch_rings_listener listener = {unwind, take, take_id};

	s->unwind = unwind;
	return s->rings ? switch_rings_take(s->rings, &listener) : 0;
}

static int full(void *ctx, int cpu)
{
	return record_offcpu_full(((struct record_switches *)ctx)->offcpu, cpu,
				  clock_monotonic_ns());
}

int record_switches_release(struct record_switches *s)
{
	int r = s->rings ? switch_rings_full(s->rings, full, s) : 0;

	if (s->rings)
		switch_rings_release(s->rings);
	return r;
}

uint64_t record_switches_stop(struct record_switches *s)
{
	if (s->rings)
		switch_rings_stop(s->rings);
	record_switches_mark(s);
	return clock_monotonic_ns();
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* "3 waits"; with windows "waits": most are not recorded, and their number is not known. */
static const char *waits_text(uint64_t count, bool windows, char text[32])
{
	snprintf(text, 32, windows ? "waits" : "%llu wait%s", (unsigned long long)count,
		 plural(count));
	return text;
}

static void report_throttle(const struct record_windows *throttle)
{
	struct record_windows_result r = record_windows_result(throttle);

	log_note("off-CPU: switches were sampled in windows of %.*f s in all during %.*f s "
		 "(--max-overhead %.6g)",
		 CLOCK_SECONDS(r.throttled_ns - r.closed_ns), CLOCK_SECONDS(r.throttled_ns),
		 100 * throttle->throttle.options.limit);
}

/* Times whose thread states are unknown, one line for each reason. */
static void report_unknown(const struct record_offcpu_result *r)
{
	uint64_t lost_ns = r->unknown_ns - r->unwatched_ns;

	if (lost_ns)
		log_note("off-CPU: %.*f s unknown: switches were lost", CLOCK_SECONDS(lost_ns));
	if (r->unwatched_ns)
		log_note("off-CPU: %.*f s unknown: threads began or ended between windows",
			 CLOCK_SECONDS(r->unwatched_ns));
}

void record_switches_report(const struct record_switches *s, uint64_t min_ns)
{
	bool windows = s->windows && s->windows->windows;
	char waits[32];

	if (!s->offcpu)
		return;
	struct record_offcpu_result r = record_offcpu_result(s->offcpu);

	if (windows)
		report_throttle(s->windows);
	if (r.stacks_refused)
		log_warn("off-CPU: no stack of %llu wait%s or waker%s: distinct stacks exceed %zu "
			 "MiB; record for a shorter time, or fewer processes (-p)",
			 (unsigned long long)r.stacks_refused, plural(r.stacks_refused),
			 plural(r.stacks_refused), r.stacks_bytes_max >> 20);
	log_note("off-CPU: %s, %.*f s, in %.*f s of thread lifetime",
		 waits_text(r.waits, windows, waits), CLOCK_SECONDS(r.off_ns),
		 CLOCK_SECONDS(r.life_ns));
	if (r.short_waits)
		log_note("off-CPU: left out: %s shorter than %llu us, %.*f s",
			 waits_text(r.short_waits, windows, waits),
			 (unsigned long long)(min_ns / 1000), CLOCK_SECONDS(r.short_ns));
	if (r.no_stack_ns)
		log_note("off-CPU: %.*f s without a stack: the waits began before the recording or "
			 "with their thread%s",
			 CLOCK_SECONDS(r.no_stack_ns), windows ? ", or between windows" : "");
	if (r.unsettled)
		log_note("off-CPU: the time waiting for a CPU is unknown in %llu wait%s of threads "
			 "that ended",
			 (unsigned long long)r.unsettled, plural(r.unsettled));
	report_unknown(&r);
}

void record_switches_free(struct record_switches *s)
{
	switch_rings_close(s->rings);
	record_offcpu_free(s->offcpu);
	if (s->max_overhead > 0)
		close(s->timer_fd);
	free(s->windows);
	*s = (struct record_switches){0};
}
