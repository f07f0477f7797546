/* unwind/r2r_unwind: precompiled code has rules by offset in its file. Damage is reported. */
#include "unwind/r2r_unwind.h"

#include "dotnet/r2r_header.h"
#include "elf/budget.h"
#include "tests/unit/fake_memory.h"
#include "tests/unit/r2r_builder.h"
#include "tests/unit/unwind_check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define METHOD_AT 0x10 /* in the code */
#define LEAF_AT 0x40
#define IN_FRONT 0x1000 /* bytes of the file before the image, if it is in a bundle */

static const unsigned char leaf_info[] = {1, 0, 0, 0};
static const unsigned char thunks[] = {0x6a, 3,    0xff, 0x35, 0, 0, 0,    0,
				       0xff, 0x25, 0,    0,    0, 0, 0xcc, 0xcc};

struct built {
	uint32_t code, thunks; /* rva */
	uint32_t chained;      /* rva of the last function's info */
};

/* A method, a leaf, and a part of the method in another place whose info continues the method's.
 * Also one with an impossible info. */
static struct r2r_build build_image(struct built *ret)
{
	struct r2r_build b = r2r_begin();
	unsigned char code[0x80];
	uint32_t info, leaf, wrong, part;

	memset(code, 0x90, sizeof(code));
	memcpy(code + METHOD_AT, method_code, sizeof(method_code));
	code[LEAF_AT] = 0xc3;
	ret->code = r2r_rva(&b);
	r2r_put(&b, code, sizeof(code));
	info = r2r_rva(&b);
	r2r_put(&b, method_info, sizeof(method_info));
	leaf = r2r_rva(&b);
	r2r_put(&b, leaf_info, sizeof(leaf_info));
	wrong = r2r_rva(&b);
	r2r_put(&b, "\x07\0\0\0", 4);
	part = r2r_rva(&b);
	r2r_put(&b, "\x21\0\0\0\0\0\0\0\0\0\0\0", 12);
	r2r_u32(&b, info);
	ret->chained = part;
	const uint32_t table[][3] = {
		{ret->code + METHOD_AT, ret->code + METHOD_AT + (uint32_t)sizeof(method_code),
		 info},
		{ret->code + LEAF_AT, ret->code + LEAF_AT + 1, leaf},
		{ret->code + 0x50, ret->code + 0x58, part},
		{ret->code + 0x60, ret->code + 0x68, wrong},
		{ret->code + 0x70, ret->code + 0x70000000, leaf},
		{UINT32_MAX, 0, 0},
	};

	r2r_section(&b, R2R_RUNTIME_FUNCTIONS, table, sizeof(table));
	ret->thunks = r2r_section(&b, R2R_METHOD_CALL_THUNKS, thunks, sizeof(thunks));
	r2r_header(&b, 0);
	return b;
}

static int open_bytes(const unsigned char *data, size_t len, uint64_t offset,
		      struct r2r_unwind **ret)
{
	struct parse_error err = {.what = NULL};
	struct pe_file file = {memfd_create("image", MFD_CLOEXEC), offset, len};
	int r;

	assert_int_equal(file_pwrite_all(file.fd, data, len, offset), 0);
	r = r2r_unwind_open(&file, ret, &err);
	assert_true(!r || err.what);
	close(file.fd);
	return r;
}

static struct r2r_unwind *open_image(struct built *built, uint64_t offset)
{
	struct r2r_build b = build_image(built);
	struct r2r_unwind *u = NULL;
	size_t len;
	unsigned char *data = r2r_end(&b, &len);

	assert_int_equal(open_bytes(data, len, offset, &u), 0);
	free(data);
	return u;
}

static void assert_at(struct r2r_unwind *u, uint64_t file_off, const char *text)
{
	struct unwind_rule rule;

	assert_int_equal(r2r_unwind_rule(u, file_off, NULL, &rule), 0);
	assert_rule(&rule, text);
}

