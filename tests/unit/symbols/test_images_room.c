/* Images of a process that take all the memory they may, and a neighbour that comes later. */
#include "base/file.h"
#include "container/opener.h"
#include "elf/budget.h"
#include "elf/elf_file.h"
#include "symbols/images_impl.h"
#include "symbols/store/store_words.h"
#include "tests/unit/code_map.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { GREEDY = 1, NEIGHBOUR = 2, IMAGES = 16, FIT = 4 };

static bool no_memory;

__typeof__(elf_file_read) __real_elf_file_read, __wrap_elf_file_read;

int __wrap_elf_file_read(const struct elf_file *f, uint64_t file_off, uint64_t bytes, uint64_t max,
			 unsigned char **ret_data)
{
	return no_memory ? -ENOMEM : __real_elf_file_read(f, file_off, bytes, max, ret_data);
}

static bool no_answer;

__typeof__(opener_our_file) __real_opener_our_file, __wrap_opener_our_file;
__typeof__(opener_own_file) __real_opener_own_file, __wrap_opener_own_file;

int __wrap_opener_our_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes,
			   int *ret_fd)
{
	return no_answer ? -ETIME : __real_opener_our_file(o, pid, path, max_bytes, ret_fd);
}

int __wrap_opener_own_file(struct opener *o, pid_t pid, uid_t uid, const char *path,
			   uint64_t max_bytes, int *ret_fd)
{
	return no_answer ? -ETIME : __real_opener_own_file(o, pid, uid, path, max_bytes, ret_fd);
}

struct fixture {
	struct lookup_cache cache;
	struct kernel_map kernel;
	struct images *images;
	struct perfdata_record code; /* the map of this program's code */
	char dir[32], file[40];
};

static void begin(struct fixture *f)
{
	const struct images_options options = {.jit = {.capture_dir_fd = -1},
					       .recorded_from_ns = 1};
	char *data;
	size_t len;

	*f = (struct fixture){.dir = "/tmp/test_images.XXXXXX",
			      .code = {.type = PERF_RECORD_MMAP2,
				       .misc = PERF_RECORD_MISC_USER,
				       .mmap = {.prot = PROT_READ | PROT_EXEC}}};
	dl_iterate_phdr(code_map_find, &f->code);
	assert_non_null(mkdtemp(f->dir));
	/* The processes are unknown, so they get no private file. */
	assert_int_equal(chmod(f->dir, 0755), 0);
	snprintf(f->file, sizeof(f->file), "%s/a", f->dir);
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/exe", (size_t)1 << 28, &data, &len), 0);
	int fd = open(f->file, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(file_write_all(fd, data, len), 0);
	close(fd);
	free(data);
	elf_budget_reset_work();
	elf_budget_limit(ELF_BUDGET_SYMBOLS, 0);
	assert_int_equal(images_new(&f->cache, &f->kernel, NULL, &options, &f->images), 0);
}

static void end(struct fixture *f)
{
	elf_budget_work_for(0);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, 0);
	images_free(f->images);
	lookup_cache_free(&f->cache);
	kernel_map_free(&f->kernel);
	unlink(f->file);
	rmdir(f->dir);
}

/* Looks up a function of this program in its n-th link, for a process. "": it has no name. */
static const char *look_up(struct fixture *f, int32_t pid, int n, uint64_t function)
{
	struct perfdata_record r = f->code;
	char path[64];
	uint32_t image, symbol;
	bool anonymous, timed;

	snprintf(path, sizeof(path), "%s%d", f->file, n);
	assert_int_equal(link(f->file, path), 0);
	r.pid = r.tid = pid;
	r.mmap.filename = path;
	f->cache.taker = pid;
	elf_budget_work_for(pid);
	assert_int_equal(images_add_record(f->images, &r, &image, &anonymous), 0);
	assert_int_equal(images_lookup(f->images, image, function - r.mmap.addr + r.mmap.pgoff, 1,
				       &symbol, &timed),
			 0);
	unlink(path);
	/* A function without a name gets its place. */
	return symbol == LOOKUP_NONE || f->cache.symbols.v[symbol].source == SYMBOL_BOUNDS
		       ? ""
		       : intern_text(&f->cache.texts, f->cache.symbols.v[symbol].name);
}

static void a_process_with_many_images_takes_no_names_of_others(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	uint64_t before = elf_budget_left(ELF_BUDGET_SYMBOLS);

	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)begin), "begin");
	uint64_t one = before - elf_budget_left(ELF_BUDGET_SYMBOLS);

	assert_true(one > 0);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, FIT * one);
	for (int i = 1; i <= IMAGES; i++)
		assert_string_equal(look_up(&f, GREEDY, i, (uintptr_t)begin), "begin");
	assert_string_equal(look_up(&f, NEIGHBOUR, IMAGES + 1, (uintptr_t)begin), "begin");
	/* Tables are read again, and count once. */
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)end), "end");
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)end), "end");
	assert_int_equal(images_stats(f.images).opened, IMAGES + 2);
	assert_int_equal(images_stats(f.images).missing, 0);
	end(&f);
}

