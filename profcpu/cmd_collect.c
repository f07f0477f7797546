#include "base/clock.h"
#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/collect.h"
#include "profcpu/command.h"
#include "profcpu/managed/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COLLECT_HZ_MAX 100000
#define COLLECT_OFF_CPU_MIN_MAX_US UINT64_C(3600000000)
#define COLLECT_MAX_OVERHEAD_LEAST 0.5 /* percent; reading the rings takes some tenths */

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
	COLLECT_MAX_SIZE,
	COLLECT_EVENTPIPE,
	COLLECT_NO_CPU,
	COLLECT_PROFILE, /* + enum managed_kind */
};

static const struct option collect_longopts[] = {
	{"pid", required_argument, NULL, 'p'},
	{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
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
	{"max-size", required_argument, NULL, COLLECT_MAX_SIZE},
	{"eventpipe", no_argument, NULL, COLLECT_EVENTPIPE},
	{"no-cpu", no_argument, NULL, COLLECT_NO_CPU},
	{"alloc", no_argument, NULL, COLLECT_PROFILE + MANAGED_ALLOC},
	{"exceptions", no_argument, NULL, COLLECT_PROFILE + MANAGED_EXCEPTIONS},
	{"contention", no_argument, NULL, COLLECT_PROFILE + MANAGED_CONTENTION},
	{"gc", no_argument, NULL, COLLECT_PROFILE + MANAGED_GC},
	{"jit", no_argument, NULL, COLLECT_PROFILE + MANAGED_JIT},
	{"causes", no_argument, NULL, COLLECT_PROFILE + MANAGED_CAUSES},
	{NULL, 0, NULL, 0},
};

/* Adds the events of "-e a,b". Commas separate events, except inside "pmu/term,term/". */
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

/* "full", "full,BYTES", "fp" or "no". "dwarf" is perf's word for "full". */
static int collect_call_graph(struct record_options *record)
{
	const char *comma = strchr(optarg, ',');
	size_t len = comma ? (size_t)(comma - optarg) : strlen(optarg);
	bool full = (len == 4 && !strncmp(optarg, "full", len)) ||
		    (len == 5 && !strncmp(optarg, "dwarf", len));
	uint64_t bytes = COLLECT_STACK_BYTES;

	if ((!full && strcmp(optarg, "fp") != 0 && strcmp(optarg, "no") != 0)) {
		log_error("--call-graph: '%s' is none of full, full,BYTES, dwarf, fp and no",
			  optarg);
		return -EINVAL;
	}
	if (full && !ARCH_CAN_RECORD) {
		log_error("--call-graph full: unwinds stacks only on " ARCH_NAME
			  "; use --call-graph fp, which follows frame pointers");
		return -EINVAL;
	}
	if (comma && options_u64("--call-graph full,BYTES", comma + 1, COPY_SIZE_MIN / 4,
				 COPY_SIZE_MAX, &bytes))
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
	case COLLECT_MAX_SIZE:
		return options_size("--max-size", optarg, &a->record.max_bytes);
	case COLLECT_MAX_STACK:
		return options_max_stack(optarg, &a->post.load.max_stack);
	case COLLECT_TITLE:
		a->post.title = optarg;
		return 0;
	case COLLECT_JIT_NAMES:
		r = jit_names_option_parse(optarg, &a->record.jit_names);
		if (r)
			log_error("--jit-names: '%s' is none of auto, memory, rundown and none",
				  optarg);
		return r;
	case COLLECT_SYMBOL_SERVER:
		return download_missing_add_server(&a->fetch, optarg);
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
		r = options_decimal("--max-overhead", "a percentage", optarg,
				    COLLECT_MAX_OVERHEAD_LEAST, 100, &a->record.max_overhead);
		a->record.max_overhead /= 100;
		return r;
	default: /* options_next logged an error */
		return -EINVAL;
	}
}

static int collect_parse_one(struct collect_arguments *a, int c)
{
	switch (c) {
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
	case 'a':
		a->record.system_wide = true;
		return 0;
	case 'q':
		a->record.quiet = a->post.quiet = a->fetch.quiet = true;
		return 0;
	case COLLECT_RAW_NAMES:
		a->post.load.raw_names = true;
		return 0;
	case COLLECT_MANGLED:
		a->post.load.mangled = true;
		return 0;
	case COLLECT_INLINES:
		a->post.load.inlines = true;
		return 0;
	case COLLECT_IDLE:
		a->post.load.idle = true;
		return 0;
	case COLLECT_GRADES:
		a->post.load.grades = true;
		return 0;
	case COLLECT_LINES:
		a->post.load.lines = a->record.jit_lines = true;
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
	case COLLECT_EVENTPIPE:
		a->eventpipe = true;
		return 0;
	case COLLECT_NO_CPU:
		a->record.no_cpu = true;
		return 0;
	case COLLECT_PROFILE + MANAGED_ALLOC... COLLECT_PROFILE + MANAGED_CAUSES:
		a->profiles |= 1u << (c - COLLECT_PROFILE);
		return 0;
	default:
		return collect_option_value(a, c);
	}
}

