#include "profcpu/outputs.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/replace.h"
#include "flamegraph/collapse.h"
#include "flamegraph/svg.h"
#include "flamegraph/tree_profile.h"
#include "profcpu/mend.h"
#include "profcpu/report_json.h"
#include "profcpu/wall.h"
#include "recording/archive.h"
#include "recording/recording.h"
#include "recording/script_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTPUTS_MAX 10 /* beside the archive */

static int outputs_svg(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	struct tree_options from = {.event = PROFILE_NONE};
	struct svg_options svg = svg_options_default();
	struct svg_stats stats;
	struct tree tree;
	int r = tree_from_profile(&tree, profile, &from);

	if (r)
		return r;
	if (tree.event != PROFILE_NONE) {
		const struct profile_event *event = profile_event_of(profile, tree.event);

		svg_options_of_event(&svg, profile_text_of(profile, event->name, NULL), event->has_period);
	}
	svg.title = options->title;
	r = svg_write(&tree, &svg, out, &stats);
	tree_free(&tree);
	return r;
}

static int outputs_folded(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	struct collapse_options collapse = {.names = COLLAPSE_PERF, .srcline = options->lines};
	struct collapse_stats stats = {0};

	collapse.default_event = options->first_event;
	return collapse_write(profile, &collapse, out, &stats);
}

static int outputs_waits_svg(struct profile *profile, uint32_t event, const char *title, enum palette_scheme scheme, bool idle,
			     struct outbuf *out)
{
	const struct tree_options from = {.event = event, .show_idle = idle};
	struct svg_options svg = svg_options_default();
	struct svg_stats stats;
	struct tree tree;
	int r = tree_from_profile(&tree, profile, &from);

	if (r)
		return r;
	svg.unit = SVG_UNIT_NS;
	svg.title = title;
	svg.palette.scheme = scheme;
	r = svg_write(&tree, &svg, out, &stats);
	tree_free(&tree);
	return r;
}

static int outputs_off_cpu_svg(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	return outputs_waits_svg(profile, profile_off_cpu_event(profile), "Off-CPU", PALETTE_IO, options->idle, out);
}

static int outputs_wakeup_svg(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	return outputs_waits_svg(profile, profile_wakeup_event(profile), "Wakeups", PALETTE_WAKEUP, options->idle, out);
}

static int outputs_waits_folded(struct profile *profile, uint32_t of, const struct outputs_options *options, struct outbuf *out)
{
	const struct profile_event *event = profile_event_of(profile, of);
	const struct collapse_options collapse = {.names = COLLAPSE_PERF,
						  .srcline = options->lines,
						  .event_filter = profile_text_of(profile, event->name, NULL),
						  .show_idle = options->idle,
						  .divisor = 1000};
	struct collapse_stats stats = {0};

	return collapse_write(profile, &collapse, out, &stats);
}

static int outputs_off_cpu_folded(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	return outputs_waits_folded(profile, profile_off_cpu_event(profile), options, out);
}

static int outputs_wakeup_folded(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	return outputs_waits_folded(profile, profile_wakeup_event(profile), options, out);
}

static int outputs_wall_svg(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	struct tree_options from = {.event = profile_off_cpu_event(profile), .with_tids = true, .show_idle = true};
	struct svg_options svg = svg_options_default();
	AUTO_FREE struct profile_group *groups = NULL;
	struct svg_stats stats;
	struct tree tree;
	int r = wall_groups(profile, options->offcpu, options->idle, &groups, &from.ngroups);

	from.groups = groups;
	if (!r)
		r = tree_from_profile(&tree, profile, &from);
	if (r)
		return r;
	svg.unit = SVG_UNIT_NS;
	svg.title = "Wall clock";
	r = svg_write(&tree, &svg, out, &stats);
	tree_free(&tree);
	return r;
}

