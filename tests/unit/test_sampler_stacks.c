/* Copies of stacks out of real events: a child whose stacks are known. */
#include "sampler/attr.h"
#include "sampler/internal.h"
#include "unwind/arch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MAGIC UINT64_C(0x5ca1ab1e0ddba11)
#define THREADS_MAX 4096
#define FREQ_HZ 997
#define REG_SP 7 /* of the registers in a sample, in the order of perf's mask */

/* What the child says of itself, in memory that is shared. */
struct child {
	_Atomic pid_t tids[THREADS_MAX];
	_Atomic uint64_t marks[THREADS_MAX]; /* where each thread has MAGIC on its stack */
	_Atomic uint32_t n;
};

struct seen {
	const struct child *child;
	uint64_t samples, with_stack, short_of_mark;
	uint32_t stack_bytes; /* largest copy */
};

/* A sample's fields behind its first: CPU, PERIOD, CALLCHAIN, REGS_USER, STACK_USER. */
static void take_sample(struct seen *seen, const struct perf_event_header *h)
{
	const struct attr_sample *first = attr_sample_of(h, false);
	const uint64_t *w, *end = (const void *)((const char *)h + h->size);

	assert_non_null(first);
	if (!first)
		return;
	seen->samples++;
	w = (const uint64_t *)(const void *)(first + 1) + 2;
	w += 1 + w[0];
	assert_true(w < end);
	uint64_t abi = *w++;

	if (!abi)
		return;
	const uint64_t *regs = w;

	w += __builtin_popcountll(ARCH_PERF_REGS);
	uint64_t size = *w++, sp = regs[REG_SP];

	assert_ptr_equal(w + size / 8 + (size ? 1 : 0), end);
	uint64_t dyn = size ? w[size / 8] : 0;

	assert_true(dyn <= size);
	if (size > seen->stack_bytes)
		seen->stack_bytes = (uint32_t)size;
	for (uint32_t i = 0; i < atomic_load(&seen->child->n); i++) {
		uint64_t mark = atomic_load(&seen->child->marks[i]);

		if ((uint32_t)atomic_load(&seen->child->tids[i]) != first->tid || !mark || sp > mark)
			continue;
		seen->with_stack++;
		if (mark - sp + 8 > dyn) {
			seen->short_of_mark++;
			continue;
		}
		assert_int_equal(w[(mark - sp) / 8], MAGIC);
	}
}

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	(void)cpu;
	for (size_t pos = 0; pos < len;) {
		const struct perf_event_header *h = (const void *)((const char *)data + pos);

		if (h->type == PERF_RECORD_SAMPLE)
			take_sample(ctx, h);
		pos += h->size;
	}
	return 0;
}

static _Atomic bool ended;

/* Under `depth` frames of some 200 bytes it computes until it is killed. */
static __attribute__((noinline)) uint64_t work(int depth)
{
	volatile uint64_t pad[16] = {(uint64_t)depth};

	if (depth)
		return work(depth - 1) + pad[0];
	for (uint64_t i = 0; !atomic_load_explicit(&ended, memory_order_relaxed); i++)
		pad[i % 16] = i;
	return pad[0];
}

static void child_main(struct child *child, int depth)
{
	volatile uint64_t mark = MAGIC;

	atomic_store(&child->tids[0], (pid_t)syscall(SYS_gettid));
	atomic_store(&child->marks[0], (uint64_t)(uintptr_t)&mark);
	atomic_store(&child->n, 1);
	work(depth);
}

static pid_t start(struct child *child, int depth)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_main(child, depth);
		_exit(0);
	}
	while (!atomic_load(&child->n))
		usleep(1000);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct sampler *sample(pid_t pid, enum sampler_mode mode, uint32_t stack_bytes, struct seen *seen)
{
	static const struct sampler_event event = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	struct sampler_options options = {
		.pids = &pid, .npids = 1, .events = &event, .nevents = 1, .freq_hz = FREQ_HZ,
		.stack_bytes = stack_bytes, .mode = mode, .count = true,
	};
	struct sampler_listener listener = {.ctx = seen, .records = take_records};
	struct sampler_problem problem;
	struct sampler *s = NULL;
	int r = sampler_open(&options, &s, &problem);

	if (r)
		fail_msg("cannot %s: %s", problem.what, problem.detail);
	assert_int_equal(sampler_listen(s, &listener), 0);
	return s;
}

