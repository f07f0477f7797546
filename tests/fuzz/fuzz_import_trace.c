/* Input: a trace. Its samples, and its events of one name with weights, become profiles that are
 * folded. covers: profcpu/post/import_trace.c profile/profile_stacks.c */
#include "flamegraph/collapse.h"
#include "profcpu/post/import_trace.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fold(int fd, const struct import_trace_options *options)
{
	struct collapse_options collapse = {.names = COLLAPSE_FULL, .include_tid = true};
	struct outbuf out = outbuf_to(-1);
	struct import_trace_result result;
	struct collapse_stats stats;
	struct parse_error err;
	struct profile *p;

	if (lseek(fd, 0, SEEK_SET) || profile_new(&p))
		abort();
	(void)post_import_trace(fd, options, p, &result, &err);
	if (profile_nsamples(p) != result.samples || result.nameless > result.frames)
		abort();
	if (collapse_write(p, &collapse, &out, &stats) && !out.error)
		abort();
	outbuf_close(&out);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	fold(fd, &(struct import_trace_options){0});
	fold(fd, &(struct import_trace_options){.functions_only = true, .max_stack = 2});
	fold(fd, &(struct import_trace_options){.event = "GCAllocationTick:AllocationAmount",
						.raw_names = true});
	close(fd);
	return 0;
}
