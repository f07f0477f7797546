/* Begins a recording: opens events, sampler and files. */
#include "profcpu/record/record_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptor_budget.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"
#include "base/replace.h"
#include "base/version.h"
#include "container/proc.h"
#include "sampler/offcpu/blocked.h"
#include "sampler/permission.h"
#include "sampler/tracing_data.h"
#include "symbols/jit/methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RECORD_FREQ_HZ 99
#define RECORD_IDS_ROOM 64   /* ids of each event, for CPUs that come online */
#define BEGIN_DESCRIPTORS 16 /* for files of the recording, signals and timers */
#define RECORD_TOOL "profcpu " PROFCPU_VERSION

/* Samples a second; 0: by period, or none. */
static uint32_t freq_hz(const struct record_options *o)
{
	return o->period || o->no_cpu ? 0 : o->freq_hz ? o->freq_hz : RECORD_FREQ_HZ;
}

int record_write_manifest(struct record *rec)
{
	int r = recording_manifest_write(rec->options->dir_fd, &rec->manifest);

	return r ? record_report_io(rec, "write", RECORDING_MANIFEST, r) : 0;
}

static int report_problem(const struct sampler_problem *p)
{
	log_error("cannot %s %s", p->what, p->detail);
	return p->code;
}

static int parse_events(struct record *rec)
{
	const struct record_options *o = rec->options;
	struct sampler_problem problem;
	const char *why = "";

	if (o->no_cpu) {
		rec->events[rec->nevents++] = sampler_event_none();
		return 0;
	}
	if (!o->nevents) {
		sampler_event_default(&o->roots, rec->events, &rec->nevents, &why);
		snprintf(rec->result->event_why, sizeof(rec->result->event_why), "%s", why);
		return 0;
	}
	if (o->nevents > SAMPLER_EVENTS_MAX) {
		log_error("cannot record %zu events: the limit is %d", o->nevents,
			  SAMPLER_EVENTS_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < o->nevents; i++)
		if (sampler_event_parse(&o->roots, o->events[i], &rec->events[i], &problem))
			return report_problem(&problem);
	rec->nevents = o->nevents;
	return 0;
}

/* "process 12 (webapp)": the name of the program, never its arguments. */
static char *target_text(const struct record_options *o)
{
	AUTO_FREE char *comm = NULL;
	char *text = NULL;
	size_t len;

	if (o->target)
		return strdup(o->target);
	if (o->system_wide)
		return strdup("the whole machine");
	if (o->argv && !o->npids) {
		const char *slash = strrchr(o->argv[0], '/');

		return asprintf(&text, "command %s", slash ? slash + 1 : o->argv[0]) < 0 ? NULL
											 : text;
	}
	if (proc_read(o->pids[0], 0, "comm", 4096, &comm, &len))
		comm = strdup("?");
	if (!comm)
		return NULL;
	comm[strcspn(comm, "\n")] = 0;
	if (o->npids > 1)
		return asprintf(&text, "process %d (%s) and %zu more", o->pids[0], comm,
				o->npids - 1) < 0
			       ? NULL
			       : text;
	return asprintf(&text, "process %d (%s)", o->pids[0], comm) < 0 ? NULL : text;
}

static int begin_manifest(struct record *rec)
{
	struct recording_manifest *m = &rec->manifest;
	int r = recording_manifest_begin(m, RECORD_TOOL);

	m->target = target_text(rec->options);
	m->event = strdup(rec->options->no_cpu ? RECORDING_NO_EVENT : rec->result->event);
	m->freq_hz = freq_hz(rec->options);
	m->start_realtime_ns = rec->result->start_realtime_ns;
	m->start_monotonic_ns = rec->result->start_monotonic_ns;
	m->unwound = rec->options->stack_bytes > 0;
	if (rec->options->jit_names != JIT_NAMES_AUTO)
		m->jit_names = strdup(jit_names_option_word(rec->options->jit_names));
	if (sampler_locks_freely(NULL))
		m->ring_memory = strdup(RECORDING_RINGS_FREE);
	if (r || !m->target || !m->event) {
		log_error("cannot record: out of memory");
		return -ENOMEM;
	}
	return 0;
}

static int open_sampler(struct record *rec)
{
	const struct record_options *o = rec->options;
	struct sampler_problem problem;
	struct sampler_options so = {
		.pids = o->pids,
		.npids = o->npids,
		.system_wide = o->system_wide,
		.command = o->npids || o->system_wide ? 0 : rec->command.pid,
		.events = rec->events,
		.nevents = rec->nevents,
		.events_chosen = !o->nevents && !o->no_cpu,
		.freq_hz = freq_hz(o),
		.period = o->period,
		.no_kernel_stacks = o->no_kernel_stacks,
		.no_user_stacks = o->no_user_stacks,
		.max_stack = o->max_stack,
		.stack_bytes = o->stack_bytes,
		.identified = o->off_cpu,
		.roots = o->roots,
		.mode = o->off_cpu && o->mode == SAMPLER_AUTO ? SAMPLER_CPUS : o->mode,
		.count = o->count || rec->progress.shown,
	};
	size_t n;

	if (record_switches_open(&rec->switches, o, &problem))
		return report_problem(&problem);
	so.locked_bytes = rec->switches.rings ? switch_rings_locked(rec->switches.rings) : 0;
	if (sampler_open(&so, &rec->sampler, &problem))
		return report_problem(&problem);
	rec->result->start_realtime_ns = clock_realtime_ns();
	rec->result->start_monotonic_ns = clock_monotonic_ns();
	rec->result->setup = *sampler_setup(rec->sampler);
	snprintf(rec->result->event, sizeof(rec->result->event), "%s",
		 sampler_opened(rec->sampler, &n)[0].name);
	if (rec->result->setup.note[0] && !o->quiet)
		log_note("%s", rec->result->setup.note);
	return 0;
}

/* Whether 32-bit programs may be sampled. Children of targets are expected to be like these. */
static bool may_have_32bit(const struct record_options *o)
{
	bool is_32 = o->system_wide || o->argv || !o->npids;

	for (size_t i = 0; i < o->npids && !is_32; i++)
		(void)blocked_is_32(o->roots.proc ? o->roots.proc : "/proc", o->pids[i], &is_32);
	return is_32;
}

static int begin_unwind(struct record *rec, const struct sampler_opened *opened, size_t n)
{
	const struct record_options *o = rec->options;
	struct sampler_opened all[SAMPLER_EVENTS_MAX + RECORD_SWITCHES_EVENTS];
	struct record_unwind_options options = {.opener = o->opener,
						.stack_bytes = o->stack_bytes,
						.stack_fixed = o->stack_fixed,
						.read_code = true,
						.keep = o->keep_stacks,
						.keep_32bit = may_have_32bit(o),
						.frames_max = o->frames_max,
						.opened = all,
						.nopened = n,
						.proc = o->roots.proc,
						.identity = rec->result->start_realtime_ns,
						.idx_fd = -1,
						.offcpu_idx_fd = -1};
	int r = o->off_cpu ? record_switches_begin(&rec->switches, o) : 0;

	memcpy(all, opened, n * sizeof(*all));
	options.nopened +=
		record_switches_opened(&rec->switches, all + n, &options.waking_pid_offset);
	options.wakings = options.nopened == n + RECORD_SWITCHES_EVENTS;
	options.read_waker = o->system_wide ? NULL : sampler_synthesize_process;
	options.waker_wait_ns = RECORD_UNWIND_WAKER_WAIT_NS;
	options.synthesis = sampler_synthesis(rec->sampler);
	options.offcpu = rec->switches.offcpu;
	if (!r && o->stack_bytes)
		r = file_create(o->dir_fd, RECORD_IDX_BEGUN, O_WRONLY, REPLACE_PRIVATE,
				&options.idx_fd);
	if (!r && o->stack_bytes && options.offcpu) {
		r = file_create(o->dir_fd, RECORD_OFFCPU_IDX_BEGUN, O_WRONLY, REPLACE_PRIVATE,
				&options.offcpu_idx_fd);
		if (r)
			close(options.idx_fd);
	}
	rec->manifest.blanks_copies =
		o->stack_bytes && options.keep == KEEP_STACKS_NONE && options.keep_32bit;
	return r || !o->stack_bytes ? r : record_unwind_new(&options, &rec->unwind);
}

static int open_writer(struct record *rec)
{
	static const char *const cmdline[] = {"profcpu", "collect", NULL};
	struct perfdata_writer_event events[SAMPLER_EVENTS_MAX + RECORD_SWITCHES_EVENTS];
	struct perfdata_writer_info info = {
		.version = RECORD_TOOL,
		.cmdline = cmdline,
		.start_realtime_ns = rec->result->start_realtime_ns,
		.start_monotonic_ns = rec->result->start_monotonic_ns,
	};
	struct sampler_listener listener = record_listener(rec);
	AUTO_FREE char *tracing = NULL;
	size_t n;
	const struct sampler_opened *opened = sampler_opened(rec->sampler, &n);
	int r = file_create(rec->options->dir_fd, RECORD_BEGUN, O_RDWR, REPLACE_PRIVATE,
			    &rec->data_fd);

	if (!r && fstat(rec->data_fd, &rec->result->written))
		r = -errno;
	if (r)
		return record_report_io(rec, "write", RECORDING_PERF_DATA, r);
	r = tracing_data_read(&rec->options->roots, rec->events, rec->nevents, &tracing,
			      &info.tracing_bytes);

	info.tracing_data = tracing;
	if (r)
		log_warn("cannot read the tracepoint formats: %s; perf cannot open this perf.data",
			 strerror(-r));
	r = begin_unwind(rec, opened, n);
	if (r == -EAGAIN) {
		log_error("cannot start a thread: %s%s", strerror(-r), remedy_for(r));
		return r;
	}
	if (r)
		return record_report_io(rec, "write", RECORDING_SAMPLES, r);
	/* Samples of a single event need no ids. */
	for (size_t i = 0; i < n; i++)
		events[i] = (struct perfdata_writer_event){
			rec->unwind ? record_unwind_attr(rec->unwind, &opened[i].attr)
				    : opened[i].attr,
			opened[i].name, opened[i].ids, opened[i].nids,
			n > 1 || rec->options->off_cpu ? RECORD_IDS_ROOM : 0};
	n += record_switches_events(&rec->switches, &opened[0].attr, events + n);
	r = perfdata_writer_new(rec->data_fd, events, n, &info, &rec->writer);
	if (r)
		return record_report_io(rec, "write", RECORDING_PERF_DATA, r);
	return sampler_listen(rec->sampler, &listener);
}

static int watch_targets(struct record *rec)
{
	const struct record_options *o = rec->options;
	int r = record_watch_sampler(&rec->watch, sampler_poll_fd(rec->sampler));

	if (!r && rec->switches.rings)
		r = record_watch_fd(&rec->watch, switch_rings_poll_fd(rec->switches.rings));
	if (!r && record_switches_timer(&rec->switches) >= 0)
		r = record_watch_fd(&rec->watch, record_switches_timer(&rec->switches));
	if (!r && rec->command.pid)
		return record_watch_process(&rec->watch, rec->command.pid);
	for (size_t i = 0; i < o->npids && !o->system_wide && !r; i++)
		r = record_watch_process(&rec->watch, o->pids[i]);
	return r;
}

int record_begin(struct record *rec)
{
	const struct record_options *o = rec->options;
	int r = parse_events(rec);

	if (!r && (r = record_watch_new(&rec->watch)))
		log_error("cannot wait for signals: %s%s", strerror(-r), remedy_for(r));
	if (!r && o->argv && (r = record_child_fork(&rec->command, o->argv, &rec->watch.old_mask)))
		log_error("cannot start %s: %s%s", o->argv[0], strerror(-r), remedy_for(r));
	record_watch_survive_writes();
	if (!r)
		r = open_sampler(rec);
	if (!r)
		r = record_check_signal(rec);
	if (!r && o->reserved_descriptors)
		r = descriptor_budget_check(BEGIN_DESCRIPTORS + o->reserved_descriptors);
	if (!r)
		r = open_writer(rec);
	if (!r)
		r = begin_manifest(rec);
	if (!r && (r = watch_targets(rec)))
		log_error("cannot watch the targets: %s%s", strerror(-r), remedy_for(r));
	if (!r && (r = sampler_synthesize(rec->sampler)) && r != -EINTR)
		record_report_io(rec, "write", RECORDING_PERF_DATA, r);
	return r ? r : record_check_signal(rec);
}

/* Removes files of a recording that never began. */
void record_remove_unbegun(const struct record *rec)
{
	if (rec->data_fd < 0)
		return;
	unlinkat(rec->options->dir_fd, rec->in_place ? RECORDING_PERF_DATA : RECORD_BEGUN, 0);
	if (rec->options->stack_bytes)
		unlinkat(rec->options->dir_fd, rec->in_place ? RECORDING_SAMPLES : RECORD_IDX_BEGUN,
			 0);
	if (rec->options->off_cpu)
		unlinkat(rec->options->dir_fd,
			 rec->in_place ? RECORDING_OFFCPU : RECORD_OFFCPU_IDX_BEGUN, 0);
	if (rec->in_place)
		unlinkat(rec->options->dir_fd, RECORDING_MANIFEST, 0);
}
