#include "profcpu/post/report_json.h"

#include "base/cleanup.h"
#include "profile/idle.h"
#include "symbols/store/jit_damage.h"

#include <string.h>

/* Position of a value: each begins a line of its own. */
struct json_place {
	struct outbuf *out;
	int depth;
	bool is_first;
};

static void json_next(struct json_place *p)
{
	outbuf_str(p->out, p->is_first ? "\n" : ",\n");
	outbuf_printf(p->out, "%*s", 2 * p->depth, "");
	p->is_first = false;
}

static void json_key(struct json_place *p, const char *key)
{
	json_next(p);
	outbuf_printf(p->out, "\"%s\": ", key);
}

static struct json_place json_begin(const struct json_place *p, char bracket)
{
	outbuf_char(p->out, bracket);
	return (struct json_place){p->out, p->depth + 1, true};
}

static void json_end(const struct json_place *p, char bracket)
{
	if (!p->is_first)
		outbuf_printf(p->out, "\n%*s", 2 * p->depth - 2, "");
	outbuf_char(p->out, bracket);
}

static void json_number(struct json_place *p, const char *key, uint64_t x)
{
	json_key(p, key);
	outbuf_u64(p->out, x);
}

static void json_bool(struct json_place *p, const char *key, bool x)
{
	json_key(p, key);
	outbuf_str(p->out, x ? "true" : "false");
}

static void json_text(struct json_place *p, const char *key, const char *text)
{
	json_key(p, key);
	if (!text) {
		outbuf_str(p->out, "null");
		return;
	}
	outbuf_char(p->out, '"');
	outbuf_json(p->out, text, strlen(text));
	outbuf_char(p->out, '"');
}

static void json_pid(struct json_place *p, const char *key, int32_t pid)
{
	json_key(p, key);
	outbuf_printf(p->out, "%d", pid);
}

static void json_build_id(struct json_place *p, const struct build_id *id)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (id->len)
		build_id_hex(id, hex);
	json_text(p, "build_id", id->len ? hex : NULL);
}

static void json_counts(struct json_place *p, const struct audit_group *g)
{
	json_number(p, "frames", audit_frames(g));
	json_number(p, "named", g->frames[FRAME_IS_NAMED]);
	json_number(p, "placed", g->frames[FRAME_IS_PLACED]);
	json_number(p, "unknown", g->frames[FRAME_IS_UNKNOWN]);
}

/* Named and placed frames by source. */
static void json_sources(struct json_place *p, const struct audit_group *g)
{
	json_key(p, "sources");
	struct json_place sources = json_begin(p, '{');

	for (int i = 0; i < SYMBOL_SOURCES; i++)
		if (g->sources[i])
			json_number(&sources, symbol_source_name((enum symbol_source)i),
				    g->sources[i]);
	json_end(&sources, '}');
}

static void json_code(struct json_place *p, const struct audit *audit)
{
	json_key(p, "code");
	struct json_place list = json_begin(p, '[');

	for (enum audit_kind k = 0; k < AUDIT_KINDS; k++) {
		struct audit_group sum = {0};

		audit_sum(audit, k, &sum);
		if (!audit_frames(&sum))
			continue;
		json_next(&list);
		struct json_place item = json_begin(&list, '{');

		json_text(&item, "kind", audit_kind_name(k));
		json_counts(&item, &sum);
		json_sources(&item, &sum);
		json_end(&item, '}');
	}
	json_end(&list, ']');
}

static void json_who(struct json_place *p, const struct audit_group *g)
{
	json_text(p, "kind", audit_kind_name(g->kind));
	if (g->path) {
		json_text(p, "path", g->path);
		json_build_id(p, &g->build_id);
	} else {
		json_pid(p, "pid", g->pid);
		json_text(p, "command", g->comm);
	}
}

