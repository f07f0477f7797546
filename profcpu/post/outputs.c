#include "profcpu/post/outputs.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/remedy.h"
#include "base/replace.h"
#include "base/shell_word.h"
#include "flamegraph/collapse.h"
#include "flamegraph/svg.h"
#include "flamegraph/tree_profile.h"
#include "profcpu/compare/pictures.h"
#include "profcpu/compare/report.h"
#include "profcpu/post/report_json.h"
#include "recording/archive.h"
#include "recording/manifest.h"
#include "recording/script_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUTS_MAX (14 + 2 * MANAGED_KINDS) /* files without the archive */

/* Makes a tree in half of the memory that is left. */
static int outputs_tree(struct profile *profile, const struct outputs_options *options,
			struct tree_options from, struct tree *ret_tree)
{
	from.memory_max = post_load_picture_memory();
	int r = tree_profile_make(ret_tree, profile, &from);

	if (!r)
		options->limits->cost[LIMIT_PICTURE_MEMORY] += ret_tree->cut;
	return r;
}

static int outputs_svg(struct profile *profile, const struct outputs_options *options,
		       struct outbuf *out)
{
	struct svg_options svg = svg_options_default();
	struct svg_stats stats;
	struct tree tree;
	int r = outputs_tree(profile, options, (struct tree_options){.event = PROFILE_NONE}, &tree);

	if (r)
		return r;
	if (tree.event != PROFILE_NONE) {
		const struct profile_event *event = profile_event_of(profile, tree.event);

		svg_options_set_event(&svg, profile_text_of(profile, event->name, NULL),
				      event->has_period);
	}
	svg.title = options->title;
	r = svg_write(&tree, &svg, out, &stats);
	tree_free(&tree);
	return r;
}

/* Text keeps the names that perf printed. */
static enum collapse_names outputs_names(const struct outputs_options *options)
{
	return options->result->kind == INPUT_TEXT ? COLLAPSE_PERF : COLLAPSE_FULL;
}

static int outputs_folded(struct profile *profile, const struct outputs_options *options,
			  struct outbuf *out)
{
	struct collapse_options collapse = {.names = outputs_names(options),
					    .srcline = options->lines};
	struct collapse_stats stats = {0};

	collapse.default_event = options->first_event;
	return collapse_write(profile, &collapse, out, &stats);
}

/* Writes a picture of a tree, and frees it. kind: stands before the title of the recording. */
static int outputs_tree_svg(struct tree *tree, const struct outputs_options *options,
			    const char *kind, struct svg_options *svg, struct outbuf *out)
{
	AUTO_FREE char *title = NULL;
	struct svg_stats stats;
	int r = options->title && asprintf(&title, "%s: %s", kind, options->title) < 0 ? -ENOMEM
										       : 0;

	svg->title = title ? title : kind;
	if (!r)
		r = svg_write(tree, svg, out, &stats);
	tree_free(tree);
	return r;
}

static int outputs_times_svg(struct profile *profile, const struct outputs_options *options,
			     const struct tree_options *from, const char *kind,
			     enum palette_scheme scheme, struct outbuf *out)
{
	struct svg_options svg = svg_options_default();
	struct tree tree;
	int r = outputs_tree(profile, options, *from, &tree);

	svg.unit = SVG_UNIT_NS;
	svg.palette.scheme = scheme;
	return r ? r : outputs_tree_svg(&tree, options, kind, &svg, out);
}

static int outputs_off_cpu_svg(struct profile *profile, const struct outputs_options *options,
			       struct outbuf *out)
{
	const struct tree_options from = {.event = profile_off_cpu_event(profile),
					  .idle = options->idle};

	return outputs_times_svg(profile, options, &from, "Off-CPU", PALETTE_IO, out);
}

static int outputs_wakeup_svg(struct profile *profile, const struct outputs_options *options,
			      struct outbuf *out)
{
	const struct tree_options from = {.event = profile_wakeup_event(profile),
					  .idle = options->idle};

