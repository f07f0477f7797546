#include "profile/profile.h"
#include "profile/samples.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile_sample sample_of(uint64_t i)
{
	/* Every seventh value does not fit into the packed form. */
	return (struct profile_sample){
		.time_ns = i * 1001001 + (i % 7 == 1 ? 10000000000ULL : 0),
		.weight = i % 7 == 2 ? 1ULL << 40 : i,
		.event = i % 7 == 3 ? 900 : (uint32_t)(i % 3),
		.thread = i % 7 == 4 ? 1u << 20 : (uint32_t)(i % 1000),
		.cpu = i % 7 == 5 ? 4000 : (int32_t)(i % 9) - 1,
		.stack = (uint32_t)(i % 77),
	};
}

static int check_sample(void *ctx, const struct profile_sample *s)
{
	uint64_t *i = ctx;
	struct profile_sample want = sample_of((*i)++);

	assert_int_equal(s->time_ns, want.time_ns);
	assert_int_equal(s->weight, want.weight);
	assert_int_equal(s->event, want.event);
	assert_int_equal(s->thread, want.thread);
	assert_int_equal(s->cpu, want.cpu);
	assert_int_equal(s->stack, want.stack);
	return 0;
}

static void samples_are_read_back_unchanged(void **state)
{
	static const size_t limits[] = {SAMPLES_IN_MEMORY_MAX, 1000, 1};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct samples s;
		uint64_t n = k == 2 ? 500 : 70001, seen = 0;

		samples_init(&s);
		s.rows_max = limits[k];
		for (uint64_t i = 0; i < n; i++) {
			struct profile_sample in = sample_of(i);

			assert_int_equal(samples_add(&s, &in), 0);
		}
		assert_int_equal(samples_each(&s, check_sample, &seen), 0);
		assert_int_equal(seen, n);
		assert_int_equal(s.in_file > 0, k > 0);
		samples_free(&s);
	}
}

static int check_cpu(void *ctx, const struct profile_sample *s)
{
	const int32_t **cpu = ctx;

	assert_int_equal(s->cpu, *(*cpu)++);
	return 0;
}

static void any_cpu_number_is_kept(void **state)
{
	static const int32_t cpus[] = {INT32_MAX, INT32_MIN, -1, -2, 0, 1022, 1023, INT32_MAX - 1};
	const size_t n = sizeof(cpus) / sizeof(*cpus);
	const int32_t *next = cpus;
	struct samples s;

	(void)state;
	samples_init(&s);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(samples_add(&s, &(struct profile_sample){.cpu = cpus[i]}), 0);
	assert_int_equal(samples_each(&s, check_cpu, &next), 0);
	assert_ptr_equal(next, cpus + n);
	samples_free(&s);
}

static int stop_at_ten(void *ctx, const struct profile_sample *s)
{
	(void)s;
	return ++*(int *)ctx == 10 ? -EINTR : 0;
}

static void a_visitor_can_stop(void **state)
{
	struct samples s;
	int seen = 0;

	(void)state;
	samples_init(&s);
	for (uint64_t i = 0; i < 100; i++) {
		struct profile_sample in = sample_of(i);

		assert_int_equal(samples_add(&s, &in), 0);
	}
	assert_int_equal(samples_each(&s, stop_at_ten, &seen), -EINTR);
	assert_int_equal(seen, 10);
	samples_free(&s);
}

static void a_missing_temp_dir_is_reported(void **state)
{
	struct samples s;
	struct profile_sample in = sample_of(0);

	(void)state;
	setenv("TMPDIR", "/nonexistent", 1);
	samples_init(&s);
	s.rows_max = 1;
	assert_int_equal(samples_add(&s, &in), 0);
	assert_int_equal(samples_add(&s, &in), -ENOENT);
	samples_free(&s);
	unsetenv("TMPDIR");
}

static const char *shown(struct profile *p, const char *text, size_t len)
{
	uint32_t id;

	assert_int_equal(profile_text(p, text, len, &id), 0);
	return profile_text_of(p, id, NULL);
}

