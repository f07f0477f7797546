#include "profcpu/jit/names_option.h"

#include <errno.h>
#include <string.h>

static const char *const names_words[] = {
	[JIT_NAMES_AUTO] = "auto",
	[JIT_NAMES_MEMORY] = "memory",
	[JIT_NAMES_RUNDOWN] = "rundown",
	[JIT_NAMES_NONE] = "none",
};

const char *jit_names_option_word(enum jit_names names)
{
	return names_words[names];
}

int jit_names_option_parse(const char *text, enum jit_names *ret_names)
{
	for (size_t i = 0; i < sizeof(names_words) / sizeof(*names_words); i++)
		if (!strcmp(text, names_words[i])) {
			*ret_names = (enum jit_names)i;
			return 0;
		}
	return -EINVAL;
}
