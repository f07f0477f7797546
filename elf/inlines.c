#include "elf/inlines.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/path.h"
#include "elf/budget.h"
#include "elf/debug_file.h"
#include "elf/dwarf_abbrev.h"
#include "elf/dwarf_unit_open.h"
#include "elf/inline_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ROOTS_MAX 4
#define ORIGINS_MAX 16 /* entries to follow for one name */

/* A file of DWARF with its units, sorted by offset. */
struct inline_file {
	struct dwarf_data *data;
	dwarf_units units;
};

struct inline_name {
	const char *text;
	bool is_plain; /* lacks namespace and class */
};

/* The name of an entry, and which entry: two can have the same hash. */
struct inline_entry {
	const struct dwarf_data *data;
	uint64_t off;
	struct inline_name name;
};

struct inlines {
	struct inlines *next; /* in all */
	struct inline_file file, alt;
	bool units_known;
	dwarf_spans spans;         /* value: unit */
	struct inline_unit **open; /* by unit */
	uint32_t *broken;          /* a bit for each unit that is unreadable */
	struct hashmap name_ids;   /* hash of an entry -> index in names */
	VEC(struct inline_entry) names;
	uint64_t units_kept; /* estimate of bytes of open units */
	uint64_t taken;      /* bytes of ELF_BUDGET_INLINES */
	unsigned int splits;
	struct dwarf_package package;
	/* The image and its debug file, inside a root; may be NULL */
	char *path, *debug_path;
	struct opener_place roots[ROOTS_MAX];
	size_t nroots;
};

/* All that exist. Only one thread uses them. */
static struct inlines *all;

/* Open the image's own DWARF or its debug file's. The latter sets in->debug_path. */
static int open_data(struct inlines *in, const struct elf_file *image, const char *path,
		     const struct opener_place *roots, size_t nroots, struct parse_error *err)
{
	struct debug_file debug;
	int r = dwarf_data_open(image, false, &in->file.data, err);

	if (r != -ENOENT)
		return r;
	r = debug_file_find(&(struct debug_file_query){.image = image,
						       .path = path,
						       .roots = roots,
						       .nroots = nroots,
						       .want = DEBUG_FILE_LINES},
			    &debug);
	if (r)
		return r;
	r = dwarf_data_open(&debug.elf, false, &in->file.data, err);
	if (!r) {
		in->debug_path = strdup(debug.path);
		r = in->debug_path ? 0 : -ENOMEM;
	}
	debug_file_close(&debug);
	return r;
}

static int keep_place(struct inlines *in, const char *path, const struct opener_place *roots,
		      size_t nroots)
{
	in->path = path ? strdup(path) : NULL;
	if (path && !in->path)
		return -ENOMEM;
	for (size_t i = 0; i < nroots && i < ROOTS_MAX; i++)
		in->roots[in->nroots++] = roots[i];
	return 0;
}

int inlines_open(const struct elf_file *image, const char *path, const struct opener_place *roots,
		 size_t nroots, struct inlines **ret_inlines, struct parse_error *err)
{
	struct inlines *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	int r = open_data(in, image, path, roots, nroots, err);

	if (!r)
		r = keep_place(in, path, roots, nroots);
	if (r) {
		inlines_free(in);
		return r;
	}
	in->next = all;
	*ret_inlines = all = in;
	return 0;
}

static struct dwarf_split_place place_of(const struct inlines *in)
{
	return (struct dwarf_split_place){in->roots, in->nroots, in->path};
}

static void forget_units(struct inline_file *f)
{
	for (size_t i = 0; i < f->units.len; i++)
		dwarf_unit_forget(&f->units.v[i]);
}

/* Free everything that can be read again. */
static void drop_caches(struct inlines *in)
{
	for (size_t i = 0; in->open && i < in->file.units.len; i++) {
		inline_unit_free(in->open[i]);
		in->open[i] = NULL;
	}
	forget_units(&in->file);
	forget_units(&in->alt);
	hashmap_free(&in->name_ids);
	vec_free(&in->names);
	dwarf_data_drop(in->file.data);
	if (in->alt.data)
		dwarf_data_drop(in->alt.data);
	if (in->package.data)
		dwarf_data_drop(in->package.data);
	hashmap_free(&in->package.failed);
	in->units_kept = 0;
	in->splits = 0;
}

