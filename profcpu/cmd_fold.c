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
	bool show_inline, show_context, srcline;
	bool own_names; /* --names was given */
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
	FOLD_EVENT,
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
	{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
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
	{"event", required_argument, NULL, FOLD_EVENT},
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
	bool full = !strcmp(text, "full");

	if (!full && strcmp(text, "perf") != 0) {
		log_error("--names: '%s' is neither perf nor full", text);
		return -EINVAL;
	}
	a->collapse.names = full ? COLLAPSE_FULL : COLLAPSE_PERF;
	a->own_names = true;
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
		a->load.idle = true;
		return 0;
	case FOLD_CONTEXT:
		a->show_context = true;
		return 0;
	case FOLD_SRCLINE:
		a->srcline = o->srcline = a->load.text.srcline = true;
		return 0;
	case FOLD_LINES:
		o->srcline = a->load.lines = true;
		return 0;
	case FOLD_INLINES:
		o->annotate_inlined = a->load.inlines = true;
		return 0;
	case FOLD_EVENT_FILTER:
	case FOLD_EVENT:
		a->load.trace_event = optarg;
		o->event_filter = a->load.text.event_filter = optarg;
		return 0;
	default:
		return -EINVAL;
	}
}

static int fold_option(struct fold_arguments *a, int option)
{
	switch (option) {
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
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
 * Completes the options by the kind of the input. Text has the names that perf printed, and folds
 * as stackcollapse-perf.pl folds it. With the full names of recordings, the options --inline and
 * --srcline of that script mean --inlines and --lines.
 */
static void fold_settle(struct fold_arguments *a, enum input_kind kind)
{
	if (!a->own_names)
		a->collapse.names = kind == INPUT_TEXT ? COLLAPSE_PERF : COLLAPSE_FULL;
	if (a->collapse.names == COLLAPSE_FULL && kind != INPUT_TEXT) {
		a->load.inlines |= a->show_inline;
		a->load.lines |= a->srcline;
		a->show_inline = false;
	}
	a->load.functions_only = !a->collapse.include_addrs && !a->show_inline;
	a->load.perf_names_only = a->collapse.names == COLLAPSE_PERF;
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
	return r ? r : options_one_argument(&command_fold, argc, argv, "-", &a->input);
}

/* Reports what the lines do not show. -ENOENT: no sample has the requested event. */
static int fold_report(const struct fold_arguments *a, const struct profile *profile,
		       const struct post_result *input, const struct collapse_stats *stats)
{
	const char *name = post_open_name(a->input), *wanted = a->collapse.event_filter;
	bool none_wanted = wanted && *wanted && !stats->samples && !stats->nameless_samples;

	if (none_wanted)
		post_load_report_event(profile, name, wanted);
	else if (!stats->samples && stats->other_event)
		log_warn("%s: only off-CPU samples, so the output has no stacks; give "
			 "--event-filter=%s",
			 name, stats->other_event);
	else if (!stats->samples && input->data.no_cpu)
		log_warn("%s: " POST_NO_CPU, name);
	else if (!stats->samples)
		log_warn("%s has no samples, so the output has no stacks", name);
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
	if (a->collapse.srcline && !a->load.lines && input_is_recording(input->kind))
		log_note("--srcline has no effect here: it is for the text of `perf script -F "
			 "+srcline`; use --lines for a recording");
	return none_wanted ? -ENOENT : 0;
}

static int fold_collapse(struct fold_arguments *a, struct profile *profile, struct outbuf *out,
			 struct collapse_stats *stats)
{
	struct fold_inline *in = NULL;
	struct idle *idle = NULL;
	int r = a->show_inline ? post_fold_inline_new(a->show_context, &in) : 0;

	if (in) {
		a->collapse.inline_names = post_fold_inline_names;
		a->collapse.inline_ctx = in;
	}
	if (!r && !a->load.idle)
		r = idle_new(profile, &idle);
	a->collapse.idle = idle;
	if (!r)
		r = collapse_write(profile, &a->collapse, out, stats);
	idle_free(idle);
	if (in) {
		post_fold_inline_warn(in);
		options_warn_skipped();
	}
	post_fold_inline_free(in);
	return r;
}

static int fold_write(struct fold_arguments *a, struct profile *profile,
		      const struct post_result *input)
{
	struct collapse_stats stats = {0};
	struct outfile file;
	int r = post_outfile_open(a->out, REPLACE_PUBLIC, &file);

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
	return r ? r : fold_report(a, profile, input, &stats);
}

static int fold_source(struct fold_arguments *a, struct post_source *source)
{
	const char *name = post_open_name(a->input);
	struct profile *profile = NULL;
	struct post_result input;
	int r = profile_new(&profile);

	if (r) {
		log_error("out of memory");
	} else {
		profile_only_groups(profile);
		r = post_load_source(source, name, &a->load, profile, &input);
	}
	if (!r) {
		post_load_report_lines(&a->load, name, &input);
		r = fold_write(a, profile, &input);
	}
	profile_free(profile);
	return r || input.damaged ? EXIT_FAILED : EXIT_DONE;
}

static int fold_run(int argc, char **argv)
{
	struct fold_arguments a = {.load = {.write_store_dir_fd = -1}};
	struct post_source source;

	if (fold_parse(argc, argv, &a))
		return EXIT_USAGE;
	if (post_open(a.input, &source))
		return EXIT_FAILED;
	fold_settle(&a, source.kind);
	int status = fold_check(&a) ? EXIT_USAGE : fold_source(&a, &source);

	post_open_close(&source);
	return status;
}

const struct command command_fold = {
	.name = "fold",
	.summary = "make folded stacks from a recording or from perf script's text",
	.usage = "usage: profcpu fold [OPTION...] [INPUT]\n"
		 "\n"
		 "Writes one line for each distinct stack, \"comm;caller;callee WEIGHT\", sorted.\n"
		 "INPUT is the directory of a recording, perf.data, prof.tar.gz, a .nettrace\n"
		 "file, or the text of perf script with stacks. - or nothing is stdin.\n"
		 "\n"
		 "Names are those of the picture. The text of perf script keeps its own names;\n"
		 "its lines are those of `perf script | stackcollapse-perf.pl`.\n"
		 "\n"
		 "as in stackcollapse-perf.pl:\n"
		 "      --pid              print comm-PID instead of comm\n"
		 "      --tid              print comm-PID/TID instead of comm\n"
		 "      --kernel           mark kernel functions with _[k]\n"
		 "      --jit              mark JIT-compiled functions with _[j]; with --names\n"
		 "                         perf, only functions of perf maps\n"
		 "      --all              --kernel and --jit\n"
		 "      --addrs            print addresses of frames without a name\n"
		 "      --event-filter=EVENT, --event EVENT\n"
		 "                         take samples of this event, not of the first one\n"
		 "\n"
		 "for recordings and perf.data:\n"
		 "      --inlines          give inlined functions frames of their own, marked\n"
		 "                         with _[i]\n"
		 "      --lines            add :file.c:12 to each frame\n"
		 "      --max-stack N      at most N frames of a stack: 1 to 65536 (10000; perf\n"
		 "                         script: 127). [truncated] stands at the root of cut\n"
		 "                         and truncated stacks\n"
		 "      --idle             show idle waits with their stacks, not as [idle]; for\n"
		 "                         --event-filter=offcpu-time\n"
		 "      --grades           mark spliced frames with _[s], guessed ones with _[g]\n"
		 "      --allow-fs TYPE    read files on this type of file system too; repeat it\n"
		 "                         (`profcpu help collect`)\n"
		 "      --offline          take names only from the recording\n"
		 "\n"
		 "for traces of .NET (nettrace):\n"
		 "      --event NAME[:FIELD]\n"
		 "                         take these events, not the samples of the runtime's\n"
		 "                         sampler; each has the weight of its FIELD, or 1\n"
		 "\n"
		 "others:\n"
		 "      --names full|perf  the form of names: that of the picture, or that of\n"
		 "                         `perf script | stackcollapse-perf.pl`, in which\n"
		 "                         methods lack their arguments\n"
		 "      --raw-names        print names of .NET methods as the runtime spells\n"
		 "                         them; with --names full\n"
		 "      --mangled          print native names mangled; with --names full\n"
		 "  -o, --output FILE      write to FILE, not to stdout\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed, or the input is damaged; the output has its readable part. Also\n"
		 "     if no sample has the EVENT of --event-filter\n"
		 "  2  wrong usage\n",
	.run = fold_run,
};