static int outputs_wall_folded(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	const struct profile_event *event = profile_event_of(profile, profile_off_cpu_event(profile));
	struct collapse_options collapse = {.names = COLLAPSE_PERF,
					    .include_pid = true,
					    .include_tid = true,
					    .srcline = options->lines,
					    .event_filter = profile_text_of(profile, event->name, NULL),
					    .show_idle = true, /* it was folded, or not, by now */
					    .divisor = 1000};
	AUTO_FREE struct profile_group *groups = NULL;
	struct collapse_stats stats = {0};
	int r = wall_groups(profile, options->offcpu, options->idle, &groups, &collapse.ngroups);

	collapse.groups = groups;
	return r ? r : collapse_write(profile, &collapse, out, &stats);
}

static int outputs_script(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	(void)options;
	return script_text_write(profile, out);
}

static int outputs_report(struct profile *profile, const struct outputs_options *options, struct outbuf *out)
{
	return report_json_write(profile, options->result, options->audit, out);
}

/* One of the files. */
struct outputs_file {
	const char *name;
	mode_t mode;
	int (*write)(struct profile *profile, const struct outputs_options *options, struct outbuf *out);
	bool wanted;
	bool stays; /* what stands there without it being wanted */
	int error;
	const char *what; /* of error; NULL: it says all */
};

static void outputs_put(struct profile *profile, const struct outputs_options *options, struct outputs_file *f)
{
	struct replace file;

	f->error = replace_open(&file, options->dir_fd, f->name, f->mode);
	if (f->error)
		return;
	struct outbuf out = outbuf_to(file.fd);
	int closed;

	f->error = f->write(profile, options, &out);
	closed = outbuf_close(&out);
	if (!f->error)
		f->error = closed;
	if (!f->error)
		f->error = replace_commit(&file);
	replace_abort(&file);
}

/*
 * The archive holds everything another machine needs, and behind it the outputs, so that they can be looked at without
 * profcpu. What could not be made again comes first, for the case that the archive is cut. Outputs that could not be written
 * are left out: what stands in their places is older.
 */
static void outputs_archive(const struct outputs_options *options, const struct outputs_file *files, size_t nfiles, struct outputs_file *f)
{
	static const char *const recorded[] = {RECORDING_MANIFEST, RECORDING_SYMBOLS, RECORDING_SAMPLES, RECORDING_OFFCPU, RECORDING_PERF_DATA};
	const char *members[sizeof(recorded) / sizeof(recorded[0]) + OUTPUTS_MAX + 1] = {NULL};
	struct parse_error err = {0};
	struct replace file;
	struct stat st;
	size_t n = 0;

	/* What perf recorded has no manifest. */
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++)
		if (!fstatat(options->dir_fd, recorded[i], &st, AT_SYMLINK_NOFOLLOW))
			members[n++] = recorded[i];
	for (size_t i = 0; i < nfiles; i++) {
		bool is_there = (files[i].wanted || files[i].stays) && !files[i].error &&
				!fstatat(options->dir_fd, files[i].name, &st, AT_SYMLINK_NOFOLLOW);

		if (is_there && (strcmp(files[i].name, RECORDING_SCRIPT) || (uint64_t)st.st_size <= OUTPUTS_SCRIPT_IN_ARCHIVE_MAX))
			members[n++] = files[i].name;
		else if (is_there)
			log_note("%s has %llu MB and stays out of %s; `profcpu postprocess` makes it again from the archive",
				 RECORDING_SCRIPT, (unsigned long long)st.st_size >> 20, RECORDING_ARCHIVE);
	}
	f->error = replace_open(&file, options->dir_fd, f->name, f->mode);
	if (!f->error)
		f->error = archive_write(options->dir_fd, members, "prof", file.fd, &err);
	if (!f->error)
		f->error = replace_commit(&file);
	replace_abort(&file);
	f->what = err.what;
}

