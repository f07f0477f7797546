/*
 * Makes frames of addresses: finds the image, looks up the name, and adds inlined functions.
 * Decides whether a stored lookup holds or is done again on this machine.
 */
#include "symbols/symbolizer_impl.h"

#include "base/bigmem.h"
#include "base/hash.h"
#include "elf/budget.h"

#include <errno.h>
#include <string.h>

/*
 * With a store, only images that could not be read or stored before are looked up. On another
 * machine, such an image needs a build id, which proves that the file is the same.
 */
bool symbolizer_may_use_machine(const struct symbolizer *s, uint32_t image)
{
	const struct lookup_cache_image *i = &s->lookup_cache.images.v[image];
	bool wanted = i->wanted || (s->unkept && i->key.kind == IMAGE_KIND_JIT);

	/* Names that the recording captured do not depend on the machine. */
	if (i->key.kind == IMAGE_KIND_JIT && images_is_captured(s->images, image))
		return !s->has_store || wanted;
	if (s->options.offline)
		return false;
	return !s->has_store || (wanted && (s->options.recorded_here || i->key.build_id.len));
}

/* Whether a stored function has no name only because its image's symbols could not be read. */
static bool symbolizer_may_be_better(const struct symbolizer *s, uint32_t image, uint32_t symbol)
{
	return symbol != LOOKUP_NONE && !lookup_cache_is_named(&s->lookup_cache, symbol) &&
	       s->lookup_cache.images.v[image].wanted && symbolizer_may_use_machine(s, image);
}

/* Whether any source could name code of an image. */
static bool symbolizer_can_be_named(const struct lookup_cache_image *image)
{
	return image->key.kind != IMAGE_KIND_OTHER && image->key.kind != IMAGE_KIND_VSYSCALL;
}

/*
 * Gets the symbol at an address of an image: from the cache, or by a lookup if this machine may be
 * used.
 */
static int symbolizer_lookup(struct symbolizer *s, uint32_t image, uint64_t addr, uint64_t time_ns,
			     uint32_t *ret_symbol)
{
	uint32_t stored;
	bool timed = false;
	int r = -ENOENT;

	*ret_symbol = LOOKUP_NONE;
	if (s->has_store || s->options.keep_cache)
		r = lookup_cache_get(&s->lookup_cache, image, addr, time_ns, ret_symbol);
	s->timed |= r == -ESTALE || (!r && lookup_cache_is_timed(&s->lookup_cache, *ret_symbol));
	if (!r && s->stripped && s->lookup_cache.images.v[image].stripped) {
		r = stripped_improve_symbol(s->stripped, image, addr, ret_symbol);
		s->improved |= r > 0;
		if (r)
			return r < 0 ? r : 0;
	}
	if (!r && !symbolizer_may_be_better(s, image, *ret_symbol))
		return 0;
	if (!symbolizer_may_use_machine(s, image)) {
		/* A symbol that cannot be looked up now either is still not stored. */
		s->lookup_cache.unkept += s->unkept && r == -ESTALE;
		s->lookup_cache.images.v[image].unread |=
			!s->has_store && symbolizer_can_be_named(&s->lookup_cache.images.v[image]);
		return 0;
	}
	stored = *ret_symbol;
	r = images_lookup(s->images, image, addr, time_ns, ret_symbol, &timed);
	if (!r && *ret_symbol == LOOKUP_NONE)
		*ret_symbol = stored;
	s->timed |= timed;
	return r;
}

/* Whether a kernel symbol belongs to that module, or to the kernel image. */
static bool symbolizer_is_of_module(const struct symbolizer *s, uint32_t symbol, const char *module)
{
	uint32_t own = s->lookup_cache.symbols.v[symbol].module;

	return !strcmp(own == LOOKUP_NONE ? KERNEL_MAP_NAME
					  : intern_text(&s->lookup_cache.texts, own),
		       module);
}

