/*
 * The code of one image file: its unwinding rules and its bytes, by file offset, as in mappings.
 * The rules come from CFI (cfi_table.h), from the UNWIND_INFO of precompiled .NET code
 * (r2r_unwind.h), or from the instructions (bare_code.h).
 */
#ifndef UNWIND_IMAGE_CODE_H
#define UNWIND_IMAGE_CODE_H

#include "unwind/rule.h"

struct image_code;

/* The bytes of ELF_BUDGET_IMAGES for each open image. Without them, it has no rules. */
#define IMAGE_CODE_BYTES 16384

/*
 * Opens the image; takes fd on success. A file that is neither ELF nor a .NET image has no rules.
 * Returns 0; -ENOMEM; -errno.
 */
int image_code_open(int fd, struct image_code **ret_code);

/*
 * Opens an ELF image in memory (our vdso), which must outlive it. Returns 0; -EBADMSG; -ENOMEM;
 * -errno.
 */
int image_code_from_memory(const void *data, size_t len, struct image_code **ret_code);

void image_code_free(struct image_code *c);

/*
 * The rule at an offset; kind UNWIND_NONE if the image has none, or if none of *steps_left (struct
 * unwind_memory) is left. Returns 0; -ENOMEM.
 */
int image_code_rule(struct image_code *c, uint64_t file_off, uint64_t *steps_left,
		    struct unwind_rule *ret_rule);

/* Frees bytes of the file that can be read again, or all rules, too. c may be NULL. */
void image_code_forget(struct image_code *c, bool rules);

/* Whether the file exceeds a limit of its reader, so that it or a part of it has no rules. */
bool image_code_over_limit(const struct image_code *c);

/* Whether the image is a runtime that hijacks returns and so has UNWIND_HIJACK rules. */
bool image_code_has_hijack_stub(const struct image_code *c);

/* Steps to the caller like walk_source.step. Not for rules of kind UNWIND_HIJACK. */
int image_code_step(struct image_code *c, uint64_t file_off, struct unwind_regs *regs,
		    const struct unwind_memory *memory, bool *ret_signal);

/* Reads up to len bytes from an offset; returns how many it read. */
size_t image_code_read(const struct image_code *c, uint64_t file_off, void *buf, size_t len);

#endif
