#include "symbols/r2r_lines.h"

#include "dotnet/r2r_debug_info.h"
#include "dotnet/r2r_functions.h"
#include "dotnet/r2r_header.h"
#include "symbols/r2r_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEBUG_INFO_BYTES_MAX ((uint32_t)256 << 20)

struct r2r_lines {
	struct line_source base;
	const struct symbol_provider *symbols;
	struct portable_pdb *pdb;
	unsigned char *functions; /* the table of runtime functions, by RVA */
	uint32_t nfunctions, function_bytes;
	unsigned char *debug_info_data;
	struct r2r_debug_info debug_info; /* of debug_info_data */
	struct pdb_budget *budget;
	uint64_t budget_bytes; /* bytes of it that the tables take */
};

static uint32_t begin_of(const struct r2r_lines *s, uint32_t function)
{
	uint32_t rva;

	memcpy(&rva, s->functions + (size_t)function * s->function_bytes, sizeof(rva));
	return rva;
}

/* Finds the number of the runtime function that begins at rva. Returns 0 or -ENOENT. */
static int find_function(const struct r2r_lines *s, uint32_t rva, uint32_t *ret_function)
{
	uint32_t lo = 0, hi = s->nfunctions;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (begin_of(s, mid) < rva)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_function = lo;
	return lo < s->nfunctions && begin_of(s, lo) == rva ? 0 : -ENOENT;
}

static int r2r_lines_find(struct line_source *base, uint64_t addr, uint64_t time_ns,
			  struct inline_frame *frames, size_t *ret_n)
{
	struct r2r_lines *s = (struct r2r_lines *)base;
	struct r2r_image_method method;
	uint32_t function = 0, il = 0, line = 0;
	const char *file = NULL;
	int r = r2r_image_method(s->symbols, addr, &method);

	(void)time_ns;
	if (!r)
		r = find_function(s, method.begin, &function);
	if (!r)
		r = r2r_debug_info_find_il(&s->debug_info, function, method.native, &il);
	if (!r)
		r = portable_pdb_line(s->pdb, method.rid, il, &file, &line);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	frames[0] = (struct inline_frame){.file = file, .line = line};
	*ret_n = 1;
	return 0;
}

static void r2r_lines_free(struct line_source *base)
{
	struct r2r_lines *s = (struct r2r_lines *)base;

	pdb_budget_release(s->budget, s->budget_bytes);
	portable_pdb_free(s->pdb);
	free(s->functions);
	r2r_debug_info_free(&s->debug_info);
	free(s->debug_info_data);
	free(s);
}

static const struct line_source_ops r2r_lines_ops = {.find = r2r_lines_find,
						     .free = r2r_lines_free};

static int read_tables(struct r2r_lines *s, const struct pe *pe, const struct pdb_places *places)
{
	struct pe_range functions, debug_info;
	struct r2r_header h;
	int r = r2r_header_read(pe, &h, NULL);

	if (r)
		return r;
	functions = r2r_header_section(&h, R2R_RUNTIME_FUNCTIONS);
	debug_info = r2r_header_section(&h, R2R_DEBUG_INFO);
	if (!functions.bytes || !debug_info.bytes || h.composite)
		return -ENOENT;
	s->function_bytes = pe->machine == PE_X64 ? 12 : 8;
	s->nfunctions = functions.bytes / s->function_bytes;
	if (!pdb_budget_take(places->budget, (uint64_t)functions.bytes + debug_info.bytes)) {
		pdb_find_count_refused(pe, places);
		return -E2BIG;
	}
	s->budget = places->budget;
	s->budget_bytes = (uint64_t)functions.bytes + debug_info.bytes;
	r = pe_read(pe, functions, R2R_FUNCTIONS_TABLE_BYTES_MAX, &s->functions, NULL);
	if (!r)
		r = pe_read(pe, debug_info, DEBUG_INFO_BYTES_MAX, &s->debug_info_data, NULL);
	s->debug_info = (struct r2r_debug_info){
		s->debug_info_data, debug_info.bytes, h.major, {.budget = places->budget}};
	return r;
}

int r2r_lines_open(const struct pe_file *file, const struct symbol_provider *symbols,
		   const struct pdb_places *places, struct line_source **ret_source)
{
	struct r2r_lines *s = calloc(1, sizeof(*s));
	struct pe pe;

	if (!s)
		return -ENOMEM;
	s->base.ops = &r2r_lines_ops;
	s->symbols = symbols;
	int r = pe_open(file, &pe, NULL);

	if (!r)
		r = read_tables(s, &pe, places);
	if (!r)
		r = pdb_find(&pe, places, &s->pdb);
	if (r)
		r2r_lines_free(&s->base);
	else
		*ret_source = &s->base;
	return r;
}
