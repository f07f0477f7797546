/* Stacks of AArch64 by libdw in its child process, with good and hostile call frame information. */
#include "unwind/libdw_child.h"

#include "base/clock.h"
#include "elf/budget.h"
#include "tests/unit/cfi_image.h"
#include "unwind/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES(...) \
	((const unsigned char[]){__VA_ARGS__}), sizeof((const unsigned char[]){__VA_ARGS__})
#define CODE UINT64_C(0x400000) /* vaddr 0 is there; [0x1000, 0x2000) is mapped */
#define STACK UINT64_C(0x7ffc00001000)
#define LEAF (CODE + 0x1010) /* functions have 0x100 bytes */
#define MIDDLE (CODE + 0x1110)
#define FIRST (CODE + 0x1210)
#define HOSTILE (CODE + 0x1310)
#define LONG (CODE + 0x1410)
#define SLOW (CODE + 0x1510) /* 0.2 ms each frame */
#define BARE (CODE + 0x1810) /* without CFI */
#define SLOW_PAIRS 30000
#define SLOW_FRAMES 100000
#define IMAGE 7 /* its number */
#define LR 30
#define SP 31
#define REGS UINT64_C(0x1ffffffff) /* x0 to x29, lr, sp, pc */

static struct cfi_bytes frame;
static struct libdw_image *image;
static unsigned finds;
static bool out_of_memory; /* of the next find_code */
static bool early;         /* of walk_at */

static void fde_of(uint64_t start, const void *program, size_t len)
{
	size_t at = frame.len;

	cfi_put_int(&frame, 0, 4);
	cfi_put_int(&frame, frame.len, 4);
	cfi_put_int(&frame, start - CODE - 0x10, 8);
	cfi_put_int(&frame, 0x100, 8);
	cfi_put_int(&frame, 0, 1);
	cfi_put(&frame, program, len);
	cfi_end_entry(&frame, at);
}

/* CFA = sp + 16, the return address at CFA - 8. */
static void put_cie(void)
{
	cfi_put_int(&frame, 0, 8);
	cfi_put(&frame, BYTES(1, 'z', 'R', 0, 1, 0x78, LR, 1, 0));
	cfi_put(&frame, BYTES(DW_CFA_def_cfa, SP, 16, DW_CFA_offset | LR, 1));
	cfi_end_entry(&frame, 0);
}

/* The least number divided by -1: libdw 0.188 divides without a check. */
static void put_hostile(void)
{
	fde_of(HOSTILE, BYTES(DW_CFA_val_expression, LR, 12, DW_OP_const8s, 0, 0, 0, 0, 0, 0, 0,
			      0x80, DW_OP_const1s, 0xff, DW_OP_div));
}

static void put_slow(void)
{
	static unsigned char program[2 * SLOW_PAIRS];

	for (size_t i = 0; i < sizeof(program); i++)
		program[i] = i % 2 ? DW_CFA_restore_state : DW_CFA_remember_state;
	fde_of(SLOW, program, sizeof(program));
}

static struct cfi_bytes file_of(void)
{
	struct cfi_bytes none = {0}, file = cfi_image_of(frame, none, none);
	Elf64_Phdr load = {.p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = 0x1000,
			   .p_vaddr = 0x1000,
			   .p_filesz = 0x1000,
			   .p_memsz = 0x1000};
	Elf64_Ehdr *head;

	cfi_put(&file, none.v, 0);
	size_t at = file.len;

	cfi_put(&file, &load, sizeof(load));
	while (file.len < 0x2000)
		cfi_put_int(&file, 0, 8);
	head = (Elf64_Ehdr *)(void *)file.v;
	head->e_machine = EM_AARCH64;
	head->e_phoff = at;
	head->e_phnum = 1;
	head->e_phentsize = sizeof(load);
	return file;
}

static int begin(void **state)
{
	static const unsigned char undefined[] = {DW_CFA_undefined, LR};
	struct parse_error err;

	(void)state;
	put_cie();
	fde_of(LEAF, NULL, 0);
	fde_of(MIDDLE, NULL, 0);
	fde_of(FIRST, undefined, sizeof(undefined));
	put_hostile();
	put_slow();
	struct cfi_bytes file = file_of();
	int r = libdw_image_new(-1, file.v, file.len, EM_AARCH64, &image, &err);

	free(file.v);
	return r;
}

static int end(void **state)
{
	(void)state;
	libdw_image_free(image);
	free(frame.v);
	return 0;
}

