#include "tests/unit/allocated_bytes.h"
#include "tests/unit/perfdata_check.h"

#define HOLE_OFF 8192
#define HOLE_BYTES ((size_t)64 << 20)

static void attrs_of_every_size_are_read(void **state)
{
	static const uint32_t sizes[] = {0, 64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 256};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct perfdata_file_header h = {.magic = PERFDATA_MAGIC, .size = sizeof(h)};
		unsigned char attr[256];
		struct perf_event_attr head = {
			.type = PERF_TYPE_SOFTWARE, .size = sizes[i], .sample_period = 77};
		uint32_t size = sizes[i] ? sizes[i] : 64;
		struct build b = {0};
		size_t n;

		memset(attr, 0xff, sizeof(attr));
		memcpy(attr, &head, 40);
		h.attr_size = size + 16;
		h.attrs = (struct perfdata_section){sizeof(h), size + 16};
		h.data = (struct perfdata_section){sizeof(h) + size + 16, 8};
		build_put(&b, &h, sizeof(h));
		build_put(&b, attr, size);
		build_u64(&b, 0);
		build_u64(&b, 0);
		build_round(&b);
		struct perfdata *d = open_built(&b);
		const struct perf_event_attr *a = &perfdata_events(d, &n)[0].attr;

		assert_int_equal(n, 1);
		assert_int_equal(a->sample_period, 77);
		assert_int_equal(a->config2, size >= 72 ? UINT64_MAX : 0);
		assert_int_equal(a->sample_regs_user, size >= 96 ? UINT64_MAX : 0);
		assert_int_equal(a->sig_data, size >= 128 ? UINT64_MAX : 0);
		end_is_here(d);
		perfdata_close(d);
		build_free(&b);
	}
}

static void events_without_a_name_get_perfs_name(void **state)
{
	static const struct {
		struct perf_event_attr attr;
		const char *name;
	} cases[] = {
		{{.type = PERF_TYPE_SOFTWARE, .exclude_guest = 1}, "cpu-clock"},
		{{.type = PERF_TYPE_SOFTWARE, .exclude_guest = 1, .precise_ip = 3},
		 "cpu-clock:pppH"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 1, .exclude_kernel = 1, .exclude_hv = 1},
		 "task-clock:u"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 2, .exclude_user = 1, .exclude_guest = 1},
		 "page-faults:khH"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 99, .exclude_guest = 1},
		 "unknown-software"},
		{{.type = PERF_TYPE_HARDWARE, .exclude_guest = 1}, "cycles"},
		{{.type = PERF_TYPE_HARDWARE,
		  .exclude_user = 1,
		  .exclude_hv = 1,
		  .exclude_guest = 1},
		 "cycles:kH"},
		{{.type = PERF_TYPE_HARDWARE, .config = 1, .precise_ip = 2, .exclude_guest = 1},
		 "instructions:ppH"},
		{{.type = PERF_TYPE_HARDWARE, .config = 0x700000000, .exclude_guest = 1}, "cycles"},
		{{.type = PERF_TYPE_HARDWARE, .config = 50, .exclude_guest = 1},
		 "unknown-hardware"},
		{{.type = PERF_TYPE_HW_CACHE, .config = 0x10000, .exclude_guest = 1},
		 "L1-dcache-load-misses"},
		{{.type = PERF_TYPE_HW_CACHE, .config = 0x102, .exclude_guest = 1}, "LLC-stores"},
		{{.type = PERF_TYPE_HW_CACHE, .config = 0x30000ff, .exclude_guest = 1},
		 "invalid-cache"},
		{{.type = PERF_TYPE_RAW, .config = 0x1a8, .exclude_guest = 1}, "raw 0x1a8"},
		{{.type = PERF_TYPE_TRACEPOINT, .config = 300}, "unknown tracepoint"},
		{{.type = PERF_TYPE_BREAKPOINT,
		  .bp_type = 3,
		  .bp_addr = 0x1000,
		  .exclude_guest = 1},
		 "mem:0x1000:rw"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 9}, "dummy:HG"},
		{{.type = 40}, "unknown attr type: 40"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct build_event e = {.attr = cases[i].attr};
		struct build b = {0};
		size_t n;

		build_file(&b, &e, 1);
		build_round(&b);
		build_data_end(&b);
		struct perfdata *d = open_built(&b);

		assert_string_equal(perfdata_events(d, &n)[0].name, cases[i].name);
		perfdata_close(d);
		build_free(&b);
	}
}

static void put_build_id(struct build *b, uint16_t misc, uint8_t size, const char *name)
{
	struct perfdata_build_id_head h = {.pid = -1, .build_id_size = size};

	memcpy(h.build_id, "01234567890123456789", 20);
	build_record(b, 0, misc);
	build_put(b, (const char *)&h + 8, sizeof(h) - 8);
	build_text(b, name);
	build_record_end(b);
}

