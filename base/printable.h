/*
 * Makes text from outside fit for a terminal, so that it cannot control the terminal. Both
 * printable_ functions change the text in place; it never becomes longer.
 */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/*
 * Returns the length of the valid UTF-8 sequence at p (1 to 4), or 0 if it is invalid. left: bytes
 * from p to the end, at least 1. Source: RFC 3629, section 4.
 */
size_t utf8_len(const unsigned char *p, size_t left);

/*
 * For messages: replaces control characters (C1 in UTF-8 too) and bytes that are not UTF-8 by '?'.
 */
void printable_message(char *text);

/*
 * For tables, in which one byte is one column: replaces everything except printable ASCII by '?'.
 */
void printable_ascii(char *text);

#endif
