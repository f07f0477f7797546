/*
 * Input: an ELF file, or sections after a byte of flags that is not 0x7f. Bit 0: .debug_frame
 * follows instead of .eh_frame. Bit 1: .eh_frame_hdr comes first, with its length in the next byte.
 * Addresses are as in the input.
 * covers: elf/cfi_entry.c elf/cfi_frames.c elf/cfi_index.c elf/cfi_section.c unwind/cfi.c
 * unwind/cfi_rules.c unwind/cfi_table.c
 */
#include "base/file.h"
#include "tests/unit/cfi_image.h"
#include "unwind/cfi_table.h"

#include <sys/mman.h>
#include <unistd.h>

#define PROBES_MAX 256
#define STACK_AT UINT64_C(0x7ffc00001000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A found function covers the address, lookups are repeatable, and a failed step changes
 * nothing. */
static void probe(struct cfi_table *t, uint64_t vaddr)
{
	static uint64_t stack[64];
	const struct unwind_memory memory = {STACK_AT, (const unsigned char *)stack, sizeof(stack),
					     NULL};
	struct unwind_regs regs = {.known = 0xffff ^ 8};
	struct unwind_rule rule, again;
	uint64_t start, end;
	bool is_signal;
	int r = cfi_table_find(t, vaddr, NULL, &rule);

	if (r > 0 || (!r && (rule.kind == UNWIND_NONE || rule.cfa_reg >= ARCH_REGS)))
		abort();
	if (!cfi_table_bounds(t, vaddr, &start, &end) && (vaddr < start || vaddr >= end))
		abort();
	if (cfi_table_find(t, vaddr, NULL, &again) != r ||
	    (!r && memcmp(&rule, &again, sizeof(rule)) != 0))
		abort();
	for (uint64_t i = 0; i < ARCH_REGS; i++)
		regs.v[i] = STACK_AT + i * 16;
	regs.known |= 1u << ARCH_IP;
	struct unwind_regs before = regs;

	r = cfi_table_step(t, vaddr, &regs, &memory, &is_signal);
	if (r > 0 || (r && memcmp(&regs, &before, sizeof(regs)) != 0))
		abort();
	if (!r && rule.kind == UNWIND_END && regs.known)
		abort();
}

static void probe_all(struct cfi_table *t, const uint8_t *data, size_t size)
{
	uint64_t value;

	probe(t, 0);
	probe(t, CFI_IMAGE_EH_FRAME_AT);
	probe(t, UINT64_MAX);
	for (size_t at = 0; at + sizeof(value) <= size && at < PROBES_MAX; at++) {
		memcpy(&value, data + at, sizeof(value));
		probe(t, value);
		probe(t, value + 5);
		probe(t, (uint32_t)value);
		/* Addresses are relative to their place. */
		probe(t, CFI_IMAGE_EH_FRAME_AT + at + (uint64_t)(int32_t)value - 1);
	}
}

static struct cfi_bytes image_of(const uint8_t *data, size_t size)
{
	struct cfi_bytes none = {0}, header = {0}, frame = {0};
	size_t at = 1, header_bytes = data[0] & 2 && size > 1 ? data[at++] : 0;

	header_bytes = header_bytes < size - at ? header_bytes : size - at;
	cfi_put(&header, data + at, header_bytes);
	cfi_put(&frame, data + at + header_bytes, size - at - header_bytes);
	struct cfi_bytes image =
		data[0] & 1 ? cfi_image_of(none, header, frame) : cfi_image_of(frame, header, none);

	free(header.v);
	free(frame.v);
	return image;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool is_elf = size && data[0] == 0x7f;
	struct cfi_bytes image = {0};
	struct cfi_table *t;

	if (!size)
		return 0;
	if (is_elf)
		cfi_put(&image, data, size);
	else
		image = image_of(data, size);
	if (!cfi_table_of(-1, image.v, image.len, &t)) {
		probe_all(t, data, size);
		cfi_table_free(t);
	}
	int fd = is_elf ? memfd_create("elf", MFD_CLOEXEC) : -1;

	if (is_elf && (fd < 0 || file_write_all(fd, data, size)))
		abort();
	if (is_elf && !cfi_table_of(fd, NULL, 0, &t)) {
		probe_all(t, data, size);
		cfi_table_free(t);
	}
	if (fd >= 0)
		close(fd);
	free(image.v);
	return 0;
}
