/* The error of a parser: what is wrong with its input, and at which offset. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

/*
 * code: the negative errno that the function returned. -EBADMSG: not our format, or damaged;
 * -E2BIG: more than our limit; -EIO: not readable; -ENOMEM.
 *
 * what: a static text without a full stop; never freed. offset: the byte offset in the file or
 * stream at which reading stopped. Untouched on success.
 */
struct parse_error {
	int code;
	const char *what;
	uint64_t offset;
};

/*
 * Fills *err (may be NULL) and returns code, so that a parser can end with `return
 * parse_fail(...)`.
 */
static inline int parse_fail(struct parse_error *err, int code, const char *what, uint64_t offset)
{
	if (err) {
		err->code = code;
		err->what = what;
		err->offset = offset;
	}
	return code;
}

#endif
