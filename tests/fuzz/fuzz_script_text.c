/* covers: flamegraph/collapse.c flamegraph/collapse_walk.c recording/script_frame.c
 * recording/script_header.c recording/script_read.c recording/script_write.c profile/script_line.c
 * profile/script_names.c */
/* Reads text of perf script, folds it, writes it and reads it again: both folds must be equal. The
 * first byte selects options. */
#include "flamegraph/collapse.h"
#include "recording/script_read.h"
#include "recording/script_write.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_fd(const void *data, size_t size)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

/* NULL if the text is refused. */
static struct profile *fuzz_read(const void *data, size_t size,
				 const struct script_text_options *options)
{
	struct script_text_stats stats;
	struct parse_error err;
	struct profile *p;
	int fd = fuzz_fd(data, size), r;

	if (profile_new(&p))
		abort();
	r = script_text_read(fd, options, p, &stats, &err);
	close(fd);
	if (r) {
		profile_free(p);
		return NULL;
	}
	return p;
}

static struct outbuf fuzz_fold(struct profile *p, const struct collapse_options *options)
{
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;

	if (collapse_write(p, options, &out, &stats))
		abort();
	return out;
}

/* The written text of p folds like p. Source lines are not written; without them frames fold the
 * same. */
static void fuzz_round_trip(struct profile *p, const struct collapse_options *options)
{
	static const struct script_text_options plain;
	struct collapse_options without = *options;
	struct outbuf text = outbuf_to(-1);

	without.srcline = false;
	if (script_text_write(p, &text))
		abort();
	struct profile *again = fuzz_read(text.data, text.len, &plain);
	struct outbuf a = fuzz_fold(p, &without);

	if (again) {
		struct outbuf b = fuzz_fold(again, &without);

		if (a.len != b.len || (a.len && memcmp(a.data, b.data, a.len) != 0))
			abort();
		outbuf_close(&b);
	}
	profile_free(again);
	outbuf_close(&a);
	outbuf_close(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bits = size ? *data : 0;
	const struct script_text_options read = {.srcline = bits & 1};
	const struct collapse_options perf = {
		.include_pid = bits & 2,
		.include_tid = bits & 4,
		.annotate_kernel = bits & 8,
		.annotate_jit = bits & 8,
		.include_addrs = bits & 16,
		.srcline = bits & 1,
	};
	struct collapse_options full = perf;
	struct profile *p = size ? fuzz_read(data + 1, size - 1, &read) : NULL;
	struct outbuf out;

	if (!p)
		return 0;
	full.names = COLLAPSE_FULL;
	out = fuzz_fold(p, &perf);
	outbuf_close(&out);
	out = fuzz_fold(p, &full);
	outbuf_close(&out);
	fuzz_round_trip(p, &perf);
	profile_free(p);
	return 0;
}
