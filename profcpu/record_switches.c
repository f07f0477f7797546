#include "profcpu/record_switches.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_PID_NAMESPACE 0xEFFFFFFCu /* Linux include/linux/proc_ns.h, PROC_PID_INIT_INO */

int record_switches_open(struct record_switches *s, const struct record_options *o, struct sampler_problem *problem)
{
	struct switches_options options = {.stack_bytes = o->stack_bytes, .max_stack = o->max_stack,
					   .no_kernel_stacks = o->no_kernel_stacks, .roots = o->roots};

	if (!o->stack_fixed && options.stack_bytes > RECORD_SWITCHES_STACK_BYTES)
		options.stack_bytes = RECORD_SWITCHES_STACK_BYTES;
	return o->off_cpu ? switches_open(&options, &s->switches, problem) : 0;
}

/* In the first PID namespace kthreadd is always 2, in others it is not there. */
static pid_t kthreadd(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE ? 2 : 0;
}

int record_switches_begin(struct record_switches *s, const struct record_options *o, uint64_t begin_ns)
{
	const struct record_offcpu_options options = {
		.begin_ns = begin_ns, .min_ns = o->off_cpu_min_ns, .kthreadd = kthreadd(), .proc = o->roots.proc};

	return record_offcpu_new(&options, &s->offcpu);
}

struct perfdata_writer_event record_switches_event(const struct record_switches *s, const struct perf_event_attr *beside)
{
	const struct sampler_opened *opened = switches_opened(s->switches);

	return (struct perfdata_writer_event){
		.attr = perfdata_offcpu_attr(beside), .name = PERFDATA_OFFCPU_NAME, .ids = opened->ids, .nids = opened->nids};
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

int record_switches_take(struct record_switches *s, struct record_unwind *unwind)
{
	return s->switches ? switches_take(s->switches, take, unwind) : 0;
}

void record_switches_release(struct record_switches *s)
{
	if (s->switches)
		switches_release(s->switches);
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

void record_switches_say(const struct record_switches *s, uint64_t min_ns)
{
	char left_out[160] = "", no_stack[160] = "", unknown[160] = "";

	if (!s->offcpu)
		return;
	struct record_offcpu_result r = record_offcpu_result(s->offcpu);

	if (r.short_waits)
		snprintf(left_out, sizeof(left_out), "; left out are %.6f s in %llu waits below %llu us", seconds(r.short_ns),
			 (unsigned long long)r.short_waits, (unsigned long long)(min_ns / 1000));
	if (r.no_stack_ns)
		snprintf(no_stack, sizeof(no_stack), "; of %.6f s the stack is not known, as they began before the recording or together with their thread",
			 seconds(r.no_stack_ns));
	if (r.unknown_ns)
		snprintf(unknown, sizeof(unknown), "; of %.6f s it is not known what threads did, as switches were lost", seconds(r.unknown_ns));
	log_note("off-CPU: %.6f s in %llu waits, of %.6f s that threads were there%s%s%s", seconds(r.off_ns), (unsigned long long)r.waits,
		 seconds(r.life_ns), left_out, no_stack, unknown);
}

void record_switches_free(struct record_switches *s)
{
	switches_close(s->switches);
	record_offcpu_free(s->offcpu);
	*s = (struct record_switches){0};
}
