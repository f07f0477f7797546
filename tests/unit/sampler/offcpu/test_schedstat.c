#include "sampler/offcpu/schedstat.h"

#include "base/clock.h"
#include "tests/unit/wait_blocked.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static void the_text_is_three_numbers(void **state)
{
	struct schedstat s = {7, 7, 7};

	(void)state;
	assert_int_equal(schedstat_parse("12 34 56\n", &s), 0);
	assert_int_equal(s.run_ns, 12);
	assert_int_equal(s.wait_ns, 34);
	assert_int_equal(s.count, 56);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(schedstat_parse((const char *[]){"", "1 2\n", "a b c\n",
								  "1 2 3 4\n", "-1 2 3\n"}[i],
						 &s),
				 -EBADMSG);
	assert_int_equal(s.count, 56);
}

struct napper {
	pthread_t thread;
	pid_t tid;
	int wake[2], woken[2];
};

static void *nap(void *arg)
{
	struct napper *n = arg;
	char c;

	n->tid = (pid_t)syscall(SYS_gettid);
	do {
		if (write(n->woken[1], "x", 1) != 1)
			break;
	} while (read(n->wake[0], &c, 1) == 1 && c == 'x');
	return NULL;
}

static void begin_nap(struct napper *n)
{
	char c;

	assert_int_equal(pipe(n->wake) | pipe(n->woken), 0);
	assert_int_equal(pthread_create(&n->thread, NULL, nap, n), 0);
	assert_int_equal(read(n->woken[0], &c, 1), 1);
}

static void wake(struct napper *n)
{
	char c;

	assert_int_equal(write(n->wake[1], "x", 1), 1);
	assert_int_equal(read(n->woken[0], &c, 1), 1);
}

static void end_nap(struct napper *n)
{
	assert_int_equal(write(n->wake[1], "e", 1), 1);
	pthread_join(n->thread, NULL);
	for (int i = 0; i < 2; i++)
		close(n->wake[i]), close(n->woken[i]);
}

/* With and without descriptors that stay open. */
static void each_wait_counts_once(void **state)
{
	(void)state;
	for (size_t kept = 0; kept < 2; kept++) {
		struct schedstat_reader *r;
		struct schedstat before, after;
		struct napper n;

		assert_int_equal(schedstat_new(NULL, kept, &r), 0);
		begin_nap(&n);
		wait_blocked(n.tid);
		assert_int_equal(schedstat_read(r, n.tid, &before), 0);
		for (int i = 0; i < 20; i++) {
			wake(&n);
			wait_blocked(n.tid);
		}
		assert_int_equal(schedstat_read(r, n.tid, &after), 0);
		/* One more for each preemption. */
		assert_in_range(after.count - before.count, 20, 60);
		assert_true(after.run_ns > before.run_ns &&
			    after.run_ns - before.run_ns < 200 * NS_PER_MS);
		end_nap(&n);
		assert_int_equal(schedstat_read(r, n.tid, &after), -ESRCH);
		schedstat_free(r);
	}
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void descriptors_go_to_living_threads(void **state)
{
	struct schedstat_reader *r;
	struct schedstat s;
	struct napper n[4];
	int at_first;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		begin_nap(&n[i]);
	at_first = open_descriptors();
	assert_int_equal(schedstat_new(NULL, 2, &r), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(schedstat_read(r, n[i].tid, &s), 0);
	assert_int_equal(open_descriptors(), at_first + 2);
	schedstat_forget(r, n[0].tid);
	schedstat_forget(r, n[0].tid);
	schedstat_forget(r, n[3].tid); /* had no descriptor */
	assert_int_equal(open_descriptors(), at_first + 1);
	assert_int_equal(schedstat_read(r, n[2].tid, &s), 0);
	assert_int_equal(schedstat_read(r, n[3].tid, &s), 0);
	assert_int_equal(open_descriptors(), at_first + 2);
	schedstat_forget(r, n[2].tid);
	assert_int_equal(schedstat_read(r, n[0].tid, &s), 0);
	schedstat_free(r);
	assert_int_equal(open_descriptors(), at_first);
	for (size_t i = 0; i < 4; i++)
		end_nap(&n[i]);
}

static void enough_descriptors_are_left_for_others(void **state)
{
	struct rlimit before, few;
	struct schedstat_reader *r;
	struct schedstat s;
	struct napper n[2];
	int at_first, next;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		begin_nap(&n[i]);
	at_first = open_descriptors();
	next = dup(n[0].wake[0]);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = (rlim_t)next + SCHEDSTAT_RESERVED_DESCRIPTORS + 1; /* for one more thread */
	assert_true(few.rlim_cur <= before.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(schedstat_new(NULL, 2, &r), 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(schedstat_read(r, n[i % 2].tid, &s), 0);
	assert_int_equal(open_descriptors(), at_first + 1);
	schedstat_free(r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (size_t i = 0; i < 2; i++)
		end_nap(&n[i]);
}

static void write_file(const char *dir, const char *of, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, of);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/schedstat", dir, of);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void a_kernel_without_schedstat_is_reported(void **state)
{
	char dir[] = "/tmp/schedstat.XXXXXX", path[64];
	struct schedstat_reader *r = NULL;
	struct schedstat s;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(schedstat_new(dir, 1, &r), -ENOENT);
	write_file(dir, "thread-self", "0 0 0\n");
	assert_int_equal(schedstat_new(dir, 1, &r), -ENOENT);
	assert_null(r);
	write_file(dir, "thread-self", "5 0 1\n");
	write_file(dir, "7", "what\n");
	assert_int_equal(schedstat_new(dir, 1, &r), 0);
	assert_int_equal(schedstat_read(r, 7, &s), -EBADMSG);
	assert_int_equal(schedstat_read(r, 8, &s), -ESRCH);
	schedstat_free(r);
	schedstat_free(NULL);
	for (size_t i = 0; i < 2; i++) {
		const char *of = i ? "7" : "thread-self";

		snprintf(path, sizeof(path), "%s/%s/schedstat", dir, of);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%s", dir, of);
		rmdir(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_three_numbers),
		cmocka_unit_test(each_wait_counts_once),
		cmocka_unit_test(descriptors_go_to_living_threads),
		cmocka_unit_test(enough_descriptors_are_left_for_others),
		cmocka_unit_test(a_kernel_without_schedstat_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
