/* The lines of the text files of a recording's symbols/: fields with a blank between them, hexadecimal numbers, and last a name,
 * which may hold anything: control characters and backslashes are written as \xNN. */
#ifndef SYMBOLS_STORE_TEXT_H
#define SYMBOLS_STORE_TEXT_H

#include "base/outbuf.h"
#include "symbols/symbol.h"

#include <stddef.h>
#include <stdint.h>

/* A name, escaped, and the end of the line. */
void store_text_put_name(struct outbuf *out, const char *name, size_t len);

/* Cuts the next field, which a blank or the end of the line ends. NULL: there is none. */
char *store_text_field(char **p);

/* The value of a lower-case hexadecimal digit, or -1. */
int store_text_digit(char c);

/* A hexadecimal field of at most 64 bits. 0 or -EBADMSG. */
int store_text_hex(char **p, uint64_t *ret_x);

/* The rest of the line as a name, unescaped in place and NUL-terminated. 0; -EBADMSG: a bad escape, or a NUL in it. */
int store_text_name(char *p, size_t *ret_len);

/* A field that may be missing: "-" then. */
void store_text_put_field(struct outbuf *out, const char *text);

/* The source with this name; SYMBOL_NONE for what a later version may know. field may be NULL. */
enum symbol_source store_text_source(const char *field);

#endif
