/* sampler/offcpu/blocked: data of /proc about a waiting thread are used only if consistent. The
 * stack belongs to that wait. */
#include "sampler/offcpu/blocked.h"

#include "tests/unit/under_valgrind.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static void the_last_two_numbers_are_the_place(void **state)
{
	struct blocked_stack found = {0};

	(void)state;
	assert_int_equal(blocked_parse("202 0x5618a69a99f0 0x189 0x0 0x0 0x0 0xffffffff "
				       "0x7ffcca609de0 0x7f420a7a3f16\n",
				       &found),
			 0);
	assert_true(found.sp == 0x7ffcca609de0 && found.ip == 0x7f420a7a3f16);
	assert_true(found.syscall == 202);
	assert_int_equal(blocked_parse("-1 0x10 0x20\n", &found), 0);
	assert_true(found.syscall == -1 && found.sp == 0x10 && found.ip == 0x20);
	assert_int_equal(blocked_parse("running\n", &found), -EAGAIN);
	assert_int_equal(blocked_parse("0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n", &found),
			 -EAGAIN); /* a kernel thread */
	assert_true(found.syscall == -1 && found.sp == 0x10 && found.ip == 0x20);
}

static void text_unlike_the_kernels_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"-",
		"-\n",
		"running",
		"running \n",
		"-1\n",
		"-1 0x10\n",
		"-1 0x10 0x20",
		"-1 0x10 0x20 \n",
		"-1 0x10 0x20 0x30\n",
		"-1  0x10 0x20\n",
		"-1 10 20\n",
		"-1 0x 0x20\n",
		"-1 0x-1 0x20\n",
		"-1 0x10 0x\n",
		"1 0x10 0x20\n",
		"- 1 0x10 0x20\n",
		"--1 0x10 0x20\n",
		"+1 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x1\n",
		" 1 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x1\n",
		"1 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x1\n0",
		"1 0x0 0x0 0x0 0x0 0x0 0x0 0x10000000000000000 0x1\n",
		"99999999999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x1\n",
	};
	struct blocked_stack found = {.sp = 1, .ip = 2};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (blocked_parse(texts[i], &found) != -EBADMSG)
			fail_msg("taken: %s", texts[i]);
	assert_true(found.sp == 1 && found.ip == 2);
}

struct sleeper {
	pthread_t thread;
	pid_t tid;
	int pipe[2];
	volatile uint64_t *mark; /* an address on its stack */
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	volatile uint64_t mark = UINT64_C(0x1234567890abcdef);
	char c;

