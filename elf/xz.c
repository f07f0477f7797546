#include "elf/xz.h"

#include "base/cleanup.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#define XZ_FIRST_BYTES ((size_t)64 << 10) /* first output buffer; doubled when it is full */

static int xz_error(lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	default:
		return -EBADMSG;
	}
}

/* Make room for more output. */
static int xz_grow(unsigned char **out, size_t *cap, size_t max_bytes)
{
	size_t more = *cap ? *cap * 2 : XZ_FIRST_BYTES;

	/* Allow one byte more than the limit, to detect longer output. */
	if (*cap > max_bytes)
		return -E2BIG;
	if (more > max_bytes)
		more = max_bytes + 1;
	unsigned char *grown = realloc(*out, more + 1);

	if (!grown)
		return -ENOMEM;
	*out = grown;
	*cap = more;
	return 0;
}

/* Decode to the end of the last stream. The caller frees *out, also after an error. */
static int xz_run(lzma_stream *xz, size_t max_bytes, unsigned char **out, size_t *ret_len)
{
	size_t cap = 0;
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK) {
		if (!xz->avail_out) {
			size_t len = cap;
			int error = xz_grow(out, &cap, max_bytes);

			if (error)
				return error;
			xz->next_out = *out + len;
			xz->avail_out = cap - len;
		}
		ret = lzma_code(xz, LZMA_FINISH);
		/* No progress because the output buffer is full: go on with a larger one. */
		if (ret == LZMA_BUF_ERROR && !xz->avail_out)
			ret = LZMA_OK;
	}
	if (ret != LZMA_STREAM_END)
		return xz_error(ret);
	*ret_len = cap - xz->avail_out;
	return *ret_len > max_bytes ? -E2BIG : 0;
}

int xz_unpack(const void *data, size_t len, size_t max_bytes, unsigned char **ret_data,
	      size_t *ret_len)
{
	lzma_stream xz = LZMA_STREAM_INIT;
	AUTO_FREE unsigned char *out = NULL;
	size_t out_len = 0;
	lzma_ret ret = lzma_stream_decoder(&xz, XZ_MEMORY_MAX, LZMA_CONCATENATED);

	*ret_len = 0;
	if (ret != LZMA_OK)
		return xz_error(ret);
	xz.next_in = data;
	xz.avail_in = len;
	int error = xz_run(&xz, max_bytes, &out, &out_len);

	*ret_len = error ? (size_t)xz.total_out : out_len;
	lzma_end(&xz);
	if (error)
		return error;
	out[out_len] = 0;
	*ret_data = TAKE_PTR(out);
	return 0;
}
