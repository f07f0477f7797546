#include "elf/dwarf_split.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "elf/dwarf_unit_open.h"

#include <dwarf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OPEN_STEPS 4096 /* to look for a file */
#define OPEN_HEADER_STEPS 64
#define OPEN_BROKEN_STEPS (OPEN_HEADER_STEPS * ELF_FILE_SECTIONS_MAX)
#define FAILED_MAX 4096 /* paths */
#define PACKAGE_COLUMNS_MAX 16
/* Slots to search for one id. Double hashing in a table that is two thirds full needs few. */
#define PACKAGE_PROBES_MAX 128
#define PACKAGE_PROBE_STEPS 256 /* a slot can be on two new pages */

void dwarf_package_free(struct dwarf_package *p)
{
	dwarf_data_free(p->data);
	hashmap_free(&p->failed);
	*p = (struct dwarf_package){0};
}

/* Steps to read the headers of a file and, if its build id is needed, its notes. */
static uint64_t open_steps(const struct elf_file *elf, bool split)
{
	return OPEN_HEADER_STEPS * (elf->nsections + elf->nheaders) +
	       (split ? 0 : elf_file_note_bytes(elf) / 4);
}

/*
 * Open a file with DWARF under one root. A hostile file makes this slow, so the file that names it
 * counts the steps. Returns 0, -ENOENT or -ENOMEM.
 */
static int __attribute__((format(printf, 5, 6)))
open_path(struct dwarf_data *by, const struct opener_place *root, bool split,
	  struct dwarf_data **ret_data, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path) || dwarf_data_over_limit(by))
		return -ENOENT;
	dwarf_data_count(by, OPEN_STEPS);
	AUTO_CLOSE int fd = -1;
	struct elf_file elf;
	int r = opener_place_open(root, path, &fd);

	if (!r) {
		r = elf_file_open(&elf, fd, NULL, 0, NULL);
		dwarf_data_count(by, r ? OPEN_BROKEN_STEPS : open_steps(&elf, split));
	}
	if (!r) {
		r = dwarf_data_open(&elf, split, ret_data, NULL);
		elf_file_close(&elf);
	}
	return r && r != -ENOMEM ? -ENOENT : r;
}

/* The length of a path's folder, without the last slash. */
static int folder_len(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? (int)(slash - path) : 0;
}

/* Find the unit with this id. A .dwo file rarely has more than one unit. */
static int unit_of(struct dwarf_data *d, uint64_t id, struct dwarf_unit *ret_unit)
{
	dwarf_units units = {0};
	struct dwarf_entry entry;
	int r = dwarf_units_list(d, true, &units), found = -ENOENT;

	for (size_t i = 0; i < units.len && !r && found; i++) {
		struct dwarf_unit u = units.v[i];

		if (u.type == DW_UT_split_type || u.type == DW_UT_type)
			continue;
		/* Before version 5, the id is an attribute of the entry. */
		struct dwarf_unit begun = u;
		int error = u.version < 5 ? dwarf_unit_begin(&begun, &entry) : 0;

		r = error == -ENOMEM ? error : 0;
		if (error || begun.dwo_id != id)
			continue;
		*ret_unit = u;
		found = 0;
	}
	vec_free(&units);
	return r ? r : found;
}

/* The section of an index column; DWARF_SECTIONS: not used. */
static enum dwarf_section_id column_section(uint32_t version, uint32_t column)
{
	switch (column) {
	case DW_SECT_INFO:
		return DWARF_INFO;
	case DW_SECT_ABBREV:
		return DWARF_ABBREV;
	case DW_SECT_LINE:
		return DWARF_LINE;
	case DW_SECT_STR_OFFSETS:
		return DWARF_STR_OFFSETS;
	case DW_SECT_RNGLISTS:
		return version >= 5 ? DWARF_RNGLISTS : DWARF_SECTIONS;
	default:
		return DWARF_SECTIONS;
	}
}

/*
 * .debug_cu_index (DWARF 5, 7.3.5.3): a hash table of ids, and a table of the offsets of each
 * unit's parts.
 */
struct package_index {
	struct dwarf_data *of;
	uint32_t version, columns, units, slots;
	uint64_t ids, rows, table; /* offsets of its parts */
};

/* Read bytes of the index. The index can be a hole, so only the pages of these bytes are read. */
static int read_index(struct dwarf_data *d, uint64_t off, void *to, size_t len)
{
	int r = dwarf_data_need(d, DWARF_CU_INDEX, off, len);

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	memcpy(to, d->sections[DWARF_CU_INDEX].data + off, len);
	return 0;
}

