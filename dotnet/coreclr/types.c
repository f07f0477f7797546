#include "dotnet/coreclr/types.h"

#include "base/cleanup.h"
#include "dotnet/metadata_names.h"

#include <errno.h>

/*
 * Flags of a MethodTable. The flags of generics are valid only without a component size, which
 * arrays and strings have.
 */
#define HAS_COMPONENT_SIZE 0x80000000u
#define GENERICS_MASK 0x30u
#define CATEGORY_ARRAY_MASK 0xc0000u
#define CATEGORY_ARRAY 0x80000u
#define CATEGORY_SZ_ARRAY 0x20000u /* together with CATEGORY_ARRAY */
/* Tag of a pointer to the canonical MethodTable, in the place of the pointer to the class. */
#define CANON_TAG 1u
#define DESC_TAG 2u /* tag of a handle to a TypeDesc */

/* CorElementType, ECMA-335 II.23.1.16. */
#define ELEMENT_PTR 0x0f
#define ELEMENT_BYREF 0x10
#define ELEMENT_FNPTR 0x1b

#define WAVES_MAX CLR_TYPE_DEPTH_MAX
/*
 * Types between two reads, and so two checks of the clock. Each may have CLR_TYPE_ARGS_MAX
 * arguments.
 */
#define TYPES_AT_ONCE 256
#define RANK_MAX 32 /* the runtime loads no array with more dimensions */

int clr_types_request(struct clr_types *t, uint64_t handle)
{
	const uint32_t *index = hashmap_get(&t->by_handle, handle);
	uint32_t at = index ? *index : (uint32_t)t->types.len;
	int r = 0;

	if (index && t->types.v[at].checked_in == t->scan)
		return 0;
	if (!index) {
		if (t->types.len >= CLR_TYPES_MAX)
			return 0;
		r = vec_push(&t->types, (struct clr_type){.handle = handle});
		if (!r)
			r = hashmap_put(&t->by_handle, handle, at);
	}
	if (!r)
		r = vec_push(&t->wanted, at);
	if (!r)
		t->types.v[at].checked_in = t->scan;
	return r;
}

struct clr_type *clr_types_get(const struct clr_types *t, uint64_t handle)
{
	const uint32_t *index = hashmap_get(&t->by_handle, handle);

	return index ? &t->types.v[*index] : NULL;
}

/* One step of reading a wave of types: at most one read for each type. */
struct step {
	struct clr_batch batch;
	VEC(uint32_t) types; /* type of each read */
	unsigned char *rows;
	size_t row_bytes;
};

static int step_begin(struct step *s, const struct clr_types *t, size_t n, size_t row_bytes)
{
	*s = (struct step){.batch.io = t->io, .row_bytes = row_bytes};
	s->rows = calloc(n + 1, row_bytes);
	return s->rows ? 0 : -ENOMEM;
}

static int step_add(struct step *s, uint32_t type, uint64_t addr)
{
	int r = clr_batch_add(&s->batch, addr, s->rows + s->types.len * s->row_bytes,
			      (uint32_t)s->row_bytes);

	return r ? r : vec_push(&s->types, type);
}

static void step_free(struct step *s)
{
	clr_batch_free(&s->batch);
	vec_free(&s->types);
	free(s->rows);
}

static size_t needed_bytes(const struct clr_contract *c, bool desc)
{
	static const enum clr_field of_type[] = {CLR_TYPE_FLAGS, CLR_TYPE_FLAGS2, CLR_TYPE_CLASS,
						 CLR_TYPE_MODULE, CLR_TYPE_INST};
	static const enum clr_field of_desc[] = {CLR_DESC_KIND, CLR_PARAM_ARG};
	const enum clr_field *fields = desc ? of_desc : of_type;
	size_t n = desc ? 2 : 5, end = 0;

	for (size_t i = 0; i < n; i++)
		if (c->at[fields[i]] + 8u > end)
			end = c->at[fields[i]] + 8u;
	return end;
}

/* Clears a type except the room for its arguments. */
static void forget(struct clr_type *type)
{
	*type = (struct clr_type){
		.handle = type->handle,
		.checked_in = type->checked_in,
		.first_arg = type->first_arg,
		.args_room = type->args_room,
	};
}

/* Gives a type zeroed room for n arguments. nargs stays 0 if the limit is reached. 0 or -ENOMEM. */
static int reserve_args(struct clr_types *t, struct clr_type *type, uint32_t n)
{
	if (type->args_room < n) {
		if (t->args.len + n > CLR_TYPE_ARGS_ALL_MAX)
			return 0;
		if (vec_reserve(&t->args, n))
			return -ENOMEM;
		type->first_arg = (uint32_t)t->args.len;
		type->args_room = n;
		t->args.len += n;
	}
	memset(t->args.v + type->first_arg, 0, n * sizeof(*t->args.v));
	type->nargs = n;
	return 0;
}

