/* Input: an ELF file. If the first byte is not 0x7f: a length of 4 bytes, the image, then its debug
 * file. covers: symbols/symtab/image.c elf/debug_file.c elf/elf_file.c symbols/symtab/elf_symbols.c
 * symbols/symtab/symtab.c symbols/symtab/symtab_finish.c symbols/symtab/perf_tree.c
 * base/radix_sort.c */
#include "elf/debug_file.h"
#include "symbols/symtab/elf_symbols.h"
#include "symbols/symtab/image.h"
#include "tests/fuzz/fuzz_dir.h"
#include "tests/fuzz/fuzz_probe.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void probe(struct symbol_provider *p, uint64_t addr)
{
	struct symbol s;

	(void)fuzz_probe(p, addr, &s);
}

static void probe_image(struct image *image)
{
	char hex[2 * BUILD_ID_MAX + 1];
	uint64_t vaddr, back;

	build_id_hex(&image->build_id, hex);
	for (uint64_t off = 0; off < 0x4000; off += 0x3f) {
		if (image->symbols)
			probe(image->symbols, off);
		/* A mapped address of a segment maps back to some segment. */
		if (!image_vaddr(image, off, &vaddr) &&
		    elf_segments_file_off(image->segments, image->nsegments, vaddr, &back))
			abort();
	}
	for (size_t i = 0; image->symbols && i < image->nsegments; i++) {
		probe(image->symbols, image->segments[i].file_off);
		probe(image->symbols,
		      image->segments[i].file_off + image->segments[i].mem_bytes - 1);
	}
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, data, size))
		abort();
	return fd;
}

/* From memory, and as a file. */
static void read_image(const uint8_t *data, size_t size)
{
	struct build_id id;
	struct image *image;
	struct parse_error err;
	int fd = file_of(data, size);
	struct elf_file file;

	if (!image_from_memory(data, size, SYMBOL_NONE, &image, &err)) {
		probe_image(image);
		image_free(image);
	}
	if (!elf_file_open(&file, fd, NULL, 0, &err)) {
		if (!image_open(&file, NULL, NULL, 0, &image)) {
			if (!elf_file_build_id(&file, &id) &&
			    (id.len != image->build_id.len ||
			     memcmp(id.bytes, image->build_id.bytes, id.len) != 0))
				abort();
			probe_image(image);
			image_free(image);
		}
		elf_file_close(&file);
	}
	close(fd);
}

/* Stores a stripped file and a debug file at the searched paths: by the image's name, and by its
 * debug link. */
static void find_debug_file(const uint8_t *image_data, size_t image_size, const uint8_t *debug,
			    size_t debug_size)
{
	int fd = file_of(image_data, image_size);
	static struct opener_place root = {.own = true};
	struct image *image;
	struct parse_error err;
	struct elf_file file;

	fuzz_dir_put("usr/lib/debug/opt/app.debug", debug, debug_size);
	fuzz_dir_put("opt/.debug/lib.debug", debug, debug_size);
	if (!root.opener && opener_new_in(fuzz_dir(), &root.opener))
		abort();
	if (!elf_file_open(&file, fd, NULL, 0, &err)) {
		if (!image_open(&file, "/opt/app", &root, 1, &image)) {
			probe_image(image);
			image_free(image);
		}
		elf_file_close(&file);
	}
	close(fd);
}

/* The same without a check that both belong together. */
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
	find_debug_file(data, first, data + first, size - first);
	if (elf_file_open(&image, -1, data, first, NULL))
		return;
	if (!elf_file_open(&debug, -1, data + first, size - first, NULL)) {
		for (enum elf_symbols_debug kind = ELF_SYMBOLS_SEPARATE; kind <= ELF_SYMBOLS_MINI;
		     kind++) {
			if (elf_symbols_load(&image, &debug, kind, SYMBOL_NONE, &symbols))
				continue;
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
