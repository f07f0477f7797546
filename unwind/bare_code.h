/*
 * Code of an ELF image that no CFI covers, by its instructions: slots of procedure linkage tables (lld describes none), .init and .fini,
 * which are put together of pieces, and otherwise leaves, by what comes ahead of an instruction.
 */
#ifndef UNWIND_BARE_CODE_H
#define UNWIND_BARE_CODE_H

#include "symbols/elf_file.h"
#include "unwind/code_bytes.h"
#include "unwind/code_rules.h"

#define BARE_CODE_SECTIONS_MAX 16 /* of one image; linkers make seven at most */
#define BARE_CODE_SECTION_BYTES_MAX ((uint64_t)16 << 10) /* of .init or .fini */
#define BARE_CODE_AHEAD_MAX ((size_t)1 << 10) /* bytes ahead */

struct bare_section {
	uint64_t vaddr, file_off, bytes;
	bool slots; /* of a procedure linkage table; else one function */
	bool tried;
	struct code_rules rules; /* of a function */
};

/* Zeroed is empty. */
struct bare_code {
	struct bare_section *sections;
	size_t nsections;
};

/* The sections of which more is known; none without section headers. 0 or -ENOMEM. */
int bare_code_read(struct bare_code *b, const struct elf_file *elf);
void bare_code_free(struct bare_code *b);

/*
 * The rule at a vaddr, whose byte is at file_off and whose segment ends at file_end. Of kind UNWIND_PLAIN it holds for the callers of others
 * too, UNWIND_AHEAD see there. 0; -ENOENT: it cannot be known; -ENOMEM.
 */
int bare_code_rule(struct bare_code *b, const struct code_bytes *bytes, uint64_t vaddr, uint64_t file_off, uint64_t file_end,
		   struct unwind_rule *ret_rule);

#endif
