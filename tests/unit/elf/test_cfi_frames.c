#include "elf/cfi_frames.h"

#include "elf/budget.h"
#include "tests/unit/cfi_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <unistd.h>

#include <cmocka.h>

#define AT CFI_IMAGE_EH_FRAME_AT
/* A CIE of version 1; addresses are relative to their place, in 4 bytes. */
#define CIE 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

static void bounds_of_our_own_functions_are_found(void **state)
{
	uint64_t here = (uint64_t)(uintptr_t)bounds_of_our_own_functions_are_found, base = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct cfi_place place, again;
	struct cfi_frames *f;
	struct elf_file elf;

	(void)state;
	dl_iterate_phdr(first_base, &base);
	assert_int_equal(elf_file_open(&elf, fd, NULL, 0, NULL), 0);
	assert_int_equal(cfi_frames_open(&elf, &f), 0);
	elf_file_close(&elf);
	assert_int_equal(cfi_frames_find(f, here - base, &place), 0);
	assert_int_equal(place.error, 0);
	assert_int_equal(place.start, here - base);
	assert_true(place.end - place.start > 16);
	/* The sorted table gave the place, without a scan of all entries. */
	assert_false(f->eh_frame.walked);
	int other = dup(fd);

	close(fd);
	cfi_frames_use_fd(f, other);
	assert_int_equal(cfi_frames_find(f, place.end - 1, &again), 0);
	assert_int_equal(again.start, place.start);
	/* After many lookups its table is in memory; results stay, also when memory is freed. */
	for (uint64_t i = 0; i < 3 * CFI_WHOLE_AFTER; i++) {
		if (i == 2 * CFI_WHOLE_AFTER) {
			assert_non_null(f->eh_frame.rows);
			cfi_index_drop(&f->eh_frame);
			assert_null(f->eh_frame.rows);
		}
		assert_int_equal(cfi_frames_find(f, place.start + i % 16, &again), 0);
		assert_int_equal(again.error, 0);
		assert_true(again.start == place.start && again.end == place.end &&
			    again.off == place.off);
	}
	assert_int_equal(cfi_frames_find(f, 0, &again), 0);
	assert_int_equal(again.error, -ENOENT);
	assert_int_equal(cfi_frames_find(f, UINT64_MAX, &again), -ENOENT);
	cfi_frames_free(f);
	close(other);
}

static void little_memory_keeps_few_pages_in_memory(void **state)
{
	Dl_info libc;
	int fd = dladdr((void *)(uintptr_t)gnu_get_libc_version, &libc)
			 ? open(libc.dli_fname, O_RDONLY | O_CLOEXEC)
			 : -1;
	struct cfi_frames *f;
	struct elf_file elf;

	(void)state;
	assert_int_equal(elf_file_open(&elf, fd, NULL, 0, NULL), 0);
	for (int little = 0; little < 2; little++) {
		uint64_t most = 0, left = elf_budget_left(ELF_BUDGET_PAGES);
		struct cfi_place place;

		assert_int_equal(cfi_frames_open(&elf, &f), 0);
		for (uint64_t at = 0; at < elf.bytes; at += 64) {
			assert_int_equal(cfi_frames_find(f, at, &place), 0);
			uint64_t resident =
				f->sections.eh_frame.resident + f->sections.header.resident;

			assert_true(little || left - elf_budget_left(ELF_BUDGET_PAGES) == resident);
			most = resident > most ? resident : most;
		}
		/* One lookup reads a few pieces. */
		if (little)
			assert_true(most <= CFI_RESIDENT_MIN + 4 * CFI_READ_AHEAD);
		else if (most <= CFI_RESIDENT_MIN + 4 * CFI_READ_AHEAD)
			fail_msg("%llu bytes are too few for this test", (unsigned long long)most);
		cfi_frames_free(f);
		assert_int_equal(elf_budget_left(ELF_BUDGET_PAGES), left);
		elf_budget_limit(ELF_BUDGET_PAGES, 1);
	}
	elf_file_close(&elf);
	close(fd);
}

/* The frames of an image with this .eh_frame at AT. */
static struct cfi_frames *frames_of(const void *table, size_t len, bool is_64)
{
	struct cfi_bytes frame = {0}, none = {0};
	struct cfi_frames *f;
	struct elf_file elf;

	cfi_put(&frame, table, len);
	struct cfi_bytes image = cfi_image_of(frame, none, none);

	assert_int_equal(elf_file_open(&elf, -1, image.v, image.len, NULL), 0);
	elf.is_64 = is_64;
	assert_int_equal(cfi_frames_open(&elf, &f), 0);
	elf_file_close(&elf);
	free(image.v);
	free(frame.v);
	return f;
}

static struct cfi_place place_at(struct cfi_frames *f, uint64_t vaddr)
{
	struct cfi_place place;

	assert_int_equal(cfi_frames_find(f, vaddr, &place), 0);
	return place;
}

