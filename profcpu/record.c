#include "profcpu/record.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/replace.h"
#include "container/proc.h"
#include "profcpu/mend.h"
#include "profcpu/record_command.h"
#include "profcpu/record_detached.h"
#include "profcpu/record_farewell.h"
#include "profcpu/record_hold.h"
#include "profcpu/record_spare.h"
#include "profcpu/record_switches.h"
#include "profcpu/record_watch.h"
#include "profcpu/version.h"
#include "recording/perfdata_writer.h"
#include "recording/recording.h"
#include "sampler/tracing_data.h"
#include "symbols/jit_methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define RECORD_FREQ_HZ 99
#define RECORD_IDS_ROOM 64 /* of each event, for CPUs that come online */
#define RECORD_NEWS_MS 100 /* by then new processes are known, whose code may be gone with them soon */
#define RECORD_TOOL "profcpu " PROFCPU_VERSION
#define RECORD_BEGUN RECORDING_PERF_DATA ".new" /* until nothing can keep the recording from beginning */
#define RECORD_IDX_BEGUN RECORDING_SAMPLES ".new"
#define RECORD_OFFCPU_IDX_BEGUN RECORDING_OFFCPU ".new"
#define RECORD_OLDER RECORDING_PERF_DATA ".old" /* perf record's name for it */

struct record {
	const struct record_options *options;
	struct record_result *result;
	struct sampler_event events[SAMPLER_EVENTS_MAX];
	size_t nevents;
	int data_fd;
	bool in_place; /* the data have their name */
	struct record_command command;
	struct record_watch watch;
	struct sampler *sampler;
	struct perfdata_writer *writer;
	uint32_t stack_bytes; /* that samples copy now */
	struct record_switches switches;
	struct record_unwind *unwind; /* NULL: callchains are written as the kernel made them */
	struct recording_manifest manifest;
	struct progress progress;
	struct record_hold hold;
	struct record_detached detached;
	struct jit_capture *capture; /* NULL: names of JIT-compiled code are not taken */
	int error; /* what ended the recording early */
};

static int say_problem(const struct sampler_problem *p)
{
	log_error("cannot %s %s", p->what, p->detail);
	return p->code;
}

static int parse_events(struct record *rec)
{
	const struct record_options *o = rec->options;
	struct sampler_problem problem;
	const char *why = "";

	if (!o->nevents) {
		sampler_event_default(&o->roots, rec->events, &rec->nevents, &why);
		snprintf(rec->result->event_why, sizeof(rec->result->event_why), "%s", why);
		return 0;
	}
	if (o->nevents > SAMPLER_EVENTS_MAX) {
		log_error("cannot record %zu events, %d are the limit", o->nevents,
			  SAMPLER_EVENTS_MAX);
		return -E2BIG;
	}
	for (size_t i = 0; i < o->nevents; i++)
		if (sampler_event_parse(&o->roots, o->events[i], &rec->events[i], &problem))
			return say_problem(&problem);
	rec->nevents = o->nevents;
	return 0;
}

