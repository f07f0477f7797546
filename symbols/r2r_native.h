/*
 * Numbers, arrays and hash tables in the runtime's "native format", in which ReadyToRun images keep their method tables
 * (dotnet/runtime, src/coreclr/vm/nativeformatreader.h; readytorun-format.md, "Native format"). Offsets are from the beginning
 * of the section; nothing outside of it is read.
 */
#ifndef SYMBOLS_R2R_NATIVE_H
#define SYMBOLS_R2R_NATIVE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* A number; r fails where it is none. */
uint32_t r2r_native_u32(struct reader *r);
int32_t r2r_native_i32(struct reader *r);

/* The runtime function at which a method begins; what follows, where the method's fixups are, is not needed. */
uint32_t r2r_native_entry_point(struct reader *r);

/* A sparse array in blocks of 16 elements. */
struct r2r_array {
	const unsigned char *data; /* borrowed */
	size_t len, base;
	uint32_t n; /* elements; each block has a place in the section, so no more than the section can hold */
	uint8_t width;
};

/* 0 or -EBADMSG. */
int r2r_array_open(const void *data, size_t len, struct r2r_array *ret_array);

/* A reader that stands at the element. 0; -ENOENT: the array has none there; -EBADMSG. */
int r2r_array_get(const struct r2r_array *a, uint32_t index, struct reader *ret_element);

/* All entries of a hash table, one after another. */
struct r2r_hashtable {
	const unsigned char *data; /* borrowed */
	size_t len, base;
	uint32_t buckets, bucket; /* bucket: the next one */
	uint8_t width;
	size_t at, end; /* in the bucket before */
};

/* 0 or -EBADMSG. */
int r2r_hashtable_open(const void *data, size_t len, struct r2r_hashtable *ret_table);

/* A reader that stands at the next entry. 0; -ENOENT: there are no more; -EBADMSG. Entries number less than half of len. */
int r2r_hashtable_next(struct r2r_hashtable *t, struct reader *ret_entry);

#endif
