/* profcpu/wall: all time of threads on one scale. The parts of each thread add up to its life. */
#include "profcpu/post/wall.h"

#include "profile/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PID 7

struct fixture {
	struct profile *profile;
	uint32_t on_cpu, waits, faults;
	struct profile_group *groups;
	size_t n;
};

static uint32_t text(struct fixture *f, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_text(f->profile, s, strlen(s), &id), 0);
	return id;
}

static uint32_t event(struct fixture *f, const char *name, bool off_cpu, bool has_period)
{
	const struct profile_event e = {
		.name = text(f, name), .has_period = has_period, .off_cpu = off_cpu};
	uint32_t id;

	assert_int_equal(profile_event(f->profile, &e, &id), 0);
	return id;
}

static void begin(struct fixture *f, const char *on_cpu)
{
	*f = (struct fixture){0};
	assert_int_equal(profile_new(&f->profile), 0);
	f->faults = event(f, "page-faults", false, false);
	f->on_cpu = event(f, on_cpu, false, true);
	f->waits = event(f, "offcpu-time", true, true);
}

static void end(struct fixture *f)
{
	free(f->groups);
	profile_free(f->profile);
}

static uint32_t stack(struct fixture *f, const char *name)
{
	struct profile_frame frame = {.perf_name = PROFILE_NONE,
				      .module = PROFILE_NONE,
				      .srcline = PROFILE_NONE,
				      .kind = FRAME_NATIVE};
	uint32_t id, stack;

	if (!name)
		return PROFILE_STACK_EMPTY;
	frame.name = frame.perf_name = text(f, name);
	if (strstr(name, "poll"))
		frame.module = text(f, "/lib/libc.so.6");
	assert_int_equal(profile_frame(f->profile, &frame, &id), 0);
	assert_int_equal(profile_stack(f->profile, PROFILE_STACK_EMPTY, id, &stack), 0);
	return stack;
}

static void sample(struct fixture *f, uint32_t event, int32_t tid, const char *comm,
		   const char *name, uint64_t weight)
{
	const struct profile_thread thread = {.pid = PID, .tid = tid, .comm = text(f, comm)};
	struct profile_sample s = {.event = event, .weight = weight, .stack = stack(f, name)};

	assert_int_equal(profile_thread(f->profile, &thread, &s.thread), 0);
	assert_int_equal(profile_sample(f->profile, &s), 0);
}

static void make(struct fixture *f, struct offcpu_idx_thread *rows, size_t n, bool show_idle)
{
	const struct offcpu_idx idx = {.threads = rows, .nthreads = n};
	struct idle *idle = NULL;

	free(f->groups);
	if (!show_idle)
		assert_int_equal(idle_new(f->profile, &idle), 0);
	assert_int_equal(post_wall_groups(f->profile, &idx, idle, &f->groups, &f->n), 0);
	idle_free(idle);
}

/* Sums of a thread below a frame; thread NULL: of all threads. */
static uint64_t ns_of(const struct fixture *f, int32_t tid, const char *name)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct profile_group *g = &f->groups[i];
		const struct profile_frame *frame;

		assert_int_equal(g->event, f->waits);
		assert_int_not_equal(g->stack, PROFILE_STACK_EMPTY);
		frame = profile_frame_of(f->profile, profile_stack_frame(f->profile, g->stack));
		if (profile_thread_of(f->profile, g->thread)->tid == tid &&
		    (!name || !strcmp(profile_text_of(f->profile, frame->name, NULL), name)))
			ns += g->weight;
	}
	return ns;
}

static void samples_share_the_threads_run_time(void **state)
{
	struct offcpu_idx_thread row = {.tid = 8,
					.pid = PID,
					.begin_ns = 1000,
					.end_ns = 2000,
					.running_ns = 301,
					.blocked_ns = 600,
					.runnable_ns = 99};
	struct fixture f;

	(void)state;
	begin(&f, "cpu-clock");
	sample(&f, f.on_cpu, 8, "app", "work", 20);
	sample(&f, f.on_cpu, 8, "app", "more", 10);
	sample(&f, f.faults, 8, "app", "fault", 1000);
	sample(&f, f.waits, 8, "app", "sleep", 699);
	sample(&f, f.waits, 9, "other", "sleep", 5); /* no row: its total is unknown */
	make(&f, &row, 1, false);
	assert_int_equal(ns_of(&f, 8, "work"), 200);
	assert_int_equal(ns_of(&f, 8, "more"), 101);
	assert_int_equal(ns_of(&f, 8, "sleep"), 699);
	assert_int_equal(ns_of(&f, 8, NULL), 1000);
	assert_int_equal(ns_of(&f, 9, NULL), 0);
	end(&f);
}

