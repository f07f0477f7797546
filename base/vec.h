/* Growing arrays with a visible element type: struct { TYPE *v; size_t len, cap; }. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* An anonymous struct type; zeroed it is empty. Example: `VEC(int) ids;` */
#define VEC(type)                \
	struct {                 \
		type *v;         \
		size_t len, cap; \
	}

/* Makes room for at least `need` elements of elem_bytes. 0; -ENOMEM: the array is unchanged. */
int vec_grow(void **v, size_t *cap, size_t elem_bytes, size_t need);

/* Makes room for n more elements. 0 or -ENOMEM. */
#define vec_reserve(vec, n)                                                     \
	((vec)->cap - (vec)->len >= (size_t)(n)                                 \
		 ? 0                                                            \
		 : vec_grow((void **)&(vec)->v, &(vec)->cap, sizeof(*(vec)->v), \
			    (vec)->len + (size_t)(n)))

/* Appends one element by value. 0 or -ENOMEM. */
#define vec_push(vec, value) (vec_reserve(vec, 1) ? -ENOMEM : ((vec)->v[(vec)->len++] = (value), 0))

/* Bytes of memory that the array takes. */
#define vec_bytes(vec) ((vec)->cap * sizeof(*(vec)->v))

/* Frees the storage and leaves an empty array. */
#define vec_free(vec)                        \
	do {                                 \
		free((vec)->v);              \
		(vec)->v = NULL;             \
		(vec)->len = (vec)->cap = 0; \
	} while (0)

#endif
