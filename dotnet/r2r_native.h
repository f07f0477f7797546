/*
 * Decoder of numbers, arrays and hash tables in the runtime's "native format". ReadyToRun images
 * store their method tables in it. Format: dotnet/runtime, src/coreclr/vm/nativeformatreader.h;
 * readytorun-format.md, "Native format". Offsets count from the beginning of the section. Never
 * reads outside it.
 */
#ifndef DOTNET_R2R_NATIVE_H
#define DOTNET_R2R_NATIVE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Read a number. A bad one makes r fail. */
uint32_t r2r_native_u32(struct reader *r);
int32_t r2r_native_i32(struct reader *r);

/* Reads the index of a method's first runtime function. Leaves the fixups that follow unread. */
uint32_t r2r_native_entry_point(struct reader *r);

/* A sparse array in blocks of 16 elements. */
struct r2r_array {
	const unsigned char *data; /* borrowed */
	size_t len, base;
	/*
	 * Number of elements. Each block has an entry in the section, so the section's size limits
	 * it.
	 */
	uint32_t n;
	uint8_t width;
};

/* 0 or -EBADMSG. */
int r2r_array_open(const void *data, size_t len, struct r2r_array *ret_array);

/* Gives a reader at the element. 0; -ENOENT: no such element; -EBADMSG. */
int r2r_array_get(const struct r2r_array *a, uint32_t index, struct reader *ret_element);

/* Iterator over all entries of a hash table. */
struct r2r_hashtable {
	const unsigned char *data; /* borrowed */
	size_t len, base;
	uint32_t buckets, bucket; /* bucket: the next one */
	uint8_t width;
	size_t at, end; /* unread part of the current bucket */
};

/* 0 or -EBADMSG. */
int r2r_hashtable_open(const void *data, size_t len, struct r2r_hashtable *ret_table);

/*
 * Gives a reader at the next entry. 0; -ENOENT: no more; -EBADMSG. The number of entries is less
 * than half of len.
 */
int r2r_hashtable_next(struct r2r_hashtable *t, struct reader *ret_entry);

#endif
