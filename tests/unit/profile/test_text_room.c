#include "flamegraph/collapse.h"
#include "profile/text_room.h"
#include "recording/script_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A profile of one process; its stacks share their outer frames. */
struct shape {
	uint32_t functions, depth, stacks;
	uint64_t samples;
	size_t name_bytes, module_bytes;
};

static uint32_t text_of(struct profile *p, char begin, uint32_t number, size_t bytes)
{
	char text[PROFILE_TEXT_MAX + 1];
	uint32_t id;
	int n = snprintf(text, sizeof(text), "%c%u_", begin, number);

	assert_in_range(bytes, (size_t)n, PROFILE_TEXT_MAX);
	memset(text + n, begin, bytes - (size_t)n);
	assert_int_equal(profile_text(p, text, bytes, &id), 0);
	return id;
}

static struct profile *profile_shaped(const struct shape *shape)
{
	struct profile_thread thread = {.pid = 7, .tid = 7};
	struct profile_event event = {.has_period = false};
	uint32_t *frames = calloc(shape->functions, sizeof(*frames));
	uint32_t ids[2], stack = PROFILE_STACK_EMPTY;
	struct profile *p;

	assert_non_null(frames);
	assert_int_equal(profile_new(&p), 0);
	thread.comm = text_of(p, 'c', 0, 10);
	event.name = text_of(p, 'e', 0, 10);
	assert_int_equal(profile_thread(p, &thread, &ids[0]), 0);
	assert_int_equal(profile_event(p, &event, &ids[1]), 0);
	for (uint32_t i = 0; i < shape->functions; i++) {
		struct profile_frame f = {.kind = FRAME_NATIVE,
					  .addr = i + 1,
					  .status = FRAME_IS_NAMED,
					  .srcline = PROFILE_NONE};

		f.name = f.perf_name = text_of(p, 'f', i, shape->name_bytes);
		f.module = text_of(p, '/', 0, shape->module_bytes);
		assert_int_equal(profile_frame(p, &f, &frames[i]), 0);
	}
	for (uint32_t i = 0; i < shape->depth; i++) {
		uint32_t frame = frames[i % shape->functions];

		assert_int_equal(profile_stack(p, stack, frame, &stack), 0);
	}
	for (uint64_t i = 0; i < shape->samples; i++) {
		struct profile_sample s = {
			.time_ns = i, .weight = 1, .thread = ids[0], .event = ids[1]};
		uint32_t leaf = frames[i % shape->stacks % shape->functions];

		assert_int_equal(profile_stack(p, stack, leaf, &s.stack), 0);
		assert_int_equal(profile_sample(p, &s), 0);
	}
	free(frames);
	return p;
}

static uint64_t written(struct profile *p, enum collapse_names names, bool script)
{
	const struct collapse_options options = {.names = names};
	struct collapse_stats stats = {0};
	FILE *file = tmpfile();

	assert_non_null(file);
	struct outbuf out = outbuf_to(fileno(file));

	assert_int_equal(
		script ? script_text_write(p, &out) : collapse_write(p, &options, &out, &stats), 0);
	assert_int_equal(outbuf_close(&out), 0);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	uint64_t bytes = (uint64_t)ftell(file);

	assert_int_equal(fclose(file), 0);
	return bytes;
}

static void deep_stacks_of_long_names_have_outputs_of_bounded_size(void **state)
{
	const struct shape shape = {.functions = 50,
				    .depth = 1000,
				    .stacks = 50,
				    .samples = 60,
				    .name_bytes = 4000,
				    .module_bytes = 4000};
	const uint64_t frames = shape.samples * (shape.depth + 1),
		       limit = TEXT_ROOM_FIRST + frames * (TEXT_ROOM_FRAME + 48);
	struct profile *p = profile_shaped(&shape);
	uint32_t len;

	(void)state;
	assert_int_equal(text_room_fit(p), 0);
	assert_int_equal(profile_nsamples(p), shape.samples);
	assert_int_equal(profile_nstacks(p), 1 + shape.depth + shape.stacks);
	assert_in_range(written(p, COLLAPSE_FULL, true), limit / 2, limit);
	assert_in_range(written(p, COLLAPSE_FULL, false), 1 << 20, limit);
	assert_in_range(written(p, COLLAPSE_PERF, false), 1 << 20, limit);
	assert_int_equal(profile_text_changes(p).cut, shape.functions + 1);
	assert_in_range(profile_text_changes(p).max, TEXT_ROOM_SHORT, 600);
	/* The names stay different, and the text says that it is cut. */
	for (uint32_t i = 0; i < shape.functions; i++) {
		const struct profile_frame *f = profile_frame_of(p, i);
		const char *name = profile_text_of(p, f->name, &len);

		assert_int_equal(len, profile_text_changes(p).max);
		assert_int_equal(strlen(name), len);
		assert_memory_equal(name + len - 11, "...", 3);
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(
				name, profile_text_of(p, profile_frame_of(p, k)->name, NULL));
	}
	/* New texts and those that stayed are still found. */
	assert_int_equal(text_of(p, 'c', 0, 10), profile_thread_of(p, 0)->comm);
	assert_int_equal(text_of(p, 'n', 0, 300), text_of(p, 'n', 0, 300));
	profile_free(p);
}

static void texts_that_were_cut_before_are_counted_once(void **state)
{
	char name[PROFILE_TEXT_MAX + 2];
	struct profile *p;
	uint32_t id, len;

	(void)state;
	memset(name, 'n', sizeof(name));
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_text_changes(p).max, PROFILE_TEXT_MAX);
	assert_int_equal(profile_text(p, name, sizeof(name), &id), 0);
	profile_cut_texts(p, 300);
	assert_int_equal(profile_text_changes(p).cut, 1);
	(void)profile_text_of(p, id, &len);
	assert_int_equal(len, 300);
	profile_free(p);
}

static void assert_untouched(const struct shape *shape)
{
	struct profile *p = profile_shaped(shape);
	uint32_t len;

	assert_int_equal(text_room_fit(p), 0);
	assert_int_equal(profile_text_changes(p).cut, 0);
	(void)profile_text_of(p, profile_frame_of(p, 0)->name, &len);
	assert_int_equal(len, shape->name_bytes);
	profile_free(p);
}

static void usual_names_are_never_cut(void **state)
{
	(void)state;
	/* As deep as stacks get, with an output of 9 GB */
	assert_untouched(&(struct shape){.functions = 1000,
					 .depth = 1023,
					 .stacks = 500,
					 .samples = 30000,
					 .name_bytes = TEXT_ROOM_SHORT,
					 .module_bytes = TEXT_ROOM_SHORT});
	/* Longer names whose modules are short */
	assert_untouched(&(struct shape){.functions = 1000,
					 .depth = 100,
					 .stacks = 500,
					 .samples = 30000,
					 .name_bytes = 450,
					 .module_bytes = 40});
	/* Names of any length, in a small output */
	assert_untouched(&(struct shape){.functions = 50,
					 .depth = 100,
					 .stacks = 50,
					 .samples = 40,
					 .name_bytes = PROFILE_TEXT_MAX,
					 .module_bytes = 100});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deep_stacks_of_long_names_have_outputs_of_bounded_size),
		cmocka_unit_test(texts_that_were_cut_before_are_counted_once),
		cmocka_unit_test(usual_names_are_never_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
