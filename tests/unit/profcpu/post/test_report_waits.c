#include "profcpu/post/report_waits.h"

#include "profcpu/post/report_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;

	assert_int_equal(profile_text(p, s, strlen(s), &id), 0);
	return id;
}

/* Kind of a frame by the first letter of its name, and its module by what follows the '@'. */
static uint32_t frame(struct profile *p, char *spec)
{
	char *module = strchr(spec, '@');
	uint32_t id;

	if (module)
		*module++ = 0;
	struct profile_frame f = {.perf_name = PROFILE_NONE,
				  .name = text(p, spec + 1),
				  .module = text(p, module ? module : ""),
				  .srcline = PROFILE_NONE,
				  .kind = *spec == 'k'   ? FRAME_KERNEL
					  : *spec == 'm' ? FRAME_MANAGED
					  : *spec == 'r' ? FRAME_RUNNABLE
					  : *spec == 'l' ? FRAME_LABEL
							 : FRAME_NATIVE,
				  .is_mark = *spec == 'r'};

	assert_int_equal(profile_frame(p, &f, &id), 0);
	return id;
}

/* Adds a wait; frames from the root, separated by spaces. */
static void wait_of(struct profile *p, const char *comm, uint64_t ns, const char *frames)
{
	const struct profile_thread thread = {.pid = 7, .tid = 7, .comm = text(p, comm)};
	struct profile_event event = {
		.name = text(p, "offcpu-time"), .has_period = true, .off_cpu = true};
	struct profile_sample s = {.weight = ns, .stack = PROFILE_STACK_EMPTY};
	char copy[512], *next = copy, *spec;

	strcpy(copy, frames);
	while ((spec = strsep(&next, " ")))
		assert_int_equal(profile_stack(p, s.stack, frame(p, spec), &s.stack), 0);
	assert_int_equal(profile_event(p, &event, &s.event), 0);
	assert_int_equal(profile_thread(p, &thread, &s.thread), 0);
	assert_int_equal(profile_sample(p, &s), 0);
}

static struct report_waits sums_of(struct profile *p)
{
	struct report_waits sums;
	struct idle *idle;

	assert_int_equal(idle_new(p, &idle), 0);
	assert_int_equal(report_waits_sum(p, idle, &sums), 0);
	idle_free(idle);
	return sums;
}

static void the_function_that_waits_and_its_caller_are_found(void **state)
{
	static const struct {
		const char *frames, *name, *caller;
	} rows[] = {
		/* the function of the library that the program called */
		{"nmain@app nwork@app ncond_wait@libc nfutex_wait@libc kdo_futex kschedule",
		 "cond_wait", "work"},
		/* one image only */
		{"n_start@go nmain@go nread@go kschedule", "read", "main"},
		{"nread@go kschedule", "read", NULL},
		/* methods of the framework, then the caller's */
		{"mApp.Main()@app.dll mApp.Get()@jit mSystem.Net.Read()@jit mSystem.Wait()@lib.dll "
		 "ncond_wait@libcoreclr nfutex_wait@libc kschedule",
		 "System.Net.Read()", "App.Get()"},
		/* a method that calls native code itself */
		{"mApp.Main()@app.dll nusleep@libc nnanosleep@libc kschedule", "usleep",
		 "App.Main()"},
		{"mSystem.Main()@lib.dll nsleep@libc", "System.Main()", NULL},
		/* kernel threads, and stacks that are not known */
		{"kret_from_fork kkswapd kschedule", "schedule", "kswapd"},
		{"l[no_stack]", "[no_stack]", NULL},
		{"l[truncated] nread@libc kschedule", "read", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct report_waits sums;
		struct profile *p;

		assert_int_equal(profile_new(&p), 0);
		wait_of(p, "app", 5, rows[i].frames);
		sums = sums_of(p);
		assert_int_equal(sums.ntop, 1);
		assert_string_equal(profile_text_of(p, sums.top[0].name, NULL), rows[i].name);
		if (rows[i].caller)
			assert_string_equal(profile_text_of(p, sums.top[0].caller, NULL),
					    rows[i].caller);
		else
			assert_int_equal(sums.top[0].caller, PROFILE_NONE);
		profile_free(p);
	}
}

static void parts_are_disjoint_and_the_longest_waits_come_first(void **state)
{
	struct report_waits sums;
	struct profile *p;
	char frames[64];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 1; i <= 7; i++) {
		snprintf(frames, sizeof(frames), "nmain@app nread%d@libc kschedule", i);
		wait_of(p, "app", (uint64_t)(100 * i), frames);
		snprintf(frames, sizeof(frames), "nroot@app nmain@app nread%d@libc", i);
		wait_of(p, "other", 1, frames);
	}
	wait_of(p, "app", 30, "nmain@app nread@libc r[waiting_for_a_CPU]");
	wait_of(p, ".NET SigHandler", 40, "nrun@libSystem.Native.so nread@libc kschedule");
	sums = sums_of(p);
	assert_int_equal(sums.runnable_ns, 30);
	assert_int_equal(sums.idle_ns + sums.blocked_ns, 2847);
	assert_int_equal(sums.ns, 2847 + 30);
	assert_int_equal(sums.samples, 16);
	assert_int_equal(sums.ntop, REPORT_WAITS);
	for (size_t i = 0; i < REPORT_WAITS; i++)
		assert_int_equal(sums.top[i].ns, 701 - 100 * i);
	profile_free(p);
}

