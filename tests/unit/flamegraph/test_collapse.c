#include "flamegraph/collapse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A profile to which each call adds one sample. Stacks are written root first, with ' ' between
 * frames. */
struct fixture {
	struct profile *p;
	struct profile_event event;
	struct profile_thread thread;
	uint64_t weight;
};

static uint32_t text(struct fixture *f, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_text(f->p, s, strlen(s), &id), 0);
	return id;
}

static struct fixture fixture_new(void)
{
	struct fixture f = {.weight = 1};

	assert_int_equal(profile_new(&f.p), 0);
	f.event = (struct profile_event){.name = text(&f, "cycles"), .has_period = true};
	f.thread = (struct profile_thread){.pid = 12, .tid = 34, .comm = text(&f, "app")};
	return f;
}

static uint32_t frame(struct fixture *f, const char *name, size_t len, const char *module)
{
	struct profile_frame fr = {.addr = 0x7f12,
				   .module = text(f, module),
				   .srcline = PROFILE_NONE,
				   .kind = FRAME_NATIVE};
	uint32_t id;

	assert_int_equal(profile_text(f->p, name, len, &fr.name), 0);
	fr.perf_name = fr.name;
	fr.status = FRAME_IS_NAMED;
	if (len == 1 && *name == '?') {
		fr.perf_name = PROFILE_NONE;
		fr.name = text(f, "[a.so]");
		fr.status = FRAME_IS_UNKNOWN;
	}
	if (*module == '[')
		fr.kind = FRAME_KERNEL;
	assert_int_equal(profile_frame(f->p, &fr, &id), 0);
	return id;
}

static void add(struct fixture *f, const char *stack, const char *module)
{
	struct profile_sample s = {.weight = f->weight, .cpu = -1};

	while (*stack) {
		size_t len = strcspn(stack, " ");

		assert_int_equal(
			profile_stack(f->p, s.stack, frame(f, stack, len, module), &s.stack), 0);
		stack += len + (stack[len] == ' ');
	}
	assert_int_equal(profile_event(f->p, &f->event, &s.event), 0);
	assert_int_equal(profile_thread(f->p, &f->thread, &s.thread), 0);
	assert_int_equal(profile_sample(f->p, &s), 0);
}

static void set_comm(struct fixture *f, const char *comm)
{
	f->thread.comm = text(f, comm);
}

