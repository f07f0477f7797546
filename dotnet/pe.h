/*
 * Reader of PE images inside files: headers, sections, CLI header, exports, debug directory. Checks
 * all sizes, and reads with pread, so a file truncated meanwhile gives an error only. Formats:
 * Microsoft PE and COFF specification; CLI header: ECMA-335, II.25.3.3. All numbers are
 * little-endian.
 */
#ifndef DOTNET_PE_H
#define DOTNET_PE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_SECTIONS_MAX 96                      /* limit of the Windows loader */
#define PE_READ_BYTES_MAX ((uint32_t)512 << 20) /* bytes of one range */
#define PE_EXPORTS_MAX ((uint32_t)1 << 16)      /* exported names that are searched */
#define PE_EXPORT_NAME_MAX 256
#define PE_DEBUG_ENTRIES_MAX 64

/* An image inside a file. offset: its beginning in the file. */
struct pe_file {
	int fd;
	uint64_t offset, bytes;
};

struct pe_range {
	uint32_t rva, bytes;
};

struct pe_section {
	/*
	 * file_off: from the beginning of the image. bytes: present both in the file and in memory.
	 */
	uint32_t rva, file_off, bytes;
};

enum pe_directory {
	PE_EXPORTS = 0,
	PE_DEBUG = 6,
	PE_CLI = 14,
	PE_DIRECTORIES = 16,
};

enum pe_machine {
	PE_X64 = 0x8664,
	PE_ARM64 = 0xaa64,
};

struct pe {
	struct pe_file file; /* the descriptor is borrowed */
	/*
	 * enum pe_machine or another value. Excludes the .NET runtime's mark for the operating
	 * system.
	 */
	uint16_t machine;
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t nsections;
	struct pe_range directories[PE_DIRECTORIES]; /* bytes 0: absent */
};

struct pe_cli {
	uint32_t flags;
	struct pe_range metadata;
	struct pe_range native_header; /* of ReadyToRun; bytes 0: absent */
};

/* An entry of the debug directory: its type, and the place of its data. */
struct pe_debug {
	uint32_t type, stamp;
	uint16_t major, minor;
	uint32_t bytes, rva, file_off; /* file_off: from the image's beginning */
};

/*
 * Reads the headers. 0; -EBADMSG: not a PE image, or invalid headers; -E2BIG; -errno. Allocates
 * nothing.
 */
int pe_open(const struct pe_file *file, struct pe *ret_pe, struct parse_error *err);

/*
 * Reads a range of the image, which the file must hold completely; the caller frees it. An empty
 * range gives a buffer of one undefined byte. 0; -EBADMSG; -E2BIG: over max or PE_READ_BYTES_MAX,
 * or too little memory is left (pe_has_memory); -ENOMEM; -errno.
 */
int pe_read(const struct pe *pe, struct pe_range range, uint32_t max, unsigned char **ret_data,
	    struct parse_error *err);

/*
 * Whether an image may keep so many bytes in memory. Targets can map many images. So none may while
 * this process has more than half of the memory that was left at first. Each may take an eighth of
 * the rest. Memory that other processes take later does not count. pe_read checks ranges over 64
 * KiB itself.
 */
bool pe_has_memory(uint32_t bytes);

/*
 * The range from rva for at most `bytes`, cut at the end of the section's data in the file. bytes
 * 0: rva is in no section.
 */
struct pe_range pe_range_at(const struct pe *pe, uint32_t rva, uint32_t bytes);

/* Convert between rva and offset from the image's beginning. 0 or -ENOENT. */
int pe_file_off(const struct pe *pe, uint32_t rva, uint64_t *ret_file_off);
int pe_rva(const struct pe *pe, uint64_t file_off, uint32_t *ret_rva);

/* Reads the CLI header in a range. 0; -ENOENT: the range is empty; -EBADMSG, -ENOMEM, -errno. */
int pe_cli(const struct pe *pe, struct pe_range range, struct pe_cli *ret_cli,
	   struct parse_error *err);

/*
 * Finds the rva that the image exports under a name. 0, -ENOENT, -EBADMSG, -E2BIG, -ENOMEM, -errno.
 */
int pe_export(const struct pe *pe, const char *name, uint32_t *ret_rva);

/*
 * Reads all entries of the debug directory. *ret_n 0: none. -E2BIG: more than PE_DEBUG_ENTRIES_MAX.
 * Otherwise 0, -EBADMSG, -ENOMEM, -errno.
 */
int pe_debug(const struct pe *pe, struct pe_debug entries[PE_DEBUG_ENTRIES_MAX], size_t *ret_n);

#endif