/* Rejects a word that is not an option and not after "--": a command, or a PID. */
static void collect_report_stray(const char *word, bool has_pids)
{
	bool is_pid = *word && strspn(word, "0123456789,") == strlen(word);

	if (is_pid && has_pids)
		log_error("'%s' is not an option; separate several processes by commas, without "
			  "blanks: `profcpu collect -p PID,PID`",
			  word);
	else if (is_pid)
		log_error("'%s' is not an option; name a process with -p: `profcpu collect -p %s`",
			  word, word);
	else
		log_error("'%s' is not an option; put a command after --: `profcpu collect -- %s`",
			  word, word);
}

/* Takes a command only after "--", so that a stray word is never executed. */
static int collect_parse_command(int argc, char **argv, struct collect_arguments *a)
{
	bool marked = optind > 1 && !strcmp(argv[optind - 1], "--");

	if (optind < argc && !marked) {
		collect_report_stray(argv[optind], a->pids.list.len > 0);
		return -EINVAL;
	}
	if (marked && (optind == argc || !*argv[optind])) {
		log_error("a command is missing after --");
		return -EINVAL;
	}
	if (optind < argc)
		a->record.argv = argv + optind;
	return 0;
}

/* -EINVAL, logged: --no-cpu leaves nothing to record, or an option is for samples of CPUs. */
static int collect_check_no_cpu(const struct collect_arguments *a)
{
	const char *of_samples = a->events.len       ? "-e"
				 : a->record.freq_hz ? "-F"
				 : a->record.period  ? "-c"
						     : NULL;

	if (!a->record.no_cpu)
		return 0;
	if (!a->profiles && !a->record.off_cpu) {
		log_error("--no-cpu leaves nothing to record; add --alloc, --exceptions, "
			  "--contention, --gc, --jit, --eventpipe or --off-cpu");
		return -EINVAL;
	}
	if (of_samples) {
		log_error("%s is for CPU samples, and --no-cpu takes none; give one of them",
			  of_samples);
		return -EINVAL;
	}
	return 0;
}

/* -EINVAL, logged: an option is for waits, which are not recorded, or their stacks are not. */
static int collect_check_waits(struct collect_arguments *a)
{
	bool causes = a->profiles & 1u << MANAGED_CAUSES;
	const char *of_waits = a->record.off_cpu_min_ns     ? "--off-cpu-min"
			       : a->record.max_overhead > 0 ? "--max-overhead"
			       : a->post.load.idle          ? "--idle"
			       : causes                     ? "--causes"
							    : NULL;

	if (of_waits && !a->record.off_cpu) {
		log_error("%s is for waits; add --off-cpu to record them", of_waits);
		return -EINVAL;
	}
	/* Without all switches, samples and events of the runtime cannot be joined with waits. */
	if ((a->eventpipe || causes) && a->record.max_overhead <= 0)
		a->record.max_overhead = 1;
	if (a->record.off_cpu && !a->record.stack_bytes) {
		log_error("--off-cpu needs --call-graph full, because each wait has a stack");
		return -EINVAL;
	}
	return 0;
}