	return outputs_times_svg(profile, options, &from, "Wakeups", PALETTE_WAKEUP, out);
}

static int outputs_waits_folded(struct profile *profile, uint32_t of,
				const struct outputs_options *options, struct outbuf *out)
{
	const struct profile_event *event = profile_event_of(profile, of);
	const struct collapse_options collapse = {
		.names = outputs_names(options),
		.srcline = options->lines,
		.event_filter = profile_text_of(profile, event->name, NULL),
		.idle = options->idle,
		.divisor = 1000};
	struct collapse_stats stats = {0};

	return collapse_write(profile, &collapse, out, &stats);
}

static int outputs_off_cpu_folded(struct profile *profile, const struct outputs_options *options,
				  struct outbuf *out)
{
	return outputs_waits_folded(profile, profile_off_cpu_event(profile), options, out);
}

static int outputs_wakeup_folded(struct profile *profile, const struct outputs_options *options,
				 struct outbuf *out)
{
	return outputs_waits_folded(profile, profile_wakeup_event(profile), options, out);
}

static int outputs_wall_svg(struct profile *profile, const struct outputs_options *options,
			    struct outbuf *out)
{
	const struct tree_options from = {.event = profile_off_cpu_event(profile),
					  .with_tids = true,
					  .groups = options->wall,
					  .ngroups = options->nwall};

	return outputs_times_svg(profile, options, &from, "Wall clock", PALETTE_KIND, out);
}

static int outputs_wall_folded(struct profile *profile, const struct outputs_options *options,
			       struct outbuf *out)
{
	const struct profile_event *event =
		profile_event_of(profile, profile_off_cpu_event(profile));
	const struct collapse_options collapse = {
		.names = outputs_names(options),
		.include_pid = true,
		.include_tid = true,
		.srcline = options->lines,
		.event_filter = profile_text_of(profile, event->name, NULL),
		.groups = options->wall,
		.ngroups = options->nwall,
		.divisor = 1000};
	struct collapse_stats stats = {0};

	return collapse_write(profile, &collapse, out, &stats);
}

static int outputs_compare_json(struct profile *profile, const struct outputs_options *options,
				struct outbuf *out)
{
	compare_report_json(options->compare, options->methods, profile, out);
	return out->error;
}

static int outputs_compare_text(struct profile *profile, const struct outputs_options *options,
				struct outbuf *out)
{
	compare_report_text(options->compare, options->methods, profile, out);
	return out->error;
}

static int outputs_compare_svg(struct profile *profile, const struct outputs_options *options,
			       struct outbuf *out)
{
	struct svg_options svg = svg_options_default();
	struct tree tree;
	int r = pictures_tree(options->compare, profile, post_load_picture_memory(), &tree);

	if (r)
		return r;
	svg.unit = SVG_UNIT_NS;
	options->limits->cost[LIMIT_PICTURE_MEMORY] += tree.cut;
	return outputs_tree_svg(&tree, options, "The kernel's samples beside EventPipe's", &svg,
				out);
}

static int outputs_compare_diff(struct profile *profile, const struct outputs_options *options,
				struct outbuf *out)
{
	struct svg_options svg = svg_options_default();
	struct tree tree;
	int r = pictures_difference(options->compare, profile, post_load_picture_memory(), &tree);

	if (r)
		return r;
	svg.countname = "billionths";
	svg.more = "more samples than CPU time";
	svg.less = "fewer samples than CPU time";
	options->limits->cost[LIMIT_PICTURE_MEMORY] += tree.cut;
	return outputs_tree_svg(&tree, options,
				"Share of EventPipe's samples, and how it differs from CPU time",
				&svg, out);
}

static int outputs_script(struct profile *profile, const struct outputs_options *options,
			  struct outbuf *out)
{
	(void)options;
	return script_text_write(profile, out);
}

