#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "container/access.h"
#include "profcpu/command.h"
#include "profcpu/options.h"
#include "profcpu/outdir.h"
#include "profcpu/postprocess.h"
#include "profcpu/record.h"
#include "profcpu/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define COLLECT_SECONDS 30
#define COLLECT_HZ 99
#define COLLECT_HZ_MAX 100000
#define COLLECT_STACK_BYTES 24576 /* to begin with: all of 93 to 99 of a hundred stacks of .NET services */
#define COLLECT_OFF_CPU_MIN_MAX_US UINT64_C(3600000000)
#define COLLECT_MAX_OVERHEAD_LEAST 0.5 /* percent: reading the rings alone takes some tenths */
#define COLLECT_SPARE_DESCRIPTORS 16 /* for the manifest, /proc, the files of the targets and of each name */

struct collect_arguments {
	struct record_options record;
	struct postprocess_options post;
	struct fetch_options fetch;
	struct options_pids pids;
	VEC(const char *) events;
	const char *out;
	bool record_only, has_duration;
};

enum collect_option {
	COLLECT_RAW_NAMES = 256,
	COLLECT_MANGLED,
	COLLECT_INLINES,
	COLLECT_LINES,
	COLLECT_TITLE,
	COLLECT_MAX_STACK,
	COLLECT_GRADES,
	COLLECT_IDLE,
	COLLECT_RECORD_ONLY,
	COLLECT_NO_KERNEL,
	COLLECT_JIT_NAMES,
	COLLECT_NO_DOWNLOAD,
	COLLECT_SYMBOL_SERVER,
	COLLECT_CALL_GRAPH,
	COLLECT_KEEP_STACKS,
	COLLECT_OFF_CPU,
	COLLECT_OFF_CPU_MIN,
	COLLECT_MAX_OVERHEAD,
};

static const struct option collect_longopts[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all-cpus", no_argument, NULL, 'a'},
	{"event", required_argument, NULL, 'e'},
	{"frequency", required_argument, NULL, 'F'},
	{"count", required_argument, NULL, 'c'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"raw-names", no_argument, NULL, COLLECT_RAW_NAMES},
	{"mangled", no_argument, NULL, COLLECT_MANGLED},
	{"inlines", no_argument, NULL, COLLECT_INLINES},
	{"lines", no_argument, NULL, COLLECT_LINES},
	{"title", required_argument, NULL, COLLECT_TITLE},
	{"max-stack", required_argument, NULL, COLLECT_MAX_STACK},
	{"grades", no_argument, NULL, COLLECT_GRADES},
	{"idle", no_argument, NULL, COLLECT_IDLE},
	{"record-only", no_argument, NULL, COLLECT_RECORD_ONLY},
	{"no-kernel", no_argument, NULL, COLLECT_NO_KERNEL},
	{"jit-names", required_argument, NULL, COLLECT_JIT_NAMES},
	{"no-download", no_argument, NULL, COLLECT_NO_DOWNLOAD},
	{"symbol-server", required_argument, NULL, COLLECT_SYMBOL_SERVER},
	{"call-graph", required_argument, NULL, COLLECT_CALL_GRAPH},
	{"keep-stacks", required_argument, NULL, COLLECT_KEEP_STACKS},
	{"off-cpu", no_argument, NULL, COLLECT_OFF_CPU},
	{"off-cpu-min", required_argument, NULL, COLLECT_OFF_CPU_MIN},
	{"max-overhead", required_argument, NULL, COLLECT_MAX_OVERHEAD},
	{NULL, 0, NULL, 0},
};

/* "-e a,b -e c": commas separate events, except inside the slashes of "pmu/term,term/". */
static int collect_add_events(struct collect_arguments *a, char *text)
{
	bool slashes = false;
	char *start = text;

	for (char *p = text;; p++) {
		bool end = !*p;

		if (*p == '/')
			slashes = !slashes;
		if (!end && (*p != ',' || slashes))
			continue;
		*p = 0;
		if (vec_push(&a->events, (const char *)start)) {
			log_error("out of memory");
			return -ENOMEM;
		}
		if (end)
			return 0;
		start = p + 1;
	}
}

static int collect_number(const char *option, uint64_t max, uint64_t *ret_value)
{
	return options_u64(option, optarg, 1, max, ret_value);
}

