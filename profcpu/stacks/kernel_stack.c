#include "profcpu/stacks/kernel_stack.h"

#include <string.h>

#define NAME_CHARS                   \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789_.$"

int kernel_stack_names(const char *text, struct outbuf *out)
{
	int n = 0;

	for (const char *line = text; *line && n < KERNEL_STACK_FRAMES_MAX;) {
		size_t len = strcspn(line, "\n");
		const char *name = memmem(line, len, ">] ", 3);
		size_t chars = name ? strspn(name + 3, NAME_CHARS) : 0;

		if (!strncmp(line, "[<", 2) && chars && name[3 + chars] == '+') {
			outbuf_put(out, name + 3, chars);
			outbuf_char(out, '\n');
			n++;
		}
		line += len + (line[len] == '\n');
	}
	return n;
}

bool kernel_stack_is_wchan(const char *text)
{
	size_t chars = strspn(text, NAME_CHARS);

	return chars && !text[chars] && strcmp(text, "0") != 0;
}