static struct collapse_stats check(struct fixture *f, const struct collapse_options *options,
				   const char *want)
{
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;

	assert_int_equal(collapse_write(f->p, options, &out, &stats), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(out.data, want);
	outbuf_close(&out);
	return stats;
}

static const struct collapse_options perf, full = {.names = COLLAPSE_FULL};

static void equal_texts_are_one_line_and_lines_are_sorted_by_bytes(void **state)
{
	struct fixture f = fixture_new();

	(void)state;
	f.weight = 10;
	add(&f, "main b", "/a.so");
	add(&f, "main a", "/a.so");
	add(&f, "main a x", "/a.so");
	add(&f, "main a-b x", "/a.so"); /* '-' sorts before ';' but after the end of the text */
	add(&f, "main a-b", "/a.so");
	add(&f, "main aa", "/a.so");
	add(&f, "main a(int)", "/a.so");
	add(&f, "", "/a.so");
	set_comm(&f, "app-1");
	add(&f, "z", "/a.so");
	set_comm(&f, "ap");
	add(&f, "z", "/a.so");
	check(&f, &perf,
	      "ap;z 10\napp 10\napp-1;z 10\napp;main;a 20\napp;main;a-b 10\napp;main;a-b;x "
	      "10\napp;main;a;x 10\n"
	      "app;main;aa 10\napp;main;b 10\n");
	profile_free(f.p);
}

static void names_with_semicolons_sort_and_merge_by_their_text(void **state)
{
	struct fixture f = fixture_new();

	(void)state;
	set_comm(&f, "app;main");
	add(&f, "a", "/a.so");
	add(&f, "", "/a.so");
	set_comm(&f, "app");
	add(&f, "main a", "/a.so");
	add(&f, "main", "/a.so");
	add(&f, "l", "/a.so");
	add(&f, "n", "/a.so");
	check(&f, &perf, "app;l 1\napp;main 2\napp;main;a 2\napp;n 1\n");
	check(&f, &full, "app:main 1\napp:main;a 1\napp;l 1\napp;main 1\napp;main;a 1\napp;n 1\n");
	profile_free(f.p);
}

static void inlined_and_unnamed_frames_fold_in_place(void **state)
{
	struct fixture f = fixture_new();

	(void)state;
	add(&f, "main a->b c", "/a.so");
	add(&f, "main a b_[i]", "/a.so");
	add(&f, "main a->b", "/a.so");
	add(&f, "main (gone) d", "/a.so");
	add(&f, "main d", "/a.so");
	add(&f, "main (gone)", "/a.so");
	add(&f, "(gone)", "/a.so");
	add(&f, "main operator->", "/a.so");
	check(&f, &perf,
	      "app 1\napp;main 1\napp;main;a;b_[i] 2\napp;main;a;b_[i];c 1\napp;main;d "
	      "2\napp;main;operator 1\n");
	profile_free(f.p);
}

static void names_of_processes_are_those_that_the_script_reads(void **state)
{
	static const char *const comms[] = {"two words", "a",     "Thread 1", "new\nline", "java",
					    "",          " lead", "#hash",    "t\tb"};
	const struct collapse_options pid = {.include_pid = true}, tid = {.include_tid = true};
	struct fixture f = fixture_new();
	struct collapse_stats stats;

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(*comms); i++) {
		set_comm(&f, comms[i]);
		add(&f, "La/b", "/a.so");
	}
	stats = check(&f, &perf,
		      "Thread;La/b 1\na_;La/b 1\njava;a/b 1\nnew\\x0aline;La/b 1\nt\tb;La/b "
		      "1\ntwo_words;La/b 1\n");
	assert_int_equal(stats.nameless_samples, 3);
	assert_int_equal(stats.samples, 6);
	check(&f, &pid,
	      "Thread-?;La/b 1\na_-12;La/b 1\njava-12;a/b 1\nnew\\x0aline-12;La/b 1\nt\tb-12;La/b "
	      "1\ntwo_words-12;La/b 1\n");
	check(&f, &tid,
	      "Thread-?/1;La/b 1\na_-12/34;La/b 1\njava-12/34;a/b 1\nnew\\x0aline-12/34;La/b "
	      "1\nt\tb-12/34;La/b 1\n"
	      "two_words-12/34;La/b 1\n");
	check(&f, &full,
	      " lead;La/b 1\n#hash;La/b 1\n;La/b 1\nThread_1;La/b 1\na;La/b 1\njava;La/b "
	      "1\nnew\\x0aline;La/b 1\nt\tb;La/b 1\n"
	      "two words;La/b 1\n");
	profile_free(f.p);
}

static void numbers_at_the_end_of_full_names_are_no_counts(void **state)
{
	static const char *const comms[] = {"a 1",  "b 1.5", "c\t2", "d 1.", "e  3",
					    "f .5", "g 1x",  "4",    " 5",   "h 1 6"};
	const struct collapse_options tid = {.names = COLLAPSE_FULL, .include_tid = true};
	struct fixture f = fixture_new();

	(void)state;
	for (size_t i = 0; i < sizeof(comms) / sizeof(*comms); i++) {
		set_comm(&f, comms[i]);
		add(&f, "", "/a.so");
	}
	check(&f, &full,
	      "4 1\n_5 1\na_1 1\nb_1.5 1\nc_2 1\nd_1. 1\ne _3 1\nf .5 1\ng 1x 1\nh 1_6 1\n");
	profile_free(f.p);
	f = fixture_new();
	set_comm(&f, "a 1");
	add(&f, "x\t7 y", "/a.so");
	check(&f, &full, "a_1;x_7;y 1\n");
	check(&f, &tid, "a 1-12/34;x_7;y 1\n");
	profile_free(f.p);
}

