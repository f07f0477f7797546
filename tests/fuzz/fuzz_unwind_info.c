/*
 * Input: size of UNWIND_INFO (1 byte), the UNWIND_INFO, then code.
 * covers: unwind/unwind_info.c unwind/code_rules.c
 */
#include "unwind/code_rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Rows are in order, apart, and inside the code. */
static void check_rows(const struct code_rules *rules, size_t len)
{
	for (uint32_t i = 0; i < rules->nrows; i++) {
		const struct code_row *row = &rules->rows[i];

		if (row->offset >= len || (i && row[-1].offset >= row->offset) ||
		    (i && !memcmp(&row[-1].rule, &row->rule, sizeof(row->rule))))
			abort();
		if (code_rules_at(rules, row->offset) != &row->rule)
			abort();
	}
}

/* A step goes up the stack by its rule, and reads nothing outside the copy. */
static void step(const struct code_rules *rules, size_t len)
{
	unsigned char stack[256];
	const struct unwind_memory memory = {0x1000, stack, sizeof(stack), NULL};

	for (size_t at = 0; at < sizeof(stack); at++)
		stack[at] = (unsigned char)at;
	for (size_t offset = 0; offset < len; offset++) {
		struct unwind_regs regs = {.v = {[ARCH_FP] = 0x1080, [ARCH_SP] = 0x1040},
					   .known = (uint32_t)(offset % 3 ? 0x1ffff : 0x10080)};

		if (!code_rules_step(rules, offset, &regs, &memory) &&
		    (regs.v[ARCH_SP] < 0x1008 || regs.v[ARCH_SP] > 0x1100))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size ? data[0] : 0, at;
	struct unwind_info info = {.nops = 0};
	struct code_rules rules;
	uint32_t chain = 0;

	if (size < 1 + len)
		return 0;
	if (!unwind_info_add(&info, data + 1, len, &chain) && chain &&
	    unwind_info_add(&info, data + 1 + chain % (len + 1), len - chain % (len + 1), &chain))
		return 0;
	if (!code_rules_make(&info, data + 1 + len, size - 1 - len, NULL, &rules)) {
		check_rows(&rules, size - 1 - len);
		step(&rules, size - 1 - len);
		code_rules_free(&rules);
	}
	if (!code_rules_follow(data + 1 + len, size - 1 - len, len & 1, &rules)) {
		check_rows(&rules, size - 1 - len);
		step(&rules, size - 1 - len);
		code_rules_free(&rules);
	}
	if (!code_rules_ahead(data + 1 + len, size - 1 - len, &rules, &at)) {
		check_rows(&rules, at);
		code_rules_free(&rules);
	}
	return 0;
}
