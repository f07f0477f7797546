#include "symbols/core/line_source.h"

#include <errno.h>
#include <stdlib.h>

struct dwarf_lines_source {
	struct line_source base;
	const struct elf_file *image;
	struct inlines *inlines;
};

static int dwarf_find(struct line_source *base, uint64_t addr, uint64_t time_ns,
		      struct inline_frame *frames, size_t *ret_n)
{
	struct dwarf_lines_source *s = (struct dwarf_lines_source *)base;
	uint64_t vaddr;
	int r = elf_segments_vaddr(s->image->segments, s->image->nsegments, addr, &vaddr);

	(void)time_ns;
	return r ? r : inlines_find(s->inlines, vaddr, frames, ret_n);
}

static void dwarf_free(struct line_source *base)
{
	struct dwarf_lines_source *s = (struct dwarf_lines_source *)base;

	inlines_free(s->inlines);
	free(s);
}

static const struct line_source_ops dwarf_ops = {.find = dwarf_find, .free = dwarf_free};

int line_source_dwarf(const struct elf_file *image, const char *path,
		      const struct opener_place *roots, size_t nroots,
		      struct line_source **ret_source)
{
	struct dwarf_lines_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct dwarf_lines_source){.base.ops = &dwarf_ops, .image = image};
	int r = inlines_open(image, path, roots, nroots, &s->inlines, NULL);

	if (r)
		dwarf_free(&s->base);
	else
		*ret_source = &s->base;
	return r;
}
