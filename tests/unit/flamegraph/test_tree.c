/* Trees from folded text and from profiles: merging, weights, counts. */
#include "base/outbuf.h"
#include "flamegraph/folded.h"
#include "flamegraph/kind_guess.h"
#include "flamegraph/tree_profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const struct tree_options plain = {.event = PROFILE_NONE};

static void folded_ok(struct tree *t, const char *text, const struct tree_options *options)
{
	struct parse_error err = {0};

	assert_int_equal(folded_read_tree_text(t, text, strlen(text), options, &err), 0);
}

/* The node at the end of a path of names, by walking all nodes; NULL if there is none. */
static const struct tree_node *node_at(const struct tree *t, const char *const *names)
{
	uint32_t node = TREE_ROOT;

	for (; *names; names++) {
		size_t i;

		for (i = 1; i < t->nodes.len; i++)
			if (t->nodes.v[i].parent == node && i != node &&
			    !strcmp(intern_text(&t->names, t->nodes.v[i].name), *names))
				break;
		if (i == t->nodes.len)
			return NULL;
		node = (uint32_t)i;
	}
	return &t->nodes.v[node];
}
#define AT(t, ...) node_at(t, (const char *const[]){__VA_ARGS__, NULL})

static void test_folded_stacks_merge_and_sum(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t, "p;a;b 3\np;a;c 4\np;a 5\np;a;b 1\nq;a;b 2\n", &plain);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 15);
	assert_int_equal(AT(&t, "p", "a")->total, 13);
	assert_int_equal(AT(&t, "p", "a")->self, 5);
	assert_int_equal(AT(&t, "p", "a", "b")->total, 4);
	assert_int_equal(AT(&t, "q", "a", "b")->total, 2);
	assert_int_equal(t.nodes.len, 8);
	assert_int_equal(t.depth, 3);
	assert_true(AT(&t, "p")->is_comm);
	assert_false(AT(&t, "p", "a")->is_comm);
	tree_free(&t);
}

static void test_a_longer_name_is_no_shared_prefix(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t, "p;abc;x 1\np;ab;x 1\np;abcd;x 1\np;abcd 1\np 1\np;abcd;x;y 1\n", &plain);
	assert_int_equal(AT(&t, "p", "abc", "x")->total, 1);
	assert_int_equal(AT(&t, "p", "ab", "x")->total, 1);
	assert_int_equal(AT(&t, "p", "abcd")->total, 3);
	assert_int_equal(AT(&t, "p", "abcd", "x", "y")->total, 1);
	tree_free(&t);
}

static void test_lines_without_a_count_are_counted(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t,
		  "p;a 1\nno count\np;a -3\n\np;a 1e5\np;a 99999999999999999999\np;a 2 \n7\np;a 2",
		  &plain);
	assert_int_equal(t.bad_lines, 6);
	assert_int_equal(t.lines, 8);
	assert_true(t.unended);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 3);
	tree_free(&t);
}

static void test_text_without_any_count_is_refused(void **state)
{
	struct tree t;
	struct parse_error err = {0};

	(void)state;
	assert_int_equal(folded_read_tree_text(&t, "hello\nworld\n", 12, &plain, &err), -EBADMSG);
	assert_non_null(err.what);
	assert_int_equal(folded_read_tree_text(&t, "", 0, &plain, &err), -EBADMSG);
	assert_string_equal(err.what, "it is empty");
}

static void test_decimal_counts_are_kept_in_thousandths(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t, "p;a 3\np;a 1.5\np;b 0.0019\np;c 2.\n", &plain);
	assert_int_equal(t.scale, 1000);
	assert_int_equal(AT(&t, "p", "a")->total, 4500);
	assert_int_equal(AT(&t, "p", "b")->total, 1);
	assert_int_equal(AT(&t, "p", "c")->total, 2000);
	tree_free(&t);
	folded_ok(&t, "p;a 3.0\n", &plain);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 3);
	assert_int_equal(t.scale, 1);
	tree_free(&t);
}

static void test_sums_do_not_overflow(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t,
		  "p;a 4611686018427387904\np;b 4611686018427387904\np;c 0.5\np;d "
		  "4611686018427387905\n",
		  &plain);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, TREE_WEIGHT_MAX);
	assert_int_equal(t.bad_lines, 1);
	tree_free(&t);
}

