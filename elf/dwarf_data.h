/*
 * Reads the DWARF sections of one ELF file, only the pages that are needed (elf/pages.h unpacks
 * them). Counts the work on them: hostile input ends at DWARF_STEPS_MAX. All that readers keep fits
 * in ELF_BUDGET_INLINES.
 */
#ifndef ELF_DWARF_DATA_H
#define ELF_DWARF_DATA_H

#include "base/error.h"
#include "base/vec.h"
#include "elf/pages.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of all compressed sections of a file, unpacked */
#define DWARF_UNPACKED_BYTES_MAX ((uint64_t)1 << 30)
/* Bytes of a name; a longer one is ignored */
#define DWARF_TEXT_MAX ((uint64_t)64 << 10)
/*
 * Steps for one file: about 10 s at the 4 to 5 ns of the worst input. Reading everything once takes
 * about 1 step for each byte of .debug_info and .debug_line: libpython3.13 (19 MB) 15 million. By
 * this estimate libcoreclr.so.dbg (100 MB) takes 0.1 billion and Chromium, if each of its units is
 * hit (2 GB), up to 2 billion.
 */
#define DWARF_STEPS_MAX ((uint64_t)2 << 30)
/* So many are counted at a time for all files (elf_budget_steps). */
#define DWARF_STEPS_PART ((uint64_t)64 << 10)

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
	uint64_t resident; /* bytes of the pages that were read */
	uint64_t unpacked; /* bytes of unpacked sections */
	/*
	 * Entries, attributes and table bytes that were read so far, repeated reads included; what
	 * takes longer counts several times. A hostile file can make a few bytes take hours. Above
	 * DWARF_STEPS_MAX, reading ends. Only dwarf_data_count adds to it.
	 */
	uint64_t steps;
	uint64_t room; /* bytes of ELF_BUDGET_INLINES; only dwarf_data_room adds to it */
	struct elf_pages sections[DWARF_SECTIONS];
	struct build_id build_id;
	/*
	 * The file that shares entries and texts with this one (.gnu_debugaltlink): its path, or
	 * "", and its build id.
	 */
	char alt_path[PATH_MAX];
	struct build_id alt_id;
};

/*
 * Opens the DWARF of an ELF file, which is borrowed during the call; a duplicate of its descriptor
 * is kept. split: use the sections of a .dwo or .dwp file. Then build id and alt_path are not read.
 * Returns 0, -ENOENT (no .debug_info), -EBADMSG, -E2BIG, -ENOMEM or -errno.
 */
int dwarf_data_open(const struct elf_file *elf, bool split, struct dwarf_data **ret_data,
		    struct parse_error *err);
void dwarf_data_free(struct dwarf_data *d);

/* Counts steps for all files. If too few are left, d is over its limit. */
void dwarf_data_take_steps(struct dwarf_data *d, uint64_t steps);

static inline void dwarf_data_count(struct dwarf_data *d, uint64_t steps)
{
	uint64_t parts = d->steps / DWARF_STEPS_PART;

	d->steps += steps;
	if (d->steps / DWARF_STEPS_PART != parts)
		dwarf_data_take_steps(d, (d->steps / DWARF_STEPS_PART - parts) * DWARF_STEPS_PART);
}

static inline bool dwarf_data_over_limit(const struct dwarf_data *d)
{
	return d->steps > DWARF_STEPS_MAX;
}

/*
 * Takes room for bytes of pages or arrays until dwarf_data_settle. Few bytes at a time are free,
 * also because most arrays of that size are freed soon. Returns 0 or -E2BIG.
 */
int dwarf_data_room(struct dwarf_data *d, uint64_t bytes);

/* Gives the room back. The caller has counted what it keeps. d may be NULL. */
void dwarf_data_settle(struct dwarf_data *d);

/* Appends an element by value to an array for d. Returns 0, -E2BIG or -ENOMEM. */
#define dwarf_data_push(d, vec, value)                                                    \
	((vec)->len == (vec)->cap && dwarf_data_room((d), (vec)->cap * sizeof(*(vec)->v)) \
		 ? -E2BIG                                                                 \
		 : vec_push(vec, value))

/*
 * Makes [off, off + len) of a section readable. Returns 0, -EBADMSG (outside the section,
 * unreadable, or no room) or -ENOMEM.
 */
int dwarf_data_need(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off, uint64_t len);

/* The NUL-terminated text at an offset, or NULL. Valid until dwarf_data_drop. */
const char *dwarf_data_text(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off);

/*
 * Frees the pages that were read. Keeps unpacked sections, which could only be unpacked again as a
 * whole.
 */
void dwarf_data_drop(struct dwarf_data *d);

#endif
