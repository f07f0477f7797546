#include "profcpu/record/record_impl.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/ask.h"
#include "profcpu/record/exit_notice.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_NEWS_MS                                                                         \
	100 /* Longest delay for noticing new processes, because their code may disappear with \
	       them. */

#define RECORD_BESIDE_MS 10
#define RECORD_BESIDE_END_NS (15 * NS_PER_S)

/* Checks for signals while recording begins, which takes long with many processes. */
int record_check_signal(struct record *rec)
{
	int signal = record_watch_signal(&rec->watch);

	if (!signal)
		return 0;
	rec->result->end = RECORD_END_SIGNAL;
	rec->result->end_signal = signal;
	const char *name = signal == SIGINT ? "Ctrl-C" : sigabbrev_np(signal);

	log_error("recording: ended by %s%s before it began; nothing was kept",
		  signal == SIGINT ? "" : "SIG", name ? name : "RT");
	return -EINTR;
}

/* Whether perf.data has the size of --max-size. */
static bool is_full(const struct record *rec)
{
	const struct record_beside *beside = rec->options->beside;

	return rec->options->max_bytes &&
	       perfdata_writer_bytes(rec->writer) + (beside ? beside->bytes(beside->ctx) : 0) >=
		       rec->options->max_bytes;
}

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct record *rec = ctx;
	int r = cpu < 0 ? record_check_signal(rec) : 0; /* -1: from /proc, before the first round */

	if (!r)
		r = rec->unwind ? record_unwind_records(rec->unwind, data, len)
				: perfdata_writer_records(rec->writer, data, len);
	return r ? r : cpu < 0 && is_full(rec);
}

static int take_round(void *ctx)
{
	struct record *rec = ctx;
	int r;

	record_pin_round(&rec->pin);
	if (!rec->unwind)
		return perfdata_writer_round(rec->writer);
	r = record_switches_take(&rec->switches, rec->unwind);
	if (!r)
		r = record_unwind_round(rec->unwind, rec->writer, 0);
	int released = record_switches_release(&rec->switches);

	return r ? r : released;
}

int record_drain(struct record *rec)
{
	int r = record_switches_begin_round(&rec->switches);

	if (r)
		return r < 0 ? r : 0;
	record_switches_mark(&rec->switches);
	r = sampler_drain(rec->sampler);
	return r ? r : record_switches_end_round(&rec->switches);
}

static int take_process(void *ctx, pid_t pid, enum sampler_news news)
{
	struct record *rec = ctx;

	if (news == SAMPLER_PROCESS_DETACHED)
		record_detached_add(&rec->detached, pid,
				    pid == rec->command.pid ? rec->options->argv[0] : NULL);
	/* Pin the command at once, because it may end soon. */
	else
		record_pin_news(&rec->pin, pid, news, pid == rec->command.pid);
	if (rec->capture && (news == SAMPLER_PROCESS_NEW || news == SAMPLER_PROCESS_ELSEWHERE))
		jit_capture_add_process(rec->capture, pid);
	return 0;
}

static int take_event_id(void *ctx, size_t event, uint64_t id)
{
	struct record *rec = ctx;
	int r = rec->unwind ? record_unwind_event_id(rec->unwind, event, id) : 0;

	return r ? r : perfdata_writer_add_id(rec->writer, event, id);
}

struct sampler_listener record_listener(struct record *rec)
{
	return (struct sampler_listener){rec, take_records, take_round, take_process,
					 take_event_id};
}

static uint64_t lost(const struct sampler_stats *s)
{
	return s->lost_records > s->lost_samples ? s->lost_records : s->lost_samples;
}

static void show_progress(struct record *rec, uint64_t now)
{
	const struct sampler_stats *s = sampler_stats(rec->sampler);
	uint64_t passed = now - rec->result->start_monotonic_ns, whole = rec->options->duration_ns;
	uint64_t left_s = whole > passed ? (whole - passed + NS_PER_S - 1) / NS_PER_S : 0;
	char samples[80] = "";

	if (!rec->options->no_cpu)
		snprintf(samples, sizeof(samples), ", %llu samples, %llu lost",
			 (unsigned long long)s->samples, (unsigned long long)lost(s));
	if (whole)
		progress_show(&rec->progress, "recording: %llu s left%s",
			      (unsigned long long)left_s, samples);
	else
		progress_show(&rec->progress, "recording: %llu s%s; Ctrl-C ends it",
			      (unsigned long long)(passed / NS_PER_S), samples);
}

/* Milliseconds until the next drain. */
static int next_timeout(const struct record *rec, uint64_t now)
{
	uint64_t end = rec->result->start_monotonic_ns + rec->options->duration_ns;
	uint64_t left_ms = end > now ? (end - now + NS_PER_MS - 1) / NS_PER_MS : 0;

	uint64_t most_ms = rec->capture ? RECORD_NEWS_MS : SAMPLER_DRAIN_MS;

	return rec->options->duration_ns && left_ms < most_ms ? (int)left_ms : (int)most_ms;
}

