/*
 * unwind/unwinder: whole stacks of this process are those that libunwind finds, frame by frame:
 * with recursion, variable frames, callbacks from libc, a signal handler, and in a second thread.
 */
#include "unwind/unwinder.h"

#include "base/arch.h"

#include <alloca.h>
#include <libunwind.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define FRAMES_MAX 256
#define COPY_MAX ((size_t)256 << 10)
#define REGS 17
/* ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15 (arch/x86/include/uapi/asm/perf_regs.h) */
#define REGS_MASK UINT64_C(0xff01ff)

static const int greg_of[REGS] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
				  REG_RBP, REG_RSP, REG_RIP, REG_R8,  REG_R9,  REG_R10,
				  REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

/* mov rax, 15; syscall */
static const unsigned char sigreturn_code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};

static struct unwinder *unwinder;
static size_t compared, least; /* stacks; least frames of one */

/* Gives the unwinder the executable maps of this process. */
static void map_ourselves(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t cap = 0;

	assert_non_null(maps);
	while (getline(&line, &cap, maps) > 0) {
		unsigned long long start, end, pgoff;
		int name = 0;

		if (sscanf(line, "%llx-%llx %*2cx%*c %llx %*s %*u %n", &start, &end, &pgoff,
			   &name) < 3 ||
		    !name)
			continue;
		line[strcspn(line, "\n")] = 0;
		const struct perfdata_record r = {.type = PERF_RECORD_MMAP,
						  .pid = getpid(),
						  .tid = getpid(),
						  .mmap = {.addr = start,
							   .len = end - start,
							   .pgoff = pgoff,
							   .filename = line + name}};

		assert_int_equal(unwinder_apply(unwinder, &r), 0);
	}
	free(line);
	fclose(maps);
}

/* Frames of callers have red zones, which memcpy refuses under sanitizers. */
__attribute__((no_sanitize("address"))) static void copy_stack(uint64_t *to, const uint64_t *from,
							       size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*to); i++)
		to[i] = from[i];
}

/* Unwinds a copy of this thread's stack from the registers on. */
static struct unwound ours(const ucontext_t *context, void *copy)
{
	uint64_t regs[REGS], sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP];
	pthread_attr_t attr;
	struct unwound unwound;
	void *stack;
	size_t bytes;

	for (int i = 0; i < REGS; i++)
		regs[i] = (uint64_t)context->uc_mcontext.gregs[greg_of[i]];
	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	assert_int_equal(pthread_attr_getstack(&attr, &stack, &bytes), 0);
	pthread_attr_destroy(&attr);
	bytes = (size_t)((uint64_t)(uintptr_t)stack + bytes - sp);
	bytes = bytes < COPY_MAX ? bytes : COPY_MAX;
	copy_stack(copy, (const uint64_t *)(uintptr_t)sp, bytes);
	const struct unwinder_sample s = {.pid = getpid(),
					  .tid = (int32_t)syscall(SYS_gettid),
					  .time_ns = 1,
					  .regs = regs,
					  .regs_mask = REGS_MASK,
					  .abi = PERF_SAMPLE_REGS_ABI_64,
					  .stack = copy,
					  .stack_bytes = bytes,
					  .last = true};

	assert_int_equal(unwinder_sample(unwinder, &s, &unwound), 0);
	return unwound;
}

/* Compares the stack of the calling thread from here on. */
static __attribute__((noinline)) void compare(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	void *copy = malloc(COPY_MAX);
	bool exact = true; /* the address is no return address */
	size_t n = 0;

	assert_non_null(copy);
	assert_int_equal(unw_getcontext(&context), 0);
	struct unwound unwound = ours(&context, copy);

	assert_int_equal(unwound.grade, UNWIND_COMPLETE);
	assert_true(unwound.ncallchain && unwound.callchain[0] == PERF_CONTEXT_USER);
	assert_int_equal(unw_init_local(&cursor, &context), 0);
	do {
		unw_word_t ip;

		assert_int_equal(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
		if (!ip)
			break;
		n++;
		assert_true(n < unwound.ncallchain && n < FRAMES_MAX);
		/* The trampoline of a handler begins at its return address. */
		bool is_signal = !memcmp((const void *)ip, sigreturn_code, sizeof(sigreturn_code));

		assert_int_equal(unwound.callchain[n], ip - !(exact || is_signal));
		exact = is_signal;
	} while (unw_step(&cursor) > 0);
	assert_int_equal(unwound.ncallchain, n + 1);
	compared++;
	least = n < least || compared == 1 ? n : least;
	free(copy);
}

static __attribute__((noinline)) int by_alloca(int depth)
{
	volatile char *room = alloca((size_t)(16 * depth + 1));

	room[0] = (char)depth;
	if (depth)
		depth = by_alloca(depth - 1);
	else
		compare();
	return depth + room[0];
}

static int by_callback(const void *a, const void *b)
{
	if (!compared)
		(void)by_alloca(5);
	return memcmp(a, b, 1);
}

static void on_signal(int number)
{
	(void)number;
	compare();
}

static void begin(void)
{
	const struct unwinder_options options = {0};

	assert_int_equal(unwinder_new(&options, &unwinder), 0);
	map_ourselves();
	compared = 0;
}

static void end(size_t frames)
{
	assert_int_equal(compared, 1);
	assert_true(least >= frames);
	unwinder_free(unwinder);
}

static void variable_frames(void **state)
{
	(void)state;
	begin();
	(void)by_alloca(20);
	end(22 + 3);
}

static void callbacks_of_libc(void **state)
{
	char letters[] = "callback";

	(void)state;
	begin();
	qsort(letters, strlen(letters), 1, by_callback);
	end(7 + 3);
}

static void a_signal_handler(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};

	(void)state;
	begin();
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	end(3 + 3);
}

static void *in_thread(void *arg)
{
	(void)by_alloca(3);
	return arg;
}

static void a_second_thread(void **state)
{
	pthread_t thread;

	(void)state;
	begin();
	assert_int_equal(pthread_create(&thread, NULL, in_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	end(7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(variable_frames),
		cmocka_unit_test(callbacks_of_libc),
		cmocka_unit_test(a_signal_handler),
		cmocka_unit_test(a_second_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
