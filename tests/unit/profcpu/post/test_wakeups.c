/* Chains of wakers, made from waits of this test. */
#include "profcpu/post/wakeups.h"

#include "flamegraph/collapse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WAITS_MAX 8

struct fixture {
	struct profile *profile;
	struct offcpu_idx idx;
	struct offcpu_idx_wait rows[WAITS_MAX];
	uint32_t waits;      /* event */
	const char *sleeper; /* stack of waits */
	struct wakeups *w;
	struct wakeups_summary summary;
	char got[WAITS_MAX][512]; /* "comm root;...;leaf weight" */
	size_t ngot;
	uint64_t late_ns; /* delay until the end of a wait became known */
};

static uint32_t text(struct fixture *f, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_text(f->profile, s, strlen(s), &id), 0);
	return id;
}

/* "root;...;leaf". Names that begin with "k:" are kernel frames; the prefix is removed. */
static uint32_t stack(struct fixture *f, const char *names)
{
	char copy[256], *save = NULL;
	uint32_t id = PROFILE_STACK_EMPTY, frame_id;

	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strtok_r(copy, ";", &save); name; name = strtok_r(NULL, ";", &save)) {
		bool kernel = !strncmp(name, "k:", 2);
		struct profile_frame frame = {.srcline = PROFILE_NONE,
					      .module = text(f, "/bin/app"),
					      .kind = kernel ? FRAME_KERNEL : FRAME_NATIVE};

		frame.name = frame.perf_name = text(f, name + (kernel ? 2 : 0));
		assert_int_equal(profile_frame(f->profile, &frame, &frame_id), 0);
		assert_int_equal(profile_stack(f->profile, id, frame_id, &id), 0);
	}
	return id;
}

static uint32_t thread(struct fixture *f, int32_t tid)
{
	static const char *const odd[] = {[11] = ".NET TP Worker", [12] = "(a b;c->d)"};
	struct profile_thread t = {.pid = 70, .tid = tid};
	char comm[16];
	uint32_t id;

	snprintf(comm, sizeof(comm), "t%d", tid);
	t.comm = text(f, tid == 11 || tid == 12 ? odd[tid] : comm);
	assert_int_equal(profile_thread(f->profile, &t, &id), 0);
	return id;
}

static void begin(struct fixture *f)
{
	struct profile_event event = {.has_period = true, .off_cpu = true};

	*f = (struct fixture){.sleeper = "main;wait"};
	assert_int_equal(profile_new(&f->profile), 0);
	event.name = text(f, "offcpu-time");
	assert_int_equal(profile_event(f->profile, &event, &f->waits), 0);
	f->idx.waits = f->rows;
	assert_int_equal(post_wakeups_new(f->profile, &f->idx, WAKEUPS_NODES_MAX, &f->w), 0);
}

static void waker(struct fixture *f, uint64_t file_off, int32_t tid, const char *names)
{
	assert_int_equal(post_wakeups_waker(f->w, file_off, thread(f, tid), stack(f, names)), 0);
}

/* A wait from begin to end, ended by the waker at waker_off. Its place follows the other waits. */
static void wait(struct fixture *f, int32_t tid, uint64_t begin_ns, uint64_t woken_ns,
		 uint64_t end_ns, int32_t by, uint64_t waker_off, uint8_t flags)
{
	uint64_t file_off = 10000 + f->idx.nwaits;
	struct profile_sample s = {.time_ns = end_ns + f->late_ns,
				   .weight = end_ns - begin_ns,
				   .event = f->waits,
				   .thread = thread(f, tid),
				   .stack = stack(f, f->sleeper)};

	assert_true(f->idx.nwaits < WAITS_MAX);
	f->rows[f->idx.nwaits++] = (struct offcpu_idx_wait){.file_off = file_off,
							    .waker_off = waker_off,
							    .woken_ns = woken_ns,
							    .runnable_ns = end_ns - woken_ns,
							    .count = 1,
							    .waker = by,
							    .flags = flags,
							    .end_ns = f->late_ns ? end_ns : 0};
	assert_int_equal(post_wakeups_wait(f->w, file_off, &s), 0);
}

/* A wait that nothing ended. */
static void goes_on(struct fixture *f, int32_t tid, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t file_off = 10000 + f->idx.nwaits;
	struct profile_sample s = {.time_ns = end_ns,
				   .weight = end_ns - begin_ns,
				   .event = f->waits,
				   .thread = thread(f, tid)};

	assert_true(f->idx.nwaits < WAITS_MAX);
	f->rows[f->idx.nwaits++] = (struct offcpu_idx_wait){
		.file_off = file_off, .count = 1, .flags = OFFCPU_IDX_CUT_END};
	assert_int_equal(post_wakeups_wait(f->w, file_off, &s), 0);
}

