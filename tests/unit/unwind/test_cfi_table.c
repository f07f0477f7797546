#include "unwind/cfi_table.h"

#include "base/file.h"
#include "tests/unit/cfi_image.h"
#include "unwind/cfi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES(...) \
	((const unsigned char[]){__VA_ARGS__}), sizeof((const unsigned char[]){__VA_ARGS__})
/* CFA = rsp + 8, return address at CFA - 8: as in all CIEs of compilers. */
#define AS_CALLED DW_CFA_def_cfa, ARCH_SP, 8, DW_CFA_offset | ARCH_IP, 1
#define STACK_AT UINT64_C(0x7ffc00001000)
#define RBX 3
#define R12 12

static struct cfi_bytes frame; /* section under construction */
static const struct cfi_bytes none;

/* A CIE of version 1 with absolute addresses; letters follow z, with data. Returns its offset. */
static size_t cie_of(const char *letters, const void *data, size_t len, const void *program,
		     size_t program_len)
{
	size_t at = frame.len;

	cfi_put_int(&frame, 0, 8);
	cfi_put(&frame, BYTES(1, 'z'));
	cfi_put(&frame, letters, strlen(letters) + 1);
	cfi_put(&frame, BYTES(1, 0x78, ARCH_IP));
	cfi_put_int(&frame, len, 1);
	cfi_put(&frame, data, len);
	cfi_put(&frame, program, program_len);
	cfi_end_entry(&frame, at);
	return at;
}

static size_t fde_of(size_t cie, uint64_t start, uint64_t bytes, const void *program,
		     size_t program_len)
{
	size_t at = frame.len;

	cfi_put_int(&frame, 0, 4);
	cfi_put_int(&frame, frame.len - cie, 4);
	cfi_put_int(&frame, start, 8);
	cfi_put_int(&frame, bytes, 8);
	cfi_put_int(&frame, 0, 1);
	cfi_put(&frame, program, program_len);
	cfi_end_entry(&frame, at);
	return at;
}

static size_t usual_cie(void)
{
	return cie_of("", NULL, 0, BYTES(AS_CALLED));
}

/* The table of an image with these sections; frees the sections. */
static struct cfi_table *table_with(struct cfi_bytes header, struct cfi_bytes debug_frame)
{
	struct cfi_bytes image = cfi_image_of(frame, header, debug_frame);
	struct cfi_table *t;

	assert_int_equal(cfi_table_of(-1, image.v, image.len, &t), 0);
	free(image.v);
	free(frame.v);
	free(header.v);
	free(debug_frame.v);
	frame = none;
	return t;
}

static struct cfi_table *table(void)
{
	return table_with(none, none);
}

static struct unwind_rule rule_at(struct cfi_table *t, uint64_t vaddr)
{
	struct unwind_rule rule = {0};

	assert_int_equal(cfi_table_find(t, vaddr, NULL, &rule), 0);
	return rule;
}

static int error_at(struct cfi_table *t, uint64_t vaddr)
{
	struct unwind_rule rule = {.kind = 99};
	int r = cfi_table_find(t, vaddr, NULL, &rule);

	assert_true(r && rule.kind == 99);
	return r;
}

/* The error at vaddr of a function there with this program, or 0. */
static int error_of(const void *program, size_t len, uint64_t vaddr)
{
	fde_of(usual_cie(), 0x5000, 0x100, program, len);
	struct cfi_table *t = table();
	struct unwind_rule rule;
	int r = cfi_table_find(t, vaddr, NULL, &rule);

	cfi_table_free(t);
	return r;
}

static void rows_of_a_function_are_found(void **state)
{
	size_t cie = usual_cie();
	uint64_t start, end;

	(void)state;
	fde_of(cie, 0x5000, 0x100,
	       BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | ARCH_FP, 2,
		     DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, ARCH_FP,
		     DW_CFA_advance_loc | 1, DW_CFA_offset | RBX, 3, DW_CFA_advance_loc1, 0x90,
		     DW_CFA_def_cfa, ARCH_SP, 8, DW_CFA_restore | ARCH_FP, DW_CFA_restore | RBX));
	struct cfi_table *t = table();
	struct unwind_rule r = rule_at(t, 0x5000);

	assert_int_equal(r.kind, UNWIND_PLAIN);
	assert_true(r.cfa_reg == ARCH_SP && r.cfa_add == 8 && r.fp == UNWIND_FP_SAME && !r.saves);
	r = rule_at(t, 0x5001);
	assert_true(r.cfa_reg == ARCH_SP && r.cfa_add == 16 && r.fp == UNWIND_FP_AT &&
		    r.fp_at == -16 && !r.saves);
	r = rule_at(t, 0x5003);
	assert_true(r.cfa_reg == ARCH_SP);
	r = rule_at(t, 0x5004);
	assert_true(r.cfa_reg == ARCH_FP && r.cfa_add == 16 && !r.saves);
	r = rule_at(t, 0x5094);
	assert_true(r.cfa_reg == ARCH_FP && r.saves && r.fp_at == -16);
	r = rule_at(t, 0x50ff);
	assert_true(r.cfa_reg == ARCH_SP && r.cfa_add == 8 && r.fp == UNWIND_FP_SAME && !r.saves);
	assert_int_equal(error_at(t, 0x4fff), -ENOENT);
	assert_int_equal(error_at(t, 0x5100), -ENOENT);
	assert_int_equal(error_at(t, 0), -ENOENT);
	assert_int_equal(error_at(t, UINT64_MAX), -ENOENT);
	assert_int_equal(cfi_table_bounds(t, 0x5043, &start, &end), 0);
	assert_true(start == 0x5000 && end == 0x5100);
	assert_int_equal(cfi_table_bounds(t, 0x5100, &start, &end), -ENOENT);
	assert_int_equal(cfi_table_stats(t).rows, 5);
	cfi_table_free(t);
}