static void samples_without_stack_are_reported(void **state)
{
	struct offcpu_idx_thread rows[] = {
		{.tid = 8,
		 .pid = PID,
		 .end_ns = 1000,
		 .running_ns = 100,
		 .blocked_ns = 700,
		 .runnable_ns = 50,
		 .unknown_ns = 150,
		 .short_ns = 200},
		{.tid = 9, .pid = PID, .end_ns = 400, .running_ns = 400},
	};
	struct fixture f;

	(void)state;
	begin(&f, "cpu-clock");
	sample(&f, f.waits, 8, "app", "sleep", 300);
	sample(&f, f.waits, 8, "app", NULL, 210);
	make(&f, rows, 2, false);
	assert_int_equal(ns_of(&f, 8, WALL_NOT_SAMPLED), 100);
	assert_int_equal(ns_of(&f, 8, WALL_SHORT), 200);
	assert_int_equal(ns_of(&f, 8, PROFILE_NO_STACK), 210);
	assert_int_equal(ns_of(&f, 8, WALL_UNKNOWN),
			 150 + 40); /* waits whose sample is missing too */
	assert_int_equal(ns_of(&f, 8, NULL), 1000);
	assert_int_equal(ns_of(&f, 9, WALL_NOT_SAMPLED), 400); /* neither sample nor wait */
	assert_string_equal(
		profile_text_of(f.profile,
				profile_thread_of(f.profile, f.groups[f.n - 1].thread)->comm, NULL),
		":9"); /* and no name */
	make(&f, rows, 2, false);
	assert_int_equal(ns_of(&f, 8, NULL), 1000); /* the same again */
	end(&f);
}

static void samples_of_other_events_share_no_time(void **state)
{
	struct offcpu_idx_thread row = {.tid = 8, .pid = PID, .end_ns = 300, .running_ns = 300};
	struct fixture f;

	(void)state;
	begin(&f, "cache-misses");
	sample(&f, f.on_cpu, 8, "app", "work", 20);
	make(&f, &row, 1, false);
	assert_int_equal(ns_of(&f, 8, WALL_NOT_SAMPLED), 300);
	end(&f);
	begin(&f, "cycles:u");
	sample(&f, f.on_cpu, 8, "app", "work", UINT64_MAX / 2);
	make(&f, &row, 1, false);
	assert_int_equal(ns_of(&f, 8, "work"), 300);
	end(&f);
}

/* Earlier names and reuse of its id make no difference. */
static void a_thread_appears_under_its_last_name(void **state)
{
	struct offcpu_idx_thread rows[] = {{.tid = 8, .pid = PID, .end_ns = 100, .running_ns = 100},
					   {.tid = 8, .pid = PID, .end_ns = 60, .running_ns = 60}};
	struct fixture f;

	(void)state;
	begin(&f, "cpu-clock");
	sample(&f, f.on_cpu, 8, "sh", "a", 10);
	sample(&f, f.on_cpu, 8, "app", "b", 30);
	make(&f, rows, 2, false);
	assert_int_equal(f.n, 2);
	assert_int_equal(ns_of(&f, 8, "a"), 40);
	assert_int_equal(ns_of(&f, 8, "b"), 120);
	for (size_t i = 0; i < f.n; i++)
		assert_string_equal(
			profile_text_of(f.profile,
					profile_thread_of(f.profile, f.groups[i].thread)->comm,
					NULL),
			"app");
	end(&f);
}

static void idle_waits_are_one_frame(void **state)
{
	struct offcpu_idx_thread row = {
		.tid = 8, .pid = PID, .end_ns = 100, .running_ns = 10, .blocked_ns = 90};
	struct fixture f;

	(void)state;
	begin(&f, "cpu-clock");
	sample(&f, f.on_cpu, 8, ".NET EventPipe", "poll", 5);
	sample(&f, f.waits, 8, ".NET EventPipe", "poll", 90);
	make(&f, &row, 1, false);
	assert_int_equal(ns_of(&f, 8, IDLE_NAME), 90);
	for (size_t i = 0; i < f.n; i++) {
		const struct profile_frame *frame = profile_frame_of(
			f.profile, profile_stack_frame(f.profile, f.groups[i].stack));
		bool is_idle = !strcmp(profile_text_of(f.profile, frame->name, NULL), IDLE_NAME);

		assert_int_equal(frame->kind,
				 is_idle ? FRAME_IDLE
					 : FRAME_NATIVE); /* not code in pictures either */
	}
	assert_int_equal(ns_of(&f, 8, "poll"), 10); /* nothing is idle on a CPU */
	make(&f, &row, 1, true);
	assert_int_equal(ns_of(&f, 8, "poll"), 100);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_share_the_threads_run_time),
		cmocka_unit_test(samples_without_stack_are_reported),
		cmocka_unit_test(samples_of_other_events_share_no_time),
		cmocka_unit_test(a_thread_appears_under_its_last_name),
		cmocka_unit_test(idle_waits_are_one_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
