#include "symbols/audit.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "symbols/callchain_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The properties that count for each sample with a frame. */
struct audit_frame {
	uint8_t kind; /* enum audit_kind; AUDIT_KINDS: not counted */
	uint8_t status, source, flags;
	uint32_t group; /* of the kinds that are grouped by image */
};

/* A process with samples. */
struct audit_pid {
	int32_t pid;
	uint32_t comm;     /* profile text */
	bool comm_is_main; /* comm is that of the main thread */
	bool is_dotnet;
	enum jit_runtime runtime;
	uint32_t groups[AUDIT_KINDS - AUDIT_PROCESS_KINDS]; /* index + 1; 0: none yet */
};

struct audit_work {
	const struct audit_input *in;
	struct audit *audit;
	struct audit_frame *frames; /* by frame of the profile */
	uint32_t *image_groups;     /* by image and kind: index + 1; 0: none yet */
	VEC(struct audit_pid) pids;
	struct hashmap by_pid; /* index into pids */
};

static void audit_group_free(struct audit_group *g)
{
	free(g->path);
	free(g->comm);
	free(g->detail);
}

void audit_free(struct audit *a)
{
	for (size_t i = 0; i < a->groups.len; i++)
		audit_group_free(&a->groups.v[i]);
	for (size_t i = 0; i < a->processes.len; i++) {
		free(a->processes.v[i].comm);
		free(a->processes.v[i].version);
		free(a->processes.v[i].way);
		free(a->processes.v[i].why);
	}
	vec_free(&a->groups);
	vec_free(&a->processes);
	*a = (struct audit){0};
}

/* Copies a text of the recording, without " (deleted)". */
static int audit_path(const struct lookup_cache *a, uint32_t text, char **ret_path)
{
	static const char tail[] = " (deleted)";
	const char *path = intern_text(&a->texts, text);
	size_t len = strlen(path), n = strlen(tail);

	if (len > n && !strcmp(path + len - n, tail))
		len -= n;
	*ret_path = strndup(path, len);
	return *ret_path ? 0 : -ENOMEM;
}

static const struct lookup_cache_stripped *audit_stripped(const struct lookup_cache *a,
							  const struct lookup_cache_image *image)
{
	const struct lookup_cache_stripped *stripped =
		image->stripped ? &a->stripped.v[image->stripped - 1] : NULL;

	return stripped && !stripped->named ? stripped : NULL;
}

static enum audit_kind audit_kind_of(const struct lookup_cache *a,
				     const struct profile_frame *frame,
				     const struct lookup_cache_image *image)
{
	if (!image)
		return frame->kind == FRAME_KERNEL ? AUDIT_KERNEL : AUDIT_UNMAPPED;
	if (image->key.kind == IMAGE_KIND_KERNEL)
		return AUDIT_KERNEL;
	if (frame->source == SYMBOL_AOT)
		return AUDIT_AOT;
	if (symbol_source_is_managed(frame->source) && frame->kind == FRAME_RUNTIME)
		return AUDIT_STUBS;
	if (image->key.kind == IMAGE_KIND_JIT)
		return AUDIT_JIT;
	if (image->key.kind == IMAGE_KIND_OTHER)
		return AUDIT_UNMAPPED;
	if (frame->kind == FRAME_MANAGED)
		return AUDIT_R2R;
	if (frame->kind == FRAME_RUNTIME)
		return AUDIT_RUNTIME;
	return audit_stripped(a, image) || image->why == IMAGE_REASON_NO_SYMBOLS ? AUDIT_STRIPPED
										 : AUDIT_NATIVE;
}

static int audit_image_group(struct audit_work *w, enum audit_kind kind, uint32_t image,
			     uint32_t *ret_group)
{
	const struct lookup_cache *a = w->in->lookup_cache;
	uint32_t *place = &w->image_groups[(size_t)image * AUDIT_PROCESS_KINDS + kind];
	const struct lookup_cache_image *cached = &a->images.v[image];
	const struct image_key *key = &cached->key;
	const struct lookup_cache_stripped *stripped =
		cached->stripped ? &a->stripped.v[cached->stripped - 1] : NULL;
	struct audit_group group = {.kind = kind,
				    .build_id = stripped ? stripped->build_id : key->build_id};
	int r;

	if (!*place) {
		r = audit_path(a, key->path, &group.path);
		if (!r && vec_push(&w->audit->groups, group)) {
			free(group.path);
			r = -ENOMEM;
		}
		if (r)
			return r;
		*place = (uint32_t)w->audit->groups.len;
	}
	*ret_group = *place - 1;
	return 0;
}

