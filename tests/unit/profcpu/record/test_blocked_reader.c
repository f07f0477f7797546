/* profcpu/record/blocked_reader: stacks of threads that already wait are read, unwound and
 * reported. Failures are counted. */
#include "profcpu/record/blocked_reader.h"

#include "base/clock.h"
#include "profcpu/record/offcpu_records.h"
#include "tests/unit/under_valgrind.h"
#include "tests/unit/wait_blocked.h"

#include <elf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 8
#define NOBODY 0x3f000000 /* above any pid, plus a margin */

struct fixture {
	struct record_offcpu *offcpu;
	struct record_blocked *blocked;
	struct unwinder *unwinder;
	uint64_t requested, ips[THREADS]; /* offset of the stack of waits that have one */
	size_t with_stack, waits;
};

static pid_t tids[THREADS];
static int block[2];

static void *waits(void *arg)
{
	char c;

	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return read(block[0], &c, 1) ? arg : NULL;
}

static int take_wait(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound,
		     const struct offcpu_idx_wait *row)
{
	struct fixture *f = ctx;

	f->waits++;
	assert_true(row->flags & OFFCPU_IDX_CUT_BEGIN);
	if (sample->ncallchain < 2)
		return 0;
	assert_true(sample->callchain[0] == PERF_CONTEXT_USER);
	assert_int_not_equal(unwound->grade, UNWIND_NO_STACK);
	assert_true(f->with_stack < THREADS);
	f->ips[f->with_stack++] = sample->callchain[1];
	return 0;
}

static int take_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)ctx;
	assert_int_equal(thread->no_stack_ns, 0);
	return 0;
}

static int take_request(void *ctx, int32_t pid, int32_t tid)
{
	struct fixture *f = ctx;

	f->requested++;
	return record_blocked_request(f->blocked, pid, tid);
}

static int take_stack(void *ctx, int32_t tid, uint64_t count, const struct blocked_stack *found,
		      const struct unwound *unwound)
{
	assert_true(found->syscall >= 0 && found->sp && found->ip && found->bytes);
	return record_offcpu_add_stack(ctx, tid, count, unwound);
}

static int take(struct record_blocked *blocked, struct unwinder *unwinder,
		struct record_offcpu *offcpu, bool last)
{
	return record_blocked_take(blocked, unwinder,
				   &(struct record_blocked_sink){offcpu, take_stack}, last);
}

static void round_of(struct fixture *f)
{
	assert_int_equal(record_offcpu_round(f->offcpu), 0);
	assert_int_equal(take(f->blocked, f->unwinder, f->offcpu, false), 0);
	usleep(10000);
}

/* All memory is code without any rules. */
static void begin(struct fixture *f, const struct unwinder_options *unwinder)
{
	const struct record_offcpu_options options = {.begin_ns = clock_monotonic_ns()};
	const struct perfdata_record map = {
		.type = PERF_RECORD_MMAP2,
		.pid = getpid(),
		.tid = getpid(),
		.mmap = {.addr = 4096, .len = UINT64_C(0x7fffffffe000), .filename = "//anon"}};

	assert_int_equal(record_offcpu_new(&options, &f->offcpu), 0);
	assert_int_equal(unwinder_new(unwinder, &f->unwinder), 0);
	assert_int_equal(unwinder_apply(f->unwinder, &map), 0);
	assert_int_equal(record_blocked_new(NULL, &f->blocked), 0);
}

static void end(struct fixture *f)
{
	record_blocked_free(f->blocked);
	record_offcpu_free(f->offcpu);
	unwinder_free(f->unwinder);
}

