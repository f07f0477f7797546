/*
 * Splits and escapes lines of the text files in a recording's symbols/. A line has fields separated
 * by one blank, hexadecimal numbers, and a name at the end. In a name, tabs, backslashes and bytes
 * that printable_copy escapes are written \xNN. store.h lists the kinds of line.
 */
#ifndef SYMBOLS_STORE_STORE_FIELDS_H
#define SYMBOLS_STORE_STORE_FIELDS_H

#include "base/outbuf.h"
#include "symbols/core/symbol.h"

#include <stddef.h>
#include <stdint.h>

/* Writes an escaped name and the end of the line. */
void store_text_put_name(struct outbuf *out, const char *name, size_t len);

/* Cuts the next field off, up to a blank or the end of the line. NULL: none. */
char *store_text_field(char **p);

/* The value of a lower-case hexadecimal digit, or -1. */
int store_text_digit(char c);

/* Reads a hexadecimal field of at most 64 bits. Returns 0 or -EBADMSG. */
int store_text_hex(char **p, uint64_t *ret_x);

/*
 * Unescapes the rest of the line, a name, in place and NUL-terminates it. Returns 0 or -EBADMSG (a
 * bad escape, or an escaped NUL).
 */
int store_text_name(char *p, size_t *ret_len);

/*
 * Writes a field and a blank; "-" for NULL or "". Blanks become "_". If printable_copy would escape
 * something, so do those bytes and all that are not ASCII.
 */
void store_text_put_field(struct outbuf *out, const char *text);

/*
 * The source with this name; SYMBOL_NONE for an unknown one, which a later version may have
 * written. field may be NULL.
 */
enum symbol_source store_text_source(const char *field);

#endif
