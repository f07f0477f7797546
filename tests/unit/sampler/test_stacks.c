/* Copies of stacks from real events: a child with known stacks. */
#include "base/clock.h"
#include "sampler/attr.h"
#include "sampler/sampler_impl.h"
#include "base/arch.h"
#include "tests/unit/under_valgrind.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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
#define REG_SP 7 /* index of registers in a sample, in the order of perf's mask */

/* State that the child shares with the test. */
struct child {
	_Atomic pid_t tids[THREADS_MAX];
	_Atomic uint64_t marks[THREADS_MAX];    /* address of MAGIC on the stack of each thread */
	_Atomic uint64_t since_ns[THREADS_MAX]; /* begin of its validity: the tid may have belonged
						   to a short-lived thread before */
	_Atomic uint32_t n;
	_Atomic uint32_t wanted, begun; /* threads that must exist, and threads that were begun */
	_Atomic bool busy;              /* the threads must compute now */
};

struct seen {
	const struct child *child;
	uint64_t samples, with_stack, short_of_mark;
	uint32_t stack_bytes;     /* of the last copy */
	uint64_t of[THREADS_MAX]; /* samples of each thread */
	size_t ids;
};

/* Fields of a sample behind the first: CPU, PERIOD, CALLCHAIN, REGS_USER, STACK_USER. */
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
	seen->stack_bytes = (uint32_t)size;
	for (uint32_t i = 0; i < atomic_load(&seen->child->n); i++) {
		uint64_t mark = atomic_load(&seen->child->marks[i]);

		if ((uint32_t)atomic_load(&seen->child->tids[i]) != first->tid)
			continue;
		seen->of[i]++;
		if (!mark || sp > mark || first->time_ns < atomic_load(&seen->child->since_ns[i]))
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

static int take_event_id(void *ctx, size_t event, uint64_t id)
{
	struct seen *seen = ctx;

	assert_int_equal(event, 0);
	assert_true(id > 0);
	seen->ids++;
	return 0;
}

/* Computes under `depth` frames of some 200 bytes until it is killed. */
static __attribute__((noinline)) uint64_t work(int depth)
{
	volatile uint64_t pad[16] = {(uint64_t)depth};

	if (depth)
		return work(depth - 1) + pad[0];
	for (uint64_t i = 0; !atomic_load_explicit(&ended, memory_order_relaxed); i++)
		pad[i % 16] = i;
	return pad[0];
}

static void *thread_main(void *arg)
{
	struct child *child = arg;
	volatile uint64_t mark = MAGIC;
	uint32_t i = atomic_fetch_add(&child->n, 1);

	atomic_store(&child->since_ns[i], clock_monotonic_ns());
	atomic_store(&child->marks[i], (uint64_t)(uintptr_t)&mark);
	atomic_store(&child->tids[i], (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&child->busy))
		usleep(10000);
	work(5);
	return NULL;
}

static void *short_main(void *arg)
{
	return arg;
}

static void begin_thread(void *(*main)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, main, arg) ||
	    (main == short_main && pthread_join(thread, NULL)))
		_exit(1);
}

/* Starts the wanted threads, each somewhat later than the previous one. Meanwhile short-lived
 * threads begin and end. */
static void threads_main(struct child *child)
{
	for (uint32_t i = 0; !atomic_load(&child->busy);) {
		if (atomic_load(&child->begun) >= atomic_load(&child->wanted)) {
			usleep(10);
			continue;
		}
		for (uint64_t until = clock_monotonic_ns() + (i++ % 40) * 40000;
		     clock_monotonic_ns() < until;)
			begin_thread(short_main, NULL);
		begin_thread(thread_main, child);
		atomic_fetch_add(&child->begun, 1);
	}
	pause();
}