static char *written_for(struct profile *p, const struct post_result *input, bool compared)
{
	struct outbuf out = outbuf_to(-1);
	struct report_waits sums = sums_of(p);

	sums.compared = compared;
	report_waits_write(p, &sums, input, &out);
	outbuf_char(&out, 0);
	char *copy = strdup(out.data);

	outbuf_close(&out);
	return copy;
}

static char *written(struct profile *p, const struct post_result *input)
{
	return written_for(p, input, false);
}

static void each_condition_has_one_advice(void **state)
{
	struct post_result input = {
		.data = {.waits = 7, .off_estimated_ns = 998, .lost_switches = 3}};
	struct profile *p;
	char *out;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	wait_of(p, "app", 1000, "nmain@app nread@libc kschedule");
	out = written(p, &input);
	/* With windows, the number of waits is not known. */
	assert_non_null(strstr(out, "off-CPU   0.000001 s: 0.000001 s blocked\n"));
	assert_non_null(strstr(out, "(99.80 %) among stacks is an estimate"));
	assert_non_null(strstr(out, "3 switches and wakeups lost; use a lower --max-overhead, or"));
	assert_null(strstr(out, "--max-overhead 100"));
	free(out);
	/* Windows would take the evidence from a comparison. */
	out = written_for(p, &input, true);
	assert_non_null(strstr(out, "3 switches and wakeups lost; record while fewer threads"));
	assert_null(strstr(out, "--max-overhead"));
	free(out);
	input.data.lost_switches = 0;
	out = written(p, &input);
	assert_non_null(strstr(out, "--max-overhead 100 "));
	assert_null(strstr(out, "lower"));
	free(out);
	input.data.off_estimated_ns = 0;
	out = written(p, &input);
	assert_non_null(strstr(out, "off-CPU   0.000001 s in 7 waits: "));
	assert_null(strstr(out, "estimate"));
	assert_null(strstr(out, "--max-overhead"));
	assert_non_null(strstr(out, "blocked   100.00 %  read, called by main\n"));
	free(out);
	profile_free(p);
}

static void names_are_cut(void **state)
{
	struct post_result input = {0};
	struct profile *p;
	char frames[480];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	snprintf(frames, sizeof(frames), "n%0*d@app n%0*d@libc", 220, 1, 220, 2);
	wait_of(p, "app", 9, frames);
	char *out = written(p, &input), *line = strstr(out, "blocked   100.00");

	assert_non_null(line);
	assert_true(strlen(line) < 2 * REPORT_NAME_BYTES + 40);
	free(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_function_that_waits_and_its_caller_are_found),
		cmocka_unit_test(parts_are_disjoint_and_the_longest_waits_come_first),
		cmocka_unit_test(each_condition_has_one_advice),
		cmocka_unit_test(names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