static int audit_classify_frame(struct audit_work *w, uint32_t id)
{
	const struct profile_frame *frame = profile_frame_of(w->in->profile, id);
	struct audit_frame *f = &w->frames[id];
	uint32_t image = id < w->in->nframe_images ? w->in->frame_images[id] : LOOKUP_NONE;

	*f = (struct audit_frame){.status = frame->status, .source = frame->source};
	f->flags = id < w->in->nframe_flags ? w->in->frame_flags[id] : 0;
	f->kind = (uint8_t)audit_kind_of(
		w->in->lookup_cache, frame,
		image == LOOKUP_NONE ? NULL : &w->in->lookup_cache->images.v[image]);
	if (f->kind < AUDIT_PROCESS_KINDS && image == LOOKUP_NONE)
		f->kind = AUDIT_UNMAPPED;
	if (frame->inlined || frame->is_mark || !frame_kind_is_code(frame->kind))
		f->kind = AUDIT_KINDS;
	return f->kind < AUDIT_PROCESS_KINDS ? audit_image_group(w, f->kind, image, &f->group) : 0;
}

static int audit_get_pid(struct audit_work *w, uint32_t thread, struct audit_pid **ret_pid)
{
	const struct profile_thread *t = profile_thread_of(w->in->profile, thread);
	struct audit_pid fresh = {.pid = t->pid,
				  .comm = t->comm,
				  .comm_is_main = t->pid == t->tid,
				  .runtime = jit_runtimes_find(w->in->runtimes, t->pid)},
			 *p;
	uint32_t *place;
	int is_new, r = vec_reserve(&w->pids, 1);

	if (!r)
		r = hashmap_entry(&w->by_pid, (uint32_t)t->pid, (uint32_t)w->pids.len, &place,
				  &is_new);
	if (r)
		return r;
	fresh.is_dotnet = fresh.runtime == JIT_RUNTIME_DOTNET;
	if (is_new)
		w->pids.v[w->pids.len++] = fresh;
	p = &w->pids.v[*place];
	if (fresh.comm_is_main && !p->comm_is_main) {
		p->comm = t->comm;
		p->comm_is_main = true;
	}
	*ret_pid = p;
	return 0;
}

static int audit_pid_group(struct audit_work *w, struct audit_pid *p, enum audit_kind kind,
			   uint32_t *ret_group)
{
	uint32_t *place = &p->groups[kind - AUDIT_PROCESS_KINDS];

	if (!*place &&
	    vec_push(&w->audit->groups, ((struct audit_group){.kind = kind, .pid = p->pid})))
		return -ENOMEM;
	if (!*place)
		*place = (uint32_t)w->audit->groups.len;
	*ret_group = *place - 1;
	return 0;
}

/*
 * Counts the frames of one stack. The stack is complete when it contains a function that nothing
 * calls. Frames that some unwinders find below such a function are accidental.
 */
static int audit_stack(struct audit_work *w, const struct profile_group *samples)
{
	struct audit_pid *p;
	uint8_t flags = 0;
	int r = audit_get_pid(w, samples->thread, &p);

	for (uint32_t s = samples->stack; s != PROFILE_STACK_EMPTY && !r;
	     s = profile_stack_parent(w->in->profile, s)) {
		const struct audit_frame *f = &w->frames[profile_stack_frame(w->in->profile, s)];
		uint32_t group = f->group;

		if (f->kind == AUDIT_KINDS)
			continue;
		if (f->kind >= AUDIT_PROCESS_KINDS)
			r = audit_pid_group(w, p, f->kind, &group);
		if (r)
			break;
		flags |= f->flags;
		p->is_dotnet |= f->kind == AUDIT_RUNTIME || f->kind == AUDIT_R2R;
		if (f->kind == AUDIT_AOT && !p->runtime)
			p->runtime = JIT_RUNTIME_NATIVE_AOT;
		w->audit->groups.v[group].frames[f->status] += samples->samples;
		if (f->status != FRAME_IS_UNKNOWN)
			w->audit->groups.v[group].sources[f->source] += samples->samples;
	}
	w->audit->samples += samples->samples;
	*(flags & CALLCHAIN_FRAME_ROOT ? &w->audit->stacks_complete
				       : &w->audit->stacks_truncated) += samples->samples;
	return r;
}