static int json_unnamed(struct json_place *p, const struct audit *audit)
{
	AUTO_FREE const struct audit_group **unnamed = NULL;
	size_t n = 0;
	int r = audit_list_unnamed(audit, &unnamed, &n);

	if (r)
		return r;
	json_key(p, "unnamed");
	struct json_place list = json_begin(p, '[');

	for (size_t i = 0; i < n; i++) {
		const struct audit_group *g = unnamed[i];

		json_next(&list);
		struct json_place item = json_begin(&list, '{');

		json_who(&item, g);
		json_number(&item, "placed", g->frames[FRAME_IS_PLACED]);
		json_number(&item, "unknown", g->frames[FRAME_IS_UNKNOWN]);
		json_text(&item, "reason", audit_reason_word(g->reason));
		json_text(&item, "text", audit_reason_text(g->reason));
		if (g->detail)
			json_text(&item, "detail", g->detail);
		json_text(&item, "mend", audit_remedy(g));
		json_end(&item, '}');
	}
	json_end(&list, ']');
	return 0;
}

static void json_images(struct json_place *p, const struct audit *audit)
{
	json_key(p, "images");
	struct json_place list = json_begin(p, '[');

	for (size_t i = 0; i < audit->groups.len; i++) {
		const struct audit_group *g = &audit->groups.v[i];

		if (!g->path)
			continue;
		json_next(&list);
		struct json_place item = json_begin(&list, '{');

		json_who(&item, g);
		json_counts(&item, g);
		json_sources(&item, g);
		json_end(&item, '}');
	}
	json_end(&list, ']');
}

static void json_process_code(struct json_place *p, const struct audit *audit, int32_t pid)
{
	static const enum audit_kind kinds[] = {AUDIT_JIT, AUDIT_STUBS};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		for (size_t i = 0; i < audit->groups.len; i++) {
			const struct audit_group *g = &audit->groups.v[i];

			if (g->path || g->kind != kinds[k] || g->pid != pid)
				continue;
			json_key(p, audit_kind_name(g->kind));
			struct json_place code = json_begin(p, '{');

			json_counts(&code, g);
			json_sources(&code, g);
			json_end(&code, '}');
		}
	}
}

static void json_processes(struct json_place *p, const struct audit *audit)
{
	json_key(p, "processes");
	struct json_place list = json_begin(p, '[');

	for (size_t i = 0; i < audit->processes.len; i++) {
		const struct audit_process *process = &audit->processes.v[i];

		json_next(&list);
		struct json_place item = json_begin(&list, '{');

		json_pid(&item, "pid", process->pid);
		if (process->ns_pid)
			json_pid(&item, "ns_pid", process->ns_pid);
		json_text(&item, "command", process->comm);
		json_bool(&item, "dotnet", process->is_dotnet);
		json_text(&item, "version", process->version);
		json_text(&item, "way", process->way);
		json_text(&item, "why_not", process->why);
		json_bool(&item, "jitdump_stopped_early", process->jitdump_early);
		json_bool(&item, "names_still_written", process->open);
		json_number(&item, "contradictions", process->contradictions);
		json_number(&item, "doubts", process->doubts);
		json_process_code(&item, audit, process->pid);
		json_end(&item, '}');
	}
	json_end(&list, ']');
}

/* Stacks by grade, and user frames by how they were found. */
static void json_unwound(struct json_place *p, const struct post_stacks_summary *s)
{
	for (int g = UNWIND_COMPLETE; g < UNWIND_GRADES; g++)
		json_number(p, unwind_grade_text((enum unwind_grade)g), s->grades[g]);
	json_number(p, unwind_grade_text(UNWIND_NO_STACK), s->grades[UNWIND_NO_STACK]);
	json_key(p, "truncated_by");
	struct json_place ends = json_begin(p, '{');

	for (int e = 0; e < WALK_ENDS; e++)
		if (s->ends[e])
			json_number(&ends, walk_end_text((enum walk_end)e), s->ends[e]);
	json_end(&ends, '}');
	json_key(p, "frames");
	struct json_place frames = json_begin(p, '{');

	json_number(&frames, "found", s->found);
	json_number(&frames, "spliced", s->spliced);
	json_number(&frames, "guessed", s->guessed);
	json_end(&frames, '}');
}

