/*
 * Writes JSON (RFC 8259), value by value. The caller ends what it begins, innermost first. Errors
 * stay in the outbuf.
 */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include "base/outbuf.h"

#include <stdbool.h>

#define JSON_LINES_ALL 64 /* more levels than any document has */

/* An open object or array. */
struct json_writer {
	struct outbuf *out; /* borrowed */
	int depth;          /* 1: the document's own object */
	int lines;          /* values up to this depth have lines of their own */
	char end;           /* the closing bracket */
	bool is_first;      /* no value was written yet */
};

/*
 * Begins a document, an object. Values up to the depth `lines` have a line of their own, with two
 * blanks for each level. Deeper ones follow one another without white space.
 */
struct json_writer json_put_document(struct outbuf *out, int lines);

/* Begin a value of w. key is NULL in an array. w must not be used before the value ends. */
struct json_writer json_put_object(struct json_writer *w, const char *key);
struct json_writer json_put_array(struct json_writer *w, const char *key);

/* Ends an object, an array or the document, which gets a newline. */
void json_put_end(const struct json_writer *w);

/* Write one value. key is NULL in an array, or a text of any bytes. A text of NULL is null. */
void json_put_u64(struct json_writer *w, const char *key, uint64_t x);
void json_put_i64(struct json_writer *w, const char *key, int64_t x);
void json_put_bool(struct json_writer *w, const char *key, bool x);
void json_put_text(struct json_writer *w, const char *key, const char *text);
void json_put_chars(struct json_writer *w, const char *key, const char *text, size_t len);

/*
 * Writes a number that reads back equal. digits: 17 for a double, 9 for a float. JSON has no word
 * for numbers that are not finite, so these are the texts "NaN", "Infinity" and "-Infinity".
 */
void json_put_f64(struct json_writer *w, const char *key, double x, int digits);

/* Writes bytes as the text "0x" and two digits for each. */
void json_put_hex(struct json_writer *w, const char *key, const void *bytes, size_t len);

#endif