static int say_io(const struct record *rec, const char *verb, const char *name, int error)
{
	log_error("cannot %s %s%s%s: %s%s", verb, rec->options->dir, *name ? "/" : "", name,
		  strerror(-error), mend_of(error));
	return error;
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

static int write_manifest(struct record *rec)
{
	int r = recording_manifest_write(rec->options->dir_fd, &rec->manifest);

	return r ? say_io(rec, "write", RECORDING_MANIFEST, r) : 0;
}

static int begin_manifest(struct record *rec)
{
	struct recording_manifest *m = &rec->manifest;
	struct utsname uts = {0};

	uname(&uts);
	m->format = RECORDING_FORMAT;
	m->tool = strdup(RECORD_TOOL);
	m->host = strdup(uts.nodename);
	m->os_release = strdup(uts.release);
	m->arch = strdup(uts.machine);
	m->target = target_text(rec->options);
	m->event = strdup(rec->result->event);
	m->freq_hz = rec->options->period    ? 0
		     : rec->options->freq_hz ? rec->options->freq_hz
					     : RECORD_FREQ_HZ;
	m->start_realtime_ns = rec->result->start_realtime_ns;
	m->start_monotonic_ns = rec->result->start_monotonic_ns;
	if (rec->options->jit_names != JIT_NAMES_AUTO)
		m->jit_names = strdup(jit_names_word(rec->options->jit_names));
	if (sampler_locks_freely())
		m->ring_memory = strdup(RECORDING_RINGS_FREE);
	if (!m->tool || !m->host || !m->os_release || !m->arch || !m->target || !m->event) {
		log_error("cannot record: out of memory");
		return -ENOMEM;
	}
	return 0;
}

/* A signal while recording begins, which takes long where there are many processes: nothing is kept then. */
static int check_signal(struct record *rec)
{
	int signal = record_watch_signal(&rec->watch);

	if (!signal)
		return 0;
	rec->result->end = RECORD_END_SIGNAL;
	rec->result->end_signal = signal;
	log_error("ended by %s before the recording began; nothing was kept",
		  signal == SIGINT ? "Ctrl-C" : signal == SIGTERM ? "SIGTERM" : "SIGHUP");
	return -EINTR;
}

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct record *rec = ctx;
	int r = cpu < 0 ? check_signal(rec) : 0; /* -1: of /proc, before the first round */

	if (r)
		return r;
	return rec->unwind ? record_unwind_records(rec->unwind, data, len) : perfdata_writer_records(rec->writer, data, len);
}

static int take_round(void *ctx)
{
	struct record *rec = ctx;
	int r;

	record_hold_round(&rec->hold);
	if (!rec->unwind)
		return perfdata_writer_round(rec->writer);
	r = record_switches_take(&rec->switches, rec->unwind);
	if (!r)
		r = record_unwind_round(rec->unwind, rec->writer, 0);
	int released = record_switches_release(&rec->switches);

	return r ? r : released;
}

/* Where rings are read. */
static int drain(struct record *rec)
{
	int r = record_switches_turn(&rec->switches);

	if (r)
		return r < 0 ? r : 0;
	record_switches_mark(&rec->switches);
	r = sampler_drain(rec->sampler);
	return r ? r : record_switches_was_read(&rec->switches);
}

static int take_process(void *ctx, pid_t pid, enum sampler_news news)
{
	struct record *rec = ctx;

	if (news == SAMPLER_PROCESS_DETACHED)
		record_detached_add(&rec->detached, pid,
				    pid == rec->command.pid ? rec->options->argv[0] : NULL);
	/* The command is the one that matters, however short it lives. */
	else
		record_hold_news(&rec->hold, pid, news, pid == rec->command.pid);
	if (rec->capture && (news == SAMPLER_PROCESS_NEW || news == SAMPLER_PROCESS_ELSEWHERE))
		jit_capture_process(rec->capture, pid);
	return 0;
}

static int take_event_id(void *ctx, size_t event, uint64_t id)
{
	struct record *rec = ctx;
	int r = rec->unwind ? record_unwind_event_id(rec->unwind, event, id) : 0;

	return r ? r : perfdata_writer_add_id(rec->writer, event, id);
}

static void hold_targets(struct record *rec)
{
	const struct record_options *o = rec->options;

	if (o->system_wide)
		record_hold_all(&rec->hold);
	for (size_t i = 0; i < o->npids && !o->system_wide && o->opener; i++)
		(void)opener_hold(o->opener, o->pids[i]);
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
		.events_chosen = !o->nevents,
		.freq_hz = o->period    ? 0
			   : o->freq_hz ? o->freq_hz
					: RECORD_FREQ_HZ,
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
		return say_problem(&problem);
	so.locked_bytes = rec->switches.switches ? switches_locked(rec->switches.switches) : 0;
	if (sampler_open(&so, &rec->sampler, &problem))
		return say_problem(&problem);
	rec->result->start_realtime_ns = clock_realtime_ns();
	rec->result->start_monotonic_ns = clock_monotonic_ns();
	rec->result->setup = *sampler_setup(rec->sampler);
	snprintf(rec->result->event, sizeof(rec->result->event), "%s",
		 sampler_opened(rec->sampler, &n)[0].name);
	if (rec->result->setup.note[0] && !o->quiet)
		log_note("%s", rec->result->setup.note);
	return 0;
}

