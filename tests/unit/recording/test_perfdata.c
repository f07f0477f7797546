#include "recording/perfdata.h"
#include "tests/unit/cpu_limit.h"
#include "tests/unit/perfdata_check.h"

#define ALL_SAMPLE_BITS ((1ULL << 25) - 1)
#define BRANCH_COUNTERS (1ULL << 19)

static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER,
				 0x401000, 0x402000};
static const uint64_t regs[] = {11, 12, 13};
static const uint64_t stack_words[] = {21, 22, 23, 24};
static const uint64_t branch_words[] = {1, 2, 3, 4, 5, 6};

static void put_read(struct build *b, uint64_t format, uint64_t value, uint64_t id)
{
	uint64_t n = format & PERF_FORMAT_GROUP ? 2 : 1;

	if (format & PERF_FORMAT_GROUP)
		build_u64(b, n);
	else
		build_u64(b, value);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		build_u64(b, 0xe0);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		build_u64(b, 0xe1);
	for (uint64_t i = 0; i < n; i++) {
		if (format & PERF_FORMAT_GROUP)
			build_u64(b, value + i * 10);
		if (format & PERF_FORMAT_ID)
			build_u64(b, id + i);
		if (format & PERF_FORMAT_LOST)
			build_u64(b, 0xe2);
	}
}

