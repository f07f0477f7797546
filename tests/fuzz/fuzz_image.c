/* Input: an ELF file; one whose first byte is not 0x7f: a length of 4 bytes, the image, and behind it its debug file.
 * covers: symbols/elf_file.c symbols/elf_symbols.c symbols/symtab.c symbols/symtab_order.c symbols/perf_tree.c symbols/keysort.c
 */
#include "symbols/debug_file.h"
#include "symbols/elf_symbols.h"
#include "symbols/image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void probe(struct symbol_provider *p, uint64_t addr)
{
	struct symbol s;

	if (symbol_provider_find(p, addr, 0, &s))
		return;
	if (s.start > addr || s.end <= addr || strlen(s.name) != s.name_len)
		abort();
}

static void read_image(const uint8_t *data, size_t size)
{
	struct image *image;
	struct parse_error err;
	char hex[2 * IMAGE_BUILD_ID_MAX + 1];
	uint64_t vaddr;

	if (image_from_memory(data, size, SYMBOL_NONE, &image, &err))
		return;
	image_build_id_hex(&image->build_id, hex);
	for (uint64_t off = 0; image->symbols && off < 0x4000; off += 0x3f) {
		probe(image->symbols, off);
		if (!image_vaddr(image, off, &vaddr))
			probe(image->symbols, vaddr);
	}
	for (size_t i = 0; image->symbols && i < image->nsegments; i++) {
		probe(image->symbols, image->segments[i].vaddr);
		probe(image->symbols, image->segments[i].vaddr + image->segments[i].mem_bytes - 1);
	}
	image_free(image);
}

/* As a stripped file and its debug file. */
static void read_both(const uint8_t *data, size_t size)
{
	struct elf_file image, debug;
	struct elf_symbols symbols;
	uint32_t first;

	memcpy(&first, data, sizeof(first));
	if (first > size - sizeof(first))
		return;
	data += sizeof(first);
	size -= sizeof(first);
	if (elf_file_open(&image, -1, data, first, NULL))
		return;
	if (!elf_file_open(&debug, -1, data + first, size - first, NULL)) {
		if (!elf_symbols_load(&image, &debug, SYMBOL_NONE, &symbols)) {
			for (uint64_t off = 0; off < 0x4000; off += 0x3f)
				probe(&symbols.table->provider, off);
			elf_symbols_free(&symbols);
		}
		elf_file_close(&debug);
	}
	elf_file_close(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	if (data[0] == 0x7f)
		read_image(data, size);
	else
		read_both(data, size);
	return 0;
}
