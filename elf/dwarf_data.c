#include "elf/dwarf_data.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define ROOM_BYTES_MIN 4096
#define ALT_LINK_BYTES_MAX ((uint64_t)PATH_MAX + 64)

static const char *const names[DWARF_SECTIONS] = {
	[DWARF_INFO] = "info",
	[DWARF_ABBREV] = "abbrev",
	[DWARF_STR] = "str",
	[DWARF_LINE_STR] = "line_str",
	[DWARF_LINE] = "line",
	[DWARF_RANGES] = "ranges",
	[DWARF_RNGLISTS] = "rnglists",
	[DWARF_ADDR] = "addr",
	[DWARF_STR_OFFSETS] = "str_offsets",
	[DWARF_CU_INDEX] = "cu_index",
};

static int find_section(const struct elf_file *elf, const char *name, bool split,
			struct elf_pages *s)
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
	return elf_pages_of_section(elf, from, old, DWARF_UNPACKED_BYTES_MAX, s);
}

static int read_alt_link(const struct elf_file *elf, struct dwarf_data *d)
{
	const struct elf_section *from = elf_file_section(elf, ".gnu_debugaltlink", 0);
	AUTO_FREE unsigned char *data = NULL;
	int r = from ? elf_file_read(elf, from->file_off, from->bytes, ALT_LINK_BYTES_MAX, &data)
		     : -ENOENT;

	if (r)
		return r == -ENOMEM ? r : 0;
	size_t len = strlen((const char *)data),
	       id = len + 1 < from->bytes ? (size_t)from->bytes - len - 1 : 0;

	if (!len || len >= sizeof(d->alt_path) || !id || id > BUILD_ID_MAX)
		return 0;
	memcpy(d->alt_path, data, len + 1);
	memcpy(d->alt_id.bytes, data + len + 1, id);
	d->alt_id.len = (uint8_t)id;
	return 0;
}

int dwarf_data_open(const struct elf_file *elf, bool split, struct dwarf_data **ret_data,
		    struct parse_error *err)
{
	struct dwarf_data *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->fd = fcntl(elf->fd, F_DUPFD_CLOEXEC, 0);
	int r = d->fd < 0 ? -errno : 0;

	for (int i = 0; i < DWARF_SECTIONS && !r; i++)
		r = find_section(elf, names[i], split, &d->sections[i]);
	if (!r && !split)
		r = read_alt_link(elf, d);
	if (!r && !split)
		r = elf_file_build_id(elf, &d->build_id) == -ENOMEM ? -ENOMEM : 0;
	if (!r && d->sections[DWARF_INFO].damaged)
		r = parse_fail(err, -EBADMSG, ".debug_info cannot be read",
			       d->sections[DWARF_INFO].file_off);
	if (!r && !d->sections[DWARF_INFO].bytes)
		r = -ENOENT;
	if (r) {
		dwarf_data_free(d);
		return r;
	}
	*ret_data = d;
	return 0;
}

void dwarf_data_free(struct dwarf_data *d)
{
	if (!d)
		return;
	for (int i = 0; i < DWARF_SECTIONS; i++)
		elf_pages_forget(&d->sections[i]);
	if (d->fd >= 0)
		close(d->fd);
	dwarf_data_settle(d);
	free(d);
}

void dwarf_data_drop(struct dwarf_data *d)
{
	for (int i = 0; i < DWARF_SECTIONS; i++)
		if (d->sections[i].have)
			elf_pages_forget(&d->sections[i]);
	d->resident = 0;
}

void dwarf_data_take_steps(struct dwarf_data *d, uint64_t steps)
{
	if (!elf_budget_steps(steps) && !dwarf_data_over_limit(d))
		d->steps = DWARF_STEPS_MAX + 1;
}

int dwarf_data_room(struct dwarf_data *d, uint64_t bytes)
{
	int r = bytes < ROOM_BYTES_MIN ? 0 : elf_budget_take(ELF_BUDGET_INLINES, bytes);

	if (!r && bytes >= ROOM_BYTES_MIN)
		d->room += bytes;
	return r;
}

void dwarf_data_settle(struct dwarf_data *d)
{
	if (!d)
		return;
	elf_budget_give(ELF_BUDGET_INLINES, d->room);
	d->room = 0;
}

int dwarf_data_need(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off, uint64_t len)
{
	struct elf_pages *s = &d->sections[id];

	if (s->packed && !s->data && !s->damaged) {
		if (s->bytes > DWARF_UNPACKED_BYTES_MAX - d->unpacked) {
			s->damaged = true;
			return -EBADMSG;
		}
		d->unpacked += s->bytes;
	}
	if (len >= ROOM_BYTES_MIN && dwarf_data_room(d, elf_pages_missing(s, off, len)))
		return -EBADMSG;
	int r = elf_pages_need(s, d->fd, off, len, &d->resident);

	s->damaged |= r == -E2BIG;
	return r == -E2BIG ? -EBADMSG : r;
}

const char *dwarf_data_text(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off)
{
	const struct elf_pages *s = &d->sections[id];

	if (off >= s->bytes || dwarf_data_over_limit(d))
		return NULL;
	for (uint64_t len = 128;; len *= 4) {
		len = len < s->bytes - off ? len : s->bytes - off;
		if (dwarf_data_need(d, id, off, len))
			return NULL;
		const unsigned char *at = s->data + off, *nul = memchr(at, 0, (size_t)len);

		dwarf_data_count(d, nul ? (uint64_t)(nul - at) : len);
		if (nul)
			return (const char *)at;
		if (len >= DWARF_TEXT_MAX || len == s->bytes - off)
			return NULL;
	}
}
