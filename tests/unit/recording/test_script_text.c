#include "base/cleanup.h"
#include "recording/script_read.h"
#include "recording/script_write.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const struct script_text_options plain;

static int read_bytes(const char *text, size_t len, const struct script_text_options *options,
		      struct profile **ret_profile, struct script_text_stats *stats,
		      struct parse_error *err)
{
	AUTO_CLOSE int fd = memfd_create("text", MFD_CLOEXEC);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_new(ret_profile), 0);
	r = script_text_read(fd, options, *ret_profile, stats, err);
	if (r)
		profile_free(*ret_profile);
	return r;
}

static struct profile *read_text(const char *text, const struct script_text_options *options,
				 struct script_text_stats *stats)
{
	struct parse_error err = {0};
	struct profile *p = NULL;

	assert_int_equal(read_bytes(text, strlen(text), options, &p, stats, &err), 0);
	return p;
}

static int keep_last(void *ctx, const struct profile_sample *sample)
{
	*(struct profile_sample *)ctx = *sample;
	return 0;
}

static struct profile_sample last_sample(struct profile *p)
{
	struct profile_sample s = {0};

	assert_int_equal(profile_each_sample(p, keep_last, &s), 0);
	return s;
}

static const char *text_of(struct profile *p, uint32_t text)
{
	return text == PROFILE_NONE ? "(none)" : profile_text_of(p, text, NULL);
}

static void a_sample_has_every_field_of_its_lines(void **state)
{
	struct script_text_stats st;
	struct profile *p = read_text("# a comment\n"
				      "my app 12/34 [003] 1704.274854:      62500 cpu-clock:u: \n"
				      "\tffffffff822010c9 leaf+0x19 ([kernel.kallsyms])\n"
				      "\t           f838f root(int)+0x4f (/usr/lib/libc.so.6)\n"
				      "\n",
				      &plain, &st);
	struct profile_sample s = last_sample(p);
	const struct profile_thread *t = profile_thread_of(p, s.thread);
	const struct profile_frame *leaf = profile_frame_of(p, profile_stack_frame(p, s.stack)),
				   *root = profile_frame_of(
					   p, profile_stack_frame(
						      p, profile_stack_parent(p, s.stack)));

	(void)state;
	assert_int_equal(profile_nsamples(p), 1);
	assert_int_equal(s.time_ns, 1704274854000);
	assert_int_equal(s.weight, 62500);
	assert_int_equal(s.cpu, 3);
	assert_int_equal(t->pid, 12);
	assert_int_equal(t->tid, 34);
	assert_string_equal(text_of(p, t->comm), "my app");
	assert_string_equal(text_of(p, profile_event_of(p, s.event)->name), "cpu-clock:u");
	assert_true(profile_event_of(p, s.event)->has_period);
	assert_true(leaf->addr == 0xffffffff822010c9 && leaf->has_sym_off && leaf->sym_off == 0x19);
	assert_string_equal(text_of(p, leaf->perf_name), "leaf");
	assert_string_equal(text_of(p, leaf->module), "[kernel.kallsyms]");
	assert_int_equal(leaf->kind, FRAME_KERNEL);
	assert_int_equal(root->kind, FRAME_NATIVE);
	assert_string_equal(text_of(p, root->perf_name), "root(int)");
	assert_int_equal(st.samples, 1);
	assert_int_equal(st.lines, 5);
	assert_int_equal(st.bad_lines, 0);
	assert_false(st.unended);
	profile_free(p);
}