/* A line for all that failed alike, with what helps: what is on a full disk can be read where it is. */
static void outputs_say_failed(const struct outputs_options *options, const struct outputs_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct outbuf names = outbuf_to(-1);
		bool said = !files[i].error;

		for (size_t k = 0; k < n && !said; k++) {
			bool alike = files[k].error == files[i].error;

			said = alike && k < i;
			if (alike)
				outbuf_printf(&names, "%s%s", names.len ? ", " : "", files[k].name);
		}
		outbuf_char(&names, 0);
		if (!said && !names.error && options->in_place && mend_is_room(files[i].error))
			log_error("cannot write %s/%s: %s; make room, or have them elsewhere: `profcpu postprocess -o NEW-DIR %s`", options->dir,
				  names.data, strerror(-files[i].error), options->dir);
		else if (!said)
			log_error("cannot write %s/%s: %s%s%s%s", options->dir, names.error ? files[i].name : names.data,
				  files[i].what ? files[i].what : "", files[i].what ? ": " : "", strerror(-files[i].error),
				  mend_of(files[i].error));
		(void)outbuf_close(&names);
	}
}

int outputs_write(struct profile *profile, const struct outputs_options *options, bool *ret_any)
{
	bool waits = profile_off_cpu_event(profile) != PROFILE_NONE, wakeups = profile_wakeup_event(profile) != PROFILE_NONE;
	bool threads = waits && options->offcpu && options->offcpu->nthreads, text = options->result->kind == SOURCE_TEXT;
	/* The largest comes last, should the disk get full. */
	struct outputs_file files[OUTPUTS_MAX + 1] = {
		{RECORDING_SVG, REPLACE_PUBLIC, outputs_svg, .wanted = true},
		{RECORDING_FOLDED, REPLACE_PUBLIC, outputs_folded, .wanted = true},
		{RECORDING_OFFCPU_SVG, REPLACE_PUBLIC, outputs_off_cpu_svg, .wanted = waits, .stays = text},
		{RECORDING_OFFCPU_FOLDED, REPLACE_PUBLIC, outputs_off_cpu_folded, .wanted = waits, .stays = text},
		{RECORDING_WALL_SVG, REPLACE_PUBLIC, outputs_wall_svg, .wanted = threads, .stays = text},
		{RECORDING_WALL_FOLDED, REPLACE_PUBLIC, outputs_wall_folded, .wanted = threads, .stays = text},
		{RECORDING_WAKEUP_SVG, REPLACE_PUBLIC, outputs_wakeup_svg, .wanted = wakeups, .stays = text},
		{RECORDING_WAKEUP_FOLDED, REPLACE_PUBLIC, outputs_wakeup_folded, .wanted = wakeups, .stays = text},
		{RECORDING_REPORT, REPLACE_PRIVATE, outputs_report, .wanted = true},
		{RECORDING_SCRIPT, REPLACE_PRIVATE, outputs_script, .wanted = options->script, .stays = true},
		{RECORDING_ARCHIVE, REPLACE_PRIVATE, NULL, .wanted = options->archive, .stays = true},
	};
	struct outputs_file *archive = &files[OUTPUTS_MAX];
	const char *names[OUTPUTS_MAX + 2] = {RECORDING_MANIFEST};
	int r = 0;

	for (size_t i = 0; i <= OUTPUTS_MAX; i++)
		names[i + 1] = files[i].name;
	replace_clear(options->dir_fd, names, OUTPUTS_MAX + 2);
	for (struct outputs_file *f = files; f < archive; f++) {
		if (f->wanted)
			outputs_put(profile, options, f);
		else if (!f->stays)
			/* It would be of what the recording was before. */
			(void)unlinkat(options->dir_fd, f->name, 0);
	}
	if (archive->wanted)
		outputs_archive(options, files, OUTPUTS_MAX, archive);
	*ret_any = false;
	for (struct outputs_file *f = files; f <= archive; f++) {
		*ret_any |= f->wanted && !f->error;
		if (!r)
			r = f->error;
	}
	outputs_say_failed(options, files, OUTPUTS_MAX + 1);
	return r;
}