static int take(void *ctx, const struct profile_sample *s)
{
	const char *names[64];
	struct fixture *f = ctx;
	size_t n = 0, len;
	char *out = f->got[f->ngot];

	if (!profile_event_of(f->profile, s->event)->wakeup)
		return 0;
	assert_true(f->ngot < WAITS_MAX);
	for (uint32_t at = s->stack; at != PROFILE_STACK_EMPTY;
	     at = profile_stack_parent(f->profile, at)) {
		assert_true(n < 64);
		names[n++] = profile_text_of(
			f->profile,
			profile_frame_of(f->profile, profile_stack_frame(f->profile, at))->name,
			NULL);
	}
	len = (size_t)snprintf(
		out, sizeof(f->got[0]), "%s ",
		profile_text_of(f->profile, profile_thread_of(f->profile, s->thread)->comm, NULL));
	while (n--)
		len += (size_t)snprintf(out + len, sizeof(f->got[0]) - len, "%s%c", names[n],
					n ? ';' : ' ');
	snprintf(out + len, sizeof(f->got[0]) - len, "%llu", (unsigned long long)s->weight);
	f->ngot++;
	return 0;
}

static void finish(struct fixture *f)
{
	assert_int_equal(post_wakeups_finish(f->w, &f->summary), 0);
	assert_int_equal(profile_each_sample(f->profile, take, f), 0);
	assert_int_equal(f->ngot, f->summary.samples);
}

static void end(struct fixture *f)
{
	post_wakeups_free(f->w);
	profile_free(f->profile);
}

static void the_waker_stands_above_the_sleeper(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	waker(&f, 200, 2, "start;wake;k:write");
	waker(&f, 100, 3, "start;post");
	wait(&f, 1, 1000, 1700, 2000, 2, 200, 0);
	wait(&f, 1, 3000, 3500, 3600, 3, 100, 0);
	wait(&f, 1, 4000, 4500, 4600, 9, 0, 0); /* a waker without a sample */
	wait(&f, 1, 5000, 5000, 5600, 0, 0, OFFCPU_IDX_PREEMPTED);
	goes_on(&f, 1, 6000, 10000); /* no waker */
	wait(&f, 2, 9000, 9700, 10000, 3, 100,
	     OFFCPU_IDX_CUT_END); /* woken, but without a CPU until the end */
	finish(&f);
	assert_int_equal(f.ngot, 3);
	assert_string_equal(f.got[0], "t1 main;wait;--;write;wake;start;t2 700");
	assert_string_equal(f.got[1], "t1 main;wait;--;post;start;t3 500");
	assert_int_equal(f.summary.blocked_ns, 6400);
	assert_int_equal(f.summary.ended_ns, 2400);
	assert_int_equal(f.summary.known_ns, 1900);
	assert_int_equal(f.summary.interrupt_ns, 0);
	end(&f);
}

static void put_chain(struct fixture *f, uint64_t late_ns)
{
	begin(f);
	f->late_ns = late_ns;
	waker(f, 100, 2, "a");
	waker(f, 200, 3, "b");
	waker(f, 300, 0, "k:asm_sysvec_timer;k:tick");
	wait(f, 1, 1000, 3000, 3100, 2, 100, 0);
	wait(f, 2, 1500, 2000, 2500, 3, 200, 0); /* in the middle of the wait */
	wait(f, 3, 500, 1900, 1950, 0, 300, OFFCPU_IDX_INTERRUPT);
	wait(f, 4, 2600, 2900, 2950, 2, 100, 0); /* t2 did not wait in that time */
}

/* The order may be known at the time, or only later and out of order. */
static void a_waker_that_waited_has_its_own_waker(void **state)
{
	(void)state;
	for (uint64_t late_ns = 0; late_ns < 100000; late_ns += 50000) {
		struct fixture f;

		put_chain(&f, late_ns);
		finish(&f);
		assert_int_equal(f.ngot, 4);
		assert_string_equal(
			f.got[0],
			"t1 main;wait;--;a;t2;--;b;t3;--;tick;asm_sysvec_timer;[interrupt] 2000");
		assert_string_equal(
			f.got[1], "t2 main;wait;--;b;t3;--;tick;asm_sysvec_timer;[interrupt] 500");
		assert_string_equal(f.got[2],
				    "t3 main;wait;--;tick;asm_sysvec_timer;[interrupt] 1400");
		assert_string_equal(f.got[3], "t4 main;wait;--;a;t2 300");
		assert_int_equal(f.summary.interrupt_ns, 1400);
		end(&f);
	}
}

