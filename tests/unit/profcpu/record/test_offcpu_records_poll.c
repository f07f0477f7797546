/* profcpu/record/offcpu_records: waits of threads whose counters in /proc are polled, after losses
 * and after windows. */
#include "tests/unit/record_offcpu_check.h"

static void write_stat(const char *dir, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/71/schedstat", dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A /proc with one thread, 71. dir: template for mkdtemp. */
static void make_proc(char *dir)
{
	char path[128];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/71", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	write_stat(dir, "500 20 7\n");
	snprintf(path, sizeof(path), "%s/thread-self", dir);
	assert_int_equal(symlink("71", path), 0);
}

static void remove_proc(const char *dir)
{
	static const char *const names[] = {"thread-self", "71/schedstat"};
	char path[128];

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/71", dir);
	rmdir(path);
	rmdir(dir);
}

/* No waking is recorded. The scheduler counts 300 ns without a CPU, between the round's records. */
static void threads_are_polled_after_they_got_a_cpu(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	uint64_t now = clock_monotonic_ns();
	struct fixture f;

	(void)state;
	make_proc(dir);
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = now, .proc = dir});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	in(&f, now + 10, 71);
	assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
	now = clock_monotonic_ns();
	out(&f, now, 71, 0x10);
	in(&f, now + 2000, 71);
	write_stat(dir, "510 320 8\n");
	assert_int_equal(record_offcpu_round(f.o), 0);
	/* A later count does not change them. */
	write_stat(dir, "520 9320 8\n");
	assert_int_equal(record_offcpu_round(f.o), 0);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.got[1].sample.time_ns, now + 2000);
	assert_int_equal(f.got[1].sample.off_ns, 2000);
	assert_int_equal(f.got[1].row.runnable_ns, 300);
	assert_int_equal(f.got[1].row.end_ns, 0);
	end(&f, clock_monotonic_ns());
	assert_int_equal(record_offcpu_result(f.o).unsettled, 0);
	record_offcpu_free(f.o);
	remove_proc(dir);
}

static void a_wait_goes_on_whatever_was_lost(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";

	(void)state;
	make_proc(dir);
	/* 1: the scheduler counts one more switch in than was seen. */
	for (int more = 0; more < 2; more++) {
		uint64_t now = clock_monotonic_ns();
		struct fixture f;

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = now, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		in(&f, now + 1000, 71);
		out(&f, now + 2000, 71, 0x10);
		write_stat(dir, more ? "510 20 9\n" : "510 20 8\n");
		record_seen(&f, 3, now + 3000);
		assert_int_equal(record_offcpu_lost(f.o, 3, now + 4000), 0);
		assert_int_equal(record_offcpu_round(f.o), 0);
		in(&f, clock_monotonic_ns() + 5000, 71);
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		end(&f, clock_monotonic_ns() + 10000);
		assert_true(more ? record_offcpu_result(f.o).unknown_ns > 1000
				 : !record_offcpu_result(f.o).unknown_ns);
		assert_int_equal(f.n, more ? 3 : 2);
		assert_int_equal(f.got[1].words[1], 0x10);
		record_offcpu_free(f.o);
		write_stat(dir, "500 20 7\n");
	}
	remove_proc(dir);
}

/* OPEN and CLOSE, and the scheduler's numbers at the end of the window. */
static void window(struct fixture *f, const char *dir, uint64_t open_ns, uint64_t close_ns,
		   const char *stat)
{
	double width;

	assert_int_equal(record_offcpu_mark(f->o, OFFCPU_OPEN, open_ns), 0);
	assert_int_equal(record_offcpu_mark(f->o, OFFCPU_CLOSE, close_ns), 0);
	write_stat(dir, stat);
	assert_int_equal(record_offcpu_poll(f->o, close_ns, &width), 0);
}

