#include "base/log.h"
#include "flamegraph/collapse.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/post/fold_inline.h"
#include "profcpu/post/load.h"
#include "profcpu/post/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct fold_arguments {
	const char *input, *out;
	struct post_options load;
	struct collapse_options collapse;
	bool show_inline, show_context;
};

enum fold_option {
	FOLD_PID = 256,
	FOLD_TID,
	FOLD_KERNEL,
	FOLD_JIT,
	FOLD_ALL,
	FOLD_ADDRS,
	FOLD_INLINE,
	FOLD_CONTEXT,
	FOLD_SRCLINE,
	FOLD_EVENT_FILTER,
	FOLD_NAMES,
	FOLD_RAW_NAMES,
	FOLD_MANGLED,
	FOLD_OFFLINE,
	FOLD_INLINES,
	FOLD_LINES,
	FOLD_MAX_STACK,
	FOLD_GRADES,
	FOLD_IDLE,
};

static const struct option fold_longopts[] = {
	{"pid", no_argument, NULL, FOLD_PID},
	{"tid", no_argument, NULL, FOLD_TID},
	{"kernel", no_argument, NULL, FOLD_KERNEL},
	{"jit", no_argument, NULL, FOLD_JIT},
	{"all", no_argument, NULL, FOLD_ALL},
	{"addrs", no_argument, NULL, FOLD_ADDRS},
	{"inline", no_argument, NULL, FOLD_INLINE},
	{"context", no_argument, NULL, FOLD_CONTEXT},
	{"srcline", no_argument, NULL, FOLD_SRCLINE},
	{"event-filter", required_argument, NULL, FOLD_EVENT_FILTER},
	{"names", required_argument, NULL, FOLD_NAMES},
	{"raw-names", no_argument, NULL, FOLD_RAW_NAMES},
	{"mangled", no_argument, NULL, FOLD_MANGLED},
	{"offline", no_argument, NULL, FOLD_OFFLINE},
	{"inlines", no_argument, NULL, FOLD_INLINES},
	{"lines", no_argument, NULL, FOLD_LINES},
	{"max-stack", required_argument, NULL, FOLD_MAX_STACK},
	{"grades", no_argument, NULL, FOLD_GRADES},
	{"idle", no_argument, NULL, FOLD_IDLE},
	{"output", required_argument, NULL, 'o'},
	{NULL, 0, NULL, 0},
};

static int fold_names(struct fold_arguments *a, const char *text)
{
	if (!strcmp(text, "full")) {
		a->collapse.names = COLLAPSE_FULL;
	} else if (strcmp(text, "perf") != 0) {
		log_error("--names: '%s' is neither perf nor full", text);
		return -EINVAL;
	}
	return 0;
}

/* Options that change the lines of the output. */
static int fold_collapse_option(struct fold_arguments *a, int option)
{
	struct collapse_options *o = &a->collapse;

	switch (option) {
	case FOLD_PID:
		o->include_pid = true;
		return 0;
	case FOLD_TID:
		o->include_tid = true;
		return 0;
	case FOLD_ALL:
	case FOLD_KERNEL:
		o->annotate_kernel = true;
		o->annotate_jit = o->annotate_jit || option == FOLD_ALL;
		return 0;
	case FOLD_JIT:
		o->annotate_jit = true;
		return 0;
	case FOLD_ADDRS:
		o->include_addrs = true;
		return 0;
	case FOLD_INLINE:
		a->show_inline = o->annotate_inlined = true;
		return 0;
	case FOLD_IDLE:
		o->show_idle = true;
		return 0;
	case FOLD_CONTEXT:
		a->show_context = true;
		return 0;
	case FOLD_SRCLINE:
		o->srcline = a->load.text.srcline = true;
		return 0;
	case FOLD_LINES:
		o->srcline = a->load.lines = true;
		return 0;
	case FOLD_INLINES:
		o->annotate_inlined = a->load.inlines = true;
		return 0;
	case FOLD_EVENT_FILTER:
		o->event_filter = a->load.text.event_filter = optarg;
		return 0;
	default:
		return -EINVAL;
	}
}