static uint64_t words[16];
static const struct unwind_memory memory = {STACK_AT, (const unsigned char *)words, sizeof(words),
					    NULL};

/* Registers whose values are their numbers. Only rsp points to the second word and rbp to the
 * fifth. */
static struct unwind_regs some_regs(void)
{
	struct unwind_regs regs = {.known = (1u << ARCH_REGS) - 1};

	for (uint64_t i = 0; i < ARCH_REGS; i++)
		regs.v[i] = i;
	for (uint64_t i = 0; i < 16; i++)
		words[i] = 0x100 + i;
	regs.v[ARCH_SP] = STACK_AT + 8;
	regs.v[ARCH_FP] = STACK_AT + 32;
	return regs;
}

/* A step by the rules after the function's first instruction and its predecessors. */
static int step_of(const char *letters, const void *program, size_t len, struct unwind_regs *regs,
		   bool *ret_signal)
{
	fde_of(cie_of(letters, NULL, 0, BYTES(AS_CALLED)), 0x5000, 0x100, program, len);
	struct cfi_table *t = table();
	int r = cfi_table_step(t, 0x5000, regs, &memory, ret_signal);

	cfi_table_free(t);
	return r;
}

static void a_step_restores_saved_registers(void **state)
{
	struct unwind_regs regs = some_regs();
	bool is_signal = true;

	(void)state;
	assert_int_equal(step_of("",
				 BYTES(DW_CFA_def_cfa, ARCH_FP, 16, DW_CFA_offset | ARCH_FP, 2,
				       DW_CFA_offset | RBX, 3, DW_CFA_undefined, 0),
				 &regs, &is_signal),
			 0);
	assert_false(is_signal);
	assert_int_equal(regs.v[ARCH_SP], STACK_AT + 48);
	assert_int_equal(regs.v[ARCH_IP], 0x105);
	assert_int_equal(regs.v[ARCH_FP], 0x104);
	assert_int_equal(regs.v[RBX], 0x103);
	assert_int_equal(regs.v[R12], R12);
	assert_int_equal(regs.known, (1u << ARCH_REGS) - 2);
	regs = some_regs();
	assert_int_equal(step_of("S", BYTES(DW_CFA_nop), &regs, &is_signal), 0);
	assert_true(is_signal && regs.v[ARCH_SP] == STACK_AT + 16 && regs.v[ARCH_IP] == 0x101);
	/* An outermost frame leaves the registers unchanged. */
	regs = some_regs();
	assert_int_equal(step_of("", BYTES(DW_CFA_undefined, ARCH_IP), &regs, &is_signal), 0);
	assert_int_equal(regs.known, 0);
}

