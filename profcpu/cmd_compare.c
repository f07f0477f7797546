#include "base/arch.h"
#include "base/clock.h"
#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/collect.h"
#include "profcpu/command.h"
#include "profcpu/reprocess.h"

#include <errno.h>
#include <string.h>

#define COMPARE_SECONDS 10
#define COMPARE_HZ 499

enum compare_option {
	COMPARE_NO_DOWNLOAD = 256,
};

static const struct option compare_longopts[] = {
	{"pid", required_argument, NULL, 'p'},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"no-download", no_argument, NULL, COMPARE_NO_DOWNLOAD},
	{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
	{NULL, 0, NULL, 0},
};

struct compare_arguments {
	struct collect_arguments collect;
	const char *input; /* a recording; NULL: record one */
};

static int compare_parse_one(struct compare_arguments *a, int c)
{
	struct collect_arguments *o = &a->collect;

	switch (c) {
	case 'p':
		return options_pids("-p", optarg, &o->pids);
	case 'd':
		o->has_duration = true;
		return options_duration("-d", optarg, &o->record.duration_ns);
	case 'o':
		o->out = optarg;
		return 0;
	case 'q':
		o->record.quiet = o->post.quiet = o->fetch.quiet = true;
		return 0;
	case COMPARE_NO_DOWNLOAD:
		o->fetch.off = true;
		return 0;
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
	default:
		return -EINVAL;
	}
}

static int compare_parse(int argc, char **argv, struct compare_arguments *a)
{
	struct collect_arguments *o = &a->collect;

	optind = 0;
	for (int c;
	     (c = options_next(&command_compare, argc, argv, ":p:d:o:q", compare_longopts)) != -1;)
		if (compare_parse_one(a, c))
			return -EINVAL;
	bool is_command = optind > 1 && !strcmp(argv[optind - 1], "--");

	if (optind < argc && !is_command
		    ? options_one_argument(&command_compare, argc, argv, NULL, &a->input)
		    : options_command(&command_compare, argc, argv, &o->record.argv))
		return -EINVAL;
	if (o->pids.list.len > 1 || (o->pids.list.len && o->record.argv) ||
	    (a->input && (o->pids.list.len || o->has_duration))) {
		log_error("name one: a process (-p), a command after --, or a recording");
		return -EINVAL;
	}
	if (!o->has_duration && !o->record.argv)
		o->record.duration_ns = COMPARE_SECONDS * NS_PER_S;
	o->record.pids = o->pids.list.v;
	o->record.npids = o->pids.list.len;
	return 0;
}

static int compare_main(int argc, char **argv)
{
	struct compare_arguments a = {
		.collect = {
			.eventpipe = true,
			.record = {.stack_bytes = ARCH_CAN_RECORD ? COLLECT_STACK_BYTES : 0,
				   .off_cpu = true,
				   .wakers_unused = true,
				   .freq_hz = COMPARE_HZ,
				   /* All switches: each sample needs the state of its thread. */
				   .max_overhead = 1}}};

	a.collect.post.fetch = &a.collect.fetch;
	a.collect.post.compares = true;
	int status = EXIT_USAGE;

	if (!compare_parse(argc, argv, &a))
		status = a.input ? reprocess_run(&(struct reprocess_arguments){
					   a.collect.post, a.input, a.collect.out})
				 : collect_run(&a.collect);
	collect_free(&a.collect);
	return status;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "compare EventPipe's samples of .NET with what the kernel saw",
	.usage = "usage: profcpu compare [-p PID] [-d SECONDS] [-o DIR]\n"
		 "       profcpu compare [-o DIR] -- CMD ARG...\n"
		 "       profcpu compare RECORDING\n"
		 "\n"
		 "The .NET runtime's own sampler (EventPipe), which dotnet-trace uses, notes what\n"
		 "all threads do, whether they run or not. This command records its samples,\n"
		 "those of the CPUs and all switches of threads in one window. So each sample\n"
		 "gets the state that its thread really had: running, waiting for a CPU, or\n"
		 "blocked. Prints this for each method, beside its share of CPU time, and what\n"
		 "the sampler cost the process.\n"
		 "\n"
		 "Writes compare.txt, compare.json, compare.svg (all three on one scale) and\n"
		 "compare-diff.svg (shares of samples against CPU time) beside the other outputs\n"
		 "of `profcpu collect`.\n"
		 "\n"
		 "  -p, --pid PID           the process; default: the only .NET process in sight\n"
		 "  -d, --duration SECONDS  how long: 10, 500ms, 2m (10 seconds; a command: to\n"
		 "                          its end)\n"
		 "  -- CMD ARG...           start a command, and compare from when its runtime\n"
		 "                          answers to its end\n"
		 "  RECORDING               a directory or prof.tar.gz with trace.nettrace, as\n"
		 "                          this command makes it\n"
		 "  -o, --output DIR        write to DIR (profilings/HH-MM-SS_YYYY-MM-DD)\n"
		 "      --no-download       download no debug files\n"
		 "      --allow-fs TYPE     as in `profcpu collect`\n"
		 "  -q, --quiet             print no progress, no notes and no comparison\n"
		 "\n"
		 "exit status:\n"
		 "  0         done\n"
		 "  1         failed, or the runtime's samples are missing\n"
		 "  2         wrong usage, or a process must be named\n"
		 "  126, 127  CMD cannot be executed, or was not found\n"
		 "  STATUS    that of CMD, if it ended by itself and all else went well\n",
	.run = compare_main,
};