/* "full", "fp", "no"; "full,BYTES" copies so many bytes of each stack. "dwarf" is perf's word for it. */
static int collect_call_graph(struct record_options *record)
{
	const char *comma = strchr(optarg, ',');
	size_t len = comma ? (size_t)(comma - optarg) : strlen(optarg);
	bool full = (len == 4 && !strncmp(optarg, "full", len)) || (len == 5 && !strncmp(optarg, "dwarf", len));
	uint64_t bytes = COLLECT_STACK_BYTES;

	if ((!full && strcmp(optarg, "fp") != 0 && strcmp(optarg, "no") != 0)) {
		log_error("--call-graph: '%s' is none of full, full,BYTES, fp and no", optarg);
		return -EINVAL;
	}
	if (full && !ARCH_IS_HERE) {
		log_error("--call-graph full: stacks are unwound on " ARCH_NAME " only; --call-graph fp follows frame pointers");
		return -EINVAL;
	}
	if (comma && options_u64("--call-graph full,BYTES", comma + 1, COPY_SIZE_MIN / 4, COPY_SIZE_MAX, &bytes))
		return -EINVAL;
	record->stack_bytes = full ? (uint32_t)bytes & ~7u : 0;
	record->stack_fixed = comma != NULL;
	record->no_user_stacks = !strcmp(optarg, "no");
	if (record->no_user_stacks)
		record->no_kernel_stacks = true;
	return 0;
}

static int collect_option_value(struct collect_arguments *a, int c)
{
	uint64_t value = 0;
	int r = 0;

	switch (c) {
	case 'p':
		return options_pids("-p", optarg, &a->pids);
	case 'e':
		return collect_add_events(a, optarg);
	case 'F':
		r = collect_number("-F", COLLECT_HZ_MAX, &value);
		a->record.freq_hz = (uint32_t)value;
		return r;
	case 'c':
		return collect_number("-c", UINT64_MAX / 2, &a->record.period);
	case 'd':
		a->has_duration = true;
		return options_duration("-d", optarg, &a->record.duration_ns);
	case 'o':
		a->out = optarg;
		return 0;
	case COLLECT_MAX_STACK:
		return input_max_stack(&a->post.input, optarg);
	case COLLECT_TITLE:
		a->post.title = optarg;
		return 0;
	case COLLECT_JIT_NAMES:
		r = jit_names_parse(optarg, &a->record.jit_names);
		if (r)
			log_error("--jit-names: '%s' is none of auto, memory, perfmap, rundown and none", optarg);
		return r;
	case COLLECT_SYMBOL_SERVER:
		return fetch_add_server(&a->fetch, optarg);
	case COLLECT_CALL_GRAPH:
		return collect_call_graph(&a->record);
	case COLLECT_KEEP_STACKS:
		r = keep_stacks_parse(optarg, &a->record.keep_stacks);
		if (r)
			log_error("--keep-stacks: '%s' is none of none, failed and all", optarg);
		return r;
	case COLLECT_OFF_CPU_MIN:
		r = collect_number("--off-cpu-min", COLLECT_OFF_CPU_MIN_MAX_US, &value);
		a->record.off_cpu_min_ns = value * 1000;
		return r;
	case COLLECT_MAX_OVERHEAD:
		r = options_decimal("--max-overhead", "a percentage", optarg, COLLECT_MAX_OVERHEAD_LEAST, 100, &a->record.max_overhead);
		a->record.max_overhead /= 100;
		return r;
	default: /* said already */
		return -EINVAL;
	}
}

static int collect_parse_one(struct collect_arguments *a, int c)
{
	switch (c) {
	case 'a':
		a->record.system_wide = true;
		return 0;
	case 'q':
		a->record.quiet = a->post.quiet = a->fetch.quiet = true;
		return 0;
	case COLLECT_RAW_NAMES:
		a->post.input.raw_names = true;
		return 0;
	case COLLECT_MANGLED:
		a->post.input.mangled = true;
		return 0;
	case COLLECT_INLINES:
		a->post.input.inlines = true;
		return 0;
	case COLLECT_IDLE:
		a->post.input.idle = true;
		return 0;
	case COLLECT_GRADES:
		a->post.input.grades = true;
		return 0;
	case COLLECT_LINES:
		a->post.input.lines = a->record.jit_lines = true;
		return 0;
	case COLLECT_RECORD_ONLY:
		a->record_only = true;
		return 0;
	case COLLECT_NO_KERNEL:
		a->record.no_kernel_stacks = true;
		return 0;
	case COLLECT_NO_DOWNLOAD:
		a->fetch.off = true;
		return 0;
	case COLLECT_OFF_CPU:
		a->record.off_cpu = true;
		return 0;
	default:
		return collect_option_value(a, c);
	}
}