static void child_main(struct child *child, int depth)
{
	volatile uint64_t mark = MAGIC;

	atomic_store(&child->tids[0], (pid_t)syscall(SYS_gettid));
	atomic_store(&child->since_ns[0], clock_monotonic_ns());
	atomic_store(&child->marks[0], (uint64_t)(uintptr_t)&mark);
	atomic_store(&child->n, 1);
	if (atomic_load(&child->wanted))
		threads_main(child);
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

static struct sampler_options options_of(enum sampler_mode mode, uint32_t stack_bytes)
{
	static const struct sampler_event event = {
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};

	return (struct sampler_options){.events = &event,
					.nevents = 1,
					.freq_hz = FREQ_HZ,
					.stack_bytes = stack_bytes,
					.mode = mode,
					.count = true};
}

static struct sampler *sample_with(struct sampler_options options, struct seen *seen)
{
	struct sampler_listener listener = {
		.ctx = seen, .records = take_records, .event_id = take_event_id};
	struct sampler_problem problem;
	struct sampler *s = NULL;
	int r = sampler_open(&options, &s, &problem);

	if (r)
		fail_msg("cannot %s: %s", problem.what, problem.detail);
	assert_int_equal(sampler_listen(s, &listener), 0);
	sampler_start(s);
	return s;
}

static struct sampler *sample(pid_t pid, enum sampler_mode mode, uint32_t stack_bytes,
			      struct seen *seen)
{
	struct sampler_options options = options_of(mode, stack_bytes);

	options.pids = &pid;
	options.npids = 1;
	return sample_with(options, seen);
}

/* Drains until this many more samples were seen. */
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
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(child, MAP_FAILED);
	return child;
}

static void samples_have_registers_and_the_stack_as_it_is(void **state)
{
	(void)state;
	if (under_valgrind())
		skip(); /* sampled are its registers and stack */
	struct child *child = child_new();
	pid_t pid = start(child, 10); /* some 2,000 bytes from the stack pointer to the mark */

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

static void a_copy_has_at_most_the_requested_size(void **state)
{
	(void)state;
	if (under_valgrind())
		skip(); /* sampled are its registers and stack */
	struct child *child = child_new();
	pid_t pid = start(child, 100);
	struct seen seen = {.child = child};
	struct sampler *s = sample(pid, SAMPLER_THREADS, 512, &seen);

	record(s, &seen, 100);
	assert_int_equal(seen.stack_bytes, 512);
	assert_int_equal(seen.short_of_mark, seen.samples);
	sampler_close(s);
	/* The far end is left out if the record cannot hold all of it. */
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

/* Drains for this long. */
static void record_ms(struct sampler *s, unsigned ms)
{
	for (uint64_t until = clock_monotonic_ns() + ms * NS_PER_MS;
	     clock_monotonic_ns() < until;) {
		struct pollfd p = {.fd = sampler_poll_fd(s), .events = POLLIN};

		assert_true(poll(&p, 1, 5) >= 0);
		assert_int_equal(sampler_drain(s), 0);
	}
}

static uint64_t ran_ns(pid_t pid, pid_t tid)
{
	char path[64];
	unsigned long long ns = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &ns), 1);
	fclose(f);
	return ns;
}

#define LATE 40 /* threads that begin while events are reopened */

static void begin_threads(struct child *child, uint32_t n)
{
	atomic_fetch_add(&child->wanted, n);
	while (atomic_load(&child->n) < atomic_load(&child->wanted) + 1 ||
	       !atomic_load(&child->tids[atomic_load(&child->wanted)]))
		usleep(100);
}

