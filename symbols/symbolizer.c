#include "symbols/symbolizer.h"

#include "base/log.h"
#include "container/memory_left.h"
#include "symbols/jit/users.h"
#include "symbols/store/store_read.h"
#include "symbols/symbolizer_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* processes_comm_fn: without a name perf's ":TID"; tid 0 is the idle task. */
static int symbolizer_comm(void *ctx, int32_t tid, const char *name, uint32_t *ret_comm)
{
	struct symbolizer *s = ctx;
	char unnamed[16];

	snprintf(unnamed, sizeof(unnamed), tid ? ":%d" : "swapper", tid);
	if (!name)
		name = unnamed;
	return profile_text(s->profile, name, strlen(name), ret_comm);
}

/* tracker_image_fn */
static int symbolizer_image(void *ctx, const struct perfdata_record *record, uint32_t *ret_image,
			    bool *ret_anonymous)
{
	struct symbolizer *s = ctx;
	int r = images_add_record(s->images, record, ret_image, ret_anonymous);

	return r ? r
		 : jit_runtimes_map(&s->runtimes, record->pid,
				    images_runtime(s->images, *ret_image));
}

static int symbolizer_read_store(struct symbolizer *s)
{
	struct parse_error err = {0};
	int r;

	if (s->options.store_dir_fd < 0)
		return 0;
	r = store_read(s->options.store_dir_fd, memory_left() / 2, &s->lookup_cache, &s->notes,
		       &err);
	if (!r) {
		s->has_store = true;
		/* These lookups are repeated, so they are counted again. */
		s->unkept = s->lookup_cache.unkept;
		s->lookup_cache.unkept = 0;
		s->from_store = !s->unkept;
		for (size_t i = 0; i < s->lookup_cache.images.len; i++)
			s->from_store &= !s->lookup_cache.images.v[i].wanted;
		return 0;
	}
	lookup_cache_free(&s->lookup_cache);
	s->notes = (struct store_notes){0};
	if (r == -ENOMEM)
		return r;
	s->store_left_out = r == -ENOSPC;
	if (r != -ENOENT)
		log_warn("symbols/names: cannot be used: %s; %snames are looked up on this machine "
			 "instead",
			 err.what, s->store_left_out ? "free memory or raise its limit; " : "");
	return 0;
}

static struct jit_sources_options symbolizer_jit_options(const struct symbolizer *s)
{
	return (struct jit_sources_options){
		.capture_dir_fd = s->options.store_dir_fd,
		.foreign = s->options.foreign,
		.owner = s->options.owner,
		.recorded_until_ns = s->options.recorded_until_ns,
		.live = !s->options.offline && (!s->has_store || s->options.recorded_here),
		.untimed = !s->options.monotonic,
	};
}

static int symbolizer_init(struct symbolizer *s)
{
	struct image_key kernel = {.kind = IMAGE_KIND_KERNEL};
	int r = symbolizer_read_store(s);

	size_t memory = memory_left_eighth(0, SIZE_MAX);

	s->lookup_cache.entries_max = s->lookup_cache.entries.len + 1 + memory / LOOKUP_ENTRY_BYTES;
	/* One process may take an eighth, and all together a quarter. */
	s->lookup_cache.names.limit = 2 * (uint64_t)memory + 1;
	s->lookup_cache.line_bytes.limit = (uint64_t)memory + 1;
	s->frames.profile = s->profile;
	s->frames.lookup_cache = &s->lookup_cache;
	s->frames.raw_names = s->options.raw_names;
	s->frames.mangled = s->options.mangled;
	s->frames.by_function = s->options.by_function;
	/* Lines are those of the call, which only the full form looks up. */
	s->options.perf_names_only &= !s->options.inlines && !s->options.lines;
	s->frames.perf_names_only = s->options.perf_names_only;
	s->frames.inlines = s->options.inlines;
	s->frames.lines = s->options.lines;
	if (!r)
		r = profile_text(s->profile, "[unknown]", strlen("[unknown]"), &s->unknown_module);
	if (!r)
		r = intern_str(&s->lookup_cache.texts, KERNEL_MAP_NAME, &kernel.path);
	if (!r)
		r = lookup_cache_image(&s->lookup_cache, &kernel, &s->kernel_image);
	if (!r)
		r = tracker_new(&(struct tracker_options){.lookup_cache = &s->lookup_cache,
							  .image = symbolizer_image,
							  .comm = symbolizer_comm,
							  .ctx = s},
				&s->tracker);
	s->callchains = (struct callchains){.profile = s->profile,
					    .processes = r ? NULL : s->tracker->processes,
					    .frame = symbolizer_frame,
					    .ctx = s,
					    .frames_max = s->options.max_stack};
	s->kernel.secret = opener_is_confined();
	if (!r)
		r = images_new(&s->lookup_cache, &s->kernel,
			       s->options.offline || (s->from_store && !s->options.inlines &&
						      !s->options.lines)
				       ? NULL
				       : s->options.opener,
			       &(struct images_options){
				       .keep_cache = s->options.keep_cache,
				       .no_bounds = s->options.perf_names_only,
				       .has_store = s->has_store,
				       .recorded_from_ns = s->options.recorded_from_ns,
				       .from_ns = s->options.from_ns,
				       .recorded_elsewhere = s->options.recorded_elsewhere,
				       .jit = symbolizer_jit_options(s)},
			       &s->images);
	if (!r && s->has_store && s->options.improve && !s->options.offline)
		r = stripped_new(&s->lookup_cache, &s->stripped);
	return r;
}

