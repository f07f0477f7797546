/* Output of the writer, read back by our own reader. */
#include "recording/perfdata_format.h"
#include "recording/perfdata_writer.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define SAMPLE_TYPE                                                                     \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, res;
	uint64_t period;
};

static const uint64_t ids_of_first[] = {11, 12, 13}, ids_of_second[] = {21};

static struct perfdata_writer *writer_on(int fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.sample_type = SAMPLE_TYPE,
		.sample_id_all = 1,
		.freq = 1,
		.sample_freq = 99,
		.use_clockid = 1,
		.clockid = 1,
	};
	struct perfdata_writer_event events[2] = {
		{attr, "cpu-clock:u", ids_of_first, 3, 0},
		{attr, "my-event", ids_of_second, 1, 2},
	};
	static const char *const words[] = {"profcpu", "collect", NULL};
	struct perfdata_writer_info info = {"profcpu test", words, 5000, 3000, NULL, 0};
	struct perfdata_writer *w = NULL;

	assert_int_equal(perfdata_writer_new(fd, events, 2, &info, &w), 0);
	return w;
}

static struct sample sample_at(uint64_t time_ns, uint64_t id)
{
	return (struct sample){
		.header = {.type = PERF_RECORD_SAMPLE,
			   .misc = PERF_RECORD_MISC_USER,
			   .size = sizeof(struct sample)},
		.id = id,
		.ip = 0x1000 + time_ns,
		.pid = 7,
		.tid = 8,
		.time_ns = time_ns,
		.period = 1,
	};
}

static int memory_file(void)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Rounds of two samples. Nothing is copied, so samples live until the round. */
static void write_rounds(struct perfdata_writer *w, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct sample a = sample_at((uint64_t)i * 10 + 2, 12),
			      b = sample_at((uint64_t)i * 10 + 1, 21);

		assert_int_equal(perfdata_writer_records(w, &a, sizeof(a)), 0);
		assert_int_equal(perfdata_writer_records(w, &b, sizeof(b)), 0);
		assert_int_equal(perfdata_writer_round(w), 0);
	}
}

static uint64_t read_back(int fd, uint64_t *ret_last, struct perfdata_stats *ret_stats)
{
	struct perfdata *d = NULL;
	struct perfdata_record r;
	struct parse_error err = {0};
	uint64_t n = 0, last = 0;

	assert_int_equal(perfdata_open(fd, &d, &err), 0);
	while (perfdata_next(d, &r, &err) > 0) {
		if (r.type != PERF_RECORD_SAMPLE)
			continue;
		assert_true(r.time_ns > last);
		assert_int_equal(r.sample.ip, 0x1000 + r.time_ns);
		assert_int_equal(r.event, r.time_ns % 10 == 1);
		last = r.time_ns;
		n++;
	}
	if (ret_last)
		*ret_last = last;
	if (ret_stats)
		*ret_stats = *perfdata_stats(d);
	perfdata_close(d);
	return n;
}

static void ids_can_be_added_while_it_is_written(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct sample late = sample_at(1001, 22);

	write_rounds(w, 10);
	assert_int_equal(perfdata_writer_add_id(w, 1, 22), 0);
	assert_int_equal(perfdata_writer_records(w, &late, sizeof(late)), 0);
	assert_int_equal(perfdata_writer_round(w), 0);
	/* The same holds for a recorder that is killed now. */
	assert_int_equal(read_back(fd, NULL, NULL), 21);
	assert_int_equal(perfdata_writer_add_id(w, 1, 23), 0);
	assert_int_equal(perfdata_writer_add_id(w, 1, 24), -E2BIG);
	assert_int_equal(perfdata_writer_add_id(w, 0, 14), -E2BIG);
	assert_int_equal(perfdata_writer_finish(w, 1, 1001), 0);
	perfdata_writer_free(w);
	assert_int_equal(read_back(fd, NULL, NULL), 21);

	struct perfdata *d = NULL;
	size_t n;

	assert_int_equal(perfdata_open(fd, &d, NULL), 0);
	const struct perfdata_event *events = perfdata_events(d, &n);

	assert_int_equal(events[0].nids, 3);
	assert_int_equal(events[1].nids, 3);
	assert_int_equal(events[1].ids[2], 23);
	perfdata_close(d);
}

