/* The path of raw records from the rings to perf.data. */
#include "profcpu/record/unwind_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "recording/manifest.h"
#include "recording/perfdata_format.h"
#include "recording/samples_idx.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 0x3fffffff /* above any real PID */
#define STACK UINT64_C(0x7ffd00001000)
#define CODE UINT64_C(0x400000) /* of memory without a file, whose frames have frame pointers */
#define STACK_WORDS 8

struct fixture {
	char dir[64];
	int dir_fd, fd;
	struct perf_event_attr attr;
	struct sampler_opened opened;
	struct perfdata_writer *writer;
	struct record_unwind *unwind;
	int idx_fd;         /* owned by the unwind */
	unsigned char *raw; /* records of one ring */
	size_t len;
	int32_t pid; /* of maps and samples */
	bool keep_32bit;
	uint64_t memory; /* struct record_unwind_options */
	uint64_t abi;    /* of samples; 0: 64 bits */
};

static void begin_with(struct fixture *f, enum keep_stacks keep)
{
	struct record_unwind_options options = {.keep = keep,
						.keep_32bit = f->keep_32bit,
						.memory = f->memory,
						.opened = &f->opened,
						.nopened = 1};
	struct perfdata_writer_event event = {.name = "cpu-clock"};
	struct perfdata_writer_info info = {.version = "profcpu test"};

	f->attr = (struct perf_event_attr){
		.size = sizeof(f->attr),
		.type = PERF_TYPE_SOFTWARE,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_id_all = 1,
		.sample_regs_user = ARCH_PERF_REGS,
		.sample_stack_user = 8 * STACK_WORDS,
	};
	f->opened = (struct sampler_opened){.attr = f->attr, .name = "cpu-clock"};
	options.idx_fd = openat(f->dir_fd, RECORDING_SAMPLES, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(options.idx_fd >= 0);
	f->idx_fd = options.idx_fd;
	assert_int_equal(record_unwind_new(&options, &f->unwind), 0);
	event.attr = record_unwind_attr(f->unwind, &f->attr);
	assert_int_equal(perfdata_writer_new(f->fd, &event, 1, &info, &f->writer), 0);
}

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_record_unwind.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->fd = openat(f->dir_fd, RECORDING_PERF_DATA, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	f->raw = calloc(1, 1 << 20);
	f->pid = PID;
	*state = f;
	return f->fd < 0 || !f->raw;
}

static int end(void **state)
{
	struct fixture *f = *state;

	record_unwind_free(f->unwind);
	perfdata_writer_free(f->writer);
	unlinkat(f->dir_fd, RECORDING_PERF_DATA, 0);
	unlinkat(f->dir_fd, RECORDING_SAMPLES, 0);
	close(f->fd);
	close(f->dir_fd);
	rmdir(f->dir);
	free(f->raw);
	free(f);
	return 0;
}

static void put(struct fixture *f, const void *data, size_t bytes)
{
	memcpy(f->raw + f->len, data, bytes);
	f->len += bytes;
}

static void put_word(struct fixture *f, uint64_t word)
{
	put(f, &word, 8);
}

static size_t put_header(struct fixture *f, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};

	put(f, &h, sizeof(h));
	return f->len - sizeof(h);
}

static void end_record(struct fixture *f, size_t at)
{
	struct perf_event_header *h = (void *)(f->raw + at);

	h->size = (uint16_t)(f->len - at);
}

