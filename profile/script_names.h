/*
 * The names that stackcollapse-perf.pl makes of a frame's line.
 *
 *  - The "+0x12" at the end of the symbol goes. A symbol that begins with '(' then has no name at all.
 *  - What "->" separates are several names, each but the first inlined ("_[i]" is appended, unless it has it). Empty ones at
 *    the end do not count, so that "operator->" is "operator".
 *  - "[unknown]" becomes the last part of the module's path in brackets, or "[unknown]" where that is unknown too; with addrs,
 *    "[libc.so <12ab>]".
 *  - ';' becomes ':'. All from the first '(' on goes that does not begin "(anonymous namespace)", unless the name has ".(" and
 *    later ")." (Go's methods). Quotes, single and double, go.
 *  - Of a process whose name begins with "java", a name with a '/' loses an 'L' at its start.
 *  - kernel: "_[k]" is appended to a name that is not inlined where the module begins with '[' or ends in "vmlinux", and does
 *    not hold "unknown". jit: "_[j]" where the module holds "/tmp/perf-DIGITS.map", unless the name has it.
 *  - Source lines: ":file.c:12" is appended, from the line of the text that belongs to the name. Parts in brackets and white
 *    space at both ends are cut first; of what is then empty nothing is appended. Once a name of a line was unknown with an
 *    unknown module, it and those after it have no source line.
 */
#ifndef PROFILE_SCRIPT_NAMES_H
#define PROFILE_SCRIPT_NAMES_H

#include "profile/script_line.h"

struct script_name_options {
	bool addrs, kernel, jit;
	bool java; /* the process's name begins with "java" */
	bool srcline;
};

/*
 * Appends the names to out (an outbuf to memory), each but the first after a ';'. sources: the source lines, each but the
 * first after a '\n', taken as long as there are any. Gives the number of names, which can be 0; a name can be empty.
 * out->error has to be asked for.
 */
size_t script_names(const struct script_frame *frame, const struct script_name_options *options,
		    struct script_part sources, struct outbuf *out);

/* How many source lines follow a frame's line where the text has them. */
size_t script_names_sources(const struct script_frame *frame);

/* Appends a source line with brackets and outer white space cut. */
void script_put_source(struct script_part line, struct outbuf *out);

#endif
