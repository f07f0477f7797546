#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "flamegraph/folded.h"
#include "flamegraph/svg.h"
#include "flamegraph/tree_profile.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/post/load.h"
#include "profcpu/post/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define FLAMEGRAPH_PALETTE_FILE "palette.map"
#define FLAMEGRAPH_FEW 100 /* fewer samples than this get a note */

struct flamegraph_arguments {
	struct svg_options svg;
	struct tree_options tree;
	struct post_options load;
	const char *path, *out, *event;
	bool palette_file, own_countname, own_colors;
};

enum flamegraph_option {
	OPT_TITLE = 256,
	OPT_SUBTITLE,
	OPT_WIDTH,
	OPT_HEIGHT,
	OPT_MINWIDTH,
	OPT_FONTTYPE,
	OPT_FONTSIZE,
	OPT_FONTWIDTH,
	OPT_COUNTNAME,
	OPT_NAMETYPE,
	OPT_COLORS,
	OPT_BGCOLORS,
	OPT_HASH,
	OPT_RANDOM,
	OPT_CP,
	OPT_REVERSE,
	OPT_INVERTED,
	OPT_FLAMECHART,
	OPT_NEGATE,
	OPT_NOTES,
	OPT_TOTAL,
	OPT_FACTOR,
	OPT_ENCODING,
	OPT_EVENT,
	OPT_TID,
	OPT_RAW_NAMES,
	OPT_MANGLED,
	OPT_INLINES,
	OPT_LINES,
	OPT_OFFLINE,
	OPT_OUTPUT,
	OPT_MAX_STACK,
	OPT_GRADES,
	OPT_IDLE,
};

static const struct option flamegraph_longopts[] = {
	{"title", required_argument, NULL, OPT_TITLE},
	{"subtitle", required_argument, NULL, OPT_SUBTITLE},
	{"width", required_argument, NULL, OPT_WIDTH},
	{"height", required_argument, NULL, OPT_HEIGHT},
	{"minwidth", required_argument, NULL, OPT_MINWIDTH},
	{"fonttype", required_argument, NULL, OPT_FONTTYPE},
	{"fontsize", required_argument, NULL, OPT_FONTSIZE},
	{"fontwidth", required_argument, NULL, OPT_FONTWIDTH},
	{"countname", required_argument, NULL, OPT_COUNTNAME},
	{"nametype", required_argument, NULL, OPT_NAMETYPE},
	{"colors", required_argument, NULL, OPT_COLORS},
	{"bgcolors", required_argument, NULL, OPT_BGCOLORS},
	{"hash", no_argument, NULL, OPT_HASH},
	{"random", no_argument, NULL, OPT_RANDOM},
	{"cp", no_argument, NULL, OPT_CP},
	{"reverse", no_argument, NULL, OPT_REVERSE},
	{"inverted", no_argument, NULL, OPT_INVERTED},
	{"flamechart", no_argument, NULL, OPT_FLAMECHART},
	{"negate", no_argument, NULL, OPT_NEGATE},
	{"notes", required_argument, NULL, OPT_NOTES},
	{"total", required_argument, NULL, OPT_TOTAL},
	{"factor", required_argument, NULL, OPT_FACTOR},
	{"encoding", required_argument, NULL, OPT_ENCODING},
	{"event", required_argument, NULL, OPT_EVENT},
	{"tid", no_argument, NULL, OPT_TID},
	{"raw-names", no_argument, NULL, OPT_RAW_NAMES},
	{"mangled", no_argument, NULL, OPT_MANGLED},
	{"inlines", no_argument, NULL, OPT_INLINES},
	{"lines", no_argument, NULL, OPT_LINES},
	{"offline", no_argument, NULL, OPT_OFFLINE},
	{"max-stack", required_argument, NULL, OPT_MAX_STACK},
	{"grades", no_argument, NULL, OPT_GRADES},
	{"idle", no_argument, NULL, OPT_IDLE},
	{"output", required_argument, NULL, OPT_OUTPUT},
	{NULL, 0, NULL, 0},
};

/* A number, followed by nothing, or by a % if ret_percent is wanted. */
static int flamegraph_number(const char *option, const char *text, double *ret_value,
			     bool *ret_percent)
{
	char *end;
	double x = strtod(text, &end);
	bool percent = ret_percent && *end == '%';

	if (end == text || end[percent] || !(x > -1e300 && x < 1e300)) {
		log_error("--%s: needs a number, not '%s'", option, text);
		return -EINVAL;
	}
	*ret_value = x;
	if (ret_percent)
		*ret_percent = percent;
	return 0;
}

