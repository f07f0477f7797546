/* Reads folded stacks, text lines "comm;caller;callee 12", into a tree. */
#ifndef FLAMEGRAPH_FOLDED_H
#define FLAMEGRAPH_FOLDED_H

#include "base/error.h"
#include "flamegraph/tree.h"

#define FOLDED_LINE_MAX ((size_t)16 << 20) /* longer lines are skipped and counted as bad */

/*
 * Reads fd to its end, in one pass. Memory holds the longest line and the tree. Initializes t, and
 * frees it on failure. Ignores options->event and with_tids.
 *
 * A line has frames joined by ';', one white-space character, and a count: digits, or digits, '.'
 * and digits. The latter makes all weights thousandths (tree.scale). A line can have two counts, as
 * in the differential input of flamegraph.pl; the first one fills before_*.
 *
 * t->bad_lines counts lines with these errors: no count, a negative count, a count over
 * TREE_WEIGHT_MAX, more than TREE_DEPTH_MAX frames, a name over INTERN_TEXT_MAX. Empty lines are no
 * errors. t->unended is set if the last line has no newline.
 *
 * Names over PROFILE_TEXT_MAX are cut to this size, as profile_text cuts them. t->cut_names counts
 * the distinct ones.
 *
 * The annotations _[k] _[j] _[i] _[w] at the end of a name become kind and annotation. Names
 * without one get the kind of kind_guess_of_name (kind_guess.h). All frames above a kernel frame
 * are kernel too.
 *
 * Returns 0; -EBADMSG: no line has a count, and err says so; -ENOMEM; -E2BIG; -errno of read.
 */
int folded_read_tree(struct tree *t, int fd, const struct tree_options *options,
		     struct parse_error *err);

/* Reads folded stacks from memory in the same way. */
int folded_read_tree_text(struct tree *t, const char *text, size_t len,
			  const struct tree_options *options, struct parse_error *err);

#endif
