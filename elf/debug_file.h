/* Finds the best debug file of an image on this machine, for symbols or for lines. */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include "container/opener.h"
#include "elf/elf_file.h"

#include <limits.h>
#include <stddef.h>

/*
 * Bytes that are read to compare checksums, all candidates of an image together. Holes count,
 * though they take no disk space.
 */
#define DEBUG_FILE_CRC_BYTES_MAX ((uint64_t)4 << 30)
#define DEBUG_FILE_CRC_TOTAL_MAX ((uint64_t)8 << 30) /* the same, for all images of the program */
/* Bytes of .gnu_debugdata, packed and unpacked */
#define DEBUG_FILE_MINI_MAX ((size_t)64 << 20)

/* Content that a debug file must have to be accepted. */
enum debug_file_want {
	DEBUG_FILE_SYMBOLS, /* .symtab */
	DEBUG_FILE_LINES,   /* .debug_info */
};

/* Place of a debug file, in the order of the search. */
enum debug_file_place {
	DEBUG_FILE_NOWHERE,
	DEBUG_FILE_INSTALLED, /* one of perf's places */
	/* IMAGE.dbg or IMAGE.debug beside the image; dotnet-symbol writes them there */
	DEBUG_FILE_BESIDE,
	DEBUG_FILE_CACHED,        /* profcpu's own cache */
	DEBUG_FILE_CACHED_DOTNET, /* the cache of .NET's debuggers */
	DEBUG_FILE_CACHED_DEBUGINFOD,
	DEBUG_FILE_CACHED_PERF,
	DEBUG_FILE_MINI, /* MiniDebugInfo: the image's own .gnu_debugdata */
	DEBUG_FILE_PLACES,
};

/* "installed", "beside" and so on; static. */
const char *debug_file_place_name(enum debug_file_place place);

struct debug_file {
	struct elf_file elf;
	int fd; /* -1: unpacked to memory */
	enum debug_file_place place;
	unsigned char *memory;
	uint64_t taken;      /* bytes of memory, from ELF_BUDGET_SYMBOLS */
	char path[PATH_MAX]; /* inside its root; "" for a file in memory */
};

/*
 * The facts that are known of the image. A file matches if it has the wanted content and the
 * image's build id. If the image has no build id, only the debug link's file with the right
 * checksum matches.
 */
struct debug_file_query {
	const struct elf_file *image;     /* NULL: only its build id is known */
	struct build_id build_id;         /* used without an image */
	const char *path;                 /* the image's, absolute inside a root; may be NULL */
	const struct opener_place *roots; /* borrowed: the target's and ours */
	size_t nroots;
	enum debug_file_want want;
};

/*
 * Searches each root in perf's order (tools/perf/util/symbol.c, binary_type_symtab): the debug link
 * beside the image, in .debug/ and under /usr/lib/debug; the image's path under /usr/lib/debug; its
 * build id there. If the image has no .symtab, .debug/NAME beside it is next.
 *
 * If the image lacks the wanted content itself, the search continues in places that perf does not
 * search. These are IMAGE.dbg and IMAGE.debug in each root, then the caches (elf/debug_cache.h),
 * then, for symbols, MiniDebugInfo. Lines are not searched if the image has its own.
 *
 * Returns 0 (the caller closes *ret_debug), -ENOENT, -E2BIG (MiniDebugInfo does not fit in
 * ELF_BUDGET_SYMBOLS now) or -ENOMEM. -EACCES: our own root has a file with the image's build id,
 * but the rights of the places do not open it.
 */
int debug_file_find(const struct debug_file_query *query, struct debug_file *ret_debug);
void debug_file_close(struct debug_file *d);

/* Returns how many candidates since the last call were refused by a limit on checksums. */
uint64_t debug_file_take_uncompared(void);
/* For tests: sets the bytes that are left for checksums of all images. */
void debug_file_limit_crc_total(uint64_t bytes);

/*
 * Whether an ELF file has the wanted content. A section header without bytes does not count.
 */
bool debug_file_has(const struct elf_file *f, enum debug_file_want want);

#endif
