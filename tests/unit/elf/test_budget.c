/* elf/budget: files that are small on disk cause a bounded amount of work, all together. */
#include "elf/budget.h"

#include "base/clock.h"
#include "elf/elf_file.h"
#include "elf/pages.h"
#include "tests/unit/fake_memory.h"

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

#define MIB ((uint64_t)1 << 20)

static int reset(void **state)
{
	(void)state;
	elf_budget_reset_work();
	return 0;
}

/* More of it is allowed each second. */
static void work_is_limited(void **state)
{
	uint64_t until_ns = clock_monotonic_ns() + 20 * NS_PER_S;

	(void)state;
	/* Files that are too large cost the others nothing. */
	for (int i = 0; i < 4; i++)
		assert_false(elf_budget_work(ELF_BUDGET_WORK_MAX));
	assert_false(elf_budget_work(UINT64_MAX));
	assert_true(elf_budget_work(ELF_BUDGET_WORK_MAX / 2));
	assert_false(elf_budget_work(ELF_BUDGET_WORK_MAX / 2));
	assert_true(elf_budget_work(ELF_BUDGET_WORK_MAX / 4));
	elf_budget_worked(UINT64_MAX);
	assert_false(elf_budget_work(0));
	elf_budget_reset_work();
	elf_budget_worked(ELF_BUDGET_WORK_MAX);
	while (!elf_budget_work(0) && clock_monotonic_ns() < until_ns)
		usleep(10000);
	assert_true(elf_budget_work(0));
}

/* Work in small pieces until no more is allowed. Returns how much. */
static uint64_t work_in_pieces(int32_t pid)
{
	uint64_t done = 0;

	elf_budget_work_for(pid);
	while (done <= ELF_BUDGET_WORK_MAX && elf_budget_work(MIB / 4)) {
		elf_budget_worked(MIB / 4); /* its size was not known before */
		done += MIB / 2;
	}
	return done;
}

/* Some processes have the same share, by chance. */
static void processes_share_work(void **state)
{
	size_t served = 0;

	(void)state;
	/* Many small files of one process leave some to others. */
	assert_in_range(work_in_pieces(1000), ELF_BUDGET_WORK_MAX / 9 * 8 - 2 * MIB,
			ELF_BUDGET_WORK_MAX / 9 * 8 + 64 * MIB);
	for (int32_t pid = 1001; pid < 1005; pid++) {
		elf_budget_work_for(pid);
		served += elf_budget_work(16 * MIB);
	}
	assert_in_range(served, 2, 4);
	elf_budget_work_for(1000);
	assert_false(elf_budget_work(MIB));
	/* Many such processes leave the reserve. */
	for (int32_t pid = 2000; pid < 2020; pid++)
		(void)work_in_pieces(pid);
	elf_budget_work_for(0);
	/* Some comes back each second, also while the test is stopped. */
	assert_false(elf_budget_work(64 * MIB));
	served = 0;
	for (int32_t pid = 3000; pid < 3020; pid++) {
		elf_budget_work_for(pid);
		served += elf_budget_work(ELF_BUDGET_WORK_SMALL);
	}
	assert_in_range(served, 12, 20);
	elf_budget_work_for(0);
}

/* Reads DWARF in small pieces until no more is allowed. Returns how many steps. */
static uint64_t read_in_pieces(int32_t pid)
{
	uint64_t done = 0;

	elf_budget_work_for(pid);
	while (done <= ELF_BUDGET_STEPS_MAX && elf_budget_steps(MIB))
		done += MIB;
	return done;
}

static void processes_share_steps(void **state)
{
	size_t served = 0;

	(void)state;
	assert_in_range(read_in_pieces(1000), ELF_BUDGET_STEPS_MAX / 9 * 8 - 2 * MIB,
			ELF_BUDGET_STEPS_MAX / 9 * 8 + 2 * MIB);
	for (int32_t pid = 1001; pid < 1005; pid++)
		served += read_in_pieces(pid) >= ELF_BUDGET_STEPS_SMALL;
	assert_in_range(served, 3, 4);
	elf_budget_work_for(0);
	elf_budget_reset_steps(ELF_BUDGET_STEPS_MAX);
}