static void a_loss_counts_in_the_window_of_its_ring(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	double width;

	(void)state;
	make_proc(dir);
	for (int is_full = 0; is_full < 2; is_full++) {
		struct fixture f;
		uint64_t with_stack_ns = 0;

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		assert_int_equal(record_offcpu_mark(f.o, OFFCPU_CLOSE, 2000), 0);
		assert_int_equal(record_offcpu_poll(f.o, 2000, &width), 0);
		assert_int_equal(record_offcpu_round(f.o), 0);
		/* If more records may have followed, it is unknown whether this wait continues up
		 * to the next window. */
		window(&f, dir, 5000, 6000, "600 20 8\n");
		in(&f, 5100, 71);
		out(&f, 5200, 71, 0x10);
		record_seen(&f, 3, 5200);
		assert_int_equal(record_offcpu_round(f.o), 0);
		if (is_full)
			assert_int_equal(record_offcpu_full(f.o, 3, 6100), 0);
		window(&f, dir, 9000, 10000, "600 20 8\n");
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		end(&f, 12000);
		for (size_t i = 0; i < f.n; i++)
			with_stack_ns += f.got[i].words[1] == 0x10 ? f.got[i].sample.off_ns : 0;
		assert_true(is_full ? !with_stack_ns : with_stack_ns >= 6000);
		assert_int_equal(record_offcpu_result(f.o).unknown_ns, 0);
		record_offcpu_free(f.o);
		write_stat(dir, "500 20 7\n");
	}
	remove_proc(dir);
}

/* The rings of CPUs are not in order. */
static void a_wait_that_began_in_a_window_is_followed_to_its_end(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;
	size_t waiting = 9;

	(void)state;
	make_proc(dir);
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	window(&f, dir, 5000, 6000, "600 20 8\n");
	record_offcpu_moved(f.o, 71, 5900, true);
	record_offcpu_moved(f.o, 71, 5100, false);
	record_offcpu_moved(f.o, 72, 5900, true); /* is not recorded */
	assert_int_equal(record_offcpu_find_waiting(f.o, 6000, &waiting), 0);
	assert_int_equal(waiting, 1);
	assert_int_equal(record_offcpu_follow(f.o, 7000, &waiting), 0);
	assert_int_equal(waiting, 1);
	write_stat(dir, "600 20 9\n");
	assert_int_equal(record_offcpu_follow(f.o, 8000, &waiting), 0);
	assert_int_equal(waiting, 0);
	/* In this window its last switch is a switch in. */
	window(&f, dir, 15000, 16000, "600 20 10\n");
	record_offcpu_moved(f.o, 71, 15900, false);
	record_offcpu_moved(f.o, 71, 15100, true);
	assert_int_equal(record_offcpu_find_waiting(f.o, 16000, &waiting), 0);
	assert_int_equal(waiting, 0);
	end(&f, 20000);
	record_offcpu_free(f.o);
	remove_proc(dir);
}

/* The poll of all threads takes longer than a short wait. */
static void threads_in_sampled_waits_are_polled_first(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;
	size_t waiting = 9;
	double width;

	(void)state;
	make_proc(dir);
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	window(&f, dir, 5000, 6000, "600 20 8\n");
	record_offcpu_moved(f.o, 71, 14900, true);
	write_stat(dir, "600 20 9\n");
	assert_int_equal(record_offcpu_find_waiting(f.o, 15000, &waiting), 0);
	assert_int_equal(waiting, 1);
	/* The wait ends before the poll of all. */
	write_stat(dir, "600 20 10\n");
	assert_int_equal(record_offcpu_poll(f.o, 15000, &width), 0);
	write_stat(dir, "600 20 9\n");
	assert_int_equal(record_offcpu_follow(f.o, 15500, &waiting), 0);
	assert_int_equal(waiting, 1);
	write_stat(dir, "600 20 10\n");
	assert_int_equal(record_offcpu_follow(f.o, 16000, &waiting), 0);
	assert_int_equal(waiting, 0);
	/* An ended thread is not followed. */
	record_offcpu_moved(f.o, 71, 24900, true);
	task(&f, PERF_RECORD_EXIT, 24950, PID, 71, PID);
	assert_int_equal(record_offcpu_find_waiting(f.o, 25000, &waiting), 0);
	assert_int_equal(waiting, 0);
	end(&f, 30000);
	record_offcpu_free(f.o);
	remove_proc(dir);
}

