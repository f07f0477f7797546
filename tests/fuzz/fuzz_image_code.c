/*
 * Input: an image's file.
 * covers: unwind/image_code.c unwind/bare_code.c unwind/clr_hijack.c
 */
#include "base/file.h"
#include "unwind/image_code.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROBES_MAX 4096
#define STACK_AT UINT64_C(0x7ffc00001000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An offset has the same rule each time, and a step by that rule is possible. */
static void probe(struct image_code *c, uint64_t file_off)
{
	static uint64_t stack[64];
	const struct unwind_memory memory = {STACK_AT, (const unsigned char *)stack, sizeof(stack),
					     NULL};
	struct unwind_regs regs = {.known = 0x1ffff};
	struct unwind_rule rule, again;
	bool is_signal;
	int r = image_code_rule(c, file_off, NULL, &rule);

	if (r || image_code_rule(c, file_off, NULL, &again) ||
	    memcmp(&rule, &again, sizeof(rule)) != 0)
		abort();
	if (rule.kind > UNWIND_FULL || rule.cfa_reg >= ARCH_REGS ||
	    (rule.kind == UNWIND_HIJACK && !image_code_has_hijack_stub(c)))
		abort();
	for (uint64_t i = 0; i < ARCH_REGS; i++)
		regs.v[i] = STACK_AT + i * 16;
	struct unwind_regs before = regs;

	r = image_code_step(c, file_off, &regs, &memory, &is_signal);
	if (r > 0 || (r && memcmp(&regs, &before, sizeof(regs)) != 0))
		abort();
}

static void probe_all(struct image_code *c, size_t size)
{
	for (size_t at = 0; at < size + 20 && at < PROBES_MAX; at++)
		probe(c, at);
	probe(c, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct image_code *c;

	if (fd < 0 || file_write_all(fd, data, size))
		abort();
	if (!image_code_from_memory(data, size, &c)) {
		probe_all(c, size);
		image_code_free(c);
	}
	if (image_code_open(fd, &c)) {
		close(fd);
		return 0;
	}
	probe_all(c, size);
	image_code_free(c);
	return 0;
}
