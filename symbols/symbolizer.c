#include "symbols/symbolizer.h"

#include "base/log.h"
#include "base/vec.h"
#include "symbols/answers.h"
#include "symbols/frames.h"
#include "symbols/images.h"
#include "symbols/kernel_map.h"
#include "symbols/processes.h"
#include "symbols/store.h"
#include "symbols/stripped.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbolizer {
	struct profile *profile;
	struct symbolizer_options options;
	struct processes *processes;
	struct answers answers;
	struct images *images;
	struct stripped *stripped; /* NULL: what the store knows is not bettered */
	struct kernel_map kernel;
	struct frames frames;
	uint32_t kernel_image; /* in answers */
	uint32_t unknown_module; /* profile text "[unknown]" */
	struct callchains callchains;
	bool other_pid_ns_seen; /* the recording was made inside a PID namespace */
	bool has_store; /* names were kept, and could be read */
	bool from_store; /* of all images that were asked for: nothing is looked up on this machine */
	bool improved; /* an answer of the store was replaced by a better one */
	bool new_lines;
	bool timed; /* an answer since the frame was begun holds at some times only */
	struct store_notes notes; /* with has_store */
};

/* processes_unnamed_fn: perf's ":TID"; tid 0 is the idle task. */
static int symbolizer_unnamed(void *ctx, int32_t tid, uint32_t *ret_comm)
{
	struct symbolizer *s = ctx;
	char buf[16];
	int n = snprintf(buf, sizeof(buf), tid ? ":%d" : "swapper", tid);

	return profile_text(s->profile, buf, (size_t)n, ret_comm);
}

static int symbolizer_read_store(struct symbolizer *s)
{
	struct parse_error err = {0};
	int r;

	if (s->options.store_dir_fd < 0)
		return 0;
	r = store_read(s->options.store_dir_fd, &s->answers, &s->notes, &err);
	if (!r) {
		s->has_store = true;
		s->from_store = true;
		for (size_t i = 0; i < s->answers.images.len; i++)
			s->from_store &= !s->answers.images.v[i].wanted;
		return 0;
	}
	answers_free(&s->answers);
	s->notes = (struct store_notes){0};
	if (r == -ENOMEM)
		return r;
	if (r != -ENOENT)
		log_warn("the recording's symbols cannot be used: %s; names are looked up on this machine", err.what);
	return 0;
}

static callchains_frame_fn symbolizer_frame;

static struct jit_sources_options symbolizer_jit_options(const struct symbolizer *s)
{
	return (struct jit_sources_options){
		.capture_dir_fd = s->options.store_dir_fd,
		.recorded_until_ns = s->options.recorded_until_ns,
		.live = !s->options.offline && (!s->has_store || s->options.recorded_here),
		.untimed = !s->options.monotonic,
	};
}

static int symbolizer_init(struct symbolizer *s)
{
	struct answers_image kernel = {.kind = ANSWERS_KERNEL};
	int r = symbolizer_read_store(s);

	s->frames.profile = s->profile;
	s->frames.answers = &s->answers;
	s->frames.raw_names = s->options.raw_names;
	s->frames.mangled = s->options.mangled;
	s->frames.by_function = s->options.by_function;
	/* The lines are those of the call, which only the full form looks up. */
	s->options.perf_names_only &= !s->options.inlines && !s->options.lines;
	s->frames.perf_names_only = s->options.perf_names_only;
	s->frames.inlines = s->options.inlines;
	s->frames.lines = s->options.lines;
	if (!r)
		r = profile_text(s->profile, "[unknown]", strlen("[unknown]"), &s->unknown_module);
	if (!r)
		r = intern_str(&s->answers.texts, KERNEL_MAP_NAME, &kernel.path);
	if (!r)
		r = answers_image(&s->answers, &kernel, &s->kernel_image);
	if (!r)
		r = processes_new(symbolizer_unnamed, s, &s->processes);
	s->callchains = (struct callchains){
		.profile = s->profile, .processes = s->processes, .frame = symbolizer_frame, .ctx = s};
	if (!r)
		r = images_new(&s->answers, &s->kernel,
			       s->options.offline || (s->from_store && !s->options.inlines && !s->options.lines) ? NULL : s->options.opener,
			       &(struct images_options){.keep_answers = s->options.keep_answers,
							.no_bounds = s->options.perf_names_only,
							.has_store = s->has_store,
							.jit = symbolizer_jit_options(s)},
			       &s->images);
	if (!r && s->has_store && s->options.improve && !s->options.offline)
		r = stripped_new(&s->answers, &s->stripped);
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
	processes_free(s->processes);
	images_free(s->images);
	stripped_free(s->stripped);
	frames_free(&s->frames);
	answers_free(&s->answers);
	kernel_map_free(&s->kernel);
	callchains_free(&s->callchains);
	free(s);
}

