/* unwind/unwinder: samples of processes whose images are files. */
#include "unwind/unwinder.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "tests/unit/bare_image.h"
#include "unwind/image_code.h"

#include <dwarf.h>
#include <limits.h>
#include <setjmp.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MAPPED_AT UINT64_C(0x7f0000400000)
#define STACK_AT UINT64_C(0x7ffd00000000)
#define MAPPED_BYTES UINT64_C(0x10000)
#define WORDS 16
#define RECURSIONS 60
#define PID INT32_MAX /* no process has it */

/* push rbx; mov ebx, edi; call; add eax, ebx; pop rbx; jmp rax. No CFI, and no fixed jump
 * target. */
static const unsigned char calls[] = {0x53, 0x89, 0xfb, 0xe8, 0,    1,   0,
				      0,    0x01, 0xd8, 0x5b, 0xff, 0xe0};
/* The same without a call. */
static const unsigned char tests[] = {0x53, 0x89, 0xfb, 0xa9, 0,    1,   0,
				      0,    0x01, 0xd8, 0x5b, 0xff, 0xe0};
#define BEHIND_CALL 8
#define SAMPLED 11

/* An image with that code at *ret_code, and CFI of that program for it; NULL: none. */
static int write_image_with(const unsigned char *code, const unsigned char *cfi, size_t cfi_bytes,
			    char path[32], uint64_t *ret_code)
{
	struct bare_image b;
	int fd;

	snprintf(path, 32, "/tmp/test_unwinder.XXXXXX");
	fd = mkstemp(path);
	/* The process is unknown, so it gets no private file. */
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_true(fd >= 0);
	bare_image_begin(&b);
	*ret_code = bare_image_code(&b, ".text", code, sizeof(calls));
	if (cfi)
		bare_image_fde(&b, BARE_IMAGE_AT + *ret_code, sizeof(calls), cfi, cfi_bytes);
	bare_image_end(&b, 0);
	assert_int_equal(write(fd, b.bytes.v, b.bytes.len), b.bytes.len);
	free(b.bytes.v);
	free(b.names.v);
	return fd;
}

static int write_image(const unsigned char *code, char path[32], uint64_t *ret_code)
{
	return write_image_with(code, NULL, 0, path, ret_code);
}

static void map_in(struct unwinder *u, int32_t pid, const char *path, uint64_t addr)
{
	const struct perfdata_record r = {
		.type = PERF_RECORD_MMAP,
		.pid = pid,
		.tid = pid,
		.mmap = {.addr = addr, .len = MAPPED_BYTES, .filename = path}};

	assert_int_equal(unwinder_apply(u, &r), 0);
}

static void map_at(struct unwinder *u, const char *path, uint64_t addr)
{
	map_in(u, PID, path, addr);
}

static void map(struct unwinder *u, const char *path)
{
	map_at(u, path, MAPPED_AT);
}

/* A sample of PID; regs: rbp, rsp, rip. */
static struct unwinder_sample sample_of(const uint64_t *regs, const uint64_t *stack,
					size_t stack_bytes, uint64_t time_ns)
{
	return (struct unwinder_sample){.pid = PID,
					.tid = PID,
					.time_ns = time_ns,
					.regs = regs,
					.regs_mask = 7 << 6,
					.abi = PERF_SAMPLE_REGS_ABI_64,
					.stack = stack,
					.stack_bytes = stack_bytes,
					.last = true};
}

/* A sample in code at addr, whose caller's frame pointer and return address are on the stack. */
static int unwind_at(struct unwinder *u, int32_t pid, uint64_t addr, uint64_t time_ns, bool last,
		     struct unwound *ret_unwound)
{
	const uint64_t regs[] = {STACK_AT + 32, STACK_AT, addr + SAMPLED}; /* rbp, rsp, rip */
	const uint64_t stack[WORDS] = {[4] = 0, [5] = addr + BEHIND_CALL};
	struct unwinder_sample s = sample_of(regs, stack, sizeof(stack), time_ns);

	s.pid = s.tid = pid;
	s.last = last;

	return unwinder_sample(u, &s, ret_unwound);
}

static uint8_t grade_at(struct unwinder *u, int32_t pid, uint64_t addr, uint64_t time_ns)
{
	struct unwound unwound;

	assert_int_equal(unwind_at(u, pid, addr, time_ns, true, &unwound), 0);
	return unwound.grade;
}

static uint8_t grade(struct unwinder *u, uint64_t code)
{
	return grade_at(u, PID, MAPPED_AT + code, 1);
}