static void texts_of_targets_are_printable_and_bounded(void **state)
{
	static char a[60000], b[60000];
	struct profile *p;

	(void)state;
	memset(a, 'a', sizeof(a));
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 1] = 'b';
	assert_int_equal(profile_new(&p), 0);
	assert_string_equal(shown(p, "void Größe(計算)", strlen("void Größe(計算)")),
			    "void Größe(計算)");
	assert_string_equal(shown(p, "evil\033[2J\0\xff", 10), "evil\\x1b[2J\\x00\\xff");
	assert_int_equal(strlen(shown(p, a, PROFILE_TEXT_MAX)), PROFILE_TEXT_MAX);
	assert_int_equal(profile_text_changes(p).cut, 0);

	const char *cut_a = shown(p, a, sizeof(a)), *cut_b = shown(p, b, sizeof(b));

	assert_int_equal(strlen(cut_a), PROFILE_TEXT_MAX);
	assert_int_equal(strspn(cut_a, "a"), PROFILE_TEXT_MAX - 11);
	assert_memory_equal(cut_a + PROFILE_TEXT_MAX - 11, "...", 3);
	/* Different texts stay different, equal ones equal, in each process. */
	assert_string_equal(cut_a + PROFILE_TEXT_MAX - 8, "a286bea0");
	assert_string_equal(cut_b + PROFILE_TEXT_MAX - 8, "a286a8c9");
	assert_string_not_equal(cut_a, cut_b);
	assert_ptr_equal(shown(p, a, sizeof(a)), cut_a);
	/* A text that an output showed is read again unchanged. */
	assert_ptr_equal(shown(p, cut_a, strlen(cut_a)), cut_a);
	assert_int_equal(profile_text_changes(p).escaped, 1);
	assert_int_equal(profile_text_changes(p).cut, 2);
	profile_free(p);
}

static void equal_parts_have_equal_ids(void **state)
{
	struct profile *p;
	uint32_t a, b, text;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_text(p, "main", 4, &text), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 3000; i++) {
			struct profile_frame f = {.addr = i, .name = text, .perf_name = text};
			struct profile_thread t = {.pid = (int32_t)i, .tid = 7, .comm = text};

			assert_int_equal(profile_frame(p, &f, &a), 0);
			assert_int_equal(a, i);
			assert_int_equal(profile_thread(p, &t, &b), 0);
			assert_int_equal(b, i);
			assert_int_equal(profile_stack(p, i, a, &b), 0);
			assert_int_equal(b, i + 1);
			assert_int_equal(profile_stack_parent(p, b), i);
			assert_int_equal(profile_stack_frame(p, b), a);
		}
	}
	assert_int_equal(profile_nframes(p), 3000);
	assert_int_equal(profile_nstacks(p), 3001);
	profile_free(p);
}

static void groups_sum_equal_samples(void **state)
{
	struct profile *p;
	const struct profile_group *g;
	size_t n;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (uint32_t i = 0; i < 90000; i++) {
		struct profile_sample s = {.time_ns = i,
					   .weight = 3,
					   .event = i % 2,
					   .thread = i % 5,
					   .stack = i % 900,
					   .cpu = -1};

		assert_int_equal(profile_sample(p, &s), 0);
	}
	g = profile_groups(p, &n);
	assert_int_equal(n, 900);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(g[i].stack, i);
		assert_int_equal(g[i].samples, 100);
		assert_int_equal(g[i].weight, 300);
	}
	assert_int_equal(profile_span(p).first_ns, 1);
	assert_int_equal(profile_span(p).last_ns, 89999);
	profile_free(p);
}

static uint64_t little_memory(void)
{
	return 1 << 20;
}