bool symbolizer_from_store(const struct symbolizer *s)
{
	return s->from_store;
}

bool symbolizer_improved(const struct symbolizer *s)
{
	return s->improved;
}

void symbolizer_images_free(struct symbolizer_images *images)
{
	for (size_t i = 0; i < images->list.len; i++)
		free(images->list.v[i].path);
	vec_free(&images->list);
}

static int symbolizer_image_of(const struct symbolizer *s, uint32_t id, struct symbolizer_image *ret_image)
{
	const struct answers_image *key = &s->answers.images.v[id];
	const struct answers_stripped *stripped = key->stripped ? &s->answers.stripped.v[key->stripped - 1] : NULL;
	struct symbolizer_image image = {.build_id = stripped ? stripped->build_id : key->build_id,
					 .stripped = stripped && !stripped->named,
					 .unread = key->unread};

	image.path = strdup(intern_text(&s->answers.texts, key->path));
	*ret_image = image;
	if (!image.path)
		return -ENOMEM;
	size_t len = strlen(image.path), tail = strlen(" (deleted)");

	if (len > tail && !strcmp(image.path + len - tail, " (deleted)"))
		image.path[len - tail] = 0;
	return 0;
}

int symbolizer_images(const struct symbolizer *s, struct symbolizer_images *ret_images)
{
	uint32_t *places = calloc(s->answers.images.len + 1, sizeof(*places)); /* in the list, + 1 */
	struct symbolizer_images images = {0};
	int r = places ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->answers.images.len && !r; i++) {
		struct symbolizer_image image;

		if (s->answers.images.v[i].kind != ANSWERS_FILE)
			continue;
		r = symbolizer_image_of(s, i, &image);
		if (!r && vec_push(&images.list, image)) {
			free(image.path);
			r = -ENOMEM;
		}
		places[i] = (uint32_t)images.list.len;
	}
	for (size_t i = 0; i < s->answers.entries.len && !r; i++) {
		const struct answers_entry *e = &s->answers.entries.v[i];
		uint32_t source = e->symbol == ANSWERS_NONE ? SYMBOL_NONE : s->answers.symbols.v[e->symbol].source;

		if (places[e->image] && source < SYMBOL_SOURCES)
			images.list.v[places[e->image] - 1].addrs[source]++;
	}
	free(places);
	if (r)
		symbolizer_images_free(&images);
	else
		*ret_images = images;
	return r;
}

int symbolizer_build_ids(struct symbolizer *s, const struct perfdata_build_id_entry *ids, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		if (!strncmp(ids[i].filename, KERNEL_MAP_NAME, strlen(KERNEL_MAP_NAME)) && ids[i].build_id.len) {
			s->kernel.build_id.len = ids[i].build_id.len;
			memcpy(s->kernel.build_id.bytes, ids[i].build_id.bytes, sizeof(ids[i].build_id.bytes));
		} else {
			r = images_build_id(s->images, ids[i].filename, &ids[i].build_id);
		}
	}
	return r;
}

static int symbolizer_apply_map(struct symbolizer *s, const struct perfdata_record *record)
{
	unsigned int mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const struct perfdata_mmap *m = &record->mmap;
	struct process_map map = {.start = m->addr, .end = m->addr + m->len, .pgoff = m->pgoff};
	bool anonymous;
	int r;

	if (mode == PERF_RECORD_MISC_KERNEL)
		return kernel_map_add(&s->kernel, m->addr, m->len, m->pgoff, m->filename);
	if (mode == PERF_RECORD_MISC_GUEST_KERNEL)
		return 0;
	r = images_of_record(s->images, record, &map.image, &anonymous);
	if (r)
		return r;
	return processes_map(s->processes, record->pid, record->tid, &map, anonymous);
}