static int audit_count(struct audit_work *w)
{
	size_t nframes = profile_nframes(w->in->profile), nimages = w->in->lookup_cache->images.len,
	       n = 0;
	const struct profile_group *groups = profile_groups(w->in->profile, &n);

	w->frames = calloc(nframes + 1, sizeof(*w->frames));
	w->image_groups = calloc(nimages * AUDIT_PROCESS_KINDS + 1, sizeof(*w->image_groups));

	int r = w->frames && w->image_groups ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < nframes && !r; i++)
		r = audit_classify_frame(w, i);
	for (size_t i = 0; i < n && !r; i++)
		r = audit_stack(w, &groups[i]);
	return r;
}

static const struct audit_pid *audit_find_pid(const struct audit_work *w, int32_t pid)
{
	const uint32_t *place = hashmap_get(&w->by_pid, (uint32_t)pid);

	return place ? &w->pids.v[*place] : NULL;
}

static enum audit_reason audit_jit_reason(const struct audit_work *w, const struct audit_group *g,
					  const struct lookup_cache_process *p)
{
	const struct audit_pid *pid = audit_find_pid(w, g->pid);
	bool is_dotnet = pid && pid->is_dotnet;

	if (p && p->why != LOOKUP_NONE)
		return AUDIT_JIT_FAILED;
	/* A JVM writes its perf map when it is told to. */
	if (g->runtime == JIT_RUNTIME_JAVA && !g->sources[SYMBOL_JITDUMP] &&
	    ((p && p->open) || g->frames[FRAME_IS_NAMED]))
		return AUDIT_JIT_OLD_MAP;
	if (p && p->open)
		return AUDIT_JIT_OPEN;
	if (p && p->jitdump_early)
		return is_dotnet ? AUDIT_JIT_EARLY : AUDIT_JIT_CUT;
	if (p && p->way != LOOKUP_NONE &&
	    !strcmp(intern_text(&w->in->lookup_cache->texts, p->way), "rundown"))
		return AUDIT_JIT_UNREPORTED;
	if ((p && p->way != LOOKUP_NONE) || (is_dotnet && g->frames[FRAME_IS_NAMED]))
		return AUDIT_JIT_FREED;
	if (g->frames[FRAME_IS_NAMED])
		return AUDIT_JIT_UNREPORTED;
	if (!is_dotnet)
		return g->runtime == JIT_RUNTIME_NATIVE_AOT ? AUDIT_JIT_THUNKS : AUDIT_JIT_NO_MAP;
	if (!w->in->by_profcpu)
		return AUDIT_JIT_OTHER_RECORDER;
	return w->in->jit_names_off ? AUDIT_JIT_NOT_WANTED : AUDIT_JIT_MISSED;
}

static enum audit_reason audit_image_reason(const struct audit_work *w,
					    const struct lookup_cache_image *image)
{
	static const uint8_t reasons[IMAGE_REASONS] = {
		[IMAGE_REASON_GONE] = AUDIT_GONE,
		[IMAGE_REASON_REPLACED] = AUDIT_REPLACED,
		[IMAGE_REASON_DENIED] = AUDIT_DENIED,
		[IMAGE_REASON_UNREADABLE] = AUDIT_UNREADABLE,
		[IMAGE_REASON_NO_FORMAT] = AUDIT_NO_FORMAT,
		[IMAGE_REASON_NO_R2R] = AUDIT_NO_R2R,
		[IMAGE_REASON_NO_SYMBOLS] = AUDIT_NO_SYMBOLS,
		[IMAGE_REASON_OTHER_KERNEL] = AUDIT_KERNEL_OTHER,
		[IMAGE_REASON_FILE_SYSTEM] = AUDIT_FILE_SYSTEM,
		[IMAGE_REASON_MEMORY] = AUDIT_MEMORY,
		[IMAGE_REASON_NO_ANSWER] = AUDIT_NO_ANSWER,
		[IMAGE_REASON_TOO_LARGE] = AUDIT_TOO_LARGE,
	};
	bool is_stripped = audit_stripped(w->in->lookup_cache, image);

	/* Older recordings have only the note. */
	if (image->key.kind == IMAGE_KIND_KERNEL &&
	    (image->why == IMAGE_REASON_DENIED || (!image->why && w->in->notes.kallsyms_hidden)))
		return AUDIT_KERNEL_HIDDEN;
	if (image->why && reasons[image->why])
		return reasons[image->why];
	if (image->unread)
		return AUDIT_NOT_LOOKED_UP;
	if (is_stripped)
		return image->why == IMAGE_REASON_NO_DBG         ? AUDIT_NO_DBG
		       : image->why == IMAGE_REASON_DEBUG_DENIED ? AUDIT_DEBUG_DENIED
								 : AUDIT_NO_DEBUG_FILE;
	return AUDIT_NOT_COVERED;
}