static void written_rows_are_read_back(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct perfdata *d = NULL;
	size_t n = 0;

	write_rounds(w, 100);
	assert_int_equal(perfdata_writer_bytes(w), 100 * (2 * sizeof(struct sample) + 8));
	assert_int_equal(perfdata_writer_finish(w, 1, 992), 0);
	perfdata_writer_free(w);
	assert_int_equal(read_back(fd, NULL, NULL), 200);

	assert_int_equal(perfdata_open(fd, &d, NULL), 0);
	const struct perfdata_event *events = perfdata_events(d, &n);
	const struct perfdata_info *info = perfdata_info(d);

	assert_int_equal(n, 2);
	assert_string_equal(events[0].name, "cpu-clock:u");
	assert_string_equal(events[1].name, "my-event");
	assert_int_equal(events[0].nids, 3);
	assert_int_equal(events[1].ids[0], 21);
	assert_int_equal(events[0].attr.sample_freq, 99);
	assert_string_equal(info->perf_version, "profcpu test");
	assert_string_equal(info->cmdline, "profcpu collect");
	assert_non_null(info->hostname);
	assert_non_null(info->os_release);
	assert_non_null(info->arch);
	assert_true(info->cpus_online > 0);
	assert_true(info->has_clockid && info->clockid == 1);
	assert_int_equal(info->first_sample_ns, 1);
	assert_int_equal(info->last_sample_ns, 992);
	assert_false(perfdata_stats(d)->unfinished);
	assert_int_equal(perfdata_stats(d)->unknown_features, 0);
	perfdata_close(d);
}

static void any_prefix_can_be_read_and_repaired(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct perfdata_file_header header;
	struct stat st;

	write_rounds(w, 20);
	perfdata_writer_free(w); /* the state after a kill */
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(file_pread_all(fd, &header, sizeof(header), 0), 0);
	assert_int_equal(header.data.size, 0);
	assert_true(perfdata_is_ours(fd));
	AUTO_FREE char *all = malloc((size_t)st.st_size);

	assert_int_equal(file_pread_all(fd, all, (size_t)st.st_size, 0), 0);
	for (uint64_t size = header.data.offset; size <= (uint64_t)st.st_size; size++) {
		AUTO_CLOSE int cut = memory_file();
		struct perfdata_stats stats;
		uint64_t cut_bytes = 99, samples;

		assert_int_equal(file_write_all(cut, all, size), 0);
		samples = read_back(cut, NULL, &stats);
		assert_true(stats.unfinished);
		assert_int_equal(perfdata_repair(cut, &cut_bytes, NULL), 0);
		assert_true(cut_bytes < sizeof(struct sample));
		assert_int_equal(read_back(cut, NULL, &stats), samples);
		assert_false(stats.unfinished);
		assert_int_equal(stats.truncated_at, 0);
		assert_int_equal(perfdata_repair(cut, &cut_bytes, NULL), 0);
		assert_int_equal(cut_bytes, 0);
	}
}

/* Recordings of one event look like this. */
static void without_identifiers_the_times_are_found_too(void **state)
{
	(void)state;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.sample_type = SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_IDENTIFIER,
		.sample_id_all = 1,
	};
	struct perfdata_writer_event event = {attr, "cpu-clock", ids_of_first, 3, 0};
	struct perfdata_writer_info info = {
		"profcpu test", (const char *const[]){"profcpu", NULL}, 5000, 3000, NULL, 0};
	struct {
		struct perf_event_header header;
		uint64_t ip;
		uint32_t pid, tid;
		uint64_t time_ns, cpu, period;
	} sample[2] = {
		{{.type = PERF_RECORD_SAMPLE, .size = sizeof(sample[0])}, .time_ns = 30},
		{{.type = PERF_RECORD_SAMPLE, .size = sizeof(sample[0])}, .time_ns = 20},
	};
	struct perfdata_writer *w = NULL;
	struct perfdata *d = NULL;
	int fd = memory_file();

	assert_int_equal(perfdata_writer_new(fd, &event, 1, &info, &w), 0);
	assert_int_equal(perfdata_writer_records(w, sample, sizeof(sample)), 0);
	assert_int_equal(perfdata_writer_round(w), 0);
	perfdata_writer_free(w);
	assert_int_equal(perfdata_repair(fd, NULL, NULL), 0);
	assert_int_equal(perfdata_open(fd, &d, NULL), 0);
	assert_int_equal(perfdata_info(d)->first_sample_ns, 20);
	assert_int_equal(perfdata_info(d)->last_sample_ns, 30);
	perfdata_close(d);
	close(fd);
}

/* A recorder that is killed while it writes the end of the file, the header after it, or a
 * repair. */