static void damaged_tables_give_their_readable_rows(void **state)
{
	static const unsigned char cut[] = {0x0c, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1};
	static const unsigned char table[] = {
		CIE,  0x10, 0,    0, 0,    0x18, 0, 0, 0, 0xe4, 0xef,
		0xff, 0xff, 0x20, 0, 0,    0,    0, 0, 0, 0, /* at 0x1000 */
		0x10, 0,    0,    0, 0x99, 0,    0, 0, 0, 0,    0,
		0,    0x20, 0,    0, 0,    0,    0, 0, 0, /* CIE that does not exist */
		0xf0, 0xff, 0,    0,
	};
	struct cfi_frames *f = frames_of(cut, sizeof(cut), true);

	(void)state;
	assert_int_equal(place_at(f, 0x1005).error, -EBADMSG);
	cfi_frames_free(f);
	f = frames_of(table, sizeof(table), true);
	assert_int_equal(place_at(f, 0x1005).error, 0);
	assert_int_equal(place_at(f, 0x1005).start, 0x1000);
	assert_int_equal(place_at(f, 0x101f).end, 0x1020);
	assert_int_equal(place_at(f, 0x1020).error, -EBADMSG);
	cfi_frames_free(f);
}

static void functions_in_any_order_are_found(void **state)
{
	static const unsigned char cie[] = {CIE};
	static const int32_t starts[] = {0x5000, 0x3000, 0x7000, 0x1000};
	unsigned char table[sizeof(cie) + 4 * 20] = {0};

	(void)state;
	memcpy(table, cie, sizeof(cie));
	for (int32_t i = 0; i < 4; i++) {
		int32_t at = 20 + 20 * i,
			fde[] = {16, at + 4, starts[i] - ((int32_t)AT + at + 8), 0x10 + i, 0};

		memcpy(table + at, fde, sizeof(fde));
	}
	struct cfi_frames *f = frames_of(table, sizeof(table), true);

	for (uint64_t i = 0; i < 4; i++) {
		struct cfi_place place = place_at(f, (uint64_t)starts[i] + 0xf + i);

		assert_int_equal(place.error, 0);
		assert_int_equal(place.start, starts[i]);
		assert_int_equal(place.end, (uint64_t)starts[i] + 0x10 + i);
	}
	cfi_frames_free(f);
}

/* A target can map many files whose CFI has no table. */
static void without_work_left_nothing_is_searched(void **state)
{
	static const unsigned char table[] = {CIE,  0x10, 0,    0, 0, 0x18, 0, 0, 0, 0xe4, 0xef,
					      0xff, 0xff, 0x20, 0, 0, 0,    0, 0, 0, 0};
	struct cfi_frames *f = frames_of(table, sizeof(table), true);

	(void)state;
	while (elf_budget_work(0))
		elf_budget_worked(UINT64_MAX);
	assert_int_equal(place_at(f, 0x1005).error, -E2BIG);
	cfi_frames_free(f);
	elf_budget_reset_work();
	f = frames_of(table, sizeof(table), true);
	assert_int_equal(place_at(f, 0x1005).error, 0);
	cfi_frames_free(f);
}

/* Absolute addresses have 4 bytes in a 32-bit image, and relative ones wrap around. */
static void functions_of_32_bit_images_are_found(void **state)
{
	static const unsigned char table[] = {
		0x10, 0, 0,    0, 0,    0,    0,   0,    1, 'z',  'R', 0,    1,    0x7c,
		8,    1, 0x00, 0, 0,    0, /* CIE */
		0x10, 0, 0,    0, 0x18, 0,    0,   0,    0, 0x10, 0,   0xf0, 0x20, 0,
		0,    0, 0,    0, 0,    0,    CIE, 0x10, 0, 0,    0,   0x18, 0,    0,
		0,    0, 0,    0, 0x80, 0x30, 0,   0,    0, 0,    0,   0,    0,
	};
	struct cfi_frames *f = frames_of(table, sizeof(table), false);
	uint64_t wrapped = (uint32_t)(AT + 0x44 + UINT64_C(0x80000000));

	(void)state;
	assert_int_equal(place_at(f, UINT64_C(0xf000101f)).start, UINT64_C(0xf0001000));
	assert_int_equal(place_at(f, UINT64_C(0xf000101f)).end, UINT64_C(0xf0001020));
	assert_int_equal(place_at(f, wrapped).start, wrapped);
	assert_int_equal(place_at(f, wrapped + 0x2f).end, wrapped + 0x30);
	cfi_frames_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_of_our_own_functions_are_found),
		cmocka_unit_test(little_memory_keeps_few_pages_in_memory),
		cmocka_unit_test(damaged_tables_give_their_readable_rows),
		cmocka_unit_test(functions_in_any_order_are_found),
		cmocka_unit_test(functions_of_32_bit_images_are_found),
		cmocka_unit_test(without_work_left_nothing_is_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
