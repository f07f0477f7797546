/* ELF images of sections with code; CFI covers little of it. */
#ifndef TESTS_BARE_IMAGE_H
#define TESTS_BARE_IMAGE_H

#include "tests/unit/cfi_image.h"

#define BARE_IMAGE_AT UINT64_C(0x10000) /* vaddr of the file's first byte */
#define BARE_IMAGE_SECTIONS 12

struct bare_image {
	struct cfi_bytes bytes, names;
	Elf64_Shdr sections[BARE_IMAGE_SECTIONS];
	uint16_t n;
};

static inline void bare_image_begin(struct bare_image *b)
{
	static const unsigned char room[sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)] = {0};

	*b = (struct bare_image){.n = 1};
	cfi_put(&b->bytes, room, sizeof(room));
	cfi_put(&b->names, "", 1);
}

/* Returns the section's file offset; its last digit is 0. */
static inline uint64_t bare_image_add(struct bare_image *b, const char *name, uint32_t type,
				      uint64_t flags, const void *data, size_t len)
{
	static const unsigned char zero[16] = {0};
	Elf64_Shdr *h = &b->sections[b->n++];

	cfi_put(&b->bytes, zero, -b->bytes.len & 15);
	*h = cfi_image_section(&b->bytes, data, len, (uint32_t)b->names.len,
			       BARE_IMAGE_AT + b->bytes.len);
	h->sh_type = type;
	h->sh_flags = flags;
	cfi_put(&b->names, name, strlen(name) + 1);
	return h->sh_offset;
}

static inline uint64_t bare_image_code(struct bare_image *b, const char *name, const void *data,
				       size_t len)
{
	return bare_image_add(b, name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, data, len);
}

/* .eh_frame with one FDE. Its rows: start rsp + 8, then the changes of the FDE's program. */
static inline void bare_image_fde(struct bare_image *b, uint64_t start, uint64_t len,
				  const void *program, size_t program_len)
{
	static const unsigned char cie[] = {
		1, 0, 1,    0x78, 16, 0x0c,
		7, 8, 0x90, 1,    0,  0}; /* no augmentation; CFA rsp + 8, rip at CFA - 8 */
	struct cfi_bytes frame = {0};

	cfi_put_int(&frame, sizeof(cie) + 4, 4);
	cfi_put_int(&frame, 0, 4);
	cfi_put(&frame, cie, sizeof(cie));
	size_t fde = frame.len;

	cfi_put_int(&frame, 0, 4);
	cfi_put_int(&frame, frame.len, 4);
	cfi_put_int(&frame, start, 8);
	cfi_put_int(&frame, len, 8);
	cfi_put(&frame, program, program_len);
	cfi_end_entry(&frame, fde);
	cfi_put_int(&frame, 0, 4);
	bare_image_add(b, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, frame.v, frame.len);
	free(frame.v);
}

/* The whole file is in b->bytes, with one segment for all of it. no_headers: without section
 * headers. */
static inline void bare_image_end(struct bare_image *b, int no_headers)
{
	Elf64_Ehdr ehdr = cfi_image_ehdr();
	Elf64_Phdr phdr = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = BARE_IMAGE_AT};
	uint32_t name = (uint32_t)b->names.len;

	ehdr.e_phentsize = sizeof(phdr);
	ehdr.e_phnum = 1;
	ehdr.e_phoff = sizeof(ehdr);
	ehdr.e_shstrndx = 0;
	cfi_put(&b->names, ".shstrtab", 10);
	Elf64_Shdr *h = &b->sections[b->n++];

	*h = cfi_image_section(&b->bytes, b->names.v, b->names.len, name, 0);
	h->sh_type = SHT_STRTAB;
	phdr.p_filesz = phdr.p_memsz = b->bytes.len;
	if (!no_headers) {
		cfi_put(&b->bytes, "\0\0\0\0\0\0\0", -b->bytes.len & 7);
		ehdr.e_shoff = b->bytes.len;
		ehdr.e_shnum = b->n;
		ehdr.e_shstrndx = (uint16_t)(b->n - 1);
		cfi_put(&b->bytes, b->sections, b->n * sizeof(*h));
	}
	memcpy(b->bytes.v, &ehdr, sizeof(ehdr));
	memcpy(b->bytes.v + sizeof(ehdr), &phdr, sizeof(phdr));
}

static inline void bare_image_free(struct bare_image *b)
{
	free(b->bytes.v);
	free(b->names.v);
}

#endif
