#include "profcpu/post/report.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/path.h"
#include "base/vec.h"
#include "container/file_systems.h"
#include "profcpu/managed/report.h"
#include "profcpu/post/report_text.h"
#include "recording/manifest.h"
#include "symbols/store/jit_damage.h"
#include "symbols/symtab/kernel_ranges.h"
#include "unwind/libdw_child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weight of samples whose leaf is this function. */
struct report_self {
	uint32_t name;
	uint64_t weight;
};

/* A function and its own share, without callees. Frames with one full name are one function. */
struct report_function {
	uint32_t name; /* text of the profile */
	double share;  /* of the event's weight, 0 to 1 */
};

/* Finds the event on CPUs with the most samples; PROFILE_NONE: none has one. 0 or -ENOMEM. */
static int report_main_event(const struct profile *profile, const struct profile_group *groups,
			     size_t n, uint32_t *ret_event)
{
	uint64_t best = 0, *samples = calloc(profile_nevents(profile) + 1, sizeof(*samples));

	if (!samples)
		return -ENOMEM;
	*ret_event = PROFILE_NONE;
	for (size_t i = 0; i < n; i++)
		samples[groups[i].event] += groups[i].samples;
	for (uint32_t e = 0; e < profile_nevents(profile); e++) {
		if (samples[e] <= best || profile_event_of(profile, e)->off_cpu)
			continue;
		best = samples[e];
		*ret_event = e;
	}
	free(samples);
	return 0;
}

static int report_by_weight(const void *a, const void *b, void *profile)
{
	const struct report_self *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(profile_text_of(profile, x->name, NULL),
		      profile_text_of(profile, y->name, NULL));
}

/*
 * Finds the hottest functions of the event with the most samples, hottest first. Returns their
 * number or -errno.
 */
static int report_hottest(struct profile *profile,
			  struct report_function ret_functions[REPORT_HOTTEST])
{
	AUTO_FREE struct report_self *selves = NULL;
	struct hashmap by_name = {0};
	size_t n, nselves = 0;
	const struct profile_group *groups = profile_groups(profile, &n);
	uint64_t total = 0;
	uint32_t event;

	if (!n)
		return 0;
	int r = report_main_event(profile, groups, n, &event);

	selves = calloc(n, sizeof(*selves));
	if (r || !selves)
		return -ENOMEM;
	for (size_t i = 0; i < n && !r; i++) {
		uint32_t *place;
		int fresh;

		if (groups[i].event != event)
			continue;
		total += groups[i].weight;
		if (groups[i].stack == PROFILE_STACK_EMPTY)
			continue;
		const struct profile_frame *f =
			profile_frame_of(profile, profile_stack_frame(profile, groups[i].stack));

		r = hashmap_entry(&by_name, f->name, (uint32_t)nselves, &place, &fresh);
		if (!r && fresh)
			selves[nselves++] = (struct report_self){f->name, 0};
		if (!r)
			selves[*place].weight += groups[i].weight;
	}
	hashmap_free(&by_name);
	if (r)
		return r;
	qsort_r(selves, nselves, sizeof(*selves), report_by_weight, profile);
	int count = nselves < REPORT_HOTTEST ? (int)nselves : REPORT_HOTTEST;

	for (int i = 0; i < count; i++)
		ret_functions[i] = (struct report_function){
			selves[i].name, (double)selves[i].weight / (double)(total ? total : 1)};
	return count;
}

/* One line: why a group has no names, and the remedy. */
static void report_reason(const struct audit_group *g, uint64_t all, bool is_first, const char *dir,
			  struct outbuf *out)
{
	char share[REPORT_SHARE_BYTES], hex[2 * BUILD_ID_MAX + 1];

