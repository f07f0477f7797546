#include "dotnet/r2r_functions.h"

#include "base/cleanup.h"
#include "base/reader.h"
#include "dotnet/r2r_native.h"
#include "dotnet/r2r_signature.h"

#include <errno.h>
#include <string.h>

#define NO_METHOD (R2R_CODE_IS_COLD - 1)
/*
 * Instances may share signatures. Reject a table whose signatures total more bytes than this many
 * times its size.
 */
#define SIGNATURE_BYTES_FACTOR 16
/*
 * Reject a table with less than one byte of signatures in this many bytes. It is mostly a hole in
 * its file, but would fill memory.
 */
#define TABLE_BYTES_FACTOR 256

#define ENTRY_BYTES 16 /* of a signature that counts as one entry */

/*
 * A runtime function. method: index of its method, with R2R_CODE_IS_COLD for cold code, or
 * NO_METHOD.
 */
struct function {
	uint32_t begin, end, method;
};

struct build {
	const struct pe *pe;
	struct r2r_functions f;
	struct function *functions;
	uint32_t n;
	/* Entry points read so far. Limits images whose assemblies all claim the same table. */
	uint32_t entries, entry_bytes;
	uint64_t taken; /* entries of all tables */
	struct parse_error *err;
};

static int fail_damaged(const struct build *b, const char *what, uint32_t rva)
{
	return parse_fail(b->err, -EBADMSG, what, rva);
}

/* Takes entries from those that an image may have. */
static int take_entries(struct build *b, uint64_t n, uint32_t rva)
{
	if (n > R2R_FUNCTIONS_ENTRIES_MAX - b->taken)
		return parse_fail(b->err, -E2BIG, "too many entries in a ReadyToRun image", rva);
	b->taken += n;
	return 0;
}

static uint32_t load_u32(const unsigned char *p)
{
	uint32_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

/*
 * Reads function lengths on arm64, whose table has no ends. The unwind information holds the length
 * in the lowest 18 bits of its first word, in units of 4 bytes (Microsoft, "ARM64 exception
 * handling", .xdata records). All unwind information is contiguous.
 */
static int read_lengths(struct build *b)
{
	AUTO_FREE unsigned char *data = NULL;
	uint32_t first = UINT32_MAX, last = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		first = b->functions[i].end < first ? b->functions[i].end : first;
		last = b->functions[i].end > last ? b->functions[i].end : last;
	}
	if (!b->n)
		return 0;
	if (last - first > UINT32_MAX - 4)
		return fail_damaged(b, "the unwind information is out of range", last);
	struct pe_range range = {first, last - first + 4};
	int error = pe_read(b->pe, range, R2R_FUNCTIONS_TABLE_BYTES_MAX, &data, b->err);

	for (uint32_t i = 0; i < b->n && !error; i++) {
		struct function *f = &b->functions[i];

		f->end = f->begin + (load_u32(data + (f->end - first)) & 0x3ffff) * 4;
	}
	return error;
}

static int read_runtime_functions(struct build *b, struct pe_range range)
{
	uint32_t entry_bytes = b->pe->machine == PE_X64 ? 12 : 8;
	AUTO_FREE unsigned char *data = NULL;
	int error = pe_read(b->pe, range, R2R_FUNCTIONS_TABLE_BYTES_MAX, &data, b->err);

	if (error)
		return error;
	b->n = range.bytes / entry_bytes;
	error = take_entries(b, b->n, range.rva);
	if (error)
		return error;
	b->functions = calloc((size_t)b->n + 1, sizeof(*b->functions));
	if (!b->functions)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n; i++)
		b->functions[i] =
			(struct function){load_u32(data + (size_t)i * entry_bytes),
					  load_u32(data + (size_t)i * entry_bytes + 4), NO_METHOD};
	/* In some versions the last entries are only an end mark. */
	while (b->n && b->functions[b->n - 1].begin == UINT32_MAX)
		b->n--;
	return b->pe->machine == PE_X64 ? 0 : read_lengths(b);
}

/* Assigns a runtime function to a method. The first assignment wins. */
static int add_method(struct build *b, uint32_t function, uint32_t assembly, uint32_t what)
{
	if (function >= b->n)
		return fail_damaged(b, "a method begins outside of the runtime functions", what);
	if (b->functions[function].method != NO_METHOD)
		return 0;
	struct r2r_method method = {
		.assembly = assembly, .rid = what, .begin = b->functions[function].begin};

	if (b->f.methods.len == R2R_FUNCTIONS_METHODS_MAX)
		return parse_fail(b->err, -E2BIG, "too many ReadyToRun methods", 0);
	b->functions[function].method = (uint32_t)b->f.methods.len;
	return vec_push(&b->f.methods, method) ? -ENOMEM : 0;
}