static int open_index(struct dwarf_data *d, struct package_index *ix)
{
	uint32_t head[4];
	int r = dwarf_data_over_limit(d) ? -ENOENT : read_index(d, 0, head, sizeof(head));

	if (r)
		return r;
	*ix = (struct package_index){d, head[0] & 0xffff, head[1], head[2], head[3], 16, 0, 0};
	ix->rows = ix->ids + (uint64_t)ix->slots * 8;
	ix->table = ix->rows + (uint64_t)ix->slots * 4;
	bool sane = (ix->version == 2 || ix->version == 5) && ix->columns <= PACKAGE_COLUMNS_MAX &&
		    ix->slots && !(ix->slots & (ix->slots - 1)) &&
		    ix->table + ((uint64_t)ix->units + 1) * ix->columns * 4 <=
			    d->sections[DWARF_CU_INDEX].bytes;

	return sane ? 0 : -ENOENT;
}

/* Find the row of an id, counted from 1. Returns 0, -ENOENT or -ENOMEM. */
static int index_row(const struct package_index *ix, uint64_t id, uint32_t *ret_row)
{
	uint64_t mask = ix->slots - 1, slot = id & mask, step = ((id >> 32) & mask) | 1, there;
	uint32_t row;

	for (uint32_t i = 0; i < ix->slots && i < PACKAGE_PROBES_MAX; i++) {
		int r = read_index(ix->of, ix->rows + slot * 4, &row, sizeof(row));

		if (!r && row)
			r = read_index(ix->of, ix->ids + slot * 8, &there, sizeof(there));
		dwarf_data_count(ix->of, PACKAGE_PROBE_STEPS);
		if (r || !row)
			return r ? r : -ENOENT;
		if (there == id) {
			*ret_row = row;
			return row <= ix->units ? 0 : -ENOENT;
		}
		slot = (slot + step) & mask;
	}
	return -ENOENT;
}

static int find_in_package(struct dwarf_data *d, uint64_t id, struct dwarf_unit *ret_unit)
{
	uint64_t bases[DWARF_SECTIONS] = {0};
	uint32_t row, columns[PACKAGE_COLUMNS_MAX], offs[PACKAGE_COLUMNS_MAX];
	struct package_index ix;
	int r = open_index(d, &ix);

	if (!r)
		r = index_row(&ix, id, &row);
	if (!r)
		r = read_index(d, ix.table, columns, ix.columns * sizeof(*columns));
	if (!r)
		r = read_index(d, ix.table + (uint64_t)row * ix.columns * sizeof(*offs), offs,
			       ix.columns * sizeof(*offs));
	if (r)
		return r;
	for (uint32_t c = 0; c < ix.columns; c++) {
		enum dwarf_section_id section = column_section(ix.version, columns[c]);

		if (section != DWARF_SECTIONS)
			bases[section] = offs[c];
	}
	r = dwarf_unit_at(d, true, bases[DWARF_INFO], ret_unit);
	if (r || !ret_unit->version)
		return r ? r : -ENOENT;
	memcpy(ret_unit->bases, bases, sizeof(bases));
	ret_unit->in_package = true;
	return 0;
}

static int open_package(struct dwarf_data *by, const struct dwarf_split_place *place,
			struct dwarf_package *package)
{
	int r = -ENOENT;

	if (package->tried || !place->path)
		return 0;
	package->tried = true;
	for (size_t i = 0; i < place->nroots && r == -ENOENT; i++) {
		r = open_path(by, &place->roots[i], true, &package->data, "%s.dwp", place->path);
		if (r == -ENOENT)
			r = open_path(by, &place->roots[i], true, &package->data,
				      "/usr/lib/debug%s.dwp", place->path);
	}
	return r == -ENOMEM ? r : 0;
}

struct dwo_search {
	struct dwarf_package *package;
	const struct dwarf_unit *skeleton;
	const char *name;
	struct dwarf_unit *ret_unit;
	struct dwarf_data **ret_own;
};

static int open_dwo(const struct dwo_search *s, const struct opener_place *root, const char *folder,
		    int folder_bytes)
{
	struct dwarf_data *d, *by = s->skeleton->data;
	int r = open_path(by, root, true, &d, "%.*s%s%s", folder_bytes, folder ? folder : "",
			  folder ? "/" : "", s->name);

	if (r)
		return r;
	d->steps = by->steps;
	r = unit_of(d, s->skeleton->dwo_id, s->ret_unit);
	by->steps = d->steps;
	if (r)
		dwarf_data_free(d);
	else
		*s->ret_own = d;
	return r;
}

/*
 * Try one path of a .dwo file. Count its steps in the file that names it. Remember a path without
 * the unit, because thousands of units can name it.
 */