static int open_file(uint64_t bytes)
{
	const Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT},
				   .e_type = ET_DYN,
				   .e_machine = EM_X86_64,
				   .e_version = EV_CURRENT,
				   .e_ehsize = sizeof(header)};
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct parse_error err = {0};
	struct elf_file f;

	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	int r = elf_file_open(&f, fd, NULL, 0, &err);

	/* True of the first one, too. */
	if (r)
		assert_non_null(strstr(err.what, "it is mostly holes, and larger than"));
	if (!r)
		elf_file_close(&f);
	close(fd);
	return r;
}

static void files_of_holes_are_work(void **state)
{
	(void)state;
	assert_int_equal(open_file(ELF_BUDGET_WORK_MAX), -E2BIG);
	assert_int_equal(open_file(400 * MIB), 0);
	assert_int_equal(open_file(400 * MIB), -E2BIG);
	assert_int_equal(open_file(400 * MIB), -E2BIG);
	/* Others are not. */
	assert_int_equal(open_file(4096), 0);
}

/* The stated size is wrong, so the memory is free again for the next one. */
static void failed_unpacking_is_work(void **state)
{
	enum { BYTES = 200 << 20 };
	const Elf64_Chdr header = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = BYTES};
	unsigned char packed[64];
	uLongf n = sizeof(packed);
	int fd = memfd_create("section", MFD_CLOEXEC), good = 0;
	uint64_t resident = 0;
	struct elf_pages p;

	(void)state;
	assert_int_equal(compress(packed, &n, (const unsigned char *)"text", 4), Z_OK);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, packed, n), n);
	const struct elf_section section = {.bytes = sizeof(header) + n, .flags = SHF_COMPRESSED};
	const struct elf_file elf = {.fd = fd, .bytes = section.bytes, .is_64 = true};

	elf_budget_limit(ELF_BUDGET_SECTIONS, 2 * (uint64_t)BYTES);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(elf_pages_of_section(&elf, &section, false, BYTES, &p), 0);
		int r = elf_pages_need(&p, fd, 0, 1, &resident);

		good += r == -EBADMSG;
		assert_true(r == -EBADMSG || (good && r == -E2BIG));
		elf_pages_forget(&p);
	}
	assert_in_range(good, 5, 6);
	close(fd);
}

/* To read a large file takes more than the limit, but only of what is left. */
static void memory_that_is_given_back_may_be_three_times_the_limit(void **state)
{
	const uint64_t limit = FAKE_MEMORY_BYTES / 4 + 1;

	(void)state;
	elf_budget_limit(ELF_BUDGET_SYMBOLS, 0);
	assert_int_equal(elf_budget_take(ELF_BUDGET_SYMBOLS, limit / 2), 0);
	fake_memory_left = 8 * limit / 3 - 4;
	assert_int_equal(elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, 2 * limit), -E2BIG);
	fake_memory_left = 8 * limit / 3 + 4;
	assert_int_equal(elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, 2 * limit), 0);
	fake_memory_left = FAKE_MEMORY_BYTES;
	assert_int_equal(elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, limit), -E2BIG);
	assert_int_equal(elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, UINT64_MAX), -E2BIG);
	assert_int_equal(elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, limit / 2), 0);
	assert_int_equal(elf_budget_take(ELF_BUDGET_SYMBOLS, 1), -E2BIG);
	elf_budget_give(ELF_BUDGET_SYMBOLS, limit / 2 + 2 * limit + limit / 2);
	assert_int_equal(elf_budget_left(ELF_BUDGET_SYMBOLS), limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(work_is_limited, reset),
		cmocka_unit_test_setup(processes_share_work, reset),
		cmocka_unit_test(processes_share_steps),
		cmocka_unit_test(memory_that_is_given_back_may_be_three_times_the_limit),
		cmocka_unit_test_setup(files_of_holes_are_work, reset),
		cmocka_unit_test_setup(failed_unpacking_is_work, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
