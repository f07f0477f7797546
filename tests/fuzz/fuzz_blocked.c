/* Input: contents of /proc/TID/syscall, /schedstat and /auxv, separated by NUL. covers:
 * sampler/offcpu/blocked.c */
#include "sampler/offcpu/blocked.h"

#include "fuzz_dir.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(const char *name, const uint8_t *data, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)getpid(), name);
	fuzz_dir_put(path, data, size);
}

static size_t part(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;

	return end ? (size_t)(end - data) : size;
}

static size_t behind(size_t at, size_t len, size_t size)
{
	return at + len < size ? at + len + 1 : size;
}

/* The stack is ours: an address from the input is read only if it is mapped. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char stack[256];
	size_t first = part(data, size), second_at = behind(0, first, size),
	       second = part(data + second_at, size - second_at);
	size_t third_at = behind(second_at, second, size);
	uint64_t count = 0;
	char *text = strndup((const char *)data, first);
	struct blocked_stack w, parsed = {0};
	bool is_32;

	if (!text || (!blocked_parse(text, &parsed) &&
		      (!parsed.sp || !parsed.ip || parsed.syscall < -1 || parsed.bytes)))
		abort();
	free(text);
	put("syscall", data, first);
	put("schedstat", data + second_at, second);
	put("auxv", data + third_at, size - third_at);
	(void)blocked_count(fuzz_dir_path, getpid(), &count);
	if (!blocked_read(fuzz_dir_path, getpid(), count, stack, sizeof(stack), &w) &&
	    (!w.bytes || w.bytes > sizeof(stack) || w.sp != parsed.sp || w.ip != parsed.ip ||
	     w.syscall != parsed.syscall))
		abort();
	(void)blocked_parse_auxv(data + third_at, size - third_at, &is_32);
	(void)blocked_is_32(fuzz_dir_path, getpid(), &is_32);
	return 0;
}