static void a_kill_while_the_end_is_written_costs_nothing(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct perfdata_file_header unfinished, header;
	struct stat st;

	write_rounds(w, 20);
	assert_int_equal(file_pread_all(fd, &unfinished, sizeof(unfinished), 0), 0);
	uint64_t records_end = unfinished.data.offset + perfdata_writer_bytes(w);

	assert_int_equal(perfdata_writer_finish(w, 1, 192), 0);
	perfdata_writer_free(w);
	assert_int_equal(fstat(fd, &st), 0);
	uint64_t whole = (uint64_t)st.st_size;
	AUTO_FREE char *all = malloc(whole), *repaired = malloc(whole);

	assert_int_equal(file_pread_all(fd, all, whole, 0), 0);
	memcpy(&header, all, sizeof(header));
	assert_true(header.data.offset + header.data.size < whole);
	memcpy(all, &unfinished, sizeof(unfinished));
	for (uint64_t size = records_end; size <= whole; size++) {
		AUTO_CLOSE int cut = memory_file();
		struct perfdata_stats stats;
		uint64_t cut_bytes = 99;

		assert_int_equal(file_write_all(cut, all, size), 0);
		assert_int_equal(read_back(cut, NULL, &stats), 40);
		assert_true(stats.unfinished);
		assert_int_equal(stats.damaged + stats.unknown_types, 0);
		assert_true(!stats.truncated_at ||
			    size < records_end + sizeof(struct perf_event_header));
		assert_int_equal(perfdata_repair(cut, &cut_bytes, NULL), 0);
		assert_true(cut_bytes < sizeof(struct perf_event_header));
		/* The file is as if uninterrupted, sample times included. */
		assert_int_equal(fstat(cut, &st), 0);
		assert_int_equal(st.st_size, whole);
		assert_int_equal(file_pread_all(cut, repaired, whole, 0), 0);
		assert_memory_equal(repaired, &header, sizeof(header));
		assert_memory_equal(repaired + sizeof(header), all + sizeof(header),
				    whole - sizeof(header));
	}
}

static void foreign_files_are_not_repaired(void **state)
{
	(void)state;
	struct parse_error err = {0};

	AUTO_CLOSE int empty = memory_file();
	assert_int_equal(perfdata_repair(empty, NULL, &err), -EBADMSG);
	assert_false(perfdata_is_ours(empty));
	assert_non_null(err.what);
	AUTO_CLOSE int other = memory_file();
	struct perfdata_file_header h = {
		.magic = PERFDATA_MAGIC, .size = sizeof(h), .data = {.offset = 400}};
	char zeros[1000] = {0};

	assert_int_equal(file_write_all(other, &h, sizeof(h)), 0);
	assert_int_equal(file_write_all(other, zeros, sizeof(zeros)), 0);
	assert_int_equal(perfdata_repair(other, NULL, &err), -EBADMSG);
	assert_false(perfdata_is_ours(other));
	assert_int_equal(perfdata_set_build_ids(other, NULL, 0, &err), -EBADMSG);
}

static void build_ids_can_be_set_and_set_again(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct perfdata_build_id_entry e[2] = {
		{.build_id = {{1, 2, 3}, 20},
		 .misc = PERF_RECORD_MISC_USER,
		 .pid = -1,
		 .filename = "/usr/lib/a.so"},
		{.build_id = {{9, 8}, 16},
		 .misc = PERF_RECORD_MISC_KERNEL,
		 .pid = -1,
		 .filename = "[kernel.kallsyms]"},
	};
	struct perfdata *d = NULL;

	write_rounds(w, 3);
	assert_int_equal(perfdata_set_build_ids(fd, e, 2, NULL), -EBADMSG); /* not finished yet */
	assert_int_equal(perfdata_writer_finish(w, 1, 22), 0);
	perfdata_writer_free(w);
	for (size_t n = 2; n; n--) {
		assert_int_equal(perfdata_set_build_ids(fd, e, n, NULL), 0);
		assert_int_equal(perfdata_open(fd, &d, NULL), 0);
		const struct perfdata_info *info = perfdata_info(d);

		assert_int_equal(info->nbuild_ids, n);
		assert_string_equal(info->build_ids[0].filename, "/usr/lib/a.so");
		assert_memory_equal(info->build_ids[0].build_id.bytes, e[0].build_id.bytes, 20);
		if (n > 1)
			assert_int_equal(info->build_ids[1].build_id.len, 16);
		assert_string_equal(info->perf_version, "profcpu test");
		perfdata_close(d);
		assert_int_equal(read_back(fd, NULL, NULL), 6);
	}
}

