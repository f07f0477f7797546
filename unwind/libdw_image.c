#include "unwind/libdw_image.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "elf/cfi_section.h"
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTIONS 4 /* the empty one, both kinds of CFI, and their names */
#define ALIGN 16u
#define COPIES 2 /* the child has one, too */

static const char section_names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";

struct libdw_image {
	struct elf_segment *segments;
	size_t nsegments;
	uint64_t vaddr; /* of the segment in the made file */
	unsigned char *file;
	size_t bytes, cap;
	uint64_t taken; /* of ELF_BUDGET_LIBDW */
	bool is_64;
};

void libdw_image_free(struct libdw_image *image)
{
	if (!image)
		return;
	elf_budget_give(ELF_BUDGET_LIBDW, image->taken);
	free(image->segments);
	free(image->file);
	free(image);
}

const void *libdw_image_file(const struct libdw_image *image, size_t *ret_bytes)
{
	*ret_bytes = image->bytes;
	return image->file;
}

int libdw_image_start(const struct libdw_image *image, uint64_t addr, uint64_t file_off,
		      uint64_t *ret_start)
{
	uint64_t vaddr;
	int r = elf_segments_vaddr(image->segments, image->nsegments, file_off, &vaddr);

	if (!r)
		*ret_start = addr - vaddr + image->vaddr;
	return r;
}

/* Appends a little-endian number; room is there. */
static void put(struct libdw_image *image, uint64_t number, size_t bytes)
{
	memcpy(image->file + image->bytes, &number, bytes);
	image->bytes += bytes;
}

/* Appends a number of the size of an address. */
static void put_word(struct libdw_image *image, uint64_t number)
{
	put(image, number, image->is_64 ? 8 : 4);
}

static size_t head_bytes(bool is_64)
{
	return is_64 ? sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)
		     : sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr);
}

/* Source: System V ABI, chapters 4 and 5: ELF header and program header. */
static void put_headers(struct libdw_image *image, uint16_t machine, size_t sections_at)
{
	const unsigned char ident[EI_NIDENT] = {ELFMAG0, ELFMAG1,     ELFMAG2,   ELFMAG3,
						0,       ELFDATA2LSB, EV_CURRENT};
	bool is_64 = image->is_64;

	memcpy(image->file, ident, sizeof(ident));
	image->file[EI_CLASS] = is_64 ? ELFCLASS64 : ELFCLASS32;
	image->bytes = sizeof(ident);
	put(image, ET_DYN, 2);
	put(image, machine, 2);
	put(image, EV_CURRENT, 4);
	put_word(image, 0);
	put_word(image, is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
	put_word(image, sections_at);
	put(image, 0, 4);
	put(image, is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), 2);
	put(image, is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), 2);
	put(image, 1, 2);
	put(image, is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2);
	put(image, SECTIONS, 2);
	put(image, SECTIONS - 1, 2);
	put(image, PT_LOAD, 4);
	if (is_64)
		put(image, PF_R | PF_X, 4);
	put_word(image, 0);
	put_word(image, image->vaddr);
	put_word(image, image->vaddr);
	put_word(image, 0);
	put_word(image, 1);
	if (!is_64)
		put(image, PF_R | PF_X, 4);
	put_word(image, 1);
}

static void put_section(struct libdw_image *image, const char *name, uint32_t type, uint64_t addr,
			size_t at, size_t bytes)
{
	size_t name_at = 0;

	while (name_at < sizeof(section_names) && strcmp(section_names + name_at, name) != 0)
		name_at += strlen(section_names + name_at) + 1;
	put(image, name_at, 4);
	put(image, type, 4);
	put_word(image, type == SHT_PROGBITS && addr ? SHF_ALLOC : 0);
	put_word(image, addr);
	put_word(image, at);
	put_word(image, bytes);
	put(image, 0, 8);
	put_word(image, 1);
	put_word(image, 0);
}

/* Refuses entries that libdw would read for long at each step. Returns 0 or -E2BIG. */
static int check_entries(const unsigned char *at, const unsigned char *end)
{
	uint32_t bytes;

	for (; (size_t)(end - at) >= sizeof(bytes); at += sizeof(bytes) + bytes) {
		memcpy(&bytes, at, sizeof(bytes));
		if (!bytes || bytes > (size_t)(end - at) - sizeof(bytes))
			return bytes == UINT32_MAX ? -E2BIG : 0;
		if (bytes > LIBDW_ENTRY_BYTES_MAX)
			return -E2BIG;
	}
	return 0;
}

