/* Long records with copies of stacks: unwanted parts are not even read. */
#include "sampler/sampler_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define RING_BYTES ((size_t)256 << 10)
#define LONG_BYTES ((size_t)32 << 10)
#define TARGET 100

struct sample {
	struct perf_event_header header;
	struct attr_sample first;
};

struct chunk {
	const unsigned char *data;
	size_t len;
};

struct fixture {
	struct sampler s;
	struct perf_event_mmap_page page;
	struct ring ring;
	unsigned char *data, *forbidden;
	struct chunk chunks[64];
	size_t nchunks;
};

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct fixture *f = ctx;

	(void)cpu;
	f->chunks[f->nchunks++] = (struct chunk){data, len};
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sampler_listener listener = {.ctx = f, .records = take_records};

	assert_non_null(f);
	f->data =
		mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->data, MAP_FAILED);
	ring_of(&f->ring, &f->page, f->data, RING_BYTES);
	f->s.rings = &f->ring;
	f->s.setup.filtered = true;
	assert_int_equal(vec_push(&f->s.cpus, 0), 0);
	assert_int_equal(pidset_new(&f->s.elsewhere), 0);
	assert_int_equal(targets_new(&f->s.targets), 0);
	assert_int_equal(targets_add(&f->s.targets, TARGET), 0);
	assert_int_equal(sampler_listen(&f->s, &listener), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ring_unmap(&f->ring);
	munmap(f->data, RING_BYTES);
	vec_free(&f->s.cpus);
	targets_free(&f->s.targets);
	pidset_free(&f->s.elsewhere);
	free(f);
	return 0;
}

/* Begins an empty ring at position `start`. */
static void begin_at(struct fixture *f, uint64_t start)
{
	f->page.data_head = f->page.data_tail = start;
	f->ring.tail = f->ring.scanned = start;
	f->nchunks = 0;
}

/* A sample of `size` bytes; each word is its time. */
static void put(struct fixture *f, uint32_t pid, uint64_t time_ns, size_t size)
{
	uint64_t words[LONG_BYTES / 8];
	struct sample head = {{.type = PERF_RECORD_SAMPLE, .size = (uint16_t)size},
			      {.pid = pid, .tid = pid, .time_ns = time_ns}};

	for (size_t i = 0; i < size / 8; i++)
		words[i] = time_ns;
	memcpy(words, &head, sizeof(head));
	for (size_t i = 0; i < size / 8; i++)
		memcpy(f->data + ((f->page.data_head + 8 * i) & (RING_BYTES - 1)), &words[i], 8);
	f->page.data_head += size;
}

/* Makes the page at this position unreadable, so that an access is fatal. */
static void forbid(struct fixture *f, uint64_t pos, int protection)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(
		mprotect(f->data + ((pos & (RING_BYTES - 1)) & ~(page - 1)), page, protection), 0);
}

/* Taken records stay in the ring until they are given back. */
static void a_ring_is_full_when_a_record_does_not_fit(void **state)
{
	struct fixture *f = *state;

	begin_at(f, RING_BYTES - 1000);
	assert_false(ring_is_full(&f->ring, RING_BYTES - 8));
	assert_true(ring_is_full(&f->ring, RING_BYTES)); /* a byte stays free */
	for (int i = 0; i < 7; i++)
		put(f, TARGET, 1, LONG_BYTES);
	assert_true(ring_is_full(&f->ring, LONG_BYTES));
	assert_false(ring_is_full(&f->ring, LONG_BYTES - 8));
	f->ring.tail = f->page.data_head;
	assert_true(ring_is_full(&f->ring, LONG_BYTES));
	ring_release(&f->ring, f->page.data_tail + LONG_BYTES);
	assert_false(ring_is_full(&f->ring, LONG_BYTES));
}

static const struct sample *at(const struct chunk *c, size_t off)
{
	return (const void *)(c->data + off);
}