static void each_way_to_save_a_register_is_understood(void **state)
{
	struct unwind_regs regs = some_regs();
	bool is_signal;

	(void)state;
	assert_int_equal(
		step_of("",
			BYTES(DW_CFA_def_cfa_sf, ARCH_SP, 0x78, DW_CFA_offset_extended, 0, 8,
			      DW_CFA_offset_extended_sf, 1, 0x7f,
			      DW_CFA_GNU_negative_offset_extended, 2, 2, DW_CFA_val_offset, 3, 3,
			      DW_CFA_val_offset_sf, 4, 0x7e, DW_CFA_register, 5, 12,
			      DW_CFA_expression, 8, 2, DW_OP_lit16, DW_OP_minus,
			      DW_CFA_val_expression, 9, 2, DW_OP_lit3, DW_OP_plus, DW_CFA_undefined,
			      10, DW_CFA_same_value, 11, DW_CFA_register, 13, 40, DW_CFA_undefined,
			      14, DW_CFA_restore_extended, 14, DW_CFA_GNU_args_size, 0x90, 1,
			      DW_CFA_offset_extended, 60, 1, DW_CFA_restore_extended, 60,
			      DW_CFA_val_expression, 15, 1, DW_OP_drop),
			&regs, &is_signal),
		0);
	uint64_t cfa = STACK_AT + 72;

	assert_int_equal(regs.v[ARCH_SP], cfa);
	assert_int_equal(regs.v[0], 0x101);
	assert_int_equal(regs.v[1], 0x10a);
	assert_int_equal(regs.v[2], 0x10b);
	assert_int_equal(regs.v[3], cfa - 24);
	assert_int_equal(regs.v[4], cfa + 16);
	assert_int_equal(regs.v[5], 12);
	assert_int_equal(regs.v[8], 0x107);
	assert_int_equal(regs.v[9], cfa + 3);
	assert_int_equal(regs.v[11], 11);
	assert_int_equal(regs.v[14], 14);
	assert_int_equal(regs.v[ARCH_IP], 0x108);
	assert_int_equal(regs.known, ((1u << ARCH_REGS) - 1) & ~(1u << 10 | 1u << 13 | 1u << 15));
}

static void missing_inputs_of_a_step_are_distinguished(void **state)
{
	struct unwind_regs regs = some_regs(), before = regs;
	bool is_signal = true;

	(void)state;
	assert_int_equal(step_of("", BYTES(DW_CFA_def_cfa_offset, 0x90, 1), &regs, &is_signal),
			 -ENODATA);
	assert_int_equal(step_of("",
				 BYTES(DW_CFA_def_cfa_expression, 3, DW_OP_breg0, 0, DW_OP_deref),
				 &regs, &is_signal),
			 -ENODATA);
	assert_int_equal(step_of("", BYTES(DW_CFA_def_cfa, 40, 8), &regs, &is_signal), -ENOTSUP);
	assert_int_equal(step_of("", BYTES(DW_CFA_register, ARCH_IP, 40), &regs, &is_signal),
			 -ENOTSUP);
	assert_int_equal(step_of("", BYTES(DW_CFA_same_value, ARCH_IP), &regs, &is_signal),
			 -EBADMSG);
	assert_int_equal(step_of("", BYTES(DW_CFA_def_cfa_expression, 0), &regs, &is_signal),
			 -EBADMSG);
	before.known = regs.known &= ~(1u << RBX);
	assert_int_equal(step_of("", BYTES(DW_CFA_def_cfa_register, RBX), &regs, &is_signal),
			 -ENXIO);
	assert_int_equal(step_of("", BYTES(DW_CFA_register, ARCH_IP, RBX), &regs, &is_signal),
			 -ENXIO);
	assert_memory_equal(&regs, &before, sizeof(regs));
	assert_true(is_signal);
	/* The frame pointer is not needed; outside the copy it is unknown. */
	assert_int_equal(
		step_of("", BYTES(DW_CFA_offset_extended_sf, ARCH_FP, 0x40), &regs, &is_signal), 0);
	assert_false(regs.known >> ARCH_FP & 1);
	assert_true(regs.known >> ARCH_IP & 1);
}

static void slots_of_linkage_tables_have_a_rule(void **state)
{
	struct unwind_regs regs = some_regs();
	bool is_signal;

	(void)state;
	size_t cie = usual_cie();
	unsigned char program[2 + sizeof(ARCH_PLT_CFA) - 1] = {DW_CFA_def_cfa_expression,
							       sizeof(ARCH_PLT_CFA) - 1};

	memcpy(program + 2, ARCH_PLT_CFA, sizeof(ARCH_PLT_CFA) - 1);
	fde_of(cie, 0x5000, 0x100, program, sizeof(program));
	program[8]--; /* another bound, as in slots with endbr64: evaluated */
	fde_of(cie, 0x6000, 0x100, program, sizeof(program));
	struct cfi_table *t = table();
	struct unwind_rule r = rule_at(t, 0x5000);

	assert_true(r.kind == UNWIND_PLT && r.cfa_reg == ARCH_SP && r.cfa_add == 8 &&
		    r.fp == UNWIND_FP_SAME);
	assert_int_equal(rule_at(t, 0x6000).kind, UNWIND_FULL);
	for (uint64_t i = 0; i < 32; i++) {
		uint64_t at = i & 1 ? 0x6010 : 0x5010, low = i / 2;

		regs = some_regs();
		regs.v[ARCH_IP] = 0x401000 + low;
		assert_int_equal(cfi_table_step(t, at, &regs, &memory, &is_signal), 0);
		assert_int_equal(regs.v[ARCH_IP], low >= 11 - (i & 1) ? 0x102 : 0x101);
	}
	cfi_table_free(t);
}

