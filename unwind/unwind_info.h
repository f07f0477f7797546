/*
 * UNWIND_INFO of x86-64: what a function's prologue does, instruction by instruction. The JIT of .NET and crossgen2 write it on Linux too, with
 * two extensions of their own.
 * Format: Microsoft, "x64 exception handling" (UNWIND_INFO, UNWIND_CODE); dotnet/runtime, src/coreclr/inc/win64unwind.h and
 * src/coreclr/jit/unwindamd64.cpp (UWOP_SET_FPREG_LARGE).
 */
#ifndef UNWIND_UNWIND_INFO_H
#define UNWIND_UNWIND_INFO_H

#include "unwind/rule.h"

#define UNWIND_INFO_OPS_MAX 64 /* with those of all infos that are chained; of .NET's code 16 at most were seen */
#define UNWIND_INFO_CHAIN_MAX 32 /* infos, as Windows takes */
#define UNWIND_INFO_BYTES_MAX 528 /* of one: header, 255 codes, and what a chained one says behind them */
#define UNWIND_INFO_CFA_MAX (1 << 30) /* bytes of a frame */
#define UNWIND_INFO_SAVES_MAX 8 /* there are five registers to be saved but the frame pointer */

/* One thing that the prologue did by `offset`, the end of its instruction. */
struct unwind_info_op {
	uint8_t kind; /* of unwind_info.c */
	uint8_t reg; /* by its number of DWARF */
	uint8_t offset;
	int32_t value;
};

/* Zeroed is empty. */
struct unwind_info {
	struct unwind_info_op ops[UNWIND_INFO_OPS_MAX]; /* the last one first */
	uint8_t nops, nchained;
	uint8_t prologue; /* bytes */
};

/* A register of the caller's, that is at CFA + at since `offset` of the function. */
struct unwind_info_save {
	uint8_t reg; /* by its number of DWARF */
	uint8_t offset;
	int32_t at;
};

/*
 * Adds the info that begins at data to what *info has. *ret_chain: where the info is that this one continues (as RUNTIME_FUNCTION has
 * it), which is to be added next; 0: there is none. 0; -EBADMSG; -ENOTSUP: codes that .NET does not have; -E2BIG. After an error *info is of no use.
 */
int unwind_info_add(struct unwind_info *info, const unsigned char *data, size_t len, uint32_t *ret_chain);

/* The rule where the function has done `offset` bytes; behind the prologue: of its body. 0; -EBADMSG. */
int unwind_info_rule(const struct unwind_info *info, uint64_t offset, struct unwind_rule *ret_rule);

/* What the prologue saves of the caller's registers, but for the frame pointer, of which the rule tells. *ret_n of them. 0; -EBADMSG. */
int unwind_info_saves(const struct unwind_info *info, struct unwind_info_save ret_saves[UNWIND_INFO_SAVES_MAX], size_t *ret_n);

#endif
