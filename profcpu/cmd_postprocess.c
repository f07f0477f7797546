#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/outdir.h"
#include "profcpu/postprocess.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct postprocess_arguments {
	struct postprocess_options options;
	const char *input, *out;
};

static const struct option postprocess_longopts[] = {
	{"dir", required_argument, NULL, 'D'},	 {"output", required_argument, NULL, 'o'},
	{"quiet", no_argument, NULL, 'q'},	 {"title", required_argument, NULL, 't'},
	{"raw-names", no_argument, NULL, 'R'},	 {"mangled", no_argument, NULL, 'M'},
	{"offline", no_argument, NULL, 'O'},	 {NULL, 0, NULL, 0},
};

static int postprocess_parse(int argc, char **argv, struct postprocess_arguments *a)
{
	int c;

	optind = 0;
	while ((c = getopt_long_only(argc, argv, "o:q", postprocess_longopts, NULL)) != -1) {
		switch (c) {
		case 'D':
			a->input = optarg;
			break;
		case 'o':
			a->out = optarg;
			break;
		case 'q':
			a->options.quiet = true;
			break;
		case 't':
			a->options.title = optarg;
			break;
		case 'R':
			a->options.input.raw_names = true;
			break;
		case 'M':
			a->options.input.mangled = true;
			break;
		case 'O':
			a->options.input.offline = true;
			break;
		default:
			return -EINVAL;
		}
	}
	if (optind < argc && !a->input)
		a->input = argv[optind++];
	if (!a->input || optind < argc) {
		fprintf(stderr, "profcpu: postprocess takes one recording, perf.data, archive or text; "
				"`profcpu help postprocess` shows how\n");
		return -EINVAL;
	}
	return 0;
}

/* A recording's own directory gets its outputs; everything else a directory of its own, as collect makes one. */
static int postprocess_out_dir(const struct postprocess_arguments *a, bool input_is_dir, char **ret_dir)
{
	if (!a->out && input_is_dir) {
		*ret_dir = strdup(a->input);
		return *ret_dir ? 0 : -ENOMEM;
	}
	return outdir_make(a->out, ret_dir);
}

static int postprocess_main(int argc, char **argv)
{
	struct postprocess_arguments a = {0};
	AUTO_FREE char *dir = NULL;
	struct source source;

	if (postprocess_parse(argc, argv, &a))
		return EXIT_USAGE;
	bool is_dir = outdir_is_dir(a.input);
	/* The input is opened before a directory is made for it, so that a wrong name leaves nothing behind. */
	bool unpack = !is_dir && outdir_is_archive(a.input);

	if (unpack && postprocess_out_dir(&a, false, &dir))
		return EXIT_FAILED;
	if (source_open(a.input, dir, &source)) {
		if (dir)
			outdir_remove_empty(dir);
		return EXIT_FAILED;
	}
	int status = EXIT_FAILED;

	if (dir || !postprocess_out_dir(&a, is_dir, &dir))
		status = postprocess_run(&source, a.input, dir, &a.options);
	source_close(&source);
	if (status == EXIT_DONE && !a.options.quiet)
		printf("written   %s\n", dir);
	return fflush(stdout) ? EXIT_FAILED : status;
}

const struct command command_postprocess = {
	.name = "postprocess",
	.summary = "make the picture and the other outputs of a recording again",
	.usage = "usage: profcpu postprocess [-o DIR] [OPTION...] DIR|perf.data|prof.tar.gz|perf_script.out|-\n"
		 "       profcpu postprocess -dir DIR\n\n"
		 "Makes flamegraph.svg, folded_stacks.out, perf_script.out and prof.tar.gz: for a recording's directory\n"
		 "in it, for anything else in profilings/HH-MM-SS_YYYY-MM-DD/. Works on any machine: names come from the\n"
		 "recording, and only where it has none from this machine's files.\n\n"
		 "  -o, --output DIR   write there instead\n"
		 "      --title TEXT   title of the picture\n"
		 "      --offline      take no name from this machine's files\n"
		 "      --raw-names    names of managed methods as the runtime spells them\n"
		 "      --mangled      names of native functions mangled\n"
		 "  -q, --quiet        no report\n",
	.run = postprocess_main,
};
