#include "symbols/images.h"

#include "base/file.h"
#include "base/hash.h"
#include "tests/unit/allocated_bytes.h"
#include "tests/unit/code_map.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Copies this program without its symbol tables. */
static void write_stripped(const char *path)
{
	char *data;
	size_t len;

	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/exe", (size_t)1 << 28, &data, &len), 0);
	const ElfW(Ehdr) *ehdr = (const void *)data;
	ElfW(Shdr) *sections = (void *)(data + ehdr->e_shoff);

	for (int i = 0; i < ehdr->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM)
			sections[i].sh_type = SHT_PROGBITS;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(file_write_all(fd, data, len), 0);
	close(fd);
	free(data);
}

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

/* Two programs have a nameless function at one address, and the hashes of both are equal. */
static void functions_without_names_keep_their_image(void **state)
{
	char dir[] = "/tmp/test_images.XXXXXX", path[2][40];
	struct perfdata_record r = {
		.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER, .pid = 7, .tid = 7};
	struct images_options options = {.recorded_from_ns = 1};
	struct lookup_cache cache = {0};
	struct kernel_map kernel = {0};
	const uint64_t secret = hash_secret[0];
	uint32_t image[2], symbol;
	uint64_t base = 0;
	struct images *im;
	bool anonymous, timed;

	(void)state;
	assert_non_null(mkdtemp(dir));
	/* The process is unknown, so it gets no private file. */
	assert_int_equal(chmod(dir, 0755), 0);
	dl_iterate_phdr(first_base, &base);
	dl_iterate_phdr(code_map_find, &r);
	uint64_t here = (uint64_t)(uintptr_t)functions_without_names_keep_their_image;

	assert_int_equal(images_new(&cache, &kernel, NULL, &options, &im), 0);
	r.mmap.prot = PROT_READ | PROT_EXEC;
	/* Function bounds give this function's first vaddr as the first word of the hash. */
	hash_secret[0] = here - base;
	for (int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%d", dir, i);
		write_stripped(path[i]);
		r.mmap.filename = path[i];
		assert_int_equal(images_add_record(im, &r, &image[i], &anonymous), 0);
		assert_int_equal(images_lookup(im, image[i], here - r.mmap.addr + r.mmap.pgoff, 1,
					       &symbol, &timed),
				 0);
		assert_int_not_equal(symbol, LOOKUP_NONE);
		assert_int_equal(cache.symbols.v[symbol].source, SYMBOL_BOUNDS);
		assert_int_equal(cache.symbols.v[symbol].image, image[i]);
		unlink(path[i]);
	}
	hash_secret[0] = secret;
	images_free(im);
	lookup_cache_free(&cache);
	kernel_map_free(&kernel);
	rmdir(dir);
}

#define SECTIONS 16000
#define NAMES_BYTES 1000000
#define LINKS 8

/* An ELF file with as many section headers as possible, and long names of them. */
static void write_sections(const char *path)
{
	const size_t names_at = 0x1000, table_at = names_at + NAMES_BYTES;
	const size_t bytes = table_at + SECTIONS * sizeof(Elf64_Shdr);
	unsigned char *data = calloc(1, bytes);
	Elf64_Ehdr *head = (void *)data;
	Elf64_Shdr *sections = (void *)(data + table_at);

	assert_non_null(data);
	*head = (Elf64_Ehdr){.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_X86_64,
			     .e_version = EV_CURRENT,
			     .e_phoff = sizeof(*head),
			     .e_shoff = table_at,
			     .e_ehsize = sizeof(*head),
			     .e_phentsize = sizeof(Elf64_Phdr),
			     .e_phnum = 1,
			     .e_shentsize = sizeof(*sections),
			     .e_shnum = SECTIONS,
			     .e_shstrndx = SECTIONS - 1};
	*(Elf64_Phdr *)(void *)(head + 1) = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = bytes, .p_memsz = bytes};
	memset(data + names_at + 1, 'x', NAMES_BYTES - 2);
	for (int i = 1; i < SECTIONS; i++)
		sections[i].sh_type = SHT_PROGBITS;
	sections[SECTIONS - 1] =
		(Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = NAMES_BYTES};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(file_write_all(fd, (const char *)data, bytes), 0);
	close(fd);
	free(data);
}

/* A process can map a file under many names. */
static void headers_of_images_are_not_kept(void **state)
{
	char dir[] = "/tmp/test_images.XXXXXX", file[40], path[48];
	struct perfdata_record r = {.type = PERF_RECORD_MMAP2,
				    .misc = PERF_RECORD_MISC_USER,
				    .pid = 7,
				    .tid = 7,
				    .mmap = {.addr = 0x1000,
					     .len = 0x1000,
					     .prot = PROT_READ | PROT_EXEC,
					     .filename = path}};
	struct images_options options = {.recorded_from_ns = 1};
	struct lookup_cache cache = {0};
	struct kernel_map kernel = {0};
	uint32_t image, symbol;
	struct images *im;
	size_t before;
	bool anonymous, timed;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(file, sizeof(file), "%s/a", dir);
	write_sections(file);
	assert_int_equal(images_new(&cache, &kernel, NULL, &options, &im), 0);
	before = allocated_bytes();
	for (int i = 0; i < LINKS; i++) {
		snprintf(path, sizeof(path), "%s%d", file, i);
		assert_int_equal(link(file, path), 0);
		assert_int_equal(images_add_record(im, &r, &image, &anonymous), 0);
		assert_int_equal(images_lookup(im, image, 0x10, 1, &symbol, &timed), 0);
		unlink(path);
	}
	assert_int_equal(images_stats(im).opened, LINKS);
	assert_true(allocated_bytes() < before + 1000000);
	images_free(im);
	lookup_cache_free(&cache);
	kernel_map_free(&kernel);
	unlink(file);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_without_names_keep_their_image),
		cmocka_unit_test(headers_of_images_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
