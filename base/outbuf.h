/* Buffered output to a descriptor with one place to ask whether all of it was written. */
#ifndef BASE_OUTBUF_H
#define BASE_OUTBUF_H

#include <stddef.h>
#include <stdint.h>

#define OUTBUF_BYTES ((size_t)128 << 10)

/*
 * Errors stick: after the first failed write or allocation all further puts do nothing, and outbuf_close gives
 * that error. With fd -1 the text is kept in memory (data, len).
 */
struct outbuf {
	int fd; /* borrowed; -1 keeps everything in memory */
	int error; /* 0 or -errno */
	char *data;
	size_t len, cap;
	uint64_t written; /* bytes handed to fd so far */
};

/* A writer to fd (borrowed), or to memory with -1. Nothing is allocated yet. */
struct outbuf outbuf_to(int fd);

void outbuf_put(struct outbuf *o, const void *data, size_t len);
void outbuf_str(struct outbuf *o, const char *text);
void outbuf_char(struct outbuf *o, char c);
void outbuf_u64(struct outbuf *o, uint64_t x); /* decimal */
void outbuf_hex(struct outbuf *o, uint64_t x); /* lower case, no prefix */
void outbuf_printf(struct outbuf *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from outside in a line on a terminal, as printable_message makes it. */
void outbuf_message(struct outbuf *o, const char *text);

/* Text inside a JSON string (without the quotes): escapes ", \, control characters; replaces invalid UTF-8. */
void outbuf_json(struct outbuf *o, const char *text, size_t len);

/* Text inside XML or HTML, element or attribute: escapes & < > " ', replaces what XML 1.0 forbids and invalid UTF-8
 * by U+FFFD. */
void outbuf_xml(struct outbuf *o, const char *text, size_t len);

/* Writes what is buffered. 0 or the first error. */
int outbuf_flush(struct outbuf *o);

/* Flushes, frees the buffer, gives the first error. Does not close fd. */
int outbuf_close(struct outbuf *o);

#endif