/* Stops all threads of the child, so that run times and samples cover the same period. */
static void halt(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

/* Each thread has samples for its whole run time: none lacks events on any CPU, and none has them
 * twice. */
static void assert_each_thread_is_sampled_once(struct sampler *s, pid_t pid, struct child *child,
					       struct seen *seen)
{
	uint32_t n = atomic_load(&child->n);
	uint64_t ran[THREADS_MAX] = {0};

	halt(pid);
	assert_int_equal(sampler_drain(s), 0);
	memset(seen->of, 0, sizeof(seen->of));
	for (uint32_t i = 0; i < n; i++)
		ran[i] = ran_ns(pid, atomic_load(&child->tids[i]));
	assert_int_equal(kill(pid, SIGCONT), 0);
	record_ms(s, 2500);
	halt(pid);
	assert_int_equal(sampler_drain(s), 0);
	for (uint32_t i = 1; i < n; i++) {
		double due = (double)(ran_ns(pid, atomic_load(&child->tids[i])) - ran[i]) *
			     FREQ_HZ / 1e9;

		if ((double)seen->of[i] < 0.7 * due - 5 || (double)seen->of[i] > 1.4 * due + 5)
			fail_msg("thread %u of %u: %llu samples, %.0f are expected", i, n,
				 (unsigned long long)seen->of[i], due);
	}
}

static void sizes_change_while_threads_come_and_go(void **state)
{
	(void)state;
	for (enum sampler_mode mode = SAMPLER_THREADS; mode <= SAMPLER_CPUS; mode++) {
		struct child *child = child_new();
		struct seen seen = {.child = child};

		atomic_store(&child->wanted, 2);
		pid_t pid = start(child, 0);

		begin_threads(child, 2);
		struct sampler *s = sample(pid, mode, 1024, &seen);

		begin_threads(child, 2); /* these events inherit */
		for (uint32_t i = 0; i < LATE; i++) {
			size_t n, ids_before = seen.ids;

			atomic_fetch_add(&child->wanted, 1);
			assert_int_equal(sampler_set_stack_bytes(s, 2048 + 8 * i), 0);
			assert_int_equal(sampler_opened(s, &n)->attr.sample_stack_user,
					 2048 + 8 * i);
			assert_true(seen.ids > ids_before);
			begin_threads(child, 0);
		}
		atomic_store(&child->busy, true);
		assert_each_thread_is_sampled_once(s, pid, child, &seen);
		assert_int_equal(seen.stack_bytes, 2048 + 8 * (LATE - 1));
		assert_int_equal(sampler_stats(s)->damaged, 0);
		assert_int_equal(sampler_setup(s)->filtered, mode == SAMPLER_CPUS);
		sampler_close(s);
		end(pid);
		munmap(child, sizeof(*child));
	}
}

/* The visible event ids and descriptors are the open ones. A failed change leaves none behind. */
static void assert_as_before(struct sampler *s, uint32_t stack_bytes, size_t fds)
{
	size_t n;

	assert_int_equal(sampler_opened(s, &n)->attr.sample_stack_user, stack_bytes);
	assert_int_equal(s->fds.len, fds);
	assert_int_equal(sampler_opened(s, &n)->nids, fds);
	for (size_t i = 0; i < fds; i++) {
		uint64_t id;

		assert_int_equal(ioctl(s->fds.v[i].fd, PERF_EVENT_IOC_ID, &id), 0);
		assert_int_equal(sampler_opened(s, &n)->ids[i], id);
	}
}

static int refuse_id(void *ctx, size_t event, uint64_t id)
{
	(void)ctx;
	(void)event;
	(void)id;
	return -E2BIG;
}

static void a_failed_change_alters_nothing(void **state)
{
	(void)state;
	struct child *child = child_new();

	atomic_store(&child->wanted, 6);
	pid_t pid = start(child, 0);

	begin_threads(child, 0);
	atomic_store(&child->busy, true);
	struct seen seen = {.child = child};
	struct sampler *s = sample(pid, SAMPLER_THREADS, 1024, &seen);
	size_t fds = s->fds.len, limit = s->fd_limit, ncpus = s->cpus.len;

	assert_int_equal(fds, 7 * ncpus);
	/* Not enough for the events of one CPU, though they would be opened. */
	s->fd_limit = fds + ncpus + 6 + SAMPLER_FD_RESERVE;
	assert_int_equal(sampler_set_stack_bytes(s, 2048), -EMFILE);
	assert_as_before(s, 1024, fds);
	struct sampler_listener refuses = {.event_id = refuse_id};

	s->fd_limit = limit;
	assert_int_equal(sampler_listen(s, &refuses), 0);
	assert_int_equal(sampler_set_stack_bytes(s, 2048), -E2BIG);
	assert_as_before(s, 1024, fds);
	s->nlisteners--;
	record(s, &seen, 50);
	assert_int_equal(seen.stack_bytes, 1024);
	/* Enough for one CPU at a time. */
	s->fd_limit = fds + ncpus + 7 + SAMPLER_FD_RESERVE + (ncpus > 1 ? 0 : 1);
	assert_int_equal(sampler_set_stack_bytes(s, 2048), 0);
	assert_as_before(s, 2048, fds);
	assert_int_equal(sampler_drain(s), 0);
	record(s, &seen, 50);
	assert_int_equal(seen.stack_bytes, 2048);
	assert_each_thread_is_sampled_once(s, pid, child, &seen);
	sampler_close(s);
	end(pid);
	munmap(child, sizeof(*child));
}

static void a_command_is_sampled_from_its_exec_on_whatever_changed_before(void **state)
{
	(void)state;
	struct child *child = child_new();
	struct seen seen = {.child = child};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!atomic_load(&child->busy))
			;
		execl("/bin/sh", "sh", "-c", "while :; do :; done", NULL);
		_exit(1);
	}
	struct sampler_options options = options_of(SAMPLER_AUTO, 1024);

	options.command = pid;
	struct sampler *s = sample_with(options, &seen);

	assert_int_equal(sampler_set_stack_bytes(s, 512), 0);
	record_ms(s, 50);
	assert_int_equal(sampler_set_stack_bytes(s, 256), 0);
	record_ms(s, 50);
	assert_int_equal(seen.samples, 0);
	atomic_store(&child->busy, true);
	record(s, &seen, 50);
	assert_int_equal(seen.stack_bytes, 256);
	assert_int_equal(sampler_set_stack_bytes(s, 512), 0);
	assert_int_equal(sampler_drain(s), 0);
	record(s, &seen, 50);
	assert_int_equal(seen.stack_bytes, 512);
	sampler_close(s);
	end(pid);
	munmap(child, sizeof(*child));
}