/* Only the scheduler's counters show what it does. */
static void a_thread_that_always_sleeps_is_one_wait(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;

	(void)state;
	make_proc(dir);
	/* 0: its stack is not read; 1: it is read; 2: the stack of an earlier wait is read. */
	for (uint64_t how = 0; how < 3; how++) {
		const uint64_t words[] = {PERF_CONTEXT_USER, 0x70, 0xAA};
		const struct unwound unwound = {
			.callchain = words, .ncallchain = 3, .grade = UNWIND_SPLICED};

		begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
		task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
		assert_true(f.nrequested == 1 && f.requested == 71);
		task(&f, PERF_RECORD_FORK, 1500, PID, 72,
		     PID); /* threads that begin later are seen completely */
		task(&f, PERF_RECORD_EXIT, 1500, PID, 72, PID);
		assert_int_equal(f.nrequested, 1);
		assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
		if (how)
			assert_int_equal(
				record_offcpu_add_stack(f.o, 71, how == 1 ? 7 : 6, &unwound), 0);
		assert_int_equal(record_offcpu_add_stack(f.o, 99, 7, &unwound), 0);
		end(&f, 5000);
		assert_int_equal(f.n, 1);
		assert_wait(&f.got[0], 71, 5000, 4000, how == 1 ? 0x70 : 0);
		record_offcpu_free(f.o);
	}
	remove_proc(dir);
}

/* By the time polls are processed the wait could be over. */
static void a_thread_in_one_wait_while_events_are_off_is_read_at_once(void **state)
{
	static const uint64_t ms[] = {1, 4, 6, 8, 40, 42}, requested[] = {1, 1, 2, 2, 2, 3};
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct fixture f;
	double width;

	(void)state;
	make_proc(dir);
	begin_with(&f, &(struct record_offcpu_options){.begin_ns = BEGIN_NS, .proc = dir});
	task(&f, PERF_RECORD_FORK, 0, PID, 71, PID);
	assert_false(record_offcpu_round(f.o) || record_offcpu_round(f.o));
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		assert_false(record_offcpu_mark(f.o, OFFCPU_CLOSE, ms[i] * NS_PER_MS) ||
			     record_offcpu_poll(f.o, ms[i] * NS_PER_MS, &width));
		assert_int_equal(f.nrequested, requested[i]);
	}
	record_offcpu_free(f.o);
	remove_proc(dir);
}

#define CROWD 5000     /* threads, more than one round polls */
#define CROWD_TID 1000 /* of the first thread */

struct crowd {
	struct record_offcpu *o;
	uint64_t begin_ns;
	bool requested[CROWD];
	size_t nrequested;
};

static int take_crowd_wait(void *ctx, const struct perfdata_offcpu *sample,
			   const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	(void)ctx, (void)sample, (void)unwound, (void)row;
	return 0;
}

static int take_crowd_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)ctx, (void)thread;
	return 0;
}

static int take_crowd_request(void *ctx, int32_t pid, int32_t tid)
{
	struct crowd *c = ctx;

	assert_int_equal(pid, PID);
	c->nrequested += !c->requested[tid - CROWD_TID];
	c->requested[tid - CROWD_TID] = true;
	return 0;
}

/* All threads of this /proc are links to thread 71. */
static void begin_crowd(struct crowd *c, const char *dir)
{
	char path[128];

	*c = (struct crowd){.begin_ns = clock_monotonic_ns()};
	assert_int_equal(record_offcpu_new(&(struct record_offcpu_options){.begin_ns = c->begin_ns,
									   .proc = dir},
					   &c->o),
			 0);
	record_offcpu_to(c->o, &(struct record_offcpu_writer){.ctx = c,
							      .wait = take_crowd_wait,
							      .thread = take_crowd_thread,
							      .request = take_crowd_request});
	for (int32_t i = 0; i < CROWD; i++) {
		const struct perfdata_record record = {
			.type = PERF_RECORD_FORK, .pid = PID, .tid = CROWD_TID + i, .cpu = -1};

		snprintf(path, sizeof(path), "%s/%d", dir, CROWD_TID + i);
		assert_int_equal(symlink("71", path), 0);
		assert_int_equal(record_offcpu_apply(c->o, &record), 0);
	}
	assert_false(record_offcpu_round(c->o) || record_offcpu_round(c->o));
}

