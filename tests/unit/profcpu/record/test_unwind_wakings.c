/* Wakings between the rings and perf.data: which are recorded, under which name, and how senseless
 * ones are handled. */
#include "profcpu/record/unwind.h"

#include "base/cleanup.h"
#include "recording/perfdata_offcpu.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define TARGET 71 /* a thread of PID */
#define PID 70
#define STRANGER 90
#define ID_CLOCK 1000
#define ID_SWITCH 1001
#define ID_WAKING 1002
#define PID_OFFSET 24
#define RAW_BYTES 36
#define KERNEL_IP UINT64_C(0xffffffff81000010)
#define USER_IP UINT64_C(0x400100)
#define RECORDS_BYTES ((size_t)1 << 16)

struct fixture {
	int fd, idx_fd, offcpu_fd; /* the last two belong to the unwind, these are others of the
				      same files */
	struct record_offcpu *offcpu;
	struct record_unwind *unwind;
	struct perfdata_writer *writer;
	unsigned char *raw;
	size_t len;
};

/* The foreign process that was read last; the count of reads */
static int reported;
static size_t nreported;

static int report_thread(const struct sampler_synthesis *from, pid_t pid, sampler_synthesized take,
			 void *ctx)
{
	struct {
		struct perf_event_header h;
		uint32_t pid, tid;
		char comm[8];
		struct {
			uint32_t pid, tid;
			uint64_t time_ns;
			uint32_t cpu, res;
			uint64_t id;
		} sample_id;
	} record = {.h = {.type = PERF_RECORD_COMM, .size = sizeof(record)},
		    .pid = (uint32_t)pid,
		    .tid = (uint32_t)pid,
		    .comm = "strange"};

	assert_string_equal(from->proc, "/nowhere");
	reported = pid;
	nreported++;
	return take(ctx, &record, sizeof(record));
}

static struct perf_event_attr attr_of(uint64_t more)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN | more,
		.sample_id_all = 1,
	};
}

static int begin(void **state)
{
	static const uint64_t ids[] = {ID_CLOCK, ID_SWITCH, ID_WAKING};
	const struct sampler_opened opened[] = {
		{.attr = attr_of(0), .name = "cpu-clock", .ids = &ids[0], .nids = 1},
		{.attr = attr_of(0), .name = "context-switches", .ids = &ids[1], .nids = 1},
		{.attr = attr_of(PERF_SAMPLE_RAW),
		 .name = "sched:sched_waking",
		 .ids = &ids[2],
		 .nids = 1}};
	const struct perfdata_writer_event events[] = {
		{.attr = opened[0].attr, .name = "cpu-clock", .ids = &ids[0], .nids = 1},
		{.attr = perfdata_offcpu_attr(&opened[0].attr, PERFDATA_OFFCPU_WAIT),
		 .name = PERFDATA_OFFCPU_NAME,
		 .ids = &ids[1],
		 .nids = 1},
		{.attr = perfdata_offcpu_attr(&opened[0].attr, PERFDATA_OFFCPU_WAKER),
		 .name = PERFDATA_WAKER_NAME,
		 .ids = &ids[2],
		 .nids = 1}};
	const struct record_offcpu_options offcpu = {
		.begin_ns = 1, .first_pids = true, .proc = "/nowhere"};
	struct fixture *f = calloc(1, sizeof(*f));

	reported = 0;
	nreported = 0;
	struct record_unwind_options options = {.opened = opened,
						.nopened = 3,
						.wakings = true,
						.waking_pid_offset = PID_OFFSET,
						.proc = "/nowhere",
						.read_waker = report_thread,
						.waker_wait_ns = 10 * NS_PER_S,
						.synthesis = {.proc = "/nowhere"}};

	f->raw = calloc(1, RECORDS_BYTES);
	f->fd = memfd_create("perf.data", MFD_CLOEXEC);
	f->idx_fd = memfd_create("samples.idx", MFD_CLOEXEC);
	f->offcpu_fd = memfd_create("offcpu.idx", MFD_CLOEXEC);
	options.idx_fd = dup(f->idx_fd);
	options.offcpu_idx_fd = dup(f->offcpu_fd);
	assert_int_equal(record_offcpu_new(&offcpu, &f->offcpu), 0);
	options.offcpu = f->offcpu;
	assert_int_equal(record_unwind_new(&options, &f->unwind), 0);
	assert_int_equal(
		perfdata_writer_new(f->fd, events, 3,
				    &(struct perfdata_writer_info){.version = "profcpu test"},
				    &f->writer),
		0);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;

	record_unwind_free(f->unwind);
	record_offcpu_free(f->offcpu);
	perfdata_writer_free(f->writer);
	close(f->fd);
	close(f->idx_fd);
	close(f->offcpu_fd);
	free(f->raw);
	free(f);
	return 0;
}

