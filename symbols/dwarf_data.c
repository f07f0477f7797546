#include "symbols/dwarf_data.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "symbols/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#define PAGE ((uint64_t)4096)
#define ALT_LINK_BYTES_MAX ((uint64_t)PATH_MAX + 64)

enum packing { PACKED_NOT, PACKED_ZLIB, PACKED_ZSTD };

static const char *const names[DWARF_SECTIONS] = {
	[DWARF_INFO] = "info",		 [DWARF_ABBREV] = "abbrev",	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",	 [DWARF_LINE] = "line",		[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",	 [DWARF_ADDR] = "addr",		[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_CU_INDEX] = "cu_index",
};

/* What a compressed section says of itself stands before its bytes. */
static int read_packed_header(const struct elf_file *elf, const struct elf_section *from, bool old, struct dwarf_section *s)
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
		s->packed = PACKED_ZLIB;
	} else {
		uint32_t type, small;

		memcpy(&type, head, 4);
		memcpy(&small, head + 4, 4);
		memcpy(&bytes, head + 8, 8);
		bytes = elf->is_64 ? bytes : small;
		s->packed = type == 1 ? PACKED_ZLIB : type == 2 ? PACKED_ZSTD : PACKED_NOT;
	}
	s->bytes = bytes;
	s->file_off += len;
	s->file_bytes -= len;
	return s->packed && bytes <= DWARF_UNPACKED_BYTES_MAX && s->file_bytes <= DWARF_UNPACKED_BYTES_MAX ? 0 : -EBADMSG;
}

static int find_section(const struct elf_file *elf, const char *name, bool split, struct dwarf_section *s)
{
	char full[64];
	bool old = false;

	snprintf(full, sizeof(full), ".debug_%s%s", name, split ? ".dwo" : "");
	const struct elf_section *from = elf_file_section(elf, full, 0);

	if (!from && split && !strcmp(name, names[DWARF_CU_INDEX]))
		from = elf_file_section(elf, ".debug_cu_index", 0);
	if (!from) {
		snprintf(full, sizeof(full), ".zdebug_%s%s", name, split ? ".dwo" : "");
		from = elf_file_section(elf, full, 0);
		old = true;
	}
	if (!from || from->type == SHT_NOBITS)
		return 0;
	*s = (struct dwarf_section){.bytes = from->bytes, .file_off = from->file_off, .file_bytes = from->bytes};
	int r = s->file_off > elf->bytes || s->bytes > elf->bytes - s->file_off ? -EBADMSG : 0;

	if (!r && (old || from->flags & SHF_COMPRESSED))
		r = read_packed_header(elf, from, old, s);
	s->damaged = r || s->bytes > DWARF_SECTION_BYTES_MAX;
	if (s->damaged)
		s->bytes = 0;
	return r == -ENOMEM ? r : 0;
}

static int read_alt_link(const struct elf_file *elf, struct dwarf_data *d)
{
	const struct elf_section *from = elf_file_section(elf, ".gnu_debugaltlink", 0);
	AUTO_FREE unsigned char *data = NULL;
	int r = from ? elf_file_read(elf, from->file_off, from->bytes, ALT_LINK_BYTES_MAX, &data) : -ENOENT;

	if (r)
		return r == -ENOMEM ? r : 0;
	size_t len = strlen((const char *)data), id = len + 1 < from->bytes ? (size_t)from->bytes - len - 1 : 0;

	if (!len || len >= sizeof(d->alt_path) || !id || id > IMAGE_BUILD_ID_MAX)
		return 0;
	memcpy(d->alt_path, data, len + 1);
	memcpy(d->alt_id.bytes, data + len + 1, id);
	d->alt_id.len = (uint8_t)id;
	return 0;
}

int dwarf_data_open(int fd, bool split, struct dwarf_data **ret_data, struct parse_error *err)
{
	struct dwarf_data *d = calloc(1, sizeof(*d));
	struct elf_file elf;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	int r = elf_file_open(&elf, fd, NULL, 0, err);

	if (r) {
		free(d);
		return r;
	}
	for (int i = 0; i < DWARF_SECTIONS && !r; i++)
		r = find_section(&elf, names[i], split, &d->sections[i]);
	if (!r)
		r = read_alt_link(&elf, d);
	if (!r)
		r = elf_file_build_id(&elf, &d->build_id) == -ENOMEM ? -ENOMEM : 0;
	elf_file_close(&elf);
	if (!r && d->sections[DWARF_INFO].damaged)
		r = parse_fail(err, -EBADMSG, "its .debug_info cannot be read", d->sections[DWARF_INFO].file_off);
	if (!r && !d->sections[DWARF_INFO].bytes)
		r = -ENOENT;
	if (r) {
		dwarf_data_free(d);
		return r;
	}
	d->fd = fd;
	*ret_data = d;
	return 0;
}

static void forget(struct dwarf_section *s)
{
	if (s->data)
		munmap(s->data, s->mapped);
	free(s->have);
	s->data = NULL;
	s->have = NULL;
}

