#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/reprocess.h"

#include <errno.h>
#include <stdio.h>

struct postprocess_arguments {
	struct reprocess_arguments run;
	struct fetch_options fetch;
};

enum postprocess_option {
	POSTPROCESS_DIR = 256,
	POSTPROCESS_TITLE,
	POSTPROCESS_RAW_NAMES,
	POSTPROCESS_MANGLED,
	POSTPROCESS_INLINES,
	POSTPROCESS_LINES,
	POSTPROCESS_OFFLINE,
	POSTPROCESS_NO_DOWNLOAD,
	POSTPROCESS_SYMBOL_SERVER,
	POSTPROCESS_MAX_STACK,
	POSTPROCESS_GRADES,
	POSTPROCESS_IDLE,
};

static const struct option postprocess_longopts[] = {
	{"dir", required_argument, NULL, POSTPROCESS_DIR},
	{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
	{"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},
	{"title", required_argument, NULL, POSTPROCESS_TITLE},
	{"raw-names", no_argument, NULL, POSTPROCESS_RAW_NAMES},
	{"mangled", no_argument, NULL, POSTPROCESS_MANGLED},
	{"inlines", no_argument, NULL, POSTPROCESS_INLINES},
	{"lines", no_argument, NULL, POSTPROCESS_LINES},
	{"offline", no_argument, NULL, POSTPROCESS_OFFLINE},
	{"no-download", no_argument, NULL, POSTPROCESS_NO_DOWNLOAD},
	{"symbol-server", required_argument, NULL, POSTPROCESS_SYMBOL_SERVER},
	{"max-stack", required_argument, NULL, POSTPROCESS_MAX_STACK},
	{"grades", no_argument, NULL, POSTPROCESS_GRADES},
	{"idle", no_argument, NULL, POSTPROCESS_IDLE},
	{NULL, 0, NULL, 0},
};

static int postprocess_parse_one(struct postprocess_arguments *a, int c)
{
	switch (c) {
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
	case POSTPROCESS_DIR:
		a->run.input = optarg;
		return 0;
	case 'o':
		a->run.out = optarg;
		return 0;
	case 'q':
		a->run.options.quiet = a->fetch.quiet = true;
		return 0;
	case POSTPROCESS_TITLE:
		a->run.options.title = optarg;
		return 0;
	case POSTPROCESS_RAW_NAMES:
		a->run.options.load.raw_names = true;
		return 0;
	case POSTPROCESS_MANGLED:
		a->run.options.load.mangled = true;
		return 0;
	case POSTPROCESS_INLINES:
		a->run.options.load.inlines = true;
		return 0;
	case POSTPROCESS_LINES:
		a->run.options.load.lines = true;
		return 0;
	case POSTPROCESS_OFFLINE:
		a->run.options.load.offline = true;
		return 0;
	case POSTPROCESS_IDLE:
		a->run.options.load.idle = true;
		return 0;
	case POSTPROCESS_GRADES:
		a->run.options.load.grades = true;
		return 0;
	case POSTPROCESS_MAX_STACK:
		return options_max_stack(optarg, &a->run.options.load.max_stack);
	case POSTPROCESS_NO_DOWNLOAD:
		a->fetch.off = true;
		return 0;
	case POSTPROCESS_SYMBOL_SERVER:
		return download_missing_add_server(&a->fetch, optarg);
	default:
		return -EINVAL;
	}
}

static int postprocess_parse(int argc, char **argv, struct postprocess_arguments *a)
{
	int c;

	optind = 0;
	a->run.options.fetch = &a->fetch;
	while ((c = options_next(&command_postprocess, argc, argv, ":o:q", postprocess_longopts)) !=
	       -1)
		if (postprocess_parse_one(a, c))
			return -EINVAL;
	if (a->run.input)
		return options_no_argument(&command_postprocess, argc, argv);
	return options_one_argument(&command_postprocess, argc, argv, NULL, &a->run.input);
}

static int postprocess_main(int argc, char **argv)
{
	struct postprocess_arguments a = {0};
	int status = postprocess_parse(argc, argv, &a) ? EXIT_USAGE : reprocess_run(&a.run);

	download_missing_options_free(&a.fetch);
	return status;
}

const struct command command_postprocess = {
	.name = "postprocess",
	.summary = "make the picture and the other outputs of a recording again",
	.usage = "usage: profcpu postprocess [OPTION...] INPUT\n"
		 "       profcpu postprocess -dir DIR\n"
		 "\n"
		 "Makes flamegraph.svg, folded_stacks.out, perf_script.out, report.json and\n"
		 "prof.tar.gz. For a recording with waits, makes also offcpu.*, wall.* and\n"
		 "wakeup.*, each .svg and .folded.\n"
		 "\n"
		 "INPUT is one of these:\n"
		 "  DIR              a recording; the outputs go into it\n"
		 "  perf.data        of profcpu or perf: a file, or the directory of a perf\n"
		 "                   that recorded with threads\n"
		 "  prof.tar.gz      an archived recording\n"
		 "  perf_script.out  text of perf script\n"
		 "  -                stdin: any of the above files; perf.data only as\n"
		 "                   `perf record -o -` writes it\n"
		 "\n"
		 "Other inputs than DIR are first made a recording, in\n"
		 "profilings/HH-MM-SS_YYYY-MM-DD/. Text is not: it gets no perf.data and no\n"
		 "prof.tar.gz.\n"
		 "\n"
		 "It works on any machine. Names come from the recording. Only files that could\n"
		 "not be read before, and debug files, are read from this machine.\n"
		 "\n"
		 "  -o, --output DIR   write to DIR: new, empty, or with the same recording; its\n"
		 "                     parent must exist. For text, any DIR without another\n"
		 "                     recording\n"
		 "      --title TEXT   title of the picture\n"
		 "      --offline      take names only from the recording\n"
		 "      --allow-fs TYPE\n"
		 "                     read files on this type of file system too; repeat it\n"
		 "                     (`profcpu help collect`)\n"
		 "      --no-download  download no debug files; else missing ones of sampled\n"
		 "                     libraries are downloaded, for at most 60 s\n"
		 "      --symbol-server URL\n"
		 "                     download them from here (`profcpu help symbols`)\n"
		 "      --raw-names    print .NET method names as the runtime spells them\n"
		 "      --mangled      print names of native functions mangled\n"
		 "      --inlines      give inlined functions frames of their own\n"
		 "      --lines        make each source line a frame\n"
		 "      --max-stack N  at most N frames of a stack: 1 to 65536 (10000)\n"
		 "      --idle         show idle waits with their stacks, such as those of pool\n"
		 "                     threads without work, not as [idle]\n"
		 "      --grades       mark spliced frames with _[s], guessed ones with _[g]\n"
		 "  -q, --quiet        print no progress, no notes and no report\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed, or the input is damaged; the outputs have its readable part\n"
		 "  2  wrong usage\n",
	.run = postprocess_main,
};