/* All frames of a stack share their steps, and a long program is not run for each. */
static void full_steps_are_bounded(void **state)
{
	unsigned char program[80000] = {
		DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 16, DW_OP_lit0, DW_OP_plus};
	struct unwind_memory limited = memory;
	struct unwind_regs regs = some_regs();
	bool is_signal;
	int steps = 0, r = 0;

	(void)state;
	limited.steps_left = &(uint64_t){40000};
	fde_of(usual_cie(), 0x5000, 0x100, program, 100);
	fde_of(usual_cie(), 0x6000, 0x100, program, sizeof(program));
	struct cfi_table *t = table();

	for (; !r && steps < 1000; steps++, regs = some_regs())
		r = cfi_table_step(t, 0x5000, &regs, &limited, &is_signal);
	assert_true(r == -E2BIG && steps > 40000 / 1200 && steps <= 40000 / 800 + 1);
	assert_int_equal(cfi_table_step(t, 0x6000, &regs, &memory, &is_signal), -E2BIG);
	cfi_table_free(t);
}

/* A target can lead a stack through many functions with long programs. */
static void the_functions_of_a_stack_take_its_steps(void **state)
{
	/* Function, result, whether a stack begins; the last one is not tried again. */
	static const int finds[][3] = {{1, 0, 1}, {2, -E2BIG, 0}, {1, 0, 0},
				       {2, 0, 1}, {3, -E2BIG, 1}, {3, -E2BIG, 1}};
	static char program[80000]; /* of nops */
	uint64_t left = 0;
	struct unwind_rule rule;

	(void)state;
	for (uint64_t n = 1; n <= 3; n++)
		fde_of(usual_cie(), n << 16, 0xffff, program, n == 3 ? sizeof(program) : 48000);
	struct cfi_table *t = table();
	for (size_t i = 0; i < sizeof(finds) / sizeof(*finds); i++) {
		left = finds[i][2] ? UNWIND_STEPS_MAX : left;
		assert_int_equal(cfi_table_find(t, (uint64_t)finds[i][0] << 16, &left, &rule),
				 finds[i][1]);
	}
	assert_int_equal(left, UNWIND_STEPS_MAX);
	cfi_table_free(t);
}

static void complicated_rules_need_a_full_step(void **state)
{
	static const unsigned char programs[][6] = {
		{DW_CFA_offset | ARCH_IP, 2},
		{DW_CFA_val_offset, ARCH_IP, 1},
		{DW_CFA_same_value, ARCH_SP},
		{DW_CFA_register, ARCH_FP, RBX},
		{DW_CFA_def_cfa, ARCH_REGS, 8},
		{DW_CFA_val_offset, ARCH_SP, 1},
		{DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8},
	};

	(void)state;
	size_t cie = usual_cie();

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		fde_of(cie, 0x5000 + i * 0x100, 0x100, programs[i], sizeof(programs[i]));
	fde_of(cie, 0x6000, 0x100, BYTES(DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 8));
	fde_of(cie, 0x6100, 0x100, BYTES(DW_CFA_offset | ARCH_FP, 0x80, 0x80, 0x80, 0x80, 8));
	fde_of(cie, 0x6200, 0x100, BYTES(DW_CFA_undefined, ARCH_FP));
	struct cfi_table *t = table();

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		assert_int_equal(rule_at(t, 0x5000 + i * 0x100).kind, UNWIND_FULL);
	assert_int_equal(rule_at(t, 0x6000).kind, UNWIND_FULL);
	assert_int_equal(rule_at(t, 0x6100).kind, UNWIND_FULL);
	assert_true(rule_at(t, 0x6200).kind == UNWIND_PLAIN &&
		    rule_at(t, 0x6200).fp == UNWIND_FP_LOST);
	cfi_table_free(t);
}