	report_text_share(audit_unnamed(g), all, share);
	outbuf_printf(out, "%-9s %8s  ", is_first ? "unnamed" : "", share);
	if (g->path)
		report_text_name(path_base(g->path), out);
	else if (g->reason == AUDIT_OTHER_PID_NS)
		outbuf_str(out, "stacks of other PID namespaces");
	else
		outbuf_printf(out, "%s of process %d",
			      g->kind == AUDIT_UNMAPPED ? "stacks" : "JIT-compiled code", g->pid);
	if (!g->path && g->comm && g->reason != AUDIT_OTHER_PID_NS) {
		outbuf_str(out, " (");
		report_text_name(g->comm, out);
		outbuf_char(out, ')');
	}
	outbuf_printf(out, ": %s", audit_reason_text(g->reason));
	if ((g->reason == AUDIT_NO_DEBUG_FILE || g->reason == AUDIT_NO_DBG ||
	     g->reason == AUDIT_DEBUG_DENIED) &&
	    g->build_id.len) {
		build_id_hex(&g->build_id, hex);
		outbuf_printf(out, " of build id %s", hex);
	}
	if (g->detail) {
		outbuf_str(out, ": ");
		report_text_name(g->detail, out);
	}
	if (audit_remedy(g)) {
		outbuf_str(out, "; ");
		audit_put_remedy(g, dir, out);
	}
	outbuf_char(out, '\n');
}

static int report_unnamed(const struct audit *a, uint64_t all, const char *dir, struct outbuf *out)
{
	AUTO_FREE const struct audit_group **list = NULL;
	uint64_t rest = 0;
	size_t n = 0;
	int r = audit_list_unnamed(a, &list, &n);

	for (size_t i = 0; i < n && !r; i++) {
		if (i < REPORT_UNNAMED)
			report_reason(list[i], all, !i, dir, out);
		else
			rest += audit_unnamed(list[i]);
	}
	if (rest)
		outbuf_printf(out, "%19s  and %zu other%s; %s has all of them\n", "",
			      n - REPORT_UNNAMED, n - REPORT_UNNAMED == 1 ? "" : "s",
			      RECORDING_REPORT);
	return r;
}

/* Files that were not opened because their file system may not answer. */
static void report_skipped(struct outbuf *out)
{
	struct file_system_skipped skipped[FILE_SYSTEMS_SKIPPED_MAX];
	size_t n = file_systems_skipped(skipped);

	for (size_t i = 0; i < n; i++) {
		const struct file_system_skipped *s = &skipped[i];

		bool unknown = !strcmp(s->type, FILE_SYSTEMS_UNKNOWN);

		outbuf_printf(out, "          %llu file%s on %s%s %s skipped: ",
			      (unsigned long long)s->files, s->files == 1 ? "" : "s", s->type,
			      unknown ? " mounts" : "", s->files == 1 ? "was" : "were");
		if (unknown) {
			outbuf_printf(out, "the process has too many mounts or changes them too "
					   "often, or memory is short; use fewer mounts, or "
					   "more memory\n");
			continue;
		}
		outbuf_printf(out, "that file system may never answer; ");
		if (s->may_permit)
			outbuf_printf(out, "use --allow-fs %s\n", s->type);
		else
			outbuf_printf(out, "--allow-fs cannot name it\n");
	}
}

/* Code without names because its map or module was over a limit. */
static void report_left_out(const struct import_result *data, struct outbuf *out)
{
	if (data->refused_kernel)
		outbuf_printf(
			out,
			"          %llu kernel modules and symbols were left out: the limit is "
			"%zu\n",
			(unsigned long long)data->refused_kernel, KERNEL_RANGES_MAX);
	if (data->dropped.maps)
		outbuf_printf(out,
			      "          %llu maps of code were left out: the limits are %zu maps "
			      "for each process, %.1f MiB for all, %.1f MiB for their files; half "
			      "for one process and its forks. Process %d lacks most\n",
			      (unsigned long long)data->dropped.maps, PROCESS_MAPS_MAX,
			      (double)data->dropped.maps_bytes / (1 << 20),
			      (double)data->dropped.images_bytes / (1 << 20),
			      (int)data->dropped.most_pid);
}

