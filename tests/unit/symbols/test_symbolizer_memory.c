/* Names that need more memory than is left, and a later run that has it. */
#include "base/file.h"
#include "elf/budget.h"
#include "profile/profile.h"
#include "symbols/symbolizer_impl.h"
#include "tests/unit/code_map.h"

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

enum { GONE = 99999999 };

struct fixture {
	char dir[40], program[48];
	int store_fd;
	struct profile *profile;
	struct symbolizer *s;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char *data;
	size_t len;

	strcpy(f->dir, "/tmp/test_symbolizer_memory.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	/* The process is unknown, so it gets no private file. */
	assert_int_equal(chmod(f->dir, 0755), 0);
	snprintf(f->program, sizeof(f->program), "%s/program", f->dir);
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/exe", (size_t)1 << 28, &data, &len), 0);
	int fd = open(f->program, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(file_write_all(fd, data, len), 0);
	close(fd);
	free(data);
	f->store_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->store_fd >= 0);
	*state = f;
	return 0;
}

static void end_run(struct fixture *f)
{
	symbolizer_free(f->s);
	profile_free(f->profile);
	f->s = NULL;
	f->profile = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	elf_budget_limit(ELF_BUDGET_SYMBOLS, 0);
	end_run(f);
	unlinkat(f->store_fd, STORE_FILE, 0);
	close(f->store_fd);
	unlink(f->program);
	rmdir(f->dir);
	free(f);
	return 0;
}

static void begin_run(struct fixture *f, bool offline)
{
	struct symbolizer_options options = {.store_dir_fd = f->store_fd,
					     .offline = offline,
					     .recorded_here = true,
					     .recorded_from_ns = 1,
					     .keep_cache = true};
	struct perfdata_record r = {.type = PERF_RECORD_MMAP2,
				    .misc = PERF_RECORD_MISC_USER,
				    .pid = GONE,
				    .tid = GONE,
				    .mmap = {.prot = PROT_READ | PROT_EXEC}};

	end_run(f);
	assert_int_equal(profile_new(&f->profile), 0);
	assert_int_equal(symbolizer_new(f->profile, &options, &f->s), 0);
	dl_iterate_phdr(code_map_find, &r);
	r.mmap.filename = f->program;
	assert_int_equal(symbolizer_apply(f->s, &r), 0);
}

/* The name of a function of this program; "-": none, "": its place. */
static const char *look_up(struct fixture *f, uint64_t function)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, function};
	struct perfdata_record r = {
		.type = PERF_RECORD_SAMPLE, .pid = GONE, .tid = GONE, .time_ns = 1};
	struct symbolizer_sample begun;
	uint32_t thread, stack;

	r.sample.callchain = chain;
	r.sample.ncallchain = 2;
	assert_int_equal(symbolizer_begin(f->s, &r, &SYMBOLIZER_STACK_PLAIN, &begun), 0);
	assert_int_equal(symbolizer_end(f->s, &begun, r.time_ns, &thread, &stack), 0);
	const struct lookup_cache_symbol *symbols = f->s->lookup_cache.symbols.v;
	const struct profile_frame *frame =
		profile_frame_of(f->profile, profile_stack_frame(f->profile, stack));

	if (frame->perf_name != PROFILE_NONE)
		return profile_text_of(f->profile, frame->perf_name, NULL);
	return f->s->lookup_cache.symbols.len && symbols->source == SYMBOL_BOUNDS ? "" : "-";
}

static uint64_t unread(const struct fixture *f)
{
	struct symbolizer_unread left;

	symbolizer_unread(f->s, &left);
	return left.files;
}

static void functions_that_had_only_a_place_get_their_names_with_more_memory(void **state)
{
	struct fixture *f = *state;

	for (int run = 0; run < 2; run++) {
		begin_run(f, false);
		elf_budget_limit(ELF_BUDGET_SYMBOLS, 1);
		assert_string_equal(look_up(f, (uintptr_t)end_run), "");
		assert_int_equal(unread(f), 1);
		assert_int_equal(symbolizer_store(f->s, f->store_fd), 0);
		elf_budget_limit(ELF_BUDGET_SYMBOLS, 0);
	}
	/* Another machine has its place, too. */
	begin_run(f, true);
	assert_string_equal(look_up(f, (uintptr_t)end_run), "");
	assert_int_equal(unread(f), 1);
	for (int run = 0; run < 2; run++) {
		begin_run(f, run);
		assert_string_equal(look_up(f, (uintptr_t)end_run), "end_run");
		assert_int_equal(unread(f), 0);
		assert_int_equal(f->s->lookup_cache.entries.len, 1);
		if (!run)
			assert_int_equal(symbolizer_store(f->s, f->store_fd), 0);
	}
	assert_true(symbolizer_from_store(f->s));
}

/* Whether so much memory is enough for all symbols of the program. */
static bool is_enough(struct fixture *f, uint64_t bytes)
{
	bool enough = true;

	begin_run(f, false);
	elf_budget_limit(ELF_BUDGET_SYMBOLS, bytes);
	look_up(f, (uintptr_t)end_run);
	for (size_t i = 0; i < f->s->lookup_cache.images.len; i++)
		enough &= f->s->lookup_cache.images.v[i].why != IMAGE_REASON_MEMORY;
	return enough;
}

/* The memory is enough for .symtab, which has all names, but not for .dynsym. */
static void an_image_without_a_missing_name_is_not_unread(void **state)
{
	uint64_t few = 1, enough = 1 << 30;
	struct fixture *f = *state;

	while (few + 1 < enough) {
		uint64_t middle = few + (enough - few) / 2;

		*(is_enough(f, middle) ? &enough : &few) = middle;
	}
	assert_false(is_enough(f, few));
	assert_string_equal(look_up(f, (uintptr_t)end_run), "end_run");
	assert_int_equal(unread(f), 0);
	assert_int_equal(symbolizer_store(f->s, f->store_fd), 0);
	begin_run(f, false);
	assert_string_equal(look_up(f, (uintptr_t)end_run), "end_run");
	assert_int_equal(unread(f), 0);
	assert_true(symbolizer_from_store(f->s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			functions_that_had_only_a_place_get_their_names_with_more_memory, setup,
			teardown),
		cmocka_unit_test_setup_teardown(an_image_without_a_missing_name_is_not_unread,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