static int audit_text(const struct lookup_cache *a, uint32_t text, char **ret_text)
{
	*ret_text = text == LOOKUP_NONE ? NULL : strdup(intern_text(&a->texts, text));
	return text == LOOKUP_NONE || *ret_text ? 0 : -ENOMEM;
}

static int audit_comm(const struct audit_work *w, int32_t pid, char **ret_comm)
{
	const struct audit_pid *p = audit_find_pid(w, pid);
	uint32_t comm = PROFILE_NONE;
	int r = p && p->comm_is_main ? 0 : w->in->comm(w->in->ctx, pid, &comm);

	if (r)
		return r;
	if (comm == PROFILE_NONE && p)
		comm = p->comm;
	*ret_comm =
		comm == PROFILE_NONE ? NULL : strdup(profile_text_of(w->in->profile, comm, NULL));
	return comm == PROFILE_NONE || *ret_comm ? 0 : -ENOMEM;
}

static int audit_explain(struct audit_work *w)
{
	const struct lookup_cache *a = w->in->lookup_cache;
	int r = 0;

	for (size_t i = 0; i < a->images.len * AUDIT_PROCESS_KINDS; i++) {
		struct audit_group *g =
			w->image_groups[i] ? &w->audit->groups.v[w->image_groups[i] - 1] : NULL;

		if (g && audit_unnamed(g))
			g->reason = audit_image_reason(w, &a->images.v[i / AUDIT_PROCESS_KINDS]);
	}
	for (size_t i = 0; i < w->audit->groups.len && !r; i++) {
		struct audit_group *g = &w->audit->groups.v[i];
		const struct lookup_cache_process *p;
		const struct audit_pid *pid;

		if (g->kind < AUDIT_PROCESS_KINDS)
			continue;
		r = audit_comm(w, g->pid, &g->comm);
		if (!audit_unnamed(g))
			continue;
		p = lookup_cache_find_process(a, g->pid);
		pid = audit_find_pid(w, g->pid);
		g->runtime = pid ? pid->runtime : JIT_RUNTIME_UNKNOWN;
		/* The idle task has no user code. */
		g->reason = g->kind != AUDIT_UNMAPPED ? audit_jit_reason(w, g, p)
			    : !g->pid                 ? AUDIT_OTHER_PID_NS
			    : w->in->unwound          ? AUDIT_NOT_MAPPED_UNWOUND
						      : AUDIT_NOT_MAPPED;
		if (!r && g->reason == AUDIT_JIT_FAILED)
			r = audit_text(a, p->why, &g->detail);
	}
	return r;
}