static void functions_have_rules_by_offset(void **state)
{
	struct r2r_unwind_function f;
	struct unwind_rule rule;
	struct built built;
	struct r2r_unwind *u = open_image(&built, 0);
	uint64_t code = r2r_file_off(built.code), at = 0;

	(void)state;
	for (int twice = 0; twice < 2; twice++)
		for (size_t i = 0; i < METHOD_RULES; i++)
			assert_at(u, code + METHOD_AT + method_rules[i].offset,
				  method_rules[i].rule);
	assert_at(u, code + LEAF_AT, "sp+8 same");
	assert_at(u, code + 0x50, "sp+80 fp-16"); /* a part of the method */
	assert_int_equal(r2r_unwind_find(u, code + METHOD_AT + 5, NULL, &f), 0);
	assert_int_equal(f.start, code + METHOD_AT);
	assert_false(f.is_thunks);
	assert_int_equal(f.end, code + METHOD_AT + sizeof(method_code));
	assert_int_equal(r2r_unwind_rule(u, code, NULL, &rule), -ENOENT);
	assert_int_equal(r2r_unwind_rule(u, code + LEAF_AT + 1, NULL, &rule), -ENOENT);
	assert_int_equal(r2r_unwind_rule(u, 0, NULL, &rule), -ENOENT);
	assert_int_equal(r2r_unwind_rule(u, UINT64_MAX, NULL, &rule), -ENOENT);
	assert_int_equal(r2r_unwind_function_count(u), 5);
	assert_int_equal(r2r_unwind_file_off(u, 1, &at), 0);
	assert_int_equal(at, code + LEAF_AT);
	assert_int_equal(r2r_unwind_file_off(u, 5, &at), -ENOENT);
	assert_true(r2r_unwind_bytes(u) > 5 * 12);
	uint64_t left = elf_budget_left(ELF_BUDGET_RULES);

	r2r_unwind_forget(u);
	assert_true(elf_budget_left(ELF_BUDGET_RULES) > left);
	assert_at(u, code + LEAF_AT, "sp+8 same");
	r2r_unwind_free(u);
}

/* A file that is large only by its holes would take much memory. */
static void images_of_holes_are_refused(void **state)
{
	const uint32_t bytes = (1 << 20) * 12;
	struct r2r_build b = r2r_begin();
	struct parse_error err = {.what = NULL};
	struct r2r_unwind *u = NULL;
	unsigned char *table = calloc(1, bytes), *data;
	uint32_t at;
	size_t len;

	(void)state;
	assert_non_null(table);
	r2r_put(&b, leaf_info, sizeof(leaf_info));
	at = r2r_section(&b, R2R_RUNTIME_FUNCTIONS, table, bytes);
	free(table);
	r2r_header(&b, 0);
	data = r2r_end(&b, &len);
	struct pe_file file = {memfd_create("image", MFD_CLOEXEC), 0, len};

	assert_int_equal(file_pwrite_all(file.fd, data, len, 0), 0);
	free(data);
	assert_int_equal(r2r_unwind_open(&file, &u, &err), 0);
	r2r_unwind_free(u);
	assert_int_equal(fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   (off_t)r2r_file_off(at), bytes),
			 0);
	assert_int_equal(r2r_unwind_open(&file, &u, &err), -EBADMSG);
	assert_string_equal(err.what, "the file has holes");
	close(file.fd);
}

/* A target can map many small images. */
static void images_are_refused_when_half_of_the_memory_is_gone(void **state)
{
	struct built built;
	struct r2r_build b = build_image(&built);
	struct parse_error err = {.what = NULL};
	struct r2r_unwind *u = NULL;
	size_t len;
	unsigned char *data = r2r_end(&b, &len);
	struct pe_file file = {memfd_create("image", MFD_CLOEXEC), 0, len};

	(void)state;
	assert_int_equal(file_pwrite_all(file.fd, data, len, 0), 0);
	free(data);
	assert_int_equal(r2r_unwind_open(&file, &u, &err), 0);
	r2r_unwind_free(u);
	fake_memory_taken = FAKE_MEMORY_BYTES / 2 + 1;
	assert_int_equal(r2r_unwind_open(&file, &u, &err), -E2BIG);
	fake_memory_taken = 0;
	assert_string_equal(err.what, "a ReadyToRun image needs more memory than is left");
	close(file.fd);
}

