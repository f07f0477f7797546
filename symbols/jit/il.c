#include "symbols/jit/il.h"

#include "base/arena.h"
#include "base/vec.h"
#include "dotnet/il_points.h"
#include "symbols/store/store_fields.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct jit_il_map {
	uint32_t module, rid;
	const char *text;
};

struct jit_il {
	struct arena texts;
	size_t bytes, bytes_max;
	VEC(struct jit_il_module) modules;
	VEC(struct jit_il_map) maps;
	struct il_points *points; /* of the maps that were looked up, by their number */
};

/* Writing */

static int by_native(const void *x, const void *y)
{
	const struct il_point *a = x, *b = y;

	return (a->native > b->native) - (a->native < b->native);
}

void jit_il_put(struct outbuf *out, struct il_point *points, size_t n)
{
	uint32_t native = 0, il = 0;
	bool any = false, sorted = true;

	for (size_t i = 1; i < n; i++)
		sorted &= points[i - 1].native <= points[i].native;
	if (!sorted)
		qsort(points, n, sizeof(*points), by_native);
	for (size_t i = 0, put = 0; i < n && put < IL_POINTS_METHOD_MAX; i++) {
		uint32_t to = points[i].il == IL_POINTS_PROLOG ? 0 : points[i].il;

		if (to == IL_POINTS_NONE || to == IL_POINTS_EPILOG || to > INT32_MAX ||
		    (any && to == il))
			continue;
		if (any)
			outbuf_char(out, ',');
		outbuf_hex(out, points[i].native - native);
		outbuf_char(out, to < il ? '-' : '+');
		outbuf_hex(out, to < il ? il - to : to - il);
		native = points[i].native;
		il = to;
		any = true;
		put++;
	}
	if (!any)
		outbuf_char(out, '-');
}

/* Reading */

static bool parse_hex(const char **p, uint32_t *ret_x)
{
	uint32_t x = 0;
	int digits = 0, digit;

	for (; (digit = store_text_digit(**p)) >= 0 && digits < 8; digits++, (*p)++)
		x = x << 4 | (uint32_t)digit;
	*ret_x = x;
	return digits > 0;
}

/* Reads the next point; *point holds the one before. False: the text has no point here. */
static bool parse_point(const char **p, struct il_point *point)
{
	uint32_t native, il;
	bool back;

	if (!parse_hex(p, &native) || (**p != '+' && **p != '-'))
		return false;
	back = *(*p)++ == '-';
	if (!parse_hex(p, &il) || native > UINT32_MAX - point->native ||
	    (back ? il > point->il : il > INT32_MAX - point->il))
		return false;
	point->native += native;
	point->il = back ? point->il - il : point->il + il;
	return true;
}

/* Whether a text is a map; "-" is a map without points. */
static bool is_map(const char *text)
{
	struct il_point point = {0};
	size_t n = 0;

	if (!strcmp(text, "-"))
		return true;
	for (const char *p = text; n < IL_POINTS_METHOD_MAX && parse_point(&p, &point); p++, n++)
		if (*p != ',')
			return !*p;
	return false;
}

int jit_il_new(struct jit_il **ret_il)
{
	struct jit_il *il = calloc(1, sizeof(*il));

	if (il)
		il->points = calloc(1, sizeof(*il->points));
	if (!il || !il->points) {
		free(il);
		return -ENOMEM;
	}
	il->bytes_max = JIT_IL_BYTES_MAX;
	*ret_il = il;
	return 0;
}

void jit_il_limit(struct jit_il *il, uint64_t bytes)
{
	size_t left = JIT_IL_BYTES_MAX - il->bytes;

	il->bytes_max = il->bytes + (bytes < left ? (size_t)bytes : left);
}

bool jit_il_take(struct jit_il *il, uint64_t bytes)
{
	if (bytes > il->bytes_max - il->bytes)
		return false;
	il->bytes += (size_t)bytes;
	return true;
}

uint64_t jit_il_bytes(const struct jit_il *il)
{
	return il->bytes;
}

void jit_il_free(struct jit_il *il)
{
	if (!il)
		return;
	arena_free(&il->texts);
	vec_free(&il->modules);
	vec_free(&il->maps);
	il_points_free(il->points);
	free(il->points);
	free(il);
}

/* Copies the text of a struct of `each` bytes, within the limit. Returns 0; -E2BIG; -ENOMEM. */
static int copy_text(struct jit_il *il, const char *text, size_t each, const char **ret_text)
{
	size_t len = strlen(text);

	if (!jit_il_take(il, len + 1 + each))
		return -E2BIG;
	*ret_text = arena_strndup(&il->texts, text, len);
	return *ret_text ? 0 : -ENOMEM;
}

int jit_il_add_module(struct jit_il *il, const struct jit_il_module *module, uint32_t *ret_module)
{
	struct jit_il_module fresh = *module;
	int r = il->modules.len < JIT_IL_MODULES_MAX
			? copy_text(il, module->path, sizeof(fresh), &fresh.path)
			: -E2BIG;

	if (!r)
		r = vec_push(&il->modules, fresh);
	if (!r)
		*ret_module = (uint32_t)il->modules.len - 1;
	return r;
}

int jit_il_add(struct jit_il *il, uint32_t module, uint32_t rid, const char *text,
	       uint32_t *ret_map)
{
	struct jit_il_map map = {.module = module, .rid = rid};

	if (!is_map(text))
		return -EBADMSG;
	if (module >= il->modules.len || !rid)
		return -EINVAL;
	int r = il->maps.len < UINT32_MAX - 1 ? copy_text(il, text, sizeof(map), &map.text)
					      : -E2BIG;

	if (!r)
		r = vec_push(&il->maps, map);
	if (!r)
		*ret_map = (uint32_t)il->maps.len - 1;
	return r;
}

size_t jit_il_modules(const struct jit_il *il)
{
	return il->modules.len;
}

size_t jit_il_maps(const struct jit_il *il)
{
	return il->maps.len;
}

const struct jit_il_module *jit_il_module(const struct jit_il *il, uint32_t module)
{
	return &il->modules.v[module];
}

/* il_points_read_fn */
static int read_map(void *ctx, uint32_t map, struct il_points *points)
{
	const struct jit_il_map *maps = ctx;
	struct il_point point = {0};

	for (const char *p = maps[map].text;
	     parse_point(&p, &point) && il_points_add(points, point.native, point.il); p++)
		if (*p != ',')
			break;
	return 0;
}

int jit_il_find(const struct jit_il *il, uint32_t map, uint32_t native,
		struct jit_il_place *ret_place)
{
	const struct jit_il_map *m = &il->maps.v[map];
	struct jit_il_place place = {m->module, m->rid, 0};
	int r = il_points_find(il->points, map, native, read_map, il->maps.v, &place.il);

	if (!r)
		*ret_place = place;
	return r;
}
