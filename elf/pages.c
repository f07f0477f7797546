#include "elf/pages.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#define PAGE ((uint64_t)4096)

enum packing { PACKED_NOT, PACKED_ZLIB, PACKED_ZSTD };

/* Read the header of a compressed section, which stands before its bytes. */
static int read_packed_header(const struct elf_file *elf, const struct elf_section *from, bool old,
			      uint64_t max, struct elf_pages *p)
{
	AUTO_FREE unsigned char *head = NULL;
	uint64_t len = old ? 12 : elf->is_64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	uint64_t bytes = 0;

	if (from->bytes < len)
		return -EBADMSG;
	int r = elf_file_read(elf, from->file_off, len, len, &head);

	if (r)
		return r;
	if (old) {
		if (memcmp(head, "ZLIB", 4) != 0)
			return -EBADMSG;
		for (int i = 4; i < 12; i++)
			bytes = bytes << 8 | head[i];
		p->packed = PACKED_ZLIB;
	} else {
		uint32_t type, small;

		memcpy(&type, head, 4);
		memcpy(&small, head + 4, 4);
		bytes = small;
		if (elf->is_64)
			memcpy(&bytes, head + 8, 8);
		p->packed = type == 1 ? PACKED_ZLIB : type == 2 ? PACKED_ZSTD : PACKED_NOT;
	}
	p->bytes = bytes;
	p->file_off += len;
	p->file_bytes -= len;
	p->too_large = p->packed && (bytes > max || p->file_bytes > max);
	return p->packed && !p->too_large ? 0 : -EBADMSG;
}

int elf_pages_of_section(const struct elf_file *elf, const struct elf_section *from, bool old,
			 uint64_t unpacked_max, struct elf_pages *ret_pages)
{
	struct elf_pages p = {
		.bytes = from->bytes, .file_off = from->file_off, .file_bytes = from->bytes};
	int r = p.file_off > elf->bytes || p.bytes > elf->bytes - p.file_off ? -EBADMSG : 0;

	if (!r && (old || from->flags & SHF_COMPRESSED))
		r = read_packed_header(elf, from, old, unpacked_max, &p);
	if (r == -ENOMEM)
		return r;
	p.damaged = r || p.bytes > ELF_PAGES_BYTES_MAX;
	if (p.damaged)
		p.bytes = 0;
	*ret_pages = p;
	return 0;
}

void elf_pages_forget(struct elf_pages *p)
{
	if (p->data)
		munmap(p->data, p->mapped);
	if (p->data && p->packed)
		elf_budget_give(ELF_BUDGET_SECTIONS, p->bytes);
	free(p->have);
	p->data = NULL;
	p->have = NULL;
}

/* Reserve address space for the whole section. Only pages that are written to take memory. */
static int reserve(struct elf_pages *p)
{
	p->mapped = (size_t)((p->bytes + PAGE - 1) / PAGE + 1) * PAGE;
	void *data = mmap(NULL, p->mapped, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (data == MAP_FAILED)
		return -ENOMEM;
	p->data = data;
	return 0;
}

int elf_pages_of_memory(const void *data, size_t len, struct elf_pages *ret_pages)
{
	struct elf_pages p = {.bytes = len, .file_bytes = len};

	if (reserve(&p))
		return -ENOMEM;
	memcpy(p.data, data, len);
	*ret_pages = p;
	return 0;
}

static int unzip(const unsigned char *from, uint64_t n, struct elf_pages *p)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)from};
	int r = inflateInit(&z);
	uint64_t in = 0, out = 0;

	/* zlib counts in 32 bits. */
	while (r == Z_OK && out <= p->bytes) {
		z.avail_in = (unsigned int)(n - in > 1 << 30 ? 1 << 30 : n - in);
		z.avail_out = (unsigned int)(p->bytes - out > 1 << 30 ? 1 << 30 : p->bytes - out);
		z.next_out = p->data + out;
		uint64_t had_in = z.avail_in, had_out = z.avail_out;

		r = inflate(&z, Z_NO_FLUSH);
		in += had_in - z.avail_in;
		out += had_out - z.avail_out;
		if (r == Z_OK && had_in == z.avail_in && had_out == z.avail_out)
			r = Z_BUF_ERROR;
	}
	inflateEnd(&z);
	return r == Z_STREAM_END && out == p->bytes ? 0 : r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int read_and_unpack(struct elf_pages *p, int fd)
{
	AUTO_FREE unsigned char *from = malloc((size_t)p->file_bytes + 1);

	if (!from)
		return -ENOMEM;
	int r = file_pread_all(fd, from, (size_t)p->file_bytes, p->file_off);

	if (r)
		return -EBADMSG;
	if (p->packed == PACKED_ZLIB)
		return unzip(from, p->file_bytes, p);
	return ZSTD_decompress(p->data, (size_t)p->bytes, from, (size_t)p->file_bytes) == p->bytes
		       ? 0
		       : -EBADMSG;
}

