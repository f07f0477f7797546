#include "base/log.h"
#include "flamegraph/collapse.h"
#include "profcpu/command.h"
#include "profcpu/fold_inline.h"
#include "profcpu/input.h"
#include "profcpu/options.h"
#include "profcpu/outfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct fold_arguments {
	const char *input, *out;
	struct input_options input_options;
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
		log_error("--names takes perf or full, not '%s'", text);
		return -EINVAL;
	}
	return 0;
}

/* What a line of the output looks like. */
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
		o->srcline = a->input_options.text.srcline = true;
		return 0;
	case FOLD_LINES:
		o->srcline = a->input_options.lines = true;
		return 0;
	case FOLD_INLINES:
		o->annotate_inlined = a->input_options.inlines = true;
		return 0;
	case FOLD_EVENT_FILTER:
		o->event_filter = a->input_options.text.event_filter = optarg;
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
		a->input_options.raw_names = true;
		return 0;
	case FOLD_MANGLED:
		a->input_options.mangled = true;
		return 0;
	case FOLD_OFFLINE:
		a->input_options.offline = true;
		return 0;
	case FOLD_GRADES:
		a->input_options.grades = true;
		return 0;
	case FOLD_MAX_STACK:
		return input_max_stack(&a->input_options, optarg);
	default:
		return fold_collapse_option(a, option);
	}
}

/*
 * Combinations of options that cannot mean anything. Those that stackcollapse-perf.pl takes without a word get a word and are
 * taken too.
 */
