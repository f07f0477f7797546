#include "unwind/clr_hijack.h"

#include "base/cleanup.h"
#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#define CHUNK ((size_t)256 << 10)

/*
 * The stub pushes rax, rbp, rbx, r15, r14, r13, r12, then the registers of return values: rdx and
 * rax, since .NET 10 also rcx. Then comes mov rdi, rsp.
 */
static const unsigned char begins[] = {0x50, 0x55, 0x53, 0x41, 0x57, 0x41,
				       0x56, 0x41, 0x55, 0x41, 0x54};
static const unsigned char goes_on[][6] = {{0x52, 0x50, 0x48, 0x89, 0xe7},
					   {0x51, 0x52, 0x50, 0x48, 0x89, 0xe7}};
#define STUB_BYTES (sizeof(begins) + sizeof(goes_on[0]))

bool clr_hijack_is_runtime(const struct elf_file *elf)
{
	static const char name[] = "\0g_dacTable";
	const struct elf_section *names = elf_file_section(elf, ".dynstr", SHT_STRTAB);
	AUTO_FREE unsigned char *text = NULL;

	return names &&
	       !elf_file_read(elf, names->file_off, names->bytes, CLR_HIJACK_NAMES_MAX, &text) &&
	       memmem(text, names->bytes, name, sizeof(name));
}

static bool is_stub(const unsigned char *code)
{
	const unsigned char *rest = code + sizeof(begins);

	return !memcmp(rest, goes_on[0], 5) || !memcmp(rest, goes_on[1], 6);
}

/* Searches a range of the file; adds the stubs it finds to *found. Returns 0 or -ENOMEM. */
static int search_range(const struct code_bytes *bytes, uint64_t off, uint64_t end,
			uint64_t *ret_file_off, unsigned *found)
{
	AUTO_FREE unsigned char *chunk = malloc(CHUNK);

	if (!chunk)
		return -ENOMEM;
	while (off < end) {
		size_t len = code_bytes_read(bytes, off, chunk,
					     end - off < CHUNK ? (size_t)(end - off) : CHUNK);
		const unsigned char *at = chunk;

		while (len >= STUB_BYTES &&
		       (at = memmem(at, (size_t)(chunk + len - at), begins, sizeof(begins)))) {
			if ((size_t)(chunk + len - at) >= STUB_BYTES && is_stub(at)) {
				*ret_file_off = off + (uint64_t)(at - chunk);
				++*found;
			}
			at++;
		}
		if (len < CHUNK)
			break;
		/* A stub that the end of this chunk cuts off begins in the next one. */
		off += CHUNK - STUB_BYTES + 1;
	}
	return 0;
}

int clr_hijack_find(const struct code_bytes *bytes, const struct elf_segment *segments,
		    size_t nsegments, uint64_t *ret_file_off)
{
	uint64_t left = CLR_HIJACK_CODE_MAX, file_off = 0;
	unsigned found = 0;
	int r = 0;

	for (size_t i = 0; !r && i < nsegments; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t len = s->file_bytes < left ? s->file_bytes : left;

		if (!(s->flags & PF_X) || s->file_off > UINT64_MAX - len)
			continue;
		left -= len;
		if (!elf_budget_work(len))
			return -E2BIG;
		r = search_range(bytes, s->file_off, s->file_off + len, &file_off, &found);
	}
	if (r || found != 1)
		return r ? r : -ENOENT;
	*ret_file_off = file_off;
	return 0;
}
