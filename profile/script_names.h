/*
 * Makes names from a frame's line as stackcollapse-perf.pl does.
 *
 * - "+0x12" at the end of the symbol is removed. A symbol that then begins with '(' has no name.
 *
 * - "->" separates several names. Each name after the first is inlined: "_[i]" is appended, unless
 *   it is there. Empty names at the end are dropped, so that "operator->" becomes "operator".
 *
 * - "[unknown]" becomes the last part of the module's path in brackets, or "[unknown]" if that is
 *   unknown too. With addrs it becomes "[libc.so <12ab>]".
 *
 * - ';' becomes ':'. Text from the first '(' on is removed. Exceptions are "(anonymous namespace)"
 *   and names with ".(" and a later ")." (Go methods). Single and double quotes are removed.
 *
 * - If the process's name begins with "java", a name with a '/' loses an 'L' at its start.
 *
 * - With kernel, "_[k]" is appended to a name that is not inlined if the module is a kernel's. Such
 *   a module begins with '[' or ends in "vmlinux", and does not contain "unknown". With jit, "_[j]"
 *   is appended if the module contains "/tmp/perf-DIGITS.map", unless the name has it.
 *
 * - With srcline, ":file.c:12" is appended from the name's own line of the text. Parts in brackets
 *   and outer white space are removed first; nothing is appended if the rest is empty. After an
 *   unknown name with an unknown module, this name and the later names of the line get no source
 *   line.
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
 * Appends the names to out (an outbuf to memory), separated by ';'. sources: source lines separated
 * by '\n', used until none is left. Returns the number of names, possibly 0; a name may be empty.
 * The caller checks out->error.
 */
size_t script_names(const struct script_frame *frame, const struct script_name_options *options,
		    struct script_part sources, struct outbuf *out);

/* Returns how many source lines follow a frame's line in a text with source lines. */
size_t script_names_source_count(const struct script_frame *frame);

/* Appends a source line without brackets and outer white space. */
void script_names_put_source(struct script_part line, struct outbuf *out);

#endif
