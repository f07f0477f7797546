#include "symbols/store_words.h"

#include <string.h>

static const char *const store_kinds[ANSWERS_KINDS] = {
	[ANSWERS_FILE] = "file",	 [ANSWERS_JIT] = "jit",	    [ANSWERS_VDSO] = "vdso",
	[ANSWERS_VSYSCALL] = "vsyscall", [ANSWERS_OTHER] = "other", [ANSWERS_KERNEL] = "kernel",
};

static const char *const store_whys[ANSWERS_WHYS] = {
	[ANSWERS_FINE] = "fine",
	[ANSWERS_GONE] = "gone",
	[ANSWERS_REPLACED] = "replaced",
	[ANSWERS_DENIED] = "denied",
	[ANSWERS_UNREADABLE] = "unreadable",
	[ANSWERS_NO_FORMAT] = "no-format",
	[ANSWERS_NO_R2R] = "no-r2r",
	[ANSWERS_NO_SYMBOLS] = "no-symbols",
	[ANSWERS_OTHER_KERNEL] = "other-kernel",
};

const char *store_word_kind(enum answers_kind kind)
{
	return store_kinds[kind];
}

enum answers_kind store_word_kind_of(const char *field)
{
	enum answers_kind kind = 0;

	while (kind < ANSWERS_KINDS && (!field || strcmp(field, store_kinds[kind])))
		kind++;
	return kind;
}

const char *store_word_why(enum answers_why why)
{
	return store_whys[why];
}

enum answers_why store_word_why_of(const char *field)
{
	enum answers_why why = 0;

	while (why < ANSWERS_WHYS && strcmp(field, store_whys[why]))
		why++;
	return why;
}