int symbolizer_new(struct profile *profile, const struct symbolizer_options *options,
		   struct symbolizer **ret_symbolizer)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->profile = profile;
	s->options = *options;
	r = symbolizer_init(s);
	if (r)
		symbolizer_free(s);
	else
		*ret_symbolizer = s;
	return r;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	tracker_free(s->tracker);
	jit_runtimes_free(&s->runtimes);
	images_free(s->images);
	stripped_free(s->stripped);
	frames_free(&s->frames);
	lookup_cache_free(&s->lookup_cache);
	kernel_map_free(&s->kernel);
	callchains_free(&s->callchains);
	free(s->known);
	free(s);
}

int symbolizer_build_ids(struct symbolizer *s, const struct perfdata_build_id_entry *ids, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (!strncmp(ids[i].filename, KERNEL_MAP_NAME, strlen(KERNEL_MAP_NAME)) &&
		    ids[i].build_id.len) {
			s->kernel.build_id.len = ids[i].build_id.len;
			memcpy(s->kernel.build_id.bytes, ids[i].build_id.bytes,
			       sizeof(ids[i].build_id.bytes));
		} else {
			r = images_build_id(s->images, ids[i].filename, &ids[i].build_id);
		}
	}
	return r;
}

const struct tracker *symbolizer_tracker(const struct symbolizer *s)
{
	return s->tracker;
}

int symbolizer_open_file(void *symbolizer, uint32_t image, int *ret_fd)
{
	struct symbolizer *s = symbolizer;

	return images_open_again(s->images, image, ret_fd);
}

/* Children have the runtimes of their parents until they execute a program. */
static int symbolizer_follow_runtime(struct symbolizer *s, const struct perfdata_record *record)
{
	if (record->type == PERF_RECORD_FORK)
		return jit_runtimes_fork(&s->runtimes, record->pid, record->task.ppid);
	if (record->type == PERF_RECORD_COMM && (record->misc & PERF_RECORD_MISC_COMM_EXEC))
		jit_runtimes_exec(&s->runtimes, record->pid);
	return 0;
}

int symbolizer_apply(struct symbolizer *s, const struct perfdata_record *record)
{
	const struct perfdata_mmap *m = &record->mmap;
	int r;

	if (!symbolizer_changes_kernel(record)) {
		r = symbolizer_follow_runtime(s, record);
		return r ? r : tracker_apply(s->tracker, record);
	}
	r = record->type == PERF_RECORD_KSYMBOL
		    ? kernel_map_symbol(&s->kernel, record->ksymbol.addr, record->ksymbol.len,
					record->ksymbol.flags &
						PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
					record->ksymbol.name)
		    : kernel_map_add(&s->kernel, m->addr, m->len, m->pgoff, m->filename);
	return r == -ENOMEM ? r : 0;
}

/* The mode of a sample's own ip. */
static enum callchain_mode symbolizer_sample_mode(const struct perfdata_record *record)
{
	switch (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return CALLCHAIN_KERNEL;
	case PERF_RECORD_MISC_USER:
		return CALLCHAIN_USER;
	default:
		return CALLCHAIN_NEITHER;
	}
}

