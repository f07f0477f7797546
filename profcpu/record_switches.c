#include "profcpu/record_switches.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define KTHREADD 2 /* in the first PID namespace */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* Linux include/linux/proc_ns.h, PROC_PID_INIT_INO */

static bool in_first_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE;
}

int record_switches_open(struct record_switches *s, const struct record_options *o, struct sampler_problem *problem)
{
	struct switches_options options = {.stack_bytes = o->stack_bytes, .max_stack = o->max_stack,
					   .no_kernel_stacks = o->no_kernel_stacks, .roots = o->roots};

	options.wakings = true;
	options.first_pids = in_first_namespace();
	if (!o->stack_fixed && options.stack_bytes > RECORD_SWITCHES_STACK_BYTES)
		options.stack_bytes = RECORD_SWITCHES_STACK_BYTES;
	int r = o->off_cpu ? switches_open(&options, &s->switches, problem) : 0;

	if (!r && s->switches && *switches_no_wakings(s->switches))
		log_warn("off-CPU: who ends waits is not known: %s", switches_no_wakings(s->switches));
	return r;
}

static void turn(void *ctx, bool on)
{
	switches_turn(((struct record_switches *)ctx)->switches, on);
}

static struct switches_load load(void *ctx)
{
	return switches_load(((struct record_switches *)ctx)->switches);
}

static uint64_t others(void *ctx)
{
	return record_offcpu_others(((struct record_switches *)ctx)->offcpu);
}

static int tell(void *ctx, enum offcpu_kind kind, uint64_t time_ns)
{
	return record_offcpu_tell(((struct record_switches *)ctx)->offcpu, kind, time_ns);
}

static int look(void *ctx, uint64_t time_ns, double *ret_width)
{
	return record_offcpu_look(((struct record_switches *)ctx)->offcpu, time_ns, ret_width);
}

static void alarm_at(void *ctx, uint64_t time_ns)
{
	const struct itimerspec at = {.it_value = clock_timespec(time_ns)};

	(void)timerfd_settime(((struct record_switches *)ctx)->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
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

	return s->unwind ? record_unwind_switches_ns(s->unwind) : 0;
}

static int begin_shed(struct record_switches *s, double limit)
{
	const struct record_shed_doer doer = {s, turn, load, others, tell, look, alarm_at, now_ns, process_ns, thread_ns, work_ns};
	const struct shed_options options = {.limit = limit, .room_records = switches_room(s->switches),
					     .cpus = (unsigned)switches_opened(s->switches)->nids, .seed = (uint32_t)clock_monotonic_ns()};

	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->timer_fd < 0)
		return -errno;
	s->shed = calloc(1, sizeof(*s->shed));
	if (!s->shed) {
		close(s->timer_fd);
		return -ENOMEM;
	}
	return record_shed_begin(s->shed, &options, &doer);
}

int record_switches_begin(struct record_switches *s, const struct record_options *o, uint64_t begin_ns)
{
	const struct record_offcpu_options options = {
		.begin_ns = begin_ns, .min_ns = o->off_cpu_min_ns, .first_pids = in_first_namespace(),
		/* In others it is not there. */
		.kthreadd = in_first_namespace() ? KTHREADD : 0, .proc = o->roots.proc};

	int r = record_offcpu_new(&options, &s->offcpu);

	if (r || o->max_overhead >= 1)
		return r;
	if (!record_offcpu_may_look(s->offcpu)) {
		log_warn("off-CPU: --max-overhead is not kept: this kernel has no schedstat, without which no switch may be left out");
		return 0;
	}
	return begin_shed(s, o->max_overhead > 0 ? o->max_overhead : RECORD_MAX_OVERHEAD);
}

int record_switches_timer(const struct record_switches *s)
{
	return s->shed ? s->timer_fd : -1;
}

int record_switches_turn(struct record_switches *s)
{
	int r = s->shed ? record_shed_turn(s->shed) : 0;

	if (s->shed && !r)
		record_shed_reading(s->shed);
	return r;
}

int record_switches_was_read(struct record_switches *s)
{
	return s->shed ? record_shed_was_read(s->shed) : 0;
}

size_t record_switches_opened(const struct record_switches *s, struct sampler_opened *ret_opened, uint32_t *ret_waking_pid_offset)
{
	const struct sampler_opened *wakings = s->switches ? switches_wakings(s->switches, ret_waking_pid_offset) : NULL;

	if (s->switches)
		ret_opened[0] = *switches_opened(s->switches);
	if (wakings)
		ret_opened[1] = *wakings;
	return (s->switches != NULL) + (wakings != NULL);
}

