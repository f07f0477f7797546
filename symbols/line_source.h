/* Where lines, and the functions that were inlined, are known of: DWARF, or tables of a managed image or of a JIT compiler. */
#ifndef SYMBOLS_LINE_SOURCE_H
#define SYMBOLS_LINE_SOURCE_H

#include "symbols/image.h"
#include "symbols/inlines.h"

struct line_source;

struct line_source_ops {
	/*
	 * The functions at an address (of the kind that the symbol provider of the same code is asked for) at a time, the
	 * innermost first, the one whose symbol covers the address last; at least one, at most INLINES_DEPTH_MAX. Texts are valid
	 * until the next call. 0; -ENOENT: nothing is known; -ENOMEM.
	 */
	int (*find)(struct line_source *s, uint64_t addr, uint64_t time_ns, struct inline_frame *frames, size_t *ret_n);
	void (*free)(struct line_source *s);
};

/* The first member of every source. */
struct line_source {
	const struct line_source_ops *ops;
};

static inline int line_source_find(struct line_source *s, uint64_t addr, uint64_t time_ns, struct inline_frame *frames, size_t *ret_n)
{
	return s->ops->find(s, addr, time_ns, frames, ret_n);
}

static inline void line_source_free(struct line_source *s)
{
	if (s)
		s->ops->free(s);
}

/* The DWARF of an ELF image, by file offset. As inlines_open; image is borrowed for life, it has the segments. */
int line_source_dwarf(int fd, const char *path, const int *roots, size_t nroots, const struct image *image,
		      struct line_source **ret_source);

#endif