static void damage_is_reported_with_its_offset(void **state)
{
	unsigned char deep[CFI_REMEMBERED_MAX + 1];

	(void)state;
	memset(deep, DW_CFA_remember_state, sizeof(deep));
	assert_int_equal(error_of(deep, sizeof(deep) - 1, 0x5000), 0);
	assert_int_equal(error_of(deep, sizeof(deep), 0x5000), -E2BIG);
	assert_int_equal(error_of(BYTES(DW_CFA_restore_state), 0x5000), -EBADMSG);
	assert_int_equal(error_of(BYTES(0x3e), 0x5000), -ENOTSUP);
	assert_int_equal(error_of(BYTES(DW_CFA_def_cfa, 0x80), 0x5000), -EBADMSG);
	assert_int_equal(error_of(BYTES(DW_CFA_def_cfa_expression, 9, DW_OP_lit1), 0x5000),
			 -EBADMSG);
	assert_int_equal(error_of(BYTES(DW_CFA_advance_loc4, 1, 0), 0x5000), -EBADMSG);
	/* Addresses increase. */
	assert_int_equal(
		error_of(BYTES(DW_CFA_advance_loc | 4, DW_CFA_set_loc, 3, 0x50, 0, 0, 0, 0, 0, 0),
			 0x5004),
		-EBADMSG);
	assert_int_equal(
		error_of(BYTES(DW_CFA_set_loc, 3, 0x50, 0, 0, 0, 0, 0, 0, DW_CFA_restore_state),
			 0x5002),
		0);
	assert_int_equal(
		error_of(BYTES(DW_CFA_set_loc, 3, 0x50, 0, 0, 0, 0, 0, 0, DW_CFA_restore_state),
			 0x5003),
		-EBADMSG);
	/* Bytes behind the function are not read. */
	assert_int_equal(error_of(BYTES(DW_CFA_advance_loc2, 0, 1, 0x3e), 0x50ff), 0);
	assert_int_equal(error_of(BYTES(DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff, 0x3e), 0x50ff),
			 0);
	/* Damage does not affect earlier functions, in any order of lookups. */
	fde_of(usual_cie(), 0x5000, 0x100,
	       BYTES(DW_CFA_advance_loc | 8, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 8,
		     0x3e));
	struct cfi_table *t = table();

	assert_int_equal(error_at(t, 0x5010), -ENOTSUP);
	assert_int_equal(rule_at(t, 0x500f).cfa_add, 16);
	assert_int_equal(rule_at(t, 0x5007).cfa_add, 8);
	assert_int_equal(error_at(t, 0x50ff), -ENOTSUP);
	cfi_table_free(t);
}

/* A function with a CIE that has these bytes behind its id. */
static int error_with_cie(const void *body, size_t len)
{
	cfi_put_int(&frame, 0, 8);
	cfi_put(&frame, body, len);
	cfi_end_entry(&frame, 0);
	fde_of(0, 0x5000, 0x100, NULL, 0);
	struct cfi_table *t = table();
	struct unwind_rule rule;
	int r = cfi_table_find(t, 0x5000, NULL, &rule);

	cfi_table_free(t);
	return r;
}

static void unknown_cies_are_refused(void **state)
{
	static const unsigned char plain[] = {1, 0, 1, 0x78, ARCH_IP};

	(void)state;
	/* Other versions, segments, other return columns, other letters, indirect or unknown
	 * addresses. */
	assert_int_equal(error_with_cie(BYTES(2, 0, 1, 0x78, ARCH_IP)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(4, 0, 4, 0, 1, 0x78, ARCH_IP)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(4, 0, 8, 2, 1, 0x78, ARCH_IP)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 0, 1, 0x78, 17)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 'e', 'h', 0, 1, 0x78, ARCH_IP)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'X', 0, 1, 0x78, ARCH_IP, 0)), -ENOTSUP);
	assert_int_equal(
		error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 1, DW_EH_PE_indirect)),
		-ENOTSUP);
	assert_int_equal(
		error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 1, DW_EH_PE_textrel)),
		-ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 1, DW_EH_PE_omit)),
			 -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 1, 5)), -ENOTSUP);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'P', 0, 1, 0x78, ARCH_IP, 8, DW_EH_PE_aligned,
					      0, 0, 0, 0, 0, 0, 0)),
			 -ENOTSUP);
	/* Cut off, or with an impossible program. */
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R')), -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78)), -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 9, 0)), -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'R', 0, 1, 0x78, ARCH_IP, 0)), -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 0, 1, 0x78, ARCH_IP, DW_CFA_restore | RBX)),
			 -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 0, 1, 0x78, ARCH_IP, DW_CFA_advance_loc | 1)),
			 -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(1, 0, 1, 0x78, ARCH_IP, DW_CFA_def_cfa_offset, 8)),
			 -EBADMSG);
	assert_int_equal(error_with_cie(BYTES(4, 0, 8)), -EBADMSG);
	assert_int_equal(error_with_cie(plain, sizeof(plain)), 0);
	assert_int_equal(error_with_cie(BYTES(3, 0, 1, 0x78, ARCH_IP)), 0);
	assert_int_equal(error_with_cie(BYTES(4, 0, 8, 0, 1, 0x78, ARCH_IP)), 0);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'P', 'L', 'R', 'B', 0, 1, 0x78, ARCH_IP, 7,
					      0x9b, 1, 2, 3, 4, 0, 0)),
			 0);
	assert_int_equal(error_with_cie(BYTES(1, 'z', 'P', 0, 1, 0x78, ARCH_IP, 1, DW_EH_PE_omit)),
			 0);
}