/* Until so many samples more were seen. */
static void record(struct sampler *s, struct seen *seen, uint64_t samples)
{
	for (uint64_t wanted = seen->samples + samples; seen->samples < wanted;) {
		struct pollfd p = {.fd = sampler_poll_fd(s), .events = POLLIN};

		assert_true(poll(&p, 1, 20) >= 0);
		assert_int_equal(sampler_drain(s), 0);
	}
}

static struct child *child_new(void)
{
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(child, MAP_FAILED);
	return child;
}

static void samples_have_registers_and_the_stack_as_it_is(void **state)
{
	(void)state;
	struct child *child = child_new();
	pid_t pid = start(child, 10); /* some 2,000 bytes to the mark */

	for (enum sampler_mode mode = SAMPLER_THREADS; mode <= SAMPLER_CPUS; mode++) {
		struct seen seen = {.child = child};
		struct sampler *s = sample(pid, mode, 8192, &seen);
		size_t n;

		assert_int_equal(sampler_opened(s, &n)->attr.sample_stack_user, 8192);
		assert_int_equal(sampler_opened(s, &n)->attr.sample_regs_user, ARCH_PERF_REGS);
		record(s, &seen, 100);
		assert_int_equal(sampler_stop(s), 0);
		assert_int_equal(seen.stack_bytes, 8192);
		assert_int_equal(seen.with_stack, seen.samples);
		assert_int_equal(seen.short_of_mark, 0);
		sampler_close(s);
	}
	end(pid);
	munmap(child, sizeof(*child));
}

static void a_copy_has_no_more_than_was_asked_for(void **state)
{
	(void)state;
	struct child *child = child_new();
	pid_t pid = start(child, 100);
	struct seen seen = {.child = child};
	struct sampler *s = sample(pid, SAMPLER_THREADS, 512, &seen);

	record(s, &seen, 100);
	assert_int_equal(seen.stack_bytes, 512);
	assert_int_equal(seen.short_of_mark, seen.samples);
	sampler_close(s);
	/* What the record cannot have with all of it is left out at the far end. */
	seen = (struct seen){.child = child};
	s = sample(pid, SAMPLER_THREADS, SAMPLER_STACK_BYTES_MAX, &seen);
	record(s, &seen, 100);
	assert_in_range(seen.stack_bytes, 60000, 65400);
	assert_int_equal(seen.with_stack, seen.samples);
	assert_int_equal(seen.short_of_mark, 0);
	sampler_close(s);
	end(pid);
	munmap(child, sizeof(*child));
}

static void sizes_that_the_kernel_has_not_are_refused(void **state)
{
	(void)state;
	static const struct sampler_event event = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	static const uint32_t wrong[] = {4, 8191, SAMPLER_STACK_BYTES_MAX + 8, 1 << 20};
	pid_t pid = getpid();

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct sampler_options options = {
			.pids = &pid, .npids = 1, .events = &event, .nevents = 1, .freq_hz = FREQ_HZ, .stack_bytes = wrong[i]};
		struct sampler_problem problem = {0};
		struct sampler *s = NULL;

		assert_int_equal(sampler_open(&options, &s, &problem), -EINVAL);
		assert_null(s);
		assert_non_null(strstr(problem.detail, "multiple of 8"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_registers_and_the_stack_as_it_is),
		cmocka_unit_test(a_copy_has_no_more_than_was_asked_for),
		cmocka_unit_test(sizes_that_the_kernel_has_not_are_refused),
	};
	struct attr_features features;

	if (attr_probe(&features)) {
		puts("perf events are not permitted here");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
