/*
 * The lines of perf script's text, taken apart as stackcollapse-perf.pl takes them apart, and put together from a profile.
 *
 * These are the rules that make folding by names of perf's form equal to that script's output, byte for byte. They were found
 * by reading the script and by trying it (FlameGraph of 2024, perl 5.36); where it is odd, so are they. All text is bytes;
 * white space is that of C's isspace, a word is [A-Za-z0-9_].
 *
 * A line is looked at in this order:
 *  1. It begins with '#': a comment. It is empty: the end of a sample. (`script_read.h` has the order of lines.)
 *  2. A header: it begins with no white space; then come at least one more byte, white space, digits (the pid), any slashes,
 *     digits (the tid) or not, white space. The earliest place where that fits counts, so that "Thread 1 12/13 [0]" is the
 *     thread 1 of "Thread", and a name of one byte takes a space of what follows. One number, or a second one that is "0",
 *     is the tid; the pid is then "?".
 *  3. A frame: white space, a word (the address), the symbol, " (", the module, ")". The last ')' ends the module, the last
 *     " (" before it begins it. Where nothing is left for the symbol it gets the last byte before " (", be it of the address.
 *  4. Anything else has no meaning.
 *
 * A header says which event it is only when the line ends in ": [PERIOD] EVENT:" and white space; EVENT is one word without
 * white space. So lines with fields of the event's own, or without a time, have no event and count 1. No period, or "0", is 1.
 */
#ifndef PROFILE_SCRIPT_LINE_H
#define PROFILE_SCRIPT_LINE_H

#include "base/outbuf.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a line; points into it. */
struct script_part {
	const char *at;
	size_t len;
};

struct script_header {
	struct script_part comm;
	struct script_part pid; /* "?" (not in the line) where the line has one number */
	struct script_part tid;
	struct script_part ids; /* both as they stand in the line: the first digit to the last */
	const char *rest; /* after the white space behind the numbers */
};

struct script_event {
	struct script_part name;
	struct script_part period; /* digits; len 0: none */
};

struct script_frame {
	struct script_part addr;
	struct script_part symbol; /* with its "+0x12" */
	struct script_part module;
};

/* Each: whether the line (without its newline) is one, *ret filled only then. */
bool script_line_header(const char *line, size_t len, struct script_header *ret);
bool script_line_event(const char *line, size_t len, struct script_event *ret);
bool script_line_frame(const char *line, size_t len, struct script_frame *ret);

/* What a sample counts with this period; stops at UINT64_MAX, where the script goes on in floating point. */
uint64_t script_line_weight(struct script_part period);

/* symbol without the "+0x" and lower-case hexadecimal digits that may end it. */
struct script_part script_line_symbol(struct script_part symbol);

/* Lower-case hexadecimal without leading zeros, at most 64 bits: what a number would be printed as again. */
bool script_line_hex(struct script_part text, uint64_t *ret_value);

static inline bool script_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* What is written for a frame of a profile: "\t%16x symbol+0x12 (module)\n". Newlines in names become '?'. */
void script_put_frame(struct outbuf *out, const struct profile *profile, const struct profile_frame *frame);

/* The start of a header, "comm  pid/tid ", such that script_line_header gives back comm (as far as any text can) and the
 * numbers. perf's own spacing loses the space in front of long numbers; ours has two, so that comms of one byte survive. */
void script_put_thread(struct outbuf *out, const struct profile *profile, const struct profile_thread *thread);

/* The end of a header, " 1001001 cpu-clock: ", or " sched:sched_switch: ..." for events with fields of their own. */
void script_put_event(struct outbuf *out, const struct profile *profile, const struct profile_event *event,
		      uint64_t weight);

#endif