static bool targets_ended(struct record *rec)
{
	if (rec->command.pid)
		return record_child_ended(&rec->command);
	return !rec->options->system_wide && !record_watch_alive(&rec->watch);
}

/* Ctrl-C reaches us and the command. We may see the end of the command before the signal. */
static enum record_end end_of_targets(struct record *rec)
{
	(void)record_watch_wait(&rec->watch, 0, &rec->result->end_signal);
	return rec->result->end_signal ? RECORD_END_SIGNAL : RECORD_END_TARGET;
}

/* Adapts the size of copied stacks. */
static void follow_stacks(struct record *rec)
{
	uint32_t wanted = rec->unwind ? record_unwind_stack_bytes(rec->unwind) : rec->stack_bytes;
	int r = 0;

	if (wanted == rec->stack_bytes)
		return;
	r = sampler_set_stack_bytes(rec->sampler, wanted);
	if (!r)
		rec->stack_bytes = wanted;
	else
		record_unwind_keep_stack_bytes(rec->unwind, rec->stack_bytes, r == -EMFILE);
	/* The report has the number of stacks for which descriptors were missing. */
	if (r && r != -EMFILE && wanted > rec->stack_bytes)
		log_warn("stacks: truncated at %u bytes: larger copies failed: %s",
			 rec->stack_bytes, strerror(-r));
}

static enum record_end record_until_end(struct record *rec)
{
	struct record_result *result = rec->result;

	/* Drain first, because a ring that is already full does not wake us. */
	if (!rec->error)
		rec->error = record_drain(rec);
	while (!rec->error) {
		uint64_t now = clock_monotonic_ns();

		if (rec->options->duration_ns &&
		    now - result->start_monotonic_ns >= rec->options->duration_ns)
			return RECORD_END_DURATION;
		if (is_full(rec))
			return RECORD_END_SIZE;
		if (targets_ended(rec))
			return end_of_targets(rec);
		rec->error =
			record_watch_wait(&rec->watch, next_timeout(rec, now), &result->end_signal);
		if (!rec->error && !result->end_signal)
			rec->error = record_drain(rec);
		if (!rec->error && !result->end_signal)
			rec->error = sampler_follow_cpus(rec->sampler);
		if (!rec->error && result->end_signal)
			return RECORD_END_SIGNAL;
		if (rec->error)
			break;
		follow_stacks(rec);
		now = clock_monotonic_ns();
		show_progress(rec, now);
		heap_trim(&rec->trimmed_ns, now);
	}
	return RECORD_END_ERROR;
}

/* Ends what is recorded beside the samples, which go on meanwhile. A signal ends the wait. */
static void end_beside(struct record *rec)
{
	const struct record_beside *beside = rec->options->beside;
	uint64_t until_ns = clock_monotonic_ns() + RECORD_BESIDE_END_NS;
	int signal = 0;

	if (!beside)
		return;
	beside->end(beside->ctx);
	while (!rec->error && !signal && !beside->has_ended(beside->ctx) &&
	       clock_monotonic_ns() < until_ns) {
		rec->error = record_watch_wait(&rec->watch, RECORD_BESIDE_MS, &signal);
		if (!rec->error)
			rec->error = record_drain(rec);
	}
	beside->note(beside->ctx, &rec->manifest);
}

static struct recording_limits limits_of(const struct record *rec)
{
	struct recording_limits limits = {0};
	size_t n;
	const struct sampler_opened *opened = sampler_opened(rec->sampler, &n);
	uint64_t wanted_hz = rec->manifest.freq_hz;

	if (rec->unwind)
		limits = record_unwind_stats(rec->unwind).limits;
	if (rec->switches.rings)
		limits.cost[LIMIT_EVENT_IDS] = switch_rings_left_out(rec->switches.rings);
	if (rec->switches.offcpu)
		limits.cost[LIMIT_WAIT_THREADS] =
			record_offcpu_result(rec->switches.offcpu).threads_refused;
	limits.cost[LIMIT_UNREAD_PROCESSES] = sampler_stats(rec->sampler)->unread;
	limits.cost[LIMIT_OTHER_RECORDS] = sampler_stats(rec->sampler)->lost_others;
	if (sampler_setup(rec->sampler)->small_rings)
		limits.cost[LIMIT_SMALL_RINGS] = rec->result->lost;
	limits.cost[LIMIT_SILENT] = ask_silent();
	limits.cost[LIMIT_CUT_MAPS] = sampler_stats(rec->sampler)->cut_maps;
	if (rec->capture)
		limits.cost[LIMIT_USERS] = jit_capture_users_left_out(rec->capture);
	if (opened->attr.freq && opened->attr.sample_freq < wanted_hz)
		limits.cost[LIMIT_SAMPLE_RATE] = wanted_hz - opened->attr.sample_freq;
	return limits;
}

