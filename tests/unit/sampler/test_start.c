/* The time between opening events and sampling, with real events of a child. */
#include "base/clock.h"
#include "sampler/attr.h"
#include "sampler/sampler_impl.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define THREADS_MAX 64
#define FREQ_HZ 997
#define MS ((useconds_t)1000)

/* State that the child shares with the test. */
struct child {
	_Atomic pid_t tids[THREADS_MAX];
	_Atomic uint32_t wanted, n; /* threads, without the first */
	_Atomic uint32_t mappings;  /* that the child shall make */
};

/* Records that the listener got. */
struct seen {
	const struct child *child;
	uint64_t samples, first_ns, mappings, forks;
	uint64_t of[THREADS_MAX];
};

/* Whether targets do not answer, by -Wl,--wrap. */
static bool silent;

__typeof__(targets_threads) __real_targets_threads, __wrap_targets_threads;

int __wrap_targets_threads(pid_t pid, const char *proc, struct target_threads *threads)
{
	return silent ? -ETIME : __real_targets_threads(pid, proc, threads);
}

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct seen *seen = ctx;

	(void)cpu;
	for (size_t pos = 0; pos < len;) {
		const struct perf_event_header *h = (const void *)((const char *)data + pos);
		const struct attr_sample *first = attr_sample_of(h, false);

		seen->mappings += h->type == PERF_RECORD_MMAP2;
		seen->forks += h->type == PERF_RECORD_FORK;
		if (h->type == PERF_RECORD_SAMPLE && first) {
			seen->samples++;
			if (!seen->first_ns || first->time_ns < seen->first_ns)
				seen->first_ns = first->time_ns;
			for (uint32_t i = 0; i < atomic_load(&seen->child->n); i++)
				seen->of[i] +=
					(uint32_t)atomic_load(&seen->child->tids[i]) == first->tid;
		}
		pos += h->size;
	}
	return 0;
}

static void *thread_main(void *arg)
{
	struct child *child = arg;
	uint32_t i = atomic_fetch_add(&child->n, 1);

	atomic_store(&child->tids[i], (pid_t)syscall(SYS_gettid));
	for (volatile uint64_t k = 0;; k++)
		;
	return NULL;
}

/* Begins threads and makes executable mappings on request, and works all the time. */
static __attribute__((noreturn)) void child_main(struct child *child)
{
	uint32_t threads = 0, mappings = 0;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		for (; threads < atomic_load(&child->wanted); threads++)
			if (pthread_create(&thread, NULL, thread_main, child))
				_exit(1);
		for (; mappings < atomic_load(&child->mappings); mappings++)
			if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				 0) == MAP_FAILED)
				_exit(1);
		usleep(MS);
	}
}

static struct child *child_new(void)
{
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(child, MAP_FAILED);
	return child;
}

static void want_threads(struct child *child, uint32_t n)
{
	atomic_store(&child->wanted, n);
	while (atomic_load(&child->n) < n || !atomic_load(&child->tids[n - 1]))
		usleep(MS);
}

static pid_t start_child(struct child *child, uint32_t threads)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		child_main(child);
	want_threads(child, threads);
	return pid;
}

static void end_child(pid_t pid, struct child *child)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	munmap(child, sizeof(*child));
}

static int try_open(pid_t pid, enum sampler_mode mode, uint64_t memory, struct sampler **ret_s,
		    struct sampler_problem *problem)
{
	static const struct sampler_event event = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
	const struct sampler_options options = {.pids = &pid,
						.npids = 1,
						.events = &event,
						.nevents = 1,
						.freq_hz = FREQ_HZ,
						.mode = mode,
						.memory = memory,
						.stack_bytes = memory ? 1024 : 0,
						.count = true};

	return sampler_open(&options, ret_s, problem);
}

static struct sampler *open_with(pid_t pid, enum sampler_mode mode, struct seen *seen,
				 uint64_t memory)
{
	const struct sampler_listener listener = {.ctx = seen, .records = take_records};
	struct sampler_problem problem;
	struct sampler *s = NULL;

	if (try_open(pid, mode, memory, &s, &problem))
		fail_msg("cannot %s: %s", problem.what, problem.detail);
	assert_int_equal(sampler_listen(s, &listener), 0);
	return s;
}

static struct sampler *open_on(pid_t pid, enum sampler_mode mode, struct seen *seen)
{
	return open_with(pid, mode, seen, 0);
}

static void drain_until(struct sampler *s, const struct seen *seen, uint64_t samples)
{
	uint64_t until_ns = clock_monotonic_ns() + 20 * NS_PER_S;

	while (seen->samples < samples && clock_monotonic_ns() < until_ns) {
		struct pollfd p = {.fd = sampler_poll_fd(s), .events = POLLIN};

		assert_true(poll(&p, 1, 20) >= 0);
		assert_int_equal(sampler_drain(s), 0);
	}
	assert_true(seen->samples >= samples);
}