static int set_element(struct clr_types *t, struct clr_type *type, uint64_t element)
{
	int r = reserve_args(t, type, 1);

	if (r || !type->nargs)
		return r;
	t->args.v[type->first_arg] = element;
	type->whole = true;
	return 0;
}

static int set_desc(struct clr_types *t, struct clr_type *type, const unsigned char *row)
{
	unsigned element = row[t->contract->at[CLR_DESC_KIND]];

	if (element == ELEMENT_FNPTR)
		type->kind = CLR_TYPE_FUNCTION;
	if (element != ELEMENT_PTR && element != ELEMENT_BYREF)
		return 0;
	type->kind = element == ELEMENT_PTR ? CLR_TYPE_POINTER : CLR_TYPE_BYREF;
	return set_element(t, type, clr_u64(row, t->contract->at[CLR_PARAM_ARG]));
}

static bool is_generic(const struct clr_type *type)
{
	return type->kind == CLR_TYPE_DEFINED && !(type->raw[0] & HAS_COMPONENT_SIZE) &&
	       type->raw[0] & GENERICS_MASK;
}

/* Takes a type's row. An unchanged row leaves the type and its name. */
static int set_type(struct clr_types *t, struct clr_type *type, const unsigned char *row)
{
	const uint32_t *at = t->contract->at;
	bool desc = type->handle & DESC_TAG;
	uint64_t raw[5] = {0};

	if (desc) {
		raw[0] = clr_u32(row, at[CLR_DESC_KIND]);
		raw[1] = clr_u64(row, at[CLR_PARAM_ARG]);
	} else {
		raw[0] = clr_u32(row, at[CLR_TYPE_FLAGS]);
		raw[1] = clr_u32(row, at[CLR_TYPE_FLAGS2]) >> t->contract->type_token_shift;
		raw[2] = clr_u64(row, at[CLR_TYPE_CLASS]);
		raw[3] = clr_u64(row, at[CLR_TYPE_MODULE]);
		raw[4] = clr_u64(row, at[CLR_TYPE_INST]);
	}
	if (type->kind != CLR_TYPE_UNREAD && type->whole && !memcmp(raw, type->raw, sizeof(raw)))
		return 0;
	forget(type);
	memcpy(type->raw, raw, sizeof(raw));
	if (desc)
		return set_desc(t, type, row);
	type->rid = (uint32_t)raw[1];
	if ((raw[0] & CATEGORY_ARRAY_MASK) == CATEGORY_ARRAY) {
		type->kind = CLR_TYPE_ARRAY;
		type->rank = raw[0] & CATEGORY_SZ_ARRAY ? 0 : UINT32_MAX; /* not known yet */
		return set_element(t, type, raw[4]);
	}
	type->kind = CLR_TYPE_DEFINED;
	type->whole = !is_generic(type);
	return 0;
}

static int read_rows(struct clr_types *t, const uint32_t *wave, size_t n)
{
	for (int desc = 0; desc < 2; desc++) {
		struct step s;
		int r = step_begin(&s, t, n, needed_bytes(t->contract, desc));

		for (size_t i = 0; !r && i < n; i++) {
			uint64_t handle = t->types.v[wave[i]].handle;

			if (!!(handle & DESC_TAG) == desc)
				r = step_add(&s, wave[i], handle & ~(uint64_t)DESC_TAG);
		}
		if (!r)
			r = clr_batch_run(&s.batch);
		for (size_t i = 0; !r && i < s.types.len; i++) {
			struct clr_type *type = &t->types.v[s.types.v[i]];

			if (clr_batch_ok(&s.batch, i))
				r = set_type(t, type, s.rows + i * s.row_bytes);
			else
				forget(type);
		}
		step_free(&s);
		if (r)
			return r;
	}
	return 0;
}

/*
 * Reads type arguments. Their number precedes the dictionaries; the last one holds the type's own.
 */
