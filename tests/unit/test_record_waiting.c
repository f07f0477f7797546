/* profcpu/record_waiting: the stacks of threads that wait already are read, unwound and told; what cannot be read is counted. */
#include "profcpu/record_waiting.h"

#include "base/clock.h"

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
#define NOBODY 0x3f000000 /* over any pid, and some more */

struct fixture {
	struct record_offcpu *offcpu;
	struct record_waiting *waiting;
	struct unwinder *unwinder;
	uint64_t asked, ips[THREADS]; /* of waits with a stack: where it is */
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

static int take_wait(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, const struct offcpu_idx_wait *row)
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

static int take_ask(void *ctx, int32_t pid, int32_t tid)
{
	struct fixture *f = ctx;

	f->asked++;
	return record_waiting_ask(f->waiting, pid, tid);
}

static void round_of(struct fixture *f)
{
	assert_int_equal(record_offcpu_round(f->offcpu), 0);
	assert_int_equal(record_waiting_take(f->waiting, f->unwinder, f->offcpu, false), 0);
	usleep(10000);
}

/* All that there is is code, of which nobody knows anything. */
static void begin(struct fixture *f, const struct unwinder_options *unwinder)
{
	const struct record_offcpu_options options = {.begin_ns = clock_monotonic_ns()};
	const struct perfdata_record map = {.type = PERF_RECORD_MMAP2, .pid = getpid(), .tid = getpid(),
					    .mmap = {.addr = 4096, .len = UINT64_C(0x7fffffffe000), .filename = "//anon"}};

	assert_int_equal(record_offcpu_new(&options, &f->offcpu), 0);
	assert_int_equal(unwinder_new(unwinder, &f->unwinder), 0);
	assert_int_equal(unwinder_apply(f->unwinder, &map), 0);
	assert_int_equal(record_waiting_new(NULL, &f->waiting), 0);
}

static void end(struct fixture *f)
{
	record_waiting_free(f->waiting);
	record_offcpu_free(f->offcpu);
	unwinder_free(f->unwinder);
}

/* All wait in the same place; one is of another process, and one is not there. */
static void threads_that_wait_have_a_stack(void **state)
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
	}
	usleep(50000);
	begin(&f, &unwinder);
	record_offcpu_to(f.offcpu, &(struct record_offcpu_writer){.ctx = &f, .wait = take_wait, .thread = take_thread, .ask = take_ask});
	for (size_t i = 0; i < THREADS; i++) {
		const struct perfdata_record record = {.type = PERF_RECORD_FORK, .pid = getpid(), .tid = tids[i], .cpu = -1};

		assert_int_equal(record_offcpu_apply(f.offcpu, &record), 0);
	}
	assert_int_equal(f.asked, THREADS);
	for (int i = 0; i < 1000 && record_waiting_stats(f.waiting).asked < THREADS; i++)
		round_of(&f);
	if (!record_waiting_stats(f.waiting).read)
		skip(); /* a kernel that does not tell */
	assert_int_equal(record_waiting_stats(f.waiting).read, THREADS);
	assert_int_equal(record_waiting_stats(f.waiting).refused, 0);
	assert_true(record_waiting_stats(f.waiting).cpu_ns > 0);
	round_of(&f);
	round_of(&f);
	assert_false(record_waiting_hopes(f.waiting));
	assert_int_equal(record_waiting_ask(f.waiting, getpid(), NOBODY), 0);
	for (int i = 0; i < 1000 && record_waiting_stats(f.waiting).asked <= THREADS; i++)
		round_of(&f);
	assert_int_equal(record_waiting_stats(f.waiting).read, THREADS);
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

#define MANY 400 /* with all their stacks there is no room for more */

static void *waits_deep(void *arg)
{
	volatile char deep[2 * RECORD_WAITING_FIRST_BYTES];

	for (size_t i = 0; i < sizeof(deep); i += 64)
		deep[i] = 1;
	return deep[0] ? waits(arg) : NULL;
}

static bool never_answers(void *ctx, int32_t pid, uint64_t addr)
{
	(void)ctx, (void)pid, (void)addr;
	return true;
}

