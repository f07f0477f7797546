#include "symbols/core/line_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dwarf_lines_source {
	struct line_source base;
	struct elf_segment *segments;
	size_t nsegments;
	struct inlines *inlines;
};

static int dwarf_find(struct line_source *base, uint64_t addr, uint64_t time_ns,
		      struct inline_frame *frames, size_t *ret_n)
{
	struct dwarf_lines_source *s = (struct dwarf_lines_source *)base;
	uint64_t vaddr;
	int r = elf_segments_vaddr(s->segments, s->nsegments, addr, &vaddr);

	(void)time_ns;
	return r ? r : inlines_find(s->inlines, vaddr, frames, ret_n);
}

static void dwarf_free(struct line_source *base)
{
	struct dwarf_lines_source *s = (struct dwarf_lines_source *)base;

	inlines_free(s->inlines);
	free(s->segments);
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
	*s = (struct dwarf_lines_source){
		.base.ops = &dwarf_ops,
		.segments = malloc((image->nsegments + 1) * sizeof(*image->segments)),
		.nsegments = image->nsegments};
	int r = s->segments ? inlines_open(image, path, roots, nroots, &s->inlines, NULL) : -ENOMEM;

	if (r) {
		dwarf_free(&s->base);
		return r;
	}
	memcpy(s->segments, image->segments, image->nsegments * sizeof(*image->segments));
	*ret_source = &s->base;
	return 0;
}
