#include "elf/cfi_section.h"

#include "elf/budget.h"
#include "elf/cfi_entry.h"

#include <elf.h>
#include <errno.h>

#define EH_FRAME_POINTER_AT 4   /* in .eh_frame_hdr, after its version and three encodings */
#define EH_FRAME_POINTER_MAX 10 /* bytes */

/* Makes a section of a range of the file. */
static int load(const struct elf_file *elf, const struct elf_section *from, bool old,
		struct cfi_section *s)
{
	struct elf_pages pages = {.bytes = 0};
	int r = 0;

	if (elf->fd >= 0)
		r = elf_pages_of_section(elf, from, old, CFI_UNPACKED_MAX, &pages);
	else if (!(from->flags & SHF_COMPRESSED) && from->file_off <= elf->bytes &&
		 from->bytes <= elf->bytes - from->file_off)
		r = elf_pages_of_memory(elf->memory + from->file_off, (size_t)from->bytes, &pages);
	if (!r && (pages.too_large || (pages.packed && !elf_budget_work(pages.bytes))))
		r = -E2BIG;
	if (!r)
		*s = (struct cfi_section){.pages = pages,
					  .addr = from->addr,
					  .address_bytes = elf->is_64 ? 8 : 4,
					  .fd = elf->fd};
	return r;
}

/* *ret_there: the file has a section header of that name, with or without its bytes. */
static int find_section(const struct elf_file *elf, const char *name, bool old,
			struct cfi_section *s, bool *ret_there)
{
	const struct elf_section *from = elf_file_section(elf, name, 0);

	*ret_there = from;
	return from && from->type != SHT_NOBITS ? load(elf, from, old, s) : 0;
}

/* Finds .eh_frame_hdr by the program headers, which remain if section headers are stripped. */
static int find_header(const struct elf_file *elf, struct cfi_section *s)
{
	const struct elf_range *h = &elf->eh_frame_hdr;
	struct elf_section from = {.addr = h->vaddr, .file_off = h->file_off, .bytes = h->bytes};

	return h->bytes ? load(elf, &from, false, s) : 0;
}

/* Finds .eh_frame by its address in the header. Its size is unknown; its segment limits it. */
static int find_by_header(const struct elf_file *elf, struct cfi_section *header,
			  struct cfi_section *s)
{
	uint64_t bytes = header->pages.bytes, vaddr;
	const unsigned char *at;

	bytes = bytes < EH_FRAME_POINTER_AT + EH_FRAME_POINTER_MAX
			? bytes
			: EH_FRAME_POINTER_AT + EH_FRAME_POINTER_MAX;
	int r = bytes > EH_FRAME_POINTER_AT ? cfi_section_need(header, 0, bytes, &at) : -EBADMSG;

	if (r)
		return r == -ENOMEM ? r : 0;
	struct dwarf_bytes b = {.p = at + EH_FRAME_POINTER_AT, .end = at + bytes};

	if (cfi_pointer(&b, at[1], header->address_bytes, header->addr + EH_FRAME_POINTER_AT,
			header->addr, &vaddr))
		return 0;
	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct elf_segment *g = &elf->segments[i];
		uint64_t off = vaddr - g->vaddr;

		if (vaddr < g->vaddr || off >= g->file_bytes)
			continue;
		struct elf_section from = {
			.addr = vaddr, .file_off = g->file_off + off, .bytes = g->file_bytes - off};

		r = load(elf, &from, false, s);
		s->open_end = true;
		return r;
	}
	return 0;
}

static int find_all(const struct elf_file *elf, struct cfi_sections *s)
{
	bool there, frame_there;
	int r = find_section(elf, ".eh_frame_hdr", false, &s->header, &there);

	if (!r)
		r = find_section(elf, ".eh_frame", false, &s->eh_frame, &frame_there);
	if (!r)
		r = find_section(elf, ".debug_frame", false, &s->debug_frame, &there);
	if (!r && !there)
		r = find_section(elf, ".zdebug_frame", true, &s->debug_frame, &there);
	if (r || frame_there)
		return r;
	if (!s->header.pages.bytes)
		r = find_header(elf, &s->header);
	return r ? r : find_by_header(elf, &s->header, &s->eh_frame);
}

int cfi_sections_of(const struct elf_file *elf, struct cfi_sections *ret_sections)
{
	struct cfi_sections s = {
		.header = {.fd = -1}, .eh_frame = {.fd = -1}, .debug_frame = {.fd = -1}};
	int r = elf->fd < 0 && elf->bytes > CFI_IMAGE_BYTES_MAX ? -E2BIG : find_all(elf, &s);

	if (!r && !s.eh_frame.pages.bytes && !s.debug_frame.pages.bytes)
		r = -ENOENT;
	if (r)
		cfi_sections_close(&s);
	else
		*ret_sections = s;
	return r;
}

static void forget(struct cfi_section *s)
{
	elf_pages_forget(&s->pages);
	elf_budget_give(ELF_BUDGET_PAGES, s->resident);
	s->resident = 0;
}

void cfi_sections_close(struct cfi_sections *s)
{
	forget(&s->header);
	forget(&s->eh_frame);
	forget(&s->debug_frame);
}

int cfi_section_need(struct cfi_section *s, uint64_t off, uint64_t len,
		     const unsigned char **ret_at)
{
	uint64_t bytes = s->pages.bytes, had = s->resident;

	if (off > bytes || len > bytes - off)
		return -EBADMSG;
	uint64_t from = off / CFI_READ_AHEAD * CFI_READ_AHEAD, to = off + len;

	to = (to / CFI_READ_AHEAD + (to % CFI_READ_AHEAD != 0)) * CFI_READ_AHEAD;
	int r = elf_pages_need(&s->pages, s->fd, from, (to < bytes ? to : bytes) - from,
			       &s->resident);

	elf_budget_add(ELF_BUDGET_PAGES, s->resident - had);
	if (!r)
		*ret_at = s->pages.data + off;
	return r;
}

void cfi_section_drop(struct cfi_section *s)
{
	if (s->pages.have)
		forget(s);
}