static void more_chunks_than_one_call_takes_are_all_written(void **state)
{
	(void)state;
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	static struct sample samples[3000];

	for (size_t i = 0; i < 3000; i += 2) { /* every second page, so that chunks do not touch */
		samples[i] = sample_at(i * 5 + 2, 12);
		assert_int_equal(perfdata_writer_records(w, &samples[i], sizeof(samples[i])), 0);
	}
	assert_int_equal(perfdata_writer_round(w), 0);
	assert_int_equal(perfdata_writer_round(w), 0); /* nothing new, so no second mark */
	assert_int_equal(perfdata_writer_bytes(w), 1500 * sizeof(struct sample) + 8);
	assert_int_equal(perfdata_writer_finish(w, 2, 14992), 0);
	perfdata_writer_free(w);
	assert_int_equal(read_back(fd, NULL, NULL), 1500);
}

static void a_full_disk_keeps_the_rows_that_fit(void **state)
{
	(void)state;
	char path[] = "/tmp/profcpu-writer.XXXXXX";
	AUTO_CLOSE int fd = mkostemp(path, O_CLOEXEC);
	struct rlimit old, small;
	struct perfdata_writer *w = writer_on(fd);
	int r = 0;

	unlink(path);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){20000, old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (int i = 0; i < 2000 && !r; i++) {
		struct sample a = sample_at((uint64_t)i * 10 + 2, 12);

		(void)perfdata_writer_records(w, &a, sizeof(a));
		r = perfdata_writer_round(w);
	}
	assert_int_equal(r, -EFBIG);
	small.rlim_cur = 40000; /* the features need space on disk */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(perfdata_writer_finish(w, 0, 0), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	perfdata_writer_free(w);
	struct perfdata_stats stats;

	assert_true(read_back(fd, NULL, &stats) > 200);
	assert_false(stats.unfinished);
	assert_int_equal(stats.truncated_at, 0);
}

/* Locates data about samples that other files keep. */
static void the_place_of_a_record_is_known_before_it_is_written(void **state)
{
	enum { N = 3000 };
	struct sample *samples = calloc(N, sizeof(*samples));
	uint64_t *places = calloc(N, sizeof(*places));
	AUTO_CLOSE int fd = memory_file();
	struct perfdata_writer *w = writer_on(fd);
	struct perfdata_record record;
	struct perfdata *d;
	size_t n = 0;

	(void)state;
	assert_true(samples && places);
	for (uint64_t i = 0; i < N; i++) {
		/* Every second one is written alone, so that it is not queued with the previous
		 * one. Times of a round do not rise. */
		struct sample *s = &samples[i ^ 2];

		*s = sample_at(1000 + (i ^ 7), i % 3 ? 11 : 21);
		places[i ^ 7] = perfdata_writer_next(w);
		assert_int_equal(perfdata_writer_records(w, s, sizeof(*s)), 0);
		if (i % 1024 == 1023)
			assert_int_equal(perfdata_writer_round(w), 0);
		else if (i % 500 == 499)
			assert_int_equal(perfdata_writer_flush(w), 0);
	}
	assert_int_equal(perfdata_writer_finish(w, 1, 2), 0);
	perfdata_writer_free(w);
	assert_int_equal(perfdata_open(fd, &d, NULL), 0);
	while (perfdata_next(d, &record, NULL) > 0) {
		assert_int_equal(record.time_ns, 1000 + n);
		assert_int_equal(record.file_off, places[n]);
		n++;
	}
	assert_int_equal(n, N);
	perfdata_close(d);
	free(places);
	free(samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_rows_are_read_back),
		cmocka_unit_test(the_place_of_a_record_is_known_before_it_is_written),
		cmocka_unit_test(ids_can_be_added_while_it_is_written),
		cmocka_unit_test(any_prefix_can_be_read_and_repaired),
		cmocka_unit_test(without_identifiers_the_times_are_found_too),
		cmocka_unit_test(a_kill_while_the_end_is_written_costs_nothing),
		cmocka_unit_test(foreign_files_are_not_repaired),
		cmocka_unit_test(build_ids_can_be_set_and_set_again),
		cmocka_unit_test(more_chunks_than_one_call_takes_are_all_written),
		cmocka_unit_test(a_full_disk_keeps_the_rows_that_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
