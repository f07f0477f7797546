/* Folded stacks as text, "comm;caller;callee 12" lines, read into a tree. */
#ifndef FLAMEGRAPH_FOLDED_H
#define FLAMEGRAPH_FOLDED_H

#include "base/error.h"
#include "flamegraph/tree.h"

#define FOLDED_LINE_MAX ((size_t)16 << 20) /* longer lines are skipped and counted as bad */

/*
 * From fd up to its end, in one pass and with the memory of the longest line and of the tree. t is made here; on failure it
 * is freed. options->event and with_tids do not matter.
 *
 * A line is frames joined by ';', one white-space character, and a count: digits, or digits '.' digits (then all weights are
 * in thousandths, see tree.scale). With two counts the first fills before_*, as in flamegraph.pl's differential input.
 * What has no count, a count over TREE_WEIGHT_MAX, a negative one, more than TREE_DEPTH_MAX frames or a name over
 * INTERN_TEXT_MAX is counted in t->bad_lines; empty lines are not. Where the last line has no newline, t->unended says so.
 *
 * The annotations _[k] _[j] _[i] _[w] at the end of a name become kind and annotation. Names without one get the kind
 * that kinds_of_name (kinds.h) finds; what lies above a kernel frame is kernel too.
 *
 * 0; -EBADMSG where no line has a count (t is freed, err says it); -ENOMEM; -E2BIG; -errno of read.
 */
int tree_from_folded(struct tree *t, int fd, const struct tree_options *options, struct parse_error *err);

/* The same from memory. */
int tree_from_folded_text(struct tree *t, const char *text, size_t len, const struct tree_options *options,
			  struct parse_error *err);

#endif