/* Known frames stay as they are. Others share one frame for each function or module. */
static void frames_beyond_the_memory_have_no_address(void **state)
{
	struct profile_frame frame = {.perf_name = PROFILE_NONE, .srcline = PROFILE_NONE};
	uint32_t ids[3] = {0}, id, first;
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit_memory(p, little_memory);
	for (uint64_t i = 1; i <= 10000; i++) {
		frame.addr = 0x1000 + i;
		frame.module = (uint32_t)(i % 3);
		frame.sym_off = i;
		assert_int_equal(profile_frame(p, &frame, &ids[i % 3]), 0);
	}
	for (uint32_t k = 0; k < 3; k++) {
		assert_int_equal(profile_frame_of(p, ids[k])->addr, 0);
		assert_int_equal(profile_frame_of(p, ids[k])->sym_off, 0);
		assert_int_equal(profile_frame_of(p, ids[k])->module, k);
		assert_in_range(ids[k], 100, 1000);
	}
	uint64_t left_out = profile_left_out(p);

	assert_in_range(left_out, 9000, 9900);
	frame.addr = 0x1001;
	frame.module = 1;
	frame.sym_off = 1;
	assert_int_equal(profile_frame(p, &frame, &first), 0);
	assert_int_equal(first, 0);
	assert_int_equal(profile_left_out(p), left_out);
	frame.module = 7;
	frame.addr = frame.sym_off = 0;
	assert_int_equal(profile_frame(p, &frame, &id), 0);
	assert_int_equal(profile_left_out(p), left_out);
	profile_free(p);
}

static void threads_beyond_the_memory_share_one(void **state)
{
	struct profile_thread t = {.pid = 1};
	uint32_t first, id = 0, again;
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit_memory(p, little_memory);
	assert_int_equal(profile_text(p, "comm", 4, &t.comm), 0);
	assert_int_equal(profile_thread(p, &t, &first), 0);
	for (int i = 1; i < 100000; i++) {
		t.tid = i;
		assert_int_equal(profile_thread(p, &t, &id), 0);
	}
	assert_string_equal(profile_text_of(p, profile_thread_of(p, id)->comm, NULL),
			    PROFILE_LEFT_OUT);
	assert_int_equal(profile_thread_of(p, id)->tid, -1);
	assert_in_range(profile_nthreads(p), 10, 10000);
	assert_int_equal(profile_left_out(p), 100000 - profile_nthreads(p) + 1);
	t.tid = 0;
	assert_int_equal(profile_thread(p, &t, &again), 0);
	assert_int_equal(again, first);
	/* Other processes have shares of their own. */
	for (t.pid = 2; t.pid < 5; t.pid++) {
		profile_taker(p, t.pid);
		assert_int_equal(profile_thread(p, &t, &id), 0);
		assert_int_equal(profile_thread_of(p, id)->pid, t.pid);
	}
	profile_free(p);
}

static void texts_beyond_the_memory_share_one(void **state)
{
	uint32_t first, text = 0, again;
	struct profile *p;
	char name[32];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit_memory(p, little_memory);
	assert_int_equal(profile_text(p, "first", 5, &first), 0);
	for (int i = 0; i < 100000; i++) {
		int len = snprintf(name, sizeof(name), "text %d", i);

		assert_int_equal(profile_text(p, name, (size_t)len, &text), 0);
	}
	assert_string_equal(profile_text_of(p, text, NULL), PROFILE_LEFT_OUT);
	assert_in_range(profile_left_out(p), 90000, 99990);
	assert_int_equal(profile_text(p, "first", 5, &again), 0);
	assert_int_equal(again, first);
	/* Other processes have shares of their own. */
	for (int i = 1; i < 10; i++) {
		profile_taker(p, i);
		assert_int_equal(profile_text(p, name, (size_t)sprintf(name, "n%d", i), &text), 0);
		assert_string_equal(profile_text_of(p, text, NULL), name);
	}
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_are_read_back_unchanged),
		cmocka_unit_test(any_cpu_number_is_kept),
		cmocka_unit_test(a_visitor_can_stop),
		cmocka_unit_test(a_missing_temp_dir_is_reported),
		cmocka_unit_test(texts_of_targets_are_printable_and_bounded),
		cmocka_unit_test(frames_beyond_the_memory_have_no_address),
		cmocka_unit_test(texts_beyond_the_memory_share_one),
		cmocka_unit_test(threads_beyond_the_memory_share_one),
		cmocka_unit_test(equal_parts_have_equal_ids),
		cmocka_unit_test(groups_sum_equal_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