static int try_dwo(const struct dwo_search *s, const struct opener_place *root, const char *folder,
		   int folder_bytes)
{
	uint64_t key = hash_mix(hash_bytes(s->name, strlen(s->name)),
				hash_bytes(folder, (size_t)folder_bytes)) ^
		       hash_u64((uintptr_t)root);
	struct hashmap *failed = &s->package->failed;

	if (hashmap_get(failed, key))
		return -ENOENT;
	int r = open_dwo(s, root, folder, folder_bytes);

	if (r == -ENOENT && failed->len < FAILED_MAX && hashmap_put(failed, key, 0))
		r = -ENOMEM;
	return r;
}

int dwarf_split_find(const struct dwarf_split_place *place, struct dwarf_package *package,
		     const struct dwarf_unit *skeleton, const struct dwarf_entry *entry,
		     struct dwarf_unit *ret_unit, struct dwarf_data **ret_own)
{
	const struct dwarf_value *name_at = dwarf_entry_attr(entry, DWARF_DWO_NAME),
				 *dir_at = dwarf_entry_attr(entry, DWARF_COMP_DIR);
	const char *name = name_at ? dwarf_form_text(skeleton, NULL, name_at) : NULL;
	const char *dir = dir_at ? dwarf_form_text(skeleton, NULL, dir_at) : NULL;
	struct dwo_search s = {package, skeleton, name, ret_unit, ret_own};
	int r = name ? open_package(skeleton->data, place, package) : -ENOENT;

	*ret_own = NULL;
	if (r)
		return r;
	r = package->data ? find_in_package(package->data, skeleton->dwo_id, ret_unit) : -ENOENT;
	for (size_t i = 0; i < place->nroots && r == -ENOENT; i++) {
		if (name[0] == '/') {
			r = try_dwo(&s, &place->roots[i], NULL, 0);
			continue;
		}
		if (dir)
			r = try_dwo(&s, &place->roots[i], dir, (int)strlen(dir));
		if (r == -ENOENT && place->path)
			r = try_dwo(&s, &place->roots[i], place->path, folder_len(place->path));
	}
	if (r)
		return r;
	/* These settings of the skeleton hold for the split unit too. */
	ret_unit->addr_data = skeleton->addr_data;
	ret_unit->addr_base = skeleton->addr_base;
	ret_unit->ranges_base = skeleton->ranges_base;
	ret_unit->low_pc = skeleton->low_pc;
	return 0;
}

/* Try one path of the shared file. */
static int try_alt(const struct opener_place *root, const char *path, struct dwarf_data *of,
		   struct dwarf_data **ret_alt)
{
	struct dwarf_data *d;
	int r = open_path(of, root, false, &d, "%s", path);

	if (r)
		return r;
	if (d->build_id.len != of->alt_id.len ||
	    memcmp(d->build_id.bytes, of->alt_id.bytes, of->alt_id.len) != 0) {
		dwarf_data_free(d);
		return -ENOENT;
	}
	*ret_alt = d;
	return 0;
}

int dwarf_split_find_alt(const struct dwarf_split_place *place, struct dwarf_data *of,
			 struct dwarf_data **ret_alt)
{
	char hex[2 * BUILD_ID_MAX + 1], path[2 * PATH_MAX];
	const char *below = of->alt_path;
	int r = -ENOENT, folder = folder_len(place->path);

	if (!of->alt_path[0])
		return -ENOENT;
	while (!strncmp(below, "../", 3))
		below += 3;
	build_id_hex(&of->alt_id, hex);
	for (size_t i = 0; i < place->nroots && r == -ENOENT; i++) {
		const struct opener_place *root = &place->roots[i];

		/*
		 * A relative path starts at the file that names it. Files of packages lie under
		 * /usr/lib/debug.
		 */
		if (of->alt_path[0] == '/') {
			r = try_alt(root, of->alt_path, of, ret_alt);
		} else {
			snprintf(path, sizeof(path), "%.*s/%s", folder,
				 place->path ? place->path : "", of->alt_path);
			r = try_alt(root, path, of, ret_alt);
			snprintf(path, sizeof(path), "/usr/lib/debug%.*s/%s", folder,
				 place->path ? place->path : "", of->alt_path);
			if (r == -ENOENT)
				r = try_alt(root, path, of, ret_alt);
			snprintf(path, sizeof(path), "/usr/lib/debug/%s", below);
			if (r == -ENOENT)
				r = try_alt(root, path, of, ret_alt);
		}
		snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex,
			 hex + 2);
		if (r == -ENOENT)
			r = try_alt(root, path, of, ret_alt);
	}
	return r;
}