static int find_code(void *ctx, uint64_t addr, struct libdw_child_code *ret_code)
{
	(void)ctx;
	finds++;
	if (out_of_memory) {
		out_of_memory = false;
		return -ENOMEM;
	}
	if (addr < CODE + 0x1000 || addr >= CODE + 0x2000)
		return -ENOENT;
	*ret_code = (struct libdw_child_code){CODE + 0x1000, CODE + 0x2000, 0x1000, IMAGE, image};
	return 0;
}

/* Walks from ip, with the return addresses in frames of two words. Returns 0 or -ENOMEM. */
static int walk_at(struct libdw_child *c, uint64_t ip, const uint64_t *stack, size_t words,
		   struct walk *walk, struct libdw_cost *ret_cost, bool *ret_failed)
{
	uint64_t regs[33] = {[SP] = STACK, [32] = ip};
	const struct libdw_sample sample = {
		.machine = machine_of("aarch64", PERF_SAMPLE_REGS_ABI_64),
		.space = 3,
		.regs = regs,
		.regs_mask = REGS,
		.memory = {.data = (const unsigned char *)stack, .len = 8 * words},
		.early = early};

	return libdw_child_walk(c, &sample, walk, ret_cost, ret_failed);
}

static void walk_from(struct libdw_child *c, uint64_t ip, const uint64_t *stack, size_t words,
		      struct walk *walk)
{
	struct libdw_cost cost;
	bool failed;

	assert_int_equal(walk_at(c, ip, stack, words, walk, &cost, &failed), 0);
	assert_int_equal(failed, ip == HOSTILE);
	assert_int_equal(cost.slowest, IMAGE);
	assert_true(cost.cpu_ns > 0);
	assert_true(walk->n > 0);
	assert_true(walk->frames[0].ip == ip);
	assert_true(walk->frames[0].exact);
}

static void whole_stacks_are_walked(void **state)
{
	const uint64_t stack[] = {0, MIDDLE, 0, MIDDLE, 0, FIRST, 0, 0};
	struct libdw_child *c;
	struct walk walk = {0};

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	for (int i = 0; i < 3; i++) {
		walk_from(c, LEAF, stack, 8, &walk);
		assert_int_equal(walk.n, 4);
		assert_int_equal(walk.end, WALK_START);
		assert_true(walk.frames[1].ip == MIDDLE && !walk.frames[1].exact);
		assert_true(walk.frames[3].ip == FIRST);
	}
	/* The child remembers the mapping. */
	assert_int_equal(finds, 1);
	/* A signed return address. */
	const uint64_t with_signature[] = {0, MIDDLE | UINT64_C(0x2b) << 48, 0, FIRST};

	walk_from(c, LEAF, with_signature, 4, &walk);
	assert_int_equal(walk.n, 3);
	assert_true(walk.frames[1].ip == MIDDLE);
	walk_from(c, LEAF, stack, 4, &walk);
	assert_int_equal(walk.n, 3);
	assert_int_equal(walk.end, WALK_COPY_END);
	const uint64_t away[] = {0, 0x1234, 0, 0};

	walk_from(c, LEAF, away, 4, &walk);
	assert_int_equal(walk.n, 1);
	assert_int_equal(walk.end, WALK_NOT_CODE);
	walk.max = 2;
	walk_from(c, LEAF, stack, 8, &walk);
	assert_int_equal(walk.n, 2);
	assert_int_equal(walk.end, WALK_FRAME_LIMIT);
	walk_free(&walk);
	libdw_child_free(c);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* No CFI: steps by the frame pointer, also if the caller has none. */
static void frame_pointers_continue(void **state)
{
	uint64_t regs[33] = {[29] = STACK + 16, [SP] = STACK, [32] = BARE};
	const uint64_t stack[] = {1, 2, 0x77, MIDDLE, 0, FIRST};
	const struct libdw_sample sample = {
		.machine = machine_of("aarch64", PERF_SAMPLE_REGS_ABI_64),
		.space = 3,
		.regs = regs,
		.regs_mask = REGS,
		.memory = {.data = (const unsigned char *)stack, .len = sizeof(stack)}};
	struct libdw_child *c;
	struct libdw_cost cost;
	struct walk walk = {0};
	bool failed;

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	regs[LR] = MIDDLE;
	assert_int_equal(libdw_child_walk(c, &sample, &walk, &cost, &failed), 0);
	assert_true(walk.n >= 3);
	assert_true(walk.frames[1].ip == MIDDLE && !walk.frames[1].exact);
	assert_int_equal(walk.end, WALK_START);
	walk_free(&walk);
	libdw_child_free(c);
}

/* The child crashes, the walk ends with its sampled frame, and later walks succeed. */
static void hostile_rules_end_only_the_child(void **state)
{
	const uint64_t stack[] = {0, MIDDLE, 0, FIRST, 0, HOSTILE, 0, 0};
	struct libdw_child *c;
	struct walk walk = {0};

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	for (int i = 0; i < 20; i++) {
		walk_from(c, LEAF, stack, 8, &walk);
		assert_int_equal(walk.n, 3);
		assert_int_equal(walk.end, WALK_START);
		walk_from(c, HOSTILE, stack, 8, &walk);
		assert_int_equal(walk.n, 1);
		assert_int_equal(walk.end, WALK_DAMAGED);
	}
	walk_free(&walk);
	libdw_child_free(c);
}

/* The child waits for an answer then. The next walk gets a new one. */
static void a_walk_that_lacks_memory_costs_the_next_one_nothing(void **state)
{
	const uint64_t stack[] = {0, MIDDLE, 0, FIRST, 0, 0};
	struct libdw_child *c;
	struct libdw_cost cost;
	struct walk walk = {0};
	bool failed;

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	out_of_memory = true;
	assert_int_equal(walk_at(c, LEAF, stack, 6, &walk, &cost, &failed), -ENOMEM);
	assert_false(out_of_memory);
	walk_from(c, LEAF, stack, 6, &walk);
	assert_int_equal(walk.n, 3);
	assert_int_equal(walk.end, WALK_START);
	walk_free(&walk);
	libdw_child_free(c);
}

/* The child of a process; 0: it has none. */
static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(path, "re");

	assert_non_null(f);
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	fclose(f);
	return child;
}

