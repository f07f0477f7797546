/*
 * How frames in precompiled .NET code (ReadyToRun) lead to their callers, out of the image's file: it has UNWIND_INFO of each function and
 * funclet. What is asked is read once, by pread, and kept as rules.
 * Format: dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md (RuntimeFunctions, DelayLoadMethodCallThunks); unwind_info.h.
 */
#ifndef UNWIND_R2R_UNWIND_H
#define UNWIND_R2R_UNWIND_H

#include "base/error.h"
#include "symbols/pe.h"
#include "unwind/code_rules.h"

#define R2R_UNWIND_TABLE_BYTES_MAX ((uint32_t)64 << 20) /* of runtime functions; the whole framework in one image has 5 MB */
#define R2R_UNWIND_RULES_BYTES_MAX ((size_t)16 << 20) /* that are kept; over it all are made anew */

struct r2r_unwind;

/*
 * Of one image; of a file it is in, only file->fd is duplicated. The table of functions is read now: 12 bytes for each, 600 KB of
 * the largest assembly. 0; -EBADMSG: no PE image, none with code of its own, or damaged; -ENOTSUP: of a version or machine that is not known;
 * -E2BIG; -ENOMEM; -errno.
 */
int r2r_unwind_open(const struct pe_file *file, struct r2r_unwind **ret, struct parse_error *err);
void r2r_unwind_free(struct r2r_unwind *u);

/* A function or funclet, or the thunks of the image; start and end are offsets in the descriptor's file. */
struct r2r_unwind_function {
	uint64_t start, end;
	bool is_thunks;
	const struct code_rules *rules; /* borrowed until the next call for the same image */
};

/* The one at an offset in the descriptor's file, file->offset included, as mappings have it. 0; -ENOENT: no code is there; -EBADMSG, -ENOTSUP,
 * -E2BIG: its unwind information cannot be; -ENOMEM; -errno. */
int r2r_unwind_find(struct r2r_unwind *u, uint64_t file_off, struct r2r_unwind_function *ret_function);

/* The rule there. As r2r_unwind_find. */
int r2r_unwind_rule(struct r2r_unwind *u, uint64_t file_off, struct unwind_rule *ret_rule);

/* To the caller's registers. As r2r_unwind_find, and as code_rules_step. */
int r2r_unwind_step(struct r2r_unwind *u, uint64_t file_off, struct unwind_regs *regs, const struct unwind_memory *mem);

/* How many runtime functions the image has, and where one of them is: for those who go through all. */
uint32_t r2r_unwind_functions(const struct r2r_unwind *u);
int r2r_unwind_file_off(const struct r2r_unwind *u, uint32_t index, uint64_t *ret_file_off);

/* Memory that it takes, in bytes. */
size_t r2r_unwind_bytes(const struct r2r_unwind *u);

#endif