static void names_of_threads_are_the_same_in_all_places(void **state)
{
	struct collapse_options options = {.event_filter = WAKEUPS_EVENT, .annotate_kernel = true};
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;
	struct fixture f;

	(void)state;
	begin(&f);
	waker(&f, 100, 11, "a");
	waker(&f, 200, 12, "b");
	wait(&f, 11, 1000, 1700, 1700, 12, 200, 0);
	wait(&f, 12, 2000, 2700, 2700, 11, 100, 0);
	finish(&f);
	assert_int_equal(collapse_write(f.profile, &options, &out, &stats), 0);
	options.names = COLLAPSE_FULL;
	assert_int_equal(collapse_write(f.profile, &options, &out, &stats), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, "(a_b;c->d);main;wait;--;a;.NET_TP_Worker "
				      "700\n.NET_TP_Worker;main;wait;--;b;(a_b:c->d) 700\n"
				      "(a b:c->d);main;wait;--;a;.NET TP Worker 700\n.NET TP "
				      "Worker;main;wait;--;b;(a b:c->d) 700\n");
	outbuf_close(&out);
	end(&f);
}

static void circles_and_long_chains_end(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	/* Two threads that each woke the other. */
	waker(&f, 100, 2, "a");
	waker(&f, 200, 1, "b");
	wait(&f, 1, 1000, 2000, 2100, 2, 100, 0);
	wait(&f, 2, 1100, 1900, 1950, 1, 200, 0);
	wait(&f, 1, 500, 950, 1850, 2, 100, 0);
	finish(&f);
	assert_int_equal(f.ngot, 3);
	assert_string_equal(f.got[1], "t1 main;wait;--;a;t2 1000");
	assert_string_equal(f.got[2], "t2 main;wait;--;b;t1 800");
	end(&f);
	begin(&f);
	/* Each wait lies within the previous one. */
	for (int32_t i = 1; i <= WAITS_MAX; i++) {
		waker(&f, (uint64_t)i, i + 1, "w");
		wait(&f, i, 1000, 9000 - (uint64_t)i * 100, 9010 - (uint64_t)i * 100, i + 1,
		     (uint64_t)i, 0);
	}
	finish(&f);
	assert_string_equal(f.got[0], "t1 main;wait;--;w;t2;--;w;t3;--;w;t4;--;w;t5;--;w;t6 7900");
	end(&f);
}

static void waits_over_the_limit_are_left_out_and_counted(void **state)
{
	static const char *const sleepers[] = {"main;a", "main;b", "main;c", "main;a"};
	struct fixture f;

	(void)state;
	begin(&f);
	post_wakeups_free(f.w);
	assert_int_equal(post_wakeups_new(f.profile, &f.idx, 14, &f.w),
			 0); /* these six and two more, twice */
	waker(&f, 100, 2, "1;2;3;4");
	for (int32_t i = 0; i < 4; i++) {
		f.sleeper = sleepers[i];
		wait(&f, 3 + i, 1000, 1500, 1600, 2, 100, 0);
	}
	finish(&f);
	assert_int_equal(f.ngot, 3);
	assert_string_equal(f.got[0], "t3 main;a;--;4;3;2;1;t2 500");
	assert_string_equal(f.got[1], "t4 main;b;--;4;3;2;1;t2 500");
	assert_string_equal(f.got[2], "t6 main;a;--;4;3;2;1;t2 500"); /* already present */
	assert_int_equal(f.summary.left_out, 1);
	assert_int_equal(f.summary.left_out_ns, 500);
	assert_int_equal(f.summary.known_ns, 2000);
	end(&f);
	/* No room for their event. */
	begin(&f);
	for (uint32_t i = 0, id; i + 1 < PROFILE_EVENTS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "e%u", i);
		assert_int_equal(profile_event(f.profile,
					       &(struct profile_event){.name = text(&f, name)},
					       &id),
				 0);
	}
	waker(&f, 100, 2, "1");
	wait(&f, 3, 1000, 1500, 1600, 2, 100, 0);
	finish(&f);
	assert_int_equal(f.ngot, 0);
	assert_int_equal(f.summary.left_out, 1);
	end(&f);
}