/* Of an older recording in the same directory: its names would be taken for ours, which has other
 * addresses, and its outputs for what is in ours. */
static void remove_older(const struct record *rec)
{
	static const char *const names[] = {RECORDING_SVG,    RECORDING_FOLDED,	 RECORDING_SCRIPT,
					    RECORDING_REPORT, RECORDING_ARCHIVE, RECORDING_SAMPLES,
					    RECORDING_OFFCPU_FOLDED, RECORDING_OFFCPU_SVG, RECORDING_OFFCPU,
					    RECORDING_WALL_FOLDED, RECORDING_WALL_SVG, RECORDING_WAKEUP_FOLDED, RECORDING_WAKEUP_SVG};
	AUTO_CLOSE int symbols_fd = openat(rec->options->dir_fd, RECORDING_SYMBOLS,
					   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (symbols_fd >= 0) {
		(void)unlinkat(symbols_fd, RECORDING_NAMES, 0);
		(void)unlinkat(symbols_fd, RECORDING_STACKS, 0);
		(void)jit_methods_remove(symbols_fd);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(rec->options->dir_fd, names[i], 0);
}

static int meet_process(void *ctx, int32_t pid, int (*take)(void *ctx, const void *data, size_t len), void *take_ctx)
{
	struct record *rec = ctx;

	return sampler_synthesize_process(rec->sampler, pid, take, take_ctx);
}

static int begin_unwind(struct record *rec, const struct sampler_opened *opened, size_t n)
{
	const struct record_options *o = rec->options;
	struct sampler_opened all[SAMPLER_EVENTS_MAX + RECORD_SWITCHES_EVENTS];
	struct record_unwind_options options = {
		.opener = o->opener, .stack_bytes = o->stack_bytes, .stack_fixed = o->stack_fixed, .read_code = true,
		.keep = o->keep_stacks, .frames_max = o->frames_max, .opened = all, .nopened = n,
		.proc = o->roots.proc, .identity = rec->result->start_realtime_ns, .idx_fd = -1, .offcpu_idx_fd = -1};
	int r = o->off_cpu ? record_switches_begin(&rec->switches, o, rec->result->start_monotonic_ns) : 0;

	memcpy(all, opened, n * sizeof(*all));
	options.nopened += record_switches_opened(&rec->switches, all + n, &options.waking_pid_offset);
	options.wakings = options.nopened == n + RECORD_SWITCHES_EVENTS;
	options.meet = o->system_wide ? NULL : meet_process;
	options.meet_ctx = rec;
	options.offcpu = rec->switches.offcpu;
	if (!r && o->stack_bytes)
		r = file_create(o->dir_fd, RECORD_IDX_BEGUN, O_WRONLY, REPLACE_PRIVATE, &options.idx_fd);
	if (!r && o->stack_bytes && options.offcpu) {
		r = file_create(o->dir_fd, RECORD_OFFCPU_IDX_BEGUN, O_WRONLY, REPLACE_PRIVATE, &options.offcpu_idx_fd);
		if (r)
			close(options.idx_fd);
	}
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
	struct sampler_listener listener = {rec, take_records, take_round, take_process,
					    take_event_id};
	AUTO_FREE char *tracing = NULL;
	size_t n;
	const struct sampler_opened *opened = sampler_opened(rec->sampler, &n);
	int r = file_create(rec->options->dir_fd, RECORD_BEGUN, O_RDWR, REPLACE_PRIVATE, &rec->data_fd);

	if (r)
		return say_io(rec, "write", RECORDING_PERF_DATA, r);
	r = tracing_data_read(&rec->options->roots, rec->events, rec->nevents, &tracing,
			      &info.tracing_bytes);

	info.tracing_data = tracing;
	if (r)
		log_warn("cannot read the formats of the tracepoints: %s; perf will not open this "
			 "perf.data",
			 strerror(-r));
	r = begin_unwind(rec, opened, n);
	if (r)
		return say_io(rec, "write", RECORDING_SAMPLES, r);
	/* The samples of one event need no ids. */
	for (size_t i = 0; i < n; i++)
		events[i] = (struct perfdata_writer_event){
			rec->unwind ? record_unwind_attr(rec->unwind, &opened[i].attr) : opened[i].attr, opened[i].name,
			opened[i].ids, opened[i].nids, n > 1 || rec->options->off_cpu ? RECORD_IDS_ROOM : 0};
	n += record_switches_events(&rec->switches, &opened[0].attr, events + n);
	r = perfdata_writer_new(rec->data_fd, events, n, &info, &rec->writer);
	if (r)
		return say_io(rec, "write", RECORDING_PERF_DATA, r);
	return sampler_listen(rec->sampler, &listener);
}

static int watch_targets(struct record *rec)
{
	const struct record_options *o = rec->options;
	int r = record_watch_sampler(&rec->watch, sampler_poll_fd(rec->sampler));

	if (!r && rec->switches.switches)
		r = record_watch_switches(&rec->watch, switches_poll_fd(rec->switches.switches));
	if (!r && rec->switches.shed)
		r = record_watch_switches(&rec->watch, record_switches_timer(&rec->switches));
	if (!r && rec->command.pid)
		return record_watch_process(&rec->watch, rec->command.pid);
	for (size_t i = 0; i < o->npids && !o->system_wide && !r; i++)
		r = record_watch_process(&rec->watch, o->pids[i]);
	return r;
}

static int start_command(struct record *rec)
{
	int r = rec->command.pid ? record_command_go(&rec->command) : 0;

	rec->result->command_error = r;
	if (r)
		log_error("cannot execute %s: %s", rec->options->argv[0], strerror(-r));
	return r;
}

/* Only now, so that a recording that cannot begin does not cost an older one in the same directory. */
static int take_place(struct record *rec)
{
	const struct record_options *o = rec->options;
	bool older = !renameat(o->dir_fd, RECORDING_PERF_DATA, o->dir_fd, RECORD_OLDER);

	if (!older && errno != ENOENT)
		return say_io(rec, "move aside", RECORDING_PERF_DATA, -errno);
	if (renameat(o->dir_fd, RECORD_BEGUN, o->dir_fd, RECORDING_PERF_DATA))
		return say_io(rec, "write", RECORDING_PERF_DATA, -errno);
	rec->in_place = true;
	remove_older(rec);
	if (rec->unwind && renameat(o->dir_fd, RECORD_IDX_BEGUN, o->dir_fd, RECORDING_SAMPLES))
		return say_io(rec, "write", RECORDING_SAMPLES, -errno);
	if (rec->unwind && rec->switches.offcpu && renameat(o->dir_fd, RECORD_OFFCPU_IDX_BEGUN, o->dir_fd, RECORDING_OFFCPU))
		return say_io(rec, "write", RECORDING_OFFCPU, -errno);
	if (older && !o->quiet)
		log_note("the recording that was in %s is replaced; its samples are kept in " RECORD_OLDER, o->dir);
	return write_manifest(rec);
}

/* Without it the recording is worth having all the same. After the signals were blocked, which its thread inherits. */
static void begin_capture(struct record *rec)
{
	const struct record_options *o = rec->options;
	int r = o->jit_names == JIT_NAMES_NONE ? -ECANCELED : jit_capture_new(o->jit_names, o->dir_fd, &rec->capture);

	if (!r && o->jit_lines)
		jit_capture_want_lines(rec->capture);
	for (size_t i = 0; i < o->npids && !r; i++)
		jit_capture_process(rec->capture, o->pids[i]);
	if (!r && rec->command.pid)
		jit_capture_process(rec->capture, rec->command.pid);
	if (!r)
		r = jit_capture_start(rec->capture, o->system_wide);
	if (r && r != -ECANCELED)
		log_warn("the names of JIT-compiled code cannot be taken: %s%s", strerror(-r), mend_of(r));
}

static int begin(struct record *rec)
{
	const struct record_options *o = rec->options;
	int r = parse_events(rec);

	if (!r && (r = record_watch_new(&rec->watch)))
		log_error("cannot wait for signals: %s%s", strerror(-r), mend_of(r));
	if (!r && o->argv &&
	    (r = record_command_fork(&rec->command, o->argv, &rec->watch.old_mask)))
		log_error("cannot start %s: %s%s", o->argv[0], strerror(-r), mend_of(r));
	record_watch_survive_writes();
	if (!r)
		r = open_sampler(rec);
	if (!r)
		r = check_signal(rec);
	if (!r)
		r = open_writer(rec);
	if (!r)
		r = begin_manifest(rec);
	if (!r && (r = watch_targets(rec)))
		log_error("cannot watch the targets: %s%s", strerror(-r), mend_of(r));
	if (!r)
		r = record_spare_check(rec->options->spare_descriptors);
	if (!r && (r = sampler_synthesize(rec->sampler)) && r != -EINTR)
		say_io(rec, "write", RECORDING_PERF_DATA, r);
	if (!r)
		r = check_signal(rec);
	if (!r)
		r = start_command(rec);
	if (!r && (r = take_place(rec)) && rec->command.pid)
		kill(rec->command.pid, SIGTERM);
	return r;
}

static uint64_t lost(const struct sampler_stats *s)
{
	return s->lost_records > s->lost_samples ? s->lost_records : s->lost_samples;
}

static void show_progress(struct record *rec, uint64_t now)
{
	const struct sampler_stats *s = sampler_stats(rec->sampler);
	uint64_t passed = now - rec->result->start_monotonic_ns, whole = rec->options->duration_ns;

	if (whole)
		progress_show(&rec->progress, "recording: %llu s left, %llu samples, %llu lost",
			      (unsigned long long)(whole > passed ? (whole - passed + NS_PER_S -
								     1) / NS_PER_S
								  : 0),
			      (unsigned long long)s->samples, (unsigned long long)lost(s));
	else
		progress_show(&rec->progress,
			      "recording: %llu s, %llu samples, %llu lost; Ctrl-C ends it",
			      (unsigned long long)(passed / NS_PER_S),
			      (unsigned long long)s->samples, (unsigned long long)lost(s));
}

/* Milliseconds until the next look at the rings. */
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
		return record_command_ended(&rec->command);
	return !rec->options->system_wide && !record_watch_alive(&rec->watch);
}

/* Ctrl-C reaches us and the command alike: its end may be seen before the signal that has ended both. */
static enum record_end end_of_targets(struct record *rec)
{
	(void)record_watch_wait(&rec->watch, 0, &rec->result->end_signal);
	return rec->result->end_signal ? RECORD_END_SIGNAL : RECORD_END_TARGET;
}

/* Copies of stacks become larger or smaller as stacks turn out to be. */
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
		record_unwind_keep_stack_bytes(rec->unwind, rec->stack_bytes);
	if (r && wanted > rec->stack_bytes)
		log_warn("stacks deeper than %u bytes end there: copies cannot be made larger: %s", rec->stack_bytes, strerror(-r));
}