static void put_event_desc(struct build *b, const struct build_event *e)
{
	build_u32(b, 1);
	build_u32(b, sizeof(e->attr));
	build_put(b, &e->attr, sizeof(e->attr));
	build_u32(b, 1);
	build_string(b, "sched:sched_switch");
	build_u64(b, e->ids[0]);
}

static void fill_features(struct build *f, const struct build_event *e)
{
	put_build_id(&f[0], PERF_RECORD_MISC_USER, 20, "/bin/old");
	put_build_id(&f[0], PERF_RECORD_MISC_KERNEL | PERFDATA_MISC_BUILD_ID_SIZE, 16,
		     "[kernel.kallsyms]");
	build_string(&f[1], "host.example");
	build_string(&f[2], "6.18.1");
	build_string(&f[3], "6.1.99");
	build_string(&f[4], "x86_64");
	build_u32(&f[5], 8);
	build_u32(&f[5], 4);
	build_u32(&f[6], 3);
	build_string(&f[6], "perf");
	build_string(&f[6], "record");
	build_string(&f[6], "-g");
	put_event_desc(&f[7], e);
	build_u64(&f[8], 1000);
	build_u64(&f[8], 2000);
	for (int i = 0; i < 5; i++)
		build_u32(&f[9], 1);
	build_u32(&f[10], 1);
	build_u32(&f[10], 4);
	build_u64(&f[10], 1);
	build_u64(&f[10], 1);
	build_u64(&f[11], 7);
}

#define NFEATURES 12
static const unsigned int features[NFEATURES] = {
	PERFDATA_BUILD_ID,    PERFDATA_HOSTNAME,   PERFDATA_OSRELEASE,  PERFDATA_VERSION,
	PERFDATA_ARCH,        PERFDATA_NRCPUS,     PERFDATA_CMDLINE,    PERFDATA_EVENT_DESC,
	PERFDATA_SAMPLE_TIME, PERFDATA_COMPRESSED, PERFDATA_CLOCK_DATA, 200,
};

static void check_features(const struct perfdata *d)
{
	const struct perfdata_info *i = perfdata_info(d);
	size_t n;

	assert_int_equal(i->nbuild_ids, 2);
	assert_int_equal(i->build_ids[0].build_id.len, 20);
	assert_string_equal(i->build_ids[0].filename, "/bin/old");
	assert_int_equal(i->build_ids[1].build_id.len, 16);
	assert_int_equal(i->build_ids[1].misc & PERF_RECORD_MISC_CPUMODE_MASK,
			 PERF_RECORD_MISC_KERNEL);
	assert_string_equal(i->hostname, "host.example");
	assert_string_equal(i->os_release, "6.18.1");
	assert_string_equal(i->perf_version, "6.1.99");
	assert_string_equal(i->arch, "x86_64");
	assert_int_equal(i->cpus_available, 8);
	assert_int_equal(i->cpus_online, 4);
	assert_string_equal(i->cmdline, "perf record -g");
	assert_string_equal(perfdata_events(d, &n)[0].name, "sched:sched_switch");
	assert_int_equal(i->first_sample_ns, 1000);
	assert_int_equal(i->last_sample_ns, 2000);
	assert_true(i->compressed);
	assert_true(i->has_clockid);
	assert_int_equal(i->clockid, 4);
	assert_int_equal(perfdata_stats(d)->unknown_features, 1);
}

static void features_are_read_and_unknown_ones_counted(void **state)
{
	struct build_event e = {.ids = {5}, .nids = 1, .attr = {.type = PERF_TYPE_TRACEPOINT}};
	struct build b = {0}, f[NFEATURES] = {{0}};

	(void)state;
	e.attr.size = sizeof(e.attr);
	build_file(&b, &e, 1);
	build_round(&b);
	fill_features(f, &e);
	build_features(&b, features, f, NFEATURES);
	struct perfdata *d = open_built(&b);

	check_features(d);
	end_is_here(d);
	perfdata_close(d);
	build_free(&b);
	for (size_t i = 0; i < NFEATURES; i++)
		build_free(&f[i]);
}

static void features_come_as_records_in_pipe_mode(void **state)
{
	struct build_event e = {.ids = {5}, .nids = 1, .attr = {.type = PERF_TYPE_TRACEPOINT}};
	struct build b = {0}, f[NFEATURES] = {{0}};

	(void)state;
	e.attr.size = sizeof(e.attr);
	build_pipe(&b, &e, 1);
	fill_features(f, &e);
	for (size_t i = 0; i < NFEATURES; i++) {
		build_record(&b, PERFDATA_RECORD_HEADER_FEATURE, 0);
		build_u64(&b, features[i]);
		build_put(&b, f[i].bytes, f[i].len);
		build_record_end(&b);
		build_free(&f[i]);
	}
	struct perfdata *d = open_built(&b);

	end_is_here(d);
	check_features(d);
	assert_true(perfdata_info(d)->pipe_mode);
	perfdata_close(d);
	build_free(&b);
}