/* A word that is neither an option nor behind "--": a command, or a PID. */
static void collect_say_stray(const char *word, bool has_pids)
{
	bool is_pid = *word && strspn(word, "0123456789,") == strlen(word);

	if (is_pid && has_pids)
		log_error("'%s' is no option; several processes have commas between them and no blanks: `profcpu collect -p PID,PID`",
			  word);
	else if (is_pid)
		log_error("'%s' is no option; a process is named by -p, as in `profcpu collect -p %s`", word, word);
	else
		log_error("'%s' is no option; a command to record comes behind --, as in `profcpu collect -- %s`", word, word);
}

/* What follows the options: a command, and only behind "--", so that a stray word is never executed. */
static int collect_parse_command(int argc, char **argv, struct collect_arguments *a)
{
	bool marked = optind > 1 && !strcmp(argv[optind - 1], "--");

	if (optind < argc && !marked) {
		collect_say_stray(argv[optind], a->pids.list.len > 0);
		return -EINVAL;
	}
	if (optind == argc && marked) {
		log_error("a command is missing behind --");
		return -EINVAL;
	}
	if (optind < argc)
		a->record.argv = argv + optind;
	return 0;
}

static int collect_parse(int argc, char **argv, struct collect_arguments *a)
{
	int c;

	optind = 0;
	while ((c = options_next(&command_collect, argc, argv, "+:p:ae:F:c:d:o:q", collect_longopts)) != -1)
		if (collect_parse_one(a, c))
			return -EINVAL;
	if (collect_parse_command(argc, argv, a))
		return -EINVAL;
	if (a->record.system_wide && a->pids.list.len) {
		log_error("-a and -p exclude each other: the whole machine, or some processes");
		return -EINVAL;
	}
	if (a->record_only && (a->post.title || a->post.input.raw_names || a->post.input.mangled || a->post.input.inlines ||
			       a->post.input.max_stack || a->post.input.grades || a->post.input.idle)) {
		log_error("--title, --raw-names, --mangled, --inlines, --max-stack, --grades and --idle are for outputs, which --record-only does not "
			  "make; give them to `profcpu postprocess`");
		return -EINVAL;
	}
	if (a->record.freq_hz && a->record.period) {
		log_error("-F and -c exclude each other: samples a second, or events between samples");
		return -EINVAL;
	}
	if ((a->record.off_cpu_min_ns || a->record.max_overhead > 0) && !a->record.off_cpu) {
		log_error("--off-cpu-min and --max-overhead are of use only with --off-cpu");
		return -EINVAL;
	}
	if (a->record.off_cpu && !a->record.stack_bytes) {
		log_error("--off-cpu goes with --call-graph full only: waits are told by their stacks");
		return -EINVAL;
	}
	if (!a->record.freq_hz && !a->record.period)
		a->record.freq_hz = COLLECT_HZ;
	/* A command runs to its end unless a duration was asked for. */
	if (!a->has_duration && !a->record.argv)
		a->record.duration_ns = COLLECT_SECONDS * NS_PER_S;
	a->record.pids = a->pids.list.v;
	a->record.npids = a->pids.list.len;
	a->record.events = a->events.len ? a->events.v : NULL;
	a->record.nevents = a->events.len;
	return 0;
}

/* One line: what is sampled, how, for how long. */
static void collect_announce(const struct record_result *result)
{
	if (result->event_why[0])
		log_note("sampled %s: %s", result->event, result->event_why);
}

/* How the command that was started came to its end, where that was not well. */
static void collect_tell_command(const struct record_result *result)
{
	if (!result->command_ended || !result->command_status)
		return;
	if (WIFEXITED(result->command_status))
		log_note("the command ended with status %d", WEXITSTATUS(result->command_status));
	else
		log_note("the command was ended by signal %d", WTERMSIG(result->command_status));
}

/*
 * The exit status of a recording that went well: that of the command, as with perf record, where it came to its end by itself
 * and not because we were told to end.
 */
static int collect_status(const struct record_result *result)
{
	if (!result->command_ended || result->end == RECORD_END_SIGNAL)
		return EXIT_DONE;
	if (WIFEXITED(result->command_status))
		return WEXITSTATUS(result->command_status);
	return EXIT_SIGNALED + WTERMSIG(result->command_status);
}

