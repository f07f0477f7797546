/* unwind/unwinder: samples of processes whose images are files. */
#include "unwind/unwinder.h"

#include "base/cleanup.h"
#include "tests/unit/bare_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MAPPED_AT UINT64_C(0x7f0000400000)
#define STACK_AT UINT64_C(0x7ffd00000000)
#define WORDS 16

/* push rbx; mov ebx, edi; call; add eax, ebx; pop rbx; jmp rax. No CFI, and no fixed jump
 * target. */
static const unsigned char calls[] = {0x53, 0x89, 0xfb, 0xe8, 0,    1,   0,
				      0,    0x01, 0xd8, 0x5b, 0xff, 0xe0};
/* The same without a call. */
static const unsigned char tests[] = {0x53, 0x89, 0xfb, 0xa9, 0,    1,   0,
				      0,    0x01, 0xd8, 0x5b, 0xff, 0xe0};
#define BEHIND_CALL 8
#define SAMPLED 11

/* An image with that code at *ret_code. */
static int write_image(const unsigned char *code, char path[32], uint64_t *ret_code)
{
	struct bare_image b;
	int fd;

	snprintf(path, 32, "/tmp/test_unwinder.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	bare_image_begin(&b);
	*ret_code = bare_image_code(&b, ".text", code, sizeof(calls));
	bare_image_end(&b, 0);
	assert_int_equal(write(fd, b.bytes.v, b.bytes.len), b.bytes.len);
	free(b.bytes.v);
	free(b.names.v);
	return fd;
}

static void map(struct unwinder *u, const char *path)
{
	const struct perfdata_record r = {
		.type = PERF_RECORD_MMAP,
		.pid = 7,
		.tid = 7,
		.mmap = {.addr = MAPPED_AT, .len = 0x10000, .filename = path}};

	assert_int_equal(unwinder_apply(u, &r), 0);
}

/* A sample in that code, whose caller's frame pointer and return address are on the stack. */
static uint8_t grade(struct unwinder *u, uint64_t code)
{
	const uint64_t regs[] = {STACK_AT + 32, STACK_AT,
				 MAPPED_AT + code + SAMPLED}; /* rbp, rsp, rip */
	const uint64_t stack[WORDS] = {[4] = 0, [5] = MAPPED_AT + code + BEHIND_CALL};
	const struct unwinder_sample s = {.pid = 7,
					  .tid = 7,
					  .time_ns = 1,
					  .regs = regs,
					  .regs_mask = 7 << 6,
					  .abi = PERF_SAMPLE_REGS_ABI_64,
					  .stack = stack,
					  .stack_bytes = sizeof(stack),
					  .last = true};
	struct unwound unwound;

	assert_int_equal(unwinder_sample(u, &s, &unwound), 0);
	return unwound.grade;
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

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(the_code_before_a_return_address_is_read_once),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
