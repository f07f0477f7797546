/* Takes the answers out of the text that symbols/store.h describes. */
#ifndef SYMBOLS_STORE_READ_H
#define SYMBOLS_STORE_READ_H

#include "base/error.h"
#include "symbols/store.h"

/* Adds what text holds to answers. 0; -EBADMSG (not the format, or cut), -ENOTSUP (a newer format), -ENOMEM, -E2BIG, with
 * *err (may be NULL); then answers may hold a part of it. text is written to. */
int store_parse(char *text, size_t len, struct answers *answers, struct store_notes *ret_notes,
		struct parse_error *err);

/* Reads dir/names. As store_parse, and -ENOENT, -errno. */
int store_read(int dir_fd, struct answers *answers, struct store_notes *ret_notes, struct parse_error *err);

#endif
