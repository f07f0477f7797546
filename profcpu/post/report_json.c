#include "profcpu/post/report_json.h"

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "container/file_systems.h"
#include "profcpu/managed/report.h"
#include "symbols/store/jit_damage.h"

#include <string.h>

static void json_build_id(struct json_writer *p, const struct build_id *id)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (id->len)
		build_id_hex(id, hex);
	json_put_text(p, "build_id", id->len ? hex : NULL);
}

static void json_counts(struct json_writer *p, const struct audit_group *g)
{
	json_put_u64(p, "frames", audit_frames(g));
	json_put_u64(p, "named", g->frames[FRAME_IS_NAMED]);
	json_put_u64(p, "placed", g->frames[FRAME_IS_PLACED]);
	json_put_u64(p, "unknown", g->frames[FRAME_IS_UNKNOWN]);
}

/* Named and placed frames by source. */
static void json_sources(struct json_writer *p, const struct audit_group *g)
{
	struct json_writer sources = json_put_object(p, "sources");

	for (int i = 0; i < SYMBOL_SOURCES; i++)
		if (g->sources[i])
			json_put_u64(&sources, symbol_source_name((enum symbol_source)i),
				     g->sources[i]);
	json_put_end(&sources);
}

static void json_code(struct json_writer *p, const struct audit *audit)
{
	struct json_writer list = json_put_array(p, "code");

	for (enum audit_kind k = 0; k < AUDIT_KINDS; k++) {
		struct audit_group sum = {0};

		audit_sum(audit, k, &sum);
		if (!audit_frames(&sum))
			continue;
		struct json_writer item = json_put_object(&list, NULL);

		json_put_text(&item, "kind", audit_kind_name(k));
		json_counts(&item, &sum);
		json_sources(&item, &sum);
		json_put_end(&item);
	}
	json_put_end(&list);
}

static void json_who(struct json_writer *p, const struct audit_group *g)
{
	json_put_text(p, "kind", audit_kind_name(g->kind));
	if (g->path) {
		json_put_text(p, "path", g->path);
		json_build_id(p, &g->build_id);
	} else {
		json_put_i64(p, "pid", g->pid);
		json_put_text(p, "command", g->comm);
	}
}

static int json_unnamed(struct json_writer *p, const struct audit *audit)
{
	AUTO_FREE const struct audit_group **unnamed = NULL;
	size_t n = 0;
	int r = audit_list_unnamed(audit, &unnamed, &n);

	if (r)
		return r;
	struct json_writer list = json_put_array(p, "unnamed");

	for (size_t i = 0; i < n; i++) {
		const struct audit_group *g = unnamed[i];

		struct json_writer item = json_put_object(&list, NULL);

		json_who(&item, g);
		json_put_u64(&item, "placed", g->frames[FRAME_IS_PLACED]);
		json_put_u64(&item, "unknown", g->frames[FRAME_IS_UNKNOWN]);
		json_put_text(&item, "reason", audit_reason_word(g->reason));
		json_put_text(&item, "text", audit_reason_text(g->reason));
		if (g->detail)
			json_put_text(&item, "detail", g->detail);
		json_put_text(&item, "remedy", audit_remedy(g));
		json_put_end(&item);
	}
	json_put_end(&list);
	return 0;
}

static void json_images(struct json_writer *p, const struct audit *audit)
{
	struct json_writer list = json_put_array(p, "images");

	for (size_t i = 0; i < audit->groups.len; i++) {
		const struct audit_group *g = &audit->groups.v[i];

		if (!g->path)
			continue;
		struct json_writer item = json_put_object(&list, NULL);

		json_who(&item, g);
		json_counts(&item, g);
		json_sources(&item, g);
		json_put_end(&item);
	}
	json_put_end(&list);
}