static int flamegraph_pixels(const char *option, const char *text, unsigned *ret_pixels)
{
	double x;
	int r = flamegraph_number(option, text, &x, NULL);

	if (!r && !(x >= 1 && x <= SVG_WIDTH_MAX)) {
		log_error("--%s: needs 1 to %d pixels, not '%s'", option, SVG_WIDTH_MAX, text);
		r = -EINVAL;
	}
	if (!r)
		*ret_pixels = (unsigned)x;
	return r;
}

static int flamegraph_colors(struct flamegraph_arguments *a, const char *name)
{
	if (!palette_scheme_find(name, &a->svg.palette.scheme))
		return 0;
	log_error("--colors: '%s' is none of kind, hot, mem, io, wakeup, chain, java, js, perl, "
		  "red, green, blue, aqua, yellow, purple and orange",
		  name);
	return -EINVAL;
}

/* Options with a number or a choice. */
static int flamegraph_value(struct flamegraph_arguments *a, int c, const char *arg)
{
	struct svg_options *o = &a->svg;

	switch (c) {
	case OPT_WIDTH:
		return flamegraph_pixels("width", arg, &o->width);
	case OPT_HEIGHT:
		return flamegraph_pixels("height", arg, &o->frame_height);
	case OPT_MINWIDTH:
		return flamegraph_number("minwidth", arg, &o->min_width, &o->min_width_percent);
	case OPT_FONTSIZE:
		return flamegraph_number("fontsize", arg, &o->font_size, NULL);
	case OPT_FONTWIDTH:
		return flamegraph_number("fontwidth", arg, &o->font_width, NULL);
	case OPT_TOTAL:
		return flamegraph_number("total", arg, &o->total, NULL);
	case OPT_FACTOR:
		return flamegraph_number("factor", arg, &o->factor, NULL);
	case OPT_COLORS:
		return flamegraph_colors(a, arg);
	case OPT_MAX_STACK:
		return options_max_stack(arg, &a->load.max_stack);
	default:
		return -ENOENT;
	}
}

/* The member for the text of an option; NULL for other options. */
static const char **flamegraph_text(struct flamegraph_arguments *a, int c)
{
	switch (c) {
	case OPT_TITLE:
		return &a->svg.title;
	case OPT_SUBTITLE:
		return &a->svg.subtitle;
	case OPT_FONTTYPE:
		return &a->svg.fonttype;
	case OPT_COUNTNAME:
		return &a->svg.countname;
	case OPT_NAMETYPE:
		return &a->svg.nametype;
	case OPT_BGCOLORS:
		return &a->svg.bgcolors;
	case OPT_NOTES:
		return &a->svg.notes;
	case OPT_ENCODING:
		return &a->svg.encoding;
	case OPT_EVENT:
		return &a->event;
	case 'o':
	case OPT_OUTPUT:
		return &a->out;
	default:
		return NULL;
	}
}

/* The member for an option without argument; NULL for other options. */
static bool *flamegraph_flag(struct flamegraph_arguments *a, int c)
{
	switch (c) {
	case OPT_HASH:
		return &a->svg.palette.by_hash;
	case OPT_RANDOM:
		return &a->svg.palette.random;
	case OPT_CP:
		return &a->palette_file;
	case OPT_REVERSE:
		return &a->tree.reverse;
	case OPT_INVERTED:
		return &a->svg.inverted;
	case OPT_FLAMECHART:
		return &a->tree.in_order;
	case OPT_NEGATE:
		return &a->svg.negate;
	case OPT_TID:
		return &a->tree.with_tids;
	case OPT_RAW_NAMES:
		return &a->load.raw_names;
	case OPT_MANGLED:
		return &a->load.mangled;
	case OPT_INLINES:
		return &a->load.inlines;
	case OPT_LINES:
		return &a->load.lines;
	case OPT_OFFLINE:
		return &a->load.offline;
	case OPT_IDLE:
		return &a->load.idle;
	case OPT_GRADES:
		return &a->load.grades;
	default:
		return NULL;
	}
}

static int flamegraph_check(struct flamegraph_arguments *a)
{
	if (a->svg.encoding && !svg_options_encoding_is_known(a->svg.encoding))
		log_note("--encoding: viewers may not know '%s'; without the option it is UTF-8",
			 a->svg.encoding);
	if (!a->palette_file || a->svg.palette.scheme != PALETTE_KIND)
		return 0;
	if (a->own_colors) {
		log_error("--cp and --colors kind exclude each other: --cp keeps colours by name; "
			  "choose other colours");
		return -EINVAL;
	}
	a->svg.palette.scheme = PALETTE_HOT;
	return 0;
}