static int read_counts(struct clr_types *t, struct step *counts)
{
	const uint32_t *at = t->contract->at;
	struct step dictionaries;
	int r = step_begin(&dictionaries, t, counts->types.len, 8);

	for (size_t i = 0; !r && i < counts->types.len; i++) {
		struct clr_type *type = &t->types.v[counts->types.v[i]];
		const unsigned char *row = counts->rows + i * counts->row_bytes;
		uint32_t dicts = clr_u16(row, at[CLR_DICT_DICTS]),
			 args = clr_u16(row, at[CLR_DICT_ARGS]);

		if (!clr_batch_ok(&counts->batch, i) || !dicts || !args || args > CLR_TYPE_ARGS_MAX)
			continue;
		r = reserve_args(t, type, args);
		if (!r && type->nargs)
			r = step_add(&dictionaries, counts->types.v[i],
				     type->raw[4] + 8 * (uint64_t)(dicts - 1));
	}
	if (!r)
		r = clr_batch_run(&dictionaries.batch);

	struct clr_batch batch = {.io = t->io};

	for (size_t i = 0; !r && i < dictionaries.types.len; i++) {
		const struct clr_type *type = &t->types.v[dictionaries.types.v[i]];

		r = clr_batch_add(&batch,
				  clr_batch_ok(&dictionaries.batch, i)
					  ? clr_u64(dictionaries.rows, i * 8)
					  : 0,
				  t->args.v + type->first_arg, type->nargs * 8);
	}
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < dictionaries.types.len; i++)
		t->types.v[dictionaries.types.v[i]].whole = clr_batch_ok(&batch, i);
	clr_batch_free(&batch);
	step_free(&dictionaries);
	return r;
}

static int read_arguments(struct clr_types *t, const uint32_t *wave, size_t n)
{
	struct step s;
	int r = step_begin(&s, t, n, 8);

	for (size_t i = 0; !r && i < n; i++) {
		const struct clr_type *type = &t->types.v[wave[i]];

		if (is_generic(type) && !type->whole)
			r = step_add(&s, wave[i], type->raw[4] - t->contract->at[CLR_DICT_BYTES]);
	}
	if (!r)
		r = clr_batch_run(&s.batch);
	if (!r)
		r = read_counts(t, &s);
	step_free(&s);
	return r;
}

/*
 * Reads the rank of an array with several dimensions from its class. The class may be found by the
 * canonical type. Such arrays are rare, so they are read one by one.
 */
static int read_rank(struct clr_types *t, struct clr_type *type)
{
	const uint32_t *at = t->contract->at;
	uint64_t class = type->raw[2];
	unsigned char rank = 0;
	int r = 0;

	if (type->kind != CLR_TYPE_ARRAY || type->rank != UINT32_MAX)
		return 0;
	if (class & CANON_TAG)
		r = t->io->read(t->io->ctx, (class & ~(uint64_t)CANON_TAG) + at[CLR_TYPE_CLASS],
				&class, sizeof(class));
	if (!r)
		r = t->io->read(t->io->ctx, class + at[CLR_ARRAY_RANK], &rank, sizeof(rank));
	if (r && r != -EFAULT)
		return r;
	type->rank = rank;
	if (r || !rank || rank > RANK_MAX)
		type->kind = CLR_TYPE_UNREAD;
	return 0;
}

/* Reads types, and requests the types they consist of. */
static int load_some(struct clr_types *t, const uint32_t *wave, size_t n)
{
	int r = read_rows(t, wave, n);

	if (!r)
		r = read_arguments(t, wave, n);
	for (size_t i = 0; !r && i < n; i++) {
		uint32_t first = t->types.v[wave[i]].first_arg, nargs = t->types.v[wave[i]].nargs;

		r = read_rank(t, &t->types.v[wave[i]]);
		for (uint32_t k = 0; !r && t->types.v[wave[i]].whole && k < nargs; k++)
			r = clr_types_request(t, t->args.v[first + k]);
	}
	return r;
}

int clr_types_load(struct clr_types *t)
{
	int r = 0;

	for (int level = 0; !r && t->wanted.len && level < WAVES_MAX; level++) {
		uint32_t *wave = t->wanted.v;
		size_t n = t->wanted.len;

		t->wanted.v = NULL;
		t->wanted.len = t->wanted.cap = 0;
		for (size_t done = 0; !r && done < n; done += TYPES_AT_ONCE)
			r = load_some(t, wave + done,
				      n - done < TYPES_AT_ONCE ? n - done : TYPES_AT_ONCE);
		free(wave);
	}
	t->wanted.len = 0;
	return r;
}

static int put_name(struct clr_types *t, uint64_t handle, int depth, struct outbuf *out);

static int put_arguments(struct clr_types *t, const struct clr_type *type, int depth,
			 struct outbuf *out)
{
	uint32_t first = type->first_arg, n = type->nargs;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		outbuf_char(out, i ? ',' : '[');
		r = put_name(t, t->args.v[first + i], depth + 1, out);
	}
	outbuf_char(out, ']');
	return r;
}

