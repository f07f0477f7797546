/* When one process is read again. */
#include "profcpu/jit/capture_process.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/ask.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define AGE_NS (400 * NS_PER_MS)
#define STEP_NS (60 * NS_PER_MS)

static int step_slowly(void *state, uint64_t now_ns, bool last, char *why)
{
	(void)state, (void)now_ns, (void)last, (void)why;
	for (uint64_t begin = clock_thread_ns(); clock_thread_ns() - begin < STEP_NS;)
		;
	return 0;
}

/* Follows this process, of that age, in a way whose step takes STEP_NS. Returns the next wait. */
static uint64_t wait_after_step(uint64_t age_ns)
{
	static const struct jit_way slow = {.name = "slow", .words = "slow", .step = step_slowly};
	AUTO_FREE char *stat = NULL;
	struct jit_processes all = {.dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	uint64_t now = clock_monotonic_ns();
	struct jit_process p = {
		.pid = getpid(), .since_ns = now - age_ns, .way = &slow, .stepped = true};
	char file[32];
	size_t len;

	assert_int_equal(proc_read(p.pid, 0, "stat", PROC_FILE_MAX, &stat, &len), 0);
	assert_int_equal(proc_stat_field(stat, PROC_STAT_START_TICKS, &p.identity.start_ticks), 0);
	assert_int_equal(proc_stat_field(stat, PROC_STAT_START_STACK, &p.identity.start_stack), 0);
	assert_int_equal(jit_methods_writer_open(all.dir_fd, p.pid, NULL, &p.target.out), 0);
	jit_process_step(&all, &p, now, false);
	now = clock_monotonic_ns();
	assert_false(p.done);
	(void)jit_methods_writer_close(p.target.out);
	snprintf(file, sizeof(file), "%d.methods", p.pid);
	assert_int_equal(unlinkat(all.dir_fd, file, 0), 0);
	close(all.dir_fd);
	return p.next_ns > now ? p.next_ns - now : 0;
}

/* A slow step, as the first one that reads metadata, must not outlive a short program. */
static void young_processes_are_read_again_soon(void **state)
{
	(void)state;
	assert_true(wait_after_step(AGE_NS) < AGE_NS);
	/* An older one waits 100 times as long as the step took, up to the longest wait. */
	assert_true(wait_after_step(3 * NS_PER_S) > AGE_NS);
}

static atomic_bool may_answer, has_answered;

static int answer_late(void *state)
{
	(void)state;
	while (!may_answer)
		usleep(1000);
	has_answered = true;
	return 0;
}

/* On a busy machine, an answer may be late only once. */
static void a_process_without_an_answer_is_asked_again(void **state)
{
	struct jit_processes all = {.names = JIT_NAMES_AUTO,
				    .dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	uint64_t now = clock_monotonic_ns();
	pid_t pid = fork();
	char question = 0;

	(void)state;
	if (!pid)
		for (;;)
			pause();
	struct jit_process p = {.pid = pid, .since_ns = now};

	assert_int_equal(opener_new(&all.opener), 0);
	assert_int_equal(ask(pid, answer_late, NULL, &question, sizeof(question)), -ETIME);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, false);
	assert_false(p.done);
	assert_true(p.next_ns > now);
	assert_int_equal(all.unseen, 0);
	/* At the end it counts. */
	struct jit_process last = p;

	jit_process_probe(&all, &last, now, now + JIT_PROCESS_READY_NS, true);
	assert_true(last.done);
	assert_int_equal(all.unseen, 1);
	assert_int_equal(all.unseen_error, -ETIME);
	may_answer = true;
	while (!has_answered)
		usleep(1000);
	usleep(100000);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_int_equal(all.unseen, 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	opener_free(all.opener);
	close(all.dir_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(young_processes_are_read_again_soon),
		cmocka_unit_test(a_process_without_an_answer_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
