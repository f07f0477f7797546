#include "tests/unit/perfdata_check.h"

#include <pthread.h>

static void rounds_come_in_order_of_time(void **state)
{
	static const uint64_t want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	for (uint64_t i = 1; i <= 3; i++)
		put_plain(&b, i * 2, i * 2);
	put_plain(&b, 1, 1);
	put_plain(&b, 3, 3);
	build_round(&b);
	/* Older than the newest of the previous round: the other CPU was read too early. */
	put_plain(&b, 5, 5);
	put_plain(&b, 9, 9);
	put_plain(&b, 7, 7);
	build_round(&b);
	put_plain(&b, 10, 10);
	put_plain(&b, 8, 8);
	build_round(&b);
	build_round(&b);
	put_plain(&b, 11, 11);
	build_data_end(&b);
	built_samples_are(&b, want, 11, 0);
}

static void equal_times_keep_the_order_of_the_file(void **state)
{
	static const uint64_t want[] = {5, 1, 2, 3, 4};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 20);
	put_plain(&b, 2, 20);
	put_plain(&b, 5, 10);
	put_plain(&b, 3, 20);
	put_plain(&b, 4, 20);
	build_data_end(&b);
	built_samples_are(&b, want, 5, 0);
}

static void a_record_older_than_its_round_allows_is_counted(void **state)
{
	static const uint64_t want[] = {1, 2, 9, 10};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 100);
	put_plain(&b, 2, 200);
	build_round(&b);
	build_round(&b);
	put_plain(&b, 9, 150);
	put_plain(&b, 10, 300);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 4, 0);
	assert_int_equal(perfdata_stats(d)->out_of_order, 1);
	assert_int_equal(perfdata_stats(d)->rounds, 2);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void records_without_time_go_out_at_once(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	struct perfdata_record r;

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 10);
	put_comm(&b, 0);
	put_comm(&b, UINT64_MAX);
	put_plain(&b, 2, 5);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);
	static const uint32_t want[] = {PERF_RECORD_COMM, PERF_RECORD_COMM, PERF_RECORD_SAMPLE,
					PERF_RECORD_SAMPLE};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(perfdata_next(d, &r, NULL), 1);
		assert_int_equal(r.type, want[i]);
	}
	assert_int_equal(r.sample.ip, 1);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void without_sample_id_all_the_file_has_its_order(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	e.attr.sample_id_all = 0;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 30);
	put_plain(&b, 2, 10);
	put_plain(&b, 3, 20);
	build_data_end(&b);
	built_samples_are(&b, want, 3, 0);
}

/* n records of 32 kB in each ring, in one round. */
static void put_rings(struct build *b, uint64_t rings, uint64_t n)
{
	static const char bulk[32000];

	for (uint64_t ring = 0; ring < rings; ring++) {
		for (uint64_t i = 0; i < n; i++) {
			build_record(b, PERF_RECORD_SAMPLE, 0);
			build_u64(b, 1 + rings * i + ring);
			build_u64(b, 1 + rings * i + ring);
			build_put(b, bulk, sizeof(bulk));
			build_record_end(b);
		}
	}
	build_round(b);
}