static void a_long_record_of_others_is_not_touched_behind_its_start(void **state)
{
	struct fixture *f = *state;
	const uint64_t starts[] = {0, RING_BYTES - 8, RING_BYTES - 16, RING_BYTES - 32,
				   RING_BYTES - 12000};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		begin_at(f, starts[i]);
		put(f, 999, 1, LONG_BYTES);
		put(f, TARGET, 2, 200);
		forbid(f, starts[i] + LONG_BYTES / 2, PROT_NONE);
		assert_int_equal(sampler_drain(&f->s), 0);
		forbid(f, starts[i] + LONG_BYTES / 2, PROT_READ | PROT_WRITE);
		assert_int_equal(f->nchunks, 1);
		assert_int_equal(f->chunks[0].len, 200);
		assert_int_equal(at(&f->chunks[0], 0)->first.time_ns, 2);
		assert_int_equal(f->s.stats.dropped, i + 1);
		assert_null(f->ring.straddle);
	}
	assert_int_equal(f->s.stats.damaged, 0);
}

static void long_records_of_targets_are_passed_on_in_place_and_in_order(void **state)
{
	struct fixture *f = *state;

	begin_at(f, RING_BYTES - 2 * LONG_BYTES - 1000);
	put(f, TARGET, 1, 200); /* kept record */
	put(f, 999, 2, 800);
	put(f, TARGET, 3, 200); /* kept record, behind the other */
	put(f, TARGET, 4, LONG_BYTES);
	put(f, 999, 5, 400);
	put(f, TARGET, 6, LONG_BYTES); /* wraps over the end */
	put(f, TARGET, 7, LONG_BYTES);
	put(f, TARGET, 8, LONG_BYTES); /* behind the previous one */
	put(f, TARGET, 9, 4096);
	put(f, TARGET, 10, 4088); /* kept record */
	assert_int_equal(sampler_drain(&f->s), 0);
	static const size_t lens[] = {400, LONG_BYTES, LONG_BYTES, 2 * LONG_BYTES + 4096, 4088};
	static const uint64_t times[] = {1, 4, 6, 7, 10};

	assert_int_equal(f->nchunks, 5);
	for (size_t i = 0; i < f->nchunks; i++) {
		const struct chunk *c = &f->chunks[i];
		bool in_place = c->data >= f->data && c->data < f->data + RING_BYTES;

		assert_int_equal(c->len, lens[i]);
		assert_int_equal(at(c, 0)->first.time_ns, times[i]);
		assert_int_equal(in_place, i == 1 || i == 3);
		/* They remain valid after the drain, until the round is over. */
		for (size_t word = sizeof(struct sample); word < at(c, 0)->header.size; word += 8)
			assert_memory_equal(c->data + word, &times[i], 8);
	}
	assert_int_equal(at(&f->chunks[0], 200)->first.time_ns, 3);
	assert_int_equal(at(&f->chunks[3], LONG_BYTES)->first.time_ns, 8);
	assert_int_equal(f->s.stats.samples, 8);
	assert_int_equal(f->s.stats.dropped, 2);
	assert_int_equal(f->s.stats.first_sample_ns, 1);
	assert_int_equal(f->s.stats.last_sample_ns, 10);
}

static void a_start_is_shown_wherever_the_record_lies(void **state)
{
	struct fixture *f = *state;

	for (uint64_t before = 8; before <= 2 * RING_START; before += 8) {
		struct ring_start buf;

		begin_at(f, 3 * RING_BYTES - before);
		put(f, TARGET, before, 48 + before % 64);
		const struct perf_event_header *h =
			ring_start(&f->ring, f->ring.tail, f->page.data_head, &buf);

		assert_non_null(h);
		assert_int_equal(h->size, 48 + before % 64);
		assert_int_equal(((const struct sample *)h)->first.pid, TARGET);
		assert_int_equal(((const struct sample *)h)->first.time_ns, before);
		assert_null(ring_start(&f->ring, f->ring.tail, f->page.data_head - 8, &buf));
		assert_null(ring_start(&f->ring, f->ring.tail + 4, f->page.data_head, &buf));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_long_record_of_others_is_not_touched_behind_its_start, setup, teardown),
		cmocka_unit_test_setup_teardown(
			long_records_of_targets_are_passed_on_in_place_and_in_order, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_ring_is_full_when_a_record_does_not_fit, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_start_is_shown_wherever_the_record_lies, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