static void the_code_before_a_return_address_is_read_once(void **state)
{
	const struct unwinder_options options = {0};
	char path[32], other[32];
	uint64_t code;
	AUTO_CLOSE int fd = write_image(calls, path, &code);
	AUTO_CLOSE int other_fd = write_image(tests, other, &code);
	assert_true(other_fd >= 0);
	struct unwinder *u;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	map(u, path);
	assert_int_equal(grade(u, code), UNWIND_COMPLETE);
	/* Known code needs no file. */
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(grade(u, code), UNWIND_COMPLETE);
	/* The rules hold until another mapping replaces it. */
	map(u, other);
	assert_int_equal(grade(u, code), UNWIND_TRUNCATED);
	unwinder_free(u);
	unlink(path);
	unlink(other);
}

/* The number of our descriptors that are open on the file of fd, without fd. */
static size_t descriptors_of(int fd)
{
	DIR *dir = opendir("/proc/self/fd");
	struct stat wanted, st;
	size_t n = 0;

	assert_non_null(dir);
	assert_int_equal(fstat(fd, &wanted), 0);
	for (struct dirent *e; (e = readdir(dir));)
		n += !fstatat(dirfd(dir), e->d_name, &st, 0) && st.st_dev == wanted.st_dev &&
		     st.st_ino == wanted.st_ino;
	closedir(dir);
	return n - 1;
}

