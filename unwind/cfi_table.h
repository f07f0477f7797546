/*
 * The rules of an ELF image's call frame information (elf/cfi_frames.h), by address. The first
 * lookup in a function compiles its FDE to rows of 16 bytes. Compiled rows are limited: when they
 * pass a limit, all are dropped and made again. Results do not depend on earlier lookups, unless an
 * .eh_frame_hdr is unsorted. One thread uses a table.
 */
#ifndef UNWIND_CFI_TABLE_H
#define UNWIND_CFI_TABLE_H

#include "elf/cfi_frames.h"
#include "unwind/rule.h"

#define CFI_TABLE_PLACES_MAX ((size_t)8 << 10)   /* compiled functions, and gaps between them */
#define CFI_TABLE_ROWS_MAX ((size_t)64 << 10)    /* rows of all compiled functions */
#define CFI_FUNCTION_ROWS_MAX ((size_t)16 << 10) /* rows of one function */

struct cfi_table;

/* Makes the table of an image of this architecture. Takes frames. Returns 0 or -ENOMEM. */
int cfi_table_take(struct cfi_frames *frames, struct cfi_table **ret_table);
void cfi_table_free(struct cfi_table *t);

/* Frees all rules; they are made again when they are needed. */
void cfi_table_forget(struct cfi_table *t);

/* Frees bytes of the file that can be read again. */
void cfi_table_drop(struct cfi_table *t);

/*
 * The rule at a vaddr, never UNWIND_NONE. For a return address, pass the byte before it. Takes from
 * *steps_left (struct unwind_memory). Returns 0; -ENOENT: no CFI covers it; -EBADMSG: that CFI is
 * damaged; -ENOTSUP: of an unknown kind; -E2BIG: over a limit, or too few steps left; -ENOMEM.
 */
int cfi_table_find(struct cfi_table *t, uint64_t vaddr, uint64_t *steps_left,
		   struct unwind_rule *ret_rule);

/*
 * Replaces a frame's registers with its caller's, by all rules at vaddr. Registers without a rule
 * stay unchanged, rsp becomes the CFA, and registers that cannot be read become unknown. If the
 * frame is the outermost, all become unknown, ARCH_IP too. *ret_signal: a signal made the frame;
 * the caller's address is its next instruction, not a return address. *regs and *ret_signal are
 * untouched on failure.
 *
 * Returns 0; -ENODATA: the CFA or the return address need memory outside the copy; -ENXIO: they
 * need an unknown register; other errors of cfi_table_find.
 */
int cfi_table_step(struct cfi_table *t, uint64_t vaddr, struct unwind_regs *regs,
		   const struct unwind_memory *memory, bool *ret_signal);

/*
 * The addresses [start, end) of the FDE that covers vaddr: a function or a part of one. Errors: see
 * cfi_table_find.
 */
int cfi_table_bounds(struct cfi_table *t, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);

/* The size of a table. */
struct cfi_table_stats {
	size_t places, rows; /* compiled and in memory */
	uint64_t compiled;   /* compilations; a function counts each time */
	uint64_t bytes;      /* of memory, approximately */
};
struct cfi_table_stats cfi_table_stats(const struct cfi_table *t);

#endif
