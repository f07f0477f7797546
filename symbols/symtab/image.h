/* The symbol provider of one image: an ELF file with its debug file. */
#ifndef SYMBOLS_SYMTAB_IMAGE_H
#define SYMBOLS_SYMTAB_IMAGE_H

#include "base/error.h"
#include "elf/build_id.h"
#include "elf/segments.h"
#include "symbols/core/symbol.h"

#include <stdbool.h>

struct elf_file;
struct opener_place;

/*
 * An image follows perf 6.1 in its set of symbols and in the choice among them
 * (tools/perf/util/symbol.c dso__load, symbol-elf.c dso__load_sym and dso__synthesize_plt_symbols).
 * The set has functions, indirect functions, objects and visible labels of .symtab, then of
 * .dynsym, and slots of .plt as "NAME@plt". A debug file replaces the image's tables. For an image
 * without .symtab, profcpu finds more debug files than perf, and MiniDebugInfo.
 */
struct image {
	/* By file offset, as in perf; NULL: the image has none */
	struct symbol_provider *symbols;
	struct build_id build_id;
	struct elf_segment *segments;
	size_t nsegments;
	bool is_elf;     /* false: another format, nothing is known */
	bool has_symtab; /* in the image itself */
	bool native_aot; /* .NET code that was compiled ahead of time */
	/* There is a debug file, but the target may not read it. */
	bool debug_denied;
	/* enum debug_file_place: the place of the debug file, if there is one */
	int debug_place;
	unsigned char *strings[2]; /* private: memory of the symbols' names */
	uint64_t symbols_taken;    /* private: bytes of ELF_BUDGET_SYMBOLS */
	/* 0, or the -errno that kept profcpu from reading an existing table, or a part of it */
	int symbols_error;
};

/*
 * Reads the symbols of an ELF file. file is borrowed during the call; only pread is used.
 *
 * The roots (borrowed) are searched for debug files in this order
 * (elf/debug_file.h); nroots may be 0. The debug link needs path, the image's absolute path inside
 * a root. If path is NULL, only the build id is used.
 *
 * Returns 0 or -ENOMEM. A table that cannot be read is in symbols_error.
 */
int image_open(const struct elf_file *file, const char *path, const struct opener_place *roots,
	       size_t nroots, struct image **ret_image);

/*
 * Opens an absent image through its debug file, found by build id. The caller passes the image's
 * own segments, because a debug file's have no file offsets. For path and roots see image_open.
 * Returns 0, -ENOENT (no debug file), -EACCES (no rights to read it) or -ENOMEM.
 */
int image_open_debug(const struct build_id *id, const char *path, const struct opener_place *roots,
		     size_t nroots, const struct elf_segment *segments, size_t nsegments,
		     struct image **ret_image);

/*
 * Opens an image in memory (the vdso). data is borrowed during the call. source tags the symbols.
 * Errors: as for elf_file_open.
 */
int image_from_memory(const void *data, size_t len, enum symbol_source source,
		      struct image **ret_image, struct parse_error *err);

void image_free(struct image *image);

/* Finds the vaddr of a file offset (elf/segments.h). Returns 0 or -ENOENT. */
int image_vaddr(const struct image *image, uint64_t file_off, uint64_t *ret_vaddr);

#endif