/* All threads wait in the same place. One belongs to another process, and one does not exist. */
static void waiting_threads_have_a_stack(void **state)
{
	const struct unwinder_options unwinder = {0};
	struct fixture f = {0};
	pthread_t threads[THREADS];

	(void)state;
	assert_int_equal(pipe(block), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, waits, &tids[i]), 0);
		while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
			usleep(1000);
		wait_blocked(tids[i]);
	}
	begin(&f, &unwinder);
	record_offcpu_to(f.offcpu, &(struct record_offcpu_writer){.ctx = &f,
								  .wait = take_wait,
								  .thread = take_thread,
								  .request = take_request});
	for (size_t i = 0; i < THREADS; i++) {
		const struct perfdata_record record = {
			.type = PERF_RECORD_FORK, .pid = getpid(), .tid = tids[i], .cpu = -1};

		assert_int_equal(record_offcpu_apply(f.offcpu, &record), 0);
	}
	assert_int_equal(f.requested, THREADS);
	for (int i = 0; i < 1000 && record_blocked_stats(f.blocked).requested < THREADS; i++)
		round_of(&f);
	if (!record_blocked_stats(f.blocked).read)
		skip(); /* a kernel that does not report it */
	assert_int_equal(record_blocked_stats(f.blocked).read, THREADS);
	assert_int_equal(record_blocked_stats(f.blocked).refused, 0);
	assert_true(record_blocked_stats(f.blocked).cpu_ns > 0);
	round_of(&f);
	round_of(&f);
	assert_false(record_blocked_has_work(f.blocked));
	assert_int_equal(record_blocked_request(f.blocked, getpid(), NOBODY), 0);
	for (int i = 0; i < 1000 && record_blocked_stats(f.blocked).requested <= THREADS; i++)
		round_of(&f);
	assert_int_equal(record_blocked_stats(f.blocked).read, THREADS);
	assert_int_equal(record_offcpu_finish(f.offcpu, clock_monotonic_ns()), 0);
	assert_int_equal(f.waits, THREADS);
	assert_int_equal(f.with_stack, THREADS);
	for (size_t i = 1; i < THREADS; i++)
		assert_true(f.ips[i] == f.ips[0]);
	close(block[1]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close(block[0]);
	end(&f);
}

#define MANY 400 /* their stacks fill all the room */

static void *waits_deep(void *arg)
{
	volatile char deep[2 * RECORD_BLOCKED_FIRST_BYTES];

	for (size_t i = 0; i < sizeof(deep); i += 64)
		deep[i] = 1;
	return deep[0] ? waits(arg) : NULL;
}

static bool never_replies(void *ctx, int32_t pid, uint64_t addr)
{
	(void)ctx, (void)pid, (void)addr;
	return true;
}

static void stacks_without_code_are_reported_at_the_end(void **state)
{
	const struct unwinder_options unwinder = {.request_code = never_replies};
	static pid_t many_tids[MANY];
	pthread_t threads[MANY];
	struct fixture f = {0};
	uint64_t begin_ns;

	(void)state;
	if (under_valgrind())
		skip(); /* the waits are those of its own, and shallow */
	assert_int_equal(pipe(block), 0);
	begin(&f, &unwinder);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, waits_deep, &many_tids[i]), 0);
	for (size_t i = 0; i < MANY; i++) {
		while (!__atomic_load_n(&many_tids[i], __ATOMIC_ACQUIRE))
			usleep(1000);
		wait_blocked(many_tids[i]);
	}
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(record_blocked_request(f.blocked, getpid(), many_tids[i]), 0);
	begin_ns = clock_monotonic_ns();
	/* A full buffer is not waited for. */
	while (record_blocked_wait(f.blocked, begin_ns + 60 * NS_PER_S))
		assert_int_equal(take(f.blocked, f.unwinder, f.offcpu, false), 0);
	assert_true(clock_monotonic_ns() - begin_ns < 30 * NS_PER_S);
	assert_true(record_blocked_stats(f.blocked).read < MANY &&
		    record_blocked_has_work(f.blocked));
	while (record_blocked_has_work(f.blocked)) {
		assert_int_equal(take(f.blocked, f.unwinder, f.offcpu, true), 0);
		(void)record_blocked_wait(f.blocked, clock_monotonic_ns() + 60 * NS_PER_S);
	}
	assert_int_equal(record_blocked_stats(f.blocked).read, MANY);
	assert_int_equal(record_blocked_stats(f.blocked).dropped, 0);
	close(block[1]);
	for (size_t i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	close(block[0]);
	end(&f);
}

/* An early end does not wait for pending requests. */
static void the_end_does_not_wait_for_requests(void **state)
{
	struct record_blocked *w;
	uint64_t begin_ns = clock_monotonic_ns();

	(void)state;
	assert_int_equal(record_blocked_new(NULL, &w), 0);
	for (int i = 0; i < RECORD_BLOCKED_THREADS_MAX + 1000; i++)
		assert_int_equal(record_blocked_request(w, getpid(), NOBODY + i), 0);
	record_blocked_free(w);
	assert_true(clock_monotonic_ns() - begin_ns < RECORD_BLOCKED_END_NS);
	record_blocked_free(NULL);
}