/* Sources of names of JIT-compiled code that were not used, or not all of them. */
static void report_jit_damage(const struct jit_damage *damage, struct outbuf *out)
{
	static const struct {
		enum jit_damage_kind kind;
		const char *one, *more, *text;
	} lines[] = {
		{JIT_DUMPS_EARLY, "jitdump is", "jitdumps are",
		 "incomplete; names of other sources win"},
		{JIT_DUMPS_REFUSED, "jitdump was", "jitdumps were",
		 "refused: damaged, of another process or user, too large, or too many"},
		{JIT_DUMP_BAD_RECORDS, "record", "records",
		 "of jitdumps were left out: damaged, or over a limit"},
		{JIT_PERFMAPS_REFUSED, "perf map was", "perf maps were",
		 "refused; " RECORDING_REPORT " gives the reason for each process"},
		{JIT_PERFMAP_BYTES_CUT, "byte", "bytes",
		 "of perf maps were left out: too little memory, or a file is locked; code may "
		 "lack names"},
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		uint64_t n = damage->n[lines[i].kind];

		if (n)
			outbuf_printf(out, "          %llu %s %s\n", (unsigned long long)n,
				      n == 1 ? lines[i].one : lines[i].more, lines[i].text);
	}
}

static int report_audit(const struct audit *a, const struct import_result *data, const char *dir,
			struct outbuf *out)
{
	char share[REPORT_SHARE_BYTES];
	uint64_t sum = 0;

	outbuf_printf(out, "names     %-9s %12s %8s %8s %8s\n", "code", "frames", "named", "placed",
		      "unknown");
	for (enum audit_kind k = 0; k < AUDIT_KINDS; k++) {
		struct audit_group kind = {0};

		audit_sum(a, k, &kind);
		if (!audit_frames(&kind))
			continue;
		sum += audit_frames(&kind);
		outbuf_printf(out, "          %-9s %12llu", audit_kind_name(k),
			      (unsigned long long)audit_frames(&kind));
		for (int s = FRAME_IS_NAMED; s >= FRAME_IS_UNKNOWN; s--) {
			report_text_share(kind.frames[s], audit_frames(&kind), share);
			outbuf_printf(out, " %8s", share);
		}
		outbuf_char(out, '\n');
	}
	int r = report_unnamed(a, sum, dir, out);

	report_jit_damage(&a->notes.damage, out);
	report_left_out(data, out);
	report_skipped(out);
	if (a->notes.jit_contradictions)
		outbuf_printf(
			out,
			"          %llu JIT-compiled functions have two names; the source with "
			"times wins\n",
			(unsigned long long)a->notes.jit_contradictions);
	return r;
}

/* Prints the share of one grade or end, unless n is 0. */
static void report_grade(uint64_t n, uint64_t all, const char *text, bool *is_first,
			 struct outbuf *out)
{
	char share[REPORT_SHARE_BYTES];

	if (!n)
		return;
	report_text_share(n, all, share);
	outbuf_printf(out, "%s%s %s", *is_first ? "" : ", ", share, text);
	*is_first = false;
}

static void report_unwound(const struct post_stacks_summary *s, struct outbuf *out)
{
	uint64_t all = 0, frames = s->found + s->spliced + s->guessed;
	bool is_first = true, is_first_end = true;
	char share[REPORT_SHARE_BYTES];

	for (int g = UNWIND_COMPLETE; g < UNWIND_GRADES; g++)
		all += s->grades[g];
	outbuf_str(out, "stacks    ");
	for (int g = UNWIND_COMPLETE; g < UNWIND_GRADES; g++)
		report_grade(s->grades[g], all, unwind_grade_text((enum unwind_grade)g), &is_first,
			     out);
	if (!all)
		outbuf_str(out, "none could be unwound");
	for (int e = 0; e < WALK_ENDS && s->grades[UNWIND_TRUNCATED]; e++) {
		if (s->ends[e] && is_first_end)
			outbuf_str(out, ": ");
		report_grade(s->ends[e], all, walk_end_text((enum walk_end)e), &is_first_end, out);
	}
	outbuf_char(out, '\n');
	if (s->by_libdw) {
		report_text_share(s->by_libdw, all, share);
		outbuf_printf(out, "%10s%s of 32-bit programs or another architecture: %s\n", "",
			      share,
			      libdw_child_works() ? "unwound by libdw"
						  : "not unwound: built without libdw");
	}
	if (!s->spliced && !s->guessed)
		return;
	is_first = true;
	outbuf_str(out, "frames    ");
	report_grade(s->found, frames, "found", &is_first, out);
	report_grade(s->spliced, frames, "spliced", &is_first, out);
	report_grade(s->guessed, frames, "guessed", &is_first, out);
	outbuf_char(out, '\n');
}