static enum record_end record_until_end(struct record *rec)
{
	struct record_result *result = rec->result;

	/* A ring that got full before it was polled does not wake anybody. */
	rec->error = drain(rec);
	while (!rec->error) {
		uint64_t now = clock_monotonic_ns();

		if (rec->options->duration_ns &&
		    now - result->start_monotonic_ns >= rec->options->duration_ns)
			return RECORD_END_DURATION;
		if (targets_ended(rec))
			return end_of_targets(rec);
		rec->error =
			record_watch_wait(&rec->watch, next_timeout(rec, now), &result->end_signal);
		if (!rec->error && !result->end_signal)
			rec->error = drain(rec);
		if (!rec->error && !result->end_signal)
			rec->error = sampler_follow_cpus(rec->sampler);
		if (!rec->error && result->end_signal)
			return RECORD_END_SIGNAL;
		if (rec->error)
			break;
		follow_stacks(rec);
		show_progress(rec, clock_monotonic_ns());
	}
	return RECORD_END_ERROR;
}

/* "CPU 3", "CPU 3 and 2 more". */
static const char *cpus_text(char *buf, size_t cap, int first, uint64_t n)
{
	int len = snprintf(buf, cap, "CPU %d", first);

	if (n > 1)
		snprintf(buf + len, cap - (size_t)len, " and %llu more", (unsigned long long)n - 1);
	return buf;
}

