/*
 * The rules that an ELF image's call frame information has for its addresses. It is opened by reading little more than headers; an FDE is
 * compiled to rows of 16 bytes when one of its addresses is asked for first. .eh_frame counts, and .debug_frame for what .eh_frame says
 * nothing of. What is compiled and what is read of the file is bounded: over a limit all of it is dropped and begun again. What was asked
 * before changes no answer, unless an .eh_frame_hdr is not in order. One thread uses a table.
 */
#ifndef UNWIND_CFI_TABLE_H
#define UNWIND_CFI_TABLE_H

#include "base/error.h"
#include "unwind/rule.h"

#define CFI_TABLE_PLACES_MAX ((size_t)8 << 10) /* functions, and gaps between them, that are compiled at a time */
#define CFI_TABLE_ROWS_MAX ((size_t)64 << 10) /* of all compiled functions */
#define CFI_FUNCTION_ROWS_MAX ((size_t)16 << 10) /* of one */

struct cfi_table;

/*
 * Of a file, whose fd is borrowed: it stays open as long as the table is used. 0; -ENOENT: the image has no CFI; -EBADMSG: not ELF,
 * damaged, or of another architecture; -E2BIG; -ENOMEM; -errno. *err is filled where there is more to say.
 */
int cfi_table_open(int fd, struct cfi_table **ret_table, struct parse_error *err);

/* The same of a whole ELF image in memory (the vdso), of which what is needed is copied. */
int cfi_table_from_memory(const void *data, size_t len, struct cfi_table **ret_table, struct parse_error *err);

void cfi_table_free(struct cfi_table *t);

/*
 * The rule at a vaddr; of a return address ask for the byte before. Never UNWIND_NONE. 0; -ENOENT: no CFI covers it; -EBADMSG: what
 * covers it is damaged; -ENOTSUP: it is of a kind that is not known; -E2BIG: over a limit; -ENOMEM.
 */
int cfi_table_find(struct cfi_table *t, uint64_t vaddr, struct unwind_rule *ret_rule);

/*
 * The whole step: makes of a frame's registers those of its caller, by the rules of all of them at vaddr (as of cfi_table_find). Registers
 * that no rule names stay as they are, rsp becomes the CFA; one whose value cannot be had is not known afterwards. Where the frame is the
 * outermost nothing is known afterwards, ARCH_IP neither. *ret_signal: the frame was made by a signal: the caller's address is that of the
 * next instruction, not a return address. *regs and *ret_signal are untouched on failure. 0; -ENOENT, -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM
 * as of cfi_table_find; -ENODATA: the CFA or the return address hang on memory outside the copy; -ENXIO: on a register that is not known.
 */
int cfi_table_step(struct cfi_table *t, uint64_t vaddr, struct unwind_regs *regs, const struct unwind_memory *memory,
		   bool *ret_signal);

/* The addresses [start, end) of the FDE that covers vaddr: a function, or a part of one. Errors as of cfi_table_find. */
int cfi_table_bounds(struct cfi_table *t, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);

/* What it keeps in memory. */
struct cfi_table_stats {
	size_t places, rows; /* compiled */
	uint64_t compiled; /* functions, each time that they were */
	uint64_t bytes; /* of memory, about */
};
struct cfi_table_stats cfi_table_stats(const struct cfi_table *t);

#endif
