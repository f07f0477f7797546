/*
 * Reads the UNWIND_INFO of x86-64: the effect of a function's prologue, instruction by instruction.
 * .NET's JIT compiler and crossgen2 write it on Linux too, with two extensions of their own.
 * Format: Microsoft, "x64 exception handling" (UNWIND_INFO, UNWIND_CODE); dotnet/runtime,
 * src/coreclr/inc/win64unwind.h and src/coreclr/jit/unwindamd64.cpp (UWOP_SET_FPREG_LARGE).
 */
#ifndef UNWIND_UNWIND_INFO_H
#define UNWIND_UNWIND_INFO_H

#include "unwind/rule.h"

#define UNWIND_INFO_OPS_MAX 64        /* of a chain of infos; .NET's code has 16 at most */
#define UNWIND_INFO_CHAIN_MAX 32      /* infos, as on Windows */
#define UNWIND_INFO_BYTES_MAX 528     /* of one info: header, 255 codes, and the chained entry */
#define UNWIND_INFO_CFA_MAX (1 << 30) /* bytes of a frame */
#define UNWIND_INFO_SAVES_MAX 8       /* five registers can be saved besides the frame pointer */

/* One effect of the prologue. */
struct unwind_info_op {
	uint8_t kind;   /* see unwind_info.c */
	uint8_t reg;    /* DWARF number */
	uint8_t offset; /* end of the instruction in the function */
	int32_t value;
};

/* Zeroed is empty. */
struct unwind_info {
	struct unwind_info_op ops[UNWIND_INFO_OPS_MAX]; /* the last effect first */
	uint8_t nops, nchained;
	uint8_t prologue; /* bytes */
};

/* A saved register of the caller: at CFA + at, from `offset` of the function on. */
struct unwind_info_save {
	uint8_t reg; /* DWARF number */
	uint8_t offset;
	int32_t at;
};

/*
 * Appends the info at data to *info. *ret_chain: the place, as in RUNTIME_FUNCTION, of the info
 * that this one continues; append it next; 0: none. Returns 0; -EBADMSG; -ENOTSUP: codes that .NET
 * does not use; -E2BIG. After an error, discard *info.
 */
int unwind_info_add(struct unwind_info *info, const unsigned char *data, size_t len,
		    uint32_t *ret_chain);

/*
 * The rule after the first `offset` bytes of the function; after the prologue, the rule of its
 * body. Returns 0; -EBADMSG.
 */
int unwind_info_rule(const struct unwind_info *info, uint64_t offset, struct unwind_rule *ret_rule);

/*
 * The registers that the prologue saves, except the frame pointer, which the rule covers. *ret_n:
 * how many. Returns 0; -EBADMSG.
 */
int unwind_info_saves(const struct unwind_info *info,
		      struct unwind_info_save ret_saves[UNWIND_INFO_SAVES_MAX], size_t *ret_n);

#endif
