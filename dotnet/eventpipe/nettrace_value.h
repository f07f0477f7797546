/* Numbers and texts as nettrace streams have them: little-endian. */
#ifndef DOTNET_EVENTPIPE_NETTRACE_VALUE_H
#define DOTNET_EVENTPIPE_NETTRACE_VALUE_H

#include "base/outbuf.h"
#include "base/reader.h"

/* Reads 7 bits of each byte, lowest first. A number with more bits fails the reader. */
uint64_t nettrace_varuint(struct reader *r, unsigned bits);

/*
 * Reads a UTF-8 text of at most max bytes behind its length. Gives it in place, without a NUL.
 * NULL: it is longer or cut; the reader has failed.
 */
const char *nettrace_utf8(struct reader *r, size_t max, size_t *ret_len);

/*
 * Reads a NUL-terminated UTF-16 text of at most max_units. Gives its units in place, and their
 * number without the NUL. NULL: no NUL found; the reader has failed.
 */
const void *nettrace_utf16(struct reader *r, size_t max_units, size_t *ret_units);

/* Write the same three. */
void nettrace_put_varuint(struct outbuf *out, uint64_t x);
void nettrace_put_utf8(struct outbuf *out, const char *text);
void nettrace_put_utf16(struct outbuf *out, const char *text, size_t len);

#endif
