/*
 * Rules for code of an ELF image that no CFI covers, from its instructions. It knows three kinds:
 * slots of procedure linkage tables (lld writes no CFI for them); .init and .fini, which linkers
 * assemble from pieces; and leaf functions, by the instructions ahead.
 */
#ifndef UNWIND_BARE_CODE_H
#define UNWIND_BARE_CODE_H

#include "elf/elf_file.h"
#include "unwind/code_bytes.h"
#include "unwind/code_rules.h"

#define BARE_CODE_SECTIONS_MAX 16                        /* of one image; linkers make up to 7 */
#define BARE_CODE_SECTION_BYTES_MAX ((uint64_t)16 << 10) /* of .init or .fini */
#define BARE_CODE_AHEAD_MAX ((size_t)1 << 10)            /* bytes ahead */

struct bare_section {
	uint64_t vaddr, file_off, bytes;
	bool slots;              /* a procedure linkage table; else one function */
	bool tried;              /* rules were computed, perhaps without success */
	struct code_rules rules; /* of the function */
};

/* Zeroed is empty. */
struct bare_code {
	struct bare_section *sections;
	size_t nsections;
};

/* Collects the known sections; none without section headers. Returns 0 or -ENOMEM. */
int bare_code_read(struct bare_code *b, const struct elf_file *elf);
void bare_code_free(struct bare_code *b);

/*
 * The rule at a vaddr, whose byte is at file_off and whose segment ends at file_end. A rule of kind
 * UNWIND_PLAIN holds for all frames; see UNWIND_AHEAD for the limits of that kind. Returns 0;
 * -ENOENT: unknown; -ENOMEM.
 */
int bare_code_rule(struct bare_code *b, const struct code_bytes *bytes, uint64_t vaddr,
		   uint64_t file_off, uint64_t file_end, struct unwind_rule *ret_rule);

#endif