/*
 * Ends the recording. From here on a second signal ends the program at once. If the recording ended
 * by itself, the first one may still come.
 */
static int finish(struct record *rec)
{
	const struct sampler_stats *s = sampler_stats(rec->sampler);
	int r;

	rec->result->duration_ns = clock_monotonic_ns() - rec->result->start_monotonic_ns;
	exit_notice_set(rec->options->dir, !rec->result->end_signal);
	record_watch_unmask(&rec->watch);
	progress_close(&rec->progress);
	uint64_t end_ns = record_switches_stop(&rec->switches);

	r = sampler_stop(rec->sampler);
	if (!rec->error)
		rec->error = r;
	/* Thread lifetimes are known now, also after an error. */
	r = rec->unwind ? record_unwind_round(rec->unwind, rec->writer, end_ns) : 0;
	if (!rec->error)
		rec->error = r;
	r = perfdata_writer_finish(rec->writer, s->first_sample_ns, s->last_sample_ns);
	if (!rec->error)
		rec->error = r;
	/* After perf.data, so that a slow target cannot damage it. */
	if (rec->capture)
		jit_capture_end(rec->capture);
	if (rec->capture && rec->pin.opener)
		jit_capture_note_users(rec->capture, rec->pin.opener);
	if (rec->error)
		rec->result->end = RECORD_END_ERROR;
	rec->result->names_lost = rec->capture && !jit_capture_is_written(rec->capture);
	record_report_end(rec);
	rec->result->detached = rec->detached.count;
	rec->result->samples = s->samples;
	rec->result->lost = lost(s);
	rec->result->data_bytes = perfdata_writer_bytes(rec->writer);
	rec->manifest.duration_ns = rec->result->duration_ns;
	rec->manifest.limits = limits_of(rec);
	rec->manifest.finished = true;
	r = record_write_manifest(rec);
	exit_notice_pass_none();
	return rec->error ? rec->error : r;
}

static void end_command(struct record *rec)
{
	struct record_result *result = rec->result;

	if (!rec->command.pid)
		return;
	if (result->end == RECORD_END_SIGNAL && !record_child_ended(&rec->command))
		kill(rec->command.pid, record_child_signal(result->end_signal));
	result->command_ended = record_child_ended(&rec->command);
	result->command_status = rec->command.status;
	if (!result->command_ended && result->end != RECORD_END_SIGNAL && !rec->options->quiet)
		log_note("%s: still running as process %d", rec->options->argv[0],
			 rec->command.pid);
}

static void release(struct record *rec)
{
	progress_close(&rec->progress);
	jit_capture_free(rec->capture);
	record_child_release(&rec->command);
	perfdata_writer_free(rec->writer);
	record_unwind_free(rec->unwind);
	record_switches_free(&rec->switches);
	sampler_close(rec->sampler);
	record_watch_free(&rec->watch);
	recording_manifest_free(&rec->manifest);
	record_pin_free(&rec->pin);
	if (rec->data_fd >= 0)
		close(rec->data_fd);
}

static int run(struct record *rec)
{
	const struct record_options *options = rec->options;
	int r;

	rec->progress = progress_to(2, options->quiet);
	r = record_pin_new(&rec->pin, options->opener, options->system_wide);
	if (r)
		log_error("cannot record: out of memory");
	else
		r = record_begin(rec);
	if (!r)
		r = record_start(rec);
	if (!r) {
		rec->result->started = true;
		if (options->beside)
			options->beside->begin(options->beside->ctx, rec->command.pid);
		rec->result->end = record_until_end(rec);
		end_beside(rec);
		r = finish(rec);
		end_command(rec);
	} else {
		record_remove_unbegun(rec);
	}
	release(rec);
	return r;
}

int record_run(const struct record_options *options, struct record_result *ret_result)
{
	*ret_result = (struct record_result){.end = RECORD_END_ERROR};
	if (!options->npids && !options->system_wide && !options->argv) {
		log_error("no target; name a process (-p), a command or the whole machine "
			  "(-a)");
		return -EINVAL;
	}
	/* Not on the stack: profcpu may sample itself, as with -a, and then copies this stack. */
	struct record *rec = calloc(1, sizeof(*rec));

	if (!rec) {
		log_error("cannot record: out of memory");
		return -ENOMEM;
	}
	rec->options = options;
	rec->result = ret_result;
	rec->data_fd = -1;
	rec->watch = RECORD_WATCH_NONE;
	rec->stack_bytes = options->stack_bytes;
	int r = run(rec);

	free(rec);
	return r;
}