static int fold_check(const struct fold_arguments *a)
{
	bool full = a->collapse.names == COLLAPSE_FULL;

	if (!full && (a->input_options.raw_names || a->input_options.mangled || a->input_options.grades)) {
		log_error("%s goes with --names full: perf's form of a name has no other spelling",
			  a->input_options.raw_names ? "--raw-names" :
			  a->input_options.mangled	  ? "--mangled" :
						    "--grades");
		return -EINVAL;
	}
	if (!full && a->show_inline && a->input_options.offline) {
		log_error("--inline and --offline exclude each other: what is inlined is read from this machine's files");
		return -EINVAL;
	}
	if (!full && a->show_inline && a->input_options.inlines) {
		log_error("--inline and --inlines exclude each other: both say what is inlined, --inline of a text's addresses");
		return -EINVAL;
	}
	if (a->show_context && (full || !a->show_inline))
		log_note("--context has no effect %s", full ? "with --names full" : "without --inline");
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

static void fold_say_events(const struct collapse_stats *stats)
{
	struct outbuf names = outbuf_to(-1);

	for (size_t i = 0; i < stats->nothers; i++)
		outbuf_printf(&names, "%s'%s'", i ? ", " : "", stats->others[i]);
	outbuf_char(&names, '\0');
	log_warn("no sample is of the event '%s'; there are samples of %s%s", stats->event ? stats->event : "",
		 names.error ? "others" : names.data, stats->nothers == COLLAPSE_OTHERS ? " and maybe more" : "");
	outbuf_close(&names);
}

/* What the lines do not show. */
static void fold_say(const struct fold_arguments *a, const struct input_result *input,
		     const struct collapse_stats *stats)
{
	const char *asked = a->collapse.event_filter;

	if (!stats->samples && stats->nothers)
		fold_say_events(stats);
	else if (!stats->samples)
		log_warn("%s has no samples, so there are no stacks", strcmp(a->input, "-") ? a->input : "stdin");
	else if (stats->other_event && (!asked || !*asked))
		log_note("there are several events; these are the samples of %s (%llu of others left out, for "
			 "example of %s; see --event-filter)",
			 stats->event, (unsigned long long)stats->filtered_samples, stats->other_event);
	if (stats->nameless_samples)
		log_warn("%llu samples are left out, whose threads have no name or one that perf script's readers "
			 "cannot read (--names full has them)",
			 (unsigned long long)stats->nameless_samples);
	if (a->collapse.srcline && !a->input_options.lines && input->kind != SOURCE_TEXT)
		log_note("--srcline has no effect here: it is of the text of `perf script -F +srcline`; of a recording --lines shows them");
}

static int fold_collapse(struct fold_arguments *a, struct profile *profile, struct outbuf *out,
			 struct collapse_stats *stats)
{
	struct fold_inline *in = NULL;
	int r = a->show_inline ? fold_inline_new(a->show_context, &in) : 0;

	if (in) {
		a->collapse.inline_names = fold_inline_names;
		a->collapse.inline_ctx = in;
	}
	if (!r)
		r = collapse_write(profile, &a->collapse, out, stats);
	fold_inline_free(in);
	return r;
}

static int fold_write(struct fold_arguments *a, struct profile *profile, const struct input_result *input)
{
	struct collapse_stats stats = {0};
	struct outfile file;
	int r = outfile_open(a->out, &file);

	if (input->kind == SOURCE_TEXT && input->text.first_event != PROFILE_NONE)
		a->collapse.default_event = profile_text_of(profile, input->text.first_event, NULL);
	if (!r) {
		struct outbuf out = outbuf_to(file.fd);

		r = fold_collapse(a, profile, &out, &stats);
		int closed = outbuf_close(&out);

		r = outfile_close(&file, r ? r : closed);
	}
	if (r)
		outfile_failed(a->out, "the folded stacks", r);
	else
		fold_say(a, input, &stats);
	return r;
}

static int fold_run(int argc, char **argv)
{
	struct fold_arguments a = {.input_options = {.write_store_dir_fd = -1}};
	struct profile *profile = NULL;
	struct input_result input;
	int r;

	if (fold_parse(argc, argv, &a))
		return EXIT_USAGE;
	a.input_options.functions_only = !a.collapse.include_addrs && !a.show_inline;
	a.input_options.perf_names_only = a.collapse.names == COLLAPSE_PERF;
	r = profile_new(&profile);
	if (r)
		log_error("out of memory");
	if (!r)
		r = input_load(a.input, &a.input_options, profile, &input);
	if (!r)
		r = fold_write(&a, profile, &input);
	profile_free(profile);
	return r || input.damaged ? EXIT_FAILED : EXIT_DONE;
}

const struct command command_fold = {
	.name = "fold",
	.summary = "make folded stacks of a recording or of perf script's text",
	.usage = "usage: profcpu fold [OPTION...] [DIR|perf.data|prof.tar.gz|FILE|-]\n\n"
		 "Writes one line for each distinct stack, \"comm;caller;callee WEIGHT\", sorted. FILE is the text of\n"
		 "perf script with stacks; \"-\", or nothing, is stdin. By default the lines are those of `perf script |\n"
		 "stackcollapse-perf.pl`, of a perf.data with the PIDs and the names of JIT-compiled code that perf's text\n"
		 "lacks. These options mean what they mean there:\n\n"
		 "      --pid, --tid          comm-PID, comm-PID/TID for comm\n"
		 "      --kernel, --jit       _[k] behind kernel functions, _[j] behind JIT-compiled ones; perf knows these by\n"
		 "                            their perf map, and not in the memory that .NET maps twice, so that those have\n"
		 "                            the mark with --names full only\n"
		 "      --all                 both\n"
		 "      --addrs               addresses of frames without a name\n"
		 "      --srcline             source lines, of perf script -F +srcline\n"
		 "      --inline              the functions inlined at each address, from this machine's files; with\n"
		 "                            --names full, _[i] behind functions that the input says are inlined\n"
		 "      --context             with --inline: \":file.c:12\" behind each\n"
		 "      --event-filter=EVENT  samples of this event, not of the first\n\n"
		 "Others:\n\n"
		 "      --inlines             of a recording: functions that were inlined have frames of their own, with --names\n"
		 "                            full marked _[i]\n"
		 "      --lines               of a recording: \":file.c:12\" behind each frame\n"
		 "      --names perf|full     perf's form of names, or the full one (methods with their arguments)\n"
		 "      --raw-names           with full: names of managed methods as the runtime spells them\n"
		 "      --mangled             with full: names of native functions mangled\n"
		 "      --max-stack N         of a recording: at most so many frames of a stack (10000; 1 to 65536; perf script has 127);\n"
		 "                            with --names full [truncated] stands for what is cut off at the root, or was never there\n"
		 "      --grades              with full, of a recording: _[s] behind frames that were spliced, _[g] behind guessed ones\n"
		 "      --idle                of a recording with waits (--event-filter=offcpu-time): those of threads that have nothing\n"
		 "                            to do, as pool threads without work, with their stacks, not as [idle]\n"
		 "      --offline             take no name from this machine's files\n"
		 "  -o, --output FILE         write there, not to stdout\n",
	.run = fold_run,
};
