#include "profcpu/stacks/print.h"

#include "base/json_writer.h"
#include "profcpu/stacks/syscall_name.h"

#include <string.h>

#define PRINT_NAME_BYTES 4096 /* of a name on a terminal */
#define PRINT_RUN 3           /* threads with consecutive ids that are printed as a range */

/* A frame as it is printed. */
struct print_frame {
	const char *name, *kind, *module, *line; /* module, line: NULL: none */
	size_t len;                              /* of name */
	bool inlined;
};

/* Calls put for each frame, innermost first: those from /proc, then those of the stack. */
static void print_frames(const struct snapshot *s, const struct stacks_thread *thread,
			 void (*put)(void *ctx, const struct print_frame *frame), void *ctx)
{
	static const char *const kinds[FRAME_KINDS] = {[FRAME_UNKNOWN] = "unknown",
						       [FRAME_KERNEL] = "kernel",
						       [FRAME_NATIVE] = "native",
						       [FRAME_RUNTIME] = "runtime",
						       [FRAME_MANAGED] = "managed"};
	const struct profile *p = s->profile;

	for (const char *at = thread->kernel ? thread->kernel : ""; *at;) {
		size_t len = strcspn(at, "\n");

		put(ctx, &(struct print_frame){.name = at, .kind = "kernel", .len = len});
		at += len + (at[len] == '\n');
	}
	for (uint32_t at = thread->stack; at != PROFILE_STACK_EMPTY;
	     at = profile_stack_parent(p, at)) {
		const struct profile_frame *f = profile_frame_of(p, profile_stack_frame(p, at));
		const char *kind = kinds[f->kind];
		uint32_t len;
		const char *name = profile_text_of(p, f->name, &len);

		put(ctx, &(struct print_frame){
				 .name = name,
				 .len = len,
				 .kind = kind ? kind : "mark",
				 .module = f->module == PROFILE_NONE
						   ? NULL
						   : profile_text_of(p, f->module, NULL),
				 .line = f->srcline == PROFILE_NONE
						 ? NULL
						 : profile_text_of(p, f->srcline, NULL),
				 .inlined = f->inlined,
			 });
	}
}

/* Managed code in memory has no useful module, and names in brackets have theirs. */
static void text_put_module(struct outbuf *out, const struct print_frame *f)
{
	const char *slash = f->module ? strrchr(f->module, '/') : NULL;

	if (!strcmp(f->kind, "kernel"))
		outbuf_str(out, " [kernel]");
	else if (slash && slash[1] && f->name[0] != '[' && strcmp(f->kind, "managed") != 0)
		outbuf_printf(out, " (%s)", slash + 1);
}

static void text_put_frame(void *ctx, const struct print_frame *f)
{
	struct outbuf *out = ctx;

	outbuf_str(out, "    ");
	outbuf_printable(out, f->name, f->len, PRINT_NAME_BYTES);
	text_put_module(out, f);
	if (f->line)
		outbuf_printf(out, " %s", f->line);
	if (f->inlined)
		outbuf_str(out, " (inlined)");
	outbuf_char(out, '\n');
}

/* Number of threads from the first on that have the same name and consecutive ids. */
static size_t text_run(const struct stacks_thread *const *threads, size_t n)
{
	size_t run = 1;

	while (run < n && threads[run]->tid == threads[0]->tid + (pid_t)run &&
	       !strcmp(threads[run]->name, threads[0]->name))
		run++;
	return run;
}

/* One line for each name: "  NAME: TID TID FIRST-LAST". */
static void text_put_threads(struct outbuf *out, const struct stacks_group *g)
{
	for (size_t i = 0, run; i < g->n; i += run) {
		const char *name = g->threads[i]->name;

		run = text_run(g->threads + i, g->n - i);
		if (run < PRINT_RUN)
			run = 1;
		if (!i || strcmp(name, g->threads[i - 1]->name) != 0) {
			outbuf_str(out, i ? "\n  " : "  ");
			outbuf_printable(out, name, strlen(name), PRINT_NAME_BYTES);
			outbuf_char(out, ':');
		}
		outbuf_printf(out, " %d", g->threads[i]->tid);
		if (run > 1)
			outbuf_printf(out, "-%d", g->threads[i + run - 1]->tid);
	}
	outbuf_char(out, '\n');
}

static void text_put_group(struct outbuf *out, const struct snapshot *s,
			   const struct stacks_group *g)
{
	const struct stacks_thread *first = g->threads[0];
	char state[STACKS_STATE_BYTES];

	stacks_group_state(first, state);
	outbuf_printf(out, "\n%zu thread%s, %s\n", g->n, g->n == 1 ? "" : "s", state);
	text_put_threads(out, g);
	print_frames(s, first, text_put_frame, out);
	if (first->why)
		outbuf_printf(out, "    [no stack: %s]\n", first->why);
}

