/* Text from outside made fit for a terminal: nothing of it may steer one. Both functions change it
 * in place; it never becomes longer. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/* Length of the valid UTF-8 sequence at p (1 to 4), 0 where there is none (RFC 3629, section 4).
 * left is at least 1. */
size_t utf8_len(const unsigned char *p, size_t left);

/* For messages: each control character, those of C1 in UTF-8 too, and each byte that is no UTF-8
 * becomes '?'; the rest stays. */
void printable_message(char *text);

/* For tables, where a byte is a column: all but the printable characters of ASCII become '?'. */
void printable_ascii(char *text);

#endif