static int audit_compare_processes(const void *x, const void *y)
{
	const struct audit_process *a = x, *b = y;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

static int audit_add_process(struct audit_work *w, int32_t pid)
{
	const struct lookup_cache_process *p = lookup_cache_find_process(w->in->lookup_cache, pid);
	const struct audit_pid *known = audit_find_pid(w, pid);
	struct audit_process out = {.pid = pid, .is_dotnet = known && known->is_dotnet};
	int r = 0;

	if (vec_reserve(&w->audit->processes, 1))
		return -ENOMEM;
	if (p) {
		out.ns_pid = p->ns_pid;
		out.is_dotnet |= p->version != LOOKUP_NONE;
		out.jitdump_early = p->jitdump_early;
		out.open = p->open;
		out.contradictions = p->contradictions;
		out.doubts = p->doubts;
		r = audit_text(w->in->lookup_cache, p->version, &out.version);
		if (!r)
			r = audit_text(w->in->lookup_cache, p->way, &out.way);
		if (!r)
			r = audit_text(w->in->lookup_cache, p->why, &out.why);
	}
	if (!r)
		r = audit_comm(w, pid, &out.comm);
	w->audit->processes.v[w->audit->processes.len++] = out;
	return r;
}

static int audit_processes(struct audit_work *w)
{
	const struct lookup_cache *a = w->in->lookup_cache;
	int r = 0;

	for (size_t i = 0; i < a->processes.len && !r; i++)
		r = audit_add_process(w, a->processes.v[i].pid);
	for (size_t i = 0; i < w->pids.len && !r; i++)
		if (w->pids.v[i].is_dotnet && !lookup_cache_find_process(a, w->pids.v[i].pid))
			r = audit_add_process(w, w->pids.v[i].pid);
	if (!r && w->audit->processes.len)
		qsort(w->audit->processes.v, w->audit->processes.len,
		      sizeof(*w->audit->processes.v), audit_compare_processes);
	return r;
}

/*
 * Orders groups by everything that distinguishes them, so that the order depends on nothing else.
 */
static int audit_compare_keys(const struct audit_group *a, const struct audit_group *b)
{
	int order = (int)a->kind - (int)b->kind;

	if (!order)
		order = (a->pid > b->pid) - (a->pid < b->pid);
	if (!order)
		order = strcmp(a->path ? a->path : "", b->path ? b->path : "");
	if (!order)
		order = (int)a->build_id.len - (int)b->build_id.len;
	if (!order)
		order = memcmp(a->build_id.bytes, b->build_id.bytes, sizeof(a->build_id.bytes));
	return order ? order : (int)a->reason - (int)b->reason;
}

static int audit_by_key(const void *x, const void *y)
{
	return audit_compare_keys(x, y);
}

static int audit_by_frames(const void *x, const void *y)
{
	uint64_t a = audit_frames(x), b = audit_frames(y);

	return a == b ? audit_compare_keys(x, y) : a < b ? 1 : -1;
}

/* Merges the groups whose printed properties are all equal. */
static void audit_merge(struct audit *a)
{
	size_t n = 0;

	if (a->groups.len)
		qsort(a->groups.v, a->groups.len, sizeof(*a->groups.v), audit_by_key);
	for (size_t i = 0; i < a->groups.len; i++) {
		struct audit_group *g = &a->groups.v[i], *to = n ? &a->groups.v[n - 1] : NULL;

		if (!audit_frames(g)) {
			audit_group_free(g);
		} else if (!to || audit_compare_keys(to, g)) {
			a->groups.v[n++] = *g;
		} else {
			for (size_t s = 0; s <= FRAME_IS_NAMED; s++)
				to->frames[s] += g->frames[s];
			for (size_t s = 0; s < SYMBOL_SOURCES; s++)
				to->sources[s] += g->sources[s];
			audit_group_free(g);
		}
	}
	a->groups.len = n;
	if (n)
		qsort(a->groups.v, n, sizeof(*a->groups.v), audit_by_frames);
}

int audit_new(const struct audit_input *input, struct audit *ret_audit)
{
	struct audit audit = {.notes = input->notes};
	struct audit_work w = {.in = input, .audit = &audit};
	int r = audit_count(&w);

	if (!r)
		r = audit_explain(&w);
	if (!r)
		r = audit_processes(&w);
	free(w.frames);
	free(w.image_groups);
	vec_free(&w.pids);
	hashmap_free(&w.by_pid);
	if (r) {
		audit_free(&audit);
		return r;
	}
	audit_merge(&audit);
	*ret_audit = audit;
	return 0;
}

void audit_sum(const struct audit *a, enum audit_kind kind, struct audit_group *sum)
{
	sum->kind = kind;
	for (size_t i = 0; i < a->groups.len; i++) {
		const struct audit_group *g = &a->groups.v[i];

		for (size_t s = 0; s <= FRAME_IS_NAMED && g->kind == kind; s++)
			sum->frames[s] += g->frames[s];
		for (size_t s = 0; s < SYMBOL_SOURCES && g->kind == kind; s++)
			sum->sources[s] += g->sources[s];
	}
}

static int audit_by_unnamed(const void *x, const void *y)
{
	const struct audit_group *a = *(const struct audit_group *const *)x,
				 *b = *(const struct audit_group *const *)y;
	uint64_t m = audit_unnamed(a), n = audit_unnamed(b);

	return m == n ? audit_compare_keys(a, b) : m < n ? 1 : -1;
}

int audit_list_unnamed(const struct audit *a, const struct audit_group ***ret_unnamed,
		       size_t *ret_n)
{
	const struct audit_group **list = calloc(a->groups.len + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < a->groups.len; i++)
		if (audit_unnamed(&a->groups.v[i]))
			list[n++] = &a->groups.v[i];
	qsort(list, n, sizeof(const struct audit_group *), audit_by_unnamed);
	*ret_unnamed = list;
	*ret_n = n;
	return 0;
}
