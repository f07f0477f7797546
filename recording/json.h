/* Reading small JSON documents (RFC 8259), strictly: for files of our own and texts of other programs, which may be damaged. */
#ifndef RECORDING_JSON_H
#define RECORDING_JSON_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

/* Reads one value after the other. The first error sticks: all later calls give it. */
struct json {
	const char *text;
	size_t len, pos;
	int error; /* 0, -EBADMSG, -E2BIG, -ENOMEM */
	const char *what;
	int depth;
};

struct json json_of(const char *text, size_t len);

/* Goes into an object: then json_key until it gives 0. 0 or the error. */
int json_object(struct json *j);

/* The next key of the object, an allocated text that the caller frees. 1; 0 at the object's end;
 * the error. */
int json_key(struct json *j, char **ret_key);

/* Goes into an array: then json_item before each of its values until it gives 0. 0 or the error. */
int json_array(struct json *j);
/* 1; 0 at the array's end; the error. */
int json_item(struct json *j);

/* The first byte of the next value: '{', '[', '"', a digit or another; 0 at the end or after an error. */
char json_peek(struct json *j);

/* Values. Texts are allocated, UTF-8 as in the document, and hold no NUL. Numbers are whole and
 * from 0 to UINT64_MAX. */
int json_string(struct json *j, char **ret_text);
int json_u64(struct json *j, uint64_t *ret_value);
int json_bool(struct json *j, bool *ret_value);

/* Over a value of any kind. */
int json_skip(struct json *j);

/* After the document's value: nothing but white space may follow. */
int json_end(struct json *j);

#endif
