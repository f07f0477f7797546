/* Input: contents of /proc/TID/stack. covers: profcpu/stacks/kernel_stack.c */
#include "profcpu/stacks/kernel_stack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct outbuf out = outbuf_to(-1);

	if (!text)
		return 0;
	int n = kernel_stack_names(text, &out), lines = 0;

	for (size_t i = 0; i < out.len; i++) {
		lines += out.data[i] == '\n';
		/* Names reach a terminal as they are. */
		if (out.data[i] != '\n' && (out.data[i] <= ' ' || out.data[i] > '~'))
			abort();
	}
	if (n != lines || n > KERNEL_STACK_FRAMES_MAX || out.len > size + 1)
		abort();
	(void)kernel_stack_is_wchan(text);
	free(text);
	outbuf_close(&out);
	return 0;
}
