/*
 * One ELF file: its headers, which are read once, and chosen sections. All values are checked
 * before use.
 */
#ifndef ELF_ELF_FILE_H
#define ELF_ELF_FILE_H

#include "base/error.h"
#include "elf/build_id.h"
#include "elf/segments.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits far above real files, and low enough that no file takes long. */
#define ELF_FILE_SECTIONS_MAX ((size_t)1 << 14)
#define ELF_FILE_SECTION_NAMES_MAX ((uint64_t)1 << 20) /* bytes of .shstrtab */
#define ELF_FILE_HEADERS_MAX ((size_t)1 << 16)         /* program headers */
#define ELF_FILE_SEGMENTS_MAX ((size_t)256)            /* loaded segments */
#define ELF_FILE_SECTION_BYTES_MAX ((uint64_t)2 << 30)
#define ELF_FILE_NOTE_BYTES_MAX ((uint64_t)64 << 10)
#define ELF_FILE_NOTES_MAX 64 /* note sections and segments that are searched */

/* The part of a section header that naming needs. */
struct elf_section {
	const char *name; /* "" if unreadable */
	uint64_t addr, file_off, bytes, entry_bytes, flags;
	uint32_t type, link, name_at;
	bool text_or_data; /* the name contains "text" or "data" */
};

/* A range of the file that a program header names. */
struct elf_range {
	uint64_t vaddr, file_off, bytes;
};

struct elf_file {
	/*
	 * Borrowed; -1: from memory. The headers outlive it: a later descriptor of the same file
	 * may replace it.
	 */
	int fd;
	const unsigned char *memory; /* borrowed */
	uint64_t bytes;              /* size of the file when it was opened */
	bool is_64;
	uint16_t machine;
	struct elf_section *sections; /* by index; [0] is the empty one */
	size_t nsections;
	unsigned char *section_names;
	struct elf_segment *segments; /* PT_LOAD, in the order of the file */
	size_t nsegments;
	size_t nheaders;                            /* program headers of all kinds */
	struct elf_range notes[ELF_FILE_NOTES_MAX]; /* PT_NOTE */
	size_t nnotes;
	struct elf_range eh_frame_hdr; /* PT_GNU_EH_FRAME; bytes 0: none */
	uint64_t section_headers_end;  /* in the file */
};

/*
 * Reads the headers from fd, or from memory if fd is -1. Accepts little-endian files of both
 * classes. Returns 0, -EBADMSG (not ELF, or impossible headers), -E2BIG, -ENOMEM or -errno. After a
 * failure there is nothing to close.
 */
int elf_file_open(struct elf_file *f, int fd, const void *memory, size_t len,
		  struct parse_error *err);
void elf_file_close(struct elf_file *f);

/*
 * The first section of that name, or NULL. If type is not 0 and that section has another type, NULL
 * too, because perf reads only the first one.
 */
const struct elf_section *elf_file_section(const struct elf_file *f, const char *name,
					   uint32_t type);

/*
 * Reads a range of the file and appends one NUL. The caller frees. Returns 0, -EBADMSG (outside the
 * file), -E2BIG, -ENOMEM or -errno.
 */
int elf_file_read(const struct elf_file *f, uint64_t file_off, uint64_t bytes, uint64_t max,
		  unsigned char **ret_data);

/* The bytes of notes that elf_file_build_id reads at most. */
uint64_t elf_file_note_bytes(const struct elf_file *f);

/* Finds the GNU build id. Returns 0, -ENOENT or -ENOMEM. */
int elf_file_build_id(const struct elf_file *f, struct build_id *ret_build_id);

/* Finds the build id of the ELF file behind fd. Returns 0, -ENOENT (none), -EBADMSG or -errno. */
int elf_file_build_id_of(int fd, struct build_id *ret_build_id);

#endif