static int fold_option(struct fold_arguments *a, int option)
{
	switch (option) {
	case 'o':
		a->out = optarg;
		return 0;
	case FOLD_NAMES:
		return fold_names(a, optarg);
	case FOLD_RAW_NAMES:
		a->load.raw_names = true;
		return 0;
	case FOLD_MANGLED:
		a->load.mangled = true;
		return 0;
	case FOLD_OFFLINE:
		a->load.offline = true;
		return 0;
	case FOLD_GRADES:
		a->load.grades = true;
		return 0;
	case FOLD_MAX_STACK:
		return options_max_stack(optarg, &a->load.max_stack);
	default:
		return fold_collapse_option(a, option);
	}
}

/*
 * Rejects combinations of options that have no meaning. Combinations that stackcollapse-perf.pl
 * accepts silently get only a note.
 */
static int fold_check(const struct fold_arguments *a)
{
	bool full = a->collapse.names == COLLAPSE_FULL;

	if (!full && (a->load.raw_names || a->load.mangled || a->load.grades)) {
		log_error("%s needs --names full: perf's form of names has only one spelling",
			  a->load.raw_names ? "--raw-names"
			  : a->load.mangled ? "--mangled"
					    : "--grades");
		return -EINVAL;
	}
	if (!full && a->show_inline && a->load.offline) {
		log_error("--inline and --offline exclude each other: --inline reads files of this "
			  "machine");
		return -EINVAL;
	}
	if (!full && a->show_inline && a->load.inlines) {
		log_error("--inline and --inlines exclude each other; --inline is for text, "
			  "--inlines for recordings");
		return -EINVAL;
	}
	if (a->show_context && (full || !a->show_inline))
		log_note("--context has no effect %s",
			 full ? "with --names full" : "without --inline");
	return 0;
}

static int fold_parse(int argc, char **argv, struct fold_arguments *a)
{
	int c, r = 0;

	optind = 0;
	while (!r && (c = options_next(&command_fold, argc, argv, ":o:", fold_longopts)) != -1)
		r = fold_option(a, c);
	if (!r)
		r = options_one_argument(&command_fold, argc, argv, "-", &a->input);
	return r ? r : fold_check(a);
}

static void fold_warn_events(const struct collapse_stats *stats)
{
	struct outbuf names = outbuf_to(-1);

	for (size_t i = 0; i < stats->nothers; i++)
		outbuf_printf(&names, "%s'%s'", i ? ", " : "", stats->others[i]);
	outbuf_char(&names, '\0');
	log_warn("no samples of the event '%s'; the input has samples of %s%s",
		 stats->event ? stats->event : "", names.error ? "others" : names.data,
		 stats->nothers == COLLAPSE_OTHERS_MAX ? " and maybe more" : "");
	outbuf_close(&names);
}

/* Reports what the lines do not show. */
static void fold_report(const struct fold_arguments *a, const struct post_result *input,
			const struct collapse_stats *stats)
{
	const char *wanted = a->collapse.event_filter;

	if (!stats->samples && stats->nothers)
		fold_warn_events(stats);
	else if (!stats->samples)
		log_warn("%s has no samples, so the output has no stacks",
			 strcmp(a->input, "-") ? a->input : "stdin");
	else if (stats->other_event && (!wanted || !*wanted))
		log_note("several events in the input; took the samples of %s and left out %llu "
			 "of others such as %s; choose with --event-filter",
			 stats->event, (unsigned long long)stats->filtered_samples,
			 stats->other_event);
	if (stats->nameless_samples)
		log_warn(
			"%llu samples left out: their threads have no name, or one that readers of "
			"perf script cannot parse; --names full has them",
			(unsigned long long)stats->nameless_samples);
	if (a->collapse.srcline && !a->load.lines && input->kind != INPUT_TEXT)
		log_note("--srcline has no effect here: it is for the text of `perf script -F "
			 "+srcline`; use --lines for a recording");
}

static int fold_collapse(struct fold_arguments *a, struct profile *profile, struct outbuf *out,
			 struct collapse_stats *stats)
{
	struct fold_inline *in = NULL;
	int r = a->show_inline ? post_fold_inline_new(a->show_context, &in) : 0;

	if (in) {
		a->collapse.inline_names = post_fold_inline_names;
		a->collapse.inline_ctx = in;
	}
	if (!r)
		r = collapse_write(profile, &a->collapse, out, stats);
	post_fold_inline_free(in);
	return r;
}

