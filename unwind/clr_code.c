#include "unwind/clr_code.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/code_ranges.h"
#include "unwind/clr_code_impl.h"

#include <errno.h>

/* Of MethodDesc.Flags. */
#define CLASS_MASK 7u
#define CLASS_DYNAMIC 7u
/* The largest RealCodeHeader, with one runtime function. */
#define HEADER_BYTES 80
#define DESC_BYTES 32

/* A range of the runtime's map. A code heap has a nibble map. */
struct known_range {
	struct clr_code_range range;
	uint64_t base, map; /* see clr_code_find_start; map 0: none */
};

struct clr_code_reader {
	struct clr_io io;
	struct clr_contract contract;
	VEC(struct known_range) ranges; /* by start */
	/*
	 * The last read of ranges began and ended then, CLOCK_MONOTONIC; 0: never. begun_ns is 0 if
	 * some ranges could not be read.
	 */
	uint64_t begun_ns, read_ns;
	size_t room; /* bytes that the current call may still take */
};

/* The lookup of one address. */
struct lookup {
	uint64_t addr, seen_ns;
	int error; /* 0: no error so far */
	bool done; /* no method: nothing more to read for it */
	const struct known_range *range;
	uint64_t start; /* of the method */
	uint64_t header;
	unsigned char head[HEADER_BYTES], head_again[HEADER_BYTES];
	uint64_t header_again;
	unsigned char desc[DESC_BYTES];
	unsigned char *parts; /* runtime functions, if there are several */
	uint64_t begin, end, info_addr;
	unsigned char info[UNWIND_INFO_BYTES_MAX];
	unsigned char *code;
	struct clr_code_window window; /* if addr is in no method */
};

int clr_code_reader_new(const struct clr_io *io, const struct clr_contract *contract,
			struct clr_code_reader **ret)
{
	struct clr_code_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->io = *io;
	r->contract = *contract;
	/* On x64 the offset is 8 in all versions. */
	if (r->contract.at[CLR_RUNTIME_FUNCTION_UNWIND] == CLR_NONE)
		r->contract.at[CLR_RUNTIME_FUNCTION_UNWIND] = 8;
	*ret = r;
	return 0;
}

void clr_code_reader_free(struct clr_code_reader *r)
{
	if (!r)
		return;
	vec_free(&r->ranges);
	free(r);
}

void clr_code_free(struct clr_code *code)
{
	code_rules_free(&code->rules);
}

int clr_code_rule(const struct clr_code *code, uint64_t addr, struct unwind_rule *ret_rule)
{
	const struct unwind_rule *rule;

	if (addr - code->start >= code->end - code->start || code->kind == CLR_CODE_OF_IMAGE)
		return -ENOENT;
	rule = code_rules_at(&code->rules, addr - code->start);
	*ret_rule = rule ? *rule : (struct unwind_rule){.kind = UNWIND_NONE};
	return 0;
}

int clr_code_step(const struct clr_code *code, uint64_t addr, struct unwind_regs *regs,
		  const struct unwind_memory *mem)
{
	if (addr - code->start >= code->end - code->start || code->kind == CLR_CODE_OF_IMAGE)
		return -ENOENT;
	return code_rules_step(&code->rules, addr - code->start, regs, mem);
}

static int compare_ranges(const void *x, const void *y)
{
	const struct known_range *a = x, *b = y;

	return (a->range.start > b->range.start) - (a->range.start < b->range.start);
}

/* Reads the places of the nibble maps of all code heaps. */
static int read_heaps(struct clr_code_reader *r)
{
	const uint32_t *at = r->contract.at;
	struct clr_batch batch = {.io = &r->io};
	int error = 0;

	for (size_t i = 0; !error && i < r->ranges.len; i++) {
		struct known_range *k = &r->ranges.v[i];
		uint32_t len = k->range.flags & CLR_RANGE_CODE_HEAP && !k->range.r2r_module ? 8 : 0;

		error = clr_batch_add(&batch, k->range.heap_list + at[CLR_JIT_CODE_MAP_BASE],
				      &k->base, len);
		if (!error)
			error = clr_batch_add(&batch, k->range.heap_list + at[CLR_JIT_CODE_MAP],
					      &k->map, len);
	}
	if (!error)
		error = clr_batch_run(&batch);
	for (size_t i = 0; !error && i < r->ranges.len; i++)
		if (!clr_batch_ok(&batch, 2 * i) || !clr_batch_ok(&batch, 2 * i + 1))
			r->ranges.v[i].map = 0;
	clr_batch_free(&batch);
	return error;
}