static void an_image_that_finds_no_memory_lacks_its_names(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	no_memory = true;
	assert_string_equal(look_up(&f, GREEDY, 0, (uintptr_t)begin), "");
	no_memory = false;
	assert_int_equal(images_stats(f.images).missing, 1);
	assert_string_equal(look_up(&f, NEIGHBOUR, 1, (uintptr_t)begin), "begin");
	end(&f);
}

/* Looks up a function of the neighbour, and makes only so many of its images fit. */
static void begin_full(struct fixture *f, int fit)
{
	begin(f);
	uint64_t before = elf_budget_left(ELF_BUDGET_SYMBOLS);

	assert_string_equal(look_up(f, NEIGHBOUR, 0, (uintptr_t)begin), "begin");
	uint64_t one = before - elf_budget_left(ELF_BUDGET_SYMBOLS);

	elf_budget_limit(ELF_BUDGET_SYMBOLS, one * fit + 1);
}

/* For example of a file in a directory that a process keeps locked. */
static void a_lookup_that_does_not_end_has_its_own_reason(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	no_answer = true;
	assert_string_equal(look_up(&f, GREEDY, 0, (uintptr_t)begin), "");
	no_answer = false;
	assert_int_equal(f.cache.images.v[0].why, IMAGE_REASON_NO_ANSWER);
	assert_int_equal(store_word_reason_of(store_word_reason(IMAGE_REASON_NO_ANSWER)),
			 IMAGE_REASON_NO_ANSWER);
	end(&f);
}

static void spend_all_work(int32_t pid)
{
	elf_budget_work_for(pid);
	for (int i = 0; i < 4; i++) /* the reserve, too */
		elf_budget_worked(ELF_BUDGET_WORK_MAX);
}

static void processes_take_turns_only_while_work_is_left(void **state)
{
	struct fixture f;

	(void)state;
	begin_full(&f, FIT + 1);
	for (int i = 1; i < 3; i++)
		assert_string_equal(look_up(&f, NEIGHBOUR, i, (uintptr_t)begin), "begin");
	/* To read a table takes about three times what is kept of it. */
	spend_all_work(GREEDY);
	assert_string_equal(look_up(&f, GREEDY, 3, (uintptr_t)begin), "begin");
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)end), "");
	assert_string_equal(look_up(&f, GREEDY, 3, (uintptr_t)end), "end");
	assert_int_equal(f.cache.images.v[0].why, IMAGE_REASON_MEMORY);
	assert_int_equal(images_stats(f.images).missing, 1);
	/* Work comes back with the time. */
	elf_budget_reset_work();
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)look_up), "look_up");
	assert_int_equal(f.cache.images.v[0].why, IMAGE_REASON_NONE);
	/* A later run looks up the function without a name again. */
	assert_true(f.cache.images.v[0].unread);
	end(&f);
}

static void large_tables_are_freed_and_cost_only_their_process(void **state)
{
	const uint64_t large = (uint64_t)600 << 20;
	struct fixture f;

	(void)state;
	begin_full(&f, FIT);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, large + 1);
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)begin), "begin");
	f.images->sources.v[1].elf->symbols_taken += large;
	elf_budget_add(ELF_BUDGET_SYMBOLS, large);
	assert_string_equal(look_up(&f, NEIGHBOUR, 2, (uintptr_t)begin), "begin");
	assert_null(f.images->sources.v[1].elf);
	assert_non_null(f.images->sources.v[0].elf);
	/* As much as of a fresh budget. */
	assert_true(elf_budget_work(ELF_BUDGET_WORK_MAX / 2));
	elf_budget_reset_work();
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)end), "end");
	assert_false(elf_budget_work(ELF_BUDGET_WORK_MAX / 2));
	end(&f);
}

/* An image of one process that never fits must not cost the others their tables again and again. */
static void room_for_nothing_is_work_of_the_process_that_needs_it(void **state)
{
	struct fixture f;

	(void)state;
	begin_full(&f, FIT);
	uint64_t left = elf_budget_left(ELF_BUDGET_SYMBOLS);

	spend_all_work(GREEDY);
	no_memory = true;
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)begin), "");
	no_memory = false;
	assert_true(elf_budget_left(ELF_BUDGET_SYMBOLS) == left);
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)end), "end");
	end(&f);
}

static int count_open(const struct fixture *f, int32_t pid)
{
	int n = 0;

	for (size_t i = 0; i < f->images->sources.len; i++)
		n += f->images->sources.v[i].elf && f->images->sources.v[i].held_for == pid;
	return n;
}

