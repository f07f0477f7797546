/*
 * Makes text from outside fit for a terminal, so that it cannot control the terminal or fill it.
 */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns the length of the valid UTF-8 sequence at p (1 to 4), or 0 if it is invalid. left: bytes
 * from p to the end, at least 1. Source: RFC 3629, section 4.
 */
size_t utf8_len(const unsigned char *p, size_t left);

/*
 * Whether a valid sequence of n bytes controls a terminal: C0, DEL, C1, the ends of lines and
 * paragraphs of Unicode, and the marks that change the direction of writing. Sources: ECMA-48;
 * Unicode Standard Annex 9, table 4.
 */
bool printable_is_control(const unsigned char *p, size_t n);

/* Whether text is valid UTF-8 without control characters except tabs, so that printable_copy keeps
 * it. */
bool printable_is(const char *text, size_t len);

#define PRINTABLE_CUT "..."

/*
 * Copies len bytes of text to `to`, without a NUL, and returns the number of written bytes: at most
 * max, which is at least strlen(PRINTABLE_CUT). Each byte of control characters except
 * tabs and of invalid UTF-8 becomes "\x1b". A text that does not fit is cut and ends in
 * PRINTABLE_CUT; *ret_cut tells it. The areas do not overlap.
 */
size_t printable_copy(const char *text, size_t len, size_t max, char *to, bool *ret_cut);

/*
 * For tables, in which one byte is one column: replaces everything except printable ASCII by '?',
 * in place.
 */
void printable_ascii(char *text);

#endif
