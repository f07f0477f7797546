#include "symbols/stripped.h"

#include "base/cleanup.h"
#include "container/opener.h"
#include "symbols/symtab/image.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct stripped_image {
	bool tried;
	struct image *debug; /* NULL: this machine lacks its debug file */
};

struct stripped {
	struct lookup_cache *lookup_cache;
	VEC(struct stripped_image) images; /* by index into lookup_cache->stripped */
};

int stripped_new(struct lookup_cache *lookup_cache, struct stripped **ret_stripped)
{
	struct stripped *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->lookup_cache = lookup_cache;
	*ret_stripped = s;
	return 0;
}

void stripped_free(struct stripped *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->images.len; i++)
		image_free(s->images.v[i].debug);
	vec_free(&s->images);
	free(s);
}

/*
 * Opens the debug file of an image, once. *ret_debug NULL: this machine lacks it. Returns 0 or
 * -ENOMEM.
 */
static int stripped_open(struct stripped *s, const struct lookup_cache_image *cached,
			 struct image **ret_debug)
{
	struct lookup_cache_stripped *stripped = &s->lookup_cache->stripped.v[cached->stripped - 1];
	/* Any process may have chosen the path. */
	struct opener_place root = {
		.own = true, .by_uid = !geteuid(), .uid = OPENER_NOBODY, .no_links = true};
	int r = 0;

	while (s->images.len < cached->stripped)
		if (vec_push(&s->images, (struct stripped_image){0}))
			return -ENOMEM;
	struct stripped_image *image = &s->images.v[cached->stripped - 1];

	if (!image->tried) {
		image->tried = true;
		r = opener_new(&root.opener);
		if (!r)
			r = image_open_debug(&stripped->build_id,
					     intern_text(&s->lookup_cache->texts, cached->key.path),
					     &root, 1, stripped->segments, stripped->nsegments,
					     &image->debug);
		opener_free(root.opener);
		stripped->named = !r;
	}
	*ret_debug = image->debug;
	return r == -ENOMEM ? r : 0;
}

int stripped_improve_symbol(struct stripped *s, uint32_t image, uint64_t addr, uint32_t *symbol)
{
	uint32_t source =
		*symbol == LOOKUP_NONE ? SYMBOL_NONE : s->lookup_cache->symbols.v[*symbol].source;
	struct lookup_cache_symbol better = {
		.image = image, .module = LOOKUP_NONE, .until_ns = UINT64_MAX};
	struct image *debug = NULL;
	struct symbol found;
	uint32_t id;
	int r = 0;

	/* PLT slots are named from the image; its debug file does not know them. */
	if (!s->lookup_cache->images.v[image].stripped || source == SYMBOL_DEBUG_FILE ||
	    source == SYMBOL_PLT)
		return 0;
	r = stripped_open(s, &s->lookup_cache->images.v[image], &debug);
	if (r || !debug || symbol_provider_find(debug->symbols, addr, 0, &found))
		return r;
	better.start = found.base;
	better.end = found.end;
	better.source = (uint32_t)found.source;
	r = intern_put(&s->lookup_cache->texts, found.name, found.name_len, &better.name);
	if (!r)
		r = lookup_cache_symbol(s->lookup_cache, &better, &id);
	if (r || lookup_cache_replace(s->lookup_cache, image, addr, id))
		return r;
	*symbol = id;
	return 1;
}
