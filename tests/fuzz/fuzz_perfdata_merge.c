/* A directory of perf record --threads: the input is its files, each after a u32 of its length. The
 * merged file must read as perf.data.
 * covers: recording/perfdata_merge.c */
#include "recording/perfdata.h"
#include "tests/fuzz/fuzz_dir.h"

#include <stdint.h>
#include <sys/mman.h>

#define FILES_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the files; the last one may lack its end. */
static void put_files(const uint8_t *data, size_t size)
{
	char name[32] = "data";

	for (int i = 0; i < FILES_MAX; i++) {
		uint32_t len = 0;

		if (size >= sizeof(len)) {
			memcpy(&len, data, sizeof(len));
			data += sizeof(len);
			size -= sizeof(len);
		}
		if (len > size)
			len = (uint32_t)size;
		/* Each input replaces all files of the last one. */
		if (len || !i)
			fuzz_dir_put(name, data, len);
		else
			unlinkat(fuzz_dir(), name, 0);
		data += len;
		size -= len;
		snprintf(name, sizeof(name), "data.%d", i);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfdata_merged merged = {0};
	struct parse_error err = {0};
	struct perfdata_record record;
	struct perfdata *d;
	int fd = memfd_create("merged", MFD_CLOEXEC), code;

	put_files(data, size);
	code = fd < 0 ? 0 : perfdata_merge(fuzz_dir(), fd, &merged, &err);
	if (code && (code != err.code || !err.what))
		abort();
	if (!code && !merged.files)
		abort();
	if (!code && !perfdata_open(fd, &d, &err)) {
		while (perfdata_next(d, &record, &err) > 0)
			;
		perfdata_close(d);
	}
	close(fd);
	return 0;
}
