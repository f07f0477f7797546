/* The tree as the picture's script reads it: every frame, also those too narrow to be drawn, in a few bytes each. */
#ifndef FLAMEGRAPH_SVG_DATA_H
#define FLAMEGRAPH_SVG_DATA_H

#include "flamegraph/layout.h"
#include "flamegraph/palette.h"

/* Of a larger tree the lightest frames are left out. */
#define SVG_DATA_NODES_MAX ((size_t)800000)
#define SVG_DATA_NAMES_MAX ((size_t)6 << 20) /* bytes of all labels */

/* A name in one colour: what frames refer to. */
struct svg_label {
	uint32_t name; /* in tree.names */
	uint8_t slot; /* enum palette_slot */
	char annotation;
	uint32_t color; /* palette_color */
	uint32_t uses; /* frames that are written */
	uint32_t place; /* in the written table: the most used first */
};

struct svg_data {
	VEC(struct svg_label) labels;
	uint32_t *label_of; /* by node; not set for nodes below cut */
	uint64_t cut; /* least total of a frame that is written; at least 1 */
	uint64_t unit; /* all weights that are written are multiples of it */
	size_t nodes; /* written */
	size_t name_bytes; /* of the labels */
	double max_delta; /* largest |tree_delta_self|, at least 1 */
};

/* Gives labels and colours to the nodes of a tree with its layout. 0 or -ENOMEM. */
int svg_data_make(const struct tree *t, const struct layout *layout, struct palette *palette, struct svg_data *ret_data);
void svg_data_free(struct svg_data *d);

/*
 * The labels: a line each, the letter of the slot (palette_slot_letters) and the name as svg_text_put writes it.
 */
void svg_data_write_labels(const struct tree *t, const struct svg_data *d, struct outbuf *out, bool ascii);

/*
 * Numbers are written in base 32, the lowest digit first, as the characters 63 ('?') + digit, + 32 more where another digit
 * follows: none of them means anything to XML. Colours: one number a label, 0xRRGGBB or the style class. Frames, in the
 * order of the layout:
 *   4 * (levels up from the frame before to the parent of this one) + 2 * (as heavy as its parent) + (a gap comes first)
 *   the gap, if there is one: weight between the end of the sibling before (the start of the parent) and the start, in units
 *   the label's place
 *   total in units, if it is not the parent's
 *   differential trees: two signed numbers (2 * |x| + (x < 0)), not in units: self and total, each less its before
 */
void svg_data_write_colors(const struct svg_data *d, struct outbuf *out);
int svg_data_write_frames(const struct tree *t, const struct layout *layout, const struct svg_data *d,
			  struct outbuf *out); /* 0 or -ENOMEM */

#endif