/* Unpacks the section if both forms of it fit in memory. Returns 0, -EBADMSG, -E2BIG, -ENOMEM. */
static int unpack(struct elf_pages *p, int fd)
{
	int r = elf_budget_work(0) ? elf_budget_take(ELF_BUDGET_SECTIONS, p->bytes + p->file_bytes)
				   : -E2BIG;

	if (r)
		return r;
	r = reserve(p);
	if (!r)
		r = read_and_unpack(p, fd);
	elf_budget_give(ELF_BUDGET_SECTIONS, p->file_bytes + (p->data ? 0 : p->bytes));
	if (r) {
		elf_pages_forget(p);
		elf_budget_worked(p->bytes);
	}
	p->damaged = r && r != -ENOMEM;
	return r;
}

static int begin(struct elf_pages *p, int fd)
{
	if (p->packed)
		return unpack(p, fd);
	int r = reserve(p);

	if (r)
		return r;
	madvise(p->data, p->mapped, MADV_NOHUGEPAGE);
	p->have = calloc(p->mapped / PAGE / 8 + 1, 1);
	if (!p->have)
		elf_pages_forget(p);
	return p->have ? 0 : -ENOMEM;
}

static bool has(const struct elf_pages *p, uint64_t page)
{
	return p->have[page / 8] >> (page & 7) & 1;
}

uint64_t elf_pages_missing(const struct elf_pages *p, uint64_t off, uint64_t len)
{
	uint64_t n = 0;

	if (p->damaged || p->packed || !len || off > p->bytes || len > p->bytes - off)
		return 0;
	for (uint64_t page = off / PAGE; page <= (off + len - 1) / PAGE; page++)
		n += !p->have || !has(p, page);
	return n * PAGE;
}

/* Read the pages [from, to). */
static int read_pages(struct elf_pages *p, int fd, uint64_t from, uint64_t to, uint64_t *resident)
{
	uint64_t off = from * PAGE,
		 len = to * PAGE < p->bytes ? (to - from) * PAGE : p->bytes - off;

	if (file_pread_all(fd, p->data + off, (size_t)len, p->file_off + off)) {
		p->damaged = true;
		return -EBADMSG;
	}
	for (uint64_t i = from; i < to; i++)
		p->have[i / 8] |= (uint8_t)(1u << (i & 7));
	*resident += len;
	return 0;
}

int elf_pages_need(struct elf_pages *p, int fd, uint64_t off, uint64_t len, uint64_t *resident)
{
	if (p->damaged || off > p->bytes || len > p->bytes - off)
		return -EBADMSG;
	int r = p->data ? 0 : begin(p, fd);

	if (r || !p->have || !len)
		return r;
	uint64_t end = (off + len - 1) / PAGE + 1;

	for (uint64_t page = off / PAGE, to; page < end && !r; page = to) {
		bool here = has(p, page);

		for (to = page + 1; to < end && has(p, to) == here; to++)
			;
		if (!here)
			r = read_pages(p, fd, page, to, resident);
	}
	return r;
}