static int read_methods(struct build *b, struct pe_range range, uint32_t assembly)
{
	AUTO_FREE unsigned char *data = NULL;
	struct r2r_array array;
	struct reader element;
	int error;

	if (!range.bytes)
		return 0;
	error = pe_read(b->pe, range, R2R_FUNCTIONS_TABLE_BYTES_MAX - b->entry_bytes, &data,
			b->err);
	if (!error && r2r_array_open(data, range.bytes, &array))
		return fail_damaged(b, "the method entry points cannot be read", range.rva);
	if (!error && array.n > R2R_FUNCTIONS_METHODS_MAX - b->entries)
		return parse_fail(b->err, -E2BIG, "too many ReadyToRun methods", range.rva);
	if (!error)
		error = take_entries(b, array.n, range.rva);
	if (!error) {
		b->entry_bytes += range.bytes;
		b->entries += array.n;
	}
	for (uint32_t i = 0; !error && i < array.n; i++) {
		int r = r2r_array_get(&array, i, &element);

		if (r == -ENOENT)
			continue;
		uint32_t function = r ? 0 : r2r_native_entry_point(&element);

		if (r || element.failed)
			return fail_damaged(b, "the method entry points cannot be read", range.rva);
		error = add_method(b, function, assembly, i + 1);
	}
	return error;
}

static int read_instances(struct build *b, struct pe_range range)
{
	uint64_t walked = 0, walked_max = (uint64_t)range.bytes * SIGNATURE_BYTES_FACTOR;
	struct r2r_method_signature signature;
	struct r2r_hashtable table;
	struct reader entry;
	int error, r = 0;

	if (!range.bytes)
		return 0;
	error = pe_read(b->pe, range, R2R_FUNCTIONS_TABLE_BYTES_MAX, &b->f.instances, b->err);
	if (error)
		return error;
	b->f.instances_bytes = range.bytes;
	if (r2r_hashtable_open(b->f.instances, range.bytes, &table))
		return fail_damaged(b, "the instance entry points cannot be read", range.rva);
	while (!error && !(r = r2r_hashtable_next(&table, &entry))) {
		uint32_t at = (uint32_t)entry.pos;

		r2r_signature_read_method(&entry, &signature);
		walked += entry.pos - at;
		uint32_t function = r2r_native_entry_point(&entry);

		if (entry.failed || walked > walked_max)
			return fail_damaged(b, "the instance entry points cannot be read",
					    range.rva + at);
		/* A long signature counts as many entries. */
		error = take_entries(b, 1 + (entry.pos - at) / ENTRY_BYTES, range.rva + at);
		if (!error)
			error = add_method(b, function, R2R_FUNCTIONS_INSTANCE, at);
	}
	if (!error && r != -ENOENT)
		return fail_damaged(b, "the instance entry points cannot be read", range.rva);
	if (!error && range.bytes / TABLE_BYTES_FACTOR > walked + TABLE_BYTES_FACTOR)
		return fail_damaged(b, "the table of instance entry points is mostly a hole",
				    range.rva);
	/* Free a table without entries: it is never read. */
	if (!walked) {
		free(b->f.instances);
		b->f.instances = NULL;
		b->f.instances_bytes = 0;
	}
	return error;
}

/*
 * Reads the map of cold code: pairs of a method's first cold runtime function and its hot one, both
 * ascending.
 */
static int read_cold(struct build *b, struct pe_range range, uint32_t *ret_first_cold)
{
	AUTO_FREE unsigned char *data = NULL;
	int error = pe_read(b->pe, range, R2R_FUNCTIONS_TABLE_BYTES_MAX, &data, b->err);

	*ret_first_cold = b->n;
	for (uint32_t i = 0; !error && i < range.bytes / 8; i++) {
		uint32_t cold = load_u32(data + (size_t)i * 8),
			 hot = load_u32(data + (size_t)i * 8 + 4);

		if (cold >= b->n || hot >= cold || (i && b->functions[cold].method != NO_METHOD))
			return fail_damaged(b, "the map of cold code cannot be read", range.rva);
		if (!i)
			*ret_first_cold = cold;
		if (b->functions[hot].method < R2R_CODE_IS_COLD &&
		    b->functions[hot].method != NO_METHOD)
			b->functions[cold].method = b->functions[hot].method | R2R_CODE_IS_COLD;
	}
	return error;
}