static void images_that_no_sample_needs_are_closed_and_opened_again(void **state)
{
	const struct unwinder_options options = {0};
	const uint64_t other_at = MAPPED_AT + MAPPED_BYTES, later_ns = 1 + UNWINDER_IMAGE_IDLE_NS;
	char path[32], other[32];
	uint64_t code;
	AUTO_CLOSE int fd = write_image(calls, path, &code);
	AUTO_CLOSE int other_fd = write_image(calls, other, &code);
	struct unwinder *u;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	map(u, path);
	map_at(u, other, other_at);
	assert_int_equal(grade(u, code), UNWIND_COMPLETE);
	assert_true(descriptors_of(fd) > 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(grade_at(u, PID, other_at + code, later_ns - 1), UNWIND_COMPLETE);
	assert_true(descriptors_of(fd) > 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(grade_at(u, PID, other_at + code,
					  later_ns - 1 + UNWINDER_IMAGE_IDLE_NS / 2),
				 UNWIND_COMPLETE);
	assert_int_equal(descriptors_of(fd), 0);
	assert_true(descriptors_of(other_fd) > 0);
	/* Another mapping has no cached rules. */
	map_at(u, path, MAPPED_AT + 2 * MAPPED_BYTES);
	assert_int_equal(grade_at(u, PID, MAPPED_AT + 2 * MAPPED_BYTES + code, 3 * later_ns),
			 UNWIND_COMPLETE);
	assert_true(descriptors_of(fd) > 0);
	assert_int_equal(unwinder_stats(u).images, 2);
	assert_int_equal(unwinder_stats(u).images_missing, 0);
	unwinder_free(u);
	unlink(path);
	unlink(other);
}

/*
 * A deleted library, whose first process has ended. Its code shows that the stack cannot go on. If
 * it could not be read, frame pointers would be trusted.
 */
static void a_sampled_process_gives_the_file_of_an_ended_one(void **state)
{
	struct opener *opener;
	struct unwinder_options options = {0};
	struct perfdata_record fork = {.type = PERF_RECORD_FORK, .pid = getpid(), .tid = getpid()};
	char path[32];
	uint64_t code;
	AUTO_CLOSE int fd = write_image(tests, path, &code);
	struct unwinder *u;
	void *at = mmap(NULL, MAPPED_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);

	(void)state;
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(opener_new(&opener), 0);
	options.opener = opener;
	assert_int_equal(unwinder_new(&options, &u), 0);
	unlink(path);
	map_at(u, path, (uintptr_t)at);
	fork.task.ppid = fork.task.ptid = PID;
	assert_int_equal(unwinder_apply(u, &fork), 0);
	assert_int_equal(grade_at(u, getpid(), (uintptr_t)at + code, 1), UNWIND_TRUNCATED);
	unwinder_free(u);
	opener_free(opener);
	munmap(at, MAPPED_BYTES);
}

/* A recorder inside a PID namespace knows processes outside as PID 0, without their maps. */
static void processes_of_other_pid_namespaces_keep_the_kernels_chain(void **state)
{
	const struct unwinder_options options = {0};
	const uint64_t regs[] = {STACK_AT + 32, STACK_AT, MAPPED_AT},
		       chain[] = {PERF_CONTEXT_USER, MAPPED_AT, MAPPED_AT + 16}, stack[WORDS] = {0};
	const struct unwinder_sample s = {.regs = regs,
					  .regs_mask = 7 << 6,
					  .abi = PERF_SAMPLE_REGS_ABI_64,
					  .stack = stack,
					  .stack_bytes = sizeof(stack),
					  .callchain = chain,
					  .ncallchain = 3};
	struct unwound unwound;
	struct unwinder *u;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	assert_int_equal(unwinder_sample(u, &s, &unwound), 0);
	assert_int_equal(unwound.grade, UNWIND_TRUNCATED);
	assert_int_equal(unwound.end, WALK_NO_RULE);
	assert_int_equal(unwound.ncallchain, 3);
	assert_memory_equal(unwound.callchain, chain, sizeof(chain));
	unwinder_free(u);
}

static bool count_request(void *ctx, int32_t pid, uint64_t addr)
{
	size_t *requests = ctx;

	(void)pid;
	(void)addr;
	++*requests;
	return true;
}

static void apply(struct unwinder *u, uint32_t type, int32_t tid)
{
	const struct perfdata_record r = {
		.type = type, .pid = PID, .tid = tid, .task = {.ppid = PID, .ptid = PID}};

	assert_int_equal(unwinder_apply(u, &r), 0);
}

/* Samples may be deferred, or come from other CPUs. */
static void an_ended_process_has_no_more_code_to_request(void **state)
{
	size_t requests = 0;
	const struct unwinder_options options = {.request_code = count_request, .ctx = &requests};
	struct unwinder *u;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	map(u, "/nowhere");
	apply(u, PERF_RECORD_FORK, PID - 1);
	(void)grade(u, 0);
	assert_true(requests > 0);
	requests = 0;
	(void)grade(u, 0);
	assert_int_equal(requests, 0);
	/* The process lives on without its first thread. */
	apply(u, PERF_RECORD_EXIT, PID);
	(void)grade(u, 0);
	assert_true(requests > 0);
	apply(u, PERF_RECORD_EXIT, PID - 1);
	requests = 0;
	(void)grade(u, 0);
	assert_int_equal(requests, 0);
	unwinder_free(u);
}

static bool refuse_request(void *ctx, int32_t pid, uint64_t addr)
{
	(void)count_request(ctx, pid, addr);
	return false;
}

static void samples_do_not_wait_for_code_whose_request_was_refused(void **state)
{
	size_t requests = 0;
	const struct unwinder_options options = {.request_code = refuse_request, .ctx = &requests};
	struct unwound unwound;
	struct unwinder *u;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	map(u, "/nowhere");
	assert_int_equal(unwind_at(u, PID, MAPPED_AT, 1, false, &unwound), 0);
	assert_true(requests > 0);
	requests = 0;
	assert_int_equal(unwind_at(u, PID, MAPPED_AT, 2, false, &unwound), 0);
	assert_int_equal(requests, 0);
	unwinder_free(u);
}

/* Naming applies the records of a recording; unwinding uses the maps that it tracks. */
static void a_tracker_of_others_gives_the_maps(void **state)
{
	struct lookup_cache cache = {0};
	struct unwinder_options options = {0};
	struct perfdata_record fork = {.type = PERF_RECORD_FORK, .pid = PID - 1, .tid = PID - 1};
	char path[32];
	uint64_t code;
	AUTO_CLOSE int fd = write_image(calls, path, &code);
	const struct perfdata_record r = {
		.type = PERF_RECORD_MMAP,
		.pid = PID,
		.tid = PID,
		.mmap = {.addr = MAPPED_AT, .len = MAPPED_BYTES, .filename = path}};
	struct tracker *tracker;
	struct unwinder *u;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(tracker_new(&(struct tracker_options){.lookup_cache = &cache}, &tracker),
			 0);
	options.tracker = tracker;
	assert_int_equal(unwinder_new(&options, &u), 0);
	assert_int_equal(grade(u, code), UNWIND_TRUNCATED);
	assert_int_equal(tracker_apply(tracker, &r), 0);
	assert_int_equal(grade(u, code), UNWIND_COMPLETE);
	fork.task.ppid = fork.task.ptid = PID;
	assert_int_equal(tracker_apply(tracker, &fork), 0);
	assert_int_equal(grade_at(u, PID - 1, MAPPED_AT + code, 1), UNWIND_COMPLETE);
	unwinder_free(u);
	tracker_free(tracker);
	lookup_cache_free(&cache);
	unlink(path);
}

/* A target can map many images with many functions. */
static void what_takes_much_memory_is_forgotten(void **state)
{
	const struct unwinder_options options = {0};
	const char *function = dlsym(RTLD_DEFAULT, "qsort");
	struct unwound unwound;
	struct unwinder *u;
	Dl_info library;
	char path[PATH_MAX];

	(void)state;
	assert_true(function && dladdr(function, &library) && realpath(library.dli_fname, path));
	uint64_t off = (uint64_t)(function - (const char *)library.dli_fbase);
	const struct perfdata_record r = {
		.type = PERF_RECORD_MMAP,
		.pid = PID,
		.tid = PID,
		.mmap = {.addr = MAPPED_AT, .len = off + MAPPED_BYTES, .filename = path}};

	assert_int_equal(unwinder_new(&options, &u), 0);
	assert_int_equal(unwinder_apply(u, &r), 0);
	elf_budget_limit(ELF_BUDGET_RULES, 1);
	elf_budget_limit(ELF_BUDGET_PAGES, 1);
	assert_int_equal(unwind_at(u, PID, MAPPED_AT + off, 1, true, &unwound), 0);
	assert_int_equal(elf_budget_left(ELF_BUDGET_RULES), 0);
	assert_int_equal(elf_budget_left(ELF_BUDGET_PAGES), 0);
	/* The next sample needs nothing of it. */
	assert_int_equal(unwind_at(u, PID, 0, 1, true, &unwound), 0);
	assert_int_equal(elf_budget_left(ELF_BUDGET_RULES), 1);
	assert_int_equal(elf_budget_left(ELF_BUDGET_PAGES), 1);
	unwinder_free(u);
	elf_budget_limit(ELF_BUDGET_RULES, 0);
	elf_budget_limit(ELF_BUDGET_PAGES, 0);
}

/* The frames of a sample in a function that calls itself often. */
static size_t frames_in(struct unwinder *u, int32_t pid, uint64_t addr, uint64_t time_ns)
{
	static uint64_t stack[RECURSIONS];
	const uint64_t regs[] = {0, STACK_AT, addr}; /* rbp, rsp, rip */
	struct unwinder_sample s = sample_of(regs, stack, sizeof(stack), time_ns);
	struct unwound unwound;

	s.pid = s.tid = pid;
	for (size_t i = 0; i < RECURSIONS; i++)
		stack[i] = addr;
	assert_int_equal(unwinder_sample(u, &s, &unwound), 0);
	return unwound.ncallchain - 1; /* a context mark */
}

static size_t frames_of(struct unwinder *u, uint64_t addr, uint64_t time_ns)
{
	return frames_in(u, PID, addr, time_ns);
}

/* A target can make each of its stacks take all the steps that a stack may take. */
static void stacks_with_long_rules_share_steps(void **state)
{
	/* The CFA is rsp + 8, after 900 operations. */
	static unsigned char cfi[3 + 2 + 900] = {DW_CFA_def_cfa_expression, 0x86, 7, DW_OP_breg7,
						 8};
	const struct unwinder_options options = {0};
	char path[32];
	uint64_t code;
	struct unwinder *u;
	size_t left = 0;

	(void)state;
	memset(cfi + 5, DW_OP_nop, sizeof(cfi) - 5);
	AUTO_CLOSE int fd = write_image_with(calls, cfi, sizeof(cfi), path, &code);
	assert_true(fd >= 0);
	assert_int_equal(unwinder_new(&options, &u), 0);
	map(u, path);
	const uint64_t addr = MAPPED_AT + code + BEHIND_CALL;

	assert_int_equal(frames_of(u, addr, 1), RECURSIONS + 1);
	for (int i = 0; i < 200; i++)
		left = frames_of(u, addr, 1);
	assert_true(left > 2 && left < RECURSIONS / 4);
	assert_true(unwinder_stats(u).limits.cost[LIMIT_FILE_SIZE] > 100);
	/* 250 of such stacks in a second. */
	for (int i = 0; i < 250; i++)
		left = frames_of(u, addr, (uint64_t)i * 4 * NS_PER_MS);
	assert_true(left > RECURSIONS / 8 && left < RECURSIONS / 3);
	assert_int_equal(frames_of(u, addr, 3 * NS_PER_S), RECURSIONS + 1);
	unwinder_free(u);
	unlink(path);
}

#define MANY 8               /* images of a process */
#define FIT 6                /* of which about so many can be open */
#define LATER (NS_PER_S / 2) /* so that there is time to open images */
#define HOLDERS 700          /* fewer than the 1,024 files that a user may open */

/* The frames of samples of a process in each of n images that are mapped after one another. */
static size_t images_with_rules(struct unwinder *u, int32_t pid, uint64_t code, size_t first,
				size_t n, uint64_t time_ns)
{
	size_t whole = 0;

	for (size_t i = first; i < first + n; i++)
		whole += frames_in(u, pid, MAPPED_AT + i * MAPPED_BYTES + code + BEHIND_CALL,
				   time_ns + i) == RECURSIONS + 1;
	return whole;
}

/* One process samples more images than fit; those of others are sampled later. */
static void check_shares(enum recording_limit limit, void (*set_limit)(void))
{
	/* The CFA is rsp + 8. */
	static const unsigned char cfi[] = {DW_CFA_def_cfa, 7, 8};
	const struct unwinder_options options = {0};
	char paths[MANY][32];
	int fds[MANY];
	uint64_t code;
	struct unwinder *u;
	size_t fit;

	assert_int_equal(unwinder_new(&options, &u), 0);
	for (size_t i = 0; i < MANY; i++) {
		fds[i] = write_image_with(calls, cfi, sizeof(cfi), paths[i], &code);
		map_in(u, PID, paths[i], MAPPED_AT + i * MAPPED_BYTES);
	}
	set_limit();
	/* A process without neighbours gets all that fit, and keeps them. */
	fit = images_with_rules(u, PID, code, 0, MANY, LATER);
	assert_in_range(fit, FIT - 2, MANY - 1);
	assert_int_equal(images_with_rules(u, PID, code, fit, MANY - fit, 10 * LATER), 0);
	assert_int_equal(images_with_rules(u, PID, code, 0, fit, 20 * LATER), fit);
	assert_true(unwinder_stats(u).limits.cost[limit] >= MANY - fit);
	/* Another one gets one that was refused, then more, up to its share. */
	for (size_t i = 0; i < MANY; i++)
		map_in(u, PID - 1, paths[MANY - 1 - i], MAPPED_AT + i * MAPPED_BYTES);
	assert_int_equal(images_with_rules(u, PID - 1, code, 0, 1, 30 * LATER), 1);
	assert_true(descriptors_of(fds[MANY - 1]) > 0);
	assert_int_equal(descriptors_of(fds[0]), 0); /* used least recently */
	assert_int_equal(images_with_rules(u, PID - 1, code, 0, 2, 40 * LATER), 2);
	/* The first one does not take them back; images that both map serve both. */
	map_in(u, PID, paths[1], MAPPED_AT); /* ends cached rules */
	map_in(u, PID, paths[0], MAPPED_AT);
	assert_int_equal(images_with_rules(u, PID, code, 0, MANY, 50 * LATER), fit);
	assert_int_equal(descriptors_of(fds[0]), 0);
	assert_int_equal(images_with_rules(u, PID - 1, code, 0, 2, 60 * LATER), 2);
	/* A third one, too. */
	map_in(u, PID - 2, paths[0], MAPPED_AT);
	assert_int_equal(images_with_rules(u, PID - 2, code, 0, 1, 70 * LATER), 1);
	assert_true(descriptors_of(fds[0]) > 0);
	unwinder_free(u);
	for (size_t i = 0; i < MANY; i++) {
		close(fds[i]);
		unlink(paths[i]);
	}
}

static void limit_images(void)
{
	elf_budget_limit(ELF_BUDGET_IMAGES, FIT * IMAGE_CODE_BYTES);
}

static void open_images_are_shared_by_processes(void **state)
{
	(void)state;
	check_shares(LIMIT_FILE_SIZE, limit_images);
	elf_budget_limit(ELF_BUDGET_IMAGES, 0);
}

static void limit_descriptors(void)
{
	const int next = dup(0);
	struct rlimit limit;

	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Images leave 64 to others. Opening one takes a few more for a moment. */
	limit.rlim_cur = (rlim_t)next + FIT + 64 + 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void descriptors_are_shared_by_processes(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	check_shares(LIMIT_OPEN_FILES, limit_descriptors);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static char slow_paths[MANY][32];

static int open_slowly(void *ctx, uint32_t image, int *ret_fd)
{
	(void)ctx;
	usleep(100000);
	*ret_fd = open(slow_paths[image], O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* Rings wait meanwhile. */
static void images_that_open_slowly_wait_for_time(void **state)
{
	static const unsigned char cfi[] = {DW_CFA_def_cfa, 7, 8};
	const struct unwinder_options options = {.open_file = open_slowly};
	struct unwinder *u;
	uint64_t code;
	size_t whole;

	(void)state;
	assert_int_equal(unwinder_new(&options, &u), 0);
	for (size_t i = 0; i < MANY; i++) {
		close(write_image_with(calls, cfi, sizeof(cfi), slow_paths[i], &code));
		map_in(u, i + 1 < MANY ? PID : PID - 1, slow_paths[i],
		       MAPPED_AT + i * MAPPED_BYTES);
	}
	whole = images_with_rules(u, PID, code, 0, MANY - 1, 1);
	assert_in_range(whole, 1, 5);
	assert_int_equal(images_with_rules(u, PID, code, 0, MANY - 1, 10), whole);
	assert_true(unwinder_stats(u).limits.cost[LIMIT_FILE_SIZE] >= 2 * (MANY - 1 - whole));
	/* Another process has time of its own. */
	assert_int_equal(images_with_rules(u, PID - 1, code, MANY - 1, 1, 20), 1);
	/* It becomes more with time. */
	assert_int_equal(images_with_rules(u, PID, code, 0, MANY - 1, 60 * NS_PER_S), MANY - 1);
	unwinder_free(u);
	for (size_t i = 0; i < MANY; i++)
		unlink(slow_paths[i]);
}

/* The least CPU time for samples in an image that is refused while n processes hold one each. */
static clock_t time_refused(int n)
{
	static const unsigned char cfi[] = {DW_CFA_def_cfa, 7, 8};
	const struct unwinder_options options = {0};
	clock_t least = 0;
	char path[32], linked[48];
	uint64_t code;
	struct unwinder *u;
	AUTO_CLOSE int fd = write_image_with(calls, cfi, sizeof(cfi), path, &code);
	const uint64_t addr = MAPPED_AT + code + BEHIND_CALL;

	assert_true(fd >= 0);
	assert_int_equal(unwinder_new(&options, &u), 0);
	for (int i = 1; i <= n; i++) {
		snprintf(linked, sizeof(linked), "%s.%d", path, i);
		assert_int_equal(link(path, linked), 0);
		map_in(u, PID - i, linked, MAPPED_AT);
		/* with time to open each */
		assert_int_equal(frames_in(u, PID - i, addr, (uint64_t)i * NS_PER_S / 20),
				 RECURSIONS + 1);
		unlink(linked);
	}
	elf_budget_limit(ELF_BUDGET_IMAGES, 1);
	map(u, path);
	for (int i = 0; i < 20; i++) {
		clock_t took = clock();

		for (int j = 0; j < 50; j++)
			assert_true(frames_of(u, addr, 1) < RECURSIONS + 1);
		took = clock() - took;
		if (!i || took < least)
			least = took;
	}
	assert_int_equal(descriptors_of(fd), n);
	unwinder_free(u);
	elf_budget_limit(ELF_BUDGET_IMAGES, 0);
	unlink(path);
	return least;
}

static void a_refused_image_costs_the_same_beside_many_processes(void **state)
{
	(void)state;
	clock_t alone = time_refused(1), beside = time_refused(HOLDERS);

	if (beside > 4 * alone)
		fail_msg("%ld us beside %d processes, %ld us beside one", (long)beside, HOLDERS,
			 (long)alone);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(stacks_with_long_rules_share_steps),
		cmocka_unit_test(what_takes_much_memory_is_forgotten),
		cmocka_unit_test(the_code_before_a_return_address_is_read_once),
		cmocka_unit_test(images_that_no_sample_needs_are_closed_and_opened_again),
		cmocka_unit_test(a_sampled_process_gives_the_file_of_an_ended_one),
		cmocka_unit_test(processes_of_other_pid_namespaces_keep_the_kernels_chain),
		cmocka_unit_test(an_ended_process_has_no_more_code_to_request),
		cmocka_unit_test(samples_do_not_wait_for_code_whose_request_was_refused),
		cmocka_unit_test(a_tracker_of_others_gives_the_maps),
		cmocka_unit_test(open_images_are_shared_by_processes),
		cmocka_unit_test(descriptors_are_shared_by_processes),
		cmocka_unit_test(images_that_open_slowly_wait_for_time),
		cmocka_unit_test(a_refused_image_costs_the_same_beside_many_processes),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
