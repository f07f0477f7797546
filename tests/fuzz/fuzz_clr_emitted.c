/*
 * Input: number of reads that succeed (1 byte; 255: all), whether columns are wide (1 byte). Then
 * changes to the memory of a process, 6 bytes each: place (2 bytes) and value (4 bytes). If the
 * highest bit of the place is set, the value is an address of that memory.
 * covers: dotnet/coreclr/emitted.c
 */
#include "dotnet/coreclr/emitted.h"

#include "dotnet/metadata.h"
#include "dotnet/metadata_names.h"
#include "tests/unit/emitted_image.h"

#include <stdlib.h>

#define READ_MAX 65536
#define METHODS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void change(const uint8_t *p)
{
	size_t at = (size_t)(p[0] | (p[1] & 0x7f) << 8);
	uint64_t value = 0;

	memcpy(&value, p + 2, 4);
	if (p[1] & 0x80)
		emitted_put(at & ~(size_t)7, EMITTED_BASE + value % EMITTED_BYTES, 8);
	else if (at + 4 <= EMITTED_BYTES)
		emitted_put(at, value, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct clr_metadata *metadata = NULL;
	uint64_t guids = 0;
	void *file = NULL;
	size_t bytes = 0;

	if (size < 2)
		return 0;
	emitted_make(data[1] & 1);
	for (size_t i = 2; i + 6 <= size; i += 6)
		change(data + i);
	emitted_reads_left = data[0] == 255 ? -1 : data[0];
	int r = clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, READ_MAX, &file,
				 &bytes, &guids);

	if (r && r != -ENOENT && r != -ENOMEM)
		abort();
	/* Headers and padding are small. */
	if (!r && bytes > READ_MAX + 4096)
		abort();
	if (!r && !clr_metadata_open(file, bytes, &metadata, NULL)) {
		uint32_t rows = clr_metadata_rows(metadata, CLR_METHOD_DEF);

		for (uint32_t rid = 1; rid <= rows && rid <= METHODS_MAX; rid++) {
			struct outbuf out = outbuf_to(-1);

			(void)clr_metadata_method_name(metadata, rid, NULL, NULL, NULL, &out);
			(void)outbuf_close(&out);
		}
		clr_metadata_free(metadata);
	}
	if (!r)
		free(file);
	return 0;
}
