#include "symbols/stripped.h"

#include "base/cleanup.h"
#include "symbols/image.h"

#include <errno.h>
#include <fcntl.h>

struct stripped_image {
	bool tried;
	struct image *debug; /* NULL: its debug file is not here */
};

struct stripped {
	struct answers *answers;
	VEC(struct stripped_image) images; /* by index into answers->stripped */
};

int stripped_new(struct answers *answers, struct stripped **ret_stripped)
{
	struct stripped *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->answers = answers;
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

/* What is known of an image by its debug file, which is opened once. *ret_debug NULL: it is not here. 0 or -ENOMEM. */
static int stripped_open(struct stripped *s, const struct answers_image *key, struct image **ret_debug)
{
	struct answers_stripped *stripped = &s->answers->stripped.v[key->stripped - 1];
	AUTO_CLOSE int root = -1;
	int r = 0;

	while (s->images.len < key->stripped)
		if (vec_push(&s->images, (struct stripped_image){0}))
			return -ENOMEM;
	struct stripped_image *image = &s->images.v[key->stripped - 1];

	if (!image->tried) {
		image->tried = true;
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = image_open_debug(&stripped->build_id, intern_text(&s->answers->texts, key->path), &root, root >= 0,
				     stripped->segments, stripped->nsegments, &image->debug);
		stripped->named = !r;
	}
	*ret_debug = image->debug;
	return r == -ENOMEM ? r : 0;
}

int stripped_improve(struct stripped *s, uint32_t image, uint64_t addr, uint32_t *symbol)
{
	uint32_t source = *symbol == ANSWERS_NONE ? SYMBOL_NONE : s->answers->symbols.v[*symbol].source;
	struct answers_symbol better = {.image = image, .module = ANSWERS_NONE, .until_ns = UINT64_MAX};
	struct image *debug = NULL;
	struct symbol found;
	uint32_t id;
	int r = 0;

	/* Slots have their names from the image, and its debug file knows nothing of them. */
	if (!s->answers->images.v[image].stripped || source == SYMBOL_DEBUG_FILE || source == SYMBOL_PLT)
		return 0;
	r = stripped_open(s, &s->answers->images.v[image], &debug);
	if (r || !debug || symbol_provider_find(debug->symbols, addr, 0, &found))
		return r;
	better.start = found.base;
	better.end = found.end;
	better.source = (uint32_t)found.source;
	r = intern_put(&s->answers->texts, found.name, found.name_len, &better.name);
	if (!r)
		r = answers_symbol(s->answers, &better, &id);
	if (r || answers_replace(s->answers, image, addr, id))
		return r;
	*symbol = id;
	return 1;
}