/* Copies a section to the end of the file; *ret_at: its place. */
static int copy_section(struct libdw_image *image, struct cfi_section *from, size_t *ret_at)
{
	const unsigned char *at = NULL;
	size_t bytes = from->pages.bytes;
	int r = bytes ? cfi_section_need(from, 0, bytes, &at) : 0;

	image->bytes += -image->bytes % ALIGN;
	*ret_at = image->bytes;
	if (!r && bytes)
		r = check_entries(at, at + bytes);
	if (!r && bytes)
		memcpy(image->file + image->bytes, at, bytes);
	image->bytes += bytes;
	cfi_section_drop(from);
	return r;
}

/*
 * Takes memory for a copy of the sections, if as much again is left. So one image alone never takes
 * more than half. Returns 0 or -E2BIG.
 */
static int take_memory(struct libdw_image *image, uint64_t bytes)
{
	int r = elf_budget_take(ELF_BUDGET_LIBDW, 2 * COPIES * bytes);

	if (r)
		return r;
	elf_budget_give(ELF_BUDGET_LIBDW, COPIES * bytes);
	image->taken = COPIES * bytes;
	return 0;
}

/* Makes the file. sections may be empty. */
static int make_file(struct libdw_image *image, uint16_t machine, struct cfi_sections *sections)
{
	struct cfi_section *eh = &sections->eh_frame, *debug = &sections->debug_frame;
	size_t eh_at, debug_at, names_at, table_at, head = head_bytes(image->is_64);
	size_t table = SECTIONS * (image->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));

	if (eh->pages.bytes > LIBDW_IMAGE_BYTES_MAX ||
	    debug->pages.bytes > LIBDW_IMAGE_BYTES_MAX - eh->pages.bytes ||
	    take_memory(image, eh->pages.bytes + debug->pages.bytes))
		return -E2BIG;
	image->cap = head + eh->pages.bytes + debug->pages.bytes + sizeof(section_names) + table +
		     4 * ALIGN;
	image->file = calloc(1, image->cap);
	if (!image->file)
		return -ENOMEM;
	image->bytes = head;
	int r = copy_section(image, eh, &eh_at);

	if (!r)
		r = copy_section(image, debug, &debug_at);
	if (r)
		return r;
	names_at = image->bytes;
	memcpy(image->file + names_at, section_names, sizeof(section_names));
	image->bytes += sizeof(section_names);
	image->bytes += -image->bytes % ALIGN;
	table_at = image->bytes;
	image->bytes += table - table / SECTIONS * (SECTIONS - 1); /* the empty section */
	put_section(image, ".eh_frame", eh->pages.bytes ? SHT_PROGBITS : SHT_NULL, eh->addr, eh_at,
		    eh->pages.bytes);
	put_section(image, ".debug_frame", debug->pages.bytes ? SHT_PROGBITS : SHT_NULL, 0,
		    debug_at, debug->pages.bytes);
	put_section(image, ".shstrtab", SHT_STRTAB, 0, names_at, sizeof(section_names));
	size_t bytes = image->bytes;

	put_headers(image, machine, table_at);
	image->bytes = bytes;
	return 0;
}

static uint64_t lowest(const struct elf_segment *segments, size_t n)
{
	uint64_t vaddr = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		vaddr = segments[i].vaddr < vaddr ? segments[i].vaddr : vaddr;
	return vaddr;
}

int libdw_image_new(int fd, const void *memory, size_t len, uint16_t machine,
		    struct libdw_image **ret_image, struct parse_error *err)
{
	struct libdw_image *image;
	struct cfi_sections sections = {.eh_frame = {.fd = -1}, .debug_frame = {.fd = -1}};
	struct elf_file elf;
	int r = elf_file_open(&elf, fd, memory, len, err);

	if (r)
		return r;
	image = calloc(1, sizeof(*image));
	if (!image)
		r = -ENOMEM;
	else if (elf.machine != machine)
		r = parse_fail(err, -EBADMSG, "the ELF file is for another architecture", 0);
	if (!r)
		r = cfi_sections_of(&elf, &sections);
	if (!r) {
		image->is_64 = elf.is_64;
		image->segments = TAKE_PTR(elf.segments);
		image->nsegments = elf.nsegments;
		image->vaddr = lowest(image->segments, image->nsegments);
		r = make_file(image, machine, &sections);
	}
	cfi_sections_close(&sections);
	elf_file_close(&elf);
	if (r)
		libdw_image_free(image);
	else
		*ret_image = image;
	return r;
}

int libdw_image_empty(uint16_t machine, struct libdw_image **ret_image)
{
	struct cfi_sections none = {.eh_frame = {.fd = -1}, .debug_frame = {.fd = -1}};
	struct libdw_image *image = calloc(1, sizeof(*image));

	if (!image)
		return -ENOMEM;
	image->is_64 = machine != EM_386;
	int r = make_file(image, machine, &none);

	if (r)
		libdw_image_free(image);
	else
		*ret_image = image;
	return r;
}
