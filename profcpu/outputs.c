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

/* Writes one file by `write` and puts it in its place. */
static int outputs_file(struct profile *profile, const struct outputs_options *options, const char *name,
			mode_t mode, int (*write)(struct profile *, const struct outputs_options *, struct outbuf *))
{
	struct replace file;
	int r = replace_open(&file, options->dir_fd, name, mode);

	if (!r) {
		struct outbuf out = outbuf_to(file.fd);

		r = write(profile, options, &out);
		int closed = outbuf_close(&out);

		r = r ? r : closed;
		if (!r)
			r = replace_commit(&file);
		replace_abort(&file);
	}
	if (r)
		log_error("cannot write %s/%s: %s%s", options->dir, name, strerror(-r), mend_of(r));
	return r;
}

/*
 * The archive holds everything another machine needs, and behind it the outputs, so that they can be looked at without
 * profcpu. What could not be made again comes first, for the case that the archive is cut. Outputs that could not be written
 * are left out: what stands in their places is older.
 */
static int outputs_archive(const struct outputs_options *options, bool svg, bool folded, bool report, bool script, bool off_cpu,
			   bool wall, bool wakeups)
{
	const char *const all[] = {RECORDING_MANIFEST,
				   RECORDING_SYMBOLS,
				   RECORDING_SAMPLES,
				   RECORDING_OFFCPU,
				   RECORDING_PERF_DATA,
				   svg ? RECORDING_SVG : "",
				   folded ? RECORDING_FOLDED : "",
				   off_cpu ? RECORDING_OFFCPU_SVG : "",
				   off_cpu ? RECORDING_OFFCPU_FOLDED : "",
				   wall ? RECORDING_WALL_SVG : "",
				   wall ? RECORDING_WALL_FOLDED : "",
				   wakeups ? RECORDING_WAKEUP_SVG : "",
				   wakeups ? RECORDING_WAKEUP_FOLDED : "",
				   report ? RECORDING_REPORT : "",
				   script ? RECORDING_SCRIPT : ""};
	const char *members[sizeof(all) / sizeof(all[0]) + 1] = {NULL};
	size_t n = 0;
	struct parse_error err = {0};
	struct replace file;
	struct stat st;

	/* What perf recorded has no manifest. */
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!*all[i] || fstatat(options->dir_fd, all[i], &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (strcmp(all[i], RECORDING_SCRIPT) || (uint64_t)st.st_size <= OUTPUTS_SCRIPT_IN_ARCHIVE_MAX)
			members[n++] = all[i];
		else
			log_note("%s has %llu MB and stays out of %s; `profcpu postprocess` makes it again from the archive",
				 RECORDING_SCRIPT, (unsigned long long)st.st_size >> 20, RECORDING_ARCHIVE);
	}
	int r = replace_open(&file, options->dir_fd, RECORDING_ARCHIVE, REPLACE_PRIVATE);

	if (!r)
		r = archive_write(options->dir_fd, members, "prof", file.fd, &err);
	if (!r)
		r = replace_commit(&file);
	replace_abort(&file);
	if (r)
		log_error("cannot write %s/%s: %s%s%s%s", options->dir, RECORDING_ARCHIVE, err.what ? err.what : "",
			  err.what ? ": " : "", strerror(-r), mend_of(r));
	return r;
}

/* A picture and the folded stacks of the same. Without `wanted` they are gone from a recording: what stands there would be of what it was before. */
static int outputs_pair(struct profile *profile, const struct outputs_options *options, bool wanted, const char *svg_name,
			int (*svg)(struct profile *, const struct outputs_options *, struct outbuf *), const char *folded_name,
			int (*folded)(struct profile *, const struct outputs_options *, struct outbuf *))
{
	if (!wanted) {
		if (options->result->kind != SOURCE_TEXT) {
			(void)unlinkat(options->dir_fd, svg_name, 0);
			(void)unlinkat(options->dir_fd, folded_name, 0);
		}
		return 0;
	}
	int r = outputs_file(profile, options, svg_name, REPLACE_PUBLIC, svg);
	int also = outputs_file(profile, options, folded_name, REPLACE_PUBLIC, folded);

	return r ? r : also;
}

int outputs_write(struct profile *profile, const struct outputs_options *options, bool *ret_any)
{
	int r = outputs_file(profile, options, RECORDING_SVG, REPLACE_PUBLIC, outputs_svg);
	int folded = outputs_file(profile, options, RECORDING_FOLDED, REPLACE_PUBLIC, outputs_folded);
	int report = outputs_file(profile, options, RECORDING_REPORT, REPLACE_PRIVATE, outputs_report);
	int script = options->script ? outputs_file(profile, options, RECORDING_SCRIPT, REPLACE_PRIVATE, outputs_script) :
				       0;

	bool waits = profile_off_cpu_event(profile) != PROFILE_NONE;
	int off_cpu = outputs_pair(profile, options, waits, RECORDING_OFFCPU_SVG, outputs_off_cpu_svg, RECORDING_OFFCPU_FOLDED, outputs_off_cpu_folded);
	bool both = waits && options->offcpu && options->offcpu->nthreads;
	int wall = outputs_pair(profile, options, both, RECORDING_WALL_SVG, outputs_wall_svg, RECORDING_WALL_FOLDED, outputs_wall_folded);
	bool wakeups = profile_wakeup_event(profile) != PROFILE_NONE;
	int wakeup = outputs_pair(profile, options, wakeups, RECORDING_WAKEUP_SVG, outputs_wakeup_svg, RECORDING_WAKEUP_FOLDED, outputs_wakeup_folded);
	int archive = options->archive ? outputs_archive(options, !r, !folded, !report, !script, waits && !off_cpu, both && !wall,
							 wakeups && !wakeup) : 0;

	*ret_any = !r || !folded || !report || (options->script && !script) || (options->archive && !archive);
	r = r ? r : folded ? folded : report ? report : script ? script : off_cpu;
	return r ? r : wall ? wall : wakeup ? wakeup : archive;
}
