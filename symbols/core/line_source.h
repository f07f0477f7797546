/*
 * The interface of sources of lines and inlined functions: DWARF, tables of a managed image, or a
 * JIT compiler's tables.
 */
#ifndef SYMBOLS_CORE_LINE_SOURCE_H
#define SYMBOLS_CORE_LINE_SOURCE_H

#include "elf/inlines.h"
#include "elf/segments.h"

struct line_source;

struct line_source_ops {
	/*
	 * Finds the functions at an address and time: the innermost first, last the function whose
	 * symbol covers the address. Gives 1 to INLINES_DEPTH_MAX frames. addr is of the same kind
	 * as for the symbol provider of the same code. Texts are valid until the next call. Returns
	 * 0, -ENOENT (nothing known) or -ENOMEM.
	 */
	int (*find)(struct line_source *s, uint64_t addr, uint64_t time_ns,
		    struct inline_frame *frames, size_t *ret_n);
	void (*free)(struct line_source *s);
};

/* The first member of every source. */
struct line_source {
	const struct line_source_ops *ops;
};

static inline int line_source_find(struct line_source *s, uint64_t addr, uint64_t time_ns,
				   struct inline_frame *frames, size_t *ret_n)
{
	return s->ops->find(s, addr, time_ns, frames, ret_n);
}

static inline void line_source_free(struct line_source *s)
{
	if (s)
		s->ops->free(s);
}

/*
 * Opens the DWARF of an ELF image as a source by file offset. Parameters and errors: as for
 * inlines_open.
 */
int line_source_dwarf(const struct elf_file *image, const char *path,
		      const struct opener_place *roots, size_t nroots,
		      struct line_source **ret_source);

#endif
