/* Options of flame graphs, those of flamegraph.pl, and their defaults. */
#ifndef FLAMEGRAPH_SVG_OPTIONS_H
#define FLAMEGRAPH_SVG_OPTIONS_H

#include "flamegraph/palette.h"

#define SVG_WIDTH_DEFAULT 1200
#define SVG_WIDTH_MIN 200
#define SVG_WIDTH_MAX 100000
#define SVG_FRAME_HEIGHT_MAX 200
#define SVG_FONT_SIZE_MAX 100

enum svg_unit {
	SVG_UNIT_COUNT, /* weights are shown as "1,234 samples" */
	SVG_UNIT_NS,    /* weights are shown as "1.234 s" */
};

/* Texts are borrowed and may have any bytes. */
struct svg_options {
	const char *title;                /* NULL: "Flame Graph", "Icicle Graph", "Flame Chart" */
	const char *subtitle, *notes;     /* NULL: none */
	const char *countname, *nametype; /* "samples", "Function:" */
	const char *fonttype;             /* NULL: the viewer's fixed-width font */
	/*
	 * yellow, blue, green, grey, white or #rrggbb. NULL: the palette decides, and the viewer
	 * can choose a dark mode.
	 */
	const char *bgcolors;
	/* NULL: UTF-8. Others must contain ASCII; the rest becomes character references. */
	const char *encoding;
	/* Pixels. 0: SVG_WIDTH_DEFAULT, and the window's width if the script runs. */
	unsigned width;
	unsigned frame_height;        /* pixels */
	double font_size, font_width; /* pixels; width of a letter / size */
	double min_width;             /* narrower frames are not drawn: pixels, */
	bool min_width_percent;       /* or per cent of the whole */
	double total;                 /* weight of 100 %, if above the tree's; 0: the tree's */
	double factor;                /* multiplies the shown counts */
	enum svg_unit unit;
	bool inverted, negate;
	/* In the legend of a differential picture; NULL: "more than before", "less than before". */
	const char *more, *less;
	struct palette palette;
};

struct svg_options svg_options_default(void);

/*
 * Sets unit and countname for the weights of an event: time for clocks, else counts. The event's
 * name must live as long as the options.
 */
void svg_options_set_event(struct svg_options *options, const char *event, bool has_period);

/* Returns 0; -EINVAL: an option's value is not usable; *ret_why says which. */
int svg_options_check(const struct svg_options *options, const char **ret_why);

/* Whether browsers and XML readers are known to read this encoding. False is not an error. */
bool svg_options_encoding_is_known(const char *name);

/*
 * The background in light mode, from top to bottom, each "#rrggbb". differential: the picture shows
 * changes. Returns 0; -EINVAL: an unknown form of bgcolors.
 */
int svg_options_background(const struct svg_options *options, bool differential, char ret_from[8],
			   char ret_to[8]);

#endif