/* Without unwinding, the names of their roots show whether stacks are complete. */
static void report_roots(const struct audit *a, struct outbuf *out)
{
	char complete[REPORT_SHARE_BYTES], truncated[REPORT_SHARE_BYTES];

	report_text_share(a->stacks_complete, a->samples, complete);
	report_text_share(a->stacks_truncated, a->samples, truncated);
	outbuf_printf(out,
		      "stacks    %s reach a function that starts threads, %s end before it (not "
		      "unwound; by function names)\n",
		      complete, truncated);
}

static void report_losses(const struct post_result *input, struct outbuf *out)
{
	const struct perfdata_stats *d = &input->data.data;
	uint64_t lost = post_lost_samples(input);

	if (input->damaged)
		outbuf_str(out, " of an incomplete recording");
	else if (!lost && !d->throttled && !input->limits.cost[LIMIT_OTHER_RECORDS])
		outbuf_str(out, ", none lost");
	if (lost)
		outbuf_printf(out, ", %llu lost; use a lower -F%s", (unsigned long long)lost,
			      report_text_larger_rings(input->rings_free));
	if (d->throttled)
		outbuf_printf(out,
			      "%s throttled %llu times; use a lower -F, or raise "
			      "kernel.perf_event_max_sample_rate",
			      lost ? ";" : ",", (unsigned long long)d->throttled);
}

/* One line for each limit that cost something. */
static void report_limits(const struct recording_limits *limits, struct outbuf *out)
{
	bool is_first = true;

	for (enum recording_limit i = 0; i < LIMITS; i++) {
		struct recording_limit_text text = recording_limit_text(i);

		if (!limits->cost[i])
			continue;
		outbuf_printf(out, "%-9s %8llu  %s; %s\n", is_first ? "limits" : "",
			      (unsigned long long)limits->cost[i], text.cost, text.remedy);
		is_first = false;
	}
}

int post_report_write(struct profile *profile, const struct post_result *input,
		      const struct report_waits *waits, const struct audit *audit,
		      const struct managed_profiles *managed, const char *dir, struct outbuf *out)
{
	struct report_function hot[REPORT_HOTTEST];
	int n = report_hottest(profile, hot);

	if (n < 0)
		return n;
	if (input->data.no_cpu)
		outbuf_printf(out, "samples   none on CPUs were taken (--no-cpu)%s",
			      input->damaged ? "; the recording is incomplete" : "");
	else
		outbuf_printf(out, "samples   %llu",
			      (unsigned long long)(profile_nsamples(profile) - waits->samples -
						   input->data.wakeups.samples));
	if (input_is_recording(input->kind) && !input->data.no_cpu)
		report_losses(input, out);
	outbuf_char(out, '\n');
	if (waits->samples)
		report_waits_write(profile, waits, input, out);
	for (int i = 0; i < n; i++) {
		outbuf_printf(out, "%-9s %6.2f %%  ", i ? "" : "hottest", 100.0 * hot[i].share);
		report_text_name(profile_text_of(profile, hot[i].name, NULL), out);
		outbuf_char(out, '\n');
	}
	if (managed)
		managed_report_text(managed, profile, out);
	n = audit->samples ? report_audit(audit, &input->data, dir, out) : 0;
	if (audit->samples && input->data.stacks.known)
		report_unwound(&input->data.stacks, out);
	else if (audit->samples)
		report_roots(audit, out);
	report_limits(&input->limits, out);
	return n ? n : out->error;
}
