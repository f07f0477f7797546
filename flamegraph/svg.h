/*
 * Writes an interactive flame graph: one SVG file that needs no other file. It has three parts: a
 * static picture of the wide frames, for viewers that run no script; the whole tree in about five
 * bytes a frame (svg_data.h); and the script. The script draws each view from the data, so zooming
 * shows frames that the static picture omits. Names are always text of XML elements, never script.
 */
#ifndef FLAMEGRAPH_SVG_H
#define FLAMEGRAPH_SVG_H

#include "base/outbuf.h"
#include "flamegraph/svg_options.h"
#include "flamegraph/tree.h"

/* The extent of the picture. */
struct svg_stats {
	size_t frames_drawn; /* in the static picture, at full width */
	size_t frames_kept;  /* in the data */
	/* Frames with less weight are not in the data (SVG_DATA_NODES_MAX); 1: all are. */
	uint64_t left_out_below;
};

/*
 * Draws a finished tree. Sets tree.start and, for the palette "chain", annotations. A tree without
 * weight gives a picture that says so. Equal trees and options give equal bytes, except with
 * palette.random. Returns 0 or -ENOMEM; write errors stay in out.
 */
int svg_write(struct tree *t, const struct svg_options *options, struct outbuf *out,
	      struct svg_stats *ret_stats);

#endif
