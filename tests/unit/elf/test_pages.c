#include "elf/pages.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define TEXT_BYTES ((size_t)20000)

static unsigned char text[TEXT_BYTES];

/* Writes a header and the packed text to a file, and checks that the text comes out. */
static void check(const void *header, size_t len, bool is_64, bool old)
{
	unsigned char packed[TEXT_BYTES];
	uLongf n = sizeof(packed);
	uint64_t resident = 0;
	struct elf_pages p;
	int fd = memfd_create("section", MFD_CLOEXEC);

	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (unsigned char)(i / 100);
	assert_int_equal(compress(packed, &n, text, TEXT_BYTES), Z_OK);
	assert_true(fd >= 0 && write(fd, header, len) == (ssize_t)len);
	assert_int_equal(write(fd, packed, n), n);
	const struct elf_section section = {.bytes = len + n, .flags = old ? 0 : SHF_COMPRESSED};
	const struct elf_file elf = {.fd = fd, .bytes = len + n, .is_64 = is_64};

	assert_int_equal(elf_pages_of_section(&elf, &section, old, TEXT_BYTES, &p), 0);
	assert_false(p.damaged);
	assert_int_equal(p.bytes, TEXT_BYTES);
	assert_int_equal(elf_pages_need(&p, fd, 0, TEXT_BYTES, &resident), 0);
	assert_memory_equal(p.data, text, TEXT_BYTES);
	elf_pages_forget(&p);
	/* It may be larger than the caller allows. */
	assert_int_equal(elf_pages_of_section(&elf, &section, old, TEXT_BYTES - 1, &p), 0);
	assert_true(p.damaged && !p.bytes);
	close(fd);
}

static void packed_sections_of_all_kinds_come_out(void **state)
{
	const Elf64_Chdr wide = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = TEXT_BYTES};
	const Elf32_Chdr narrow = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = TEXT_BYTES};
	const unsigned char old[12] = {
		'Z', 'L', 'I', 'B', 0, 0, 0, 0, 0, 0, TEXT_BYTES >> 8, TEXT_BYTES & 255};

	(void)state;
	check(&wide, sizeof(wide), true, false);
	check(&narrow, sizeof(narrow), false, false);
	check(old, sizeof(old), true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_sections_of_all_kinds_come_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
