/* Reads the IL offsets of bodies. The runtime stores them packed, as ReadyToRun images do. */
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/jit_code_impl.h"
#include "dotnet/r2r_debug_info.h"

#include <errno.h>

#define PAGE_BYTES 4096
#define FLAG_PATCHPOINT 1
#define PATCHPOINT_BYTES 40
#define PATCHPOINT_LOCALS 16 /* offset of the number of locals */
#define LOCALS_MAX 65536
#define HEAD_BYTES_MAX 11                    /* two numbers of at most 11 nibbles each */
#define BOUNDS_BYTES_MAX ((uint32_t)1 << 20) /* of one method */
#define ROUND_BYTES_MAX ((size_t)64 << 20)   /* of all methods read together */

/*
 * Reads the first bytes of debug information. at_end: retry those whose full read failed, up to the
 * end of their page.
 */
static int read_heads(struct clr_jit_code *j, struct clr_candidate *c, size_t n, bool at_end)
{
	struct clr_batch batch = {.io = &j->io};
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		uint32_t len = sizeof(c[i].debug_head),
			 left = (uint32_t)(PAGE_BYTES - c[i].debug % PAGE_BYTES);

		if (at_end)
			len = left < len ? left : 0;
		r = clr_batch_add(&batch, c[i].debug, c[i].debug_head,
				  c[i].debug && !c[i].debug_len ? len : 0);
	}
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++)
		if (c[i].debug && !c[i].debug_len && clr_batch_ok(&batch, i))
			c[i].debug_len = (uint32_t)batch.pieces.v[i].len;
	clr_batch_free(&batch);
	return r;
}

/*
 * Offset of the head of the bounds in the debug information of .NET 10 (dotnet/runtime,
 * src/coreclr/vm/debuginfostore.cpp). The first byte says which data precedes it. A patchpoint has
 * fixed members and four bytes for each local (src/coreclr/inc/patchpointinfo.h). Inlining data
 * exists only on request, which nobody makes. 0: no known head.
 */
static uint32_t head_offset(const struct clr_candidate *c)
{
	unsigned char flags = c->debug_len ? c->debug_head[0] : 0xff;
	uint32_t locals;

	if (!flags)
		return 1;
	if (flags != FLAG_PATCHPOINT || c->debug_len < 1 + PATCHPOINT_BYTES)
		return 0;
	locals = clr_u32(c->debug_head, 1 + PATCHPOINT_LOCALS);
	return locals <= LOCALS_MAX ? 1 + PATCHPOINT_BYTES + 4 * locals : 0;
}

/* Drops the bytes before the head. Marks it to be read again if too few bytes remain. */
static void move_to_head(struct clr_candidate *c)
{
	uint32_t at = head_offset(c);

	c->debug = at ? c->debug + at : 0;
	c->debug_len = at && at + HEAD_BYTES_MAX <= c->debug_len ? c->debug_len - at : 0;
	if (c->debug_len)
		memmove(c->debug_head, c->debug_head + at, c->debug_len);
}

/* Reads bounds that do not fit into the bytes read with the head. */
static int read_bounds(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
		       struct arena *texts)
{
	struct clr_batch batch = {.io = &j->io};
	size_t all = 0;
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		unsigned char *buf = NULL;
		uint32_t bytes = 0;
		size_t at = 0;

		if (c[i].debug_len &&
		    !r2r_debug_info_read_head(c[i].debug_head, c[i].debug_len, &at, &bytes) &&
		    bytes <= BOUNDS_BYTES_MAX)
			c[i].bounds_bytes = bytes;
		if (c[i].bounds_bytes && at + bytes <= c[i].debug_len) {
			c[i].bounds = c[i].debug_head + at;
		} else if (c[i].bounds_bytes && bytes <= ROUND_BYTES_MAX - all) {
			all += bytes;
			c[i].bounds = buf = arena_alloc_text(texts, bytes);
			r = buf ? 0 : -ENOMEM;
		}
		if (!r)
			r = clr_batch_add(&batch, c[i].debug + at, buf, buf ? bytes : 0);
	}
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++)
		if (c[i].bounds && batch.pieces.v[i].len && !clr_batch_ok(&batch, i))
			c[i].bounds = NULL;
	clr_batch_free(&batch);
	return r;
}

int clr_jit_code_il_read(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
			 struct arena *texts)
{
	uint32_t at = j->contract.at[CLR_CODE_DEBUG_INFO];
	int r = 0;

	for (size_t i = 0; i < n; i++)
		c[i].debug = at == CLR_NONE || c[i].failed || c[i].is_stub ||
					     clr_jit_code_bodies_is_dynamic(j, &c[i])
				     ? 0
				     : clr_u64(c[i].code, at);
	/* The first pass finds the heads, the second reads them. */
	for (int i = 0; i < 2 && !r; i++) {
		r = read_heads(j, c, n, false);
		if (!r)
			r = read_heads(j, c, n, true);
		for (size_t k = 0; k < n && !r && !i; k++)
			move_to_head(&c[k]);
	}
	return r ? r : read_bounds(j, c, n, texts);
}

struct point_sink {
	struct clr_jit_code *j;
	uint32_t code_bytes;
	int error;
};

static bool take_point(void *ctx, uint32_t native, uint32_t il)
{
	struct point_sink *t = ctx;

	if (native > t->code_bytes)
		t->error = -ENOENT; /* another method's bounds, or damaged */
	else if (t->j->points.len >= IL_POINTS_METHOD_MAX)
		t->error = -E2BIG;
	else
		t->error = vec_push(&t->j->points, ((struct il_point){native, il}));
	return !t->error;
}

int clr_jit_code_il_decode(struct clr_jit_code *j, const struct clr_candidate *c,
			   struct clr_jit_code_il *ret_il)
{
	struct point_sink point_sink = {.j = j, .code_bytes = c->bytes};
	const struct clr_metadata *metadata;
	struct clr_jit_code_il il = {0};
	int r = c->bounds ? clr_jit_code_bodies_method(j, c, &il.rid, &il.module) : -ENOENT;

	j->points.len = 0;
	if (!r)
		r = r2r_debug_info_decode_bounds(c->bounds, c->bounds_bytes, R2R_BOUNDS_PACKED,
						 take_point, &point_sink);
	if (!r && point_sink.error != -E2BIG)
		r = point_sink.error;
	if (!r)
		r = clr_modules_get(&j->modules, il.module, CLR_METHOD_DEF, il.rid, &metadata);
	if (!r)
		r = clr_modules_path(&j->modules, il.module, &il.path);
	if (!r) {
		il.mvid = clr_metadata_mvid(metadata);
		il.points = j->points.v;
		il.npoints = j->points.len;
		*ret_il = il;
	}
	if (!r && (!il.mvid || !il.npoints))
		r = -ENOENT;
	return r == -EBADMSG ? -ENOENT : r;
}
