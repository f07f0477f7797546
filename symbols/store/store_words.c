#include "symbols/store/store_words.h"

#include <string.h>

static const char *const store_kinds[IMAGE_KINDS] = {
	[IMAGE_KIND_FILE] = "file",   [IMAGE_KIND_JIT] = "jit",
	[IMAGE_KIND_VDSO] = "vdso",   [IMAGE_KIND_VSYSCALL] = "vsyscall",
	[IMAGE_KIND_OTHER] = "other", [IMAGE_KIND_KERNEL] = "kernel",
};

static const char *const store_reasons[IMAGE_REASONS] = {
	[IMAGE_REASON_NONE] = "fine",
	[IMAGE_REASON_GONE] = "gone",
	[IMAGE_REASON_REPLACED] = "replaced",
	[IMAGE_REASON_DENIED] = "denied",
	[IMAGE_REASON_UNREADABLE] = "unreadable",
	[IMAGE_REASON_NO_FORMAT] = "no-format",
	[IMAGE_REASON_NO_R2R] = "no-r2r",
	[IMAGE_REASON_NO_SYMBOLS] = "no-symbols",
	[IMAGE_REASON_OTHER_KERNEL] = "other-kernel",
	[IMAGE_REASON_NO_DBG] = "no-dbg",
	[IMAGE_REASON_FILE_SYSTEM] = "file-system",
	[IMAGE_REASON_MEMORY] = "memory",
	[IMAGE_REASON_NO_ANSWER] = "no-answer",
	[IMAGE_REASON_DEBUG_DENIED] = "debug-denied",
	[IMAGE_REASON_TOO_LARGE] = "too-large",
};

const char *store_word_kind(enum image_kind kind)
{
	return store_kinds[kind];
}

enum image_kind store_word_kind_of(const char *field)
{
	enum image_kind kind = 0;

	while (kind < IMAGE_KINDS && (!field || strcmp(field, store_kinds[kind])))
		kind++;
	return kind;
}

const char *store_word_reason(enum image_reason why)
{
	return store_reasons[why];
}

enum image_reason store_word_reason_of(const char *field)
{
	enum image_reason why = 0;

	while (why < IMAGE_REASONS && strcmp(field, store_reasons[why]))
		why++;
	return why;
}
