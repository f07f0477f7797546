#include "elf/inline_unit.h"

#include "elf/dwarf_unit_open.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

static bool wanted(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

static bool is_unmangled(uint64_t language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case 0x002c: /* DW_LANG_C17 */
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

/* Skip the children of an entry by its attribute DWARF_SIBLING. False: it has none. */
static bool skip_children(const struct dwarf_unit *u, const struct dwarf_entry *e,
			  struct dwarf_bytes *b)
{
	const struct dwarf_value *sibling = dwarf_entry_attr(e, DWARF_SIBLING);
	uint64_t here = (uint64_t)(b->p - u->data->sections[DWARF_INFO].data);

	if (!sibling || sibling->kind != DWARF_IS_REF || sibling->u < here || sibling->u >= u->end)
		return false;
	b->p += sibling->u - here;
	return true;
}

/* Entries of these tags contain no code. */
static bool cannot_hold_code(uint16_t tag)
{
	return tag == DW_TAG_enumeration_type || tag == DW_TAG_array_type ||
	       tag == DW_TAG_subroutine_type;
}

static int add_function(struct inline_unit *iu, const struct dwarf_entry *e)
{
	struct dwarf_data *d = iu->unit->data;
	const dwarf_ranges *ranges = &iu->ranges; /* used for one function at a time here */

	iu->ranges.len = 0;
	int r = dwarf_entry_ranges(iu->unit, e, &iu->ranges);

	/* Few bytes of ranges can be shared by many functions, so limit the sum. */
	if (!r && iu->functions.len + ranges->len > INLINE_UNIT_SPANS_MAX)
		r = -E2BIG;
	if (!r && ranges->len)
		r = dwarf_data_push(d, &iu->bodies, ((struct inline_body){.off = e->off}));
	for (size_t i = 0; i < ranges->len && !r; i++)
		r = dwarf_data_push(d, &iu->functions,
				    ((struct dwarf_span){.start = ranges->v[i].start,
							 .end = ranges->v[i].end,
							 .value = (uint32_t)iu->bodies.len - 1}));
	/* A damaged entry does not affect the others. */
	return r == -ENOMEM ? r : 0;
}

/* Index all functions of the unit. Nested functions are rare; include them only if iu->deep. */
static int index_functions(struct inline_unit *iu)
{
	struct dwarf_unit *u = iu->unit;
	struct dwarf_bytes b;
	struct dwarf_entry e;
	size_t depth = 0;
	int r = dwarf_unit_bytes(u, u->dies, &b);

	iu->functions.len = iu->bodies.len = iu->nodes.len = 0;
	while (!r && b.p < b.end) {
		r = dwarf_entry_next(u, &b, wanted, &e);
		if (r)
			break;
		if (!e.tag) {
			if (depth <= 1)
				break;
			depth--;
			continue;
		}
		if (e.tag == DW_TAG_subprogram)
			r = add_function(iu, &e);
		if (!e.children)
			continue;
		if ((cannot_hold_code(e.tag) || (e.tag == DW_TAG_subprogram && !iu->deep)) &&
		    skip_children(u, &e, &b))
			continue;
		depth++;
	}
	iu->ranges.len = 0;
	dwarf_spans_sort(&iu->functions);
	return r == -ENOMEM ? r : 0;
}

/* The state while the entries of a function are read. */
struct node_walk {
	struct inline_unit *iu;
	struct dwarf_bytes b;
	size_t depth;
	VEC(struct node_open {
		size_t depth;
		uint32_t node;
	})
	open;
};

static int add_node(struct node_walk *w, const struct dwarf_entry *e)
{
	struct inline_unit *iu = w->iu;
	const struct dwarf_value *origin = dwarf_entry_attr(e, DWARF_ORIGIN);
	struct inline_node node = {
		.first = (uint32_t)iu->ranges.len,
		.end = (uint32_t)iu->nodes.len + 1,
		.call_file = dwarf_entry_attr(e, DWARF_CALL_FILE)
				     ? (uint32_t)dwarf_entry_number(e, DWARF_CALL_FILE)
				     : INLINE_NO_FILE,
		.call_line = (uint32_t)dwarf_entry_number(e, DWARF_CALL_LINE),
	};

	if (iu->nodes.len >= INLINE_UNIT_NODES_MAX || iu->ranges.len >= INLINE_UNIT_NODES_MAX)
		return -E2BIG;
	int r = dwarf_entry_ranges(iu->unit, e, &iu->ranges);

	if (r == -ENOMEM)
		return r;
	node.n = (uint32_t)iu->ranges.len - node.first;
	if (origin && (origin->kind == DWARF_IS_REF || origin->kind == DWARF_IS_REF_ALT)) {
		node.origin = origin->u;
		node.has_origin = true;
		node.in_alt = origin->kind == DWARF_IS_REF_ALT;
	}
	r = dwarf_data_push(iu->unit->data, &iu->nodes, node);
	if (r)
		return r;
	return e->children ? vec_push(&w->open,
				      ((struct node_open){w->depth, (uint32_t)iu->nodes.len - 1}))
			   : 0;
}

/* End the list of an entry's children. */
static void close_level(struct node_walk *w)
{
	w->depth--;
	while (w->open.len && w->open.v[w->open.len - 1].depth >= w->depth) {
		w->iu->nodes.v[w->open.v[w->open.len - 1].node].end = (uint32_t)w->iu->nodes.len;
		w->open.len--;
	}
}

/* Skip a nested function. */
static int skip_function(struct node_walk *w, const struct dwarf_entry *e)
{
	struct dwarf_entry inner;
	size_t depth = 1;
	int r = 0;

	if (!e->children || skip_children(w->iu->unit, e, &w->b))
		return 0;
	while (!r && depth && w->b.p < w->b.end) {
		r = dwarf_entry_next(w->iu->unit, &w->b, wanted, &inner);
		if (!r && !inner.tag)
			depth--;
		else if (!r && inner.children)
			depth++;
	}
	return r;
}

static int walk_body(struct node_walk *w)
{
	struct dwarf_entry e;
	int r = dwarf_entry_next(w->iu->unit, &w->b, wanted, &e);

	if (r || !e.children)
		return r;
	w->depth = 1;
	while (!r && w->depth && w->b.p < w->b.end) {
		r = dwarf_entry_next(w->iu->unit, &w->b, wanted, &e);
		if (r)
			break;
		if (!e.tag) {
			close_level(w);
			continue;
		}
		if (e.tag == DW_TAG_subprogram) {
			r = skip_function(w, &e);
			continue;
		}
		if (e.tag == DW_TAG_inlined_subroutine)
			r = add_node(w, &e);
		if (e.children)
			w->depth++;
	}
	return r;
}

static int read_body(struct inline_unit *iu, struct inline_body *body)
{
	struct node_walk w = {.iu = iu};
	int r = dwarf_unit_bytes(iu->unit, body->off, &w.b);

	body->first = (uint32_t)iu->nodes.len;
	if (!r)
		r = walk_body(&w);
	for (size_t i = 0; i < w.open.len; i++)
		iu->nodes.v[w.open.v[i].node].end = (uint32_t)iu->nodes.len;
	vec_free(&w.open);
	body->n = (uint32_t)iu->nodes.len - body->first;
	body->known = true;
	return r == -ENOMEM ? r : 0;
}

/*
 * Read the line tables: rows from the file itself, and file names from the split unit if it has its
 * own.
 */
static int read_lines(struct inline_unit *iu, const struct dwarf_entry *entry,
		      struct dwarf_data *alt)
{
	const struct dwarf_value *at = dwarf_entry_attr(entry, DWARF_STMT_LIST);
	int r = 0;

	if (at && at->kind == DWARF_IS_NUMBER)
		r = dwarf_lines_read(iu->skeleton, alt, at->u, false, &iu->lines);
	if (r != -ENOMEM && iu->unit != iu->skeleton)
		r = dwarf_lines_read(iu->unit, NULL, iu->unit->bases[DWARF_LINE], true,
				     &iu->split_files);
	return r == -ENOMEM ? r : 0;
}

static int find_split(struct inline_unit *iu, const struct dwarf_entry *entry,
		      const struct dwarf_split_place *place, struct dwarf_package *package,
		      struct dwarf_entry *ret_entry)
{
	int r = dwarf_split_find(place, package, iu->skeleton, entry, &iu->split, &iu->split_data);

	if (!r)
		r = dwarf_unit_begin(&iu->split, ret_entry);
	if (!r)
		iu->unit = &iu->split;
	return r == -ENOMEM ? r : 0;
}

int inline_unit_new(struct dwarf_unit *skeleton, const struct dwarf_split_place *place,
		    struct dwarf_package *package, struct dwarf_data *alt,
		    struct inline_unit **ret_unit)
{
	struct inline_unit *iu = calloc(1, sizeof(*iu));
	struct dwarf_entry entry, split = {0};

	if (!iu)
		return -ENOMEM;
	iu->skeleton = iu->unit = skeleton;
	int r = dwarf_unit_begin(skeleton, &entry);

	if (!r && dwarf_entry_attr(&entry, DWARF_DWO_NAME))
		r = find_split(iu, &entry, place, package, &split);
	if (!r)
		r = read_lines(iu, &entry, alt);
	if (!r)
		r = dwarf_unit_open(iu->unit);
	if (!r) {
		iu->unmangled = is_unmangled(
			dwarf_entry_number(iu->unit == skeleton ? &entry : &split, DWARF_LANGUAGE));
		r = index_functions(iu);
	}
	if (r)
		inline_unit_free(iu);
	else
		*ret_unit = iu;
	return r;
}

void inline_unit_free(struct inline_unit *iu)
{
	if (!iu)
		return;
	dwarf_unit_forget(iu->skeleton);
	dwarf_unit_forget(&iu->split);
	dwarf_data_free(iu->split_data);
	vec_free(&iu->functions);
	vec_free(&iu->bodies);
	vec_free(&iu->nodes);
	vec_free(&iu->ranges);
	dwarf_lines_free(&iu->lines);
	dwarf_lines_free(&iu->split_files);
	free(iu);
}

static bool node_has(const struct inline_unit *iu, const struct inline_node *node, uint64_t addr)
{
	for (uint32_t i = 0; i < node->n; i++)
		if (addr >= iu->ranges.v[node->first + i].start &&
		    addr < iu->ranges.v[node->first + i].end)
			return true;
	return false;
}

int inline_unit_find(struct inline_unit *iu, uint64_t addr, const struct inline_body **ret_body,
		     const struct inline_node **ret_nodes, size_t max, size_t *ret_n)
{
	const struct dwarf_span *span = dwarf_spans_find(&iu->functions, addr);
	int r = 0;

	if (!span && !iu->deep) {
		iu->deep = true;
		r = index_functions(iu);
		span = dwarf_spans_find(&iu->functions, addr);
	}
	if (r || !span)
		return r ? r : -ENOENT;
	struct inline_body *body = &iu->bodies.v[span->value];

	r = body->known ? 0 : read_body(iu, body);
	if (r)
		return r;
	uint32_t end = body->first + body->n;
	size_t n = 0;

	for (uint32_t i = body->first; i < end && n < max;) {
		const struct inline_node *node = &iu->nodes.v[i];

		dwarf_data_count(iu->unit->data, 1 + node->n / 4);
		if (dwarf_data_over_limit(iu->unit->data))
			break;
		if (!node_has(iu, node, addr)) {
			i = node->end;
			continue;
		}
		ret_nodes[n++] = node;
		end = node->end;
		i++;
	}
	*ret_body = body;
	*ret_n = n;
	return 0;
}

const char *inline_unit_file(const struct inline_unit *iu, uint32_t file)
{
	const struct dwarf_lines *lines = iu->split_files.files.len ? &iu->split_files : &iu->lines;

	return file < lines->files.len ? lines->files.v[file] : NULL;
}

size_t inline_unit_bytes(const struct inline_unit *iu)
{
	return sizeof(*iu) + iu->functions.cap * sizeof(*iu->functions.v) +
	       iu->bodies.cap * sizeof(*iu->bodies.v) + iu->nodes.cap * sizeof(*iu->nodes.v) +
	       iu->ranges.cap * sizeof(*iu->ranges.v) +
	       iu->lines.rows.cap * sizeof(*iu->lines.rows.v) +
	       iu->lines.files.cap * sizeof(*iu->lines.files.v) +
	       iu->lines.sequences.cap * sizeof(*iu->lines.sequences.v) +
	       iu->split_files.files.cap * sizeof(*iu->split_files.files.v) +
	       dwarf_abbrevs_bytes(iu->unit->abbrevs) +
	       (iu->split_data ? iu->split_data->resident + iu->split_data->unpacked : 0);
}
