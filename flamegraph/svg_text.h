/* Names and numbers as an SVG shows them. */
#ifndef FLAMEGRAPH_SVG_TEXT_H
#define FLAMEGRAPH_SVG_TEXT_H

#include "base/outbuf.h"

#include <stdbool.h>

/*
 * Writes text with XML's markup escaped, for an element or an attribute. Control characters become their visible pictures
 * (U+2400..), what is no UTF-8, no XML character, or would turn the direction of the text, becomes U+FFFD; so a name can
 * neither leave its place nor hide. Never longer than one line. ascii: all else as &#x...;.
 *
 * cells: how many columns of a fixed-width font there are; a longer text is cut and ends in "..". Wide characters take two
 * columns. SIZE_MAX: no limit. With fewer than 3 cells nothing is written.
 */
void svg_text_put(struct outbuf *out, const char *text, size_t len, size_t cells, bool ascii);

/* A number with at most two decimals, without trailing zeros. */
void svg_text_number(struct outbuf *out, double x);

/* A count without decimals and with commas between thousands. */
void svg_text_count(struct outbuf *out, double x);

/* Nanoseconds in the unit that fits: "1.234 s", "12.3 ms", "45 us". */
void svg_text_time(struct outbuf *out, double ns);

#endif