static int outputs_report(struct profile *profile, const struct outputs_options *options,
			  struct outbuf *out)
{
	return post_report_json_write(profile, options->result, options->waits, options->audit,
				      options->managed, out);
}

static int outputs_kind_svg(struct profile *profile, const struct outputs_options *options,
			    enum managed_kind kind, struct outbuf *out)
{
	const struct managed_profile *p = managed_profile_of(options->managed, kind);
	const struct tree_options from = {.event = p->event, .groups = p->v.v, .ngroups = p->v.len};
	struct svg_options svg = svg_options_default();
	struct tree tree;
	int r = outputs_tree(profile, options, from, &tree);

	svg.countname = managed_unit(options->managed, kind);
	svg.unit = strcmp(svg.countname, "ns") ? SVG_UNIT_COUNT : SVG_UNIT_NS;
	return r ? r : outputs_tree_svg(&tree, options, managed_kind_info(kind)->title, &svg, out);
}

static int outputs_kind_folded(struct profile *profile, const struct outputs_options *options,
			       enum managed_kind kind, struct outbuf *out)
{
	const struct managed_profile *p = managed_profile_of(options->managed, kind);
	bool is_time = !strcmp(managed_unit(options->managed, kind), "ns");
	const struct collapse_options collapse = {.names = outputs_names(options),
						  .srcline = options->lines,
						  .event_filter = managed_kind_info(kind)->name,
						  .groups = p->v.v,
						  .ngroups = p->v.len,
						  .divisor = is_time ? 1000 : 1};
	struct collapse_stats stats = {0};

	return collapse_write(profile, &collapse, out, &stats);
}

/* An output. */
struct outputs_file {
	const char *name;
	mode_t mode;
	int (*write)(struct profile *profile, const struct outputs_options *options,
		     struct outbuf *out);
	/* Instead of it, for an event profile. */
	int (*write_kind)(struct profile *profile, const struct outputs_options *options,
			  enum managed_kind kind, struct outbuf *out);
	enum managed_kind kind;
	bool wanted;
	bool stays; /* keep an older file if this one is not wanted */
	int error;
	const char *what; /* explains error; NULL: error is enough */
};

static void outputs_put(struct profile *profile, const struct outputs_options *options,
			struct outputs_file *f)
{
	struct replace file;

	f->error = replace_open(&file, options->dir_fd, f->name, f->mode);
	if (f->error)
		return;
	struct outbuf out = outbuf_to(file.fd);
	int closed;

	f->error = f->write_kind ? f->write_kind(profile, options, f->kind, &out)
				 : f->write(profile, options, &out);
	closed = outbuf_close(&out);
	if (!f->error)
		f->error = closed;
	if (!f->error)
		f->error = replace_commit(&file);
	replace_abort(&file);
}

/*
 * The archive has everything that another machine needs, and the outputs, to view them without
 * profcpu. Files that cannot be made again come first, in case the archive is cut. It leaves out
 * outputs that could not be written, because older files may have their names.
 */
static void outputs_archive(const struct outputs_options *options, const struct outputs_file *files,
			    size_t nfiles, struct outputs_file *f)
{
	static const char *const recorded[] = {
		RECORDING_MANIFEST, RECORDING_SYMBOLS,       RECORDING_SAMPLES,  RECORDING_OFFCPU,
		RECORDING_TRACE,    RECORDING_TRACE_THREADS, RECORDING_PERF_DATA};
	const char *members[sizeof(recorded) / sizeof(recorded[0]) + OUTPUTS_MAX + 1] = {NULL};
	struct parse_error err = {0};
	struct replace file;
	struct stat st;
	size_t n = 0;

	/* Skip missing files: a recording of perf has no manifest. */
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
		if (!fstatat(options->dir_fd, recorded[i], &st, AT_SYMLINK_NOFOLLOW))
			members[n++] = recorded[i];
	for (size_t i = 0; i < nfiles; i++) {
		bool is_there = (files[i].wanted || files[i].stays) && !files[i].error &&
				!fstatat(options->dir_fd, files[i].name, &st, AT_SYMLINK_NOFOLLOW);

		if (is_there && (strcmp(files[i].name, RECORDING_SCRIPT) ||
				 (uint64_t)st.st_size <= OUTPUTS_SCRIPT_IN_ARCHIVE_MAX))
			members[n++] = files[i].name;
		else if (is_there)
			log_note("%s: not in the archive, because it has %llu MB; `profcpu "
				 "postprocess %s` makes it again",
				 RECORDING_SCRIPT, (unsigned long long)st.st_size >> 20,
				 RECORDING_ARCHIVE);
	}
	f->error = replace_open(&file, options->dir_fd, f->name, f->mode);
	if (!f->error)
		f->error = archive_write(options->dir_fd, members, "prof", file.fd, &err);
	if (!f->error)
		f->error = replace_commit(&file);
	replace_abort(&file);
	f->what = err.what;
}