static void json_process_code(struct json_writer *p, const struct audit *audit, int32_t pid)
{
	static const enum audit_kind kinds[] = {AUDIT_JIT, AUDIT_STUBS};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		for (size_t i = 0; i < audit->groups.len; i++) {
			const struct audit_group *g = &audit->groups.v[i];

			if (g->path || g->kind != kinds[k] || g->pid != pid)
				continue;
			struct json_writer code = json_put_object(p, audit_kind_name(g->kind));

			json_counts(&code, g);
			json_sources(&code, g);
			json_put_end(&code);
		}
	}
}

static void json_processes(struct json_writer *p, const struct audit *audit)
{
	struct json_writer list = json_put_array(p, "processes");

	for (size_t i = 0; i < audit->processes.len; i++) {
		const struct audit_process *process = &audit->processes.v[i];

		struct json_writer item = json_put_object(&list, NULL);

		json_put_i64(&item, "pid", process->pid);
		if (process->ns_pid)
			json_put_i64(&item, "ns_pid", process->ns_pid);
		json_put_text(&item, "command", process->comm);
		json_put_bool(&item, "dotnet", process->is_dotnet);
		json_put_text(&item, "version", process->version);
		json_put_text(&item, "way", process->way);
		json_put_text(&item, "why_not", process->why);
		json_put_bool(&item, "jitdump_stopped_early", process->jitdump_early);
		json_put_bool(&item, "names_still_written", process->open);
		json_put_u64(&item, "contradictions", process->contradictions);
		json_put_u64(&item, "doubts", process->doubts);
		json_process_code(&item, audit, process->pid);
		json_put_end(&item);
	}
	json_put_end(&list);
}

/* Files that were not opened because their file system may not answer. */
static void json_skipped(struct json_writer *p)
{
	struct file_system_skipped skipped[FILE_SYSTEMS_SKIPPED_MAX];
	size_t n = file_systems_skipped(skipped);
	struct json_writer list = json_put_array(p, "skipped_files");

	for (size_t i = 0; i < n; i++) {
		struct json_writer item = json_put_object(&list, NULL);

		json_put_text(&item, "file_system", skipped[i].type);
		json_put_u64(&item, "files", skipped[i].files);
		json_put_end(&item);
	}
	json_put_end(&list);
}

/* Stacks by grade, and user frames by how they were found. */
static void json_unwound(struct json_writer *p, const struct post_stacks_summary *s)
{
	for (int g = UNWIND_COMPLETE; g < UNWIND_GRADES; g++)
		json_put_u64(p, unwind_grade_text((enum unwind_grade)g), s->grades[g]);
	json_put_u64(p, unwind_grade_text(UNWIND_NO_STACK), s->grades[UNWIND_NO_STACK]);
	if (s->by_libdw)
		json_put_u64(p, "by_libdw", s->by_libdw);
	struct json_writer ends = json_put_object(p, "truncated_by");

	for (int e = 0; e < WALK_ENDS; e++)
		if (s->ends[e])
			json_put_u64(&ends, walk_end_text((enum walk_end)e), s->ends[e]);
	json_put_end(&ends);
	struct json_writer frames = json_put_object(p, "frames");

	json_put_u64(&frames, "found", s->found);
	json_put_u64(&frames, "spliced", s->spliced);
	json_put_u64(&frames, "guessed", s->guessed);
	json_put_end(&frames);
}

static void json_stacks(struct json_writer *p, const struct audit *audit,
			const struct post_stacks_summary *unwound)
{
	struct json_writer stacks = json_put_object(p, "stacks");

	json_put_text(&stacks, "by", unwound->known ? "unwinding" : "names");
	if (unwound->known) {
		json_unwound(&stacks, unwound);
		json_put_u64(&stacks, "with_start_function", audit->stacks_complete);
	} else {
		json_put_u64(&stacks, "complete", audit->stacks_complete);
		json_put_u64(&stacks, "truncated", audit->stacks_truncated);
	}
	json_put_end(&stacks);
}