/* A 32-bit program that waits: its ELF header, one segment header, and a loop of pause(). */
static pid_t start_32(const char *path)
{
	const struct {
		Elf32_Ehdr head;
		Elf32_Phdr segment;
		unsigned char code[9];
	} file = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_EXEC,
			   .e_machine = EM_386,
			   .e_version = EV_CURRENT,
			   .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			   .e_phoff = sizeof(Elf32_Ehdr),
			   .e_ehsize = sizeof(Elf32_Ehdr),
			   .e_phentsize = sizeof(Elf32_Phdr),
			   .e_phnum = 1},
		  .segment = {.p_type = PT_LOAD,
			      .p_vaddr = 0x10000,
			      .p_filesz = sizeof(file),
			      .p_memsz = sizeof(file),
			      .p_flags = PF_R | PF_X,
			      .p_align = 4096},
		  .code = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}};
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(&file, sizeof(file), 1, out), 1);
	fclose(out);
	assert_int_equal(chmod(path, 0700), 0);
	pid_t pid = fork();

	if (!pid) {
		/* A failed test leaves nothing behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

struct program_32 {
	struct record_blocked *blocked;
	size_t waits;
	struct unwound unwound;
	size_t words;
};

static int take_wait_32(void *ctx, const struct perfdata_offcpu *sample,
			const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct program_32 *p = ctx;

	(void)row;
	p->waits++;
	p->unwound = *unwound;
	p->words = sample->ncallchain;
	return 0;
}

static int take_request_32(void *ctx, int32_t pid, int32_t tid)
{
	return record_blocked_request(((struct program_32 *)ctx)->blocked, pid, tid);
}

static void a_32_bit_program_waits_without_a_stack(void **state)
{
	const struct record_offcpu_options options = {.begin_ns = clock_monotonic_ns()};
	char path[] = "/tmp/test_record_waiting.XXXXXX";
	struct program_32 p = {0};
	struct record_offcpu *offcpu;
	struct unwinder *unwinder;

	(void)state;
	close(mkstemp(path));
	pid_t pid = start_32(path);

	wait_blocked(pid);
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		unlink(path);
		skip(); /* a kernel without 32-bit support */
	}
	assert_int_equal(record_offcpu_new(&options, &offcpu), 0);
	assert_int_equal(unwinder_new(&(struct unwinder_options){0}, &unwinder), 0);
	assert_int_equal(record_blocked_new(NULL, &p.blocked), 0);
	record_offcpu_to(offcpu, &(struct record_offcpu_writer){.ctx = &p,
								.wait = take_wait_32,
								.thread = take_thread,
								.request = take_request_32});
	assert_int_equal(
		record_offcpu_apply(offcpu, &(struct perfdata_record){.type = PERF_RECORD_FORK,
								      .pid = pid,
								      .tid = pid,
								      .cpu = -1}),
		0);
	assert_int_equal(record_offcpu_round(offcpu), 0);
	assert_int_equal(record_offcpu_round(offcpu), 0);
	for (int i = 0; i < 1000 && record_blocked_has_work(p.blocked); i++) {
		(void)record_blocked_wait(p.blocked, clock_monotonic_ns() + NS_PER_S);
		assert_int_equal(take(p.blocked, unwinder, offcpu, false), 0);
	}
	if (record_blocked_stats(p.blocked).read) {
		assert_int_equal(record_offcpu_finish(offcpu, clock_monotonic_ns()), 0);
		assert_true(p.waits == 1 && p.words == 0);
		assert_true(p.unwound.grade == UNWIND_NO_STACK && p.unwound.end == WALK_NO_RULE);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	record_blocked_free(p.blocked);
	record_offcpu_free(offcpu);
	unwinder_free(unwinder);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* In a /proc in which the thread waits, but its process has no memory. */
static void one_wait_is_requested_once(void **state)
{
	static const char *const names[] = {"schedstat", "syscall"};
	char dir[] = "/tmp/test_record_waiting.XXXXXX", sub[64], path[128];
	struct record_blocked_stats before;
	struct record_blocked *w;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/%d", dir, NOBODY);
	assert_int_equal(mkdir(sub, 0700), 0);
	write_file(sub, "schedstat", "1 2 3\n");
	write_file(sub, "syscall", "0 0x0 0x0 0x0 0x0 0x0 0x0 0x1000 0x2000\n");
	assert_int_equal(record_blocked_new(dir, &w), 0);
	for (int i = 0; i < 2 * RECORD_BLOCKED_THREADS_MAX; i++)
		assert_int_equal(record_blocked_request(w, 1, NOBODY), 0);
	while (record_blocked_has_work(w))
		(void)record_blocked_wait(w, clock_monotonic_ns() + NS_PER_S);
	/* A failed wait is not read again and again. */
	before = record_blocked_stats(w);
	assert_true(before.requested < 1000 && before.again == before.requested - 1 &&
		    !before.dropped);
	/* Now another thread has its id. */
	record_blocked_forget(w, NOBODY);
	assert_int_equal(record_blocked_request(w, 1, NOBODY), 0);
	while (record_blocked_has_work(w))
		(void)record_blocked_wait(w, clock_monotonic_ns() + NS_PER_S);
	assert_int_equal(record_blocked_stats(w).again, before.again);
	before = record_blocked_stats(w);
	/* Another wait of the thread is read. */
	for (int another = 0; another < 2; another++) {
		if (another)
			write_file(sub, "schedstat", "1 2 4\n");
		assert_int_equal(record_blocked_request(w, 1, NOBODY), 0);
		while (record_blocked_has_work(w))
			(void)record_blocked_wait(w, clock_monotonic_ns() + NS_PER_S);
		assert_int_equal(record_blocked_stats(w).requested, before.requested + 1 + another);
		assert_int_equal(record_blocked_stats(w).again, before.again + 1);
	}
	assert_int_equal(record_blocked_stats(w).read, 0);
	record_blocked_free(w);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", sub, names[i]);
		unlink(path);
	}
	rmdir(sub);
	rmdir(dir);
}