static int refresh(struct clr_code_reader *r)
{
	uint64_t begun_ns = clock_monotonic_ns();
	struct clr_code_ranges ranges;
	int error = clr_code_ranges_read(&r->io, &r->contract, &ranges);

	r->begun_ns = ranges.unread ? 0 : begun_ns;
	r->ranges.len = 0;
	if (!error)
		error = vec_reserve(&r->ranges, ranges.ranges.len);
	for (size_t i = 0; !error && i < ranges.ranges.len; i++)
		r->ranges.v[r->ranges.len++] = (struct known_range){.range = ranges.ranges.v[i]};
	clr_code_ranges_free(&ranges);
	if (!error && r->ranges.len)
		qsort(r->ranges.v, r->ranges.len, sizeof(*r->ranges.v), compare_ranges);
	if (!error)
		error = read_heaps(r);
	if (error)
		r->ranges.len = 0;
	r->read_ns = clock_monotonic_ns();
	return error;
}

static const struct known_range *range_of(const struct clr_code_reader *r, uint64_t addr)
{
	size_t low = 0, high = r->ranges.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->ranges.v[mid].range.start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr < r->ranges.v[low - 1].range.end ? &r->ranges.v[low - 1] : NULL;
}

static int find_ranges(struct clr_code_reader *r, struct lookup *lookups, size_t n)
{
	bool missing = false;
	int error = 0;

	for (size_t i = 0; i < n; i++)
		missing |= !range_of(r, lookups[i].addr);
	bool may = !r->read_ns || clock_monotonic_ns() - r->read_ns >= CLR_CODE_REFRESH_NS;

	if (missing && may)
		error = refresh(r);
	for (size_t i = 0; !error && i < n; i++)
		lookups[i].range = range_of(r, lookups[i].addr);
	return error;
}

/*
 * A round of reads, for all lookups that are not finished. `read` returns the number of bytes to
 * read, 0: none. `got` checks the result.
 */
struct round {
	uint32_t (*read)(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			 void **ret_buf);
	int (*got)(struct clr_code_reader *r, struct lookup *i);
};

static int run_round(struct clr_code_reader *r, const struct round *round, struct lookup *lookups,
		     size_t n)
{
	struct clr_batch batch = {.io = &r->io};
	int error = 0;

	for (size_t i = 0; !error && i < n; i++) {
		bool on = !lookups[i].error && !lookups[i].done;
		uint64_t addr = 0;
		void *buf = NULL;
		uint32_t len = on ? round->read(r, &lookups[i], &addr, &buf) : 0;

		error = lookups[i].error == -ENOMEM
				? -ENOMEM
				: clr_batch_add(&batch, addr, buf, lookups[i].error ? 0 : len);
	}
	if (!error)
		error = clr_batch_run(&batch);
	for (size_t i = 0; !error && i < n; i++) {
		if (lookups[i].error || lookups[i].done)
			continue;
		lookups[i].error = clr_batch_ok(&batch, i) ? round->got(r, &lookups[i]) : -EAGAIN;
		error = lookups[i].error == -ENOMEM ? -ENOMEM : 0;
	}
	clr_batch_free(&batch);
	return error;
}

static uint32_t header_read(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			    void **ret_buf)
{
	(void)r;
	*ret_addr = i->start - 8;
	*ret_buf = &i->header;
	return sizeof(i->header);
}

static int header_got(struct clr_code_reader *r, struct lookup *i)
{
	i->done = i->header <= r->contract.stub_code_block_last; /* true: a block of stubs */
	return 0;
}

static uint32_t head_bytes(const struct clr_code_reader *r)
{
	return r->contract.at[CLR_CODE_UNWIND] + r->contract.at[CLR_RUNTIME_FUNCTION_BYTES];
}

static uint32_t head_read(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			  void **ret_buf)
{
	*ret_addr = i->header;
	*ret_buf = i->head;
	return head_bytes(r);
}

static uint32_t parts_of(const struct clr_code_reader *r, const struct lookup *i)
{
	return clr_u32(i->head, r->contract.at[CLR_CODE_UNWINDS]);
}

/* Finds the part that has the address in a method's runtime functions. */
static int take_part(const struct clr_code_reader *r, struct lookup *i, const unsigned char *parts,
		     uint32_t n)
{
	const uint32_t *at = r->contract.at;
	uint64_t section = i->range->range.start;

	if (section + clr_u32(parts, at[CLR_RUNTIME_FUNCTION_BEGIN]) != i->start)
		return -EAGAIN;
	for (uint32_t k = 0; k < n; k++) {
		const unsigned char *part = parts + (size_t)k * at[CLR_RUNTIME_FUNCTION_BYTES];

		i->begin = section + clr_u32(part, at[CLR_RUNTIME_FUNCTION_BEGIN]);
		i->end = section + clr_u32(part, at[CLR_RUNTIME_FUNCTION_END]);
		i->info_addr = section + clr_u32(part, at[CLR_RUNTIME_FUNCTION_UNWIND]);
		if (i->addr >= i->begin && i->addr < i->end)
			return i->end - i->begin > CODE_RULES_BYTES_MAX ? -E2BIG : 0;
	}
	return -ENOENT; /* behind the code: constants, or nothing */
}