/* limit: of the memory; 0: the usual one. */
static void check_large_round(uint64_t samples, uint64_t limit, uint64_t out_of_order)
{
	struct build_event e = plain_event();
	struct build b = {0};
	static uint64_t want[2600];

	for (size_t i = 0; i < samples; i++)
		want[i] = i + 1;
	build_file(&b, &e, 1);
	put_rings(&b, 2, samples / 2);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	if (limit)
		perfdata_limit_memory(d, limit);
	if (!out_of_order)
		samples_are(d, want, samples, 0);
	for (struct perfdata_record r; perfdata_next(d, &r, NULL) > 0;)
		;
	assert_int_equal(perfdata_stats(d)->out_of_order > 0, out_of_order);
	assert_int_equal(perfdata_stats(d)->damaged, 0);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void a_round_larger_than_memory_keeps_its_order(void **state)
{
	(void)state;
	check_large_round(2600, 0, 0); /* 83 MB */
	check_large_round(400, (uint64_t)16 << 20, 0);
	/* Too little for the places of its records */
	check_large_round(400, 64, 1);
}

struct feeder {
	int fd;
	const struct build *b;
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	size_t at = 0;

	while (at < f->b->len) {
		ssize_t n =
			write(f->fd, f->b->bytes + at, f->b->len - at < 777 ? f->b->len - at : 777);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(f->fd);
	return NULL;
}

static struct perfdata *open_pipe_of(const struct build *b, pthread_t *ret_thread, struct feeder *f,
				     int *ret_fd)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*f = (struct feeder){fds[1], b};
	assert_int_equal(pthread_create(ret_thread, NULL, feed, f), 0);
	*ret_fd = fds[0];
	return open_fd(fds[0]);
}

static void a_round_too_large_for_a_pipe_goes_out_early_and_is_counted(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	struct perfdata_record r;
	struct feeder f;
	pthread_t thread;
	uint64_t n = 0;
	int fd;

	(void)state;
	build_pipe(&b, &e, 1);
	put_rings(&b, 3, 1300);
	struct perfdata *d = open_pipe_of(&b, &thread, &f, &fd);

	while (perfdata_next(d, &r, NULL) > 0)
		n++;
	assert_int_equal(n, 3900);
	assert_true(perfdata_stats(d)->out_of_order > 0);
	perfdata_close(d);
	pthread_join(thread, NULL);
	close(fd);
	build_free(&b);
}

static void put_payloads(struct build *b)
{
	static const char payload[3000];

	build_record(b, PERFDATA_RECORD_HEADER_TRACING_DATA, 0);
	build_u64(b, 2997);
	build_record_end(b);
	build_put(b, payload, 3000);
	build_record(b, PERFDATA_RECORD_AUXTRACE, 0);
	build_u64(b, 1600);
	for (int i = 0; i < 4; i++)
		build_u64(b, 0);
	build_record_end(b);
	build_put(b, payload, 1600);
	put_plain(b, 1, 10);
	build_record(b, PERFDATA_RECORD_AUXTRACE, 0);
	build_u64(b, 3000000);
	for (int i = 0; i < 4; i++)
		build_u64(b, 0);
	build_record_end(b);
	for (int i = 0; i < 1000; i++)
		build_put(b, payload, 3000);
	put_plain(b, 2, 20);
}

static void pipe_mode_names_events_and_skips_payloads(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};
	struct feeder f;
	pthread_t thread;
	size_t n;
	int fd;

	(void)state;
	build_pipe(&b, &e, 1);
	put_update_name(&b, 0, 1, "unit");
	put_update_name(&b, PERFDATA_EVENT_UPDATE_NAME, 1, "my:event");
	put_update_name(&b, PERFDATA_EVENT_UPDATE_NAME, 99, "of nobody");
	put_payloads(&b);
	struct perfdata *d = open_pipe_of(&b, &thread, &f, &fd);

	samples_are(d, want, 2, 0);
	assert_int_equal(perfdata_stats(d)->damaged, 1);
	assert_string_equal(perfdata_events(d, &n)[0].name, "my:event");
	perfdata_close(d);
	pthread_join(thread, NULL);
	close(fd);
	built_samples_are(&b, want, 2, 0); /* the same bytes in a file */
}

static void file_mode_skips_payloads(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_payloads(&b);
	build_data_end(&b);
	built_samples_are(&b, want, 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_come_in_order_of_time),
		cmocka_unit_test(equal_times_keep_the_order_of_the_file),
		cmocka_unit_test(a_record_older_than_its_round_allows_is_counted),
		cmocka_unit_test(records_without_time_go_out_at_once),
		cmocka_unit_test(without_sample_id_all_the_file_has_its_order),
		cmocka_unit_test(a_round_larger_than_memory_keeps_its_order),
		cmocka_unit_test(a_round_too_large_for_a_pipe_goes_out_early_and_is_counted),
		cmocka_unit_test(pipe_mode_names_events_and_skips_payloads),
		cmocka_unit_test(file_mode_skips_payloads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
