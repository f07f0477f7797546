/* Unpacks .xz data, in which MiniDebugInfo keeps its symbols, with bounds on what it may become. */
#ifndef SYMBOLS_XZ_H
#define SYMBOLS_XZ_H

#include <stddef.h>

#define XZ_MEMORY_MAX ((size_t)72 << 20) /* of the decoder: `xz -9`, whose dictionary has 64 MiB, needs 65 */

/*
 * The whole of data, which may be several streams. *ret_data is allocated and ends with one NUL that does not count.
 * 0; -EBADMSG: not .xz, damaged or cut; -E2BIG: more than max_bytes, or a decoder over XZ_MEMORY_MAX; -ENOMEM.
 */
int xz_unpack(const void *data, size_t len, size_t max_bytes, unsigned char **ret_data, size_t *ret_len);

#endif