/*
 * Requests stacks of n threads, none of which exists, and waits for the end. Returns whether it
 * took about its CPU time; with its pauses it would take ten times as long.
 */
static bool ends_without_pauses(struct record_blocked *w, int32_t n)
{
	struct record_blocked_stats stats;
	uint64_t begin_ns, spent_ns;

	for (int32_t i = 0; i < n; i++)
		assert_int_equal(record_blocked_request(w, getpid(), NOBODY + i), 0);
	stats = record_blocked_stats(w);
	assert_int_equal(stats.requested + stats.dropped, n);
	assert_true(record_blocked_has_work(w));
	begin_ns = clock_monotonic_ns();
	spent_ns = stats.cpu_ns;
	while (record_blocked_has_work(w) && clock_monotonic_ns() - begin_ns < 60 * NS_PER_S)
		assert_false(record_blocked_wait(w, begin_ns + 60 * NS_PER_S));
	spent_ns = record_blocked_stats(w).cpu_ns - spent_ns;
	return clock_monotonic_ns() - begin_ns < 8 * spent_ns + NS_PER_S / 10;
}

/* More threads than fit. */
static void the_end_skips_pauses_and_counts_the_rest(void **state)
{
	const int32_t n = RECORD_BLOCKED_THREADS_MAX + 20000;
	struct record_blocked_stats stats;
	struct record_blocked *w;
	uint64_t until_ns;

	(void)state;
	assert_int_equal(record_blocked_new(NULL, &w), 0);
	/* The machine may be busy for a while. */
	for (int tries = 0; !ends_without_pauses(w, n); tries++) {
		assert_true(tries < 5);
		record_blocked_free(w);
		assert_int_equal(record_blocked_new(NULL, &w), 0);
	}
	stats = record_blocked_stats(w);
	until_ns = clock_monotonic_ns() + 60 * NS_PER_S;
	assert_true(stats.dropped > 0 && stats.dropped <= 20000);
	assert_int_equal(stats.requested + stats.dropped, n);
	/* Repeated requests find room. A slow machine may have dropped others than the last. */
	for (int32_t i = 0; i < n; i++) {
		assert_int_equal(record_blocked_request(w, getpid(), NOBODY + i), 0);
		while (i % 20000 == 0 && record_blocked_has_work(w) &&
		       clock_monotonic_ns() < until_ns)
			assert_false(record_blocked_wait(w, until_ns));
	}
	while (record_blocked_has_work(w) && clock_monotonic_ns() < until_ns)
		assert_false(record_blocked_wait(w, until_ns));
	assert_int_equal(record_blocked_stats(w).dropped, 0);
	record_blocked_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_threads_have_a_stack),
		cmocka_unit_test(stacks_without_code_are_reported_at_the_end),
		cmocka_unit_test(a_32_bit_program_waits_without_a_stack),
		cmocka_unit_test(one_wait_is_requested_once),
		cmocka_unit_test(the_end_skips_pauses_and_counts_the_rest),
		cmocka_unit_test(the_end_does_not_wait_for_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