static int flamegraph_parse(int argc, char **argv, struct flamegraph_arguments *a)
{
	const char *why;
	int c;

	optind = 0;
	while ((c = options_next(&command_flamegraph, argc, argv, ":o:", flamegraph_longopts)) !=
	       -1) {
		const char **text = flamegraph_text(a, c);
		bool *flag = flamegraph_flag(a, c);

		if (text)
			*text = optarg;
		else if (flag)
			*flag = true;
		else if (flamegraph_value(a, c, optarg))
			return -EINVAL; /* an error was logged */
		a->own_countname |= c == OPT_COUNTNAME;
		a->own_colors |= c == OPT_COLORS;
	}
	if (options_one_argument(&command_flamegraph, argc, argv, "-", &a->path))
		return -EINVAL;
	if (a->svg.subtitle && !*a->svg.subtitle)
		a->svg.subtitle = NULL;
	if (a->svg.title && !*a->svg.title)
		a->svg.title = NULL;
	if (svg_options_check(&a->svg, &why)) {
		log_error("%s", why);
		return -EINVAL;
	}
	return flamegraph_check(a);
}

/* Rejects options that need more than the names and counts of folded stacks. */
static int flamegraph_check_folded(const struct flamegraph_arguments *a, const char *name)
{
	const char *option = a->event            ? "--event"
			     : a->tree.with_tids ? "--tid"
			     : a->load.raw_names ? "--raw-names"
			     : a->load.mangled   ? "--mangled"
			     : a->load.inlines   ? "--inlines"
			     : a->load.lines     ? "--lines"
			     : a->load.grades    ? "--grades"
			     : a->load.idle      ? "--idle"
			     : a->load.max_stack ? "--max-stack"
						 : NULL;

	if (!option)
		return 0;
	log_error("%s is for recordings, but %s is folded stacks; give the option to `profcpu "
		  "fold`",
		  option, name);
	return -EINVAL;
}

/* 0, -errno; 1 if a part of the input was not readable. */
static int flamegraph_from_folded(struct flamegraph_arguments *a, int fd, const char *name,
				  struct tree *tree)
{
	struct parse_error err = {0};
	a->tree.memory_max = post_load_picture_memory();
	int r = folded_read_tree(tree, fd, &a->tree, &err);

	if (r) {
		log_error("cannot draw %s: %s", name, err.what ? err.what : strerror(-r));
		return r;
	}
	/* The input does not name its unit. It may be samples, nanoseconds or events. */
	if (!a->own_countname)
		a->svg.countname = "counts";
	if (tree->bad_lines)
		log_warn("%s: %llu of %llu lines have no count at their end and were skipped", name,
			 (unsigned long long)tree->bad_lines, (unsigned long long)tree->lines);
	post_load_report_texts(name, (struct profile_text_changes){.cut = tree->cut_names,
								   .max = PROFILE_TEXT_MAX});
	/* It may be no damage: text written by hand can end like this. */
	if (tree->unended)
		log_warn("%s: the last line has no newline; its count may be cut off", name);
	return tree->bad_lines > 0;
}

static int flamegraph_find_event(const struct profile *profile, const char *name,
				 const char *wanted, uint32_t *ret_event)
{
	*ret_event = PROFILE_NONE;
	if (!wanted)
		return 0;
	for (uint32_t i = 0; i < profile_nevents(profile); i++) {
		if (!strcmp(profile_text_of(profile, profile_event_of(profile, i)->name, NULL),
			    wanted)) {
			*ret_event = i;
			return 0;
		}
	}
	post_load_report_event(profile, name, wanted);
	return -ENOENT;
}

static int flamegraph_from_profile(struct flamegraph_arguments *a, struct post_source *source,
				   const char *name, struct profile *profile, struct tree *tree)
{
	struct idle *idle = NULL;
	struct post_result result;

	a->load.trace_event = a->event;
	int r = post_load_source(source, name, &a->load, profile, &result);

	if (!r && !a->event)
		r = post_load_need_cpu(name, &result);
	if (r)
		return r;
	post_load_report_lines(&a->load, name, &result);
	if (!a->svg.title)
		a->svg.title = post_open_title(source);
	r = flamegraph_find_event(profile, name, a->event, &a->tree.event);
	if (r)
		return r;
	r = a->load.idle ? 0 : idle_new(profile, &idle);
	a->tree.idle = idle;
	a->tree.memory_max = post_load_picture_memory();
	if (!r)
		r = tree_profile_make(tree, profile, &a->tree);
	idle_free(idle);
	if (r) {
		log_error("cannot draw %s: %s", name, strerror(-r));
		return r;
	}
	if (tree->event != PROFILE_NONE && !a->own_countname) {
		const struct profile_event *event = profile_event_of(profile, tree->event);

		svg_options_set_event(&a->svg, profile_text_of(profile, event->name, NULL),
				      event->has_period);
	}
	return result.damaged;
}