static void an_interrupted_thread_is_no_waker(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	waker(&f, 100, 0, "k:do_idle;k:asm_sysvec_timer;k:tick");
	waker(&f, 200, 2, "work;k:asm_common_interrupt;k:common_interrupt;k:irq_exit;k:net_rx");
	waker(&f, 300, 2, "send;k:syscall;k:bh_enable;k:net_rx");
	waker(&f, 400, 2, "asm_sysvec_mine;k:asm_sysvec_timer;k:exit_to_user;k:task_work");
	waker(&f, 500, 0, "");
	wait(&f, 1, 1000, 1100, 1100, 0, 100, OFFCPU_IDX_INTERRUPT);
	wait(&f, 1, 2000, 2100, 2100, 2, 200, OFFCPU_IDX_SOFTIRQ);
	wait(&f, 1, 3000, 3100, 3100, 2, 300, OFFCPU_IDX_SOFTIRQ);
	wait(&f, 1, 4000, 4100, 4100, 2, 400, 0);
	wait(&f, 1, 5000, 5100, 5100, 0, 500, OFFCPU_IDX_INTERRUPT);
	finish(&f);
	assert_int_equal(f.ngot, 5);
	assert_string_equal(f.got[0], "t1 main;wait;--;tick;asm_sysvec_timer;[interrupt] 100");
	assert_string_equal(
		f.got[1],
		"t1 main;wait;--;net_rx;irq_exit;common_interrupt;asm_common_interrupt;[interrupt] "
		"100");
	assert_string_equal(f.got[2], "t1 main;wait;--;net_rx;bh_enable;syscall;send;t2 100");
	assert_string_equal(
		f.got[3],
		"t1 main;wait;--;task_work;exit_to_user;asm_sysvec_timer;asm_sysvec_mine;t2 100");
	assert_string_equal(f.got[4], "t1 main;wait;--;[interrupt] 100");
	assert_int_equal(f.summary.interrupt_ns, 300);
	end(&f);
}

static void senseless_words_are_no_chain(void **state)
{
	struct profile_sample s = {.time_ns = 50, .weight = 100};
	struct fixture f;

	(void)state;
	begin(&f);
	waker(&f, 100, 2, "a");
	wait(&f, 1, 1000, 0, 2000, 2, 100, 0); /* runnable for longer than the wait: not blocked */
	wait(&f, 1, 3000, 3100, 3100, 2, 100, OFFCPU_IDX_ESTIMATED);
	wait(&f, 2, 3000, 3050, 3060, 1, 100, OFFCPU_IDX_ESTIMATED); /* never a link */
	/* Longer than all time. */
	s.event = f.waits;
	s.thread = thread(&f, 1);
	f.rows[f.idx.nwaits++] = (struct offcpu_idx_wait){
		.file_off = 20000, .waker_off = 100, .waker = 1, .woken_ns = UINT64_MAX / 16};
	assert_int_equal(post_wakeups_wait(f.w, 20000, &s), 0);
	assert_int_equal(post_wakeups_wait(f.w, 30000, &s), 0); /* not in the index */
	finish(&f);
	assert_int_equal(f.ngot, 3);
	assert_string_equal(f.got[0], "t1 --;a;t2 100");
	assert_string_equal(f.got[1], "t1 main;wait;--;a;t2 100");
	end(&f);
	/* Recorded without wakers. */
	begin(&f);
	wait(&f, 1, 1000, 1500, 2000, 0, 0, 0);
	finish(&f);
	assert_int_equal(f.ngot, 0);
	assert_int_equal(f.summary.blocked_ns, 0);
	assert_int_equal(profile_wakeup_event(f.profile), PROFILE_NONE);
	end(&f);
}

static void an_event_with_the_same_name_is_not_a_wait(void **state)
{
	struct profile_event recorded = {.has_period = true};
	uint32_t event;
	struct fixture f;

	(void)state;
	begin(&f);
	recorded.name = text(&f, WAKEUPS_EVENT);
	assert_int_equal(profile_event(f.profile, &recorded, &event), 0);
	waker(&f, 200, 2, "start");
	wait(&f, 1, 1000, 1700, 2000, 2, 200, 0);
	finish(&f);
	assert_int_equal(f.ngot, 1);
	assert_int_not_equal(profile_wakeup_event(f.profile), event);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_waker_stands_above_the_sleeper),
		cmocka_unit_test(a_waker_that_waited_has_its_own_waker),
		cmocka_unit_test(names_of_threads_are_the_same_in_all_places),
		cmocka_unit_test(circles_and_long_chains_end),
		cmocka_unit_test(waits_over_the_limit_are_left_out_and_counted),
		cmocka_unit_test(an_interrupted_thread_is_no_waker),
		cmocka_unit_test(senseless_words_are_no_chain),
		cmocka_unit_test(an_event_with_the_same_name_is_not_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