static void only_other_records_come_before_the_start(void **state)
{
	(void)state;
	for (enum sampler_mode mode = SAMPLER_THREADS; mode <= SAMPLER_CPUS; mode++) {
		struct child *child = child_new();
		pid_t pid = start_child(child, 2);
		struct seen seen = {.child = child};
		struct sampler *s = open_on(pid, mode, &seen);

		atomic_store(&child->mappings, 5);
		want_threads(child, 4);
		usleep(50 * MS);
		assert_int_equal(sampler_drain(s), 0);
		assert_int_equal(seen.samples, 0);
		assert_int_equal(seen.forks, 2);
		assert_true(seen.mappings >= 5); /* the threads map their stacks, too */
		uint64_t mappings = seen.mappings, start_ns = sampler_start(s);

		assert_true(start_ns <= clock_monotonic_ns());
		/* The same records come on, once. */
		usleep(10 * MS);
		atomic_store(&child->mappings, 6);
		usleep(50 * MS);
		drain_until(s, &seen, 50);
		assert_true(seen.first_ns >= start_ns);
		assert_int_equal(seen.mappings, mappings + 1);
		assert_int_equal(sampler_stop(s), 0);
		sampler_close(s);
		end_child(pid, child);
	}
}

static void threads_that_begin_before_the_start_are_sampled(void **state)
{
	(void)state;
	for (enum sampler_mode mode = SAMPLER_THREADS; mode <= SAMPLER_CPUS; mode++) {
		struct child *child = child_new();
		pid_t pid = start_child(child, 1);
		struct seen seen = {.child = child};
		struct sampler *s = open_on(pid, mode, &seen);

		want_threads(child, 3);
		sampler_start(s);
		/* Events that only ran until the start are closed. */
		for (size_t i = 0; i < s->fds.len; i++)
			assert_true(s->event_rings || !s->fds.v[i].event_only);
		assert_int_equal(sampler_setup(s)->descriptors, s->fds.len + sampler_nrings(s));
		want_threads(child, 4);
		drain_until(s, &seen, 400);
		for (uint32_t i = 0; i < 4; i++)
			if (seen.of[i] < 25)
				fail_msg("thread %u: %llu of %llu samples", i,
					 (unsigned long long)seen.of[i],
					 (unsigned long long)seen.samples);
		sampler_close(s);
		end_child(pid, child);
	}
}

/* Records in a process of its own, whose limit leaves no room for events that only run until the
 * start. */
static int record_with_few_descriptors(pid_t pid, struct child *child)
{
	long ncpus = sysconf(_SC_NPROCESSORS_ONLN);
	int next = dup(0);
	rlim_t most = (rlim_t)next + 7 * (rlim_t)ncpus + 6;
	struct seen seen = {.child = child};

	close(next);
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most}))
		return 2;
	struct sampler *s = open_on(pid, SAMPLER_THREADS, &seen);
	uint64_t opened_ns = clock_monotonic_ns(), start_ns = sampler_start(s);

	drain_until(s, &seen, 50);
	bool as_told =
		start_ns < opened_ns && seen.first_ns >= start_ns && s->fds.len == 6 * s->cpus.len;

	sampler_close(s);
	return as_told ? 0 : 3;
}

static void with_few_descriptors_sampling_begins_at_once(void **state)
{
	(void)state;
	struct child *child = child_new();
	pid_t pid = start_child(child, 5), recorder = fork();
	int status;

	assert_true(recorder >= 0);
	if (!recorder)
		_exit(record_with_few_descriptors(pid, child));
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	end_child(pid, child);
}

/* All rings together take at most a quarter of the memory that is left. */
static void rings_keep_to_the_memory_that_is_left(void **state)
{
	(void)state;
	struct child *child = child_new();
	pid_t pid = start_child(child, 1);
	struct seen seen = {.child = child};
	size_t ncpus = (size_t)sysconf(_SC_NPROCESSORS_ONLN), largest = 0;

	for (uint64_t memory = (uint64_t)4 << 40; memory >= (ncpus << 20); memory /= 2) {
		struct sampler *s = open_with(pid, SAMPLER_THREADS, &seen, memory);
		uint64_t bytes = 0;

		for (size_t i = 0; i < sampler_nrings(s); i++)
			bytes += sampler_ring(s, i)->size;
		largest = largest ? largest : s->setup.ring_bytes;
		assert_true(bytes <= memory / 4);
		assert_int_equal(s->setup.small_rings, s->setup.ring_bytes < largest);
		sampler_close(s);
	}
	end_child(pid, child);
}

static void a_target_that_does_not_answer_is_told_and_kept(void **state)
{
	(void)state;
	struct child *child = child_new();
	pid_t pid = start_child(child, 1);
	struct seen seen = {.child = child};
	struct sampler_problem problem;
	struct sampler *s = NULL;
	char name[48];

	silent = true;
	assert_int_equal(try_open(pid, SAMPLER_THREADS, 0, &s, &problem), -ETIME);
	snprintf(name, sizeof(name), "process %d: it waits", (int)pid);
	assert_non_null(strstr(problem.detail, name));
	silent = false;
	s = open_with(pid, SAMPLER_THREADS, &seen, (uint64_t)1 << 40);
	sampler_start(s);
	silent = true;
	assert_int_equal(sampler_set_stack_bytes(s, 512), -ESRCH);
	silent = false;
	assert_int_equal(sampler_set_stack_bytes(s, 512), 0);
	sampler_close(s);
	end_child(pid, child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_other_records_come_before_the_start),
		cmocka_unit_test(threads_that_begin_before_the_start_are_sampled),
		cmocka_unit_test(with_few_descriptors_sampling_begins_at_once),
		cmocka_unit_test(rings_keep_to_the_memory_that_is_left),
		cmocka_unit_test(a_target_that_does_not_answer_is_told_and_kept),
	};
	struct attr_features features;

	if (attr_probe(&features)) {
		puts("perf events are not permitted here");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