static int flamegraph_read_palette(struct palette_map *map)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	uint64_t skipped;
	int r = file_read_at(AT_FDCWD, FLAMEGRAPH_PALETTE_FILE, PALETTE_MAP_MAX, &text, &len);

	if (r == -ENOENT)
		return 0;
	if (!r)
		r = palette_map_parse(map, text, len, &skipped);
	if (r)
		log_error("cannot read %s: %s", FLAMEGRAPH_PALETTE_FILE, strerror(-r));
	else if (skipped)
		log_warn("%s: %llu lines are not \"name->rgb(1,2,3)\" and were skipped",
			 FLAMEGRAPH_PALETTE_FILE, (unsigned long long)skipped);
	return r;
}

/* Content of an output: the palette if map is not NULL, else the picture. */
struct flamegraph_content {
	struct tree *tree;
	const struct svg_options *svg;
	struct svg_stats stats;
	const struct palette_map *map;
};

static int flamegraph_make(struct flamegraph_content *c, const char *path)
{
	struct outfile file;
	int r = post_outfile_open(path, REPLACE_PUBLIC, &file);

	if (r)
		return r;
	struct outbuf out = outbuf_to(file.fd);

	r = c->map ? palette_map_write(c->map, &out) : svg_write(c->tree, c->svg, &out, &c->stats);
	int closed = outbuf_close(&out);

	return post_outfile_close(&file, r ? r : closed);
}

static int flamegraph_write(struct flamegraph_arguments *a, struct tree *tree)
{
	struct flamegraph_content c = {.tree = tree, .svg = &a->svg};
	int r = flamegraph_make(&c, a->out);

	if (r) {
		post_outfile_failed(a->out, "the picture", r);
		return r;
	}
	if (c.stats.left_out_below > 1)
		log_note("large profile: frames of less than %.4f %% are not in the picture, not "
			 "even when zoomed",
			 100 * (double)c.stats.left_out_below /
				 (double)tree->nodes.v[TREE_ROOT].total);
	if (!a->svg.palette.map)
		return 0;
	c.map = a->svg.palette.map;
	r = flamegraph_make(&c, FLAMEGRAPH_PALETTE_FILE);
	if (r)
		log_error("cannot write %s: %s", FLAMEGRAPH_PALETTE_FILE, strerror(-r));
	return r;
}

/* Reports an empty or odd input. */
static void flamegraph_report(struct flamegraph_arguments *a, const char *name,
			      const struct tree *tree)
{
	double total = (double)tree->nodes.v[TREE_ROOT].total / tree->scale;

	post_load_report_cut(name, LIMIT_PICTURE_MEMORY, tree->cut);
	if (total == 0)
		log_error("no stacks in the input; the picture is empty");
	else if (total < FLAMEGRAPH_FEW && !a->own_countname && a->svg.unit == SVG_UNIT_COUNT)
		log_note("only %.0f %s: too few for reliable shares", total, a->svg.countname);
	if (a->svg.negate && !tree->differential)
		log_note("--negate has no effect: the input has one count on each line");
	if (a->svg.total > 0 && a->svg.total < total)
		log_warn("--total %.0f ignored: it is less than the weight of all stacks, %.0f",
			 a->svg.total, total);
}

static int flamegraph_draw(struct flamegraph_arguments *a, struct post_source *source,
			   const char *name, bool folded, struct profile *profile)
{
	struct palette_map map = {0};
	struct tree tree = {0};
	int partly = folded ? flamegraph_from_folded(a, source->fd, name, &tree)
			    : flamegraph_from_profile(a, source, name, profile, &tree);
	int r = partly < 0 ? partly : 0;

	if (!r && a->palette_file) {
		a->svg.palette.map = &map;
		r = flamegraph_read_palette(&map);
	}
	if (!r && a->svg.palette.random &&
	    getrandom(&a->svg.palette.seed, sizeof(a->svg.palette.seed), 0) < 0)
		r = -errno;
	if (!r) {
		flamegraph_report(a, name, &tree);
		r = flamegraph_write(a, &tree);
	}
	if (!r && (partly || !tree.nodes.v[TREE_ROOT].total))
		r = -EBADMSG;
	tree_free(&tree);
	palette_map_free(&map);
	return r;
}