static int symbolizer_place_kernel(struct symbolizer *s, uint64_t ip, uint64_t time_ns,
				   struct frames_place *place)
{
	const struct kernel_range *range = kernel_map_find(&s->kernel, ip);
	const char *module = range ? intern_text(&s->kernel.names, range->name) : KERNEL_MAP_NAME;
	int r = 0;

	*place = (struct frames_place){.image = s->kernel_image,
				       .symbol = LOOKUP_NONE,
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
	r = symbolizer_lookup(s, s->kernel_image, ip, time_ns, &place->symbol);
	if (r)
		return r;
	/*
	 * perf keeps symbols of modules apart, and stretches the kernel's map over all symbols of
	 * the kernel itself.
	 */
	place->perf_blind =
		place->symbol != LOOKUP_NONE && !symbolizer_is_of_module(s, place->symbol, module);
	if (!range && s->kernel.ranges.n && (place->perf_blind || place->symbol == LOOKUP_NONE))
		return 0;
	return profile_text(s->profile, module, strlen(module), &place->module);
}

/* Names code that was copied to anonymous memory mapped over its file: the file still knows it. */
static int symbolizer_place_under(struct symbolizer *s, const struct process_map *map, uint64_t ip,
				  uint64_t time_ns, struct frames_place *place)
{
	uint64_t file_off = ip - map->start + map->under_pgoff;
	uint32_t symbol;
	int r;

	if (s->lookup_cache.images.v[map->under].key.kind != IMAGE_KIND_FILE)
		return 0;
	r = symbolizer_lookup(s, map->under, file_off, time_ns, &symbol);
	if (!r && symbol != LOOKUP_NONE) {
		place->image = map->under;
		place->addr = file_off;
		place->symbol = symbol;
	}
	return r;
}

/* As processes_find_map. Neighbouring frames are often in one map. */
static const struct process_map *symbolizer_map(struct symbolizer *s,
						const struct process_thread *t, uint64_t ip)
{
	uint32_t generation = processes_generation(s->tracker->processes, t);
	const struct process_map *map;

	if (generation && generation == s->map_generation && ip >= s->map.start && ip < s->map.end)
		return &s->map;
	map = processes_find_map(s->tracker->processes, t, ip);
	if (!map)
		return NULL;
	s->map = *map;
	s->map_generation = generation;
	return &s->map;
}

/* map: the thread's map at ip; NULL: none. */
static int symbolizer_place_user(struct symbolizer *s, const struct process_thread *t,
				 const struct process_map *map, uint64_t ip, uint64_t time_ns,
				 bool full, struct frames_place *place)
{
	const struct frames_image_names *names;
	const struct lookup_cache_image *image;
	int r;

	*place = (struct frames_place){.image = LOOKUP_NONE,
				       .symbol = LOOKUP_NONE,
				       .addr = ip,
				       .shown = ip,
				       .module = s->unknown_module,
				       .map_name = PROFILE_NONE};
	/*
	 * PID 0 with user code is every process of other PID namespaces at once. perf mixes their
	 * maps; the full form does not.
	 */
	if (!map || (full && !t->tid))
		return 0;
	r = frames_image(&s->frames, map->image, &names);
	if (r)
		return r;
	image = &s->lookup_cache.images.v[map->image];
	place->image = map->image;
	place->module = names->module;
	if (!names->identity)
		place->shown =
			ip - map->start + (image->key.kind == IMAGE_KIND_VDSO ? 0 : map->pgoff);
	if (image->key.kind == IMAGE_KIND_OTHER || image->key.kind == IMAGE_KIND_VSYSCALL)
		return 0;
	if (image->key.kind != IMAGE_KIND_JIT)
		place->addr = place->shown;
	r = symbolizer_lookup(s, map->image, place->addr, time_ns, &place->symbol);
	if (!r && full && place->symbol == LOOKUP_NONE && map->under != PROCESS_NO_IMAGE)
		r = symbolizer_place_under(s, map, ip, time_ns, place);
	return r;
}

static int symbolizer_place(struct symbolizer *s, const struct callchain_key *key,
			    const struct process_map *map, uint64_t ip, bool full,
			    struct frames_place *place)
{
	if (key->mode == CALLCHAIN_KERNEL)
		return symbolizer_place_kernel(s, ip, key->time_ns, place);
	if (key->mode == CALLCHAIN_USER)
		return symbolizer_place_user(s, key->thread, map, ip, key->time_ns, full, place);
	*place = (struct frames_place){.image = LOOKUP_NONE,
				       .symbol = LOOKUP_NONE,
				       .addr = ip,
				       .shown = ip,
				       .module = s->unknown_module,
				       .map_name = PROFILE_NONE};
	return 0;
}

/*
 * Whether the lines of an image may be looked up on this machine. Lines may not have been wanted
 * when its names were stored.
 */
static bool symbolizer_may_search_lines(const struct symbolizer *s, uint32_t image)
{
	return !s->options.offline && (!s->has_store || s->options.recorded_here ||
				       s->lookup_cache.images.v[image].key.build_id.len);
}

/*
 * Whether lines may exist by now that did not before: a debug file of a stripped image, or a PDB,
 * may have come.
 */
static bool symbolizer_may_have_new_lines(const struct symbolizer *s, uint32_t image)
{
	const struct lookup_cache_image *i = &s->lookup_cache.images.v[image];

	return i->stripped ||
	       (s->options.improve && (i->key.kind == IMAGE_KIND_JIT ||
				       (i->key.kind == IMAGE_KIND_FILE && !i->key.build_id.len)));
}

/*
 * Gets the inlined functions at a place, and their lines: a chain of lookup_cache.lines, or
 * LOOKUP_NONE.
 */
static int symbolizer_chain(struct symbolizer *s, const struct frames_place *place,
			    uint64_t time_ns, uint32_t *ret_chain)
{
	bool unread = true, known, lineless, may_search;
	int r = 0;

	*ret_chain = LOOKUP_NONE;
	if (place->symbol == LOOKUP_NONE || place->image == s->kernel_image)
		return 0;
	known = !line_cache_get(&s->lookup_cache.lines, place->symbol, place->addr, ret_chain);
	if (known && *ret_chain != LOOKUP_NONE)
		return 0;
	lineless = s->lookup_cache.images.v[place->image].lineless;
	may_search = symbolizer_may_search_lines(s, place->image);
	if ((known && !s->has_store) ||
	    ((known || lineless) &&
	     (!may_search || !symbolizer_may_have_new_lines(s, place->image))))
		return 0;
	if (may_search)
		r = images_lookup_lines(s->images, place->image, place->symbol, place->addr,
					time_ns, ret_chain, &unread);
	s->lookup_cache.images.v[place->image].lines_unread |= unread && !lineless && !known;
	s->new_lines |= !r && !unread && (!(lineless || known) || *ret_chain != LOOKUP_NONE);
	return r;
}

/*
 * Finds the entry for an address in a file, which may hold another one; *ret_entry NULL: it has
 * none. Sets the part of *ret_key that identifies the address.
 */
static int symbolizer_find_known(struct symbolizer *s, const struct callchain_key *key,
				 const struct process_map *map, struct symbolizer_known *ret_key,
				 struct symbolizer_known **ret_entry)
{
	uint64_t file_off;

