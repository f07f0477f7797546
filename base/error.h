/* How a parser says what is wrong with its input, and where. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdint.h>

/*
 * code: the negative errno that the function returned (-EBADMSG not our format or damaged, -E2BIG over a limit
 * of ours, -EIO could not be read, -ENOMEM). what: a static sentence without a full stop, never freed.
 * offset: byte offset in the file or stream where reading stopped. Untouched on success.
 */
struct parse_error {
	int code;
	const char *what;
	uint64_t offset;
};

/* Fills *err (which may be NULL) and gives code back, so that a parser can end with `return parse_fail(...)`. */
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
