/* covers: recording/perfdata_writer_repair.c */
/* Repairs a perf.data that was cut off, and adds build ids to it. */
#include "base/file.h"
#include "recording/perfdata_writer.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct perfdata_build_id_entry entry = {.build_id = {{1, 2, 3, 4}, 20},
							     .misc = PERF_RECORD_MISC_USER,
							     .pid = -1,
							     .filename = "/lib/a.so"};
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct parse_error err;
	uint64_t cut;

	if (fd < 0)
		return 0;
	if (!file_write_all(fd, data, size) && !perfdata_repair(fd, &cut, &err))
		(void)perfdata_set_build_ids(fd, &entry, 1, &err);
	close(fd);
	return 0;
}