static int compare_code(const void *x, const void *y)
{
	const struct r2r_code *a = x, *b = y;

	return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Sorts the code. On an overlap the range that begins later wins. */
static void sort_code(struct r2r_functions *f)
{
	bool sorted = true;
	size_t n = 0;

	for (size_t i = 1; i < f->code.len; i++)
		sorted &= f->code.v[i - 1].begin <= f->code.v[i].begin;
	if (!sorted)
		qsort(f->code.v, f->code.len, sizeof(*f->code.v), compare_code);
	for (size_t i = 0; i < f->code.len; i++) {
		struct r2r_code c = f->code.v[i];

		if (i + 1 < f->code.len && c.end > f->code.v[i + 1].begin)
			c.end = f->code.v[i + 1].begin;
		if (c.end > c.begin)
			f->code.v[n++] = c;
	}
	f->code.len = n;
}

/* Joins adjacent runtime functions of one method into one range of code. */
static int make_code(struct build *b, uint32_t first_cold)
{
	uint32_t method = NO_METHOD;

	if (vec_reserve(&b->f.code, (size_t)b->n + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n; i++) {
		const struct function *f = &b->functions[i];
		struct r2r_code *last = b->f.code.len ? &b->f.code.v[b->f.code.len - 1] : NULL;

		if (f->method != NO_METHOD)
			method = f->method;
		else if (i == first_cold)
			method = NO_METHOD;
		if (f->end <= f->begin || method == NO_METHOD)
			continue;
		if (last && last->method == method && last->end == f->begin)
			last->end = f->end;
		else
			b->f.code.v[b->f.code.len++] = (struct r2r_code){f->begin, f->end, method};
	}
	return 0;
}

static int add_thunks(struct build *b, struct pe_range range)
{
	struct r2r_code code = {range.rva, range.rva + range.bytes, R2R_CODE_IS_THUNK};

	if (!range.bytes || pe_range_at(b->pe, range.rva, range.bytes).bytes != range.bytes)
		return 0;
	return vec_push(&b->f.code, code) ? -ENOMEM : 0;
}

static int build(struct build *b, const struct r2r_header *h,
		 const struct r2r_component *components, size_t ncomponents)
{
	struct pe_range functions = r2r_header_section(h, R2R_RUNTIME_FUNCTIONS);
	uint32_t first_cold;
	int error;

	if (!functions.bytes)
		return fail_damaged(b, "the ReadyToRun image has no code", 0);
	error = read_runtime_functions(b, functions);
	if (!error)
		error = read_methods(b, r2r_header_section(h, R2R_METHOD_ENTRY_POINTS), 0);
	for (size_t i = 0; !error && i < ncomponents; i++)
		error = read_methods(b, components[i].methods, (uint32_t)i);
	if (!error)
		error = read_instances(b, r2r_header_section(h, R2R_INSTANCE_ENTRY_POINTS));
	if (!error)
		error = read_cold(b, r2r_header_section(h, R2R_HOT_COLD_MAP), &first_cold);
	if (!error)
		error = make_code(b, first_cold);
	if (!error)
		error = add_thunks(b, r2r_header_section(h, R2R_METHOD_CALL_THUNKS));
	if (!error)
		sort_code(&b->f);
	return error;
}

int r2r_functions_read(const struct pe *pe, const struct r2r_header *h,
		       const struct r2r_component *components, size_t ncomponents,
		       struct r2r_functions *ret_functions, uint64_t *ret_entries,
		       struct parse_error *err)
{
	struct build b = {.pe = pe, .err = err};
	int error = build(&b, h, components, ncomponents);

	*ret_entries = b.taken;
	free(b.functions);
	if (error)
		r2r_functions_free(&b.f);
	else
		*ret_functions = b.f;
	return error;
}

void r2r_functions_free(struct r2r_functions *f)
{
	vec_free(&f->code);
	vec_free(&f->methods);
	free(f->instances);
	*f = (struct r2r_functions){0};
}

const struct r2r_code *r2r_functions_find(const struct r2r_functions *f, uint32_t rva)
{
	size_t low = 0, high = f->code.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->code.v[mid].begin <= rva)
			low = mid + 1;
		else
			high = mid;
	}
	return low && rva < f->code.v[low - 1].end ? &f->code.v[low - 1] : NULL;
}
