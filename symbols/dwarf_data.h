/* The sections of DWARF of one ELF file, of which only those pages are read that are asked for (symbols/elf_pages.h). */
#ifndef SYMBOLS_DWARF_DATA_H
#define SYMBOLS_DWARF_DATA_H

#include "base/error.h"
#include "symbols/elf_pages.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWARF_UNPACKED_BYTES_MAX ((uint64_t)1 << 30) /* of all of a file that are compressed */
#define DWARF_TEXT_MAX ((uint64_t)64 << 10) /* a name that is longer is none */
#define DWARF_STEPS_MAX ((uint64_t)4 << 30) /* of one file: far more than reading all of a large program's takes */

enum dwarf_section_id {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_LINE,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_ADDR,
	DWARF_STR_OFFSETS,
	DWARF_CU_INDEX,
	DWARF_SECTIONS,
};

struct dwarf_data {
	int fd;
	uint64_t resident; /* bytes of pages that were read */
	uint64_t unpacked; /* bytes of sections that were compressed */
	/* Entries, attributes and bytes of tables gone through so far, some again and again: a file can be made so that a few
	 * bytes take hours. Over DWARF_STEPS_MAX no more of it is read. */
	uint64_t steps;
	struct elf_pages sections[DWARF_SECTIONS];
	struct image_build_id build_id;
	/* The file that this one shares entries and texts with (.gnu_debugaltlink): its path, or "", and its build id. */
	char alt_path[PATH_MAX];
	struct image_build_id alt_id;
};

/*
 * fd is taken where it succeeds. split: the sections of a .dwo or .dwp file. 0; -ENOENT there is no .debug_info; -EBADMSG;
 * -E2BIG; -ENOMEM; -errno.
 */
int dwarf_data_open(int fd, bool split, struct dwarf_data **ret_data, struct parse_error *err);
void dwarf_data_free(struct dwarf_data *d);

static inline bool dwarf_data_is_tired(const struct dwarf_data *d)
{
	return d->steps > DWARF_STEPS_MAX;
}

/* Makes [off, off + len) of a section readable. 0; -EBADMSG outside of it, or it could not be read; -ENOMEM. */
int dwarf_data_need(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off, uint64_t len);

/* The NUL-terminated text at an offset, valid until dwarf_data_drop; NULL: there is none. */
const char *dwarf_data_text(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off);

/* Forgets the pages that were read. What was unpacked stays: it would be unpacked as a whole again. */
void dwarf_data_drop(struct dwarf_data *d);

#endif