static void misleading_entries_are_bounded(void **state)
{
	(void)state;
	/* An FDE that is its own CIE, one whose CIE is an FDE, one whose CIE lies before the
	 * section. Then a good one. */
	size_t at = fde_of(0, 0x5000, 0x100, NULL, 0);

	fde_of(at, 0x6000, 0x100, NULL, 0);
	fde_of(frame.len + 4 - 0xfff0, 0x7000, 0x100, NULL, 0);
	size_t cie = usual_cie();

	fde_of(cie, 0x8000, 0x100, NULL, 0);
	fde_of(cie, 0x9000, 0, NULL, 0);
	fde_of(cie, UINT64_MAX - 4, 0x100, NULL, 0);
	fde_of(cie, 0xa000, UINT64_C(0x100000001), NULL, 0);
	cfi_put(&frame, BYTES(0xf0, 0xff, 0, 0));
	struct cfi_table *t = table();

	assert_int_equal(rule_at(t, 0x8000).kind, UNWIND_PLAIN);
	assert_int_equal(error_at(t, 0x5000), -EBADMSG);
	assert_int_equal(error_at(t, 0x7000), -EBADMSG);
	assert_int_equal(error_at(t, 0x9000), -EBADMSG);
	assert_int_equal(error_at(t, 0xa000), -EBADMSG);
	assert_int_equal(error_at(t, UINT64_MAX - 2), -EBADMSG);
	cfi_table_free(t);
}

static void the_last_of_overlapping_functions_counts(void **state)
{
	static const uint64_t looked_up[] = {0x50ff, 0x5000, 0x5020, 0x5010, 0x501f,
					     0x5018, 0x5030, 0x500f, 0x5100, 0x4fff};
	static const int expected_add[] = {8, 8, 24, 16, 16, 16, 8, 8, 0, 0};

	(void)state;
	for (size_t first = 0; first < sizeof(looked_up) / sizeof(*looked_up); first++) {
		size_t cie = usual_cie();

		fde_of(cie, 0x5000, 0x100, NULL, 0);
		fde_of(cie, 0x5020, 8, BYTES(DW_CFA_def_cfa_offset, 24));
		fde_of(cie, 0x5010, 0x10, BYTES(DW_CFA_def_cfa_offset, 16));
		fde_of(cie, 0x5018, 0, BYTES(DW_CFA_def_cfa_offset, 32));
		struct cfi_table *t = table();

		for (size_t i = 0; i < sizeof(looked_up) / sizeof(*looked_up); i++) {
			size_t k = (first + i * 3) % (sizeof(looked_up) / sizeof(*looked_up));

			if (expected_add[k])
				assert_int_equal(rule_at(t, looked_up[k]).cfa_add, expected_add[k]);
			else
				assert_int_equal(error_at(t, looked_up[k]), -ENOENT);
		}
		cfi_table_free(t);
	}
}

/* .eh_frame_hdr with one row, in these encodings. */
static struct cfi_bytes header_with(uint8_t version, uint8_t table_encoding, uint32_t count,
				    uint64_t start, size_t fde)
{
	struct cfi_bytes h = {0};

	cfi_put(&h,
		BYTES(version, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4, table_encoding));
	cfi_put_int(&h, CFI_IMAGE_EH_FRAME_AT - CFI_IMAGE_HEADER_AT - 4, 4);
	cfi_put_int(&h, count, 4);
	cfi_put_int(&h, start - CFI_IMAGE_HEADER_AT, 4);
	cfi_put_int(&h, CFI_IMAGE_EH_FRAME_AT + fde - CFI_IMAGE_HEADER_AT, 4);
	return h;
}