static void test_two_counts_are_before_and_after(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t, "p;a 3 5\np;b 7 0\np;c 1 1.5\n", &plain);
	assert_true(t.differential);
	assert_int_equal(t.scale, 1000);
	assert_int_equal(t.before.v[AT(&t, "p", "a") - t.nodes.v].total, 3000);
	assert_int_equal(AT(&t, "p", "a")->total, 5000);
	assert_int_equal(t.before.v[AT(&t, "p") - t.nodes.v].total, 11000);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 6500);
	tree_free(&t);
}

static void test_annotations_become_kinds(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t, "p;Run_[j];Inner_[i];write;vfs_write_[k] 1\n", &plain);
	assert_int_equal(AT(&t, "p", "Run")->kind, FRAME_MANAGED);
	assert_int_equal(AT(&t, "p", "Run")->annotation, 'j');
	assert_true(AT(&t, "p", "Run", "Inner")->inlined);
	assert_int_equal(AT(&t, "p", "Run", "Inner", "write", "vfs_write")->kind, FRAME_KERNEL);
	tree_free(&t);
}

static void test_kinds_are_found_by_name(void **state)
{
	struct tree t;

	(void)state;
	folded_ok(&t,
		  "dotnet;Work.Spin(int32);JIT_New;memset;asm_exc_page_fault;handle_mm_fault 1\n",
		  &plain);
	assert_int_equal(AT(&t, "dotnet", "Work.Spin(int32)")->kind, FRAME_MANAGED);
	assert_int_equal(AT(&t, "dotnet", "Work.Spin(int32)", "JIT_New")->kind, FRAME_RUNTIME);
	assert_int_equal(AT(&t, "dotnet", "Work.Spin(int32)", "JIT_New", "memset")->kind,
			 FRAME_NATIVE);
	assert_int_equal(AT(&t, "dotnet", "Work.Spin(int32)", "JIT_New", "memset",
			    "asm_exc_page_fault", "handle_mm_fault")
				 ->kind,
			 FRAME_KERNEL);
	tree_free(&t);
	assert_int_equal(kind_guess_of_name("float64 [webapp] Work::Spin", 27).kind, FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("std::vector<int>::push_back(int const&)", 39).kind,
			 FRAME_NATIVE);
	assert_int_equal(kind_guess_of_name("Ljava/util/HashMap;::get", 24).kind, FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("[unknown]", 9).kind, FRAME_UNKNOWN);
	assert_int_equal(kind_guess_of_name("[outside of managed code]", 25).kind, FRAME_SUBJECT);
	assert_int_equal(kind_guess_of_name("[no stack]", 10).kind, FRAME_UNKNOWN);
	assert_int_equal(kind_guess_of_name("[unknown state]", 15).kind, FRAME_UNKNOWN);
	assert_int_equal(kind_guess_of_name("[unknown state", 14).kind, FRAME_NATIVE);
	assert_int_equal(kind_guess_of_name("[idle]", 6).kind, FRAME_IDLE);
	assert_int_equal(kind_guess_of_name("[waiting for a CPU]", 19).kind, FRAME_RUNNABLE);
	assert_int_equal(kind_guess_of_name("[dynamic] lambda_method2(Closure)", 33).kind,
			 FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("[stub] PInvoke(int32)", 21).kind, FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("[stub] MethodCallThunk", 22).kind, FRAME_RUNTIME);
	assert_int_equal(kind_guess_of_name("[Shop.dll+0x1230]", 17).kind, FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("[Shop.dll]", 10).kind, FRAME_MANAGED);
	assert_int_equal(kind_guess_of_name("[Shop.dllx]", 11).kind, FRAME_NATIVE);
	assert_int_equal(kind_guess_of_name("main.(*Server).Run(int)", 23).kind, FRAME_NATIVE);
	assert_int_equal(kind_guess_of_name("[kernel]", 8).kind, FRAME_KERNEL);
	assert_true(kind_guess_of_name("kworker/u8:3-kvfree_rcu_reclaim", 31).comm);
	assert_true(kind_guess_of_name("worker-12/34", 12).comm);
	assert_false(kind_guess_of_name("main", 4).comm);
}

