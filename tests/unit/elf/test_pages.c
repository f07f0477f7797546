#include "elf/pages.h"

#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
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

/* Writes a header and the packed text to a file; *ret_bytes: of both. Returns its descriptor. */
static int pack(const void *header, size_t len, size_t *ret_bytes)
{
	unsigned char packed[TEXT_BYTES];
	uLongf n = sizeof(packed);
	int fd = memfd_create("section", MFD_CLOEXEC);

	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (unsigned char)(i / 100);
	assert_int_equal(compress(packed, &n, text, TEXT_BYTES), Z_OK);
	assert_true(fd >= 0 && write(fd, header, len) == (ssize_t)len);
	assert_int_equal(write(fd, packed, n), n);
	*ret_bytes = len + n;
	return fd;
}

/* Checks that the packed text comes out after such a header. */
static void check(const void *header, size_t len, bool is_64, bool old)
{
	uint64_t resident = 0;
	struct elf_pages p;
	size_t bytes;
	int fd = pack(header, len, &bytes);
	const struct elf_section section = {.bytes = bytes, .flags = old ? 0 : SHF_COMPRESSED};
	const struct elf_file elf = {.fd = fd, .bytes = bytes, .is_64 = is_64};

	assert_int_equal(elf_pages_of_section(&elf, &section, old, TEXT_BYTES, &p), 0);
	assert_false(p.damaged);
	assert_int_equal(p.bytes, TEXT_BYTES);
	assert_int_equal(elf_pages_need(&p, fd, 0, TEXT_BYTES, &resident), 0);
	assert_memory_equal(p.data, text, TEXT_BYTES);
	elf_pages_forget(&p);
	/* It may be larger than the caller allows. */
	assert_int_equal(elf_pages_of_section(&elf, &section, old, TEXT_BYTES - 1, &p), 0);
	assert_true(p.damaged && p.too_large && !p.bytes);
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

static void all_unpacked_sections_share_a_limit(void **state)
{
	const Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = TEXT_BYTES};
	uint64_t resident = 0, before = elf_budget_left(ELF_BUDGET_SECTIONS);
	struct elf_pages p, q, damaged;
	size_t bytes;
	int fd = pack(&header, sizeof(header), &bytes);
	struct elf_section section = {.bytes = bytes, .flags = SHF_COMPRESSED};
	const struct elf_file elf = {.fd = fd, .bytes = bytes, .is_64 = true};

	(void)state;
	assert_true(before > 0);
	elf_budget_limit(ELF_BUDGET_SECTIONS, 2 * TEXT_BYTES - 1);
	assert_int_equal(elf_pages_of_section(&elf, &section, false, TEXT_BYTES, &p), 0);
	q = p;
	assert_int_equal(elf_pages_need(&p, fd, 0, 1, &resident), 0);
	assert_int_equal(elf_pages_need(&q, fd, 0, 1, &resident), -E2BIG);
	assert_int_equal(elf_pages_need(&q, fd, 0, 1, &resident), -E2BIG);
	/* There is room again after the first one. */
	elf_pages_forget(&p);
	assert_int_equal(elf_pages_need(&q, fd, 0, TEXT_BYTES, &resident), 0);
	assert_memory_equal(q.data, text, TEXT_BYTES);
	elf_pages_forget(&q);
	/* A damaged section keeps nothing. */
	section.bytes -= 100;
	assert_int_equal(elf_pages_of_section(&elf, &section, false, TEXT_BYTES, &damaged), 0);
	assert_int_equal(elf_pages_need(&damaged, fd, 0, 1, &resident), -EBADMSG);
	elf_pages_forget(&damaged);
	assert_int_equal(elf_budget_left(ELF_BUDGET_SECTIONS), 2 * TEXT_BYTES - 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_sections_of_all_kinds_come_out),
		cmocka_unit_test(all_unpacked_sections_share_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
