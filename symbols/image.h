/* Providers for one image: an ELF file with its separate debug file. */
#ifndef SYMBOLS_IMAGE_H
#define SYMBOLS_IMAGE_H

#include "base/error.h"
#include "symbols/symbol.h"

#include <stdbool.h>

#define IMAGE_BUILD_ID_MAX 20

struct image_build_id {
	uint8_t bytes[IMAGE_BUILD_ID_MAX];
	uint8_t len; /* 0: none */
};

/* One PT_LOAD segment: file_off + (vaddr - vaddr_start) correspond. */
struct image_segment {
	uint64_t vaddr, file_off, file_bytes, mem_bytes;
	uint32_t flags; /* PF_* */
};

/*
 * Which symbols there are and which of them names an address follows perf 6.1 (tools/perf/util/symbol.c dso__load,
 * symbol-elf.c dso__load_sym and dso__synthesize_plt_symbols): functions, indirect functions, objects and visible labels
 * of .symtab and then .dynsym, of the debug file where there is one, and slots of .plt as "NAME@plt". Of an image without .symtab
 * more debug files are found than perf finds, and MiniDebugInfo.
 */
struct image {
	struct symbol_provider *symbols; /* by file offset, as perf has them; NULL where the image has none */
	struct image_build_id build_id;
	struct image_segment *segments;
	size_t nsegments;
	bool is_elf; /* false: a file of another format, nothing is known of it */
	bool has_symtab; /* of its own */
	int debug_place; /* enum debug_file_place: where symbols come from that are not in its own tables */
	unsigned char *strings[2]; /* private: what symbols' names are in */
	int symbols_error; /* 0, or the -errno for which symbols are missing though the file has a table of them */
};

/*
 * Reads an ELF image from fd (borrowed, positioned anywhere, only pread is used).
 * roots: directories (O_PATH descriptors, borrowed) under which debug files are looked for (symbols/debug_file.h), in this
 * order; nroots may be 0. path is the image's inside a root, absolute, for the debug link (NULL: build id only).
 * 0; -EBADMSG not ELF or damaged beyond use; -E2BIG; -ENOMEM; -errno.
 */
int image_open(int fd, const char *path, const int *roots, size_t nroots, struct image **ret_image,
	       struct parse_error *err);

/*
 * The same of an image that is not here, from its debug file alone, found by its build id: segments are the image's own, as in the
 * debug file they have no place. path, roots: as there. 0; -ENOENT: there is none; -ENOMEM.
 */
int image_open_debug(const struct image_build_id *id, const char *path, const int *roots, size_t nroots,
		     const struct image_segment *segments, size_t nsegments, struct image **ret_image);

/* An image from memory (the vdso). data is borrowed during the call only. source tags the symbols. As image_open. */
int image_from_memory(const void *data, size_t len, enum symbol_source source, struct image **ret_image,
		      struct parse_error *err);

void image_free(struct image *image);

/*
 * The vaddr of a file offset through the PT_LOAD segments. Of several that hold it, as odd or hostile files have them, an
 * executable one wins, as what is asked for was executed; then the lowest vaddr. 0 or -ENOENT.
 */
int image_vaddr(const struct image *image, uint64_t file_off, uint64_t *ret_vaddr);
int image_segments_vaddr(const struct image_segment *segments, size_t n, uint64_t file_off, uint64_t *ret_vaddr);

/* The file offset of a vaddr. Of several segments that cover it in memory the first one in the file wins, as in perf (symbol-elf.c
 * elf_read_program_header). 0 or -ENOENT. */
int image_segments_file_off(const struct image_segment *segments, size_t n, uint64_t vaddr, uint64_t *ret_file_off);

/* The build id alone, from an ELF file's notes, without reading symbols. 0, -ENOENT (none), -EBADMSG, -errno. */
int image_build_id_of(int fd, struct image_build_id *ret_build_id);

/* Lower-case hex, NUL-terminated, into buf of at least 2 * IMAGE_BUILD_ID_MAX + 1 bytes. */
void image_build_id_hex(const struct image_build_id *id, char *buf);

#endif