/* Estimate of all bytes in memory. */
static uint64_t kept_bytes(const struct inlines *in)
{
	uint64_t nunits = in->file.units.len;

	return in->units_kept + in->names.cap * sizeof(*in->names.v) +
	       (in->name_ids.nslots + in->package.failed.nslots) * sizeof(*in->name_ids.slots) +
	       in->file.data->resident + (in->alt.data ? in->alt.data->resident : 0) +
	       (in->package.data ? in->package.data->resident : 0) +
	       (in->file.units.cap + in->alt.units.cap) * sizeof(*in->file.units.v) +
	       in->spans.cap * sizeof(*in->spans.v) +
	       (in->open ? nunits * sizeof(*in->open) + nunits / 8 : 0);
}

/* Take as much of the budget as is kept now. Nothing is being read. */
static void take_budget(struct inlines *in)
{
	uint64_t kept = kept_bytes(in);

	elf_budget_add(ELF_BUDGET_INLINES, kept);
	elf_budget_give(ELF_BUDGET_INLINES, in->taken);
	in->taken = kept;
	dwarf_data_settle(in->file.data);
	dwarf_data_settle(in->alt.data);
	dwarf_data_settle(in->package.data);
}

/* Make room for a lookup: at least half of the budget, except what lists of units take. */
static void make_room(struct inlines *in)
{
	drop_caches(in);
	take_budget(in);
	for (in = all; in && elf_budget_is_low(ELF_BUDGET_INLINES); in = in->next) {
		drop_caches(in);
		take_budget(in);
	}
}

void inlines_free(struct inlines *in)
{
	struct inlines **link = &all;

	if (!in)
		return;
	while (*link && *link != in)
		link = &(*link)->next;
	if (*link)
		*link = in->next;
	if (in->file.data)
		drop_caches(in);
	vec_free(&in->file.units);
	vec_free(&in->alt.units);
	dwarf_data_free(in->file.data);
	dwarf_data_free(in->alt.data);
	dwarf_package_free(&in->package);
	elf_budget_give(ELF_BUDGET_INLINES, in->taken);
	vec_free(&in->spans);
	free(in->open);
	free(in->broken);
	free(in->path);
	free(in->debug_path);
	free(in);
}

static bool is_full(const struct inlines *in)
{
	return in->taken > INLINES_KEPT_MAX || elf_budget_is_low(ELF_BUDGET_INLINES);
}

static int add_unit(struct inlines *in, uint32_t index, dwarf_ranges *ranges)
{
	struct dwarf_unit *u = &in->file.units.v[index];
	struct dwarf_entry entry;

	if (u->type == DW_UT_type || u->type == DW_UT_partial)
		return 0;
	ranges->len = 0;
	int r = dwarf_unit_begin(u, &entry);

	if (!r && (entry.tag == DW_TAG_compile_unit || entry.tag == DW_TAG_skeleton_unit))
		r = dwarf_entry_ranges(u, &entry, ranges);
	if (!r && in->spans.len + ranges->len > INLINES_SPANS_MAX)
		r = -E2BIG;
	for (size_t i = 0; !r && i < ranges->len; i++)
		r = dwarf_data_push(u->data, &in->spans,
				    ((struct dwarf_span){.start = ranges->v[i].start,
							 .end = ranges->v[i].end,
							 .value = index}));
	return r == -ENOMEM ? r : 0;
}

/* Lists of units stay in memory. If those of all files need half of the budget, this has none. */
static void forget_long_lists(struct inlines *in)
{
	take_budget(in);
	if (elf_budget_is_low(ELF_BUDGET_INLINES))
		make_room(in);
	if (!elf_budget_is_low(ELF_BUDGET_INLINES))
		return;
	vec_free(&in->spans);
	vec_free(&in->file.units);
	vec_free(&in->alt.units);
}