int symbolizer_apply(struct symbolizer *s, const struct perfdata_record *record)
{
	uint32_t comm;
	int r = 0;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		r = symbolizer_apply_map(s, record);
		break;
	case PERF_RECORD_COMM:
		r = profile_text(s->profile, record->comm.name, strlen(record->comm.name), &comm);
		if (!r)
			r = processes_comm(s->processes, record->pid, record->tid, comm);
		break;
	case PERF_RECORD_FORK:
		r = processes_fork(s->processes, record->pid, record->tid, record->task.ppid, record->task.ptid,
				   !(record->misc & PERF_RECORD_MISC_FORK_EXEC));
		break;
	case PERF_RECORD_EXIT:
		processes_exit(s->processes, record->tid);
		break;
	case PERF_RECORD_KSYMBOL:
		r = kernel_map_symbol(&s->kernel, record->ksymbol.addr, record->ksymbol.len,
				      record->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER,
				      record->ksymbol.name);
		break;
	default:
		break;
	}
	return r == -ENOMEM ? r : 0;
}

/*
 * Whether this machine may be asked about an image. Where names were kept it is only about what could not be read then, and on
 * another machine only where a build id tells whether it has the same file.
 */
static bool symbolizer_may_look(const struct symbolizer *s, uint32_t image)
{
	const struct answers_image *i = &s->answers.images.v[image];

	/* What the recording itself has of JIT-compiled code is no matter of the machine. */
	if (i->kind == ANSWERS_JIT && images_is_captured(s->images, image))
		return !s->has_store || i->wanted;
	if (s->options.offline)
		return false;
	return !s->has_store || (i->wanted && (s->options.recorded_here || i->build_id.len));
}

/* Whether there is anything in an image that a source could name. */
static bool symbolizer_has_source(const struct answers_image *image)
{
	return image->kind != ANSWERS_OTHER && image->kind != ANSWERS_VSYSCALL;
}

/* What covers an address of an image: remembered, or asked for now where this machine may be asked. */
static int symbolizer_ask(struct symbolizer *s, uint32_t image, uint64_t addr, uint64_t time_ns,
			  uint32_t *ret_symbol)
{
	bool timed = false;
	int r = -ENOENT;

	*ret_symbol = ANSWERS_NONE;
	if (s->has_store || s->options.keep_answers)
		r = answers_get(&s->answers, image, addr, time_ns, ret_symbol);
	s->timed |= r == -ESTALE || (!r && answers_timed(&s->answers, *ret_symbol));
	if (!r && s->stripped && s->answers.images.v[image].stripped) {
		r = stripped_improve(s->stripped, image, addr, ret_symbol);
		s->improved |= r > 0;
		return r < 0 ? r : 0;
	}
	if (!r)
		return 0;
	if (!symbolizer_may_look(s, image)) {
		s->answers.images.v[image].unread |= !s->has_store && symbolizer_has_source(&s->answers.images.v[image]);
		return 0;
	}
	r = images_ask(s->images, image, addr, time_ns, ret_symbol, &timed);
	s->timed |= timed;
	return r;
}

/* Whether a kernel symbol is of that module, or of the kernel image. */
static bool symbolizer_is_of_module(const struct symbolizer *s, uint32_t symbol, const char *module)
{
	uint32_t own = s->answers.symbols.v[symbol].module;

	return !strcmp(own == ANSWERS_NONE ? KERNEL_MAP_NAME : intern_text(&s->answers.texts, own), module);
}

static int symbolizer_place_kernel(struct symbolizer *s, uint64_t ip, uint64_t time_ns, struct frames_place *place)
{
	const struct kernel_range *range = kernel_map_find(&s->kernel, ip);
	const char *module = range ? intern_text(&s->kernel.names, range->name) : KERNEL_MAP_NAME;
	int r = 0;

	*place = (struct frames_place){.image = s->kernel_image,
				       .symbol = ANSWERS_NONE,
				       .addr = ip,
				       .shown = ip,
				       .module = s->unknown_module,
				       .map_name = PROFILE_NONE};
	if (range && range->is_symbol) {
		r = profile_text(s->profile, module, strlen(module), &place->module);
		place->map_name = place->module;
		place->map_start = range->start;
		return r;
	}
	r = symbolizer_ask(s, s->kernel_image, ip, time_ns, &place->symbol);
	if (r)
		return r;
	/* perf keeps symbols of modules apart, and stretches the kernel's map over all of the kernel's own symbols. */
	place->perf_blind = place->symbol != ANSWERS_NONE && !symbolizer_is_of_module(s, place->symbol, module);
	if (!range && s->kernel.ranges.n && (place->perf_blind || place->symbol == ANSWERS_NONE))
		return 0;
	return profile_text(s->profile, module, strlen(module), &place->module);
}

