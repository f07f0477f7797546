#include "unwind/r2r_unwind.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/r2r_header.h"
#include "elf/budget.h"
#include "unwind/x86_64_code.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define RUNTIME_FUNCTION_BYTES 12
#define THUNKS UINT32_MAX     /* in place of a function's index */
#define NONE (UINT32_MAX - 1) /* likewise */

struct runtime_function {
	uint32_t begin, end, unwind; /* rva */
};
_Static_assert(sizeof(struct runtime_function) == RUNTIME_FUNCTION_BYTES, "as in the image");

struct r2r_unwind {
	struct pe pe;                       /* owns its descriptor */
	struct runtime_function *functions; /* by begin */
	uint32_t nfunctions;
	struct pe_range thunks;
	VEC(struct code_rules) rules;
	struct hashmap by_key; /* index of a function or THUNKS -> index into rules */
	size_t rules_bytes;
};

void r2r_unwind_forget(struct r2r_unwind *u)
{
	elf_budget_give(ELF_BUDGET_RULES, u->rules_bytes);
	for (size_t i = 0; i < u->rules.len; i++)
		code_rules_free(&u->rules.v[i]);
	vec_free(&u->rules);
	hashmap_free(&u->by_key);
	u->by_key = (struct hashmap){0};
	u->rules_bytes = 0;
}

void r2r_unwind_free(struct r2r_unwind *u)
{
	if (!u)
		return;
	r2r_unwind_forget(u);
	free(u->functions);
	if (u->pe.file.fd >= 0)
		close(u->pe.file.fd);
	free(u);
}

static int read_functions(struct r2r_unwind *u, const struct r2r_header *h, struct parse_error *err)
{
	struct pe_range range = r2r_header_section(h, R2R_RUNTIME_FUNCTIONS);
	unsigned char *data = NULL;
	int r;

	if (!range.bytes)
		return parse_fail(err, -EBADMSG, "the ReadyToRun image has no code", 0);
	r = pe_read(&u->pe, range, R2R_UNWIND_TABLE_BYTES_MAX, &data, err);
	if (r)
		return r;
	u->functions = (struct runtime_function *)(void *)data; /* aligned by malloc */
	u->nfunctions = range.bytes / RUNTIME_FUNCTION_BYTES;
	/* In some versions an end mark is the last entry. */
	while (u->nfunctions && u->functions[u->nfunctions - 1].begin == UINT32_MAX)
		u->nfunctions--;
	for (uint32_t i = 1; i < u->nfunctions; i++)
		if (u->functions[i - 1].begin > u->functions[i].begin)
			return parse_fail(err, -EBADMSG, "the runtime functions are not sorted", i);
	return 0;
}

int r2r_unwind_open(const struct pe_file *file, struct r2r_unwind **ret, struct parse_error *err)
{
	struct r2r_unwind *u = calloc(1, sizeof(*u));
	struct r2r_header h;
	int r;

	if (!u)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	u->pe.file.fd = -1;
	r = pe_open(file, &u->pe, err);
	u->pe.file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (!r && u->pe.file.fd < 0)
		r = parse_fail(err, -errno, "cannot duplicate a descriptor", 0);
	if (!r)
		r = r2r_header_read(&u->pe, &h, err);
	if (!r && u->pe.machine != PE_X64)
		r = parse_fail(err, -ENOTSUP, "the ReadyToRun image is for another machine", 0);
	if (!r)
		r = read_functions(u, &h, err);
	if (r) {
		r2r_unwind_free(u);
		return r;
	}
	u->thunks = r2r_header_section(&h, R2R_METHOD_CALL_THUNKS);
	*ret = u;
	return 0;
}

/* Reads up to max bytes of the image at rva. */
static int read_some(const struct r2r_unwind *u, uint32_t rva, uint32_t max, unsigned char *buf,
		     size_t *ret_len)
{
	struct pe_range range = pe_range_at(&u->pe, rva, max);
	uint64_t at;

	if (!range.bytes || pe_file_off(&u->pe, rva, &at))
		return -EBADMSG;
	*ret_len = range.bytes;
	int r = file_pread_all(u->pe.file.fd, buf, range.bytes, u->pe.file.offset + at);

	return r == -ENODATA ? -EBADMSG : r;
}

static int read_info(const struct r2r_unwind *u, uint32_t rva, struct unwind_info *info)
{
	unsigned char data[UNWIND_INFO_BYTES_MAX];
	size_t len = 0;
	int r = 0;

	while (!r && rva) {
		r = read_some(u, rva, sizeof(data), data, &len);
		if (!r)
			r = unwind_info_add(info, data, len, &rva);
	}
	return r;
}

static int make_function(const struct r2r_unwind *u, const struct runtime_function *f,
			 uint64_t *steps_left, struct code_rules *ret_rules)
{
	struct unwind_info info = {.nops = 0};
	AUTO_FREE unsigned char *code = NULL;
	uint32_t bytes = f->end - f->begin;
	int r = unwind_take_steps(steps_left, bytes / 4) ? 0 : -E2BIG; /* to read them */

	if (!r)
		r = pe_read(&u->pe, (struct pe_range){f->begin, bytes}, CODE_RULES_BYTES_MAX, &code,
			    NULL);
	if (!r)
		r = read_info(u, f->unwind, &info);
	return r ? r : code_rules_make(&info, code, bytes, steps_left, ret_rules);
}