/* Index the units by address. .debug_aranges would be quicker, but clang writes none. */
static int find_units(struct inlines *in)
{
	struct dwarf_split_place place = {in->roots, in->nroots,
					  in->debug_path ? in->debug_path : in->path};
	dwarf_ranges ranges = {0};

	if (is_full(in))
		make_room(in);
	int r = dwarf_units_list(in->file.data, false, &in->file.units);

	if (!r)
		r = dwarf_split_find_alt(&place, in->file.data, &in->alt.data);
	if (r == -ENOENT)
		r = 0;
	if (!r && in->alt.data)
		r = dwarf_units_list(in->alt.data, false, &in->alt.units);
	for (uint32_t i = 0; !r && i < in->file.units.len; i++) {
		take_budget(in);
		if (is_full(in))
			dwarf_data_drop(in->file.data);
		r = add_unit(in, i, &ranges);
	}
	vec_free(&ranges);
	forget_long_lists(in);
	in->open = calloc(in->file.units.len + 1, sizeof(*in->open));
	in->broken = calloc(in->file.units.len / 32 + 1, sizeof(*in->broken));
	if (!in->open || !in->broken)
		r = -ENOMEM;
	dwarf_spans_sort(&in->spans);
	in->units_known = true;
	return r;
}

static int open_unit(struct inlines *in, uint32_t index, struct inline_unit **ret_unit)
{
	struct dwarf_split_place place = place_of(in);
	struct inline_unit *iu = in->open[index];

	if (in->broken[index / 32] >> (index & 31) & 1)
		return -ENOENT;
	if (!iu) {
		int r = inline_unit_new(&in->file.units.v[index], &place, &in->package,
					in->alt.data, &iu);

		if (r && r != -ENOMEM)
			in->broken[index / 32] |= 1u << (index & 31);
		if (r)
			return r == -ENOMEM ? r : -ENOENT;
		in->open[index] = iu;
		in->splits += iu->split_data != NULL;
	}
	*ret_unit = iu;
	return 0;
}

static const char *base_name(const char *path)
{
	return path ? path_base(path) : NULL;
}

/* The place of an entry. */
struct entry_ref {
	const struct dwarf_unit *unit;
	uint64_t off;
};

/* Find and open the unit that holds an offset. Returns 0, -ENOENT or -ENOMEM. */
static int unit_of(struct inlines *in, struct inline_file *f, uint64_t off,
		   const struct dwarf_unit **ret_unit)
{
	struct dwarf_entry entry;
	size_t lo = 0, hi = f->units.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->units.v[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || off >= f->units.v[lo - 1].end)
		return -ENOENT;
	struct dwarf_unit *u = &f->units.v[lo - 1];
	bool had = u->abbrevs;
	int r = u->known ? 0 : dwarf_unit_begin(u, &entry);

	if (!r)
		r = dwarf_unit_open(u);
	if (!had)
		in->units_kept += dwarf_abbrevs_bytes(u->abbrevs);
	if (!r)
		*ret_unit = u;
	return r && r != -ENOMEM ? -ENOENT : r;
}

/* Follow a reference of an entry. Returns 0, -ENOENT or -ENOMEM. */
static int follow(struct inlines *in, const struct dwarf_unit *from, uint64_t off, bool in_alt,
		  struct entry_ref *ret_ref)
{
	int r = 0;

	ret_ref->off = off;
	if (in_alt || (in->alt.data && from->data == in->alt.data))
		r = in->alt.data ? unit_of(in, &in->alt, off, &ret_ref->unit) : -ENOENT;
	else if (off >= from->dies && off < from->end)
		ret_ref->unit = from;
	else
		r = from->data == in->file.data ? unit_of(in, &in->file, off, &ret_ref->unit)
						: -ENOENT;
	return r;
}

static int read_name(struct inlines *in, struct entry_ref ref, struct inline_name *ret_name)
{
	struct inline_name name = {NULL, true};
	struct dwarf_entry e;
	struct dwarf_bytes b;
	int r = 0;

	for (int i = 0; i < ORIGINS_MAX && !r; i++) {
		const struct dwarf_value *v;

		r = dwarf_unit_bytes(ref.unit, ref.off, &b);
		if (!r)
			r = dwarf_entry_next(ref.unit, &b, NULL, &e);
		if (r)
			break;
		v = dwarf_entry_attr(&e, DWARF_LINKAGE_NAME);
		if (v) {
			const char *linkage = dwarf_form_text(ref.unit, in->alt.data, v);

			if (linkage) {
				name = (struct inline_name){linkage, false};
				break;
			}
		}
		v = dwarf_entry_attr(&e, DWARF_NAME);
		if (v && !name.text)
			name.text = dwarf_form_text(ref.unit, in->alt.data, v);
		v = dwarf_entry_attr(&e, DWARF_ORIGIN);
		v = v ? v : dwarf_entry_attr(&e, DWARF_SPECIFICATION);
		if (!v || (v->kind != DWARF_IS_REF && v->kind != DWARF_IS_REF_ALT))
			break;
		r = follow(in, ref.unit, v->u, v->kind == DWARF_IS_REF_ALT, &ref);
	}
	*ret_name = name;
	return r == -ENOMEM ? r : 0;
}

