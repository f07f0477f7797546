/*
 * Buffered output to a descriptor or to memory, and how texts are escaped in JSON. Callers check
 * for errors once, at the end.
 */
#ifndef BASE_OUTBUF_H
#define BASE_OUTBUF_H

#include <stddef.h>
#include <stdint.h>

#define OUTBUF_BYTES ((size_t)128 << 10)

/*
 * After the first failed write or allocation, all later puts do nothing, and outbuf_close returns
 * that error.
 */
struct outbuf {
	int fd;    /* borrowed; -1: everything stays in memory (data, len) */
	int error; /* 0 or -errno */
	char *data;
	size_t len, cap;
	uint64_t written; /* bytes written to fd so far */
};

/* Returns a writer to fd (borrowed), or to memory if fd is -1. Allocates nothing yet. */
struct outbuf outbuf_to(int fd);

void outbuf_put(struct outbuf *o, const void *data, size_t len);
void outbuf_str(struct outbuf *o, const char *text);
void outbuf_char(struct outbuf *o, char c);
void outbuf_u64(struct outbuf *o, uint64_t x); /* decimal */
void outbuf_hex(struct outbuf *o, uint64_t x); /* lower case, no prefix */
void outbuf_printf(struct outbuf *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts text from outside as printable_copy writes it, in at most max bytes. */
void outbuf_printable(struct outbuf *o, const char *text, size_t len, size_t max);

/*
 * Puts text inside a JSON string, without the quotes. Escapes ", \ and control characters, and
 * replaces invalid UTF-8.
 */
void outbuf_json(struct outbuf *o, const char *text, size_t len);

/* Puts UTF-16LE units as UTF-8; unpaired surrogates become U+FFFD. */
void outbuf_utf16(struct outbuf *o, const void *units, size_t count);

/* Puts UTF-8 as UTF-16LE units; invalid bytes become U+FFFD. */
void outbuf_utf8_units(struct outbuf *o, const char *text, size_t len);

/* Writes the buffered bytes to fd. 0 or the first error. */
int outbuf_flush(struct outbuf *o);

/* Flushes and frees the buffer; does not close fd. 0 or the first error. */
int outbuf_close(struct outbuf *o);

#endif