/* Returns 0; -EAGAIN: this call takes too much, so leave it to a later one; -ENOMEM. */
static int take_room(struct clr_code_reader *r, size_t bytes, unsigned char **ret_buf)
{
	if (bytes > r->room)
		return -EAGAIN;
	r->room -= bytes;
	*ret_buf = malloc(bytes);
	return *ret_buf ? 0 : -ENOMEM;
}

static int head_got(struct clr_code_reader *r, struct lookup *i)
{
	uint32_t n = parts_of(r, i);

	if (!n)
		return -EAGAIN;
	if (n == 1)
		return take_part(r, i, i->head + r->contract.at[CLR_CODE_UNWIND], 1);
	if (n > CLR_CODE_PARTS_MAX)
		return -EBADMSG;
	return take_room(r, (size_t)n * r->contract.at[CLR_RUNTIME_FUNCTION_BYTES], &i->parts);
}

static uint32_t parts_read(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			   void **ret_buf)
{
	*ret_addr = i->header + r->contract.at[CLR_CODE_UNWIND];
	*ret_buf = i->parts;
	return i->parts ? parts_of(r, i) * r->contract.at[CLR_RUNTIME_FUNCTION_BYTES] : 0;
}

static int parts_got(struct clr_code_reader *r, struct lookup *i)
{
	return i->parts ? take_part(r, i, i->parts, parts_of(r, i)) : 0;
}

static uint32_t info_head_read(const struct clr_code_reader *r, struct lookup *i,
			       uint64_t *ret_addr, void **ret_buf)
{
	(void)r;
	*ret_addr = i->info_addr;
	*ret_buf = i->info;
	return 4;
}

static int info_head_got(struct clr_code_reader *r, struct lookup *i)
{
	return take_room(r, (size_t)(i->end - i->begin), &i->code);
}

static uint32_t info_codes_read(const struct clr_code_reader *r, struct lookup *i,
				uint64_t *ret_addr, void **ret_buf)
{
	(void)r;
	*ret_addr = i->info_addr + 4;
	*ret_buf = i->info + 4;
	return 2u * i->info[2];
}

static uint32_t code_read(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			  void **ret_buf)
{
	(void)r;
	*ret_addr = i->begin;
	*ret_buf = i->code;
	return (uint32_t)(i->end - i->begin);
}

static uint32_t desc_read(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			  void **ret_buf)
{
	*ret_addr = clr_u64(i->head, r->contract.at[CLR_CODE_METHOD]);
	*ret_buf = i->desc;
	return r->contract.at[CLR_METHOD_BYTES];
}

static uint32_t header_again(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			     void **ret_buf)
{
	(void)header_read(r, i, ret_addr, ret_buf);
	*ret_buf = &i->header_again;
	return sizeof(i->header_again);
}

static uint32_t head_again(const struct clr_code_reader *r, struct lookup *i, uint64_t *ret_addr,
			   void **ret_buf)
{
	*ret_addr = i->header;
	*ret_buf = i->head_again;
	return head_bytes(r);
}

static int nothing_got(struct clr_code_reader *r, struct lookup *i)
{
	(void)r, (void)i;
	return 0;
}

/* Checks that the header has not changed; else parts of it may belong to another method. */
static int again_got(struct clr_code_reader *r, struct lookup *i)
{
	return i->header != i->header_again || memcmp(i->head, i->head_again, head_bytes(r)) != 0
		       ? -EAGAIN
		       : 0;
}

/* Reads methods from their start to their code. */
static int read_methods(struct clr_code_reader *r, struct lookup *lookups, size_t n)
{
	static const struct round rounds[] = {
		{header_read, header_got},      {head_read, head_got},
		{parts_read, parts_got},        {info_head_read, info_head_got},
		{info_codes_read, nothing_got}, {code_read, nothing_got},
		{desc_read, nothing_got},       {header_again, nothing_got},
		{head_again, again_got},
	};
	int error = 0;

	for (size_t k = 0; !error && k < sizeof(rounds) / sizeof(*rounds); k++)
		error = run_round(r, &rounds[k], lookups, n);
	return error;
}