static void test_reverse_puts_leaves_at_the_root(void **state)
{
	const struct tree_options reverse = {.event = PROFILE_NONE, .reverse = true};
	struct tree t;

	(void)state;
	folded_ok(&t, "p;a;x 1\np;b;x 2\n", &reverse);
	assert_int_equal(AT(&t, "x")->total, 3);
	assert_int_equal(AT(&t, "x", "b", "p")->total, 2);
	assert_true(AT(&t, "x", "b", "p")->is_comm);
	tree_free(&t);
}

static void test_flame_chart_keeps_the_order(void **state)
{
	const struct tree_options in_order = {.event = PROFILE_NONE, .in_order = true};
	struct tree t;

	(void)state;
	folded_ok(&t, "p;a;x 1\np;a 2\np;a;x 3\np;b 4\np;a;x 5\n", &in_order);
	/* root p a x x b a x */
	assert_int_equal(t.nodes.len, 8);
	assert_int_equal(AT(&t, "p", "a")->total, 6);
	assert_int_equal(t.nodes.v[4].start, 3);
	assert_int_equal(t.nodes.v[6].start, 10);
	tree_free(&t);
}

static void test_odd_text_is_unchanged(void **state)
{
	static const char text[] = "p;a\0b;\xff\xfe 2\r\np;;x 3\n;y 4\np;z;; 5\n 6\n";
	struct tree t;
	struct parse_error err;
	uint32_t id;

	(void)state;
	assert_int_equal(folded_read_tree_text(&t, text, sizeof(text) - 1, &plain, &err), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 20);
	assert_int_equal(t.nodes.v[TREE_ROOT].self, 6);
	assert_int_equal(intern_find(&t.names, "a\0b", 3, &id), 0);
	assert_int_equal(AT(&t, "p", "", "x")->total, 3);
	assert_int_equal(AT(&t, "", "y")->total, 4);
	assert_int_equal(AT(&t, "p", "z")->self, 5);
	tree_free(&t);
}

static void test_reading_in_pieces_gives_the_same(void **state)
{
	int fd = memfd_create("folded", MFD_CLOEXEC);
	struct tree a, b;
	struct parse_error err;
	char *text = malloc(8 << 20);
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < 60000; i++)
		len += (size_t)sprintf(text + len, "proc;f%d;g%d;some_longer_name_%d;h%d %d\n",
				       i % 7, i % 31, i % 977, i % 13, i);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(folded_read_tree(&a, fd, &plain, &err), 0);
	assert_int_equal(folded_read_tree_text(&b, text, len, &plain, &err), 0);
	assert_int_equal(a.nodes.len, b.nodes.len);
	assert_int_equal(a.bad_lines, 0);
	assert_false(a.unended);
	assert_int_equal(a.nodes.v[TREE_ROOT].total, 60000ULL * 59999 / 2);
	for (size_t i = 0; i < a.nodes.len; i++)
		assert_int_equal(a.nodes.v[i].total, b.nodes.v[i].total);
	tree_free(&a);
	tree_free(&b);
	free(text);
	close(fd);
}

