#include "recording/kept_stacks.h"

#include "recording/limits.h"

#include "base/file.h"
#include "recording/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	char dir[32];
	int fd;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_kept.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unlinkat(f->fd, RECORDING_STACKS, 0);
	close(f->fd);
	rmdir(f->dir);
	free(f);
	return 0;
}

static const uint64_t chains[][4] = {
	{10, 20, 30, 40}, {11, 20, 30, 40}, {20, 30, 40}, {10, 20, 30, 40}, {0}, {10, 10, 10, 10}};
static const size_t lens[] = {4, 4, 3, 4, 0, 4};
#define CHAINS (sizeof(lens) / sizeof(*lens))

static void put(int dir_fd)
{
	struct kept_stacks k = {0};

	for (size_t i = 0; i < CHAINS; i++) {
		struct kept_stack row = {.file_off = 100 + i,
					 .grade = (uint8_t)(i % 5),
					 .end = (uint8_t)i,
					 .first_spliced = 2,
					 .first_guess = UINT16_MAX};

		assert_int_equal(kept_stacks_add(&k, &row, chains[i], lens[i]), 0);
	}
	assert_int_equal(k.nodes.len, 3 + 2 + 4);
	assert_int_equal(kept_stacks_write(&k, dir_fd), 0);
	kept_stacks_free(&k);
}

static void stacks_are_read_back(void **state)
{
	const struct fixture *f = *state;
	struct kept_stacks k;
	struct parse_error err = {0};
	uint64_t words[8];

	assert_int_equal(kept_stacks_read(f->fd, 0, &k, &err), -ENOENT);
	put(f->fd);
	assert_int_equal(kept_stacks_read(f->fd, 0, &k, &err), 0);
	assert_int_equal(k.rows.len, CHAINS);
	for (size_t i = 0; i < CHAINS; i++) {
		size_t n = 1;

		words[0] = 7;
		kept_stacks_append_words(&k, &k.rows.v[i], words, &n);
		assert_int_equal(n, 1 + lens[i]);
		assert_memory_equal(words + 1, chains[i], lens[i] * sizeof(*words));
		assert_int_equal(k.rows.v[i].file_off, 100 + i);
		assert_int_equal(k.rows.v[i].grade, i % 5);
		assert_int_equal(k.rows.v[i].first_spliced, 2);
	}
	kept_stacks_free(&k);
	memset(&k, 0, sizeof(k));
	assert_int_equal(
		kept_stacks_add(&k, &(struct kept_stack){0}, words, KEPT_STACKS_DEPTH_MAX + 1),
		-E2BIG);
	kept_stacks_free(&k);
}

static void stacks_keep_to_the_memory(void **state)
{
	const struct fixture *f = *state;
	struct kept_stacks k = {.memory_max = 4096};
	struct parse_error err = {0};
	const struct kept_stack row = {0};
	uint64_t word = 0;
	struct stat st;
	int r = 0;

	while (!r && ++word < 4096)
		r = kept_stacks_add(&k, &row, &word, 1);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(k.rows.len, word - 1);
	assert_true(k.rows.len * sizeof(row) + k.nodes.len * sizeof(*k.nodes.v) < 4096);
	kept_stacks_free(&k);
	put(f->fd);
	assert_int_equal(fstatat(f->fd, RECORDING_STACKS, &st, 0), 0);
	assert_int_equal(kept_stacks_read(f->fd, (uint64_t)st.st_size - 1, &k, &err), -ENOSPC);
	assert_int_equal(kept_stacks_read(f->fd, (uint64_t)st.st_size, &k, &err), 0);
	kept_stacks_free(&k);
}

/* Changes bytes of the file that put wrote, then reads it. */
static int changed(const struct fixture *f, off_t at, uint64_t value, size_t bytes)
{
	struct kept_stacks k = {0};
	struct parse_error err = {0};
	int fd, r;

	put(f->fd);
	fd = openat(f->fd, RECORDING_STACKS, O_RDWR);
	assert_int_equal(pwrite(fd, &value, bytes, at), bytes);
	r = kept_stacks_read(f->fd, 0, &k, &err);
	assert_int_equal(err.code, r);
	close(fd);
	kept_stacks_free(&k);
	return r;
}

static void damage_is_refused(void **state)
{
	const struct fixture *f = *state;
	const off_t rows = 32, nodes = rows + (off_t)CHAINS * 24;

	assert_int_equal(changed(f, 0, 'x', 1), -EBADMSG);
	assert_int_equal(changed(f, 8, 2, 4), -ENOTSUP);
	assert_int_equal(changed(f, 16, CHAINS + 1, 8), -EBADMSG);
	assert_int_equal(changed(f, 16, UINT64_MAX, 8), -E2BIG);
	assert_int_equal(changed(f, 24, (uint64_t)1 << 40, 8), -E2BIG);
	assert_int_equal(changed(f, rows + 8, 10, 4), -EBADMSG);
	assert_int_equal(changed(f, rows + 8, 9, 4), 0);
	assert_int_equal(changed(f, rows + 12, 5, 1), -EBADMSG);
	assert_int_equal(changed(f, rows + 13, 8, 1), -EBADMSG);
	assert_int_equal(changed(f, rows + 18, LIMITS, 2), 0);
	assert_int_equal(changed(f, rows + 18, LIMITS + 1, 2), -EBADMSG);
	assert_int_equal(changed(f, nodes + 8, 1, 4),
			 -EBADMSG); /* a frame that is its own caller */
	assert_int_equal(changed(f, nodes + 16 + 8, 2, 4), -EBADMSG);
	assert_int_equal(changed(f, nodes + 12, 1, 4), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stacks_are_read_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stacks_keep_to_the_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damage_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
