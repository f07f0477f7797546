/* symbols/stacks of a foreign recording: accepted rows are valid, and stay the same when written
 * and read again. covers: recording/kept_stacks.c */
#include "recording/kept_stacks.h"
#include "recording/manifest.h"
#include "tests/fuzz/fuzz_dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t words[KEPT_STACKS_DEPTH_MAX];

/* Adds each row again, like an unwinder. */
static void copy(const struct kept_stacks *k, struct kept_stacks *to)
{
	for (size_t i = 0; i < k->rows.len; i++) {
		size_t n = 0;

		kept_stacks_append_words(k, &k->rows.v[i], words, &n);
		if (n > KEPT_STACKS_DEPTH_MAX || kept_stacks_add(to, &k->rows.v[i], words, n))
			abort();
	}
}

static void check_equal(const struct kept_stacks *a, const struct kept_stacks *b)
{
	static uint64_t others[KEPT_STACKS_DEPTH_MAX];

	if (a->rows.len != b->rows.len)
		abort();
	for (size_t i = 0; i < a->rows.len; i++) {
		size_t n = 0, m = 0;

		kept_stacks_append_words(a, &a->rows.v[i], words, &n);
		kept_stacks_append_words(b, &b->rows.v[i], others, &m);
		if (n != m || memcmp(words, others, n * sizeof(*words)) ||
		    a->rows.v[i].file_off != b->rows.v[i].file_off ||
		    a->rows.v[i].grade != b->rows.v[i].grade)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kept_stacks k, fresh = {0}, again;
	struct parse_error err = {0};

	fuzz_dir_put(RECORDING_STACKS, data, size);
	int r = kept_stacks_read(fuzz_dir(), 0, &k, &err);

	if (r && (err.code != r || !err.what || err.offset > size + sizeof(struct kept_stack)))
		abort();
	if (r)
		return 0;
	copy(&k, &fresh);
	if (kept_stacks_write(&fresh, fuzz_dir()) || kept_stacks_read(fuzz_dir(), 0, &again, &err))
		abort();
	check_equal(&k, &again);
	kept_stacks_free(&again);
	kept_stacks_free(&fresh);
	kept_stacks_free(&k);
	return 0;
}