/*
 * One of the targets whose files we may not open, and why: to be found out while it runs. Empty: there is none. Children and
 * the machine's other processes are not asked for.
 */
static void collect_find_barred(const struct collect_arguments *a, struct opener *opener, char *text, size_t cap)
{
	char why[ACCESS_TEXT_BYTES];
	struct access_denial denial;

	*text = 0;
	for (size_t i = 0; i < a->record.npids && !*text; i++) {
		int r = opener_hold(opener, a->record.pids[i]);

		if ((r != -EACCES && r != -EPERM) || access_look(a->record.pids[i], &denial))
			continue;
		access_text(&denial, why, sizeof(why));
		snprintf(text, cap, "the files and the perf map of process %d cannot be read: %s; names come from what we can read%s",
			 a->record.pids[i], why,
			 denial.reason == ACCESS_ELSEWHERE ? "" : ", and CAP_SYS_PTRACE would open the rest");
	}
}

static int collect_outputs(const struct collect_arguments *a, const struct outdir *dir)
{
	struct source source;

	if (source_open_dir(dir->fd, dir->path, &source))
		return EXIT_FAILED;
	int status = postprocess_run(&source, dir->path, dir, &a->post, NULL);

	source_close(&source);
	return status;
}

static int collect_record(struct collect_arguments *a, const struct outdir *dir)
{
	struct record_result result = {0};
	struct opener *opener = NULL;
	int status = EXIT_FAILED;
	char barred[ACCESS_TEXT_BYTES * 2];

	if (opener_new(&opener)) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	a->record.dir = dir->path;
	a->record.dir_fd = dir->fd;
	a->record.opener = opener;
	a->record.spare_descriptors = COLLECT_SPARE_DESCRIPTORS;
	a->post.input.opener = opener;
	collect_find_barred(a, opener, barred, sizeof(barred));
	int r = record_run(&a->record, &result);

	a->post.none_expected = result.detached;
	if (result.started) {
		if (*barred)
			log_warn("%s", barred);
		if (!a->record.quiet)
			collect_announce(&result);
		collect_tell_command(&result);
		status = a->record_only ? EXIT_DONE : collect_outputs(a, dir);
	}
	opener_free(opener);
	if (result.started && !a->record.quiet)
		printf("written   %s\n", dir->path);
	if (result.command_error)
		return result.command_error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	if (r || result.names_lost)
		return EXIT_FAILED;
	return status == EXIT_DONE ? collect_status(&result) : status;
}

static int collect_run(struct collect_arguments *a)
{
	struct outdir dir;
	int status = EXIT_FAILED;

	if (!a->record.system_wide && !a->record.argv && !a->record.npids) {
		status = target_default(&a->pids);
		if (status != EXIT_DONE)
			return status;
		a->record.pids = a->pids.list.v;
		a->record.npids = a->pids.list.len;
	}
	if (outdir_make(a->out, &dir))
		return EXIT_FAILED;
	status = collect_record(a, &dir);
	if (status != EXIT_DONE)
		outdir_remove_empty(&dir);
	outdir_release(&dir);
	return command_end(status);
}

static int collect_main(int argc, char **argv)
{
	struct collect_arguments a = {.record.stack_bytes = ARCH_IS_HERE ? COLLECT_STACK_BYTES : 0};

	a.post.fetch = &a.fetch;
	int status = collect_parse(argc, argv, &a) ? EXIT_USAGE : collect_run(&a);

	vec_free(&a.pids.list);
	vec_free(&a.events);
	fetch_options_free(&a.fetch);
	return status;
}

