/* Hand-made call frame information, and ELF images that contain it. */
#ifndef TESTS_CFI_IMAGE_H
#define TESTS_CFI_IMAGE_H

#include "base/arch.h"
#include "unwind/cfi_table.h"

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CFI_IMAGE_HEADER_AT UINT64_C(0x1000) /* vaddrs of the sections */
#define CFI_IMAGE_EH_FRAME_AT UINT64_C(0x2000)

struct cfi_bytes {
	unsigned char *v;
	size_t len;
};

static inline void cfi_put(struct cfi_bytes *b, const void *data, size_t len)
{
	b->v = realloc(b->v, b->len + len + 1);
	if (!b->v)
		abort();
	if (len)
		memcpy(b->v + b->len, data, len);
	b->len += len;
}

static inline void cfi_put_int(struct cfi_bytes *b, uint64_t value, size_t bytes)
{
	cfi_put(b, &value, bytes);
}

/* Sets the length of an entry that began at `at`. */
static inline void cfi_end_entry(struct cfi_bytes *b, size_t at)
{
	uint32_t len = (uint32_t)(b->len - at - 4);

	memcpy(b->v + at, &len, 4);
}

/* Appends a section to the image; 0 bytes: none. */
static inline Elf64_Shdr cfi_image_section(struct cfi_bytes *image, const void *data, size_t len,
					   uint32_t name, uint64_t vaddr)
{
	Elf64_Shdr h = {.sh_name = name,
			.sh_type = SHT_PROGBITS,
			.sh_addr = vaddr,
			.sh_offset = image->len,
			.sh_size = len};

	cfi_put(image, data, len);
	return h;
}

/* Begins an empty shared object. */
static inline Elf64_Ehdr cfi_image_ehdr(void)
{
	return (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = ARCH_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shstrndx = 1,
	};
}

/* An ELF image with these sections; each may be empty. The caller frees v. */
static inline struct cfi_bytes cfi_image_of(struct cfi_bytes eh_frame, struct cfi_bytes header,
					    struct cfi_bytes debug_frame)
{
	static const char names[] = "\0.eh_frame\0.eh_frame_hdr\0.debug_frame\0.shstrtab";
	Elf64_Ehdr ehdr = cfi_image_ehdr();
	struct cfi_bytes image = {0};
	Elf64_Shdr sections[5] = {{0}};
	uint16_t n = 2;

	cfi_put(&image, &ehdr, sizeof(ehdr));
	sections[1] = cfi_image_section(&image, names, sizeof(names), 38, 0);
	if (eh_frame.len)
		sections[n++] = cfi_image_section(&image, eh_frame.v, eh_frame.len, 1,
						  CFI_IMAGE_EH_FRAME_AT);
	if (header.len)
		sections[n++] =
			cfi_image_section(&image, header.v, header.len, 11, CFI_IMAGE_HEADER_AT);
	if (debug_frame.len)
		sections[n++] = cfi_image_section(&image, debug_frame.v, debug_frame.len, 25, 0);
	cfi_put(&image, names, (8 - image.len % 8) % 8);
	ehdr.e_shoff = image.len;
	ehdr.e_shnum = n;
	cfi_put(&image, sections, n * sizeof(*sections));
	memcpy(image.v, &ehdr, sizeof(ehdr));
	return image;
}

/* Opens the rules of an ELF file, or of an image in memory if fd is -1. */
static inline int cfi_table_of(int fd, const void *memory, size_t len, struct cfi_table **ret_table)
{
	struct cfi_frames *frames;
	struct elf_file elf;
	int r = elf_file_open(&elf, fd, memory, len, NULL);

	if (r)
		return r;
	r = cfi_frames_open(&elf, &frames);
	elf_file_close(&elf);
	return r ? r : cfi_table_take(frames, ret_table);
}

#endif