/* Code that was copied to anonymous memory laid over the file it came from: the file still knows it. */
static int symbolizer_place_under(struct symbolizer *s, const struct process_map *map, uint64_t ip, uint64_t time_ns,
				  struct frames_place *place)
{
	uint64_t file_off = ip - map->start + map->under_pgoff;
	uint32_t symbol;
	int r;

	if (s->answers.images.v[map->under].kind != ANSWERS_FILE)
		return 0;
	r = symbolizer_ask(s, map->under, file_off, time_ns, &symbol);
	if (!r && symbol != ANSWERS_NONE) {
		place->image = map->under;
		place->addr = file_off;
		place->symbol = symbol;
	}
	return r;
}

static int symbolizer_place_user(struct symbolizer *s, const struct process_thread *t, uint64_t ip, uint64_t time_ns,
				 bool full, struct frames_place *place)
{
	const struct process_map *map = processes_find_map(s->processes, t, ip);
	const struct frames_image_names *names;
	const struct answers_image *image;
	int r;

	*place = (struct frames_place){.image = ANSWERS_NONE,
				       .symbol = ANSWERS_NONE,
				       .addr = ip,
				       .shown = ip,
				       .module = s->unknown_module,
				       .map_name = PROFILE_NONE};
	/* pid 0 with user code is every process of other PID namespaces at once: perf mixes their maps, we know better. */
	if (!map || (full && !t->tid))
		return 0;
	r = frames_image(&s->frames, map->image, &names);
	if (r)
		return r;
	image = &s->answers.images.v[map->image];
	place->image = map->image;
	place->module = names->module;
	if (!names->identity)
		place->shown = ip - map->start + (image->kind == ANSWERS_VDSO ? 0 : map->pgoff);
	if (image->kind == ANSWERS_OTHER || image->kind == ANSWERS_VSYSCALL)
		return 0;
	if (image->kind != ANSWERS_JIT)
		place->addr = place->shown;
	r = symbolizer_ask(s, map->image, place->addr, time_ns, &place->symbol);
	if (!r && full && place->symbol == ANSWERS_NONE && map->under != PROCESS_NO_IMAGE)
		r = symbolizer_place_under(s, map, ip, time_ns, place);
	return r;
}

static int symbolizer_place(struct symbolizer *s, const struct callchain_place *question, uint64_t ip, bool full,
			    struct frames_place *place)
{
	if (question->mode == CALLCHAIN_KERNEL)
		return symbolizer_place_kernel(s, ip, question->time_ns, place);
	if (question->mode == CALLCHAIN_USER)
		return symbolizer_place_user(s, question->thread, ip, question->time_ns, full, place);
	*place = (struct frames_place){.image = ANSWERS_NONE,
				       .symbol = ANSWERS_NONE,
				       .addr = ip,
				       .shown = ip,
				       .module = s->unknown_module,
				       .map_name = PROFILE_NONE};
	return 0;
}

/* Whether this machine may be asked about an image's lines, which may not have been asked for when its names were kept. */
static bool symbolizer_may_look_for_lines(const struct symbolizer *s, uint32_t image)
{
	return !s->options.offline &&
	       (!s->has_store || s->options.recorded_here || s->answers.images.v[image].build_id.len);
}