/* A target can lead a stack through many long functions. */
static void the_functions_of_a_stack_take_its_steps(void **state)
{
	enum { BYTES = 128 << 10, LIGHT = 20 << 10, HEAVY = 100 << 10 };
	struct r2r_build b = r2r_begin();
	struct r2r_unwind *u = NULL;
	struct unwind_rule rule;
	uint32_t code = r2r_rva(&b), info;
	unsigned char *nops = malloc(BYTES), *data;
	uint64_t left = UNWIND_STEPS_MAX, at = r2r_file_off(code);
	size_t len;

	(void)state;
	assert_non_null(nops);
	memset(nops, 0x90, BYTES);
	r2r_put(&b, nops, BYTES);
	info = r2r_rva(&b);
	r2r_put(&b, leaf_info, sizeof(leaf_info));
	const uint32_t table[][3] = {{code, code + LIGHT, info},
				     {code + 1, code + LIGHT, info},
				     {code + 2, code + LIGHT, info},
				     {code + 3, code + HEAVY, info}};

	r2r_section(&b, R2R_RUNTIME_FUNCTIONS, table, sizeof(table));
	uint32_t thunks_at = r2r_section(&b, R2R_METHOD_CALL_THUNKS, nops, LIGHT * 2);

	r2r_header(&b, 0);
	data = r2r_end(&b, &len);
	assert_int_equal(open_bytes(data, len, 0, &u), 0);
	free(data);
	assert_int_equal(r2r_unwind_rule(u, at, &left, &rule), 0);
	assert_int_equal(r2r_unwind_rule(u, at + 1, &left, &rule), 0);
	assert_true(left);
	assert_int_equal(r2r_unwind_rule(u, at + 2, &left, &rule), -E2BIG);
	assert_false(left);
	/* Known rules take none, and the next stack has new steps. */
	assert_int_equal(r2r_unwind_rule(u, at + 1, &left, &rule), 0);
	left = UNWIND_STEPS_MAX;
	assert_int_equal(r2r_unwind_rule(u, at + 2, &left, &rule), 0);
	/* A function that needs more than a stack has is not tried again. */
	left = UNWIND_STEPS_MAX;
	assert_int_equal(r2r_unwind_rule(u, at + 3, &left, &rule), -E2BIG);
	left = UNWIND_STEPS_MAX;
	assert_int_equal(r2r_unwind_rule(u, at + 3, &left, &rule), -EBADMSG);
	assert_int_equal(left, UNWIND_STEPS_MAX);
	assert_int_equal(r2r_unwind_rule(u, r2r_file_off(thunks_at), &left, &rule), -E2BIG);
	r2r_unwind_free(u);
	free(nops);
}

static void an_image_in_a_bundle_has_offsets_of_the_bundle(void **state)
{
	struct built built;
	struct r2r_unwind *u = open_image(&built, IN_FRONT);
	struct unwind_rule rule;
	uint64_t at = 0;

	(void)state;
	assert_at(u, IN_FRONT + r2r_file_off(built.code) + METHOD_AT + 1, "sp+16 fp-16");
	assert_int_equal(r2r_unwind_rule(u, r2r_file_off(built.code) + METHOD_AT, NULL, &rule),
			 -ENOENT);
	assert_int_equal(r2r_unwind_file_off(u, 0, &at), 0);
	assert_int_equal(at, IN_FRONT + r2r_file_off(built.code) + METHOD_AT);
	r2r_unwind_free(u);
}