static int collect_parse(int argc, char **argv, struct collect_arguments *a)
{
	int c;

	optind = 0;
	while ((c = options_next(&command_collect, argc, argv, "+:p:ae:F:c:d:o:q",
				 collect_longopts)) != -1)
		if (collect_parse_one(a, c))
			return -EINVAL;
	if (collect_parse_command(argc, argv, a))
		return -EINVAL;
	if (a->record.system_wide && a->pids.list.len) {
		log_error(
			"-a and -p exclude each other: record the whole machine or some processes");
		return -EINVAL;
	}
	if (a->record_only && (a->post.title || a->post.load.raw_names || a->post.load.mangled ||
			       a->post.load.inlines || a->post.load.max_stack ||
			       a->post.load.grades || a->post.load.idle)) {
		log_error(
			"--record-only makes no outputs, so --title, --raw-names, --mangled, "
			"--inlines, --max-stack, --grades and --idle are not allowed; give them to "
			"`profcpu postprocess`");
		return -EINVAL;
	}
	if (a->record.freq_hz && a->record.period) {
		log_error("-F and -c exclude each other: give samples a second, or events between "
			  "samples");
		return -EINVAL;
	}
	if ((a->eventpipe || a->profiles) && (a->record.system_wide || a->pids.list.len > 1 ||
					      (a->pids.list.len && a->record.argv))) {
		log_error("%s is for one .NET process: name it with -p, or start it after --",
			  a->eventpipe ? "--eventpipe" : "an event profile");
		return -EINVAL;
	}
	a->record.off_cpu |= a->eventpipe;
	if (collect_check_waits(a) || collect_check_no_cpu(a))
		return -EINVAL;
	if (!a->record.freq_hz && !a->record.period && !a->record.no_cpu)
		a->record.freq_hz = COLLECT_HZ;
	/* Without a duration, record a command to its end. */
	if (!a->has_duration && !a->record.argv)
		a->record.duration_ns = COLLECT_SECONDS * NS_PER_S;
	a->record.pids = a->pids.list.v;
	a->record.npids = a->pids.list.len;
	a->record.events = a->events.len ? a->events.v : NULL;
	a->record.nevents = a->events.len;
	return 0;
}

static int collect_main(int argc, char **argv)
{
	struct collect_arguments a = {.record.stack_bytes =
					      ARCH_CAN_RECORD ? COLLECT_STACK_BYTES : 0};

	a.post.fetch = &a.fetch;
	int status = collect_parse(argc, argv, &a) ? EXIT_USAGE : collect_run(&a);

	collect_free(&a);
	return status;
}