static void say_cpus(const struct record *rec, const struct sampler_stats *s)
{
	char text[64];

	if (s->cpus_missed)
		log_warn("not sampled: %s, online only since the recording began; %s",
			 cpus_text(text, sizeof(text), s->cpu_missed, s->cpus_missed),
			 rec->result->setup.mode == SAMPLER_CPUS
				 ? "events could not be opened for it"
				 : "events of processes are for the CPUs that there were, those of "
				   "the whole machine (-a) follow");
	if (s->cpus_added && !rec->options->quiet)
		log_note("sampled since it came online: %s",
			 cpus_text(text, sizeof(text), s->cpu_added, s->cpus_added));
}

/* For those who read the recording later. */
static void keep_damage(struct record *rec, const char *what)
{
	const char *before = rec->manifest.damage ? rec->manifest.damage : "";
	char *both;

	if (asprintf(&both, "%s%s%s", before, *before ? "; " : "", what) < 0)
		return;
	free(rec->manifest.damage);
	rec->manifest.damage = both;
}

/* Why samples are missing, for now and for later. */
static void say_early_end(struct record *rec)
{
	double passed = (double)rec->result->duration_ns / (double)NS_PER_S,
	       whole = (double)rec->options->duration_ns / (double)NS_PER_S;
	char after[64], damage[256];
	int n = snprintf(after, sizeof(after), "after %.2f ", passed);

	if (rec->options->duration_ns)
		n += snprintf(after + n, sizeof(after) - (size_t)n, "of %.6g ", whole);
	snprintf(after + n, sizeof(after) - (size_t)n, "s");
	log_error("cannot go on writing %s/" RECORDING_PERF_DATA " %s: %s%s", rec->options->dir,
		  after, strerror(-rec->error), mend_of(rec->error));
	snprintf(damage, sizeof(damage), "the recording ended %s: %s", after, strerror(-rec->error));
	keep_damage(rec, damage);
}