static void the_sorted_table_is_used_if_it_is_right(void **state)
{
	static const struct {
		uint8_t version, encoding;
		uint32_t count, start;
		bool used;
	} cases[] = {
		{1, DW_EH_PE_datarel | DW_EH_PE_sdata4, 1, 0x5000, true},
		{2, DW_EH_PE_datarel | DW_EH_PE_sdata4, 1, 0x5000, false},
		{1, DW_EH_PE_datarel | DW_EH_PE_sdata8, 1, 0x5000, false},
		{1, DW_EH_PE_datarel | DW_EH_PE_sdata4, 2, 0x5000, false},
		{1, DW_EH_PE_datarel | DW_EH_PE_sdata4, 0, 0x5000, false},
		{1, DW_EH_PE_datarel | DW_EH_PE_sdata4, 1, 0x4000, false},
		{1, DW_EH_PE_omit, 1, 0x5000, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t cie = usual_cie(), fde = fde_of(cie, 0x5000, 0x100, NULL, 0);

		fde_of(cie, 0x6000, 0x100, NULL, 0); /* unknown to the table */
		struct cfi_table *t = table_with(header_with(cases[i].version, cases[i].encoding,
							     cases[i].count, cases[i].start, fde),
						 none);

		assert_int_equal(rule_at(t, 0x5000).kind, UNWIND_PLAIN);
		if (cases[i].used)
			assert_int_equal(error_at(t, 0x6000), -ENOENT);
		else
			assert_int_equal(rule_at(t, 0x6000).kind, UNWIND_PLAIN);
		cfi_table_free(t);
	}
}

static void debug_frame_covers_gaps_of_eh_frame(void **state)
{
	struct cfi_bytes debug = {0};

	(void)state;
	/* 64-bit lengths, CIE pointers from the section's start, version 4. */
	cfi_put_int(&debug, UINT32_MAX, 4);
	cfi_put_int(&debug, 8 + 12, 8);
	cfi_put_int(&debug, UINT64_MAX, 8);
	cfi_put(&debug, BYTES(4, 0, 8, 0, 1, 0x78, ARCH_IP, AS_CALLED));
	for (uint64_t start = 0x5000; start < 0x7000; start += 0x1000) {
		cfi_put_int(&debug, UINT32_MAX, 4);
		cfi_put_int(&debug, 8 + 16 + 2, 8);
		cfi_put_int(&debug, 0, 8);
		cfi_put_int(&debug, start, 8);
		cfi_put_int(&debug, 0x800, 8);
		cfi_put(&debug, BYTES(DW_CFA_def_cfa_offset, 48));
	}
	fde_of(usual_cie(), 0x5000, 0x400, NULL, 0);
	struct cfi_table *t = table_with(none, debug);
	uint64_t start, end;

	assert_int_equal(rule_at(t, 0x5000).cfa_add, 8);
	assert_int_equal(rule_at(t, 0x5400).cfa_add, 48);
	assert_int_equal(rule_at(t, 0x6000).cfa_add, 48);
	assert_int_equal(rule_at(t, 0x53ff).cfa_add, 8);
	assert_int_equal(error_at(t, 0x5800), -ENOENT);
	assert_int_equal(cfi_table_bounds(t, 0x5400, &start, &end), 0);
	assert_true(start == 0x5000 && end == 0x5800);
	cfi_table_free(t);
}

static void compiled_tables_are_bounded(void **state)
{
	size_t cie = usual_cie(), functions = CFI_TABLE_PLACES_MAX + 1000,
	       rows = CFI_FUNCTION_ROWS_MAX + 8;
	struct cfi_bytes program = {0};

	(void)state;
	for (size_t i = 0; i < functions; i++)
		fde_of(cie, 0x100000 + i * 16, 16,
		       BYTES(DW_CFA_advance_loc | 8, DW_CFA_def_cfa_offset,
			     (unsigned char)(i & 0x7f)));
	for (size_t i = 0; i < rows; i++)
		cfi_put(&program, BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset,
					(unsigned char)(i & 0x7f)));
	fde_of(cie, 0x10000, rows, program.v, program.len - 30);
	fde_of(cie, 0x20000, rows, program.v, program.len);
	free(program.v);
	struct cfi_table *t = table();

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < functions; i++) {
			assert_int_equal(rule_at(t, 0x100000 + i * 16 + 7).cfa_add, 8);
			assert_int_equal(rule_at(t, 0x100000 + i * 16 + 8).cfa_add, i & 0x7f);
			assert_true(cfi_table_stats(t).places <= CFI_TABLE_PLACES_MAX);
		}
		assert_int_equal(rule_at(t, 0x10000 + 1000).cfa_add, 999 & 0x7f);
		assert_int_equal(error_at(t, 0x20000), -E2BIG);
	}
	assert_true(cfi_table_stats(t).compiled > functions);
	assert_true(cfi_table_stats(t).rows <= CFI_TABLE_ROWS_MAX + CFI_FUNCTION_ROWS_MAX);
	cfi_table_free(t);
}

static void other_files_are_distinguished(void **state)
{
	struct cfi_bytes image = cfi_image_of(none, none, none);
	struct cfi_table *t = NULL;

	(void)state;
	assert_int_equal(cfi_table_of(-1, image.v, image.len, &t), -ENOENT);
	assert_int_equal(cfi_table_of(-1, "not ELF", 7, &t), -EBADMSG);
	assert_null(t);
	free(image.v);
	cfi_table_free(NULL);
}

