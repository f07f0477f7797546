/* Input: code. covers: unwind/x86_64_insn.c unwind/x86_64_code.c */
#include "unwind/x86_64_code.h"
#include "unwind/x86_64_insn.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	size_t size, next;
};

static void check_rule(const struct unwind_rule *rule)
{
	if (rule->kind != UNWIND_NONE &&
	    (rule->kind != UNWIND_PLAIN || (rule->cfa_reg != ARCH_SP && rule->cfa_reg != ARCH_FP) ||
	     rule->fp > UNWIND_FP_LOST))
		abort();
}

/* Rows are in order and inside the code. */
static int check_row(void *ctx, size_t offset, const struct unwind_rule *rule)
{
	struct seen *s = ctx;

	if (offset < s->next || offset >= s->size)
		abort();
	s->next = offset + 1;
	check_rule(rule);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct x86_64_insn i, again;
	struct unwind_rule rule;

	for (size_t at = 0; at < size; at++) {
		if (x86_64_insn(data + at, size - at, &i)) {
			/* All reads are inside the input. */
			if (!i.len || i.len > X86_64_INSN_MAX || i.len > size - at ||
			    !x86_64_insn(data + at, i.len, &again) ||
			    memcmp(&i, &again, sizeof(i)) != 0 ||
			    x86_64_insn(data + at, i.len - 1u, &again))
				abort();
		}
		if (x86_64_epilogue(data + at, size - at, at, size - at, &rule, &(unsigned int){0}))
			check_rule(&rule);
		if (x86_64_ahead(data + at, size - at, &rule))
			check_rule(&rule);
	}
	for (int many = 0; many < 2; many++)
		if (x86_64_follow(data, size, many, check_row, &(struct seen){.size = size}) &&
		    size <= X86_64_CODE_BYTES_MAX)
			abort();
	return 0;
}