static void thunks_have_rules_for_pushed_words(void **state)
{
	struct r2r_unwind_function f;
	struct built built;
	struct r2r_unwind *u = open_image(&built, 0);
	uint64_t at = r2r_file_off(built.thunks);

	(void)state;
	assert_at(u, at, "sp+8 same");
	assert_at(u, at + 2, "sp+16 same");
	assert_at(u, at + 8, "sp+24 same");
	assert_int_equal(r2r_unwind_find(u, at + 2, NULL, &f), 0);
	assert_true(f.is_thunks && f.start == at && f.end == at + sizeof(thunks));
	r2r_unwind_free(u);
}

static void a_step_leads_to_the_caller(void **state)
{
	uint64_t stack[] = {0xb9, 0x401000};
	struct unwind_memory memory = {0x1000, (const unsigned char *)stack, sizeof(stack), NULL};
	struct unwind_regs regs = {.v = {[ARCH_SP] = 0x1000}, .known = 1u << ARCH_SP};
	struct built built;
	struct r2r_unwind *u = open_image(&built, 0);

	(void)state;
	assert_int_equal(
		r2r_unwind_step(u, r2r_file_off(built.code) + METHOD_AT + 1, &regs, &memory), 0);
	assert_int_equal(regs.v[ARCH_IP], 0x401000);
	assert_int_equal(regs.v[ARCH_FP], 0xb9);
	assert_int_equal(r2r_unwind_step(u, 0, &regs, &memory), -ENOENT);
	r2r_unwind_free(u);
}

static void damage_is_reported(void **state)
{
	struct unwind_rule rule;
	struct built built;
	struct r2r_unwind *u = open_image(&built, 0);
	uint64_t code = r2r_file_off(built.code);
	struct r2r_build b;
	unsigned char *data;
	size_t len;

	(void)state;
	assert_int_equal(r2r_unwind_rule(u, code + 0x60, NULL, &rule), -ENOTSUP);
	assert_int_equal(r2r_unwind_rule(u, code + 0x70, NULL, &rule), -E2BIG);
	r2r_unwind_free(u);

	b = build_image(&built);
	b.machine = 0xaa64 ^ 0x7b79;
	data = r2r_end(&b, &len);
	assert_int_equal(open_bytes(data, len, 0, &u), -ENOTSUP);
	assert_int_equal(open_bytes((const unsigned char *)"MZ", 2, 0, &u), -EBADMSG);
	free(data);

	b = r2r_begin();
	r2r_header(&b, 0); /* no functions */
	data = r2r_end(&b, &len);
	assert_int_equal(open_bytes(data, len, 0, &u), -EBADMSG);
	free(data);
}

/* Infos in a circle: each continues the next. */
static void infos_in_a_circle_end(void **state)
{
	struct unwind_rule rule;
	struct built built;
	struct r2r_build b = build_image(&built);
	struct r2r_unwind *u = NULL;
	size_t len;
	unsigned char *data = r2r_end(&b, &len);

	(void)state;
	memcpy(data + r2r_file_off(built.chained) + 12, &built.chained, 4);
	assert_int_equal(open_bytes(data, len, 0, &u), 0);
	assert_int_equal(r2r_unwind_rule(u, r2r_file_off(built.code) + 0x50, NULL, &rule), -E2BIG);
	r2r_unwind_free(u);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_have_rules_by_offset),
		cmocka_unit_test(images_of_holes_are_refused),
		cmocka_unit_test(images_are_refused_when_half_of_the_memory_is_gone),
		cmocka_unit_test(the_functions_of_a_stack_take_its_steps),
		cmocka_unit_test(an_image_in_a_bundle_has_offsets_of_the_bundle),
		cmocka_unit_test(thunks_have_rules_for_pushed_words),
		cmocka_unit_test(a_step_leads_to_the_caller),
		cmocka_unit_test(damage_is_reported),
		cmocka_unit_test(infos_in_a_circle_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
