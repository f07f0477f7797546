/*
 * Parses and writes the lines of perf script's text. Parsing follows the rules of
 * stackcollapse-perf.pl, so that folding by perf's names equals that script's output byte for byte.
 * The rules, with all their oddities, come from reading and trying the script (FlameGraph of 2024,
 * perl 5.36). All text is bytes. White space is that of C's isspace; a word is [A-Za-z0-9_].
 *
 * The first rule that matches a line holds:
 *
 * - A comment begins with '#'. An empty line ends a sample. script_read.h has the order of lines.
 *
 * - Header: a byte that is not white space, at least one more byte, white space, digits (the pid),
 *   any number of slashes, digits (the tid) or none, white space. The earliest match counts:
 *   "Thread 1 12/13 [0]" is thread 1 of "Thread". A comm of one byte includes the space after it.
 *   If the line has one number, or "0" as the second, the first number is the tid, and the pid
 *   is "?".
 *
 * - Frame: white space, a word (the address), the symbol, " (", the module, ")". The module ends at
 *   the last ')' and begins at the last " (" before it. If no byte is left for the symbol, the
 *   symbol is the last byte before " (", even if that is part of the address.
 *
 * - Other lines are ignored.
 *
 * A header contains an event only if the line ends in ": [PERIOD] EVENT:" and white space; EVENT is
 * one word without white space. So a line with fields of the event's own, or without a time, has no
 * event and counts 1. No period, or "0", counts 1.
 */
#ifndef PROFILE_SCRIPT_LINE_H
#define PROFILE_SCRIPT_LINE_H

#include "base/outbuf.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of a line; points into the line. */
struct script_part {
	const char *at;
	size_t len;
};

struct script_header {
	struct script_part comm;
	struct script_part pid; /* "?" (not in the line) if the line has one number */
	struct script_part tid;
	struct script_part ids; /* both numbers as in the line, first digit to last */
	const char *rest;       /* the line after the numbers and white space */
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

/* Each returns whether the line (without its newline) is of this kind, and fills *ret only then. */
bool script_line_header(const char *line, size_t len, struct script_header *ret);
bool script_line_event(const char *line, size_t len, struct script_event *ret);
bool script_line_frame(const char *line, size_t len, struct script_frame *ret);

/*
 * Returns the weight of a sample with this period. Stops at UINT64_MAX, at which the script changes
 * to floating point.
 */
uint64_t script_line_weight(struct script_part period);

/* Returns symbol without "+0x" and lower-case hexadecimal digits at its end. */
struct script_part script_line_symbol(struct script_part symbol);

/*
 * Parses lower-case hexadecimal without leading zeros, at most 64 bits: text that printing would
 * produce again.
 */
bool script_line_hex(struct script_part text, uint64_t *ret_value);

static inline bool script_line_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Writes a frame: "\t%16x symbol+0x12 (module)\n". Newlines in names become '?'. */
void script_line_put_frame(struct outbuf *out, const struct profile *profile,
			   const struct profile_frame *frame);

/*
 * Writes the start of a header, "comm  pid/tid ". script_line_header returns the same numbers and,
 * if the text permits, the same comm. perf's padding disappears before long numbers. We always
 * write two spaces, so that a comm of one byte survives.
 */
void script_line_put_thread(struct outbuf *out, const struct profile *profile,
			    const struct profile_thread *thread);

/*
 * Writes the end of a header: " 1001001 cpu-clock: ", or " sched:sched_switch: ..." for events with
 * their own fields.
 */
void script_line_put_event(struct outbuf *out, const struct profile *profile,
			   const struct profile_event *event, uint64_t weight);

#endif