static void test_lines_over_the_limit_are_skipped(void **state)
{
	int fd = memfd_create("folded", MFD_CLOEXEC);
	size_t len = FOLDED_LINE_MAX + 4096;
	char *line = malloc(len);
	struct tree t;
	struct parse_error err;

	(void)state;
	assert_non_null(line);
	memset(line, 'x', len);
	assert_int_equal(write(fd, "p;a 1\n", 6), 6);
	assert_int_equal(write(fd, line, len), len);
	assert_int_equal(write(fd, " 5\np;a 2\n", 9), 9);
	assert_int_equal(write(fd, line, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(folded_read_tree(&t, fd, &plain, &err), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 3);
	assert_int_equal(t.bad_lines, 2);
	assert_true(t.unended);
	tree_free(&t);
	free(line);
	close(fd);
}

/* As names of recordings: whoever made the text, no name is endless in a picture. */
static void test_long_names_are_cut_and_stay_different(void **state)
{
	enum { LONG = 60000 };
	static const struct tree_options reverse = {.event = PROFILE_NONE, .reverse = true};
	struct outbuf text = outbuf_to(-1);
	char *name = calloc(1, LONG + 1);
	struct tree t;

	(void)state;
	assert_non_null(name);
	memset(name, 'L', LONG);
	outbuf_printf(&text, "p;%s_[k] 1\np;%s;x 2\np;%sM 4\np;%.*s 8\n", name, name, name,
		      PROFILE_TEXT_MAX, name);
	outbuf_char(&text, 0);
	for (int i = 0; i < 2; i++) {
		folded_ok(&t, text.data, i ? &reverse : &plain);
		assert_int_equal(t.nodes.v[TREE_ROOT].total, 15);
		assert_int_equal(t.names.len, 6); /* with "all" */
		assert_int_equal(t.cut_names, 2);
		for (uint32_t id = 0; id < t.names.len; id++)
			assert_true(intern_len(&t.names, id) <= PROFILE_TEXT_MAX);
		assert_int_equal(t.bad_lines, 0);
		tree_free(&t);
	}
	free(name);
	outbuf_close(&text);
}

static void test_a_stack_too_deep_is_a_bad_line(void **state)
{
	size_t n = TREE_DEPTH_MAX + 1;
	char *line = malloc(2 * n + 8);
	struct tree t;

	(void)state;
	assert_non_null(line);
	for (size_t i = 0; i < n; i++)
		memcpy(line + 2 * i, "f;", 2);
	memcpy(line + 2 * n - 1, " 1\n", 4);
	struct parse_error err;

	assert_int_equal(folded_read_tree_text(&t, line, strlen(line), &plain, &err), -EBADMSG);
	/* One frame less is accepted. */
	memcpy(line + 2 * (n - 1) - 1, " 1\n", 4);
	folded_ok(&t, line, &plain);
	assert_int_equal(t.depth, TREE_DEPTH_MAX);
	tree_free(&t);
	free(line);
}

/* A profile whose frames have letters for names; upper case means managed. */
static uint32_t profile_letter(struct profile *p, char c)
{
	struct profile_frame f = {.addr = (uint64_t)c,
				  .perf_name = PROFILE_NONE,
				  .module = PROFILE_NONE,
				  .srcline = PROFILE_NONE,
				  .kind = c >= 'A' && c <= 'Z' ? FRAME_MANAGED : FRAME_NATIVE,
				  .status = FRAME_IS_NAMED};
	uint32_t id;

	assert_int_equal(profile_text(p, &c, 1, &f.name), 0);
	assert_int_equal(profile_frame(p, &f, &id), 0);
	return id;
}

static void profile_put(struct profile *p, const char *event, const char *comm, int tid,
			const char *stack, uint64_t weight)
{
	struct profile_event e = {.has_period = true, .stackless = !strcmp(event, "flat")};
	struct profile_thread t = {.pid = 1, .tid = tid, .other_pid_ns = !strcmp(comm, "swapper")};
	struct profile_sample s = {.weight = weight, .cpu = -1};

	assert_int_equal(profile_text(p, event, strlen(event), &e.name), 0);
	assert_int_equal(profile_text(p, comm, strlen(comm), &t.comm), 0);
	assert_int_equal(profile_event(p, &e, &s.event), 0);
	assert_int_equal(profile_thread(p, &t, &s.thread), 0);
	for (; *stack; stack++)
		assert_int_equal(profile_stack(p, s.stack, profile_letter(p, *stack), &s.stack), 0);
	assert_int_equal(profile_sample(p, &s), 0);
}

static struct profile *some_profile(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	profile_put(p, "cpu-clock", "x", 7, "mAb", 10);
	profile_put(p, "cpu-clock", "x", 8, "mAb", 1);
	profile_put(p, "cpu-clock", "x", 7, "mAc", 100);
	profile_put(p, "cpu-clock", "y", 9, "mA", 1000);
	profile_put(p, "cpu-clock", "y", 9, "", 5);
	profile_put(p, "faults", "x", 7, "mAz", 10000);
	return p;
}

static void test_profile_is_one_event_by_comm(void **state)
{
	struct profile *p = some_profile();
	struct tree t;

	(void)state;
	assert_int_equal(tree_profile_make(&t, p, &plain), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 1116);
	assert_int_equal(AT(&t, "x", "m", "A", "b")->self, 11);
	assert_int_equal(AT(&t, "x", "m", "A")->kind, FRAME_MANAGED);
	assert_int_equal(AT(&t, "y")->self, 5);
	assert_true(AT(&t, "y")->is_comm);
	assert_null(AT(&t, "x", "m", "A", "z"));
	tree_free(&t);
	const struct tree_options faults = {.event = 1};

	assert_int_equal(tree_profile_make(&t, p, &faults), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 10000);
	tree_free(&t);
	profile_free(p);
}

static void test_profile_prefers_events_with_stacks(void **state)
{
	struct profile *p;
	struct tree t;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_put(p, "flat", "x", 7, "m", 10);
	assert_int_equal(tree_profile_make(&t, p, &plain), 0);
	assert_int_equal(AT(&t, "x", "m")->self, 10);
	tree_free(&t);
	profile_put(p, "cpu-clock", "swapper", 0, "mA", 1);
	assert_int_equal(tree_profile_make(&t, p, &plain), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 1);
	assert_int_equal(AT(&t, PROFILE_OTHER_PID_NS, "m", "A")->self, 1);
	tree_free(&t);
	profile_free(p);
}

static void test_profile_with_tids_reversed_and_in_order(void **state)
{
	struct profile *p = some_profile();
	const struct tree_options tids = {.event = PROFILE_NONE, .with_tids = true};
	const struct tree_options reverse = {.event = PROFILE_NONE, .reverse = true};
	const struct tree_options in_order = {.event = PROFILE_NONE, .in_order = true};
	struct tree t;

	(void)state;
	assert_int_equal(tree_profile_make(&t, p, &tids), 0);
	assert_int_equal(AT(&t, "x-1/8", "m", "A", "b")->self, 1);
	tree_free(&t);
	assert_int_equal(tree_profile_make(&t, p, &reverse), 0);
	assert_int_equal(AT(&t, "b", "A", "m", "x")->total, 11);
	tree_free(&t);
	assert_int_equal(tree_profile_make(&t, p, &in_order), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 1116);
	assert_int_equal(AT(&t, "y")->start, 111);
	tree_free(&t);
	profile_free(p);
}

static void test_a_stack_too_deep_keeps_its_leaf(void **state)
{
	static char frames[TREE_DEPTH_MAX + 3];
	struct tree_options options = {.event = PROFILE_NONE};
	struct profile *p;
	struct tree t;

	(void)state;
	memset(frames, 'f', sizeof(frames) - 2);
	frames[sizeof(frames) - 2] = 'x';
	assert_int_equal(profile_new(&p), 0);
	profile_put(p, "cpu-clock", "c", 7, frames, 10);
	profile_put(p, "cpu-clock", "c", 7, frames + 3, 100);
	assert_int_equal(tree_profile_make(&t, p, &options), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 110);
	assert_int_equal(AT(&t, TREE_CUT, "x")->self, 10);
	assert_int_equal(t.cut, 1);
	assert_int_equal(t.depth, TREE_DEPTH_MAX);
	tree_free(&t);
	options.in_order = true;
	assert_int_equal(tree_profile_make(&t, p, &options), 0);
	assert_int_equal(t.nodes.v[TREE_ROOT].total, 110);
	assert_int_equal(t.cut, 1);
	tree_free(&t);
	profile_free(p);
}

#define SMALL_NODES 100u
#define SMALL_BYTES (SMALL_NODES * 80u)

/* All weight is there, in few nodes. Names: thread names, functions, TREE_CUT. */
static void check_full(struct tree *t, uint64_t total, size_t names)
{
	assert_int_equal(t->nodes.v[TREE_ROOT].total, total);
	assert_true(t->cut > 0);
	assert_true(t->nodes.len <= SMALL_NODES + names);
	tree_free(t);
}

static void test_a_full_tree_keeps_leaves(void **state)
{
	struct tree_options small = {.event = PROFILE_NONE, .memory_max = SMALL_BYTES};
	char comm[16], text[64 * 64] = "";
	struct parse_error err = {0};
	struct profile *p;
	struct tree t;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 0; i < 60; i++) {
		snprintf(comm, sizeof(comm), "c%d", i);
		profile_put(p, "cpu-clock", comm, 7, i % 2 ? "abcdefghx" : "abcdefghy", 10);
		snprintf(text + strlen(text), 64, "%s;a;b;c;d;e;f;g;h;%c 10\n", comm,
			 i % 2 ? 'x' : 'y');
	}
	/* The room is for about 10 thread names, or 4 if each stack has a place in the table. */
	assert_int_equal(tree_profile_make(&t, p, &small), 0);
	assert_int_equal(AT(&t, "c0", "a", "b", "c", "d", "e", "f", "g", "h", "y")->self, 10);
	assert_true(AT(&t, TREE_CUT, "x")->self >= 200);
	assert_int_equal(AT(&t, TREE_CUT)->total, t.cut * 10);
	check_full(&t, 600, 71);
	assert_int_equal(folded_read_tree_text(&t, text, strlen(text), &small, &err), 0);
	assert_true(AT(&t, TREE_CUT, "y")->self >= 200);
	check_full(&t, 600, 71);
	small.reverse = true;
	small.memory_max = SMALL_BYTES / 2;
	assert_int_equal(tree_profile_make(&t, p, &small), 0);
	assert_int_equal(AT(&t, TREE_CUT)->total, t.cut * 10);
	check_full(&t, 600, 71);
	small = (struct tree_options){
		.event = PROFILE_NONE, .in_order = true, .memory_max = SMALL_BYTES};
	assert_int_equal(tree_profile_make(&t, p, &small), 0);
	assert_null(AT(&t, TREE_CUT));
	check_full(&t, 600, 0);
	profile_free(p);
}

static void test_names_beyond_the_memory_share_one(void **state)
{
	enum { LINES = 10000, LIMIT = 100000, LINE = 64 };
	struct tree_options small = {.event = PROFILE_NONE, .memory_max = LIMIT};
	char *text = malloc((size_t)LINES * LINE);
	struct parse_error err = {0};
	size_t len = 0, bytes = 0;
	struct tree t;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < LINES; i++)
		len += (size_t)snprintf(text + len, LINE, "p;a_function_%d;b_%d 1\n", i, i);
	for (int reverse = 0; reverse < 2; reverse++) {
		small.reverse = reverse;
		assert_int_equal(folded_read_tree_text(&t, text, len, &small, &err), 0);
		assert_int_equal(t.nodes.v[TREE_ROOT].total, LINES);
		for (size_t i = bytes = 0; i < t.names.len; i++)
			bytes += intern_len(&t.names, (uint32_t)i) + 1 + sizeof(*t.names.entries);
		bytes += t.nodes.len * sizeof(*t.nodes.v);
		assert_in_range(bytes, LIMIT / 4, LIMIT);
		assert_true(AT(&t, TREE_CUT, reverse ? "p" : PROFILE_LEFT_OUT)->self > LINES / 2);
		assert_in_range(t.cut, AT(&t, TREE_CUT)->total, LINES - 10);
		if (!reverse)
			assert_int_equal(AT(&t, "p", "a_function_0", "b_0")->self, 1);
		tree_free(&t);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded_stacks_merge_and_sum),
		cmocka_unit_test(test_a_longer_name_is_no_shared_prefix),
		cmocka_unit_test(test_lines_without_a_count_are_counted),
		cmocka_unit_test(test_text_without_any_count_is_refused),
		cmocka_unit_test(test_decimal_counts_are_kept_in_thousandths),
		cmocka_unit_test(test_sums_do_not_overflow),
		cmocka_unit_test(test_two_counts_are_before_and_after),
		cmocka_unit_test(test_annotations_become_kinds),
		cmocka_unit_test(test_kinds_are_found_by_name),
		cmocka_unit_test(test_reverse_puts_leaves_at_the_root),
		cmocka_unit_test(test_flame_chart_keeps_the_order),
		cmocka_unit_test(test_odd_text_is_unchanged),
		cmocka_unit_test(test_reading_in_pieces_gives_the_same),
		cmocka_unit_test(test_lines_over_the_limit_are_skipped),
		cmocka_unit_test(test_long_names_are_cut_and_stay_different),
		cmocka_unit_test(test_a_stack_too_deep_is_a_bad_line),
		cmocka_unit_test(test_profile_is_one_event_by_comm),
		cmocka_unit_test(test_profile_prefers_events_with_stacks),
		cmocka_unit_test(test_profile_with_tids_reversed_and_in_order),
		cmocka_unit_test(test_a_stack_too_deep_keeps_its_leaf),
		cmocka_unit_test(test_a_full_tree_keeps_leaves),
		cmocka_unit_test(test_names_beyond_the_memory_share_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