	*ret_entry = NULL;
	/* PID 0 is several processes. The call before a return address must be in the same map. */
	if (!map || !key->thread->tid || map->under != PROCESS_NO_IMAGE ||
	    (!key->exact && key->ip == map->start) ||
	    s->lookup_cache.images.v[map->image].key.kind != IMAGE_KIND_FILE)
		return 0;
	file_off = key->ip - map->start + map->pgoff;
	if (file_off > UINT64_MAX >> 3)
		return 0;
	if (!s->known)
		s->known = bigmem_zeroed(SYMBOLIZER_KNOWN, sizeof(*s->known));
	if (!s->known)
		return -ENOMEM;
	ret_key->place = file_off << 3 | (uint64_t)key->grade << 1 | key->exact;
	ret_key->image = map->image + 1;
	*ret_entry = &s->known[hash_mix(ret_key->place, ret_key->image) & (SYMBOLIZER_KNOWN - 1)];
	return 0;
}

/* Whether perf's form of an address and the full form are at the same place. */
static bool symbolizer_has_one_place(const struct callchain_key *key, const struct process_map *map)
{
	return key->mode != CALLCHAIN_USER || !map ||
	       (key->thread->tid && map->under == PROCESS_NO_IMAGE);
}

static int symbolizer_make_frame(struct symbolizer *s, const struct callchain_key *key,
				 const struct process_map *map, struct callchain_frame *ret_frame)
{
	struct frames_place here, full;
	uint32_t chain = LOOKUP_NONE;
	int r;

	s->timed = false;
	elf_budget_work_for(key->thread ? key->thread->pid : 0);
	r = symbolizer_place(s, key, map, key->ip, false, &here);

	if (r)
		return r;
	/* The full form of kernel frames decides what belongs to the idle loop. */
	if (s->options.perf_names_only && key->mode != CALLCHAIN_KERNEL) {
		full = here;
	} else {
		bool exact = key->exact || !key->ip || frames_is_trampoline(&s->frames, &here);

		if (!exact && key->mode == CALLCHAIN_USER)
			map = symbolizer_map(s, key->thread, key->ip - 1);
		if (exact && symbolizer_has_one_place(key, map))
			full = here;
		else
			r = symbolizer_place(s, key, map, exact ? key->ip : key->ip - 1, true,
					     &full);
	}
	full.grade = key->grade;
	if (!r && (s->options.inlines || s->options.lines))
		r = symbolizer_chain(s, &full, key->time_ns, &chain);
	if (!r)
		r = frames_make(&s->frames, &here, &full, chain, ret_frame);
	ret_frame->timed = s->timed;
	return r;
}

/*
 * The frame that addresses outside of all maps share; NULL: this one needs its own, or none was
 * made yet. Programs without frame pointers have many such callers.
 */
static const struct frames_known *symbolizer_nowhere(struct symbolizer *s,
						     const struct callchain_key *key)
{
	return s->frames.nowhere.done && !key->grade &&
			       (key->exact || !key->ip ||
				!symbolizer_map(s, key->thread, key->ip - 1))
		       ? &s->frames.nowhere
		       : NULL;
}

int symbolizer_frame(void *ctx, const struct callchain_key *key, struct callchain_frame *ret_frame)
{
	struct symbolizer *s = ctx;
	const struct process_map *map =
		key->mode == CALLCHAIN_USER ? symbolizer_map(s, key->thread, key->ip) : NULL;
	const struct frames_known *nowhere =
		key->mode == CALLCHAIN_USER && !map ? symbolizer_nowhere(s, key) : NULL;
	struct symbolizer_known wanted, *known;

	if (nowhere) {
		ret_frame->frame = nowhere->frame;
		ret_frame->flags = nowhere->flags;
		return 0;
	}
	int r = symbolizer_find_known(s, key, map, &wanted, &known);

	if (r)
		return r;
	if (known && known->image == wanted.image && known->place == wanted.place) {
		ret_frame->frame = known->frame;
		ret_frame->flags = s->callchains.frame_flags.v[known->frame];
		return 0;
	}
	r = symbolizer_make_frame(s, key, map, ret_frame);
	if (r || !known || ret_frame->timed || ret_frame->ninlined)
		return r;
	wanted.frame = ret_frame->frame;
	*known = wanted;
	return 0;
}