static int flamegraph_main(int argc, char **argv)
{
	struct flamegraph_arguments a = {
		.svg = svg_options_default(),
		.tree = {.event = PROFILE_NONE},
		.load = {.functions_only = true, .write_store_dir_fd = -1}};
	struct profile *profile = NULL;
	struct post_source source;

	if (flamegraph_parse(argc, argv, &a))
		return EXIT_USAGE;
	if (post_open(a.path, &source))
		return EXIT_FAILED;
	bool folded = source.kind == INPUT_TEXT && post_sniff_text_is_folded(source.fd);
	const char *name = strcmp(a.path, "-") ? a.path : "stdin";

	if (folded && flamegraph_check_folded(&a, name)) {
		post_open_close(&source);
		return EXIT_USAGE;
	}
	int r = profile_new(&profile);

	if (!r && !a.tree.in_order)
		profile_only_groups(profile);
	if (r)
		log_error("out of memory");
	else
		r = flamegraph_draw(&a, &source, name, folded, profile);
	profile_free(profile);
	post_open_close(&source);
	return r ? EXIT_FAILED : EXIT_DONE;
}

const struct command command_flamegraph = {
	.name = "flamegraph",
	.summary = "draw folded stacks or a recording as an interactive picture (SVG)",
	.usage = "usage: profcpu flamegraph [OPTION...] [INPUT]\n"
		 "\n"
		 "INPUT is folded stacks (\"main;work 12\" lines), the directory of a recording,\n"
		 "perf.data, prof.tar.gz, a .nettrace file, or the text of perf script. - or\n"
		 "nothing is stdin.\n"
		 "The SVG goes to stdout. In a browser, click to zoom, search by regular\n"
		 "expression, or use the keys. The page address keeps zoom and search.\n"
		 "Options have the names that they have in flamegraph.pl.\n"
		 "\n"
		 "  -o, --output FILE     write to FILE, whole or not at all\n"
		 "      --title TEXT      title; default: what was recorded\n"
		 "      --subtitle TEXT   second line of the title\n"
		 "      --notes TEXT      hidden text in the SVG\n"
		 "      --width PIXELS    fixed width (1200; in a browser the window's width)\n"
		 "      --height PIXELS   height of a frame (16)\n"
		 "      --minwidth N[%]   hide narrower frames: pixels, or percent of the whole\n"
		 "                        (0.1); they appear when zoomed\n"
		 "      --colors PALETTE  kind: kernel, native, runtime, managed and inlined code\n"
		 "                        apart, the default; or one of flamegraph.pl: hot, mem,\n"
		 "                        io, wakeup, chain, java, js, perl, red, green, blue,\n"
		 "                        aqua, yellow, purple, orange\n"
		 "      --bgcolors COLOR  yellow, blue, green, grey, white or #rrggbb; switches\n"
		 "                        dark mode off\n"
		 "      --hash            choose colours by the letters of names: similar names\n"
		 "                        get similar colours\n"
		 "      --random          choose colours at random, new ones each time\n"
		 "      --cp              keep colours in palette.map for the next picture; with\n"
		 "                        --colors kind, hot is used\n"
		 "      --inverted        root at the top: icicle graph\n"
		 "      --reverse         leaves at the root: shows who calls hot functions\n"
		 "      --flamechart      keep the order of the input, from left to right\n"
		 "      --countname TEXT  unit of the counts; default for a recording: its unit,\n"
		 "                        for folded stacks: counts\n"
		 "      --nametype TEXT   kind of the names (Function:)\n"
		 "      --total N         count that is 100 %, if larger than the sum\n"
		 "      --factor N        multiply counts by N when showing them\n"
		 "      --negate          swap red and blue of differential input, which has two\n"
		 "                        counts a line\n"
		 "      --fonttype FONT   font\n"
		 "      --fontsize PIXELS\n"
		 "                        size of the font\n"
		 "      --fontwidth N     width of a letter, as a part of its size\n"
		 "      --encoding NAME   encoding in the XML declaration\n"
		 "\n"
		 "for other inputs than folded stacks:\n"
		 "      --event NAME      draw samples of this event, not of the first one; of a\n"
		 "                        trace of .NET: NAME[:FIELD], with the weight of FIELD\n"
		 "      --tid             draw each thread apart: comm-PID/TID\n"
		 "      --offline, --raw-names, --mangled, --inlines, --lines, --max-stack N,\n"
		 "      --grades, --idle  see `profcpu help postprocess`\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed, no stacks, or the input is damaged; the picture has its readable\n"
		 "     part\n"
		 "  2  wrong usage\n",
	.run = flamegraph_main,
};