static void put_map(struct fixture *f, uint64_t time_ns)
{
	size_t at = put_header(f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	const char name[8] = "//anon";

	put_word(f, (uint32_t)f->pid | (uint64_t)f->pid << 32);
	put_word(f, CODE);
	put_word(f, 0x10000);
	for (int i = 0; i < 4; i++)
		put_word(f, 0);
	put_word(f, PROT_EXEC | PROT_READ);
	put(f, name, sizeof(name));
	put_word(f, (uint32_t)f->pid | (uint64_t)f->pid << 32);
	put_word(f, time_ns);
	put_word(f, 0);
	end_record(f, at);
}

/* A sample whose stack has two callers by frame pointers; the outermost frame pointer is 0. */
static void put_sample(struct fixture *f, uint64_t time_ns, uint64_t ip, size_t stack_words)
{
	const uint64_t stack[STACK_WORDS] = {0, 0, STACK + 32, CODE + 0x200, 0, CODE + 0x300, 0, 0};
	size_t at = put_header(f, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);

	put_word(f, ip);
	put_word(f, (uint32_t)f->pid | (uint64_t)f->pid << 32);
	put_word(f, time_ns);
	put_word(f, 1);
	put_word(f, 1000000);
	put_word(f, 4); /* a kernel part, then frame pointers as the kernel followed them */
	put_word(f, PERF_CONTEXT_KERNEL);
	put_word(f, UINT64_C(0xffffffff81000010));
	put_word(f, PERF_CONTEXT_USER);
	put_word(f, ip);
	put_word(f, f->abi ? f->abi : PERF_SAMPLE_REGS_ABI_64);
	for (int bit = 0; bit < 64; bit++)
		if (ARCH_PERF_REGS >> bit & 1)
			put_word(f, arch_perf_reg[bit] == ARCH_IP   ? ip
				    : arch_perf_reg[bit] == ARCH_SP ? STACK
				    : arch_perf_reg[bit] == ARCH_FP ? STACK + 16
								    : 0);
	put_word(f, 8 * stack_words);
	put(f, stack, 8 * stack_words);
	put_word(f, 8 * stack_words);
	end_record(f, at);
}

static void take(struct fixture *f, size_t from, size_t to)
{
	assert_int_equal(record_unwind_records(f->unwind, f->raw + from, to - from), 0);
}

static void end_round(struct fixture *f, bool last)
{
	assert_int_equal(record_unwind_round(f->unwind, f->writer, last ? 2 : 0), 0);
	if (last)
		assert_int_equal(perfdata_writer_finish(f->writer, 1, 2), 0);
}

/* The n-th sample of the file, read by a reader of its own. */
static struct perfdata *read_sample(const struct fixture *f, int n,
				    struct perfdata_record *ret_record)
{
	struct perfdata *d;

	assert_int_equal(lseek(f->fd, 0, SEEK_SET), 0);
	assert_int_equal(perfdata_open(f->fd, &d, NULL), 0);
	while (perfdata_next(d, ret_record, NULL) == 1)
		if (ret_record->type == PERF_RECORD_SAMPLE && !n--)
			return d;
	perfdata_close(d);
	return NULL;
}

static const uint64_t whole[] = {PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010),
				 PERF_CONTEXT_USER,   CODE + 0x100,
				 CODE + 0x1ff,        CODE + 0x2ff};

static void check_whole(const struct perfdata_record *r, uint64_t time_ns)
{
	assert_int_equal(r->sample.ncallchain, 6);
	assert_memory_equal(r->sample.callchain, whole, sizeof(whole));
	assert_int_equal(r->time_ns, time_ns);
	assert_int_equal(r->pid, PID);
	assert_int_equal(r->sample.period, 1000000);
	assert_int_equal(r->cpu, 1);
}

static void test_samples_leave_with_whole_callchains_and_without_stacks(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 0);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	take(f, 0, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	assert_null(r.sample.user_regs);
	assert_null(r.sample.user_stack);
	assert_null(memmem(r.header, r.header->size, &(uint64_t){STACK + 32}, 8));
	perfdata_close(d);
	assert_int_equal(record_unwind_stats(f->unwind).unwinder.grades[UNWIND_COMPLETE], 1);
}