/*
 * Reports once all outputs that failed with one error, and the remedy. A recording on a full disk
 * can have its outputs elsewhere.
 */
static void outputs_report_failed(const struct outputs_options *options,
				  const struct outputs_file *files, size_t n)
{
	AUTO_FREE char *word = shell_word(options->dir);

	for (size_t i = 0; i < n; i++) {
		struct outbuf names = outbuf_to(-1);
		bool skip = !files[i].error;

		for (size_t k = 0; k < n && !skip; k++) {
			bool alike = files[k].error == files[i].error;

			skip = alike && k < i;
			if (alike)
				outbuf_printf(&names, "%s%s", names.len ? ", " : "", files[k].name);
		}
		outbuf_char(&names, 0);
		if (!skip && !names.error && options->in_place &&
		    remedy_is_disk_full(files[i].error))
			log_error("cannot write %s/%s: %s; free some space, or write elsewhere: "
				  "`profcpu postprocess -o NEW-DIR %s`",
				  options->dir, names.data, strerror(-files[i].error),
				  word ? word : "DIR");
		else if (!skip)
			log_error("cannot write %s/%s: %s%s%s%s", options->dir,
				  names.error ? files[i].name : names.data,
				  files[i].what ? files[i].what : "", files[i].what ? ": " : "",
				  strerror(-files[i].error), remedy_for(files[i].error));
		(void)outbuf_close(&names);
	}
}

/* Whether a kind was recorded, and happened. */
static bool outputs_has_kind(const struct outputs_options *options, enum managed_kind kind)
{
	return options->managed &&
	       managed_profile_of(options->managed, kind)->event != PROFILE_NONE;
}

/* Writes all but the archive, and removes older ones. */
static void outputs_put_all(struct profile *profile, const struct outputs_options *options,
			    struct outputs_file files[OUTPUTS_MAX + 1])
{
	const char *names[OUTPUTS_MAX + 2] = {RECORDING_MANIFEST};

	for (size_t i = 0; i <= OUTPUTS_MAX; i++)
		names[i + 1] = files[i].name;
	replace_remove_stale(options->dir_fd, names, OUTPUTS_MAX + 2);
	for (struct outputs_file *f = files; f < &files[OUTPUTS_MAX]; f++) {
		if (f->wanted)
			outputs_put(profile, options, f);
		else if (!f->stays)
			/* Remove an older file: it shows an earlier state of the recording. */
			(void)unlinkat(options->dir_fd, f->name, 0);
	}
}