static int make_method(struct clr_code_reader *r, const struct lookup *i, struct clr_code *code)
{
	struct unwind_info info = {.nops = 0};
	uint32_t chain = 0;
	int error = unwind_info_add(&info, i->info, 4 + 2u * i->info[2], &chain);

	if (!error && chain) /* the JIT compiler makes no chained infos */
		error = -ENOTSUP;
	if (!error && !r->room)
		error = -EAGAIN;
	if (!error)
		error = code_rules_make(&info, i->code, (size_t)(i->end - i->begin), NULL,
					&code->rules);
	if (!error) {
		size_t bytes = code_rules_bytes(&code->rules);

		r->room -= bytes < r->room ? bytes : r->room;
	}
	code->start = i->begin;
	code->end = i->end;
	code->method = i->start;
	code->kind = CLR_CODE_OF_METHOD;
	code->movable =
		i->range->range.flags & CLR_RANGE_COLLECTIBLE ||
		(clr_u16(i->desc, r->contract.at[CLR_METHOD_FLAGS]) & CLASS_MASK) == CLASS_DYNAMIC;
	return error;
}

/* Whether the address is in no method that a nibble map has. */
static bool is_stub(const struct lookup *i)
{
	return !i->error && (i->done || !i->range || !i->range->map) &&
	       !(i->range && i->range->range.r2r_module);
}

static int read_starts(struct clr_code_reader *r, struct lookup *lookups, size_t n)
{
	int error = 0;

	for (size_t i = 0; !error && i < n; i++) {
		struct lookup *lookup = &lookups[i];
		const struct known_range *k = lookup->range;

		if (!k || k->range.r2r_module || !k->map) {
			lookup->done = true;
			continue;
		}
		lookup->error =
			clr_code_find_start(&r->io, k->base, k->map, lookup->addr, &lookup->start);
		if (lookup->error == -ENOENT) { /* before all code, or far behind it */
			lookup->error = 0;
			lookup->done = true;
		} else if (lookup->error == -EFAULT) {
			lookup->error = -EAGAIN;
		} else if (lookup->error && lookup->error != -EAGAIN) {
			error = lookup->error;
		}
	}
	return error;
}

static int read_windows(struct clr_code_reader *r, struct lookup *lookups, size_t n)
{
	struct clr_batch batch = {.io = &r->io};
	int error = 0;

	for (size_t i = 0; !error && i < n; i++)
		error = clr_code_window_add(&lookups[i].window, lookups[i].addr,
					    is_stub(&lookups[i]), &batch);
	if (!error)
		error = clr_batch_run(&batch);
	for (size_t i = 0, piece = 0; !error && i < n; i++)
		clr_code_window_got(&lookups[i].window, &batch, &piece);
	clr_batch_free(&batch);
	return error;
}

static int make(struct clr_code_reader *r, const struct lookup *i, struct clr_code *code)
{
	*code = (struct clr_code){.kind = CLR_CODE_OF_IMAGE};
	if (i->error)
		return i->error;
	if (i->range && i->range->range.r2r_module) {
		code->start = i->range->range.start;
		code->end = i->range->range.end;
		return 0;
	}
	if (!is_stub(i))
		return make_method(r, i, code);
	code->kind = CLR_CODE_OF_STUB;
	code->movable = true;
	int error = clr_code_stub(&i->window, i->addr, &code->start, &code->end, &code->rules);

	/* A code heap may be newer than the ranges. */
	return error == -ENOENT && !i->range && i->seen_ns > r->begun_ns ? -EAGAIN : error;
}

int clr_code_read(struct clr_code_reader *r, const struct clr_code_query *queries, size_t n,
		  struct clr_code *code, int *errors)
{
	AUTO_FREE struct lookup *lookups = calloc(n + 1, sizeof(*lookups));
	int error = lookups ? 0 : -ENOMEM;
	size_t made = 0;

	r->room = CLR_CODE_BYTES_MAX;
	for (size_t i = 0; !error && i < n; i++) {
		lookups[i].addr = queries[i].addr;
		lookups[i].seen_ns = queries[i].seen_ns;
	}
	if (!error)
		error = find_ranges(r, lookups, n);
	if (!error)
		error = read_starts(r, lookups, n);
	if (!error)
		error = read_methods(r, lookups, n);
	if (!error)
		error = read_windows(r, lookups, n);
	for (; !error && made < n; made++) {
		errors[made] = make(r, &lookups[made], &code[made]);
		error = errors[made] == -ENOMEM ? -ENOMEM : 0;
	}
	for (size_t i = 0; error && i < made; i++)
		clr_code_free(&code[i]);
	for (size_t i = 0; lookups && i < n; i++) {
		free(lookups[i].parts);
		free(lookups[i].code);
	}
	return error;
}