void dwarf_data_free(struct dwarf_data *d)
{
	if (!d)
		return;
	for (int i = 0; i < DWARF_SECTIONS; i++)
		forget(&d->sections[i]);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

void dwarf_data_drop(struct dwarf_data *d)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		if (d->sections[i].have)
			forget(&d->sections[i]);
	d->resident = 0;
}

static int unzip(const unsigned char *from, uint64_t n, struct dwarf_section *s)
{
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)from};
	int r = inflateInit(&z);
	uint64_t in = 0, out = 0;

	/* zlib counts in 32 bits. */
	while (r == Z_OK && out <= s->bytes) {
		z.avail_in = (unsigned int)(n - in > 1 << 30 ? 1 << 30 : n - in);
		z.avail_out = (unsigned int)(s->bytes - out > 1 << 30 ? 1 << 30 : s->bytes - out);
		z.next_out = s->data + out;
		uint64_t had_in = z.avail_in, had_out = z.avail_out;

		r = inflate(&z, Z_NO_FLUSH);
		in += had_in - z.avail_in;
		out += had_out - z.avail_out;
		if (r == Z_OK && had_in == z.avail_in && had_out == z.avail_out)
			r = Z_BUF_ERROR;
	}
	inflateEnd(&z);
	return r == Z_STREAM_END && out == s->bytes ? 0 : r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int unpack(struct dwarf_data *d, struct dwarf_section *s)
{
	if (s->bytes > DWARF_UNPACKED_BYTES_MAX - d->unpacked)
		return -EBADMSG;
	AUTO_FREE unsigned char *from = malloc((size_t)s->file_bytes + 1);

	if (!from)
		return -ENOMEM;
	int r = file_pread_all(d->fd, from, (size_t)s->file_bytes, s->file_off);

	if (r)
		return -EBADMSG;
	d->unpacked += s->bytes;
	if (s->packed == PACKED_ZLIB)
		return unzip(from, s->file_bytes, s);
	return ZSTD_decompress(s->data, (size_t)s->bytes, from, (size_t)s->file_bytes) == s->bytes ? 0 : -EBADMSG;
}

static int begin(struct dwarf_data *d, struct dwarf_section *s)
{
	size_t pages = (size_t)((s->bytes + PAGE - 1) / PAGE);

	s->mapped = (pages + 1) * PAGE;
	s->data = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->data == MAP_FAILED) {
		s->data = NULL;
		return -ENOMEM;
	}
	if (s->packed) {
		int r = unpack(d, s);

		if (r)
			forget(s);
		s->damaged = r && r != -ENOMEM;
		return r;
	}
	madvise(s->data, s->mapped, MADV_NOHUGEPAGE);
	s->have = calloc(pages / 8 + 1, 1);
	if (!s->have)
		forget(s);
	return s->have ? 0 : -ENOMEM;
}

static bool has(const struct dwarf_section *s, uint64_t page)
{
	return s->have[page / 8] >> (page & 7) & 1;
}

/* Reads the pages [from, to). */
static int read_pages(struct dwarf_data *d, struct dwarf_section *s, uint64_t from, uint64_t to)
{
	uint64_t off = from * PAGE, len = to * PAGE < s->bytes ? (to - from) * PAGE : s->bytes - off;

	if (file_pread_all(d->fd, s->data + off, (size_t)len, s->file_off + off)) {
		s->damaged = true;
		return -EBADMSG;
	}
	for (uint64_t i = from; i < to; i++)
		s->have[i / 8] |= (uint8_t)(1u << (i & 7));
	d->resident += len;
	return 0;
}

int dwarf_data_need(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off, uint64_t len)
{
	struct dwarf_section *s = &d->sections[id];

	if (s->damaged || off > s->bytes || len > s->bytes - off)
		return -EBADMSG;
	int r = s->data ? 0 : begin(d, s);

	if (r || !s->have || !len)
		return r;
	uint64_t end = (off + len - 1) / PAGE + 1;

	for (uint64_t page = off / PAGE, to; page < end && !r; page = to) {
		bool here = has(s, page);

		for (to = page + 1; to < end && has(s, to) == here; to++)
			;
		if (!here)
			r = read_pages(d, s, page, to);
	}
	return r;
}

const char *dwarf_data_text(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off)
{
	const struct dwarf_section *s = &d->sections[id];

	if (off >= s->bytes || dwarf_data_is_tired(d))
		return NULL;
	for (uint64_t len = 128;; len *= 4) {
		len = len < s->bytes - off ? len : s->bytes - off;
		if (dwarf_data_need(d, id, off, len))
			return NULL;
		const unsigned char *at = s->data + off, *nul = memchr(at, 0, (size_t)len);

		d->steps += nul ? (uint64_t)(nul - at) : len;
		if (nul)
			return (const char *)at;
		if (len >= DWARF_TEXT_MAX || len == s->bytes - off)
			return NULL;
	}
}
