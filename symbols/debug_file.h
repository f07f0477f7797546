/* Finds the best debug file of an image on this machine. */
#ifndef SYMBOLS_DEBUG_FILE_H
#define SYMBOLS_DEBUG_FILE_H

#include "symbols/elf_file.h"

#include <limits.h>
#include <stddef.h>

#define DEBUG_FILE_CRC_BYTES_MAX ((uint64_t)4 << 30) /* of all that only their checksum tells, of an image; holes take no disk */
#define DEBUG_FILE_MINI_MAX ((size_t)64 << 20) /* bytes of .gnu_debugdata, and of what it is unpacked to */

/* What a file must have to be of use. */
enum debug_file_want {
	DEBUG_FILE_SYMBOLS, /* .symtab */
	DEBUG_FILE_LINES, /* .debug_info */
};

/* Where one was found; the order is that in which they are looked for. */
enum debug_file_place {
	DEBUG_FILE_NOWHERE,
	DEBUG_FILE_INSTALLED, /* one of perf's places */
	DEBUG_FILE_BESIDE, /* IMAGE.dbg or IMAGE.debug beside the image, as dotnet-symbol puts them there */
	DEBUG_FILE_CACHED, /* our own cache */
	DEBUG_FILE_CACHED_DOTNET, /* that of .NET's debuggers */
	DEBUG_FILE_CACHED_DEBUGINFOD,
	DEBUG_FILE_CACHED_PERF,
	DEBUG_FILE_MINI, /* MiniDebugInfo: the image's own .gnu_debugdata */
	DEBUG_FILE_PLACES,
};

/* "installed", "beside" and so on; static. */
const char *debug_file_place_name(enum debug_file_place place);

struct debug_file {
	struct elf_file elf;
	int fd; /* -1: it was unpacked to memory */
	enum debug_file_place place;
	unsigned char *memory;
	char path[PATH_MAX]; /* inside the root it was found in; "" of one in memory */
};

/*
 * What is known of the image. A file counts when it has what is wanted and the image's build id; where the image has no
 * build id, only the one with the debug link's checksum.
 */
struct debug_file_query {
	const struct elf_file *image; /* NULL: the image itself is not here, only its build id is known */
	struct image_build_id build_id; /* without an image */
	const char *path; /* of the image, absolute inside a root; may be NULL */
	const int *roots; /* O_PATH descriptors, borrowed: the target's and ours */
	size_t nroots;
	enum debug_file_want want;
};

/*
 * In each root in perf's order (tools/perf/util/symbol.c, binary_type_symtab): debug link beside the image, in .debug/ and
 * under /usr/lib/debug, then the image's path and its build id under /usr/lib/debug; and, where the image has no .symtab of
 * its own, .debug/NAME beside it. For an image that has none itself (of .symtab, or of .debug_info) then in each root IMAGE.dbg
 * and IMAGE.debug, then the caches (symbols/debug_cache.h), which perf does not look into, and, of symbols, its MiniDebugInfo.
 * Lines are not looked for where the image has its own. 0 (the caller closes *ret_debug), -ENOENT, -ENOMEM.
 */
int debug_file_find(const struct debug_file_query *query, struct debug_file *ret_debug);
void debug_file_close(struct debug_file *d);

/* Whether an ELF file has what is wanted; not only the header of a section whose bytes are elsewhere. */
bool debug_file_has(const struct elf_file *f, enum debug_file_want want);

/* Opens a regular file for reading as seen from root_fd: links cannot lead out of it. A descriptor or -errno. */
int debug_file_open_in_root(int root_fd, const char *path);

#endif