static bool runs(pid_t pid)
{
	char path[64], state = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%*d %*s %c", &state) != 1)
		state = 'Z';
	if (f)
		fclose(f);
	return state != 'Z';
}

/* Takes longer than the CPU time of a walk. */
static void walk_slowly(struct libdw_child *c, struct libdw_cost *ret_cost, bool *ret_failed)
{
	uint64_t *stack = calloc(SLOW_FRAMES, 2 * sizeof(*stack));
	struct walk walk = {.max = SLOW_FRAMES};

	assert_non_null(stack);
	for (size_t i = 0; i < SLOW_FRAMES; i++)
		stack[2 * i + 1] = SLOW;
	assert_int_equal(walk_at(c, SLOW, stack, 2 * SLOW_FRAMES, &walk, ret_cost, ret_failed), 0);
	free(stack);
	walk_free(&walk);
}

/* Never returns within the time of this test. */
static _Noreturn void walk_for_long(void)
{
	struct libdw_child *c;
	struct libdw_cost cost;
	bool failed;

	if (libdw_child_new(find_code, NULL, &c))
		_exit(1);
	walk_slowly(c, &cost, &failed);
	_exit(0);
}

/* It is not repeated, although the child made other walks. The next one gets a new child. */
static void a_walk_can_end_early(void **state)
{
	const uint64_t stack[] = {0, MIDDLE, 0, FIRST, 0, 0};
	struct rusage before, after;
	struct libdw_child *c;
	struct libdw_cost cost;
	struct walk walk = {0};
	bool failed;

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	walk_from(c, LEAF, stack, 6, &walk);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
	early = true;
	walk_slowly(c, &cost, &failed);
	early = false;
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
	assert_true(failed && cost.slowest == IMAGE);
	assert_true(cost.cpu_ns >= LIBDW_CHILD_EARLY_MS * NS_PER_MS);
	uint64_t ms = (uint64_t)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
		      (uint64_t)(after.ru_utime.tv_usec / 1000) -
		      (uint64_t)(before.ru_utime.tv_usec / 1000);

	assert_true(ms < 2 * LIBDW_CHILD_EARLY_MS);
	walk_from(c, LEAF, stack, 6, &walk);
	assert_int_equal(walk.n, 3);
	walk_free(&walk);
	libdw_child_free(c);
}

static void a_busy_child_ends_with_its_parent(void **state)
{
	pid_t parent = fork(), child = 0;

	(void)state;
	assert_true(parent >= 0);
	if (!parent)
		walk_for_long();
	for (int i = 0; i < 1000 && !child; i++) {
		usleep(10000);
		child = child_of(parent);
	}
	assert_true(child > 0);
	usleep(300000);
	assert_true(runs(child) && runs(parent));
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	for (int i = 0; i < 300 && runs(child); i++)
		usleep(10000);
	assert_false(runs(child));
}