	s->mark = &mark;
	__atomic_store_n(&s->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (read(s->pipe[0], &c, 1) == 1 && mark)
		;
	return NULL;
}

static void begin_sleep(struct sleeper *s)
{
	*s = (struct sleeper){0};
	assert_int_equal(pipe(s->pipe), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, sleeps, s), 0);
	while (!__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void end_sleep(struct sleeper *s)
{
	close(s->pipe[1]);
	pthread_join(s->thread, NULL);
	close(s->pipe[0]);
}

static int read_blocked(const struct sleeper *s, unsigned char *stack, size_t bytes,
			struct blocked_stack *ret_waiting, uint64_t *ret_count)
{
	int r = -EAGAIN;

	for (int i = 0; i < 1000 && (r == -EAGAIN || r == -ESTALE); i++) {
		r = blocked_count(NULL, s->tid, ret_count);
		if (!r)
			r = blocked_read(NULL, s->tid, *ret_count, stack, bytes, ret_waiting);
		if (r)
			usleep(2000);
	}
	return r;
}

static void the_stack_of_a_waiting_thread_is_read(void **state)
{
	struct blocked_stack first, second;
	struct sleeper s;
	uint64_t mark, first_count, second_count;

	(void)state;
	if (under_valgrind())
		skip(); /* the waits are those of its own */
	unsigned char *stack = malloc(BLOCKED_STACK_MAX);

	assert_non_null(stack);
	begin_sleep(&s);
	if (read_blocked(&s, stack, BLOCKED_STACK_MAX, &first, &first_count) == -ENOENT)
		skip(); /* a kernel that does not report it */
	assert_true((uint64_t)(uintptr_t)s.mark > first.sp &&
		    (uint64_t)(uintptr_t)s.mark < first.sp + first.bytes);
	assert_true(first.bytes <= BLOCKED_STACK_MAX);
	memcpy(&mark, stack + ((uint64_t)(uintptr_t)s.mark - first.sp), sizeof(mark));
	assert_true(mark == UINT64_C(0x1234567890abcdef));
	assert_int_equal(read_blocked(&s, stack, 64, &second, &second_count), 0);
	assert_true(second.bytes == 64 && second_count == first_count && second.sp == first.sp &&
		    second.ip == first.ip);
	/* It is in another wait by then. */
	assert_int_equal(write(s.pipe[1], "x", 1), 1);
	for (int i = 0; i < 1000 && second_count == first_count; i++) {
		usleep(2000);
		assert_int_equal(read_blocked(&s, stack, 64, &second, &second_count), 0);
	}
	assert_true(second_count > first_count);
	assert_int_equal(blocked_read(NULL, s.tid, first_count, stack, 64, &second), -ESTALE);
	end_sleep(&s);
	assert_int_equal(blocked_read(NULL, s.tid, second_count, stack, 64, &second), -ENOENT);
	free(stack);
}

static int spinning, stop_spinning;

static void *spins(void *arg)
{
	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (unsigned n = 0; !__atomic_load_n(&stop_spinning, __ATOMIC_ACQUIRE); n++)
		__atomic_store_n(&spinning, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void running_threads_do_not_wait(void **state)
{
	unsigned char stack[64];
	struct blocked_stack w = {.sp = 7};
	pthread_t thread;
	pid_t tid = 0;

	(void)state;
	if (under_valgrind())
		skip(); /* it runs one thread at a time */
	assert_int_equal(pthread_create(&thread, NULL, spins, &tid), 0);
	while (!__atomic_load_n(&spinning, __ATOMIC_ACQUIRE))
		usleep(1000);
	int r = blocked_read(NULL, __atomic_load_n(&tid, __ATOMIC_ACQUIRE), 0, stack, sizeof(stack),
			     &w);

	__atomic_store_n(&stop_spinning, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(w.sp, 7);
}

static void programs_are_identified_by_their_headers(void **state)
{
	static const uint64_t of_64[] = {33, 0x7fff00000000, 4, 56, 0, 0}, other[] = {4, 57, 0, 0};
	static const uint32_t of_32[] = {32, 0xf7f2a5e0, 33, 0xf7f2a000, 3, 0x8048034, 4, 32, 0, 0};
	bool is_32 = true;

	(void)state;
	assert_int_equal(blocked_parse_auxv(of_64, sizeof(of_64), &is_32), 0);
	assert_false(is_32);
	assert_int_equal(blocked_parse_auxv(of_32, sizeof(of_32), &is_32), 0);
	assert_true(is_32);
	assert_int_equal(blocked_parse_auxv(of_64, 16, &is_32), -EBADMSG);
	assert_int_equal(blocked_parse_auxv(of_32, 28, &is_32), -EBADMSG);
	assert_int_equal(blocked_parse_auxv(other, sizeof(other), &is_32), -EBADMSG);
	assert_int_equal(blocked_parse_auxv(NULL, 0, &is_32), -EBADMSG);
	assert_true(is_32);
	assert_int_equal(blocked_is_32(NULL, getpid(), &is_32), 0);
	assert_false(is_32);
	assert_int_equal(blocked_is_32("/nowhere", getpid(), &is_32), -ENOENT);
}

/* A /proc with other contents. */
static void other_files_are_refused(void **state)
{
	char dir[] = "/tmp/test_waiting.XXXXXX", path[64];
	static const char *const texts[][2] = {{"schedstat", "1 2 3\n"},
					       {"syscall", "0 0x1 0x7f\n"}};
	unsigned char stack[64];
	struct blocked_stack w;
	uint64_t count;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/7", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/7/%s", dir, texts[i][0]);
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		/* Still empty */
		assert_int_equal(i ? blocked_read(dir, 7, 3, stack, sizeof(stack), &w)
				   : blocked_count(dir, 7, &count),
				 -EBADMSG);
		fputs(texts[i][1], file);
		fclose(file);
	}
	assert_int_equal(blocked_read(dir, 7, 3, stack, sizeof(stack), &w), -EBADMSG);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/7/%s", dir, texts[i][0]);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/7", dir);
	rmdir(path);
	assert_int_equal(blocked_read(dir, 7, 3, stack, sizeof(stack), &w), -ENOENT);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_two_numbers_are_the_place),
		cmocka_unit_test(text_unlike_the_kernels_is_refused),
		cmocka_unit_test(the_stack_of_a_waiting_thread_is_read),
		cmocka_unit_test(running_threads_do_not_wait),
		cmocka_unit_test(programs_are_identified_by_their_headers),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
