/* Looks up symbols in the source of their image: a part of symbols/images.h. */
#include "symbols/images_impl.h"

#include "base/cleanup.h"
#include "symbols/symtab/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Finds the function that covers vaddr, without its name. Returns 0, -ENOENT, -ENOMEM. */
static int images_find_bounds(struct images *im, uint32_t image, uint64_t vaddr,
			      struct cfi_place *ret_place)
{
	struct images_source *s = &im->sources.v[image];
	struct elf_file file;
	int fd, r = 0;

	if (im->lookup_cache->images.v[image].key.kind != IMAGE_KIND_FILE ||
	    (s->frames_tried && !s->frames))
		return -ENOENT;
	if (!s->frames)
		r = images_headers(im, image, &file);
	if (!r && !s->frames) {
		r = cfi_frames_open(&file, &s->frames);
		elf_file_close(&file);
	}
	s->frames_tried = true;
	if (!r)
		r = images_file(im, image, &fd);
	if (!r) {
		cfi_frames_use_fd(s->frames, fd);
		r = cfi_frames_find(s->frames, vaddr, ret_place);
	}
	return r == -ENOMEM ? r : r || ret_place->error ? -ENOENT : 0;
}

/* One lookup of an address in the source of its image. */
struct images_query {
	struct symbol_provider *symbols; /* NULL: there are none */
	uint64_t addr;                   /* the address as the provider takes it */
	bool precompiled; /* symbols is the precompiled provider of the image's source */
};

/* Why the running kernel gives no names. */
static enum image_reason images_reason_kernel(enum kernel_map_live live)
{
	switch (live) {
	case KERNEL_MAP_HIDDEN:
		return IMAGE_REASON_DENIED;
	case KERNEL_MAP_FOREIGN:
		return IMAGE_REASON_OTHER_KERNEL;
	case KERNEL_MAP_FAILED:
		return IMAGE_REASON_UNREADABLE;
	default:
		return IMAGE_REASON_NONE;
	}
}

static int images_provider(struct images *im, uint32_t image, uint64_t addr,
			   struct images_query *ret_query)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;
	struct images_query query = {.addr = addr};
	const struct images_source *source;
	int r;

	if (key->kind == IMAGE_KIND_KERNEL) {
		r = kernel_map_load(im->kernel);
		query.symbols = im->kernel->live == KERNEL_MAP_NAMED ? im->kernel->kallsyms : NULL;
		query.addr = addr + im->kernel->delta;
		images_note_why(im, key, images_reason_kernel(im->kernel->live));
	} else if (key->kind == IMAGE_KIND_JIT) {
		r = jit_sources_provider(im->jit, key->pid, im->sources.v[image].mapped_ns,
					 &query.symbols);
	} else {
		r = images_open(im, image);
		source = &im->sources.v[image];
		query.symbols = source->elf ? source->elf->symbols : source->precompiled;
		query.precompiled =
			source->precompiled &&
			(!source->elf ||
			 symbol_provider_piece(source->precompiled, addr, 0) != SYMBOL_NO_PIECE);
		if (query.precompiled)
			query.symbols = source->precompiled;
	}
	if (!r)
		*ret_query = query;
	return r;
}

/*
 * Whether an address may have no name because the source of its image could not be read. A source
 * that was read and has no names does not count, except if a runtime could still add one.
 */
static bool images_is_unread(const struct images *im, uint32_t image,
			     const struct images_query *query)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;

	switch ((enum image_kind)key->kind) {
	case IMAGE_KIND_JIT:
		return !query->symbols || jit_sources_was_open(im->jit, key->pid);
	case IMAGE_KIND_FILE:
		return im->sources.v[image].unread;
	case IMAGE_KIND_VDSO:
	case IMAGE_KIND_KERNEL:
		return !query->symbols;
	default:
		return false;
	}
}

/*
 * Notes whether an address lacks its name because the source could not be read. The first lookup
 * forgets the note of the store.
 */
static void images_note_unread(struct images *im, uint32_t image, bool unread)
{
	bool *noted = &im->lookup_cache->images.v[image].unread;

	*noted = unread || (*noted && im->sources.v[image].looked_up);
	im->sources.v[image].looked_up = true;
}

/*
 * The place that keeps symbol id + 1 of a piece. Many addresses share one piece, so most lookups
 * end here. Returns 0 or -ENOMEM.
 */
static int images_pieces_place(struct images_pieces *pieces, size_t piece, uint32_t **ret_place)
{
	size_t had = pieces->symbols.len;

	if (piece >= had) {
		if (vec_reserve(&pieces->symbols, piece + 1 - had))
			return -ENOMEM;
		pieces->symbols.len = pieces->symbols.cap;
		memset(pieces->symbols.v + had, 0,
		       (pieces->symbols.len - had) * sizeof(*pieces->symbols.v));
	}
	*ret_place = &pieces->symbols.v[piece];
	return 0;
}

/*
 * Makes the symbol of lookup_cache for a function without a name. Returns 0, -ENOENT, -ENOMEM,
 * -E2BIG.
 */
