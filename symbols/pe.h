/*
 * A PE image inside a file: headers, sections, the CLI header. What it says is checked before it is believed, and bytes are
 * read with pread, so that a file that is cut meanwhile gives an error and nothing else.
 * Format: Microsoft PE and COFF specification; CLI header: ECMA-335, II.25.3.3. Little-endian, as all are.
 */
#ifndef SYMBOLS_PE_H
#define SYMBOLS_PE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define PE_SECTIONS_MAX 96 /* as many as the loaders of Windows take */
#define PE_READ_BYTES_MAX ((uint32_t)512 << 20) /* of one range */
#define PE_EXPORTS_MAX ((uint32_t)1 << 16) /* names that are looked through */
#define PE_EXPORT_NAME_MAX 256
#define PE_DEBUG_ENTRIES_MAX 64

/* A place of an image in a file; offset is where it begins there. */
struct pe_file {
	int fd;
	uint64_t offset, bytes;
};

struct pe_range {
	uint32_t rva, bytes;
};

struct pe_section {
	uint32_t rva, file_off, bytes; /* bytes: what is in the file and in memory; file_off from the image's beginning */
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
	uint16_t machine; /* enum pe_machine or another one, without what the .NET runtime adds for the system */
	struct pe_section sections[PE_SECTIONS_MAX];
	size_t nsections;
	struct pe_range directories[PE_DIRECTORIES]; /* bytes 0: there is none */
};

struct pe_cli {
	uint32_t flags;
	struct pe_range metadata;
	struct pe_range native_header; /* of ReadyToRun; bytes 0: there is none */
};

/* An entry of the debug directory: type, and where its data is. */
struct pe_debug {
	uint32_t type, stamp;
	uint16_t major, minor;
	uint32_t bytes, rva, file_off; /* file_off from the image's beginning */
};

/* Reads the headers. 0; -EBADMSG no PE image, or headers that cannot be; -E2BIG; -errno. Nothing to free. */
int pe_open(const struct pe_file *file, struct pe *ret_pe, struct parse_error *err);

/* The bytes of a range of the image, in the file as a whole; the caller frees. 0, -EBADMSG, -E2BIG over max or
 * PE_READ_BYTES_MAX, -ENOMEM, -errno. An empty range gives one byte that does not count. */
int pe_read(const struct pe *pe, struct pe_range range, uint32_t max, unsigned char **ret_data, struct parse_error *err);

/* The range from rva on for at most `bytes`, as far as the section has bytes in the file. bytes 0: it is in none. */
struct pe_range pe_from(const struct pe *pe, uint32_t rva, uint32_t bytes);

/* From the image's beginning. 0 or -ENOENT. */
int pe_file_off(const struct pe *pe, uint32_t rva, uint64_t *ret_file_off);
int pe_rva(const struct pe *pe, uint64_t file_off, uint32_t *ret_rva);

/* The CLI header at a range. 0, -ENOENT where the range is empty, -EBADMSG, -ENOMEM, -errno. */
int pe_cli(const struct pe *pe, struct pe_range range, struct pe_cli *ret_cli, struct parse_error *err);

/* The address that an image exports under a name. 0, -ENOENT, -EBADMSG, -E2BIG, -ENOMEM, -errno. */
int pe_export(const struct pe *pe, const char *name, uint32_t *ret_rva);

/* The entries of the debug directory, at most PE_DEBUG_ENTRIES_MAX, into entries. 0 (*ret_n 0: none), -EBADMSG, -E2BIG, -ENOMEM,
 * -errno. */
int pe_debug(const struct pe *pe, struct pe_debug entries[PE_DEBUG_ENTRIES_MAX], size_t *ret_n);

#endif