static int json_audit(struct json_writer *p, const struct post_result *input,
		      const struct audit *audit)
{
	json_stacks(p, audit, &input->data.stacks);
	json_code(p, audit);
	int r = json_unnamed(p, audit);

	json_images(p, audit);
	json_processes(p, audit);
	struct json_writer jit = json_put_object(p, "jit_names");

	json_put_u64(&jit, "contradictions", audit->notes.jit_contradictions);
	json_put_u64(&jit, "doubts", audit->notes.jit_doubts);
	for (enum jit_damage_kind i = 0; i < JIT_DAMAGE_KINDS; i++)
		json_put_u64(&jit, jit_damage_report_key(i), audit->notes.damage.n[i]);
	json_put_end(&jit);
	return r;
}

static void json_limits(struct json_writer *p, const struct post_result *input)
{
	uint64_t lost = post_lost_samples(input);
	struct json_writer list = json_put_object(p, "limits");

	if (lost && !input->rings_free)
		json_put_u64(&list, "ring_memory", lost);
	for (enum recording_limit i = 0; i < LIMITS; i++)
		if (input->limits.cost[i])
			json_put_u64(&list, recording_limit_text(i).key, input->limits.cost[i]);
	json_put_end(&list);
}

int post_report_json_write(const struct profile *profile, const struct post_result *input,
			   const struct report_waits *waits, const struct audit *audit,
			   const struct managed_profiles *managed, struct outbuf *out)
{
	const struct wakeups_summary *w = &input->data.wakeups;
	const struct profile_text_changes texts = profile_text_changes(profile);
	int r = 0;

	struct json_writer top = json_put_document(out, JSON_LINES_ALL);

	json_put_u64(&top, "format", REPORT_JSON_FORMAT);
	json_put_u64(&top, "samples",
		     profile_nsamples(profile) - waits->samples - input->data.wakeups.samples);
	json_put_bool(&top, "no_cpu", input->data.no_cpu);
	json_put_u64(&top, "escaped_names", texts.escaped);
	json_put_u64(&top, "cut_names", texts.cut);
	if (waits->samples) {
		struct json_writer off = json_put_object(&top, "off_cpu");

		json_put_u64(&off, "waits", input->data.waits);
		json_put_u64(&off, "ns", waits->ns);
		json_put_u64(&off, "idle_ns", waits->idle_ns);
		json_put_u64(&off, "runnable_ns", input->data.off_runnable_ns);
		json_put_u64(&off, "estimated_ns", input->data.off_estimated_ns);
		json_put_u64(&off, "unknown_ns", input->data.off_unknown_ns);
		json_put_u64(&off, "lost_switches", input->data.lost_switches);
		if (w->blocked_ns) {
			json_put_u64(&off, "blocked_ns", w->blocked_ns);
			json_put_u64(&off, "ended_ns", w->ended_ns);
			json_put_u64(&off, "known_waker_ns", w->known_ns);
			json_put_u64(&off, "interrupt_ns", w->interrupt_ns);
			json_put_u64(&off, "left_out_waits", w->left_out);
			json_put_u64(&off, "left_out_ns", w->left_out_ns);
		}
		json_put_end(&off);
	}
	if (managed)
		managed_report_json(managed, profile, &top);
	if (input_is_recording(input->kind)) {
		json_put_u64(&top, "lost", post_lost_samples(input));
		json_put_u64(&top, "throttled", input->data.data.throttled);
		json_put_bool(&top, "damaged", input->damaged);
		json_put_u64(&top, "kernel_symbols_left_out", input->data.refused_kernel);
		json_put_u64(&top, "maps_left_out", input->data.dropped.maps);
		json_put_u64(&top, "maps_left_out_pid", (uint32_t)input->data.dropped.most_pid);
		json_limits(&top, input);
		json_skipped(&top);
		r = json_audit(&top, input, audit);
	}
	json_put_end(&top);
	return r ? r : out->error;
}
