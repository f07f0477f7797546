/* Input: a PE image. covers: unwind/r2r_unwind.c */
#include "base/file.h"
#include "unwind/r2r_unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUNCTIONS_MAX 256 /* number of lookups */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A found function covers the place. */
static void look_up(struct r2r_unwind *u, uint64_t at)
{
	unsigned char stack[64] = {0};
	const struct unwind_memory memory = {0x1000, stack, sizeof(stack), NULL};
	struct unwind_regs regs = {.v = {[ARCH_SP] = 0x1000}, .known = 1u << ARCH_SP};
	struct r2r_unwind_function f;
	struct unwind_rule rule;

	if (!r2r_unwind_find(u, at, NULL, &f) &&
	    (at < f.start || at >= f.end || f.rules->nrows > f.end - f.start))
		abort();
	if (!r2r_unwind_rule(u, at, NULL, &rule))
		(void)r2r_unwind_step(u, at, &regs, &memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pe_file file = {memfd_create("image", MFD_CLOEXEC), 0, size};
	struct r2r_unwind *u = NULL;
	uint64_t at;

	if (file.fd < 0 || file_write_all(file.fd, data, size))
		abort();
	if (!r2r_unwind_open(&file, &u, NULL)) {
		for (uint32_t i = 0; i < r2r_unwind_function_count(u) && i < FUNCTIONS_MAX; i++)
			if (!r2r_unwind_file_off(u, i, &at))
				look_up(u, at);
		for (at = 0; at < size && at < 4096; at++)
			look_up(u, at);
		if (!r2r_unwind_bytes(u))
			abort();
		r2r_unwind_free(u);
	}
	close(file.fd);
	return 0;
}