/* The two files of an event profile, in post_outputs_write. */
#define OUTPUTS_KIND(k)                                                                 \
	{RECORDING_##k##_SVG,                                                           \
	 REPLACE_PUBLIC,                                                                \
	 .write_kind = outputs_kind_svg,                                                \
	 .kind = MANAGED_##k,                                                           \
	 .wanted = outputs_has_kind(options, MANAGED_##k),                              \
	 .stays = text},                                                                \
	{                                                                               \
		RECORDING_##k##_FOLDED, REPLACE_PUBLIC,                                 \
			.write_kind = outputs_kind_folded, .kind = MANAGED_##k,         \
			.wanted = outputs_has_kind(options, MANAGED_##k), .stays = text \
	}

int post_outputs_write(struct profile *profile, const struct outputs_options *options,
		       bool *ret_any)
{
	bool waits = profile_off_cpu_event(profile) != PROFILE_NONE,
	     wakeups = profile_wakeup_event(profile) != PROFILE_NONE;
	bool compares = options->compare != NULL, on_cpu = !options->result->data.no_cpu;
	bool differs = compares && options->methods->all[COMPARE_ON_CPU];
	bool wall = waits && options->wall, text = !input_is_recording(options->result->kind);

	/* The largest comes last, in case the disk gets full. */
	struct outputs_file files[OUTPUTS_MAX + 1] = {
		{RECORDING_SVG, REPLACE_PUBLIC, outputs_svg, .wanted = on_cpu},
		{RECORDING_FOLDED, REPLACE_PUBLIC, outputs_folded, .wanted = on_cpu},
		{RECORDING_OFFCPU_SVG, REPLACE_PUBLIC, outputs_off_cpu_svg, .wanted = waits,
		 .stays = text},
		{RECORDING_OFFCPU_FOLDED, REPLACE_PUBLIC, outputs_off_cpu_folded, .wanted = waits,
		 .stays = text},
		{RECORDING_WALL_SVG, REPLACE_PUBLIC, outputs_wall_svg, .wanted = wall,
		 .stays = text},
		{RECORDING_WALL_FOLDED, REPLACE_PUBLIC, outputs_wall_folded, .wanted = wall,
		 .stays = text},
		{RECORDING_WAKEUP_SVG, REPLACE_PUBLIC, outputs_wakeup_svg, .wanted = wakeups,
		 .stays = text},
		{RECORDING_WAKEUP_FOLDED, REPLACE_PUBLIC, outputs_wakeup_folded, .wanted = wakeups,
		 .stays = text},
		{RECORDING_COMPARE, REPLACE_PUBLIC, outputs_compare_json, .wanted = compares,
		 .stays = text},
		{RECORDING_COMPARE_TEXT, REPLACE_PUBLIC, outputs_compare_text, .wanted = compares,
		 .stays = text},
		{RECORDING_COMPARE_SVG, REPLACE_PUBLIC, outputs_compare_svg, .wanted = compares,
		 .stays = text},
		{RECORDING_COMPARE_DIFF, REPLACE_PUBLIC, outputs_compare_diff, .wanted = differs,
		 .stays = text},
		OUTPUTS_KIND(ALLOC),
		OUTPUTS_KIND(EXCEPTIONS),
		OUTPUTS_KIND(CONTENTION),
		OUTPUTS_KIND(GC),
		OUTPUTS_KIND(JIT),
		OUTPUTS_KIND(CAUSES),
		OUTPUTS_KIND(RUNTIME),
		{RECORDING_REPORT, REPLACE_PRIVATE, outputs_report, .wanted = true},
		{RECORDING_SCRIPT, REPLACE_PRIVATE, outputs_script,
		 .wanted = options->script && on_cpu, .stays = on_cpu},
		{RECORDING_ARCHIVE, REPLACE_PRIVATE, NULL, .wanted = options->archive,
		 .stays = true},
	};
	struct outputs_file *archive = &files[OUTPUTS_MAX];
	int r = 0;

	outputs_put_all(profile, options, files);
	if (archive->wanted)
		outputs_archive(options, files, OUTPUTS_MAX, archive);
	*ret_any = false;
	for (struct outputs_file *f = files; f <= archive; f++) {
		*ret_any |= f->wanted && !f->error;
		if (!r)
			r = f->error;
	}
	outputs_report_failed(options, files, OUTPUTS_MAX + 1);
	return r;
}