static void end_crowd(struct crowd *c, const char *dir)
{
	char path[128];

	for (int32_t i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, CROWD_TID + i);
		unlink(path);
	}
	remove_proc(dir);
	record_offcpu_free(c->o);
}

/* Repeated losses change nothing. */
static void all_threads_are_polled_after_losses(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct crowd c;

	(void)state;
	make_proc(dir);
	begin_crowd(&c, dir);
	assert_int_equal(c.nrequested, CROWD);
	memset(c.requested, 0, sizeof(c.requested));
	c.nrequested = 0;
	for (int round = 0; round < 4; round++) {
		assert_int_equal(record_offcpu_lost(c.o, -1, clock_monotonic_ns()), 0);
		assert_int_equal(record_offcpu_round(c.o), 0);
		/* The first round leaves some threads for later. */
		if (!round)
			assert_true(c.nrequested < CROWD);
	}
	assert_int_equal(c.nrequested, CROWD);
	end_crowd(&c, dir);
}

/* Each thread runs a tenth of the time. */
static void write_tenth(const struct crowd *c, const char *dir, uint64_t time_ns)
{
	char text[80];

	snprintf(text, sizeof(text), "%llu 20 7\n",
		 500 + (unsigned long long)(time_ns - c->begin_ns) / 10);
	write_stat(dir, text);
}

static void all_threads_are_polled_after_windows(void **state)
{
	char dir[] = "/tmp/test_record_offcpu.XXXXXX";
	struct crowd c;
	double width;

	(void)state;
	make_proc(dir);
	begin_crowd(&c, dir);
	uint64_t now = c.begin_ns;

	for (int i = 0; i < 6; i++) {
		now += NS_PER_MS;
		write_tenth(&c, dir, now);
		assert_int_equal(record_offcpu_mark(c.o, i < 5 ? OFFCPU_CLOSE : OFFCPU_WHOLE, now),
				 0);
		assert_int_equal(record_offcpu_poll(c.o, now, &width), 0);
		assert_true(i == 0 || (width > 0.0999 * CROWD && width < 0.1001 * CROWD));
		assert_int_equal(record_offcpu_round(c.o), 0);
		if (i < 5)
			assert_int_equal(record_offcpu_mark(c.o, OFFCPU_OPEN, now += 1000), 0);
	}
	/* By this time all must have been polled. */
	const struct perfdata_record late = {.type = PERF_RECORD_FORK,
					     .time_ns = clock_monotonic_ns() + 3 * NS_PER_S,
					     .pid = PID,
					     .tid = CROWD_TID + CROWD,
					     .cpu = -1};

	assert_int_equal(record_offcpu_apply(c.o, &late), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(record_offcpu_round(c.o), 0);
	assert_int_equal(record_offcpu_finish(c.o, late.time_ns + NS_PER_S), 0);
	assert_int_equal(record_offcpu_result(c.o).unknown_ns, 0);
	end_crowd(&c, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_polled_after_they_got_a_cpu),
		cmocka_unit_test(a_loss_counts_in_the_window_of_its_ring),
		cmocka_unit_test(a_wait_goes_on_whatever_was_lost),
		cmocka_unit_test(a_wait_that_began_in_a_window_is_followed_to_its_end),
		cmocka_unit_test(threads_in_sampled_waits_are_polled_first),
		cmocka_unit_test(a_thread_that_always_sleeps_is_one_wait),
		cmocka_unit_test(a_thread_in_one_wait_while_events_are_off_is_read_at_once),
		cmocka_unit_test(all_threads_are_polled_after_losses),
		cmocka_unit_test(all_threads_are_polled_after_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
