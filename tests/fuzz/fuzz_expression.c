/* Input: whether an initial value exists (bit 0), then a DWARF expression. Values of registers and
 * memory are invented. */
#include "unwind/expression.h"

#include <stdlib.h>

#define STACK_AT UINT64_C(0x7ffc00001000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t stack[32];
	const struct unwind_memory memory = {STACK_AT, (const unsigned char *)stack, sizeof(stack),
					     NULL};
	const uint64_t cfa = STACK_AT + 64;
	struct unwind_regs regs = {.known = 0xffff7};
	uint64_t value = 0x1234, again = 0x1234;

	if (!size)
		return 0;
	for (uint64_t i = 0; i < ARCH_REGS; i++)
		regs.v[i] = STACK_AT + i * 8;
	for (uint64_t i = 0; i < 32; i++)
		stack[i] = STACK_AT + i * 24 % sizeof(stack);
	const uint64_t *initial = data[0] & 1 ? &cfa : NULL;
	int r = expression_evaluate(data + 1, size - 1, &regs, &memory, initial, &value);

	/* A repetition gives the same result; a failure leaves the result untouched. */
	if (r > 0 || (r && value != 0x1234) ||
	    expression_evaluate(data + 1, size - 1, &regs, &memory, initial, &again) != r ||
	    again != value)
		abort();
	return 0;
}