/* After it: a second signal ends the program at once. */
static int finish(struct record *rec)
{
	const struct sampler_stats *s = sampler_stats(rec->sampler);
	int r;

	rec->result->duration_ns = clock_monotonic_ns() - rec->result->start_monotonic_ns;
	record_farewell_set(rec->options->dir);
	record_watch_unmask(&rec->watch);
	progress_clear(&rec->progress);
	progress_close(&rec->progress);
	uint64_t end_ns = record_switches_stop(&rec->switches);

	r = sampler_stop(rec->sampler);
	if (!rec->error)
		rec->error = r;
	/* Whatever happened, how long threads were there is known now. */
	r = rec->unwind ? record_unwind_round(rec->unwind, rec->writer, end_ns) : 0;
	if (!rec->error)
		rec->error = r;
	r = perfdata_writer_finish(rec->writer, s->first_sample_ns, s->last_sample_ns);
	if (!rec->error)
		rec->error = r;
	/* After perf.data, which is whole now whatever a target makes of the rest. */
	if (rec->capture)
		jit_capture_end(rec->capture);
	if (rec->error) {
		rec->result->end = RECORD_END_ERROR;
		say_early_end(rec);
	}
	record_detached_say(&rec->detached);
	if (rec->capture)
		jit_capture_say(rec->capture, rec->options->quiet);
	rec->result->names_lost = rec->capture && !jit_capture_is_written(rec->capture);
	if (rec->result->names_lost)
		keep_damage(rec, "names of JIT-compiled code could not all be written");
	say_cpus(rec, s);
	struct record_unwind_stats unwind = {0};

	if (rec->unwind)
		unwind = record_unwind_stats(rec->unwind);
	if (unwind.damaged)
		log_warn("%llu records from the kernel made no sense and are left out", (unsigned long long)unwind.damaged);
	if (unwind.refused)
		log_warn("the stacks of %llu threads that waited already cannot be read: that needs CAP_SYS_PTRACE, or the target's user",
			 (unsigned long long)unwind.refused);
	if (unwind.dropped)
		log_warn("the stacks of %llu threads that waited already were not read: there are too many, or a process's memory did not answer in time",
			 (unsigned long long)unwind.dropped);
	if (!rec->options->quiet)
		record_switches_say(&rec->switches, rec->options->off_cpu_min_ns);
	rec->result->detached = rec->detached.count;
	rec->result->samples = s->samples;
	rec->result->lost = lost(s);
	rec->result->data_bytes = perfdata_writer_bytes(rec->writer);
	rec->manifest.duration_ns = rec->result->duration_ns;
	rec->manifest.finished = true;
	r = write_manifest(rec);
	return rec->error ? rec->error : r;
}

