#include "profcpu/crash.h"

#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static volatile unsigned *nowhere;
static void (*volatile no_function)(void);

__attribute__((noinline)) static void crash_by_write(void)
{
	*nowhere = 1;
}

__attribute__((noinline)) static void crash_by_call(void)
{
	no_function();
	*nowhere = 2;
}

__attribute__((noinline)) static void crash_by_abort(void)
{
	abort();
}

__attribute__((noinline)) static void crash_by_trap(void)
{
	__builtin_trap();
}

__attribute__((noinline)) static uint64_t crash_by_overflow(volatile unsigned char *before)
{
	volatile unsigned char here[4096];

	here[0] = *before;
	return here[0] == 255 ? 0 : here[0] + crash_by_overflow(here) + here[0];
}

static void *overflow_main(void *ctx)
{
	unsigned char first = 0;

	(void)ctx;
	crash_by_overflow(&first);
	return NULL;
}

static void crash_in_thread(void)
{
	pthread_t thread;

	if (!thread_start(&thread, "overflows", overflow_main, NULL))
		pthread_join(thread, NULL);
}

static void *write_main(void *ctx)
{
	(void)ctx;
	crash_by_write();
	return NULL;
}

/* Two threads crash at about the same time. */
static void crash_twice(void)
{
	pthread_t one, two;

	if (!thread_start(&one, "twin", write_main, NULL) &&
	    !thread_start(&two, "twin", write_main, NULL)) {
		pthread_join(one, NULL);
		pthread_join(two, NULL);
	}
}

static void crash_with_frame_pointers_to_nowhere(void)
{
	__asm__ volatile("mov $0x10, %%rbp; mov $0x20, %%rsp; movl $0, 0x30" ::: "memory");
}

/* Runs crash() in a child, and returns its wait status; text: the messages. */
static int run(void (*crash)(void), char *text, size_t size)
{
	int pipes[2], status = 0;
	size_t len = 0;
	ssize_t n;

	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		const struct rlimit none = {0};
		const int signals[] = THREAD_CRASH_SIGNALS;

		/* cmocka handles some of them. */
		for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
			signal(signals[i], SIG_DFL);
		setrlimit(RLIMIT_CORE, &none);
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		crash_begin();
		crash();
		_exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void dies(void (*crash)(void), int number, const char *head, const char *function)
{
	char text[16384];
	int status = run(crash, text, sizeof(text));

	if (!WIFSIGNALED(status) || WTERMSIG(status) != number || !strstr(text, head) ||
	    !strstr(text, function) || !strstr(text, "profcpu: version ") ||
	    strstr(text, "build id unknown"))
		fail_msg("status %x, %s", (unsigned)status, text);
}

static void a_crash_prints_its_functions_and_ends_by_the_signal(void **state)
{
	(void)state;
	dies(crash_by_write, SIGSEGV, "crashed: SIGSEGV at address 0x0;", " crash_by_write+");
	dies(crash_by_call, SIGSEGV, "crashed: SIGSEGV at address 0x0;", " crash_by_call+");
	dies(crash_by_abort, SIGABRT, "crashed: SIGABRT from PID ", " crash_by_abort+");
	dies(crash_by_trap, SIGILL, "crashed: SIGILL at address 0x", " crash_by_trap+");
}

static void a_stack_overflow_of_a_thread_is_printed(void **state)
{
	(void)state;
	dies(crash_in_thread, SIGSEGV, "thread overflows (TID ", " crash_by_overflow+");
}

static void a_second_crash_waits_for_the_first(void **state)
{
	char text[16384], *at = text;
	unsigned heads = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_true(WIFSIGNALED(run(crash_twice, text, sizeof(text))));
		for (at = text, heads = 0; (at = strstr(at, "crashed: SIGSEGV")); at++)
			heads++;
		assert_int_equal(heads, 1);
		assert_non_null(strstr(text, " thread_main+"));
	}
}

static void wild_registers_end_the_stack(void **state)
{
	(void)state;
	dies(crash_with_frame_pointers_to_nowhere, SIGSEGV, "crashed: SIGSEGV at address 0x30;",
	     " crash_with_frame_pointers_to_nowhere+");
}

/* Nobody reads the messages, and the pipe is full. */
static void crash_into_a_full_pipe(void)
{
	static const char zeros[4096];
	int pipes[2];

	if (pipe(pipes) || fcntl(pipes[1], F_SETFL, O_NONBLOCK))
		return;
	while (write(pipes[1], zeros, sizeof(zeros)) > 0)
		;
	while (write(pipes[1], zeros, 1) > 0)
		;
	fcntl(pipes[1], F_SETFL, 0);
	dup2(pipes[1], STDERR_FILENO);
	crash_by_write();
}

static void a_blocked_message_does_not_keep_the_process(void **state)
{
	uint64_t begin_ns = clock_monotonic_ns();
	char text[64];
	int status = run(crash_into_a_full_pipe, text, sizeof(text));

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_true(clock_monotonic_ns() - begin_ns < (CRASH_SECONDS_MAX + 10) * NS_PER_S);
}

static void other_handler(int number)
{
	(void)number;
}

static void handlers_of_others_stay(void **state)
{
	const int signals[] = THREAD_CRASH_SIGNALS;
	struct sigaction after;
	stack_t before_stack, after_stack;

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], i % 2 ? SIG_IGN : other_handler);
	sigaltstack(NULL, &before_stack);
	crash_begin();
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		assert_int_equal(sigaction(signals[i], NULL, &after), 0);
		assert_true(after.sa_handler == (i % 2 ? SIG_IGN : other_handler));
	}
	sigaltstack(NULL, &after_stack);
	if (!(before_stack.ss_flags & SS_DISABLE))
		assert_ptr_equal(before_stack.ss_sp, after_stack.ss_sp);
}

int main(void)
{
	const struct CMUnitTest sanitized[] = {cmocka_unit_test(handlers_of_others_stay)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crash_prints_its_functions_and_ends_by_the_signal),
		cmocka_unit_test(a_stack_overflow_of_a_thread_is_printed),
		cmocka_unit_test(a_second_crash_waits_for_the_first),
		cmocka_unit_test(wild_registers_end_the_stack),
		cmocka_unit_test(a_blocked_message_does_not_keep_the_process),
		cmocka_unit_test(handlers_of_others_stay),
	};

	/* A sanitizer has handlers of its own. */
	return SANITIZED ? cmocka_run_group_tests(sanitized, NULL, NULL)
			 : cmocka_run_group_tests(tests, NULL, NULL);
}
