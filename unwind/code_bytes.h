/* The bytes of an image, in its file or in memory. */
#ifndef UNWIND_CODE_BYTES_H
#define UNWIND_CODE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct code_bytes {
	int fd; /* -1: use memory */
	const unsigned char *memory;
	size_t bytes; /* of memory */
};

/* Reads up to len bytes from an offset; returns how many it read. */
static inline size_t code_bytes_read(const struct code_bytes *b, uint64_t file_off, void *buf,
				     size_t len)
{
	if (b->memory) {
		size_t there = file_off < b->bytes ? b->bytes - file_off : 0;

		len = len < there ? len : there;
		memcpy(buf, b->memory + (there ? file_off : 0), len);
		return len;
	}
	ssize_t n = pread(b->fd, buf, len, (off_t)file_off);

	return n < 0 ? 0 : (size_t)n;
}

#endif
