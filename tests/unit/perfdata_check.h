/* Shared by tests of the perf.data reader: small records and their expected results. */
#ifndef TESTS_UNIT_PERFDATA_CHECK_H
#define TESTS_UNIT_PERFDATA_CHECK_H

#include "recording/perfdata.h"
#include "tests/unit/perfdata_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <zstd.h>

#include <cmocka.h>

static inline struct perfdata *open_built(struct build *b)
{
	struct perfdata *d = NULL;
	struct parse_error err = {0};
	int fd = build_fd(b);
	int r = perfdata_open(fd, &d, &err);

	if (r)
		print_error("perfdata_open: %d %s at %llu\n", r, err.what,
			    (unsigned long long)err.offset);
	assert_int_equal(r, 0);
	return d;
}

/* The memfds stay open until the program ends; there are few. */
static inline void next_is(struct perfdata *d, struct perfdata_record *r, uint32_t type)
{
	struct parse_error err = {0};

	assert_int_equal(perfdata_next(d, r, &err), 1);
	assert_int_equal(r->type, type);
}

static inline void end_is_here(struct perfdata *d)
{
	struct perfdata_record r;
	struct parse_error err = {0};

	assert_int_equal(perfdata_next(d, &r, &err), 0);
}

static inline struct build_event plain_event(void)
{
	struct build_event e = {.ids = {1}, .nids = 1};

	e.attr.size = sizeof(e.attr);
	e.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	e.attr.sample_id_all = 1;
	return e;
}

static inline void put_plain(struct build *b, uint64_t ip, uint64_t time_ns)
{
	build_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	build_u64(b, ip);
	build_u64(b, time_ns);
	build_record_end(b);
}

static inline void put_comm(struct build *b, uint64_t time_ns)
{
	build_record(b, PERF_RECORD_COMM, 0);
	build_u64(b, 1);
	build_text(b, "comm");
	build_u64(b, time_ns);
	build_record_end(b);
}

static inline struct perfdata *open_fd(int fd)
{
	struct perfdata *d = NULL;
	struct parse_error err = {0};
	int r = perfdata_open(fd, &d, &err);

	if (r)
		print_error("perfdata_open: %d %s at %llu\n", r, err.what,
			    (unsigned long long)err.offset);
	assert_int_equal(r, 0);
	return d;
}

/* Checks that all samples come with these ips in this order, then the end with the given code. */
static inline void samples_are(struct perfdata *d, const uint64_t *ips, size_t n, int end_code)
{
	struct perfdata_record r;
	struct parse_error err = {0};

	for (size_t i = 0; i < n;) {
		assert_int_equal(perfdata_next(d, &r, &err), 1);
		if (r.type != PERF_RECORD_SAMPLE)
			continue;
		assert_int_equal(r.sample.ip, ips[i]);
		i++;
	}
	assert_int_equal(perfdata_next(d, &r, &err), end_code);
	assert_int_equal(perfdata_next(d, &r, &err), end_code);
	if (end_code) {
		assert_int_equal(err.code, end_code);
		assert_non_null(err.what);
	}
}

static inline void built_samples_are(struct build *b, const uint64_t *ips, size_t n, int end_code)
{
	int fd = build_fd(b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, ips, n, end_code);
	perfdata_close(d);
	close(fd);
	build_free(b);
}

/* Compresses the records of `inner` into records of the given type: one stream, flushed every
 * `step` bytes. */
static inline void put_compressed(struct build *b, const struct build *inner, size_t step,
				  uint32_t type)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	unsigned char out[65536];

	assert_non_null(z);
	assert_false(ZSTD_isError(ZSTD_initCStream(z, 1)));
	for (size_t at = 0; at < inner->len; at += step) {
		size_t n = inner->len - at < step ? inner->len - at : step;
		ZSTD_inBuffer in = {inner->bytes + at, n, 0};
		ZSTD_outBuffer o = {out, 60000, 0};

		while (in.pos < in.size)
			assert_false(ZSTD_isError(ZSTD_compressStream(z, &o, &in)));
		assert_int_equal(at + step < inner->len ? ZSTD_flushStream(z, &o)
							: ZSTD_endStream(z, &o),
				 0);
		build_record(b, type, 0);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			build_u64(b, o.pos);
		build_put(b, out, o.pos);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			build_put(b, "\0\0\0\0\0\0\0", (8 - o.pos % 8) % 8);
		build_record_end(b);
		if (at % 3 == 0)
			build_round(b);
	}
	ZSTD_freeCStream(z);
}

static inline void put_update_name(struct build *b, uint64_t what, uint64_t id, const char *name)
{
	build_record(b, PERFDATA_RECORD_EVENT_UPDATE, 0);
	build_u64(b, what);
	build_u64(b, id);
	build_text(b, name);
	build_record_end(b);
}

#endif