static void json_stacks(struct json_place *p, const struct audit *audit,
			const struct post_stacks_summary *unwound)
{
	json_key(p, "stacks");
	struct json_place stacks = json_begin(p, '{');

	json_text(&stacks, "by", unwound->known ? "unwinding" : "names");
	if (unwound->known) {
		json_unwound(&stacks, unwound);
		json_number(&stacks, "with_start_function", audit->stacks_complete);
	} else {
		json_number(&stacks, "complete", audit->stacks_complete);
		json_number(&stacks, "truncated", audit->stacks_truncated);
	}
	json_end(&stacks, '}');
}

static int json_audit(struct json_place *p, const struct post_result *input,
		      const struct audit *audit)
{
	json_stacks(p, audit, &input->data.stacks);
	json_code(p, audit);
	int r = json_unnamed(p, audit);

	json_images(p, audit);
	json_processes(p, audit);
	json_key(p, "jit_names");
	struct json_place jit = json_begin(p, '{');

	json_number(&jit, "contradictions", audit->notes.jit_contradictions);
	json_number(&jit, "doubts", audit->notes.jit_doubts);
	for (enum jit_damage_kind i = 0; i < JIT_DAMAGE_KINDS; i++)
		json_number(&jit, jit_damage_report_key(i), audit->notes.damage.n[i]);
	json_end(&jit, '}');
	return r;
}

static void json_limits(struct json_place *p, const struct recording_limits *limits)
{
	json_key(p, "limits");
	struct json_place list = json_begin(p, '{');

	for (enum recording_limit i = 0; i < LIMITS; i++)
		if (limits->cost[i])
			json_number(&list, recording_limit_text(i).key, limits->cost[i]);
	json_end(&list, '}');
}

int post_report_json_write(struct profile *profile, const struct post_result *input,
			   const struct audit *audit, struct outbuf *out)
{
	struct json_place top = {out, 0, true};
	const struct wakeups_summary *w = &input->data.wakeups;
	const struct profile_text_changes texts = profile_text_changes(profile);
	uint64_t waits, off_ns, idle_ns = 0;
	int r = profile_off_cpu_sum(profile, &waits, &off_ns);

	if (!r && waits)
		r = idle_total_weight(profile, &idle_ns);

	top = json_begin(&top, '{');
	json_number(&top, "format", REPORT_JSON_FORMAT);
	json_number(&top, "samples",
		    profile_nsamples(profile) - waits - input->data.wakeups.samples);
	json_number(&top, "escaped_names", texts.escaped);
	json_number(&top, "cut_names", texts.cut);
	if (waits) {
		json_key(&top, "off_cpu");
		struct json_place off = json_begin(&top, '{');

		json_number(&off, "waits", waits - input->data.waits_split);
		json_number(&off, "ns", off_ns);
		json_number(&off, "idle_ns", idle_ns);
		json_number(&off, "runnable_ns", input->data.off_runnable_ns);
		json_number(&off, "estimated_ns", input->data.off_estimated_ns);
		json_number(&off, "unknown_ns", input->data.off_unknown_ns);
		json_number(&off, "lost_switches", input->data.lost_switches);
		if (w->blocked_ns) {
			json_number(&off, "blocked_ns", w->blocked_ns);
			json_number(&off, "ended_ns", w->ended_ns);
			json_number(&off, "known_waker_ns", w->known_ns);
			json_number(&off, "interrupt_ns", w->interrupt_ns);
			json_number(&off, "left_out_waits", w->left_out);
			json_number(&off, "left_out_ns", w->left_out_ns);
		}
		json_end(&off, '}');
	}
	if (input->kind != INPUT_TEXT) {
		json_number(&top, "lost", import_lost_samples(&input->data));
		json_number(&top, "throttled", input->data.data.throttled);
		json_bool(&top, "damaged", input->damaged);
		json_number(&top, "kernel_symbols_left_out", input->data.refused_kernel);
		json_number(&top, "maps_left_out", input->data.dropped_maps);
		json_limits(&top, &input->limits);
		r = r ? r : json_audit(&top, input, audit);
	}
	json_end(&top, '}');
	outbuf_char(out, '\n');
	return r ? r : out->error;
}
