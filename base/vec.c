#include "base/vec.h"

#include <stdint.h>

int vec_grow(void **v, size_t *cap, size_t elem_bytes, size_t need)
{
	size_t want = *cap ? *cap : 16;

	if (need <= *cap)
		return 0;
	while (want < need) {
		if (want > SIZE_MAX / 2)
			return -ENOMEM;
		want *= 2;
	}
	void *fresh = reallocarray(*v, want, elem_bytes);

	if (!fresh)
		return -ENOMEM;
	*v = fresh;
	*cap = want;
	return 0;
}