static void a_file_truncated_while_it_is_read_is_damaged(void **state)
{
	struct cfi_table *t;

	(void)state;
	fde_of(usual_cie(), 0x5000, 0x100, NULL, 0);
	struct cfi_bytes image = cfi_image_of(frame, none, none);
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_int_equal(file_write_all(fd, image.v, image.len), 0);
	assert_int_equal(cfi_table_of(fd, NULL, 0, &t), 0);
	assert_int_equal(ftruncate(fd, 70), 0);
	assert_int_equal(error_at(t, 0x5000), -EBADMSG);
	cfi_table_free(t);
	close(fd);
	free(image.v);
	free(frame.v);
	frame = none;
}

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

/* Steps from here to the caller in a copy of this thread's stack that ends at `end`. A copy that
 * ends earlier gives no step from there. */
__attribute__((noinline)) static void step_out(struct cfi_table *t, uint64_t base, const void *end)
{
	struct unwind_regs regs = {.known = 1u << ARCH_BX | 1u << ARCH_FP | 1u << ARCH_SP |
					    1u << ARCH_IP | 0xf000};
	ucontext_t context;
	bool is_signal = true;

	getcontext(&context);
	const greg_t *g = context.uc_mcontext.gregs;

	regs.v[ARCH_BX] = (uint64_t)g[REG_RBX];
	regs.v[ARCH_FP] = (uint64_t)g[REG_RBP];
	regs.v[ARCH_SP] = (uint64_t)g[REG_RSP];
	regs.v[ARCH_IP] = (uint64_t)g[REG_RIP];
	for (int i = 12; i < 16; i++)
		regs.v[i] = (uint64_t)g[REG_R12 + i - 12];
	struct unwind_memory stack = {regs.v[ARCH_SP],
				      (const unsigned char *)(uintptr_t)regs.v[ARCH_SP],
				      (size_t)((uint64_t)(uintptr_t)end - regs.v[ARCH_SP]), NULL};

	assert_int_equal(cfi_table_step(t, regs.v[ARCH_IP] - base, &regs, &stack, &is_signal), 0);
	assert_false(is_signal);
	assert_int_equal(regs.v[ARCH_IP], (uint64_t)(uintptr_t)__builtin_return_address(0));
	assert_int_equal(regs.v[ARCH_SP], (uint64_t)(uintptr_t)__builtin_frame_address(0) + 16);
	/* The caller's caller has its address outside the copy. */
	stack.len = (size_t)(regs.v[ARCH_SP] - stack.start);
	assert_int_equal(cfi_table_step(t, regs.v[ARCH_IP] - 1 - base, &regs, &stack, &is_signal),
			 -ENODATA);
}

static void our_own_frames_are_stepped_out_of(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct cfi_table *t;
	uint64_t base = 0;

	(void)state;
	dl_iterate_phdr(first_base, &base);
	assert_int_equal(cfi_table_of(fd, NULL, 0, &t), 0);
	step_out(t, base, (const char *)__builtin_frame_address(0) + 256);
	assert_int_equal(error_at(t, 0), -ENOENT);
	cfi_table_free(t);
	close(fd);
}

static void the_vdso_has_rules(void **state)
{
	const unsigned char *vdso = (const unsigned char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct unwind_rule rule;
	struct cfi_table *t;
	size_t found = 0;

	(void)state;
	if (!vdso)
		skip();
	const Elf64_Ehdr *h = (const void *)vdso;
	size_t len = h->e_shoff + h->e_shnum * sizeof(Elf64_Shdr);

	assert_int_equal(cfi_table_of(-1, vdso, len, &t), 0);
	for (uint64_t at = 0; at < 8192; at++)
		found += !cfi_table_find(t, at, NULL, &rule);
	assert_true(found > 100);
	cfi_table_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_function_are_found),
		cmocka_unit_test(a_step_restores_saved_registers),
		cmocka_unit_test(each_way_to_save_a_register_is_understood),
		cmocka_unit_test(missing_inputs_of_a_step_are_distinguished),
		cmocka_unit_test(slots_of_linkage_tables_have_a_rule),
		cmocka_unit_test(complicated_rules_need_a_full_step),
		cmocka_unit_test(full_steps_are_bounded),
		cmocka_unit_test(the_functions_of_a_stack_take_its_steps),
		cmocka_unit_test(damage_is_reported_with_its_offset),
		cmocka_unit_test(unknown_cies_are_refused),
		cmocka_unit_test(misleading_entries_are_bounded),
		cmocka_unit_test(the_last_of_overlapping_functions_counts),
		cmocka_unit_test(the_sorted_table_is_used_if_it_is_right),
		cmocka_unit_test(debug_frame_covers_gaps_of_eh_frame),
		cmocka_unit_test(compiled_tables_are_bounded),
		cmocka_unit_test(other_files_are_distinguished),
		cmocka_unit_test(a_file_truncated_while_it_is_read_is_damaged),
		cmocka_unit_test(our_own_frames_are_stepped_out_of),
		cmocka_unit_test(the_vdso_has_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