static void test_maps_are_known_before_samples_whichever_ring_is_read_first(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;
	size_t sample;

	begin_with(f, KEEP_STACKS_NONE);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	sample = f->len;
	put_map(f, 99);
	take(f, 0, sample);
	take(f, sample, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	perfdata_close(d);
}

static void test_a_record_in_two_parts_is_joined(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;
	size_t second, third;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	second = f->len;
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	third = f->len;
	put_sample(f, 200, CODE + 0x100, STACK_WORDS);
	take(f, 0, second + 8);
	take(f, second + 8, second + 80);
	take(f, second + 80, third + 16);
	take(f, third + 16, f->len);
	end_round(f, true);
	for (int i = 0; i < 2; i++) {
		d = read_sample(f, i, &r);
		assert_non_null(d);
		check_whole(&r, i ? 200 : 100);
		perfdata_close(d);
	}
}

static void test_stacks_are_kept_by_grade(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;

	begin_with(f, KEEP_STACKS_FAILED);
	put_map(f, 1);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	put_sample(f, 200, CODE + 0x100, 4); /* the second caller lies beyond its end */
	take(f, 0, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	assert_null(r.sample.user_stack);
	perfdata_close(d);
	d = read_sample(f, 1, &r);
	assert_non_null(d);
	assert_int_equal(r.sample.ncallchain, 5);
	assert_non_null(r.sample.user_regs);
	assert_int_equal(r.sample.user_stack_bytes, 32);
	perfdata_close(d);
}

/* They are unwound afterwards, so what the kernel found of their callers is left out. */
static void test_stacks_of_32_bit_programs_are_kept(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;

	f->keep_32bit = true;
	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	f->abi = PERF_SAMPLE_REGS_ABI_32;
	put_sample(f, 200, CODE + 0x100, 4);
	take(f, 0, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	assert_null(r.sample.user_regs);
	assert_null(r.sample.user_stack);
	perfdata_close(d);
	d = read_sample(f, 1, &r);
	assert_non_null(d);
	assert_int_equal(r.sample.ncallchain, 2);
	assert_memory_equal(r.sample.callchain, whole, 2 * sizeof(*whole));
	assert_int_equal(r.sample.user_abi, PERF_SAMPLE_REGS_ABI_32);
	assert_non_null(r.sample.user_regs);
	assert_int_equal(r.sample.user_stack_bytes, 32);
	perfdata_close(d);
}

/* They are unwound later, so only a full copy shows that it may be too short. */
static void test_full_copies_of_32_bit_programs_grow(void **state)
{
	struct fixture *f = *state;
	uint32_t bytes[2];

	f->keep_32bit = true;
	f->abi = PERF_SAMPLE_REGS_ABI_32;
	begin_with(f, KEEP_STACKS_NONE);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 8; i++)
			put_sample(f, 100 + i, CODE + 0x100, STACK_WORDS);
		take(f, 0, f->len);
		end_round(f, round == 1);
		f->len = 0;
		bytes[round] = record_unwind_stack_bytes(f->unwind);
	}
	assert_true(bytes[0] > 8 * STACK_WORDS);
	assert_int_equal(bytes[1], bytes[0]); /* the copies are shorter than that */
}

static void test_incomplete_stacks_are_in_the_index(void **state)
{
	const struct samples_idx_row *row;
	struct fixture *f = *state;
	struct samples_idx idx;
	struct perfdata_record r;
	struct perfdata *d;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	put_sample(f, 200, CODE + 0x100, 4);
	take(f, 0, f->len);
	end_round(f, true);
	int fd = openat(f->dir_fd, RECORDING_SAMPLES, O_RDONLY | O_CLOEXEC);

	assert_int_equal(samples_idx_read(fd, &idx, NULL), 0);
	close(fd);
	assert_int_equal(idx.n, 1);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	assert_null(samples_idx_find(&idx, r.file_off));
	perfdata_close(d);
	d = read_sample(f, 1, &r);
	assert_non_null(d);
	row = samples_idx_find(&idx, r.file_off);
	assert_non_null(row);
	assert_int_equal(row->grade, UNWIND_TRUNCATED);
	assert_int_equal(row->end, WALK_COPY_END);
	perfdata_close(d);
	samples_idx_free(&idx);
}

static void test_samples_are_written_if_their_rows_cannot_be(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	begin_with(f, KEEP_STACKS_NONE);
	assert_true(dup2(full, f->idx_fd) >= 0);
	close(full);
	put_map(f, 1);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	put_sample(f, 200, CODE + 0x100, 4);
	take(f, 0, f->len);
	assert_int_equal(record_unwind_round(f->unwind, f->writer, 0), -ENOSPC);
	memset(f->raw, 0xff, f->len); /* the kernel may reuse the ring's space */
	assert_int_equal(perfdata_writer_finish(f->writer, 1, 2), 0);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	perfdata_close(d);
}

static void test_a_record_without_its_rest_is_no_part_of_the_next(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;
	size_t second, third;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	second = f->len;
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	third = f->len;
	put_sample(f, 200, CODE + 0x100, STACK_WORDS);
	take(f, 0, second + 40);
	end_round(f, false);
	take(f, third, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 200);
	perfdata_close(d);
	assert_int_equal(record_unwind_stats(f->unwind).damaged, 1);
}

static void test_damaged_records_cost_themselves(void **state)
{
	struct fixture *f = *state;
	struct perfdata_record r;
	struct perfdata *d;
	size_t at;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	at = put_header(f, PERF_RECORD_SAMPLE, 0);
	for (int i = 0; i < 6; i++)
		put_word(f, UINT64_MAX - 5); /* a callchain of more words than the record has */
	end_record(f, at);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	put_word(f, 0); /* a record of size 0 */
	take(f, 0, f->len);
	end_round(f, true);
	d = read_sample(f, 0, &r);
	assert_non_null(d);
	check_whole(&r, 100);
	perfdata_close(d);
	assert_int_equal(record_unwind_stats(f->unwind).damaged, 2);
}

#define SHORT_COPIES 10

static uint32_t stack_bytes_after_samples_of(struct fixture *f, int32_t pid)
{
	f->pid = pid;
	put_map(f, 0);
	/* Each copy ends before the second caller. */
	for (uint64_t i = 0; i < SHORT_COPIES; i++)
		put_sample(f, 100 + i, CODE + 0x100, 4);
	take(f, 0, f->len);
	end_round(f, false);
	f->len = 0;
	return record_unwind_stack_bytes(f->unwind);
}

/* profcpu's own stacks must not enlarge the copies of other threads' stacks. */
static void test_own_stacks_do_not_enlarge_copies(void **state)
{
	struct fixture *f = *state;

	begin_with(f, KEEP_STACKS_NONE);
	uint32_t before = record_unwind_stack_bytes(f->unwind);

	assert_int_equal(stack_bytes_after_samples_of(f, getpid()), before);
	assert_int_equal(record_unwind_stats(f->unwind).unwinder.grades[UNWIND_TRUNCATED],
			 SHORT_COPIES);
	assert_true(stack_bytes_after_samples_of(f, PID) > before);
}

static void test_copies_that_cannot_grow_are_counted(void **state)
{
	struct fixture *f = *state;

	begin_with(f, KEEP_STACKS_NONE);
	put_map(f, 1);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	put_sample(f, 200, CODE + 0x100, 4);
	record_unwind_keep_stack_bytes(f->unwind, 8 * STACK_WORDS, false);
	take(f, 0, f->len);
	end_round(f, false);
	assert_int_equal(record_unwind_stats(f->unwind).limits.cost[LIMIT_STACK_COPIES], 0);
	record_unwind_keep_stack_bytes(f->unwind, 8 * STACK_WORDS, true);
	take(f, 0, f->len);
	end_round(f, true);
	assert_int_equal(record_unwind_stats(f->unwind).limits.cost[LIMIT_STACK_COPIES], 1);
}

static void assert_room_of_deferred_samples(struct fixture *f, size_t bytes)
{
	struct perf_event_header *h = (void *)f->raw;
	uint64_t n = 0;

	begin_with(f, KEEP_STACKS_NONE);
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	h->size = 60000; /* the rest is zeros, which the decoder ignores */
	while (!f->unwind->stats.limits.cost[LIMIT_DEFERRED] && n < 10000) {
		assert_int_equal(record_unwind_defer(f->unwind, f->writer, h), 0);
		n++;
	}
	assert_int_equal(record_unwind_stats(f->unwind).limits.cost[LIMIT_DEFERRED], n - 1);
	assert_int_equal(n - 1, bytes / (h->size + sizeof(struct unwind_deferred)));
	end_round(f, true);
}

static void test_samples_over_the_room_of_deferred_ones_are_counted(void **state)
{
	assert_room_of_deferred_samples(*state, RECORD_UNWIND_DEFERRED_BYTES);
}

static void test_little_memory_has_less_room_for_deferred_samples(void **state)
{
	struct fixture *f = *state;

	f->memory = (uint64_t)8 << 20;
	assert_room_of_deferred_samples(f, 1 << 20);
}

/* Any record fits. */
static void test_almost_no_memory_has_room_for_one_deferred_sample(void **state)
{
	struct fixture *f = *state;

	f->memory = 1;
	assert_room_of_deferred_samples(f, 128 << 10);
}

/* Bursts that a long recording meets now and then. */
static void test_memory_of_a_burst_is_freed_after_it(void **state)
{
	struct fixture *f = *state;
	struct perf_event_header *h = (void *)f->raw;

	begin_with(f, KEEP_STACKS_ALL);
	put_map(f, 1);
	take(f, 0, f->len);
	end_round(f, false);
	f->len = 0;
	put_sample(f, 100, CODE + 0x100, STACK_WORDS);
	assert_int_equal(record_unwind_defer(f->unwind, f->writer, h), 0);
	assert_int_equal(record_unwind_retry(f->unwind, f->writer, true), 0);
	/* A short deferral keeps the buffer for the next one. */
	assert_non_null(f->unwind->deferred);
	h->size = 60000;
	for (int i = 0; i < 100; i++)
		assert_int_equal(record_unwind_defer(f->unwind, f->writer, h), 0);
	assert_int_equal(f->unwind->ndeferred, 100);
	assert_int_equal(record_unwind_retry(f->unwind, f->writer, true), 0);
	assert_null(f->unwind->deferred);
	for (int i = 0; i < 100; i++) {
		assert_non_null(record_unwind_room(f->unwind, 60000));
		record_unwind_use_room(f->unwind, 60000);
	}
	assert_true(f->unwind->blocks.len > 10);
	end_round(f, false);
	assert_true(f->unwind->blocks.len < 10);
	assert_int_equal(record_unwind_defer(f->unwind, f->writer, h), 0);
	assert_non_null(f->unwind->deferred);
	end_round(f, true);
	assert_int_equal(f->unwind->ndeferred, 0);
}

/* The number of end marks. Records after a mark must be newer than those before the last mark. */
static size_t checked_marks(const struct fixture *f)
{
	uint64_t data[2], newest = 0, at_mark = 0, sorted = 0, time_ns;
	struct perf_event_header h;
	size_t marks = 0;

	assert_int_equal(pread(f->fd, data, sizeof(data), 40), sizeof(data)); /* offset, size */
	for (uint64_t at = data[0]; at < data[0] + data[1]; at += h.size) {
		assert_int_equal(pread(f->fd, &h, sizeof(h), (off_t)at), sizeof(h));
		if (h.type == PERFDATA_RECORD_FINISHED_ROUND) {
			marks++;
			sorted = at_mark;
			at_mark = newest;
			continue;
		}
		if (h.type != PERF_RECORD_SAMPLE && h.type != PERF_RECORD_MMAP2)
			continue;
		off_t time_at = (off_t)at + (h.type == PERF_RECORD_SAMPLE ? 24 : h.size - 16);

		assert_int_equal(pread(f->fd, &time_ns, 8, time_at), 8);
		assert_true(time_ns > sorted);
		newest = time_ns > newest ? time_ns : newest;
	}
	return marks;
}

static bool request_that_is_never_answered(void *ctx, int32_t pid, uint64_t addr)
{
	(void)ctx, (void)pid, (void)addr;
	return true;
}

/* Else readers would keep all records in memory. */
static void test_rounds_end_although_samples_are_always_deferred(void **state)
{
	const struct unwinder_options unwinder = {.request_code = request_that_is_never_answered};
	struct fixture *f = *state;

	begin_with(f, KEEP_STACKS_NONE);
	unwinder_free(f->unwind->unwinder);
	assert_int_equal(unwinder_new(&unwinder, &f->unwind->unwinder), 0);
	uint64_t until_ns = clock_monotonic_ns() + 4 * RECORD_UNWIND_DEFERRED_NS;

	for (uint64_t round = 1; clock_monotonic_ns() < until_ns; round++) {
		f->len = 0;
		put_map(f, 1000 * round);
		put_sample(f, 1000 * round + 500, CODE + 0x100 + round, STACK_WORDS);
		take(f, 0, f->len);
		end_round(f, false);
		assert_true(f->unwind->ndeferred > 0);
		usleep(10000);
	}
	end_round(f, true);
	assert_in_range(checked_marks(f), 3, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_rounds_end_although_samples_are_always_deferred, begin, end),
		cmocka_unit_test_setup_teardown(test_copies_that_cannot_grow_are_counted, begin,
						end),
		cmocka_unit_test_setup_teardown(
			test_little_memory_has_less_room_for_deferred_samples, begin, end),
		cmocka_unit_test_setup_teardown(
			test_almost_no_memory_has_room_for_one_deferred_sample, begin, end),
		cmocka_unit_test_setup_teardown(
			test_samples_over_the_room_of_deferred_ones_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(
			test_samples_leave_with_whole_callchains_and_without_stacks, begin, end),
		cmocka_unit_test_setup_teardown(
			test_maps_are_known_before_samples_whichever_ring_is_read_first, begin,
			end),
		cmocka_unit_test_setup_teardown(test_a_record_in_two_parts_is_joined, begin, end),
		cmocka_unit_test_setup_teardown(test_stacks_are_kept_by_grade, begin, end),
		cmocka_unit_test_setup_teardown(test_stacks_of_32_bit_programs_are_kept, begin,
						end),
		cmocka_unit_test_setup_teardown(test_full_copies_of_32_bit_programs_grow, begin,
						end),
		cmocka_unit_test_setup_teardown(test_incomplete_stacks_are_in_the_index, begin,
						end),
		cmocka_unit_test_setup_teardown(test_samples_are_written_if_their_rows_cannot_be,
						begin, end),
		cmocka_unit_test_setup_teardown(
			test_a_record_without_its_rest_is_no_part_of_the_next, begin, end),
		cmocka_unit_test_setup_teardown(test_damaged_records_cost_themselves, begin, end),
		cmocka_unit_test_setup_teardown(test_memory_of_a_burst_is_freed_after_it, begin,
						end),
		cmocka_unit_test_setup_teardown(test_own_stacks_do_not_enlarge_copies, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
