/* Shared by tests of rules: a rule as text, and a typical function of .NET's JIT. */
#ifndef TESTS_UNIT_UNWIND_CHECK_H
#define TESTS_UNIT_UNWIND_CHECK_H

#include "unwind/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* "sp+64 fp-16", "sp+8 same", "bp+16 lost": the CFA, then the place of the caller's frame pointer;
 * "none". Returns a static buffer. */
static inline const char *rule_text(const struct unwind_rule *rule)
{
	static char text[64];
	const char *reg = rule->cfa_reg == ARCH_SP ? "sp" : rule->cfa_reg == ARCH_FP ? "bp" : "?";

	if (rule->kind != UNWIND_PLAIN)
		return "none";
	if (rule->fp == UNWIND_FP_AT)
		snprintf(text, sizeof(text), "%s%+d fp%+d", reg, rule->cfa_add, rule->fp_at);
	else
		snprintf(text, sizeof(text), "%s%+d %s", reg, rule->cfa_add,
			 rule->fp == UNWIND_FP_SAME ? "same" : "lost");
	return text;
}

static inline void assert_rule(const struct unwind_rule *rule, const char *text)
{
	assert_non_null(rule);
	assert_string_equal(rule_text(rule), text);
}

static const unsigned char method_code[] = {
	0x55,                         /* 0: push rbp */
	0x41, 0x57,                   /* 1: push r15 */
	0x53,                         /* 3: push rbx */
	0x48, 0x83, 0xec, 0x30,       /* 4: sub rsp, 0x30 */
	0x48, 0x8d, 0x6c, 0x24, 0x40, /* 8: lea rbp, [rsp + 0x40] */
	0x48, 0x89, 0xfb,             /* 0xd: mov rbx, rdi */
	0xe8, 0xfb, 0,    0,    0,    /* 0x10: call */
	0x90,                         /* 0x15: nop */
	0xc5, 0xf8, 0x77,             /* 0x16: vzeroupper */
	0x48, 0x83, 0xc4, 0x30,       /* 0x19: add rsp, 0x30 */
	0x5b,                         /* 0x1d: pop rbx */
	0x41, 0x5f,                   /* 0x1e: pop r15 */
	0x5d,                         /* 0x20: pop rbp */
	0xc3,                         /* 0x21: ret */
};

/* sub rsp, 0x30 ends at 8; push rbx at 4; push r15 at 3; push rbp at 1 */
static const unsigned char method_info[] = {0x19, 8, 4, 0, 8, 0x52, 4, 0x30, 3, 0xf0, 1, 0x50};

/* The rules from each place on. */
static const struct {
	unsigned int offset;
	const char *rule;
} method_rules[] = {
	{0, "sp+8 same"},      {1, "sp+16 fp-16"},    {3, "sp+24 fp-16"},    {4, "sp+32 fp-16"},
	{8, "sp+80 fp-16"},    {0xd, "sp+80 fp-16"},  {0x10, "sp+80 fp-16"}, {0x15, "sp+80 fp-16"},
	{0x16, "sp+80 fp-16"}, {0x19, "sp+80 fp-16"}, {0x1d, "sp+32 fp-16"}, {0x1e, "sp+24 fp-16"},
	{0x20, "sp+16 fp-16"}, {0x21, "sp+8 same"},
};
#define METHOD_RULES (sizeof(method_rules) / sizeof(method_rules[0]))

#endif
