/*
 * Packs the tree for the picture's script: every frame in a few bytes, also those too narrow to be
 * drawn (svg.c leaves these out of the static picture). Above SVG_DATA_NODES_MAX it omits the
 * lightest frames.
 */
#ifndef FLAMEGRAPH_SVG_DATA_H
#define FLAMEGRAPH_SVG_DATA_H

#include "flamegraph/node_order.h"
#include "flamegraph/palette.h"

/* Limits of the data. For larger trees, the lightest frames are left out. */
#define SVG_DATA_NODES_MAX ((size_t)800000)
#define SVG_DATA_NAMES_MAX ((size_t)6 << 20) /* bytes of all labels */

/* A name in one colour. Frames refer to it. */
struct svg_label {
	uint32_t name; /* in tree.names */
	uint8_t slot;  /* enum palette_slot */
	char annotation;
	uint32_t color; /* palette_color */
	uint32_t uses;  /* written frames */
	uint32_t place; /* in the written table, which begins with the most used */
};

struct svg_data {
	VEC(struct svg_label) labels;
	uint32_t *label_of; /* by node; not set for nodes below cut */
	uint64_t cut;       /* least total of a written frame; at least 1 */
	uint64_t unit;      /* common divisor of all written weights */
	size_t nodes;       /* written */
	size_t name_bytes;  /* of the labels */
	double max_delta;   /* largest |tree_delta_self|, at least 1 */
};

/* Gives labels and colours to the nodes of a tree with its layout. Returns 0 or -ENOMEM. */
int svg_data_make(const struct tree *t, const struct layout *layout, struct palette *palette,
		  struct svg_data *ret_data);
void svg_data_free(struct svg_data *d);

/*
 * Writes the labels, one a line: the letter of the slot (palette_slot_letters) and the name, by
 * svg_text_put.
 */
void svg_data_write_labels(const struct tree *t, const struct svg_data *d, struct outbuf *out,
			   bool ascii);

/*
 * Numbers are in base 32, lowest digit first. A digit is the character 63 ('?') + digit, plus 32 if
 * another digit follows. XML gives none of these characters a meaning.
 *
 * svg_data_write_colors writes one number a label: 0xRRGGBB or the style class.
 *
 * svg_data_write_frames writes these numbers for each frame, in the order of the layout:
 *   head: 4 * (levels up from the previous frame to this one's parent)
 *         + 2 * (as heavy as its parent) + (has a gap)
 *   gap, if it has one: weight from the end of the previous sibling, or else from the start of the
 *         parent, to its start, in units
 *   place of the label
 *   total, unless as heavy as its parent, in units
 *   in differential trees: changes of self and total since before, each as 2 * |x| + (x < 0),
 *         not in units
 */
void svg_data_write_colors(const struct svg_data *d, struct outbuf *out);
int svg_data_write_frames(const struct tree *t, const struct layout *layout,
			  const struct svg_data *d, struct outbuf *out); /* Returns 0 or -ENOMEM */

#endif