static void sizes_unknown_to_the_kernel_are_refused(void **state)
{
	(void)state;
	static const uint32_t wrong[] = {4, 8191, SAMPLER_STACK_BYTES_MAX + 8, 1 << 20};
	pid_t pid = getpid();
	struct seen seen = {0};
	struct sampler *with = sample(pid, SAMPLER_THREADS, 1024, &seen),
		       *without = sample(pid, SAMPLER_THREADS, 0, &seen);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct sampler_options options = options_of(SAMPLER_THREADS, wrong[i]);
		struct sampler_problem problem = {0};
		struct sampler *s = NULL;

		options.pids = &pid;
		options.npids = 1;
		assert_int_equal(sampler_open(&options, &s, &problem), -EINVAL);
		assert_null(s);
		assert_non_null(strstr(problem.detail, "multiple of 8"));
		assert_int_equal(sampler_set_stack_bytes(with, wrong[i]), -EINVAL);
	}
	/* Samples would have another layout. */
	assert_int_equal(sampler_set_stack_bytes(with, 0), -EINVAL);
	assert_int_equal(sampler_set_stack_bytes(without, 1024), -EINVAL);
	assert_int_equal(sampler_set_stack_bytes(with, 1024), 0);
	sampler_close(with);
	sampler_close(without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_registers_and_the_stack_as_it_is),
		cmocka_unit_test(a_copy_has_at_most_the_requested_size),
		cmocka_unit_test(sizes_change_while_threads_come_and_go),
		cmocka_unit_test(a_failed_change_alters_nothing),
		cmocka_unit_test(a_command_is_sampled_from_its_exec_on_whatever_changed_before),
		cmocka_unit_test(sizes_unknown_to_the_kernel_are_refused),
	};
	struct attr_features features;

	if (attr_probe(&features)) {
		puts("perf events are not permitted here");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