static int fold_write(struct fold_arguments *a, struct profile *profile,
		      const struct post_result *input)
{
	struct collapse_stats stats = {0};
	struct outfile file;
	int r = post_outfile_open(a->out, &file);

	if (input->kind == INPUT_TEXT && input->text.first_event != PROFILE_NONE)
		a->collapse.default_event = profile_text_of(profile, input->text.first_event, NULL);
	if (!r) {
		struct outbuf out = outbuf_to(file.fd);

		r = fold_collapse(a, profile, &out, &stats);
		int closed = outbuf_close(&out);

		r = post_outfile_close(&file, r ? r : closed);
	}
	if (r)
		post_outfile_failed(a->out, "the folded stacks", r);
	else
		fold_report(a, input, &stats);
	return r;
}

static int fold_run(int argc, char **argv)
{
	struct fold_arguments a = {.load = {.write_store_dir_fd = -1}};
	struct profile *profile = NULL;
	struct post_result input;
	int r;

	if (fold_parse(argc, argv, &a))
		return EXIT_USAGE;
	a.load.functions_only = !a.collapse.include_addrs && !a.show_inline;
	a.load.perf_names_only = a.collapse.names == COLLAPSE_PERF;
	r = profile_new(&profile);
	if (r)
		log_error("out of memory");
	if (!r)
		r = post_load(a.input, &a.load, profile, &input);
	if (!r)
		r = fold_write(&a, profile, &input);
	profile_free(profile);
	return r || input.damaged ? EXIT_FAILED : EXIT_DONE;
}

const struct command command_fold = {
	.name = "fold",
	.summary = "make folded stacks from a recording or from perf script's text",
	.usage = "usage: profcpu fold [OPTION...] [INPUT]\n"
		 "\n"
		 "Writes one line for each distinct stack, \"comm;caller;callee WEIGHT\", sorted.\n"
		 "INPUT is the directory of a recording, perf.data, prof.tar.gz, or the text of\n"
		 "perf script with stacks. - or nothing is stdin.\n"
		 "\n"
		 "By default the lines are those of `perf script | stackcollapse-perf.pl`. For\n"
		 "perf.data, they also have the PIDs and the names of JIT-compiled code that\n"
		 "the text of perf lacks.\n"
		 "\n"
		 "as in stackcollapse-perf.pl:\n"
		 "      --pid              print comm-PID instead of comm\n"
		 "      --tid              print comm-PID/TID instead of comm\n"
		 "      --kernel           mark kernel functions with _[k]\n"
		 "      --jit              mark JIT-compiled functions with _[j]. perf's form of\n"
		 "                         names marks only functions of perf maps, so for .NET\n"
		 "                         use --names full\n"
		 "      --all              --kernel and --jit\n"
		 "      --addrs            print addresses of frames without a name\n"
		 "      --srcline          print source lines of `perf script -F +srcline`\n"
		 "      --inline           print the functions inlined at each address, from\n"
		 "                         files of this machine; with --names full, mark inlined\n"
		 "                         functions of the input with _[i]\n"
		 "      --context          with --inline: add :file.c:12 to each\n"
		 "      --event-filter=EVENT\n"
		 "                         take samples of this event, not of the first one\n"
		 "\n"
		 "for recordings and perf.data:\n"
		 "      --inlines          give inlined functions frames of their own; with\n"
		 "                         --names full, mark them with _[i]\n"
		 "      --lines            add :file.c:12 to each frame\n"
		 "      --max-stack N      at most N frames of a stack: 1 to 65536 (10000; perf\n"
		 "                         script: 127). With --names full, [truncated] stands at\n"
		 "                         the root of cut and truncated stacks\n"
		 "      --idle             show idle waits with their stacks, not as [idle]; for\n"
		 "                         --event-filter=offcpu-time\n"
		 "      --grades           mark spliced frames with _[s], guessed ones with _[g];\n"
		 "                         with --names full\n"
		 "      --offline          take names only from the recording\n"
		 "\n"
		 "others:\n"
		 "      --names perf|full  the form of names in perf (the default), or the full\n"
		 "                         one with the arguments of methods\n"
		 "      --raw-names        with --names full: print names of .NET methods as the\n"
		 "                         runtime spells them\n"
		 "      --mangled          with --names full: print native names mangled\n"
		 "  -o, --output FILE      write to FILE, not to stdout\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed, or the input is damaged; the output has its readable part\n"
		 "  2  wrong usage\n",
	.run = fold_run,
};