/* They take 113 bytes in assemblies of .NET 10. Following them costs about 4 decodings a byte. */
static int make_thunks(const struct r2r_unwind *u, uint64_t *steps_left,
		       struct code_rules *ret_rules)
{
	AUTO_FREE unsigned char *code = NULL;

	if (!unwind_take_steps(steps_left, (uint64_t)u->thunks.bytes * 4 * UNWIND_STEPS_DECODE))
		return -E2BIG;
	int r = pe_read(&u->pe, u->thunks, X86_64_CODE_BYTES_MAX, &code, NULL);

	return r ? r : code_rules_follow(code, u->thunks.bytes, true, ret_rules);
}

/* The index of the function that has rva, or NONE. */
static uint32_t function_at(const struct r2r_unwind *u, uint32_t rva)
{
	uint32_t low = 0, high = u->nfunctions;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (u->functions[mid].begin <= rva)
			low = mid + 1;
		else
			high = mid;
	}
	return low && rva < u->functions[low - 1].end ? low - 1 : NONE;
}

/*
 * Keeps empty rules of a function whose rules cannot be made, so that it is not tried again. But if
 * others took most of the stack's steps, the next stack tries again.
 */
static int rules_of(struct r2r_unwind *u, uint32_t key, uint64_t *steps_left,
		    const struct code_rules **ret_rules)
{
	const uint32_t *known = hashmap_get(&u->by_key, key);
	struct code_rules rules = {.rows = NULL};
	bool others = steps_left && *steps_left < UNWIND_STEPS_MAX / 2;
	int r;

	if (known) {
		*ret_rules = &u->rules.v[*known];
		return (*ret_rules)->nrows ? 0 : -EBADMSG;
	}
	r = key == THUNKS ? make_thunks(u, steps_left, &rules)
			  : make_function(u, &u->functions[key], steps_left, &rules);
	if (r == -ENOMEM || (r == -E2BIG && others))
		return r;
	if (u->rules_bytes > R2R_UNWIND_RULES_BYTES_MAX)
		r2r_unwind_forget(u);
	/* The first cannot fail after the map has its entry. */
	if (vec_reserve(&u->rules, 1) || hashmap_put(&u->by_key, key, (uint32_t)u->rules.len)) {
		code_rules_free(&rules);
		return -ENOMEM;
	}
	u->rules_bytes += code_rules_bytes(&rules) + sizeof(rules);
	elf_budget_add(ELF_BUDGET_RULES, code_rules_bytes(&rules) + sizeof(rules));
	u->rules.v[u->rules.len++] = rules;
	*ret_rules = &u->rules.v[u->rules.len - 1];
	return r;
}

int r2r_unwind_find(struct r2r_unwind *u, uint64_t file_off, uint64_t *steps_left,
		    struct r2r_unwind_function *ret_function)
{
	struct r2r_unwind_function found;
	struct pe_range range;
	uint32_t rva, key;
	uint64_t at;

	if (file_off < u->pe.file.offset || pe_rva(&u->pe, file_off - u->pe.file.offset, &rva))
		return -ENOENT;
	key = rva - u->thunks.rva < u->thunks.bytes ? THUNKS : function_at(u, rva);
	if (key == NONE)
		return -ENOENT;
	range = u->thunks;
	if (key != THUNKS)
		range = (struct pe_range){u->functions[key].begin,
					  u->functions[key].end - u->functions[key].begin};
	if (pe_file_off(&u->pe, range.rva, &at))
		return -EBADMSG;
	found.start = u->pe.file.offset + at;
	found.end = found.start + range.bytes;
	found.is_thunks = key == THUNKS;
	int r = rules_of(u, key, steps_left, &found.rules);

	if (!r)
		*ret_function = found;
	return r;
}

int r2r_unwind_rule(struct r2r_unwind *u, uint64_t file_off, uint64_t *steps_left,
		    struct unwind_rule *ret_rule)
{
	struct r2r_unwind_function f;
	const struct unwind_rule *rule;
	int r = r2r_unwind_find(u, file_off, steps_left, &f);

	if (r)
		return r;
	rule = code_rules_at(f.rules, file_off - f.start);
	*ret_rule = rule ? *rule : (struct unwind_rule){.kind = UNWIND_NONE};
	return 0;
}

int r2r_unwind_step(struct r2r_unwind *u, uint64_t file_off, struct unwind_regs *regs,
		    const struct unwind_memory *mem)
{
	struct r2r_unwind_function f;
	int r = r2r_unwind_find(u, file_off, mem->steps_left, &f);

	return r ? r : code_rules_step(f.rules, file_off - f.start, regs, mem);
}

uint32_t r2r_unwind_function_count(const struct r2r_unwind *u)
{
	return u->nfunctions;
}

int r2r_unwind_file_off(const struct r2r_unwind *u, uint32_t index, uint64_t *ret_file_off)
{
	uint64_t at;
	int r = index < u->nfunctions ? pe_file_off(&u->pe, u->functions[index].begin, &at)
				      : -ENOENT;

	if (!r)
		*ret_file_off = u->pe.file.offset + at;
	return r;
}

size_t r2r_unwind_bytes(const struct r2r_unwind *u)
{
	return sizeof(*u) + u->nfunctions * sizeof(*u->functions) + u->rules_bytes +
	       u->by_key.nslots * sizeof(struct hashmap_slot) +
	       (u->rules.cap - u->rules.len) * sizeof(struct code_rules);
}