const struct command command_collect = {
	.name = "collect",
	.summary = "record a running service, then make the picture",
	.usage =
		"usage: profcpu collect [OPTION...] [-p PID[,PID...] | -a] [-- CMD ARG...]\n"
		"       profcpu collect -pid PID -duration SECONDS\n"
		"\n"
		"Records what runs on the CPUs in perf.data. Then makes flamegraph.svg,\n"
		"folded_stacks.out, perf_script.out, report.json and prof.tar.gz beside it, in\n"
		"profilings/HH-MM-SS_YYYY-MM-DD/.\n"
		"\n"
		"Without -p, -a and CMD the target is the only .NET process in sight, or PID 1\n"
		"if none is in sight. If several are in sight, they are listed and the exit\n"
		"status is 2.\n"
		"\n"
		"Ctrl-C, a signal such as SIGTERM, or the end of the terminal ends the\n"
		"recording. Then the outputs are made. After a second Ctrl-C,\n"
		"`profcpu postprocess DIR` makes them.\n"
		"\n"
		"what to record:\n"
		"  -p, --pid PID,...       these processes, with all their threads and children\n"
		"  -a, --all-cpus          the whole machine\n"
		"  -- CMD ARG...           start a command and record it, from its first\n"
		"                          instruction to its end; with -p or -a, record these\n"
		"                          until the command ends (with -p not the command)\n"
		"  -e, --event EVENT       the event, by its name in perf: cycles, cpu-clock,\n"
		"                          page-faults, sched:sched_switch, ... Default: cycles\n"
		"                          with hardware counters, else cpu-clock\n"
		"  -F, --frequency HZ      samples a second on each CPU: 1 to 100000 (99)\n"
		"  -c, --count N           take a sample every N events, instead of -F; for\n"
		"                          cpu-clock, an event is a nanosecond\n"
		"  -d, --duration SECONDS  how long: 10, 0.5, 500ms, 2m, 24h; from 1ms to 366\n"
		"                          days (30 seconds; a command: to its end)\n"
		"      --max-size SIZE     end the recording when its data have this size: 512K,\n"
		"                          100M, 2G (no limit)\n"
		"      --no-kernel         leave kernel frames out of the stacks\n"
		"\n"
		"stacks and names:\n"
		"      --call-graph HOW    full: copy each stack and unwind it to the start of\n"
		"                          its thread, the default on x86-64; full,BYTES: copy\n"
		"                          a fixed number of bytes, 1024 to 65528, not as many\n"
		"                          as needed; dwarf: as full; fp: follow frame pointers;\n"
		"                          no: no stacks\n"
		"      --keep-stacks WHICH\n"
		"                          keep copies of stacks in perf.data; they may hold\n"
		"                          secrets. none: no copies, the default, except of\n"
		"                          32-bit programs until post-processing; failed: of\n"
		"                          guessed and truncated stacks; all\n"
		"      --jit-names WAY     how to take names of JIT-compiled .NET code. memory:\n"
		"                          from the runtime's memory (.NET 8 and later);\n"
		"                          rundown: from the runtime's events (.NET 5 and\n"
		"                          later), may crash programs that unload assemblies;\n"
		"                          none; auto, the default: memory, or rundown if\n"
		"                          memory fails and no such assembly is found\n"
		"      --allow-fs TYPE     read files of targets on this type of file system too,\n"
		"                          for instance virtiofs, nfs4 or 9p; repeat it. profcpu\n"
		"                          waits for such a file system if it does not answer\n"
		"      --no-download       download no debug files; else missing ones of sampled\n"
		"                          libraries are downloaded, for at most 60 s\n"
		"      --symbol-server URL\n"
		"                          download them from here (`profcpu help symbols`)\n"
		"\n"
		"waits:\n"
		"      --off-cpu           record also each wait of the targets' threads, with\n"
		"                          its stack and length: offcpu.svg and offcpu.folded;\n"
		"                          wall.svg and wall.folded, on and off the CPU on one\n"
		"                          scale; wakeup.svg and wakeup.folded, with wakers, if\n"
		"                          tracefs is readable. The folded files count\n"
		"                          microseconds. Needs the right to record whole\n"
		"                          CPUs (see `profcpu doctor`) and --call-graph full\n"
		"      --off-cpu-min US    leave out waits shorter than this many microseconds;\n"
		"                          their number and sum are printed\n"
		"      --max-overhead PERCENT\n"
		"                          limit the overhead of --off-cpu: CPU time of profcpu,\n"
		"                          in percent of one CPU, plus the throughput that the\n"
		"                          targets lose: 0.5 to 100 (5). If threads switch too\n"
		"                          fast for it, only a part of the switches is recorded\n"
		"                          and waits are estimates. 100: record all switches\n"
		"      --idle              show idle waits with their stacks, such as those of\n"
		"                          pool threads without work, not as [idle]\n"
		"\n"
		".NET:\n"
		"      --eventpipe         record what the runtime's own sampler claims, too, and\n"
		"                          compare: compare.txt, compare.json, compare.svg and\n"
		"                          compare-diff.svg (`profcpu help compare`). For one\n"
		"                          process; its sampler stops all threads 870 times a\n"
		"                          second\n"
		"      --alloc             record a profile of the runtime's events, too, for\n"
		"      --exceptions        one process: alloc.svg (bytes by type),\n"
		"      --contention        exceptions.svg (by type), contention.svg (waits for\n"
		"      --gc                locks, by their owner), gc.svg (pauses by generation\n"
		"      --jit               and reason), jit.svg (compilation by method), each\n"
		"                          with a .folded file and a part of the report\n"
		"      --causes            say for each wait of --off-cpu what it is for:\n"
		"                          causes.svg, causes.folded and a part of the report:\n"
		"                          lock and its owner, GC, pool starvation, sync over\n"
		"                          async, JIT, network, disk, timer, ... Records all\n"
		"                          switches, unless --max-overhead limits it. Also\n"
		"                          runtime.svg, runtime.folded: CPU of the JIT by\n"
		"                          method, and of the GC by phase\n"
		"      --no-cpu            take no CPU samples; with one of these options, or\n"
		"                          with --off-cpu. There is no flamegraph.svg then\n"
		"\n"
		"outputs:\n"
		"  -o, --output DIR        write to DIR; its parent must exist. A recording in\n"
		"                          DIR is replaced: its samples stay as perf.data.old,\n"
		"                          its outputs are removed\n"
		"      --record-only       make no outputs; `profcpu postprocess DIR` makes them\n"
		"                          later. Not with --title, --raw-names, --mangled,\n"
		"                          --inlines, --max-stack, --grades, --idle\n"
		"      --title TEXT        title of the picture\n"
		"      --raw-names         print .NET method names as the runtime spells them\n"
		"      --mangled           print names of native functions mangled\n"
		"      --inlines           give inlined functions frames of their own\n"
		"      --lines             make each source line a frame; for JIT-compiled .NET\n"
		"                          code, give it also with --record-only\n"
		"      --max-stack N       at most N frames of a stack: 1 to 65536 (10000)\n"
		"      --grades            mark spliced frames with _[s], guessed ones with _[g]\n"
		"  -q, --quiet             print no progress, no notes and no report\n"
		"\n"
		"exit status:\n"
		"  0         done\n"
		"  1         failed, or recorded data is damaged\n"
		"  2         wrong usage, or a target must be named\n"
		"  126, 127  CMD cannot be executed, or was not found\n"
		"  STATUS    that of CMD, if it ended by itself and all else went well\n",
	.run = collect_main,
};