static void put_word(struct fixture *f, uint64_t word)
{
	memcpy(f->raw + f->len, &word, 8);
	f->len += 8;
}

static uint64_t pair(int32_t low, int32_t high)
{
	return (uint32_t)low | (uint64_t)(uint32_t)high << 32;
}

static size_t put_header(struct fixture *f, uint32_t type, uint16_t misc)
{
	const struct perf_event_header h = {.type = type, .misc = misc};

	memcpy(f->raw + f->len, &h, sizeof(h));
	f->len += sizeof(h);
	return f->len - sizeof(h);
}

static void end_record(struct fixture *f, size_t at)
{
	struct perf_event_header *h = (void *)(f->raw + at);

	h->size = (uint16_t)(f->len - at);
}

static void put_sample_id(struct fixture *f, uint64_t time_ns, int32_t tid, uint64_t id)
{
	put_word(f, pair(PID, tid));
	put_word(f, time_ns);
	put_word(f, 0);
	put_word(f, id);
}

/* The thread exists. */
static void put_fork(struct fixture *f)
{
	size_t at = put_header(f, PERF_RECORD_FORK, 0);

	put_word(f, pair(PID, 1));
	put_word(f, pair(TARGET, 1));
	put_word(f, 0);
	put_sample_id(f, 0, 0, 0);
	end_record(f, at);
}

static void put_switch(struct fixture *f, uint64_t time_ns, bool out)
{
	size_t at =
		put_header(f, PERF_RECORD_SWITCH_CPU_WIDE, out ? PERF_RECORD_MISC_SWITCH_OUT : 0);

	put_word(f, 0);
	put_sample_id(f, time_ns, TARGET, ID_SWITCH);
	end_record(f, at);
}