static void namespaces_are_distinguished_in_the_full_form(void **state)
{
	const struct collapse_options tid = {.names = COLLAPSE_FULL, .include_tid = true};
	struct fixture f = fixture_new();

	(void)state;
	set_comm(&f, "swapper");
	f.thread.pid = f.thread.tid = 0;
	f.thread.other_pid_ns = 1;
	add(&f, "x", "/a.so");
	check(&f, &perf, "swapper;x 1\n");
	check(&f, &full, "[other pid namespace];x 1\n");
	check(&f, &tid, "[other pid namespace]-0/0;x 1\n");
	profile_free(f.p);
}

static void one_event_is_folded_and_others_are_counted(void **state)
{
	const struct collapse_options faults = {.event_filter = "faults"},
				      none = {.event_filter = "no"},
				      first = {.default_event = "faults"};
	struct fixture f = fixture_new();
	struct collapse_stats stats;

	(void)state;
	f.weight = 5;
	add(&f, "c", "/a.so");
	f.event.name = text(&f, "faults");
	f.event.has_period = false;
	add(&f, "f", "/a.so");
	f.event.name = text(&f, "sched:sched_switch");
	f.event.has_fields = true;
	add(&f, "s", "/a.so");
	f.event = (struct profile_event){.name = text(&f, "my event"), .has_period = true};
	add(&f, "m", "/a.so");
	stats = check(&f, &perf, "app;c 5\napp;m 1\napp;s 1\n");
	assert_string_equal(stats.event, "cycles");
	assert_string_equal(stats.other_event, "faults");
	assert_int_equal(stats.filtered_samples, 1);
	assert_int_equal(stats.weight, 7);
	check(&f, &faults, "app;f 1\napp;m 1\napp;s 1\n");
	check(&f, &first, "app;f 1\napp;m 1\napp;s 1\n");
	check(&f, &none, "app;m 1\napp;s 1\n");
	stats = check(&f, &full, "app;c 5\n");
	assert_int_equal(stats.filtered_samples, 3);
	profile_free(f.p);
}

static void events_with_stacks_are_preferred(void **state)
{
	const struct collapse_options faults = {.event_filter = "faults"};
	struct fixture f = fixture_new();

	(void)state;
	f.event = (struct profile_event){.name = text(&f, "faults"), .stackless = true};
	add(&f, "f", "/a.so");
	check(&f, &perf, "app;f 1\n");
	f.event = (struct profile_event){.name = text(&f, "cycles"), .has_period = true};
	add(&f, "c", "/a.so");
	check(&f, &perf, "app;c 1\n");
	check(&f, &faults, "app;f 1\n");
	profile_free(f.p);
}

static void frames_are_annotated_on_demand(void **state)
{
	const struct collapse_options all = {.annotate_kernel = true,
					     .annotate_jit = true,
					     .include_addrs = true},
				      all_full = {.names = COLLAPSE_FULL,
						  .annotate_kernel = true,
						  .annotate_jit = true,
						  .include_addrs = true};
	struct fixture f = fixture_new();

	(void)state;
	add(&f, "k", "[nf]");
	add(&f, "j", "/tmp/perf-1.map");
	add(&f, "?", "/b/a.so");
	check(&f, &perf, "app;[a.so] 1\napp;j 1\napp;k 1\n");
	check(&f, &all, "app;[a.so <7f12>] 1\napp;j_[j] 1\napp;k_[k] 1\n");
	check(&f, &all_full, "app;[a.so <7f12>] 1\napp;j 1\napp;k_[k] 1\n");
	profile_free(f.p);
}