static void damaged_features_cost_only_themselves(void **state)
{
	static const unsigned int which[] = {PERFDATA_BUILD_ID,   PERFDATA_HOSTNAME,
					     PERFDATA_NRCPUS,     PERFDATA_CMDLINE,
					     PERFDATA_EVENT_DESC, PERFDATA_SAMPLE_TIME};
	struct build_event e = {.ids = {5}, .nids = 1};
	struct build b = {0}, f[6] = {{0}};

	(void)state;
	build_file(&b, &e, 1);
	build_round(&b);
	for (size_t i = 0; i < 6; i++)
		build_put(&f[i], "\xff\xff\xff\xff\x01\0\0\0", i == 5 ? 4 : i == 2 ? 7 : 8);
	build_features(&b, which, f, 6);
	b.len -= 2; /* the last one is cut too */
	struct perfdata *d = open_built(&b);

	end_is_here(d);
	assert_int_equal(perfdata_stats(d)->unknown_features, 6);
	perfdata_close(d);
	build_free(&b);
	for (size_t i = 0; i < 6; i++)
		build_free(&f[i]);
}

/* Puts the section that is described at `at` into the hole. */
static void set_hole(struct build *b, size_t at)
{
	const struct perfdata_section hole = {HOLE_OFF, HOLE_BYTES};

	memcpy(b->bytes + at, &hole, sizeof(hole));
}

/* Opens the file with a hole of 64 MiB behind it, with 64 MiB of memory. */
static int open_with_hole(struct build *b, struct perfdata **ret_data)
{
	struct parse_error err = {0};
	int fd = build_fd(b);

	assert_true(b->len <= HOLE_OFF);
	assert_int_equal(ftruncate(fd, HOLE_OFF + HOLE_BYTES), 0);
	size_t before = allocated_bytes();
	int r = perfdata_open_within(fd, HOLE_BYTES, ret_data, &err);

	assert_true(r || allocated_bytes() - before < HOLE_BYTES / 4);
	return r;
}

/* 250 features with the same 64 MiB: most are not read, and too large ones cost only themselves. */
static void features_in_a_hole_take_a_part_of_the_memory(void **state)
{
	enum { FIRST = PERFDATA_BUILD_ID, LAST = 251 };
	struct build_event e = {.ids = {5}, .nids = 1};
	struct build b = {0}, none[LAST] = {{0}};
	unsigned int which[LAST];
	size_t n = 0;

	(void)state;
	build_file(&b, &e, 1);
	build_round(&b);
	for (unsigned int bit = FIRST; bit <= LAST; bit++)
		which[n++] = bit;
	size_t at = b.len;

	build_features(&b, which, none, n);
	for (size_t i = 0; i < n; i++)
		set_hole(&b, at + i * sizeof(struct perfdata_section));
	struct perfdata *d = NULL;

	assert_int_equal(open_with_hole(&b, &d), 0);
	/* 10 are too large, and those after the last known one are unknown. */
	assert_int_equal(perfdata_stats(d)->unknown_features,
			 10 + LAST - PERFDATA_FEATURE_LAST_KNOWN);
	assert_true(perfdata_info(d)->compressed);
	end_is_here(d);
	perfdata_close(d);
	build_free(&b);
}

static void ids_and_events_in_a_hole_take_a_part_of_the_memory(void **state)
{
	struct build_event e = {.ids = {5}, .nids = 1};
	struct build b = {0};
	struct perfdata *d = NULL;
	size_t n;

	(void)state;
	build_file(&b, &e, 1);
	build_round(&b);
	build_data_end(&b);
	set_hole(&b, sizeof(struct perfdata_file_header) + sizeof(struct perf_event_attr));
	assert_int_equal(open_with_hole(&b, &d), -ENOMEM);
	set_hole(&b, offsetof(struct perfdata_file_header, attrs));
	memcpy(b.bytes + offsetof(struct perfdata_file_header, attr_size), &(uint64_t){4096}, 8);
	assert_int_equal(open_with_hole(&b, &d), 0);
	perfdata_events(d, &n);
	assert_int_equal(n, HOLE_BYTES / 4096);
	perfdata_close(d);
	build_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attrs_of_every_size_are_read),
		cmocka_unit_test(events_without_a_name_get_perfs_name),
		cmocka_unit_test(features_are_read_and_unknown_ones_counted),
		cmocka_unit_test(features_come_as_records_in_pipe_mode),
		cmocka_unit_test(damaged_features_cost_only_themselves),
		cmocka_unit_test(features_in_a_hole_take_a_part_of_the_memory),
		cmocka_unit_test(ids_and_events_in_a_hole_take_a_part_of_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