/* What was inlined at a place, and its lines: a chain of answers.lines, or ANSWERS_NONE. */
static int symbolizer_chain(struct symbolizer *s, const struct frames_place *place, uint64_t time_ns, uint32_t *ret_chain)
{
	bool unread = true, lineless, look;
	int r = 0;

	*ret_chain = ANSWERS_NONE;
	if (place->symbol == ANSWERS_NONE || place->image == s->kernel_image ||
	    !answers_lines_get(&s->answers.lines, place->symbol, place->addr, ret_chain))
		return 0;
	lineless = s->answers.images.v[place->image].lineless;
	look = symbolizer_may_look_for_lines(s, place->image);
	/* The debug file of a stripped image may have come since. */
	if (lineless && (!look || !s->answers.images.v[place->image].stripped))
		return 0;
	if (look)
		r = images_ask_lines(s->images, place->image, place->symbol, place->addr, time_ns, ret_chain, &unread);
	s->answers.images.v[place->image].lines_unread = unread && !lineless;
	s->new_lines |= !r && !unread && (!lineless || *ret_chain != ANSWERS_NONE);
	return r;
}

/* callchains_frame_fn: makes the frame of an address. */
static int symbolizer_frame(void *ctx, const struct callchain_place *question, struct callchain_frame *ret_frame)
{
	struct symbolizer *s = ctx;
	struct frames_place here, full;
	uint32_t chain = ANSWERS_NONE;
	int r;

	s->timed = false;
	r = symbolizer_place(s, question, question->ip, false, &here);

	if (r)
		return r;
	/* The kernel's frames say by their full form what belongs to the idle loop. */
	if (s->options.perf_names_only && question->mode != CALLCHAIN_KERNEL) {
		full = here;
	} else {
		bool exact = question->exact || !question->ip || frames_is_trampoline(&s->frames, &here);

		r = symbolizer_place(s, question, exact ? question->ip : question->ip - 1, true, &full);
	}
	if (!r && (s->options.inlines || s->options.lines))
		r = symbolizer_chain(s, &full, question->time_ns, &chain);
	if (!r)
		r = frames_make(&s->frames, &here, &full, chain, ret_frame);
	ret_frame->timed = s->timed;
	return r;
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

static int symbolizer_half_of(struct symbolizer *s, const struct process_thread *t,
			      const struct perfdata_record *record, struct callchain_half *ret_half)
{
	const struct perfdata_sample *sample = &record->sample;

	s->callchains.kernel_generation = s->kernel.generation;
	if (!sample->callchain)
		return callchains_begin(&s->callchains, t, symbolizer_sample_mode(record), &sample->ip, 1,
					record->time_ns, ret_half);
	return callchains_begin(&s->callchains, t, CALLCHAIN_USER, sample->callchain, sample->ncallchain,
				record->time_ns, ret_half);
}

/* The profile's thread of a sample whose IDs tell which it is. */
static int symbolizer_thread_id(struct symbolizer *s, struct process_thread *t, int32_t pid, int32_t tid,
				uint32_t *ret_thread)
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

int symbolizer_begin(struct symbolizer *s, const struct perfdata_record *record, struct symbolizer_sample *ret_sample)
{
	struct symbolizer_sample sample = {.pid = record->pid, .tid = record->tid, .thread = PROFILE_NONE};
	struct process_thread *t;
	int r = processes_thread(s->processes, record->pid, record->tid, &t);

	if (r)
		return r;
	sample.comm = t->comm;
	if (record->pid || record->tid)
		r = symbolizer_thread_id(s, t, record->pid, record->tid, &sample.thread);
	if (!r)
		r = symbolizer_half_of(s, t, record, &sample.half);
	if (!r)
		*ret_sample = sample;
	return r;
}

/*
 * Whether pid 0 stands for a process of another PID namespace. User code is proof, and that the recorder sat in a
 * namespace; after that, kernel code outside of the idle loop is too.
 */
static bool symbolizer_is_other_pid_ns(struct symbolizer *s, const struct callchain_stack *stack)
{
	if (stack->user)
		s->other_pid_ns_seen = true;
	return stack->user || (s->other_pid_ns_seen && !stack->idle && stack->stack != PROFILE_STACK_EMPTY);
}

int symbolizer_end(struct symbolizer *s, const struct symbolizer_sample *sample, uint64_t time_ns,
		   uint32_t *ret_thread, uint32_t *ret_stack)
{
	struct profile_thread thread = {.pid = sample->pid, .tid = sample->tid, .comm = sample->comm};
	uint32_t id = sample->thread;
	struct callchain_stack stack;
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

bool symbolizer_expect_kernel(struct symbolizer *s)
{
	return symbolizer_may_look(s, s->kernel_image) && kernel_map_begin(&s->kernel);
}

/* Where the names of an image come from, as text of at most len bytes. */
static void symbolizer_source_name(const struct symbolizer *s, const struct answers_image *image, char *text, size_t len)
{
	if (image->kind == ANSWERS_JIT)
		snprintf(text, len, "/tmp/perf-%d.map", image->pid);
	else
		snprintf(text, len, "%s", image->kind == ANSWERS_KERNEL ? "/proc/kallsyms" : intern_text(&s->answers.texts, image->path));
}

void symbolizer_unread(const struct symbolizer *s, struct symbolizer_unread *ret_unread)
{
	struct symbolizer_unread unread = {.looked = !s->options.offline && (!s->has_store || s->options.recorded_here),
					   .has_store = s->has_store};

	for (size_t i = 0; i < s->answers.images.len; i++) {
		const struct answers_image *image = &s->answers.images.v[i];
		bool is_file = image->kind != ANSWERS_JIT;

		if (!image->unread)
			continue;
		if (!unread.sources++ || (is_file && !unread.files))
			symbolizer_source_name(s, image, unread.first, sizeof(unread.first));
		unread.files += is_file;
	}
	*ret_unread = unread;
}

void symbolizer_lineless(const struct symbolizer *s, struct symbolizer_lineless *ret_lineless)
{
	struct symbolizer_lineless lineless = {0};

	for (size_t i = 0; i < s->answers.images.len; i++) {
		const struct answers_image *image = &s->answers.images.v[i];

		if (image->lines_unread && !lineless.files++)
			symbolizer_source_name(s, image, lineless.first, sizeof(lineless.first));
	}
	*ret_lineless = lineless;
}

bool symbolizer_has_new_lines(const struct symbolizer *s)
{
	return s->new_lines;
}

static struct store_notes symbolizer_notes(const struct symbolizer *s)
{
	struct images_stats stats = images_stats(s->images);
	struct store_notes notes = {
		.kallsyms_hidden = s->kernel.live == KERNEL_MAP_NOT_TRIED ? s->notes.kallsyms_hidden :
									    s->kernel.live == KERNEL_MAP_HIDDEN,
		.perfmap_bad_lines = s->notes.perfmap_bad_lines + stats.jit.perfmap_bad_lines,
		.images_missing = stats.missing,
		.images_replaced = stats.replaced,
		.jit_contradictions = s->notes.jit_contradictions + stats.jit.names.contradictions +
				      stats.jit.names.perfmap_contradictions,
		.jit_doubts = s->notes.jit_doubts + stats.jit.names.doubts,
		.jitdumps_early = s->notes.jitdumps_early + stats.jit.jitdumps_early,
	};

	return s->from_store || s->options.offline ? s->notes : notes;
}

int symbolizer_store(struct symbolizer *s, int dir_fd)
{
	struct store_notes notes = symbolizer_notes(s);
	int r = images_note_processes(s->images);

	return r ? r : store_write(&s->answers, &notes, dir_fd);
}

static int symbolizer_main_comm(void *ctx, int32_t pid, uint32_t *ret_comm)
{
	struct symbolizer *s = ctx;
	struct process_thread *t;
	uint32_t unnamed;
	int r = processes_thread(s->processes, pid, pid, &t);

	if (!r)
		r = symbolizer_unnamed(s, pid, &unnamed);
	if (!r)
		*ret_comm = t->comm == unnamed ? PROFILE_NONE : t->comm;
	return r;
}

int symbolizer_audit(struct symbolizer *s, struct audit *ret_audit)
{
	struct audit_input input = {
		.profile = s->profile,
		.answers = &s->answers,
		.frame_images = s->frames.frame_images.v,
		.nframe_images = s->frames.frame_images.len,
		.frame_flags = s->callchains.frame_flags.v,
		.nframe_flags = s->callchains.frame_flags.len,
		.comm = symbolizer_main_comm,
		.ctx = s,
		.notes = symbolizer_notes(s),
		.by_profcpu = s->options.by_profcpu,
		.jit_not_asked = s->options.jit_not_asked,
	};
	int r = images_note_processes(s->images);

	return r ? r : audit_make(&input, ret_audit);
}