static void put_rank(struct outbuf *out, uint32_t rank)
{
	outbuf_str(out, rank == 1 ? "[*" : "[");
	for (uint32_t i = 1; i < rank; i++)
		outbuf_char(out, ',');
	outbuf_char(out, ']');
}

static int make_name(struct clr_types *t, const struct clr_type *type, int depth,
		     struct outbuf *out)
{
	const struct clr_metadata *metadata;
	int r = -ENOENT;

	if (!type->whole && type->kind != CLR_TYPE_FUNCTION)
		return -ENOENT;
	switch (type->kind) {
	case CLR_TYPE_DEFINED:
		r = clr_modules_get(t->modules, type->raw[3], CLR_TYPE_DEF, type->rid, &metadata);
		if (!r)
			r = clr_metadata_type_name(metadata, clr_token(CLR_TYPE_DEF, type->rid),
						   out);
		if (!r && type->nargs)
			r = put_arguments(t, type, depth, out);
		break;
	case CLR_TYPE_ARRAY:
		if (type->rank > RANK_MAX) /* the scan ended before the rank was read */
			break;
		r = put_name(t, t->args.v[type->first_arg], depth + 1, out);
		put_rank(out, type->rank);
		break;
	case CLR_TYPE_POINTER:
	case CLR_TYPE_BYREF:
		r = put_name(t, t->args.v[type->first_arg], depth + 1, out);
		outbuf_char(out, type->kind == CLR_TYPE_POINTER ? '*' : '&');
		break;
	case CLR_TYPE_FUNCTION:
		outbuf_str(out, "(fnptr)");
		r = 0;
		break;
	case CLR_TYPE_UNREAD:
		break;
	}
	return r == -EBADMSG || r == -E2BIG ? -ENOENT : r;
}

/* Whether the type has a name, made from modules still present. */
static bool has_name(const struct clr_types *t, const struct clr_type *type)
{
	return type->name && type->named_in == t->modules->replaced;
}

static int keep_name(struct clr_types *t, struct clr_type *type, const char *text, size_t len)
{
	char *name = type->name;

	/* Usually another type's module was replaced, and the name is the same. */
	if (!name || strlen(name) != len || memcmp(name, text, len)) {
		if (t->names.total_bytes > CLR_TYPE_NAMES_MAX)
			return -ENOENT;
		name = arena_strndup(&t->names, text, len);
		if (!name)
			return -ENOMEM;
	}
	type->name = name;
	type->named_in = t->modules->replaced;
	return 0;
}

/* Names are kept, so each type is spelled only once. */
static int put_name(struct clr_types *t, uint64_t handle, int depth, struct outbuf *out)
{
	struct clr_type *type = clr_types_get(t, handle);
	size_t start = out->len;
	int r;

	if (!type || depth > CLR_TYPE_DEPTH_MAX || type->naming)
		return -ENOENT;
	if (has_name(t, type)) {
		outbuf_str(out, type->name);
		return out->error ? out->error : out->len > CLR_TYPE_NAME_MAX ? -ENOENT : 0;
	}
	type->naming = true;
	r = make_name(t, type, depth, out);
	type->naming = false;
	if (!r && out->error)
		r = out->error;
	if (!r && out->len > CLR_TYPE_NAME_MAX)
		r = -ENOENT;
	if (!r)
		r = keep_name(t, type, out->data + start, out->len - start);
	return r;
}

int clr_types_name(struct clr_types *t, uint64_t handle, const char **ret_name)
{
	const struct clr_type *type = clr_types_get(t, handle);
	struct outbuf out = outbuf_to(-1);
	int r = type ? 0 : -ENOENT;

	if (!r && !has_name(t, type))
		r = put_name(t, handle, 0, &out);
	(void)outbuf_close(&out);
	if (!r)
		*ret_name = type->name;
	return r;
}

int clr_types_arguments(struct clr_types *t, uint64_t handle, const char **names, size_t *ret_n)
{
	const struct clr_type *type = clr_types_get(t, handle);
	int r = 0;

	*ret_n = 0;
	if (!type || !is_generic(type))
		return 0;
	if (!type->whole)
		return -ENOENT;
	for (uint32_t i = 0; !r && i < type->nargs; i++)
		r = clr_types_name(t, t->args.v[type->first_arg + i], &names[i]);
	if (!r)
		*ret_n = type->nargs;
	return r;
}

void clr_types_free(struct clr_types *t)
{
	vec_free(&t->types);
	vec_free(&t->args);
	vec_free(&t->wanted);
	hashmap_free(&t->by_handle);
	arena_free(&t->names);
}
