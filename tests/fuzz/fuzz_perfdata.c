/* perf.data in file and pipe mode, through a file and (odd sizes) through a pipe.
 * covers: recording/perfdata.c recording/perfdata_chunk.c recording/perfdata_feature.c
 * recording/perfdata_header.c recording/perfdata_input.c recording/perfdata_name.c
 * recording/perfdata_parse.c recording/perfdata_queue.c recording/perfdata_unzip.c */
#include "recording/perfdata.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t touch(const void *data, uint64_t bytes)
{
	const unsigned char *p = data;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < bytes; i++)
		sum += p[i];
	return sum;
}

/* Reads everything that a record points to, so that ASan detects pointers outside the input. */
static uint64_t touch_record(const struct perfdata *d, const struct perfdata_record *r)
{
	const struct perfdata_sample *s = &r->sample;
	size_t n;
	const struct perfdata_event *events = perfdata_events(d, &n);
	uint64_t sum = touch(r->header, r->header->size);

	if (r->event >= n)
		abort();
	sum += strlen(events[r->event].name);
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		sum += touch(s->callchain, s->ncallchain * 8) + touch(s->raw, s->raw_bytes);
		sum += touch(s->user_stack, s->user_stack_bytes) +
		       touch(s->branches, s->nbranches * 24);
		if (s->user_regs)
			sum += touch(s->user_regs, (uint64_t)__builtin_popcountll(
							   events[r->event].attr.sample_regs_user) *
							   8);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		sum += strlen(r->mmap.filename);
		break;
	case PERF_RECORD_COMM:
		sum += strlen(r->comm.name);
		break;
	case PERF_RECORD_KSYMBOL:
		sum += strlen(r->ksymbol.name);
		break;
	default:
		break;
	}
	return sum;
}

static void walk(int fd)
{
	struct perfdata *d;
	struct perfdata_record r;
	struct parse_error err;
	uint64_t sum = 0;
	int code = perfdata_open(fd, &d, &err);

	if (code) {
		if (code != err.code || !err.what)
			abort();
		return;
	}
	while ((code = perfdata_next(d, &r, &err)) > 0)
		sum += touch_record(d, &r);
	if (code && (code != err.code || !err.what))
		abort();
	const struct perfdata_info *i = perfdata_info(d);

	for (size_t k = 0; k < i->nbuild_ids; k++)
		sum += strlen(i->build_ids[k].filename);
	*(volatile uint64_t *)&sum = sum;
	perfdata_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fds[2];

	if (size % 2 && size <= 65536) {
		if (pipe(fds))
			return 0;
		if (write(fds[1], data, size) != (ssize_t)size)
			abort();
		close(fds[1]);
		walk(fds[0]);
		close(fds[0]);
		return 0;
	}
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	if (!size || write(fd, data, size) == (ssize_t)size)
		walk(fd);
	close(fd);
	return 0;
}
