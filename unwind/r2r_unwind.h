/*
 * Unwinding rules of precompiled .NET code (ReadyToRun), from the UNWIND_INFO of each function and
 * funclet in the image's file. Each function is read once, with pread, and kept as rules. Format:
 * dotnet/runtime, docs/design/coreclr/botr/readytorun-format.md (RuntimeFunctions,
 * DelayLoadMethodCallThunks); unwind_info.h.
 */
#ifndef UNWIND_R2R_UNWIND_H
#define UNWIND_R2R_UNWIND_H

#include "base/error.h"
#include "dotnet/pe.h"
#include "unwind/code_rules.h"

/* Bytes of the table of runtime functions; the whole framework in one image has 5 MB. */
#define R2R_UNWIND_TABLE_BYTES_MAX ((uint32_t)64 << 20)
/* Bytes of kept rules. Over it, all are dropped and made again. */
#define R2R_UNWIND_RULES_BYTES_MAX ((size_t)16 << 20)

struct r2r_unwind;

/*
 * Opens one image. Duplicates file->fd and keeps nothing else of *file. Reads the table of
 * functions: 12 bytes for each, 600 KB for the largest assembly.
 *
 * Returns 0; -EBADMSG: no PE image, no precompiled code, or damaged; -ENOTSUP: an unknown version
 * or machine; -E2BIG; -ENOMEM; -errno.
 */
int r2r_unwind_open(const struct pe_file *file, struct r2r_unwind **ret, struct parse_error *err);
void r2r_unwind_free(struct r2r_unwind *u);

/* Frees all rules; they are made again when they are needed. */
void r2r_unwind_forget(struct r2r_unwind *u);

/* A function or funclet, or the thunks of the image. */
struct r2r_unwind_function {
	uint64_t start, end; /* offsets in the descriptor's file */
	bool is_thunks;
	const struct code_rules *rules; /* borrowed until the next call for the same image */
};

/*
 * Finds the function at an offset in the descriptor's file, as in mappings; file->offset is
 * included. Takes from *steps_left (struct unwind_memory). Returns 0; -ENOENT: no code there;
 * -EBADMSG, -ENOTSUP: invalid unwind information; -E2BIG: likewise, or too few steps are left;
 * -ENOMEM; -errno.
 */
int r2r_unwind_find(struct r2r_unwind *u, uint64_t file_off, uint64_t *steps_left,
		    struct r2r_unwind_function *ret_function);

/* The rule at an offset. Arguments and errors as in r2r_unwind_find. */
int r2r_unwind_rule(struct r2r_unwind *u, uint64_t file_off, uint64_t *steps_left,
		    struct unwind_rule *ret_rule);

/*
 * Replaces the registers of a frame at an offset with its caller's. Errors of r2r_unwind_find and
 * code_rules_step.
 */
int r2r_unwind_step(struct r2r_unwind *u, uint64_t file_off, struct unwind_regs *regs,
		    const struct unwind_memory *mem);

/* The number of runtime functions, and the file offset of one of them: to visit all. */
uint32_t r2r_unwind_function_count(const struct r2r_unwind *u);
int r2r_unwind_file_off(const struct r2r_unwind *u, uint32_t index, uint64_t *ret_file_off);

/* Memory in use, in bytes. */
size_t r2r_unwind_bytes(const struct r2r_unwind *u);

#endif
