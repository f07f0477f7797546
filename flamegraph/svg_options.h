/* How a flame graph is to be drawn. */
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
	SVG_UNIT_NS, /* as "1.234 s" */
};

/* The options of flamegraph.pl. Texts are borrowed and may hold any bytes. */
struct svg_options {
	const char *title; /* NULL: "Flame Graph", "Icicle Graph", "Flame Chart" */
	const char *subtitle, *notes; /* NULL: none */
	const char *countname, *nametype; /* "samples", "Function:" */
	const char *fonttype; /* NULL: the viewer's fixed-width font */
	const char *bgcolors; /* yellow, blue, green, grey, #rrggbb; NULL: by the palette, dark where the viewer likes it so */
	const char *encoding; /* NULL: UTF-8. Another one must hold ASCII: the rest is written as character references */
	unsigned width; /* pixels; 0: SVG_WIDTH_DEFAULT, and as wide as the window where the script runs */
	unsigned frame_height;
	double font_size, font_width; /* pixels; width of a letter / size */
	double min_width; /* frames narrower than this are not drawn: pixels, */
	bool min_width_percent; /* or per cent of the whole */
	double total; /* if more than the tree's weight: what 100 % is; 0: the tree's */
	double factor; /* what counts are multiplied by when shown */
	enum svg_unit unit;
	bool inverted, negate;
	struct palette palette;
};

struct svg_options svg_options_default(void);

/* Sets unit and countname to what the weights of this event are: time for clocks, else what is counted. The event's name must
 * live as long as the options. */
void svg_options_of_event(struct svg_options *options, const char *event, bool has_period);

/* 0, or -EINVAL and in *ret_why which option has a value that makes no picture. */
int svg_options_check(const struct svg_options *options, const char **ret_why);

/* Whether browsers and XML readers are known to read this encoding; false is no error. */
bool svg_encoding_is_known(const char *name);

/* The background of light mode, from top to bottom, "#rrggbb" each. differential: where changes are drawn.
 * 0 or -EINVAL for bgcolors of another form. */
int svg_options_background(const struct svg_options *options, bool differential, char ret_from[8], char ret_to[8]);

#endif