const struct command command_collect = {
	.name = "collect",
	.summary = "record a running service, then make the picture",
	.usage = "usage: profcpu collect [-p PID[,PID...] | -a] [-e EVENT] [-F HZ | -c N] [-d SECONDS] [-o DIR] [-q] [OPTION...]\n"
		 "                       [-- CMD ARG...]\n"
		 "       profcpu collect -pid PID -duration SECONDS\n\n"
		 "Samples what runs on the CPUs and writes flamegraph.svg, folded_stacks.out, perf_script.out, report.json,\n"
		 "perf.data and prof.tar.gz to profilings/HH-MM-SS_YYYY-MM-DD/. Without -p, -a and CMD the target is the only .NET process in sight;\n"
		 "with several they are listed and the exit status is 2; where there is none it is PID 1.\n"
		 "Ctrl-C, SIGTERM and the end of the terminal end the recording, and the outputs are made of what was recorded; a second\n"
		 "Ctrl-C leaves that to `profcpu postprocess DIR`. The exit status is that of a command which came to its end, if all\n"
		 "went well; 127 of one that there is not, 126 of one that cannot be executed.\n\n"
		 "  -p, --pid PID,...      these processes, with all their threads and children\n"
		 "  -a, --all-cpus         the whole machine\n"
		 "  -- CMD ARG...          start a command and record it from its first instruction to its end; with -p or -a:\n"
		 "                         record these until it ends (with -p not the command itself)\n"
		 "  -e, --event EVENT      perf's name of an event: cpu-clock, cycles, page-faults, sched:sched_switch, ...;\n"
		 "                         default: cycles where there is a PMU, else cpu-clock\n"
		 "  -F, --frequency HZ     samples a second and CPU (99; 1 to 100000)\n"
		 "  -c, --count N          a sample every N events instead; of cpu-clock: N nanoseconds\n"
		 "  -d, --duration SECONDS how long, from 1ms to 366 days (8784h): 10, 0.5, 500ms, 2m, 24h\n"
		 "                         (30; a command: to its end)\n"
		 "  -o, --output DIR       write there instead; what DIR is to stand in must exist; of a recording that is\n"
		 "                         there only perf.data.old is kept\n"
		 "      --record-only      no outputs yet: `profcpu postprocess DIR` makes them later; not with options for these alone\n"
		 "                         (--title, --raw-names, --mangled, --inlines, --max-stack, --grades, --idle)\n"
		 "      --no-kernel        no kernel frames in the stacks\n"
		 "      --jit-names WAY    how the names of .NET's JIT-compiled code are taken from the running processes: memory\n"
		 "                         (the runtime's own structures, .NET 8 on), perfmap (.NET 8 on), rundown (.NET 5 on),\n"
		 "                         none; auto, the default: the first of these that can be had\n"
		 "      --call-graph HOW   full, the default on x86-64: stacks are copied and unwound to the start of their thread; full,BYTES:\n"
		 "                         so much of each is copied (1024 to 65528), else as much as turns out to be needed; fp: the kernel's chains\n"
		 "                         of frame pointers alone; no: no stacks\n"
		 "      --keep-stacks WHICH   copies of stacks that are kept in perf.data, secrets in them included: none, the\n"
		 "                         default; failed, of stacks that could not be followed to their end; all\n"
		 "      --off-cpu          also each wait of the targets' threads, with its stack and its length, in microseconds: offcpu.svg\n"
		 "                         and .folded, wall.svg and .folded (on and off the CPU on one scale) and, where tracefs can be\n"
		 "                         read, wakeup.svg and .folded (who ended it). Needs CAP_PERFMON, and --call-graph full\n"
		 "      --off-cpu-min US   waits shorter than so many microseconds are left out, and it is said how much they were\n"
		 "      --max-overhead PERCENT   with --off-cpu: what the recorder uses of one CPU and what the targets lose of their\n"
		 "                         throughput may be so much together (5; 0.5 to 100). Where threads are switched more often than that allows, their\n"
		 "                         switches are recorded at times only, and waits estimated. 100: they are always recorded\n"
		 "      --idle             in the outputs of --off-cpu, waits that are idle (pool threads without work, ...) with their stacks, not as [idle]\n"
		 "      --title TEXT       title of the picture\n"
		 "      --no-download      fetch no debug files; else those of libraries without symbols are, for at most 60 s\n"
		 "      --symbol-server URL   fetch them from there (`profcpu help symbols`)\n"
		 "      --raw-names        names of managed methods as the runtime spells them\n"
		 "      --mangled          names of native functions mangled\n"
		 "      --inlines          functions that were inlined have frames of their own\n"
		 "      --lines            source lines: each line is a frame; those of JIT-compiled .NET code can be had only where\n"
		 "                         this was given, also with --record-only\n"
		 "      --max-stack N      at most so many frames of a stack in the outputs (10000; 1 to 65536)\n"
		 "      --grades           in the picture _[s] behind frames that were spliced, _[g] behind guessed ones\n"
		 "  -q, --quiet            no progress line and no report\n",
	.run = collect_main,
};