static int symbolizer_begin_callchain(struct symbolizer *s, const struct process_thread *t,
				      const struct perfdata_record *record,
				      const struct symbolizer_stack *stack,
				      struct callchain_half *ret_half)
{
	const struct perfdata_sample *sample = &record->sample;
	struct callchain chain = {.words = sample->callchain,
				  .n = sample->ncallchain,
				  .mode = CALLCHAIN_USER,
				  .at_call_sites = stack->at_call_sites,
				  .truncated = stack->truncated,
				  .first_spliced = stack->first_spliced,
				  .first_guess = stack->first_guess};

	s->callchains.kernel_generation = s->kernel.generation;
	if (!sample->callchain) {
		chain.words = &sample->ip;
		chain.n = 1;
		chain.mode = symbolizer_sample_mode(record);
	}
	return callchains_begin(&s->callchains, t, &chain, record->time_ns, ret_half);
}

/* Gets the profile's thread of a sample whose IDs identify it. */
static int symbolizer_profile_thread(struct symbolizer *s, struct process_thread *t, int32_t pid,
				     int32_t tid, uint32_t *ret_thread)
{
	struct profile_thread thread = {.pid = pid, .tid = tid, .comm = t->comm};
	int r;

	if (t->cached_id != PROCESS_NO_CACHE && t->cached_pid == pid) {
		*ret_thread = t->cached_id;
		return 0;
	}
	r = profile_thread(s->profile, &thread, ret_thread);
	if (!r) {
		t->cached_id = *ret_thread;
		t->cached_pid = pid;
	}
	return r;
}

/* Sets the process that new names and texts count for. */
static void symbolizer_take_for(struct symbolizer *s, int32_t pid)
{
	s->lookup_cache.taker = pid;
	profile_taker(s->profile, pid);
}

int symbolizer_begin(struct symbolizer *s, const struct perfdata_record *record,
		     const struct symbolizer_stack *stack, struct symbolizer_sample *ret_sample)
{
	struct symbolizer_sample sample = {
		.pid = record->pid, .tid = record->tid, .thread = PROFILE_NONE};
	struct process_thread *t;
	int r = processes_thread(s->tracker->processes, record->pid, record->tid, &t);

	symbolizer_take_for(s, record->pid);
	if (!r)
		r = processes_comm_of(s->tracker->processes, t, &sample.comm);
	if (r)
		return r;
	if (record->pid || record->tid)
		r = symbolizer_profile_thread(s, t, record->pid, record->tid, &sample.thread);
	if (!r)
		r = symbolizer_begin_callchain(s, t, record, stack, &sample.half);
	if (!r)
		*ret_sample = sample;
	return r;
}

/*
 * Whether PID 0 stands for a process of another PID namespace. User code proves it, and that the
 * recorder ran inside a namespace. From then on, kernel code outside of the idle loop counts as
 * proof too.
 */
static bool symbolizer_is_other_pid_ns(struct symbolizer *s, const struct callchain_stack *stack)
{
	if (stack->user)
		s->other_pid_ns_seen = true;
	return stack->user ||
	       (s->other_pid_ns_seen && !stack->idle && stack->stack != PROFILE_STACK_EMPTY);
}

int symbolizer_end(struct symbolizer *s, const struct symbolizer_sample *sample, uint64_t time_ns,
		   uint32_t *ret_thread, uint32_t *ret_stack)
{
	struct profile_thread thread = {
		.pid = sample->pid, .tid = sample->tid, .comm = sample->comm};
	uint32_t id = sample->thread;
	struct callchain_stack stack;

	symbolizer_take_for(s, sample->pid);
	int r = callchains_end(&s->callchains, &sample->half, time_ns, &stack);

	if (!r && id == PROFILE_NONE) {
		thread.other_pid_ns = symbolizer_is_other_pid_ns(s, &stack);
		r = profile_thread(s->profile, &thread, &id);
	}
	if (r)
		return r;
	*ret_thread = id;
	*ret_stack = stack.stack;
	return 0;
}

bool symbolizer_full(const struct symbolizer *s)
{
	return callchains_full(&s->callchains);
}

bool symbolizer_changes_kernel(const struct perfdata_record *record)
{
	if (record->type == PERF_RECORD_KSYMBOL)
		return true;
	return (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2) &&
	       (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

bool symbolizer_prefetch_kernel(struct symbolizer *s)
{
	return symbolizer_may_use_machine(s, s->kernel_image) &&
	       kernel_map_start_loading(&s->kernel);
}
