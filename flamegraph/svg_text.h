/* Writes names and numbers as an SVG shows them. */
#ifndef FLAMEGRAPH_SVG_TEXT_H
#define FLAMEGRAPH_SVG_TEXT_H

#include "base/outbuf.h"

#include <stdbool.h>

/*
 * Writes text for an element or an attribute, with XML's markup escaped, on one line. Control
 * characters become their visible pictures (U+2400..). These become U+FFFD: invalid UTF-8,
 * characters that XML forbids, and marks that change the direction of text. So a name can neither
 * leave its element nor hide itself.
 *   cells: columns of a fixed-width font; SIZE_MAX: no limit
 *   ascii: write all other characters as &#x...;
 * A text longer than cells is cut and ends in "..". Wide characters take two columns. With fewer
 * than 3 cells nothing is written.
 */
void svg_text_put(struct outbuf *out, const char *text, size_t len, size_t cells, bool ascii);

/*
 * Start of the label of a .NET name in `cells` columns. Leaves out namespaces and outer types until
 * the rest fits without its arguments, or only the method is left. The caller writes ".." before
 * the rest, which takes two columns.
 *
 * 0: show the name from its start, because it fits, or has other characters than ASCII, or the
 * label has less than 8 columns.
 */
size_t svg_text_managed_start(const char *name, size_t len, size_t cells);

/* Writes a number with at most two decimals, without trailing zeros. */
void svg_text_number(struct outbuf *out, double x);

/* Writes a count without decimals, with commas between thousands. */
void svg_text_count(struct outbuf *out, double x);

/* Writes nanoseconds in a suitable unit: "1.234 s", "12.3 ms", "45.0 us". */
void svg_text_time(struct outbuf *out, double ns);

#endif
