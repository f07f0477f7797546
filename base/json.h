/*
 * Strict reader of small JSON documents (RFC 8259): our own files and output of other programs.
 * Both may be damaged. outbuf.h writes JSON.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32

/* Reader of one document, value by value. The first error stays: all later calls return it. */
struct json {
	const char *text;
	size_t len, pos;
	int error; /* 0, -EBADMSG, -E2BIG, -ENOMEM */
	const char *what;
	int depth;
};

struct json json_of(const char *text, size_t len);

/* Enters an object. Then call json_key until it returns 0. 0 or the error. */
int json_object(struct json *j);

/* Reads the next key; the caller frees *ret_key. 1: a key; 0: the object ends; or the error. */
int json_key(struct json *j, char **ret_key);

/* Enters an array. Then call json_item before each value until it returns 0. 0 or the error. */
int json_array(struct json *j);
/* Moves to the next item. 1: an item; 0: the array ends; or the error. */
int json_item(struct json *j);

/*
 * Returns the first byte of the next value: '{', '[', '"', a digit or another; 0 at the end or
 * after an error.
 */
char json_peek(struct json *j);

/*
 * Read one value. 0 or the error. Texts are UTF-8 as in the document and hold no NUL; the caller
 * frees them. Numbers are whole, from 0 to UINT64_MAX.
 */
int json_string(struct json *j, char **ret_text);
int json_u64(struct json *j, uint64_t *ret_value);
int json_bool(struct json *j, bool *ret_value);

/* Skips a value of any kind. 0 or the error. */
int json_skip(struct json *j);

/* Checks that only white space follows the document's value. 0 or the error. */
int json_end(struct json *j);

#endif
