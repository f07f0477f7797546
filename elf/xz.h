/* Unpacks .xz data, the packing of MiniDebugInfo, with limits on memory and output. */
#ifndef ELF_XZ_H
#define ELF_XZ_H

#include <stddef.h>

/* Bytes of the decoder: `xz -9` with its dictionary of 64 MiB needs 65 MiB */
#define XZ_MEMORY_MAX ((size_t)72 << 20)

/*
 * Unpacks all of data, which may be several streams. *ret_data is allocated; one NUL follows its
 * *ret_len bytes. After an error, *ret_len has the bytes that were unpacked until then. Returns 0,
 * -EBADMSG (not .xz, damaged or cut off), -E2BIG (more than max_bytes, or a decoder over
 * XZ_MEMORY_MAX) or -ENOMEM.
 */
int xz_unpack(const void *data, size_t len, size_t max_bytes, unsigned char **ret_data,
	      size_t *ret_len);

#endif
