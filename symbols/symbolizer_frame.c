/* Frames of addresses: what of which image is there, who is asked for its name, and what was inlined. */
#include "symbols/symbolizer_impl.h"

#include <errno.h>
#include <string.h>

/*
 * Whether this machine may be asked about an image. Where names were kept it is only about what could not be read or kept then,
 * and on another machine only where a build id tells whether it has the same file.
 */
bool symbolizer_may_look(const struct symbolizer *s, uint32_t image)
{
	const struct answers_image *i = &s->answers.images.v[image];
	bool wanted = i->wanted || (s->unkept && i->kind == ANSWERS_JIT);

	/* What the recording itself has of JIT-compiled code is no matter of the machine. */
	if (i->kind == ANSWERS_JIT && images_is_captured(s->images, image))
		return !s->has_store || wanted;
	if (s->options.offline)
		return false;
	return !s->has_store || (wanted && (s->options.recorded_here || i->build_id.len));
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
		/* What nobody could ask for now either is still not kept. */
		s->answers.unkept += s->unkept && r == -ESTALE;
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

/* Whether what had no lines may have them by now: the debug file of a stripped image, or a PDB, may have come. */
static bool symbolizer_may_have_come(const struct symbolizer *s, uint32_t image)
{
	const struct answers_image *i = &s->answers.images.v[image];

	return i->stripped || (s->options.improve && (i->kind == ANSWERS_JIT || (i->kind == ANSWERS_FILE && !i->build_id.len)));
}

/* What was inlined at a place, and its lines: a chain of answers.lines, or ANSWERS_NONE. */
static int symbolizer_chain(struct symbolizer *s, const struct frames_place *place, uint64_t time_ns, uint32_t *ret_chain)
{
	bool unread = true, known, lineless, look;
	int r = 0;

	*ret_chain = ANSWERS_NONE;
	if (place->symbol == ANSWERS_NONE || place->image == s->kernel_image)
		return 0;
	known = !answers_lines_get(&s->answers.lines, place->symbol, place->addr, ret_chain);
	if (known && *ret_chain != ANSWERS_NONE)
		return 0;
	lineless = s->answers.images.v[place->image].lineless;
	look = symbolizer_may_look_for_lines(s, place->image);
	if ((known && !s->has_store) || ((known || lineless) && (!look || !symbolizer_may_have_come(s, place->image))))
		return 0;
	if (look)
		r = images_ask_lines(s->images, place->image, place->symbol, place->addr, time_ns, ret_chain, &unread);
	s->answers.images.v[place->image].lines_unread |= unread && !lineless && !known;
	s->new_lines |= !r && !unread && (!(lineless || known) || *ret_chain != ANSWERS_NONE);
	return r;
}

int symbolizer_frame(void *ctx, const struct callchain_place *question, struct callchain_frame *ret_frame)
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
	full.grade = question->grade;
	if (!r && (s->options.inlines || s->options.lines))
		r = symbolizer_chain(s, &full, question->time_ns, &chain);
	if (!r)
		r = frames_make(&s->frames, &here, &full, chain, ret_frame);
	ret_frame->timed = s->timed;
	return r;
}