static int images_lookup_by_bounds(struct images *im, uint32_t image, uint64_t addr,
				   uint32_t *ret_symbol)
{
	struct lookup_cache_symbol found = {.image = image,
					    .module = LOOKUP_NONE,
					    .source = SYMBOL_BOUNDS,
					    .until_ns = UINT64_MAX};
	const struct image *elf = im->sources.v[image].elf;
	struct cfi_place function;
	uint64_t vaddr;
	uint32_t *place;
	char buf[24];
	int r = elf ? image_vaddr(elf, addr, &vaddr) : -ENOENT;

	if (!r)
		r = images_find_bounds(im, image, vaddr, &function);
	if (r)
		return r;
	found.start = function.start - vaddr + addr;
	found.end = function.end - vaddr + addr;
	r = hashmap_entry(&im->bounds_ids, (uint64_t)image << 32 | (uint32_t)function.off, 0,
			  &place, NULL);
	/* Overlapping segments can hold a function twice. */
	if (!r && *place && im->lookup_cache->symbols.v[*place - 1].start == found.start) {
		*ret_symbol = *place - 1;
		return 0;
	}
	snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)function.start);
	if (!r)
		r = lookup_cache_name(im->lookup_cache, buf, strlen(buf), &found.name);
	if (!r)
		r = lookup_cache_symbol(im->lookup_cache, &found, ret_symbol);
	if (!r)
		*place = *ret_symbol + 1;
	return r;
}

/* Makes the symbol of lookup_cache that the provider has for addr. */
static int images_lookup_by_provider(struct images *im, uint32_t image, uint64_t addr,
				     const struct images_query *query, uint64_t time_ns,
				     uint32_t *ret_symbol)
{
	struct lookup_cache_symbol found = {.image = image, .module = LOOKUP_NONE};
	struct symbol s;
	int r = symbol_provider_find(query->symbols, query->addr, time_ns, &s);

	if (r)
		return r;
	found.start = s.base - query->addr + addr;
	found.end = s.end - query->addr + addr;
	found.source = (uint32_t)s.source;
	/*
	 * No lookup has a time before the first one: a symbol that held then may be kept as if it
	 * always had.
	 */
	found.from_ns = s.from_ns <= im->began_ns ? 0 : s.from_ns;
	found.until_ns = s.until_ns;
	r = lookup_cache_name(im->lookup_cache, s.name, s.name_len, &found.name);
	if (!r && s.source == SYMBOL_KALLSYMS)
		r = intern_str(&im->lookup_cache->texts,
			       kallsyms_module(query->symbols, query->addr), &found.module);
	return r ? r : lookup_cache_symbol(im->lookup_cache, &found, ret_symbol);
}

static int images_piece_place(struct images *im, uint32_t image, const struct images_query *query,
			      uint32_t piece, uint32_t **ret_place)
{
	struct images_source *source = &im->sources.v[image];

	if (im->lookup_cache->images.v[image].key.kind == IMAGE_KIND_JIT)
		return hashmap_entry(&im->jit_ids, (uint64_t)image << 32 | piece, 0, ret_place,
				     NULL);
	return images_pieces_place(query->precompiled ? &source->precompiled_pieces
						      : &source->pieces,
				   piece, ret_place);
}

static int images_lookup_uncached(struct images *im, uint32_t image, uint64_t addr,
				  uint64_t time_ns, uint32_t *ret_symbol, bool *ret_timed)
{
	struct images_query query;
	uint32_t piece = SYMBOL_NO_PIECE, *place;
	int r = images_add_source(im, image);

	if (!r)
		r = images_provider(im, image, addr, &query);
	if (r)
		return r;
	if (query.symbols)
		piece = symbol_provider_piece(query.symbols, query.addr, time_ns);
	images_note_unread(im, image,
			   piece == SYMBOL_NO_PIECE && images_is_unread(im, image, &query));
	*ret_timed = query.symbols && query.symbols->ops->timed;
	if (piece == SYMBOL_NO_PIECE)
		return im->options.no_bounds ? 0
					     : images_lookup_by_bounds(im, image, addr, ret_symbol);
	r = images_piece_place(im, image, &query, piece, &place);
	if (!r && !*place) {
		r = images_lookup_by_provider(im, image, addr, &query, time_ns, ret_symbol);
		*place = r ? 0 : *ret_symbol + 1;
	}
	if (!r)
		*ret_symbol = *place - 1;
	return r;
}

/* Keeps a result, instead of a stored one without a name. Returns 0, -ENOMEM or -E2BIG. */
static int images_keep(struct lookup_cache *cache, uint32_t image, uint64_t addr, uint32_t symbol)
{
	return symbol != LOOKUP_NONE && !lookup_cache_replace(cache, image, addr, symbol)
		       ? 0
		       : lookup_cache_put(cache, image, addr, symbol);
}

int images_lookup(struct images *im, uint32_t image, uint64_t addr, uint64_t time_ns,
		  uint32_t *ret_symbol, bool *ret_timed)
{
	uint32_t symbol = LOOKUP_NONE;
	bool can_be_timed = false, timed;
	int r;

	if (!im->began) {
		im->began = true;
		im->began_ns = time_ns;
	}
	do
		r = images_lookup_uncached(im, image, addr, time_ns, &symbol, &can_be_timed);
	while (r == -ENOMEM && images_make_most_room(im, image));
	bool no_room = r == -ENOSPC;

	if (r != -ENOMEM)
		r = 0;
	timed = can_be_timed &&
		(symbol == LOOKUP_NONE || lookup_cache_is_timed(im->lookup_cache, symbol));
	/* If a part of the source could not be read, names from the rest are still kept. */
	if (!r && im->options.keep_cache && !no_room &&
	    (symbol != LOOKUP_NONE || (!timed && !im->lookup_cache->images.v[image].unread)))
		r = images_keep(im->lookup_cache, image, addr, symbol);
	if (!r) {
		*ret_symbol = symbol;
		*ret_timed = timed;
	}
	return r;
}