size_t record_switches_events(const struct record_switches *s, const struct perf_event_attr *beside, struct perfdata_writer_event *ret_events)
{
	static const enum perfdata_offcpu_kind kinds[RECORD_SWITCHES_EVENTS] = {PERFDATA_OFFCPU_WAIT, PERFDATA_OFFCPU_WAKER};
	struct sampler_opened opened[RECORD_SWITCHES_EVENTS];
	uint32_t pid_offset;
	size_t n = record_switches_opened(s, opened, &pid_offset);

	for (size_t i = 0; i < n; i++)
		ret_events[i] = (struct perfdata_writer_event){
			.attr = perfdata_offcpu_attr(beside, kinds[i]), .name = perfdata_offcpu_name(kinds[i]), .ids = opened[i].ids, .nids = opened[i].nids};
	return n;
}

void record_switches_mark(struct record_switches *s)
{
	if (s->switches)
		switches_mark(s->switches);
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
	const struct switches_listener listener = {unwind, take, take_id};

	s->unwind = unwind;
	return s->switches ? switches_take(s->switches, &listener) : 0;
}

static int full(void *ctx, int cpu)
{
	return record_offcpu_full(((struct record_switches *)ctx)->offcpu, cpu, clock_monotonic_ns());
}

int record_switches_release(struct record_switches *s)
{
	int r = s->switches ? switches_full(s->switches, full, s) : 0;

	if (s->switches)
		switches_release(s->switches);
	return r;
}

uint64_t record_switches_stop(struct record_switches *s)
{
	if (s->switches)
		switches_stop(s->switches);
	record_switches_mark(s);
	return clock_monotonic_ns();
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static void say_shed(struct record_shed_result shed, uint64_t estimated_ns)
{
	log_note("off-CPU: to keep within --max-overhead, switches were recorded in windows for %.3f s, in all %.3f s of these; waits of %.6f s are "
		 "estimated by those that were seen, their sums are exact",
		 seconds(shed.shed_ns), seconds(shed.shed_ns - shed.closed_ns), seconds(estimated_ns));
}

#define SAY_BYTES 320

/* What threads did that is not known, and why not. */
static void say_unknown(const struct record_offcpu_result *r, char text[SAY_BYTES])
{
	static const char lost_words[] = "as switches were lost";
	static const char windows_words[] = "as they began or ended between the windows in which switches are recorded (--max-overhead 100 records all)";
	uint64_t lost_ns = r->unknown_ns - r->unwatched_ns;
	int n = !r->unknown_ns ? 0 : snprintf(text, SAY_BYTES, "; of %.6f s it is not known what threads did", seconds(r->unknown_ns));

	text[n] = 0;
	if (lost_ns && r->unwatched_ns)
		snprintf(text + n, SAY_BYTES - (size_t)n, ": of %.6f s %s, of %.6f s %s", seconds(lost_ns), lost_words, seconds(r->unwatched_ns),
			 windows_words);
	else if (r->unknown_ns)
		snprintf(text + n, SAY_BYTES - (size_t)n, ", %s", lost_ns ? lost_words : windows_words);
}

void record_switches_say(const struct record_switches *s, uint64_t min_ns)
{
	char left_out[160] = "", no_stack[160] = "", unknown[SAY_BYTES];

	if (!s->offcpu)
		return;
	struct record_offcpu_result r = record_offcpu_result(s->offcpu);

	if (r.short_waits)
		snprintf(left_out, sizeof(left_out), "; left out are %.6f s in %llu waits below %llu us", seconds(r.short_ns),
			 (unsigned long long)r.short_waits, (unsigned long long)(min_ns / 1000));
	if (r.no_stack_ns)
		snprintf(no_stack, sizeof(no_stack), "; of %.6f s the stack is not known, as they began before the recording or together with their thread%s",
			 seconds(r.no_stack_ns), s->shed && s->shed->windows ? ", or between windows" : "");
	say_unknown(&r, unknown);
	if (s->shed && s->shed->windows)
		say_shed(record_shed_result(s->shed), r.estimated_ns);
	if (r.stacks_refused)
		log_warn("%llu times a wait or a waker has no stack, as there are more different ones than are kept (%zu MiB): record for a shorter time, "
			 "or fewer processes (-p)", (unsigned long long)r.stacks_refused, RECORD_OFFCPU_STACKS_BYTES >> 20);
	log_note("off-CPU: %.6f s in %llu waits, of %.6f s that threads were there%s%s%s", seconds(r.off_ns), (unsigned long long)r.waits,
		 seconds(r.life_ns), left_out, no_stack, unknown);
}

void record_switches_free(struct record_switches *s)
{
	switches_close(s->switches);
	record_offcpu_free(s->offcpu);
	if (s->shed)
		close(s->timer_fd);
	free(s->shed);
	*s = (struct record_switches){0};
}
