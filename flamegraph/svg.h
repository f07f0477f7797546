/* An interactive flame graph: one SVG file that carries its script and needs nothing else. */
#ifndef FLAMEGRAPH_SVG_H
#define FLAMEGRAPH_SVG_H

#include "base/outbuf.h"
#include "flamegraph/svg_options.h"
#include "flamegraph/tree.h"

/* What was drawn. */
struct svg_stats {
	size_t frames_drawn; /* without the script, at full width */
	size_t frames_kept; /* that can be zoomed to */
	uint64_t left_out_below; /* frames with less weight were left out of the data, SVG_DATA_NODES_MAX; 1: none */
};

/*
 * Draws a finished tree (tree.start and, for the palette chain, annotations are set). A tree without weight becomes a picture
 * that says so. Equal trees and options give equal bytes, unless palette.random. 0 or -ENOMEM; write errors stay in out.
 */
int svg_write(struct tree *t, const struct svg_options *options, struct outbuf *out, struct svg_stats *ret_stats);

#endif