static void who_waits_for_code_at_the_end_gives_way(void **state)
{
	const struct unwinder_options unwinder = {.ask = never_answers};
	static pid_t many_tids[MANY];
	pthread_t threads[MANY];
	struct fixture f = {0};
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(pipe(block), 0);
	begin(&f, &unwinder);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, waits_deep, &many_tids[i]), 0);
	for (size_t i = 0; i < MANY; i++)
		while (!__atomic_load_n(&many_tids[i], __ATOMIC_ACQUIRE))
			usleep(1000);
	usleep(50000);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(record_waiting_ask(f.waiting, getpid(), many_tids[i]), 0);
	begin_ns = clock_monotonic_ns();
	/* Until there is no room: that is not waited for. */
	while (record_waiting_hurry(f.waiting, begin_ns + 60 * NS_PER_S))
		assert_int_equal(record_waiting_take(f.waiting, f.unwinder, f.offcpu, false), 0);
	assert_true(clock_monotonic_ns() - begin_ns < 30 * NS_PER_S);
	assert_true(record_waiting_stats(f.waiting).read < MANY && record_waiting_hopes(f.waiting));
	while (record_waiting_hopes(f.waiting)) {
		assert_int_equal(record_waiting_take(f.waiting, f.unwinder, f.offcpu, true), 0);
		(void)record_waiting_hurry(f.waiting, clock_monotonic_ns() + 60 * NS_PER_S);
	}
	assert_int_equal(record_waiting_stats(f.waiting).read, MANY);
	assert_int_equal(record_waiting_stats(f.waiting).dropped, 0);
	close(block[1]);
	for (size_t i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	close(block[0]);
	end(&f);
}

/* Whoever ends early does not wait for what it has asked. */
static void the_end_does_not_wait_for_answers(void **state)
{
	struct record_waiting *w;
	uint64_t begin_ns = clock_monotonic_ns();

	(void)state;
	assert_int_equal(record_waiting_new(NULL, &w), 0);
	for (int i = 0; i < RECORD_WAITING_THREADS_MAX + 1000; i++)
		assert_int_equal(record_waiting_ask(w, getpid(), NOBODY + i), 0);
	record_waiting_free(w);
	assert_true(clock_monotonic_ns() - begin_ns < RECORD_WAITING_END_NS);
	record_waiting_free(NULL);
}

/* A 32-bit program that waits: its header, that of its one segment, and pause() for ever. */
static pid_t start_32(const char *path)
{
	const struct {
		Elf32_Ehdr head;
		Elf32_Phdr segment;
		unsigned char code[9];
	} file = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_EXEC,
			   .e_machine = EM_386, .e_version = EV_CURRENT, .e_entry = 0x10000 + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr),
			   .e_phoff = sizeof(Elf32_Ehdr), .e_ehsize = sizeof(Elf32_Ehdr), .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1},
		  .segment = {.p_type = PT_LOAD, .p_vaddr = 0x10000, .p_filesz = sizeof(file), .p_memsz = sizeof(file),
			      .p_flags = PF_R | PF_X, .p_align = 4096},
		  .code = {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}};
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(&file, sizeof(file), 1, out), 1);
	fclose(out);
	assert_int_equal(chmod(path, 0700), 0);
	pid_t pid = fork();

	if (!pid) {
		/* A test that fails leaves nothing behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

struct program_32 {
	struct record_waiting *waiting;
	size_t waits;
	struct unwound unwound;
	size_t words;
};

static int take_wait_32(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct program_32 *p = ctx;

	(void)row;
	p->waits++;
	p->unwound = *unwound;
	p->words = sample->ncallchain;
	return 0;
}

static int take_ask_32(void *ctx, int32_t pid, int32_t tid)
{
	return record_waiting_ask(((struct program_32 *)ctx)->waiting, pid, tid);
}

static void a_32_bit_program_has_no_stack_and_says_so(void **state)
{
	const struct record_offcpu_options options = {.begin_ns = clock_monotonic_ns()};
	char path[] = "/tmp/test_record_waiting.XXXXXX";
	struct program_32 p = {0};
	struct record_offcpu *offcpu;
	struct unwinder *unwinder;

	(void)state;
	close(mkstemp(path));
	pid_t pid = start_32(path);

	usleep(100000);
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		unlink(path);
		skip(); /* a kernel without 32-bit programs */
	}
	assert_int_equal(record_offcpu_new(&options, &offcpu), 0);
	assert_int_equal(unwinder_new(&(struct unwinder_options){0}, &unwinder), 0);
	assert_int_equal(record_waiting_new(NULL, &p.waiting), 0);
	record_offcpu_to(offcpu, &(struct record_offcpu_writer){.ctx = &p, .wait = take_wait_32, .thread = take_thread, .ask = take_ask_32});
	assert_int_equal(record_offcpu_apply(offcpu, &(struct perfdata_record){.type = PERF_RECORD_FORK, .pid = pid, .tid = pid, .cpu = -1}), 0);
	assert_int_equal(record_offcpu_round(offcpu), 0);
	assert_int_equal(record_offcpu_round(offcpu), 0);
	for (int i = 0; i < 1000 && record_waiting_hopes(p.waiting); i++) {
		(void)record_waiting_hurry(p.waiting, clock_monotonic_ns() + NS_PER_S);
		assert_int_equal(record_waiting_take(p.waiting, unwinder, offcpu, false), 0);
	}
	if (record_waiting_stats(p.waiting).read) {
		assert_int_equal(record_offcpu_finish(offcpu, clock_monotonic_ns()), 0);
		assert_true(p.waits == 1 && p.words == 0);
		assert_true(p.unwound.grade == UNWIND_NO_STACK && p.unwound.end == WALK_NO_RULE);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(path);
	record_waiting_free(p.waiting);
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

/* In a /proc where the thread waits, and whose process has no memory. */
static void one_wait_is_asked_for_once(void **state)
{
	static const char *const names[] = {"schedstat", "syscall"};
	char dir[] = "/tmp/test_record_waiting.XXXXXX", sub[64], path[128];
	struct record_waiting_stats before;
	struct record_waiting *w;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/%d", dir, NOBODY);
	assert_int_equal(mkdir(sub, 0700), 0);
	write_file(sub, "schedstat", "1 2 3\n");
	write_file(sub, "syscall", "0 0x0 0x0 0x0 0x0 0x0 0x0 0x1000 0x2000\n");
	assert_int_equal(record_waiting_new(dir, &w), 0);
	for (int i = 0; i < 2 * RECORD_WAITING_THREADS_MAX; i++)
		assert_int_equal(record_waiting_ask(w, 1, NOBODY), 0);
	while (record_waiting_hopes(w))
		(void)record_waiting_hurry(w, clock_monotonic_ns() + NS_PER_S);
	/* What cannot be read is not read time after time. */
	before = record_waiting_stats(w);
	assert_true(before.asked < 1000 && before.again == before.asked - 1 && !before.dropped);
	/* A thread that has its id now is another one. */
	record_waiting_forget(w, NOBODY);
	assert_int_equal(record_waiting_ask(w, 1, NOBODY), 0);
	while (record_waiting_hopes(w))
		(void)record_waiting_hurry(w, clock_monotonic_ns() + NS_PER_S);
	assert_int_equal(record_waiting_stats(w).again, before.again);
	before = record_waiting_stats(w);
	/* Another wait is. */
	for (int another = 0; another < 2; another++) {
		if (another)
			write_file(sub, "schedstat", "1 2 4\n");
		assert_int_equal(record_waiting_ask(w, 1, NOBODY), 0);
		while (record_waiting_hopes(w))
			(void)record_waiting_hurry(w, clock_monotonic_ns() + NS_PER_S);
		assert_int_equal(record_waiting_stats(w).asked, before.asked + 1 + another);
		assert_int_equal(record_waiting_stats(w).again, before.again + 1);
	}
	assert_int_equal(record_waiting_stats(w).read, 0);
	record_waiting_free(w);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", sub, names[i]);
		unlink(path);
	}
	rmdir(sub);
	rmdir(dir);
}