/* Find the name of a function's entry, in the cache or by reading. */
static int find_name(struct inlines *in, struct entry_ref ref, struct inline_name *ret_name)
{
	const struct dwarf_data *data = ref.unit->data;
	uint64_t hash = hash_mix(ref.off, (uint64_t)(uintptr_t)data);
	struct inline_entry entry = {data, ref.off, {NULL, false}};
	uint32_t *place;
	int r = hashmap_entry(&in->name_ids, hash, UINT32_MAX, &place, NULL);

	if (r)
		return r;
	if (*place != UINT32_MAX) {
		const struct inline_entry *known = &in->names.v[*place];

		if (known->data != data || known->off != ref.off)
			return read_name(in, ref, ret_name);
		*ret_name = known->name;
		return 0;
	}
	r = read_name(in, ref, &entry.name);
	if (!r)
		r = vec_push(&in->names, entry);
	if (r)
		return r;
	*place = (uint32_t)in->names.len - 1;
	*ret_name = entry.name;
	return 0;
}

static int name_frame(struct inlines *in, const struct inline_unit *iu, struct entry_ref ref,
		      struct inline_frame *frame)
{
	struct inline_name name;
	int r = find_name(in, ref, &name);

	if (r)
		return r;
	frame->function = name.text;
	frame->is_unqualified = name.text && name.is_plain && !iu->unmangled;
	return 0;
}

/*
 * Write the frames of nodes, the innermost first, and of the body around them. nodes has the
 * outermost first.
 */
static int name_frames(struct inlines *in, const struct inline_unit *iu,
		       const struct inline_body *body, const struct inline_node *const *nodes,
		       size_t n, struct inline_frame *frames)
{
	for (size_t i = 0; i < n; i++) {
		const struct inline_node *node = nodes[n - 1 - i];
		struct entry_ref ref;
		int r = node->has_origin ? follow(in, iu->unit, node->origin, node->in_alt, &ref)
					 : -ENOENT;

		if (!r)
			r = name_frame(in, iu, ref, &frames[i]);
		if (r == -ENOMEM)
			return r;
		const char *file = inline_unit_file(iu, node->call_file);

		frames[i + 1] =
			(struct inline_frame){.file = base_name(file), .line = node->call_line};
	}
	return name_frame(in, iu, (struct entry_ref){iu->unit, body->off}, &frames[n]);
}

static void own_line(const struct inline_unit *iu, uint64_t vaddr, struct inline_frame *frame)
{
	const struct dwarf_row *row = dwarf_lines_find(&iu->lines, vaddr);

	if (!row)
		return;
	if (row->file < iu->lines.files.len)
		frame->file = base_name(iu->lines.files.v[row->file]);
	frame->line = row->line;
}

int inlines_find(struct inlines *in, uint64_t vaddr, struct inline_frame *frames, size_t *ret_n)
{
	const struct inline_node *nodes[INLINES_DEPTH_MAX - 1];
	const struct inline_body *body;
	struct inline_unit *iu;
	size_t n = 0, had = 0;
	int r = in->units_known ? 0 : find_units(in);

	if (r)
		return r;
	const struct dwarf_span *span = dwarf_spans_find(&in->spans, vaddr);

	if (!span)
		return -ENOENT;
	if (in->open[span->value])
		had = inline_unit_bytes(in->open[span->value]);
	else if (is_full(in) || in->splits >= INLINES_SPLIT_MAX)
		make_room(in);
	r = open_unit(in, span->value, &iu);
	if (r)
		return r;
	frames[0] = (struct inline_frame){0};
	own_line(iu, vaddr, &frames[0]);
	r = inline_unit_find(iu, vaddr, &body, nodes, INLINES_DEPTH_MAX - 1, &n);
	/* Only this unit has changed. */
	in->units_kept += inline_unit_bytes(iu) - had;
	if (!r)
		r = name_frames(in, iu, body, nodes, n, frames);
	dwarf_data_settle(iu->split_data);
	take_budget(in);
	if (r == -ENOMEM)
		return r;
	*ret_n = n + 1;
	return 0;
}