static void end_command(struct record *rec)
{
	struct record_result *result = rec->result;

	if (!rec->command.pid)
		return;
	if (result->end == RECORD_END_SIGNAL && !record_command_ended(&rec->command))
		kill(rec->command.pid, result->end_signal);
	result->command_ended = record_command_ended(&rec->command);
	result->command_status = rec->command.status;
	if (!result->command_ended && result->end != RECORD_END_SIGNAL && !rec->options->quiet)
		log_note("%s goes on running as process %d", rec->options->argv[0],
			 rec->command.pid);
}

/* A recording that never began leaves nothing to be taken for one. */
static void remove_unbegun(const struct record *rec)
{
	if (rec->data_fd < 0)
		return;
	unlinkat(rec->options->dir_fd, rec->in_place ? RECORDING_PERF_DATA : RECORD_BEGUN, 0);
	if (rec->options->stack_bytes)
		unlinkat(rec->options->dir_fd, rec->in_place ? RECORDING_SAMPLES : RECORD_IDX_BEGUN, 0);
	if (rec->options->off_cpu)
		unlinkat(rec->options->dir_fd, rec->in_place ? RECORDING_OFFCPU : RECORD_OFFCPU_IDX_BEGUN, 0);
	if (rec->in_place)
		unlinkat(rec->options->dir_fd, RECORDING_MANIFEST, 0);
}

static void release(struct record *rec)
{
	progress_close(&rec->progress);
	jit_capture_free(rec->capture);
	record_command_release(&rec->command);
	perfdata_writer_free(rec->writer);
	record_unwind_free(rec->unwind);
	record_switches_free(&rec->switches);
	sampler_close(rec->sampler);
	record_watch_free(&rec->watch);
	recording_manifest_free(&rec->manifest);
	record_hold_free(&rec->hold);
	if (rec->data_fd >= 0)
		close(rec->data_fd);
}

int record_run(const struct record_options *options, struct record_result *ret_result)
{
	struct record rec = {.options = options,
			     .result = ret_result,
			     .data_fd = -1,
			     .watch = RECORD_WATCH_NONE,
			     .stack_bytes = options->stack_bytes};
	int r;

	*ret_result = (struct record_result){.end = RECORD_END_ERROR};
	if (!options->npids && !options->system_wide && !options->argv) {
		log_error("cannot record: no process, no command and not the whole machine was "
			  "named");
		return -EINVAL;
	}
	rec.progress = progress_to(2, options->quiet);
	r = record_hold_new(&rec.hold, options->opener, options->system_wide);
	if (r)
		log_error("cannot record: out of memory");
	else
		r = begin(&rec);
	if (!r) {
		ret_result->started = true;
		hold_targets(&rec);
		begin_capture(&rec);
		ret_result->end = record_until_end(&rec);
		r = finish(&rec);
		end_command(&rec);
	} else {
		remove_unbegun(&rec);
	}
	release(&rec);
	return r;
}