static size_t count_ended(const struct snapshot *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->threads.list.len; i++)
		n += s->threads.list.v[i].ended;
	return n;
}

static const char *process_name(const struct snapshot *s)
{
	const struct stacks_thread *main = stacks_threads_find(&s->threads, s->threads.pid);

	return main ? main->name : "";
}

void stacks_print_text(struct outbuf *out, const struct snapshot *s,
		       const struct stacks_groups *groups)
{
	size_t ended = count_ended(s), n = s->threads.list.len - ended;
	const char *name = process_name(s);

	outbuf_printf(out, "process %d (", s->threads.pid);
	outbuf_printable(out, name, strlen(name), PRINT_NAME_BYTES);
	outbuf_printf(out, "): %zu thread%s, %zu different stack%s\n", n, n == 1 ? "" : "s",
		      groups->list.len, groups->list.len == 1 ? "" : "s");
	for (size_t i = 0; i < groups->list.len; i++)
		text_put_group(out, s, &groups->list.v[i]);
	if (ended)
		outbuf_printf(out, "\n%zu thread%s ended meanwhile\n", ended,
			      ended == 1 ? "" : "s");
	if (s->threads.left_out)
		outbuf_printf(out, "\n%zu threads left out: there are more than %d\n",
			      s->threads.left_out, STACKS_THREADS_MAX);
}

static void json_put_frame(void *ctx, const struct print_frame *f)
{
	struct json_writer w = json_put_object(ctx, NULL);

	json_put_chars(&w, "name", f->name, f->len);
	json_put_text(&w, "kind", f->kind);
	if (f->module)
		json_put_text(&w, "module", f->module);
	if (f->line)
		json_put_text(&w, "line", f->line);
	if (f->inlined)
		json_put_bool(&w, "inlined", true);
	json_put_end(&w);
}

static void json_put_threads(struct json_writer *w, const struct stacks_group *g)
{
	struct json_writer list = json_put_array(w, "threads");

	for (size_t i = 0; i < g->n; i++) {
		struct json_writer thread = json_put_object(&list, NULL);

		json_put_i64(&thread, "tid", g->threads[i]->tid);
		json_put_i64(&thread, "tid_inside", g->threads[i]->ns_tid);
		json_put_text(&thread, "name", g->threads[i]->name);
		json_put_end(&thread);
	}
	json_put_end(&list);
}

static void json_put_group(struct json_writer *groups, const struct snapshot *s,
			   const struct stacks_group *g)
{
	const struct stacks_thread *first = g->threads[0];
	char state[STACKS_STATE_BYTES], kernel_state[] = {first->state, 0};
	struct json_writer w = json_put_object(groups, NULL);

	stacks_group_state(first, state);
	json_put_u64(&w, "count", g->n);
	json_put_text(&w, "state", state);
	json_put_text(&w, "kernel_state", kernel_state);
	if (first->how == STACKS_WAITING && first->number >= 0) {
		json_put_i64(&w, "system_call_number", first->number);
		json_put_text(&w, "system_call", syscall_name(first->number));
	}
	if (first->why)
		json_put_text(&w, "no_stack", first->why);
	json_put_threads(&w, g);
	struct json_writer frames = json_put_array(&w, "frames");

	print_frames(s, first, json_put_frame, &frames);
	json_put_end(&frames);
	json_put_end(&w);
}

void stacks_print_json(struct outbuf *out, const struct snapshot *s,
		       const struct stacks_groups *groups)
{
	struct json_writer w = json_put_document(out, 2);
	size_t ended = count_ended(s);

	json_put_i64(&w, "pid", s->threads.pid);
	json_put_text(&w, "name", process_name(s));
	json_put_u64(&w, "realtime_ns", s->realtime_ns);
	json_put_u64(&w, "duration_ns", s->duration_ns);
	json_put_text(&w, "source", s->by_runtime ? "runtime" : "kernel");
	json_put_u64(&w, "threads", s->threads.list.len - ended);
	json_put_u64(&w, "ended", ended);
	json_put_u64(&w, "left_out", s->threads.left_out);
	struct json_writer list = json_put_array(&w, "groups");

	for (size_t i = 0; i < groups->list.len; i++)
		json_put_group(&list, s, &groups->list.v[i]);
	json_put_end(&list);
	json_put_end(&w);
}