/* close_range is missing before Linux 5.9. */
static void refuse_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

/* Walks a stack; returns whether the child then has other files than the first four. */
static bool child_has_other_files(void)
{
	const uint64_t stack[] = {0, MIDDLE, 0, FIRST, 0, 0};
	bool other = false;
	char path[64], link[64];
	struct libdw_child *c;
	struct walk walk = {0};

	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	walk_from(c, LEAF, stack, 6, &walk);
	for (int fd = 4; fd < 64; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", child_of(getpid()), fd);
		other |= readlink(path, link, sizeof(link)) >= 0;
	}
	walk_free(&walk);
	libdw_child_free(c);
	return other;
}

static void the_child_keeps_no_other_files(void **state)
{
	int status, fd = open("/proc/self/status", O_RDONLY), high = fcntl(fd, F_DUPFD, 40);

	(void)state;
	assert_true(fd >= 0 && high >= 40);
	assert_false(child_has_other_files());
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		refuse_close_range();
		_exit(child_has_other_files());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fd);
	close(high);
}

/* The limit is renewed for each walk. */
static void a_walk_has_a_limit_of_cpu_time(void **state)
{
	const uint64_t stack[] = {0, MIDDLE, 0, FIRST, 0, 0};
	struct rlimit limit = {0};
	struct libdw_child *c;
	struct walk walk = {0};

	(void)state;
	assert_int_equal(libdw_child_new(find_code, NULL, &c), 0);
	walk_from(c, LEAF, stack, 6, &walk);
	assert_int_equal(prlimit(child_of(getpid()), RLIMIT_CPU, NULL, &limit), 0);
	assert_in_range(limit.rlim_cur, 1, LIBDW_CHILD_CPU_S + 1);
	walk_free(&walk);
	libdw_child_free(c);
}

static void long_entries_are_refused(void **state)
{
	static unsigned char program[LIBDW_ENTRY_BYTES_MAX + 1];
	struct libdw_image *other;
	struct parse_error err;

	(void)state;
	memset(program, DW_CFA_nop, sizeof(program));
	fde_of(LONG, program, sizeof(program));
	struct cfi_bytes file = file_of();

	assert_int_equal(libdw_image_new(-1, file.v, file.len, EM_AARCH64, &other, &err), -E2BIG);
	assert_int_equal(libdw_image_new(-1, file.v, file.len, EM_386, &other, &err), -EBADMSG);
	free(file.v);
}

/* Twice, because the child has a copy. With as little memory, the next image does not fit. */
static void copies_have_a_budget(void **state)
{
	struct libdw_image *other, *last;
	struct parse_error err;
	struct cfi_bytes file;
	uint64_t left;

	(void)state;
	frame.len = 0;
	put_cie();
	fde_of(LEAF, NULL, 0);
	file = file_of();
	left = elf_budget_left(ELF_BUDGET_LIBDW);
	assert_int_equal(libdw_image_new(-1, file.v, file.len, EM_AARCH64, &other, &err), 0);
	assert_true(left - elf_budget_left(ELF_BUDGET_LIBDW) == 2 * frame.len);
	libdw_image_free(other);
	assert_true(elf_budget_left(ELF_BUDGET_LIBDW) == left);
	/* The image of all tests has taken some, too. */
	elf_budget_limit(ELF_BUDGET_LIBDW, 1);
	assert_int_equal(elf_budget_left(ELF_BUDGET_LIBDW), 0);
	assert_int_equal(libdw_image_new(-1, file.v, file.len, EM_AARCH64, &last, &err), -E2BIG);
	elf_budget_limit(ELF_BUDGET_LIBDW, 0);
	assert_int_equal(libdw_image_new(-1, file.v, file.len, EM_AARCH64, &last, &err), 0);
	libdw_image_free(last);
	free(file.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_stacks_are_walked),
		cmocka_unit_test(frame_pointers_continue),
		cmocka_unit_test(hostile_rules_end_only_the_child),
		cmocka_unit_test(a_walk_that_lacks_memory_costs_the_next_one_nothing),
		cmocka_unit_test(a_busy_child_ends_with_its_parent),
		cmocka_unit_test(a_walk_can_end_early),
		cmocka_unit_test(the_child_keeps_no_other_files),
		cmocka_unit_test(a_walk_has_a_limit_of_cpu_time),
		cmocka_unit_test(long_entries_are_refused),
		cmocka_unit_test(copies_have_a_budget),
	};

	if (!libdw_child_works())
		return 77;
	return cmocka_run_group_tests(tests, begin, end);
}
