/* One ELF file, opened for its headers and for chosen sections; what it says is checked before it is believed. */
#ifndef SYMBOLS_ELF_FILE_H
#define SYMBOLS_ELF_FILE_H

#include "base/error.h"
#include "symbols/image.h"

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Far over what linkers make, low enough that no file keeps us busy for long. */
#define ELF_FILE_SECTIONS_MAX ((size_t)1 << 16)
#define ELF_FILE_SECTION_NAMES_MAX ((uint64_t)16 << 20) /* bytes of .shstrtab */
#define ELF_FILE_HEADERS_MAX ((size_t)1 << 16) /* of programs */
#define ELF_FILE_SEGMENTS_MAX ((size_t)256) /* loaded */
#define ELF_FILE_SECTION_BYTES_MAX ((uint64_t)2 << 30)
#define ELF_FILE_NOTE_BYTES_MAX ((uint64_t)1 << 20)
#define ELF_FILE_NOTES_MAX 64 /* sections and segments of notes that are looked at */

/* What naming needs of a section header. */
struct elf_section {
	const char *name; /* "" where it cannot be read */
	uint64_t addr, file_off, bytes, entry_bytes, flags;
	uint32_t type, link, name_at;
	bool text_or_data; /* one of these words is in its name */
};

struct elf_file {
	int fd; /* borrowed; -1: from memory */
	const unsigned char *memory; /* borrowed */
	uint64_t bytes; /* of the file, as of opening */
	Elf *elf;
	bool is_64;
	uint16_t machine;
	struct elf_section *sections; /* by index; [0] is the empty one */
	size_t nsections;
	unsigned char *section_names;
	struct image_segment *segments; /* PT_LOAD, in the order of the file */
	size_t nsegments;
};

/*
 * Reads the headers from fd, or from memory where fd is -1. Little-endian files of both classes. 0; -EBADMSG not ELF, or
 * headers that cannot be; -E2BIG; -ENOMEM; -errno. On failure nothing is left to close.
 */
int elf_file_open(struct elf_file *f, int fd, const void *memory, size_t len, struct parse_error *err);
void elf_file_close(struct elf_file *f);

/* The first section of that name and, where type is not 0, type (perf looks at the first of a name only), or NULL. */
const struct elf_section *elf_file_section(const struct elf_file *f, const char *name, uint32_t type);

/* Bytes of a file range, followed by one NUL; the caller frees. 0, -EBADMSG outside the file, -E2BIG, -ENOMEM, -errno. */
int elf_file_read(const struct elf_file *f, uint64_t file_off, uint64_t bytes, uint64_t max,
		  unsigned char **ret_data);

/* The GNU build id. 0, -ENOENT or -ENOMEM. */
int elf_file_build_id(const struct elf_file *f, struct image_build_id *ret_build_id);

#endif
