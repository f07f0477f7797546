/* Input: the manifest of a single-file program, in a file of 16 MiB. covers: symbols/bundle.c */
#include "symbols/bundle.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES ((uint64_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bundle_files files;
	unsigned char *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (bundle_manifest(copy, size, FILE_BYTES, &files, NULL)) {
		free(copy);
		return 0;
	}
	for (size_t i = 0; i < files.nfiles; i++) {
		const struct bundle_file *f = &files.files[i];

		if (f->offset > FILE_BYTES || f->bytes > FILE_BYTES - f->offset ||
		    (i && f->offset < files.files[i - 1].offset) ||
		    (const unsigned char *)f->path < copy ||
		    (const unsigned char *)f->path + f->path_len > copy + size)
			abort();
	}
	bundle_files_free(&files);
	return 0;
}