static void put_sample_tail(struct build *b, const struct perf_event_attr *a)
{
	uint64_t t = a->sample_type;

	if (t & PERF_SAMPLE_RAW) {
		build_u32(b, 12);
		build_put(b, "rawrawrawra", 12);
	}
	if (t & PERF_SAMPLE_BRANCH_STACK) {
		build_u64(b, 2);
		if (a->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			build_u64(b, 0xb0);
		build_put(b, branch_words, sizeof(branch_words));
		if (a->branch_sample_type & BRANCH_COUNTERS)
			build_put(b, branch_words, 16);
	}
	if (t & PERF_SAMPLE_REGS_USER) {
		build_u64(b, PERF_SAMPLE_REGS_ABI_64);
		build_put(b, regs, sizeof(regs));
	}
	if (t & PERF_SAMPLE_STACK_USER) {
		build_u64(b, sizeof(stack_words));
		build_put(b, stack_words, sizeof(stack_words));
		build_u64(b, 16);
	}
	if (t & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		build_u64(b, 0x500000077);
	if (t & PERF_SAMPLE_DATA_SRC)
		build_u64(b, 0xd0);
	if (t & PERF_SAMPLE_TRANSACTION)
		build_u64(b, 0x7a);
	if (t & PERF_SAMPLE_REGS_INTR) {
		build_u64(b, PERF_SAMPLE_REGS_ABI_64);
		build_u64(b, 1);
	}
	if (t & PERF_SAMPLE_PHYS_ADDR)
		build_u64(b, 0xaaa);
	if (t & PERF_SAMPLE_CGROUP)
		build_u64(b, 0xc9);
	if (t & PERF_SAMPLE_DATA_PAGE_SIZE)
		build_u64(b, 4096);
	if (t & PERF_SAMPLE_CODE_PAGE_SIZE)
		build_u64(b, 4096);
	if (t & PERF_SAMPLE_AUX) {
		build_u64(b, 8);
		build_u64(b, 0xaa);
	}
}

static void put_sample(struct build *b, const struct perf_event_attr *a, uint64_t id,
		       uint64_t time_ns, uint64_t value)
{
	uint64_t t = a->sample_type;

	build_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	if (t & PERF_SAMPLE_IDENTIFIER)
		build_u64(b, id);
	if (t & PERF_SAMPLE_IP)
		build_u64(b, 0x401000);
	if (t & PERF_SAMPLE_TID) {
		build_u32(b, 70);
		build_u32(b, 71);
	}
	if (t & PERF_SAMPLE_TIME)
		build_u64(b, time_ns);
	if (t & PERF_SAMPLE_ADDR)
		build_u64(b, 0xadd);
	if (t & PERF_SAMPLE_ID)
		build_u64(b, id);
	if (t & PERF_SAMPLE_STREAM_ID)
		build_u64(b, 0x57);
	if (t & PERF_SAMPLE_CPU)
		build_u64(b, 3);
	if (t & PERF_SAMPLE_PERIOD)
		build_u64(b, 1001001);
	if (t & PERF_SAMPLE_READ)
		put_read(b, a->read_format, value, id);
	if (t & PERF_SAMPLE_CALLCHAIN) {
		build_u64(b, 5);
		build_put(b, chain, sizeof(chain));
	}
	put_sample_tail(b, a);
	build_record_end(b);
}

static void check_sample_tail(const struct perf_event_attr *a, const struct perfdata_sample *s)
{
	uint64_t t = a->sample_type;

	assert_int_equal(s->raw_bytes, t & PERF_SAMPLE_RAW ? 12 : 0);
	if (s->raw_bytes)
		assert_memory_equal(s->raw, "rawrawrawra", 12);
	assert_int_equal(s->nbranches, t & PERF_SAMPLE_BRANCH_STACK ? 2 : 0);
	if (s->nbranches)
		assert_memory_equal(s->branches, branch_words, sizeof(branch_words));
	assert_int_equal(s->user_regs != NULL, !!(t & PERF_SAMPLE_REGS_USER));
	if (s->user_regs)
		assert_memory_equal(s->user_regs, regs, sizeof(regs));
	assert_int_equal(s->user_stack_bytes, t & PERF_SAMPLE_STACK_USER ? 16 : 0);
	if (s->user_stack)
		assert_memory_equal(s->user_stack, stack_words, 16);
	assert_int_equal(s->weight, t & PERF_SAMPLE_WEIGHT          ? 0x500000077
				    : t & PERF_SAMPLE_WEIGHT_STRUCT ? 0x77
								    : 0);
	assert_int_equal(s->transaction, t & PERF_SAMPLE_TRANSACTION ? 0x7a : 0);
	assert_int_equal(s->phys_addr, t & PERF_SAMPLE_PHYS_ADDR ? 0xaaa : 0);
	assert_int_equal(s->cgroup, t & PERF_SAMPLE_CGROUP ? 0xc9 : 0);
}

static void check_sample(const struct perf_event_attr *a, const struct perfdata_record *r,
			 uint64_t id)
{
	const struct perfdata_sample *s = &r->sample;
	uint64_t t = a->sample_type;

	assert_int_equal(s->id,
			 t & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ) ? id : 0);
	assert_int_equal(s->ip, t & PERF_SAMPLE_IP ? 0x401000 : 0);
	assert_int_equal(r->pid, t & PERF_SAMPLE_TID ? 70 : -1);
	assert_int_equal(r->tid, t & PERF_SAMPLE_TID ? 71 : -1);
	assert_int_equal(r->time_ns, t & PERF_SAMPLE_TIME ? 12345 : 0);
	assert_int_equal(s->addr, t & PERF_SAMPLE_ADDR ? 0xadd : 0);
	assert_int_equal(r->cpu, t & PERF_SAMPLE_CPU ? 3 : -1);
	assert_int_equal(s->period, t & PERF_SAMPLE_READ     ? 500
				    : t & PERF_SAMPLE_PERIOD ? 1001001
							     : 4000);
	assert_int_equal(s->ncallchain, t & PERF_SAMPLE_CALLCHAIN ? 5 : 0);
	if (s->callchain)
		assert_memory_equal(s->callchain, chain, sizeof(chain));
	check_sample_tail(a, s);
}

static void a_sample_is_read_back(uint64_t type, uint64_t read_format, uint64_t branch_type)
{
	struct build_event e = {.ids = {100}, .nids = 1};
	struct build b = {0};
	struct perfdata_record r;

	e.attr.sample_type = type;
	e.attr.sample_id_all = 1;
	e.attr.sample_period = 4000;
	e.attr.read_format = read_format | PERF_FORMAT_ID;
	e.attr.branch_sample_type = branch_type;
	e.attr.sample_regs_user = 0x10101;
	e.attr.sample_regs_intr = 0x1;
	build_file(&b, &e, 1);
	put_sample(&b, &e.attr, 100, 12345, 500);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = NULL;

	assert_int_equal(perfdata_open(fd, &d, NULL), 0);
	next_is(d, &r, PERF_RECORD_SAMPLE);
	check_sample(&e.attr, &r, 100);
	if (type & PERF_SAMPLE_READ && read_format & PERF_FORMAT_GROUP) {
		/* The group's second counter. Its id is not in the file, but the file has only one
		 * event. */
		next_is(d, &r, PERF_RECORD_SAMPLE);
		assert_int_equal(r.sample.period, 510);
		assert_int_equal(r.sample.id, 101);
	}
	end_is_here(d);
	assert_int_equal(perfdata_stats(d)->damaged, 0);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void every_sample_type_is_read_back(void **state)
{
	uint64_t x = 88172645463325252ULL;

	(void)state;
	for (unsigned int bit = 0; bit < 25; bit++)
		a_sample_is_read_back(1ULL << bit, 0, 0);
	a_sample_is_read_back(ALL_SAMPLE_BITS, PERF_FORMAT_GROUP,
			      PERF_SAMPLE_BRANCH_HW_INDEX | BRANCH_COUNTERS);
	for (unsigned int i = 0; i < 1000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		a_sample_is_read_back(x & ALL_SAMPLE_BITS, 0,
				      x >> 40 & PERF_SAMPLE_BRANCH_HW_INDEX);
	}
}

static void every_read_format_is_read_back(void **state)
{
	(void)state;
	for (uint64_t format = 0; format < PERF_FORMAT_MAX; format++)
		a_sample_is_read_back(PERF_SAMPLE_READ | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
				      format, 0);
}

static void counters_of_a_group_become_samples_of_their_events(void **state)
{
	struct build_event e[2] = {{.ids = {100}, .nids = 1}, {.ids = {101}, .nids = 1}};
	struct build b = {0};
	struct perfdata_record r;

	(void)state;
	for (int i = 0; i < 2; i++) {
		e[i].attr.sample_type =
			PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
		e[i].attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
		e[i].attr.sample_id_all = 1;
	}
	build_file(&b, e, 2);
	put_sample(&b, &e[0].attr, 100, 1, 500);
	put_sample(&b, &e[0].attr, 100, 2, 507);
	put_sample(&b, &e[0].attr, 100, 3, 507); /* nothing moved: no samples */
	build_data_end(&b);
	struct perfdata *d = open_built(&b);
	static const struct {
		uint32_t event;
		uint64_t time_ns, period;
	} want[] = {{0, 1, 500}, {1, 1, 510}, {0, 2, 7}, {1, 2, 7}};

	for (size_t i = 0; i < 4; i++) {
		next_is(d, &r, PERF_RECORD_SAMPLE);
		assert_int_equal(r.event, want[i].event);
		assert_int_equal(r.again, i % 2);
		assert_int_equal(r.time_ns, want[i].time_ns);
		assert_int_equal(r.sample.period, want[i].period);
	}
	end_is_here(d);
	assert_int_equal(perfdata_stats(d)->samples, 4);
	perfdata_close(d);
	build_free(&b);
}

/* sample_id for the given type: pid 8, tid 9, cpu 5 */
static void put_trailer(struct build *b, uint64_t t, uint64_t time_ns, uint64_t id)
{
	if (t & PERF_SAMPLE_TID) {
		build_u32(b, 8);
		build_u32(b, 9);
	}
	if (t & PERF_SAMPLE_TIME)
		build_u64(b, time_ns);
	if (t & PERF_SAMPLE_ID)
		build_u64(b, id);
	if (t & PERF_SAMPLE_STREAM_ID)
		build_u64(b, 0x57);
	if (t & PERF_SAMPLE_CPU)
		build_u64(b, 5);
	if (t & PERF_SAMPLE_IDENTIFIER)
		build_u64(b, id);
}

static void put_mmap2(struct build *b, bool build_id)
{
	build_record(b, PERF_RECORD_MMAP2,
		     (uint16_t)(PERF_RECORD_MISC_USER |
				(build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0)));
	build_u64(b, 11 | 12ULL << 32);
	build_u64(b, 0x1000);
	build_u64(b, 0x2000);
	build_u64(b, 0x3000);
	if (build_id) {
		build_put(b, "\x14\0\0\0abcdefghijklmnopqrst", 24);
	} else {
		build_u64(b, 8 | 1ULL << 32);
		build_u64(b, 4242);
		build_u64(b, 4243);
	}
	build_u64(b, 5 | 2ULL << 32);
	build_text(b, "/usr/lib/libc.so.6");
}

static void put_others(struct build *b, uint64_t t)
{
	build_record(b, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	build_u64(b, 0xffffffffULL);
	build_u64(b, 0xffffffff81000000);
	build_u64(b, 0x1000000);
	build_u64(b, 0xffffffff81000000);
	build_text(b, "[kernel.kallsyms]_text");
	put_trailer(b, t, 1, 100);
	build_record_end(b);
	for (int i = 0; i < 2; i++) {
		put_mmap2(b, i);
		put_trailer(b, t, 2 + i, 100);
		build_record_end(b);
	}
	build_record(b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	build_u64(b, 11 | 12ULL << 32);
	build_text(b, "a comm");
	put_trailer(b, t, 4, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_FORK, 0);
	build_u64(b, 21 | 11ULL << 32);
	build_u64(b, 22 | 12ULL << 32);
	build_u64(b, 5);
	put_trailer(b, t, 5, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_LOST, 0);
	build_u64(b, 100);
	build_u64(b, 33);
	put_trailer(b, t, 6, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_LOST_SAMPLES, 0);
	build_u64(b, 44);
	put_trailer(b, t, 7, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_KSYMBOL, 0);
	build_u64(b, 0xffffffffc0000000);
	build_u64(b, 0x40 | 1ULL << 32 | 1ULL << 48);
	build_text(b, "bpf_prog_1234");
	put_trailer(b, t, 8, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_THROTTLE, 0);
	build_u64(b, 9);
	build_u64(b, 100);
	build_u64(b, 101);
	put_trailer(b, t, 9, 100);
	build_record_end(b);
	build_record(b, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
	put_trailer(b, t, 10, 100);
	build_record_end(b);
}

static void check_mmap2(const struct perfdata_record *r, bool build_id)
{
	const struct perfdata_mmap *m = &r->mmap;

	assert_int_equal(r->pid, 11);
	assert_int_equal(r->tid, 12);
	assert_int_equal(m->addr, 0x1000);
	assert_int_equal(m->len, 0x2000);
	assert_int_equal(m->pgoff, 0x3000);
	assert_int_equal(m->prot, 5);
	assert_int_equal(m->flags, 2);
	assert_string_equal(m->filename, "/usr/lib/libc.so.6");
	assert_int_equal(m->build_id.len, build_id ? 20 : 0);
	if (build_id)
		assert_memory_equal(m->build_id.bytes, "abcdefghijklmnopqrst", 20);
	assert_int_equal(m->maj, build_id ? 0 : 8);
	assert_int_equal(m->min, build_id ? 0 : 1);
	assert_int_equal(m->ino, build_id ? 0 : 4242);
	assert_int_equal(m->ino_generation, build_id ? 0 : 4243);
}

static void check_others(struct perfdata *d, uint64_t t, bool trailers)
{
	struct perfdata_record r;

	next_is(d, &r, PERF_RECORD_MMAP);
	assert_int_equal(r.pid, -1);
	assert_int_equal(r.mmap.addr, 0xffffffff81000000);
	assert_string_equal(r.mmap.filename, "[kernel.kallsyms]_text");
	next_is(d, &r, PERF_RECORD_MMAP2);
	check_mmap2(&r, false);
	assert_int_equal(r.time_ns, trailers && t & PERF_SAMPLE_TIME ? 2 : 0);
	assert_int_equal(r.cpu, trailers && t & PERF_SAMPLE_CPU ? 5 : -1);
	next_is(d, &r, PERF_RECORD_MMAP2);
	check_mmap2(&r, true);
	next_is(d, &r, PERF_RECORD_COMM);
	assert_string_equal(r.comm.name, "a comm");
	assert_true(r.comm.exec);
	assert_int_equal(r.tid, 12);
	next_is(d, &r, PERF_RECORD_FORK);
	assert_int_equal(r.pid, 21);
	assert_int_equal(r.tid, 22);
	assert_int_equal(r.task.ppid, 11);
	assert_int_equal(r.task.ptid, 12);
	assert_int_equal(r.time_ns, 5);
	next_is(d, &r, PERF_RECORD_LOST);
	assert_int_equal(r.lost.lost, 33);
	next_is(d, &r, PERF_RECORD_LOST_SAMPLES);
	assert_int_equal(r.lost.lost, 44);
	assert_int_equal(r.pid, trailers && t & PERF_SAMPLE_TID ? 8 : -1);
	next_is(d, &r, PERF_RECORD_KSYMBOL);
	assert_int_equal(r.ksymbol.len, 0x40);
	assert_int_equal(r.ksymbol.flags, 1);
	assert_string_equal(r.ksymbol.name, "bpf_prog_1234");
	next_is(d, &r, PERF_RECORD_THROTTLE);
	assert_int_equal(r.throttle.stream_id, 101);
	assert_int_equal(r.time_ns, 9);
	next_is(d, &r, PERF_RECORD_SWITCH);
	assert_int_equal(r.tid, trailers && t & PERF_SAMPLE_TID ? 9 : -1);
	end_is_here(d);
	assert_int_equal(perfdata_stats(d)->lost_events, 33);
	assert_int_equal(perfdata_stats(d)->lost_samples, 44);
	assert_int_equal(perfdata_stats(d)->throttled, 1);
}

static void other_records_are_read_back_with_every_trailer(void **state)
{
	static const uint64_t bits[] = {PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
					PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
					PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};

	(void)state;
	for (unsigned int set = 0; set < 128; set++) {
		struct build_event e = {.ids = {100}, .nids = 1};
		struct build b = {0};
		bool trailers = set & 64;

		for (unsigned int i = 0; i < 6; i++)
			if (set >> i & 1)
				e.attr.sample_type |= bits[i];
		e.attr.sample_id_all = trailers;
		build_file(&b, &e, 1);
		put_others(&b, trailers ? e.attr.sample_type : 0);
		build_data_end(&b);
		int fd = build_fd(&b);
		struct perfdata *d = NULL;

		assert_int_equal(perfdata_open(fd, &d, NULL), 0);
		check_others(d, e.attr.sample_type, trailers);
		perfdata_close(d);
		close(fd);
		build_free(&b);
	}
}

static void events_of_different_shape_are_distinguished(uint64_t id_bit)
{
	struct build_event e[3] = {
		{.ids = {7, 8}, .nids = 2}, {.ids = {9}, .nids = 1}, {.ids = {10}, .nids = 1}};
	struct build b = {0};
	struct perfdata_record r;

	e[0].attr.sample_type = id_bit | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_CALLCHAIN;
	e[1].attr.sample_type =
		id_bit | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
	e[2].attr.sample_type =
		id_bit | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
	for (int i = 0; i < 3; i++)
		e[i].attr.sample_id_all = 1;
	build_file(&b, e, 3);
	put_sample(&b, &e[1].attr, 9, 1, 0);
	put_sample(&b, &e[0].attr, 8, 2, 0);
	put_sample(&b, &e[2].attr, 10, 3, 0);
	put_sample(&b, &e[0].attr, 7, 4, 0);
	put_sample(&b, &e[0].attr, 77, 5, 0); /* of no thread */
	build_record(&b, PERF_RECORD_COMM, 0);
	build_u64(&b, 11 | 12ULL << 32);
	build_text(&b, "x");
	put_trailer(&b, e[1].attr.sample_type, 6, 9);
	build_record_end(&b);
	build_data_end(&b);
	struct perfdata *d = open_built(&b);
	static const uint32_t want[] = {1, 0, 2, 0};

	for (size_t i = 0; i < 4; i++) {
		next_is(d, &r, PERF_RECORD_SAMPLE);
		assert_int_equal(r.event, want[i]);
		assert_int_equal(r.time_ns, i + 1);
		assert_int_equal(r.sample.raw_bytes, want[i] == 1 ? 12 : 0);
		assert_int_equal(r.sample.ncallchain, want[i] == 0 ? 5 : 0);
		assert_int_equal(r.sample.period, want[i] == 2 ? 1001001 : 0);
	}
	next_is(d, &r, PERF_RECORD_COMM);
	assert_int_equal(r.event, 1);
	end_is_here(d);
	assert_int_equal(perfdata_stats(d)->damaged, 1);
	perfdata_close(d);
	build_free(&b);
}

static void events_are_distinguished_by_id_and_by_identifier(void **state)
{
	(void)state;
	events_of_different_shape_are_distinguished(PERF_SAMPLE_IDENTIFIER);
	events_of_different_shape_are_distinguished(PERF_SAMPLE_ID);
}

/* A kernel that sets the flag for all listeners because one of them wants build ids. */
static void a_build_id_flag_without_a_build_id_is_ignored(void **state)
{
	for (int requested = 0; requested < 2; requested++) {
		struct build_event e = {
			.attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(e.attr)}};
		struct perfdata_record record;
		struct perfdata *d;
		struct build b = {0};

		(void)state;
		e.attr.build_id = requested ? 1 : 0;
		build_file(&b, &e, 1);
		build_record(&b, PERF_RECORD_MMAP2,
			     PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
		build_u64(&b, 11 | 12ULL << 32);
		build_u64(&b, 0x1000);
		build_u64(&b, 0x2000);
		build_u64(&b, 0x3000);
		build_u64(&b, 8 | 1ULL << 32); /* device 08:01, or a build id of 8 bytes */
		build_u64(&b, 4242);
		build_u64(&b, 0);
		build_u64(&b, 5 | 2ULL << 32);
		build_text(&b, "/bin/a");
		build_record_end(&b);
		build_data_end(&b);
		int fd = build_fd(&b);

		assert_int_equal(perfdata_open(fd, &d, NULL), 0);
		assert_int_equal(perfdata_next(d, &record, NULL), 1);
		assert_int_equal(record.mmap.build_id.len, requested ? 8 : 0);
		assert_int_equal(record.mmap.maj, requested ? 0 : 8);
		assert_int_equal(record.mmap.ino, requested ? 0 : 4242);
		perfdata_close(d);
		close(fd);
		build_free(&b);
	}
}

/* Each map asks whether an event requested build ids; it does not visit all events for that. */
static void many_events_do_not_slow_maps(void **state)
{
	enum { EVENTS = 16000, MAPS = 300000 };
	struct build_event *e = calloc(EVENTS, sizeof(*e));
	struct build b = {0};
	struct perfdata_record record;
	clock_t begun;

	(void)state;
	assert_non_null(e);
	for (size_t i = 0; i < EVENTS; i++)
		e[i].attr = (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
						     .size = sizeof(e[i].attr)};
	build_file(&b, e, EVENTS);
	for (size_t i = 0; i < MAPS; i++) {
		put_mmap2(&b, true);
		build_record_end(&b);
	}
	build_data_end(&b);
	struct perfdata *d = open_built(&b);

	begun = clock();
	for (size_t i = 0; i < MAPS; i++)
		next_is(d, &record, PERF_RECORD_MMAP2);
	assert_int_equal(record.mmap.build_id.len, 20);
	assert_true(clock() - begun < cpu_limit(1));
	end_is_here(d);
	perfdata_close(d);
	build_free(&b);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_type_is_read_back),
		cmocka_unit_test(every_read_format_is_read_back),
		cmocka_unit_test(counters_of_a_group_become_samples_of_their_events),
		cmocka_unit_test(other_records_are_read_back_with_every_trailer),
		cmocka_unit_test(a_build_id_flag_without_a_build_id_is_ignored),
		cmocka_unit_test(many_events_do_not_slow_maps),
		cmocka_unit_test(events_are_distinguished_by_id_and_by_identifier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