static void counts_stop_at_the_largest_number(void **state)
{
	struct fixture f = fixture_new();

	(void)state;
	f.weight = UINT64_MAX - 1;
	add(&f, "a(int)", "/a.so");
	add(&f, "a(int)", "/a.so");
	add(&f, "a(long)", "/a.so");
	check(&f, &perf, "app;a 18446744073709551615\n");
	profile_free(f.p);
}

static void deep_and_wide_trees_are_walked(void **state)
{
	struct fixture f = fixture_new();
	struct outbuf want = outbuf_to(-1), deep = outbuf_to(-1);

	(void)state;
	for (int i = 0; i < 20000; i++)
		outbuf_str(&deep, i ? " d" : "d");
	outbuf_char(&deep, '\0');
	add(&f, deep.data, "/a.so");
	for (char c = 'A'; c <= 'Z'; c++)
		for (char d = 'a'; d <= 'c'; d++) {
			char name[8] = {'m', ' ', c, d, 0};

			add(&f, name, "/a.so");
			outbuf_printf(&want, "app;m;%c%c 1\n", c, d);
		}
	struct outbuf first = outbuf_to(-1);

	outbuf_str(&first, "app");
	for (int i = 0; i < 20000; i++)
		outbuf_str(&first, ";d");
	outbuf_str(&first, " 1\n");
	outbuf_put(&first, want.data, want.len);
	outbuf_char(&first, '\0');
	check(&f, &perf, first.data);
	outbuf_close(&want);
	outbuf_close(&deep);
	outbuf_close(&first);
	profile_free(f.p);
}

static void empty_input_gives_no_output(void **state)
{
	struct fixture f = fixture_new();
	struct collapse_stats stats;

	(void)state;
	stats = check(&f, &perf, "");
	assert_null(stats.event);
	check(&f, &full, "");
	profile_free(f.p);
}

static void waits_are_folded_on_request(void **state)
{
	const struct collapse_options us = {.event_filter = "offcpu-time", .divisor = 1000};
	struct fixture f = fixture_new();
	const struct profile_event on = f.event;

	(void)state;
	f.event = (struct profile_event){
		.name = text(&f, "offcpu-time"), .has_period = true, .off_cpu = true};
	f.weight = 1400;
	add(&f, "main a", "/a.so");
	add(&f, "main a", "/a.so"); /* rounded together to 3, not 2 */
	f.weight = 1499;
	add(&f, "main b", "/a.so");
	f.weight = 499;
	add(&f, "main c", "/a.so");
	f.weight = 500;
	add(&f, "main d", "/a.so");
	check(&f, &perf, "");
	f.event = on;
	f.weight = 7;
	add(&f, "main x", "/a.so");
	check(&f, &perf, "app;main;x 7\n");
	check(&f, &us, "app;main;a 3\napp;main;b 1\napp;main;d 1\n");
	profile_free(f.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_folded_on_request),
		cmocka_unit_test(equal_texts_are_one_line_and_lines_are_sorted_by_bytes),
		cmocka_unit_test(names_with_semicolons_sort_and_merge_by_their_text),
		cmocka_unit_test(inlined_and_unnamed_frames_fold_in_place),
		cmocka_unit_test(names_of_processes_are_those_that_the_script_reads),
		cmocka_unit_test(numbers_at_the_end_of_full_names_are_no_counts),
		cmocka_unit_test(namespaces_are_distinguished_in_the_full_form),
		cmocka_unit_test(one_event_is_folded_and_others_are_counted),
		cmocka_unit_test(events_with_stacks_are_preferred),
		cmocka_unit_test(frames_are_annotated_on_demand),
		cmocka_unit_test(counts_stop_at_the_largest_number),
		cmocka_unit_test(deep_and_wide_trees_are_walked),
		cmocka_unit_test(empty_input_gives_no_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