/* look_up removes each file, so an image whose file was closed is gone. */
static void images_that_are_gone_lose_their_names_only_to_another_process(void **state)
{
	struct fixture f;

	(void)state;
	begin_full(&f, 2 * FIT);
	f.images->files_max = 1;
	for (int i = 1; i <= IMAGES; i++)
		look_up(&f, GREEDY, i, (uintptr_t)begin);
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)end), "end");
	int before = count_open(&f, GREEDY);

	assert_string_equal(look_up(&f, NEIGHBOUR, IMAGES + 1, (uintptr_t)begin), "begin");
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)end), "end");
	assert_in_range(count_open(&f, GREEDY), 1, before - 1);
	end(&f);
}

static void a_search_that_does_not_end_makes_no_image_gone(void **state)
{
	struct fixture f;
	char path[64];

	(void)state;
	begin(&f);
	f.images->files_max = 1;
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)begin), "begin");
	assert_string_equal(look_up(&f, GREEDY, 2, (uintptr_t)begin), "begin");
	snprintf(path, sizeof(path), "%s1", f.file);
	assert_int_equal(link(f.file, path), 0);
	no_answer = true;
	assert_false(images_make_room(f.images, 1));
	no_answer = false;
	assert_true(images_make_room(f.images, 1));
	assert_null(f.images->sources.v[0].elf);
	unlink(path);
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)end), "end");
	end(&f);
}

/* Returns the lines of an address of this program in its n-th link, for a process. */
static uint32_t look_up_lines(struct fixture *f, int32_t pid, int n, uint64_t addr)
{
	struct perfdata_record r = f->code;
	uint32_t image, chain;
	bool anonymous, unread;
	char path[64];

	snprintf(path, sizeof(path), "%s%d", f->file, n);
	assert_int_equal(link(f->file, path), 0);
	r.pid = r.tid = pid;
	r.mmap.filename = path;
	f->cache.taker = pid;
	assert_int_equal(images_add_record(f->images, &r, &image, &anonymous), 0);
	assert_int_equal(images_lookup_lines(f->images, image, 0, addr - r.mmap.addr + r.mmap.pgoff,
					     1, &chain, &unread),
			 0);
	unlink(path);
	assert_true(chain != LOOKUP_NONE || unread);
	return chain;
}

static void lines_of_a_process_take_a_part_of_the_memory(void **state)
{
	enum { ADDRS = 64 };
	struct fixture f;
	int named = 0;

	(void)state;
	begin(&f);
	f.cache.line_bytes.limit = ADDRS * LOOKUP_ENTRY_BYTES;
	for (int i = 0; i < ADDRS; i++)
		named += look_up_lines(&f, GREEDY, 0, (uintptr_t)begin + i) != LOOKUP_NONE;
	assert_in_range(named, 1, ADDRS / 2 + 1);
	assert_int_equal(f.cache.left_out, ADDRS - named);
	assert_int_not_equal(look_up_lines(&f, NEIGHBOUR, 1, (uintptr_t)begin), LOOKUP_NONE);
	end(&f);
}

/* 2^30 sections: more than any memory helps with. */
static void a_file_that_is_too_large_frees_nobody(void **state)
{
	struct fixture f;
	const uint16_t none = 0;
	const uint64_t sections = 1 << 30;
	Elf64_Ehdr header;

	(void)state;
	begin(&f);
	assert_string_equal(look_up(&f, NEIGHBOUR, 0, (uintptr_t)begin), "begin");
	assert_non_null(f.images->sources.v[0].elf);
	int fd = open(f.file, O_RDWR);

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, &none, sizeof(none), offsetof(Elf64_Ehdr, e_shnum)),
			 sizeof(none));
	assert_int_equal(pwrite(fd, &sections, sizeof(sections),
				(off_t)(header.e_shoff + offsetof(Elf64_Shdr, sh_size))),
			 sizeof(sections));
	close(fd);
	assert_string_equal(look_up(&f, GREEDY, 1, (uintptr_t)begin), "");
	assert_non_null(f.images->sources.v[0].elf);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_with_many_images_takes_no_names_of_others),
		cmocka_unit_test(a_file_that_is_too_large_frees_nobody),
		cmocka_unit_test(an_image_that_finds_no_memory_lacks_its_names),
		cmocka_unit_test(a_lookup_that_does_not_end_has_its_own_reason),
		cmocka_unit_test(processes_take_turns_only_while_work_is_left),
		cmocka_unit_test(large_tables_are_freed_and_cost_only_their_process),
		cmocka_unit_test(room_for_nothing_is_work_of_the_process_that_needs_it),
		cmocka_unit_test(images_that_are_gone_lose_their_names_only_to_another_process),
		cmocka_unit_test(a_search_that_does_not_end_makes_no_image_gone),
		cmocka_unit_test(lines_of_a_process_take_a_part_of_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