static void frames_know_their_kind_by_their_module(void **state)
{
	static const struct {
		const char *line, *name, *module;
		int kind, status;
	} cases[] = {
		{"7f01 f+0x1 (/tmp/perf-12.map)", "f", "/tmp/perf-12.map", FRAME_MANAGED,
		 FRAME_IS_NAMED},
		{"7f01 f+0x1 (/x/libcoreclr.so)", "f", "/x/libcoreclr.so", FRAME_RUNTIME,
		 FRAME_IS_NAMED},
		{"7f01 f+0x1 (/x/a.so (deleted))", "f", "/x/a.so (deleted)", FRAME_NATIVE,
		 FRAME_IS_NAMED},
		{"7f01 f (/x/a.ko)", "f", "/x/a.ko", FRAME_KERNEL, FRAME_IS_NAMED},
		{"7f01 [unknown] (/x/a.so)", "[a.so]", "/x/a.so", FRAME_NATIVE, FRAME_IS_UNKNOWN},
		{"7f01 [unknown] (/x/a.dll)", "[a.dll]", "/x/a.dll", FRAME_MANAGED,
		 FRAME_IS_UNKNOWN},
		{"7f01 [unknown] ([unknown])", "[unknown]", "[unknown]", FRAME_UNKNOWN,
		 FRAME_IS_UNKNOWN},
		{"7f01 [unknown] ([heap])", "[heap]", "[heap]", FRAME_UNKNOWN, FRAME_IS_UNKNOWN},
		{"7f01 f ([vdso])", "f", "[vdso]", FRAME_NATIVE, FRAME_IS_NAMED},
		{"7f01 f+0x1 (inlined)", "f", "(none)", FRAME_NATIVE, FRAME_IS_NAMED},
		{"7f01 f+0x1", "f", "(none)", FRAME_NATIVE, FRAME_IS_NAMED},
		{"7f01 [unknown]", "[unknown]", "(none)", FRAME_UNKNOWN, FRAME_IS_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct outbuf text = outbuf_to(-1);
		struct script_text_stats st;

		outbuf_printf(&text, "app 1/2 1.5: 1 cycles:\n\t%s\n\n", cases[i].line);
		outbuf_char(&text, '\0');
		struct profile *p = read_text(text.data, &plain, &st);
		const struct profile_frame *f =
			profile_frame_of(p, profile_stack_frame(p, last_sample(p).stack));

		assert_string_equal(text_of(p, f->name), cases[i].name);
		assert_string_equal(text_of(p, f->module), cases[i].module);
		assert_int_equal(f->kind, cases[i].kind);
		assert_int_equal(f->status, cases[i].status);
		assert_int_equal(f->inlined, i == 9);
		profile_free(p);
		outbuf_close(&text);
	}
}

static void shout(const char *name, size_t len, struct outbuf *out)
{
	outbuf_put(out, name, len);
	outbuf_char(out, '!');
}

static void jit_code_gets_the_full_name_on_request(void **state)
{
	const struct script_text_options options = {.full_name = shout};
	struct script_text_stats st;
	struct profile *p = read_text("app 1/2 1.5: 1 cycles:\n\t7f f+0x1 (/tmp/perf-1.map)\n\n",
				      &options, &st);

	(void)state;
	assert_string_equal(text_of(p, profile_frame_of(p, 0)->name), "f!");
	assert_string_equal(text_of(p, profile_frame_of(p, 0)->perf_name), "f");
	profile_free(p);
}

static void samples_without_an_end_and_frames_without_a_sample_are_left_out(void **state)
{
	struct script_text_stats st;
	struct profile *p = read_text("\t7f01 lone+0x1 (/x)\n"
				      "\n"
				      "app 1/2 1.5: 1 cycles:\n"
				      "\t7f02 f+0x1 (/x)\n",
				      &plain, &st);

	(void)state;
	assert_int_equal(profile_nsamples(p), 0);
	assert_true(st.unended);
	assert_int_equal(st.unused_lines, 1);
	profile_free(p);
	p = read_text("app 1/2 1.5: 1 cyc", &plain, &st);
	assert_true(st.unended);
	profile_free(p);
	/* perf's only line for a sample whose event has no stacks. */
	p = read_text("app 1/2 1.5: 1 cycles:\n\t7f02 f+0x1 (/x)\n\napp 1/2 1.6: 1 faults:\n",
		      &plain, &st);
	assert_false(st.unended);
	profile_free(p);
}

static void a_header_within_a_sample_begins_the_next(void **state)
{
	struct script_text_stats st;
	struct profile *p = read_text("one 1/2 1.5: 1 cycles:\n"
				      "\t7f02 f+0x1 (/x)\n"
				      "two 3/4 1.6: 9 cycles:\n"
				      "\t7f03 g+0x1 (/x)\n"
				      "other 5/6 1.7: 7 faults:\n"
				      "\n"
				      "other 5/6 1.8: 7 faults:\n"
				      "\t7f04 h+0x1 (/x)\n"
				      "one 1/2 1.9: 3 cycles:\n"
				      "\n",
				      &plain, &st);
	struct profile_sample s = last_sample(p);

	(void)state;
	/* The first of two samples, with both frames. Then one without frames, as samples of an
	 * event that is not folded. */
	assert_int_equal(profile_nsamples(p), 2);
	assert_int_equal(s.weight, 3);
	assert_int_equal(s.stack, PROFILE_STACK_EMPTY);
	assert_int_equal(profile_nstacks(p), 3);
	assert_string_equal(profile_text_of(p, st.first_event, NULL), "cycles");
	profile_free(p);
}

static void the_selected_event_decides_the_filter(void **state)
{
	const struct script_text_options options = {.event_filter = "faults"};
	struct script_text_stats st;
	struct profile *p = read_text("one 1/2 1.5: 1 cycles:\n"
				      "\t7f02 f+0x1 (/x)\n"
				      "two 3/4 1.6: 9 faults:\n"
				      "\t7f03 g+0x1 (/x)\n"
				      "\n",
				      &options, &st);
	struct profile_sample s = last_sample(p);

	(void)state;
	assert_int_equal(s.weight, 9);
	assert_int_equal(profile_stack_parent(p, s.stack), PROFILE_STACK_EMPTY);
	profile_free(p);
}

static void source_lines_are_read_only_on_request(void **state)
{
	static const char text[] =
		"app 1/2 1.5: 1 cycles:\n\t7f02 f->g+0x1 (/x)\n  a.c:1\n  b.c[1]:2 \n"
		"\t7f03 h+0x1 (/x)\n\n\n";
	const struct script_text_options with = {.srcline = true};
	struct script_text_stats st;
	struct profile *p = read_text(text, &with, &st);
	struct profile_sample s = last_sample(p);
	const struct profile_frame *f = profile_frame_of(p, profile_stack_frame(p, s.stack));

	(void)state;
	assert_string_equal(text_of(p, f->srcline), "a.c:1\nb.c:2");
	f = profile_frame_of(p, profile_stack_frame(p, profile_stack_parent(p, s.stack)));
	assert_string_equal(text_of(p, f->srcline), "(none)");
	assert_int_equal(st.bad_lines + st.unused_lines, 0);
	profile_free(p);

	p = read_text(text, &plain, &st);
	f = profile_frame_of(p, profile_stack_frame(p, last_sample(p).stack));
	assert_int_equal(f->srcline, PROFILE_NONE);
	assert_int_equal(st.unused_lines, 2);
	assert_int_equal(st.bad_lines, 0);
	profile_free(p);
}

static void ids_other_than_plain_numbers_are_kept_as_text(void **state)
{
	struct script_text_stats st;
	struct profile *p = read_text("app 007/99999999999 1.5: 1 cycles:\n\n", &plain, &st);
	const struct profile_thread *t = profile_thread_of(p, 0);
	struct outbuf out = outbuf_to(-1);

	(void)state;
	assert_int_equal(t->pid, -1);
	assert_string_equal(text_of(p, t->ids_text - 1), "007/99999999999");
	assert_int_equal(script_text_write(p, &out), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(out.data, "app  007/99999999999 1.500000: 1 cycles: \n\n");
	outbuf_close(&out);
	profile_free(p);
}

static void check_refused(const char *text, const char *why)
{
	struct parse_error err = {0};
	struct script_text_stats st;
	struct profile *p;

	assert_int_equal(read_bytes(text, strlen(text), &plain, &p, &st, &err), -EBADMSG);
	assert_non_null(strstr(err.what, why));
}

static void other_text_than_perf_scripts_is_refused_with_a_reason(void **state)
{
	struct script_text_stats st;

	(void)state;
	check_refused("", "empty");
	check_refused("bash;main;f 12\nbash;main 3\n", "folded stacks already");
	check_refused("    app  1 [000] 1.5: 10 cycles:  7f00 f+0x1 (/x)\n", "perf record -g");
	check_refused("\t7f0012 f (/x)\n\n", "thread");
	check_refused("There are 12 apples in\n\nthis basket\n", "not the text");
	check_refused("\xff\xfe\x01\x02\n\x03\n", "not the text");
	/* A recording without samples is valid. */
	profile_free(read_text("# ========\n# captured on: a day\n#\n", &plain, &st));
}

static void lines_may_be_long_end_in_cr_and_hold_nul(void **state)
{
	static const char head[] = "app 1/2 1.5: 1 cycles:\r\n\t7f02 f\0g+0x1 (/x)\r\n\t",
			  tail[] = " (/y)\n\t7f03 h+0x1 (/x)\n\r\n";
	size_t len = 3 * SCRIPT_LINE_MAX;
	char *text = malloc(len + 200);
	struct parse_error err = {0};
	struct script_text_stats st;
	struct profile *p;
	size_t n = 0;

	(void)state;
	assert_non_null(text);
	memcpy(text, head, sizeof(head) - 1);
	n = sizeof(head) - 1;
	memset(text + n, 'x', len);
	n += len;
	memcpy(text + n, tail, sizeof(tail) - 1);
	n += sizeof(tail) - 1;
	assert_int_equal(read_bytes(text, n, &plain, &p, &st, &err), 0);
	assert_int_equal(st.bad_lines, 1);
	assert_int_equal(st.lines, 5);
	assert_int_equal(profile_nsamples(p), 1);
	assert_int_equal(profile_nstacks(p), 3);
	profile_free(p);
	free(text);
}

static void a_written_text_is_read_back_unchanged(void **state)
{
	static const char text[] =
		"app one  12/34 [003] 1704.274854: 62500 cycles: \n"
		"\tffffffff822010c9 leaf+0x19 ([kernel.kallsyms])\n"
		"\t           f838f root(int)+0x4f (/usr/lib/a (x).so (deleted))\n"
		"\t               0 [unknown] ([unknown])\n"
		"\tzz [unknown] (/x)\n"
		"\n"
		"a   34 0.000000: sched:sched_switch: ...\n"
		"\n"
		"app one  12/34 [120] 5000000000.000001: 00 cycles: \n"
		"\n";
	struct script_text_stats st;
	struct profile *p = read_text(text, &plain, &st);
	struct outbuf out = outbuf_to(-1);

	(void)state;
	assert_int_equal(script_text_write(p, &out), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(out.data, text);
	outbuf_close(&out);
	profile_free(p);
}

static void texts_of_a_recording_cannot_break_lines(void **state)
{
	struct outbuf out = outbuf_to(-1);
	struct profile_event e[2] = {{.has_period = true}, {.stackless = true}};
	struct profile_thread t = {.pid = -1, .tid = -1};
	struct profile_frame f = {.addr = 16, .srcline = PROFILE_NONE};
	struct profile_sample s = {.cpu = -1};
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(profile_text(p, "cycles", 6, &e[0].name), 0);
	e[1].name = e[0].name;
	assert_int_equal(profile_text(p, "new\nline", 8, &t.comm), 0);
	f.perf_name = f.name = f.module = t.comm;
	assert_int_equal(profile_frame(p, &f, &s.stack), 0);
	assert_int_equal(profile_stack(p, PROFILE_STACK_EMPTY, s.stack, &s.stack), 0);
	assert_int_equal(profile_thread(p, &t, &s.thread), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(profile_event(p, &e[i], &s.event), 0);
		assert_int_equal(profile_sample(p, &s), 0);
	}
	assert_int_equal(script_text_write(p, &out), 0);
	outbuf_char(&out, '\0');
	assert_string_equal(
		out.data, "new\\x0aline  0 0.000000: 00 cycles: \n"
			  "\t              10 new\\x0aline (new\\x0aline)\n"
			  "\n"
			  "     new\\x0aline  0 0.000000: cycles: \t              10 new\\x0aline "
			  "(new\\x0aline)\n");
	outbuf_close(&out);
	profile_free(p);
}

static void more_events_than_fit_share_a_name(void **state)
{
	struct script_text_stats st;
	AUTO_FREE char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 2 * PROFILE_EVENTS_MAX; i++)
		fprintf(f, "app 1 [000] 1.%06d: 1 event%d:\n\t10 f (/x)\n\n", i, i);
	fclose(f);
	struct profile *p = read_text(text, &plain, &st);

	assert_in_range(profile_nevents(p), PROFILE_EVENTS_MAX / 2, PROFILE_EVENTS_MAX);
	assert_string_equal(text_of(p, profile_event_of(p, last_sample(p).event)->name), "unknown");
	profile_free(p);
}

static uint64_t little_memory(void)
{
	return 1 << 20;
}

static void a_process_with_many_names_leaves_a_neighbour_its_own(void **state)
{
	struct script_text_stats st;
	AUTO_CLOSE int fd = memfd_create("text", MFD_CLOEXEC);
	FILE *f = fdopen(dup(fd), "w");
	struct profile *p;

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 5000; i++)
		fprintf(f, "a%d 1/1 [000] 1.%06d: 1 cycles:\n\t10 f%d (/x)\n\n", i, i, i);
	for (int i = 0; i < 5000; i++)
		fprintf(f, "b%d 2 [000] 1.%06d: 1 cycles:\n\t10 g%d (/x)\n\n", i, i, i);
	fprintf(f, "neighbour 3 [000] 2.0: 1 cycles:\n\t10 work (/y)\n\n");
	fclose(f);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_new(&p), 0);
	profile_limit_memory(p, little_memory);
	assert_int_equal(script_text_read(fd, &plain, p, &st, NULL), 0);
	struct profile_sample s = last_sample(p);
	const struct profile_frame *frame = profile_frame_of(p, profile_stack_frame(p, s.stack));

	assert_true(profile_left_out(p) > 5000);
	assert_int_equal(profile_thread_of(p, s.thread)->tid, 3);
	assert_string_equal(text_of(p, profile_thread_of(p, s.thread)->comm), "neighbour");
	assert_string_equal(text_of(p, frame->perf_name), "work");
	assert_string_equal(text_of(p, frame->module), "/y");
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_has_every_field_of_its_lines),
		cmocka_unit_test(frames_know_their_kind_by_their_module),
		cmocka_unit_test(jit_code_gets_the_full_name_on_request),
		cmocka_unit_test(samples_without_an_end_and_frames_without_a_sample_are_left_out),
		cmocka_unit_test(a_header_within_a_sample_begins_the_next),
		cmocka_unit_test(the_selected_event_decides_the_filter),
		cmocka_unit_test(source_lines_are_read_only_on_request),
		cmocka_unit_test(ids_other_than_plain_numbers_are_kept_as_text),
		cmocka_unit_test(other_text_than_perf_scripts_is_refused_with_a_reason),
		cmocka_unit_test(lines_may_be_long_end_in_cr_and_hold_nul),
		cmocka_unit_test(a_written_text_is_read_back_unchanged),
		cmocka_unit_test(texts_of_a_recording_cannot_break_lines),
		cmocka_unit_test(more_events_than_fit_share_a_name),
		cmocka_unit_test(a_process_with_many_names_leaves_a_neighbour_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