/* More than there is room for, of threads that are not there. */
static void the_end_hurries_and_counts_what_is_left(void **state)
{
	const int32_t n = RECORD_WAITING_THREADS_MAX + 20000;
	uint64_t begin_ns, spent_ns, until_ns;
	struct record_waiting_stats stats;
	struct record_waiting *w;

	(void)state;
	assert_int_equal(record_waiting_new(NULL, &w), 0);
	for (int32_t i = 0; i < n; i++)
		assert_int_equal(record_waiting_ask(w, getpid(), NOBODY + i), 0);
	stats = record_waiting_stats(w);
	assert_int_equal(stats.asked + stats.dropped, n);
	assert_true(record_waiting_hopes(w));
	begin_ns = clock_monotonic_ns();
	spent_ns = stats.cpu_ns;
	until_ns = begin_ns + 60 * NS_PER_S;
	while (record_waiting_hopes(w) && clock_monotonic_ns() < until_ns)
		assert_false(record_waiting_hurry(w, until_ns));
	stats = record_waiting_stats(w);
	spent_ns = stats.cpu_ns - spent_ns;
	/* With its rests it would take ten times that. */
	assert_true(clock_monotonic_ns() - begin_ns < 8 * spent_ns + NS_PER_S / 10);
	assert_true(stats.dropped > 0 && stats.dropped <= 20000);
	assert_int_equal(stats.asked + stats.dropped, n);
	/* Who is asked for again finds room. */
	assert_int_equal(record_waiting_ask(w, getpid(), NOBODY + n - 1), 0);
	while (record_waiting_hopes(w) && clock_monotonic_ns() < until_ns)
		assert_false(record_waiting_hurry(w, until_ns));
	assert_int_equal(record_waiting_stats(w).dropped, stats.dropped - 1);
	record_waiting_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_wait_have_a_stack),
		cmocka_unit_test(who_waits_for_code_at_the_end_gives_way),
		cmocka_unit_test(a_32_bit_program_has_no_stack_and_says_so),
		cmocka_unit_test(one_wait_is_asked_for_once),
		cmocka_unit_test(the_end_hurries_and_counts_what_is_left),
		cmocka_unit_test(the_end_does_not_wait_for_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