/* A waking of `woken` by a thread, or by the flags of its payload. */
static void put_waking(struct fixture *f, uint64_t time_ns, int32_t woken, int32_t by,
		       uint8_t flags, uint32_t raw_bytes)
{
	unsigned char payload[RAW_BYTES] = {0x77, 1, flags};
	size_t at = put_header(f, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	uint32_t padded = (raw_bytes + 4 + 7) / 8 * 8 - 4;

	memcpy(payload + 4, &by, 4);
	memcpy(payload + PID_OFFSET, &woken, 4);
	put_word(f, ID_WAKING);
	put_word(f, KERNEL_IP);
	put_word(f, pair(by, by));
	put_word(f, time_ns);
	put_word(f, 0);
	put_word(f, 4);
	put_word(f, PERF_CONTEXT_KERNEL);
	put_word(f, KERNEL_IP);
	put_word(f, PERF_CONTEXT_USER);
	put_word(f, USER_IP);
	memcpy(f->raw + f->len, &padded, 4);
	memcpy(f->raw + f->len + 4, payload, raw_bytes < RAW_BYTES ? raw_bytes : RAW_BYTES);
	f->len += 4 + padded;
	end_record(f, at);
}

static void finish(struct fixture *f)
{
	assert_int_equal(record_unwind_records(f->unwind, f->raw, f->len), 0);
	assert_int_equal(record_unwind_round(f->unwind, f->writer, 9000), 0);
	assert_int_equal(perfdata_writer_finish(f->writer, 1, 2), 0);
}

/* The n-th sample of that event. */
static struct perfdata *read_sample(const struct fixture *f, const char *event, size_t n,
				    struct perfdata_record *ret_record)
{
	const struct perfdata_event *events;
	struct perfdata *d;
	size_t nevents;

	assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
	assert_int_equal(perfdata_open(f->fd, &d, NULL), 0);
	events = perfdata_events(d, &nevents);
	while (perfdata_next(d, ret_record, NULL) == 1)
		if (ret_record->type == PERF_RECORD_SAMPLE &&
		    !strcmp(events[ret_record->event].name, event) && !n--)
			return d;
	perfdata_close(d);
	return NULL;
}

static struct offcpu_idx_wait first_wait(const struct fixture *f)
{
	struct offcpu_idx_wait wait;
	struct offcpu_idx idx;

	assert_int_equal(offcpu_idx_read(f->offcpu_fd, &idx, NULL), 0);
	assert_true(idx.nwaits > 0);
	wait = idx.waits[0];
	offcpu_idx_free(&idx);
	return wait;
}

static void a_wait_refers_to_the_sample_of_its_waker(void **state)
{
	struct fixture *f = *state;
	struct offcpu_idx_wait wait;
	struct perfdata_record r;
	struct perfdata *d;

	put_fork(f);
	put_switch(f, 1000, true);
	put_waking(f, 2000, TARGET, STRANGER, 0, RAW_BYTES);
	put_waking(f, 2001, 4711, STRANGER, 0, RAW_BYTES); /* not one of our threads */
	put_switch(f, 2500, false);
	put_switch(f, 3000, true);
	put_waking(f, 4000, TARGET, STRANGER, 0, RAW_BYTES); /* the same again */
	put_switch(f, 4500, false);
	finish(f);
	wait = first_wait(f);
	assert_true(wait.waker == STRANGER && wait.woken_ns == 2000 && wait.runnable_ns == 500 &&
		    wait.flags == 0);
	d = read_sample(f, PERFDATA_WAKER_NAME, 0, &r);
	assert_non_null(d);
	assert_int_equal(r.file_off, wait.waker_off);
	assert_true(r.pid == STRANGER && r.tid == STRANGER && r.time_ns == 2000 &&
		    r.sample.period == 0);
	assert_int_equal(r.sample.ncallchain, 4);
	perfdata_close(d);
	assert_null(read_sample(f, PERFDATA_WAKER_NAME, 1, &r));
	d = read_sample(f, PERFDATA_OFFCPU_NAME, 0, &r);
	assert_non_null(d);
	assert_int_equal(r.file_off, wait.file_off);
	perfdata_close(d);
	/* Recorded once; its name comes before it in the recording. */
	assert_int_equal(reported, STRANGER);
	assert_int_equal(nreported, 1);
	assert_int_equal(record_unwind_stats(f->unwind).damaged, 0);
}

static void an_interrupt_belongs_to_no_thread(void **state)
{
	struct fixture *f = *state;
	struct offcpu_idx_wait wait;
	struct perfdata_record r;
	struct perfdata *d;

	put_fork(f);
	put_switch(f, 1000, true);
	put_waking(f, 2000, TARGET, STRANGER, 0x08, RAW_BYTES);
	put_switch(f, 2500, false);
	finish(f);
	wait = first_wait(f);
	assert_true(wait.waker == 0 && wait.flags == OFFCPU_IDX_INTERRUPT && wait.woken_ns == 2000);
	d = read_sample(f, PERFDATA_WAKER_NAME, 0, &r);
	assert_non_null(d);
	assert_true(r.pid == 0 && r.tid == 0);
	assert_int_equal(r.sample.ncallchain,
			 2); /* without the user part of the interrupted thread */
	perfdata_close(d);
	assert_int_equal(nreported, 0);
}

static void cut_payloads_are_counted(void **state)
{
	static const uint32_t sizes[] = {0, 4, 7, 8, 20, PID_OFFSET + 3};
	struct fixture *f = *state;

	put_fork(f);
	put_switch(f, 1000, true);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put_waking(f, 2000 + i, TARGET, STRANGER, 0, sizes[i]);
	put_switch(f, 2500, false);
	finish(f);
	/* The kernel's padding belongs to the payload: 27 bytes become 28. */
	assert_int_equal(record_unwind_stats(f->unwind).damaged, 5);
	assert_true(first_wait(f).woken_ns == 2005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wait_refers_to_the_sample_of_its_waker, begin,
						end),
		cmocka_unit_test_setup_teardown(an_interrupt_belongs_to_no_thread, begin, end),
		cmocka_unit_test_setup_teardown(cut_payloads_are_counted, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
