/* Processes whose lists of memory maps are long take a small part of the capture's time. */
#include "base/clock.h"
#include "container/opener.h"
#include "profcpu/jit/capture_process.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NAME_BYTES 240
#define LINE_BYTES (NAME_BYTES * 4) /* maps shows a newline as \012 */
#define LONG_MAPS (PROC_MAPS_SMALL / LINE_BYTES + 1)
#define SHARE 15 /* less than PROCESS_LATE_SHARE */

/* A process with that many maps of a file whose name has so many newlines. */
static pid_t start_process(size_t maps)
{
	char name[NAME_BYTES + 1], byte;
	int ready[2];

	memset(name, '\n', NAME_BYTES);
	name[NAME_BYTES] = 0;
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (!pid) {
		int fd = memfd_create(name, MFD_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Different rights keep neighbours apart. */
		for (size_t i = 0; i < maps; i++)
			if (mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE, fd, 0) ==
			    MAP_FAILED)
				_exit(98);
		if (write(ready[1], "x", 1) != 1)
			_exit(97);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Probes a process as the capture does, if it is due. */
static void visit(struct jit_processes *all, struct jit_process *p, bool last)
{
	uint64_t now = clock_monotonic_ns();

	if (last || p->next_ns <= now)
		jit_process_probe(all, p, now, now + 60 * NS_PER_S, last);
}

static struct jit_process process_of(pid_t pid)
{
	uint64_t now = clock_monotonic_ns();

	return (struct jit_process){.pid = pid, .since_ns = now, .next_ns = now};
}

static void long_lists_are_read_one_at_a_time(void **state)
{
	struct jit_processes all = {.dir_fd = -1};
	pid_t pids[] = {start_process(LONG_MAPS), start_process(LONG_MAPS), start_process(0)};
	struct jit_process first = process_of(pids[0]), second = process_of(pids[1]),
			   usual = process_of(pids[2]);

	(void)state;
	assert_int_equal(opener_new(&all.opener), 0);
	visit(&all, &first, false);
	assert_true(first.slow && first.late);
	first.next_ns = 0;
	visit(&all, &first, false);
	assert_false(first.late || first.done || first.is_dotnet);
	/* Soon after, the second one has to wait, and the first one too. */
	assert_true(all.turn_ns > clock_monotonic_ns());
	assert_true(first.next_ns >= all.turn_ns);
	visit(&all, &second, false);
	assert_true(second.slow && second.late && !second.done);
	assert_int_equal(second.next_ns, all.turn_ns);
	/* One with a short list does not wait. */
	visit(&all, &usual, false);
	assert_false(usual.slow || usual.late);
	/* At the end there is no later. */
	visit(&all, &second, true);
	assert_false(second.late || second.done);
	assert_int_equal(all.unseen, 0);
	for (int i = 0; i < 3; i++)
		end_process(pids[i]);
	opener_free(all.opener);
}

static void probes_of_long_lists_take_a_small_part_of_the_time(void **state)
{
	enum { N = 4 };
	struct jit_processes all = {.dir_fd = -1};
	struct jit_process p[N];
	uint64_t spent = 0, begin = clock_monotonic_ns();

	(void)state;
	assert_int_equal(opener_new(&all.opener), 0);
	for (int i = 0; i < N; i++) {
		p[i] = process_of(start_process(LONG_MAPS));
		/* The first reads, up to PROC_MAPS_SMALL, do not count. */
		visit(&all, &p[i], false);
		assert_true(p[i].slow);
	}
	for (begin = clock_monotonic_ns(); clock_monotonic_ns() - begin < 2 * NS_PER_S;
	     usleep(1000))
		for (int i = 0; i < N; i++) {
			uint64_t cpu = clock_thread_ns();

			visit(&all, &p[i], false);
			spent += clock_thread_ns() - cpu;
		}
	print_message("%.1f ms in 2 s\n", (double)spent / NS_PER_MS);
	assert_true(spent < 2 * NS_PER_S / SHARE);
	for (int i = 0; i < N; i++)
		end_process(p[i].pid);
	opener_free(all.opener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_lists_are_read_one_at_a_time),
		cmocka_unit_test(probes_of_long_lists_take_a_small_part_of_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
