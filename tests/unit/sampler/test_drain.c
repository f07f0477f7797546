/* Rings in memory, written like the kernel's, drained by the sampler. */
#include "base/clock.h"
#include "sampler/sampler_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define PROCESSES_MAX 1024 /* new processes of a test */
#define RING_BYTES 4096
#define RINGS 2
#define TAKEN_BYTES (1 << 20)

/* Layout of one event's samples without an identifier. */
struct sample {
	struct perf_event_header header;
	struct attr_sample first;
};

struct fixture {
	struct sampler s;
	struct perf_event_mmap_page pages[2 * RINGS];
	_Alignas(8) unsigned char data[2 * RINGS][RING_BYTES];
	struct ring rings[2 * RINGS]; /* the second half is for the event-only rings */
	unsigned char *taken;         /* everything that the listener received */
	size_t taken_bytes, chunks, rounds;
	int processes[PROCESSES_MAX];
	enum sampler_news news[PROCESSES_MAX];
	size_t nprocesses;
	int fail_with;
	bool unseen; /* chunks contain complete records only if joined */
};

static int take_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct fixture *f = ctx;

	assert_in_range(cpu, 0, RINGS - 1);
	assert_int_equal((uintptr_t)data % 8, 0);
	assert_true(len > 0 && len % 8 == 0);
	/* Each chunk contains complete records. */
	for (size_t pos = 0; pos < len && !f->unseen;) {
		const struct perf_event_header *h = (const void *)((const char *)data + pos);

		assert_true(h->size >= sizeof(*h) && h->size <= len - pos);
		pos += h->size;
	}
	assert_true(f->taken_bytes + len <= TAKEN_BYTES);
	memcpy(f->taken + f->taken_bytes, data, len);
	f->taken_bytes += len;
	f->chunks++;
	return f->fail_with;
}

static int take_round(void *ctx)
{
	((struct fixture *)ctx)->rounds++;
	return 0;
}

static int take_process(void *ctx, pid_t pid, enum sampler_news news)
{
	struct fixture *f = ctx;

	assert_true(f->nprocesses < PROCESSES_MAX);
	f->news[f->nprocesses] = news;
	f->processes[f->nprocesses++] = pid;
	return 0;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sampler_listener listener = {f, take_records, take_round, take_process, NULL};

	assert_non_null(f);
	f->taken = malloc(TAKEN_BYTES);
	f->s.rings = f->rings;
	for (int i = 0; i < 2 * RINGS; i++) {
		ring_of(&f->rings[i], &f->pages[i], f->data[i], RING_BYTES);
		f->rings[i].cpu = i % RINGS;
		if (i < RINGS)
			assert_int_equal(vec_push(&f->s.cpus, i), 0);
	}
	f->s.mount_ns = 4000;
	assert_int_equal(pidset_new(&f->s.elsewhere), 0);
	assert_int_equal(pidset_new(&f->s.executing), 0);
	assert_int_equal(targets_new(&f->s.targets), 0);
	assert_int_equal(sampler_listen(&f->s, &listener), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2 * RINGS; i++)
		ring_unmap(&f->rings[i]);
	vec_free(&f->s.cpus);
	vec_free(&f->s.forks);
	targets_free(&f->s.targets);
	pidset_free(&f->s.elsewhere);
	pidset_free(&f->s.executing);
	free(f->taken);
	free(f);
	return 0;
}

/* Writes like the kernel: false if the record does not fit behind the reader's tail. */
static bool ring_put(struct fixture *f, int ring, const void *record, size_t size)
{
	struct perf_event_mmap_page *page = &f->pages[ring];

	if (page->data_head + size - page->data_tail > RING_BYTES)
		return false;
	for (size_t i = 0; i < size; i++)
		f->data[ring][(page->data_head + i) % RING_BYTES] =
			((const unsigned char *)record)[i];
	__atomic_store_n(&page->data_head, page->data_head + size, __ATOMIC_RELEASE);
	return true;
}

static bool put_sample(struct fixture *f, int ring, uint32_t pid, uint64_t time_ns,
		       size_t extra_words)
{
	struct {
		struct sample head;
		uint64_t words[512];
	} sample = {.head = {{.type = PERF_RECORD_SAMPLE},
			     {.pid = pid, .tid = pid, .time_ns = time_ns}}};
	size_t size = sizeof(sample.head) + 8 * extra_words;

	sample.head.header.size = (uint16_t)size;
	for (size_t i = 0; i < extra_words; i++)
		sample.words[i] = time_ns * 1000 + i;
	return ring_put(f, ring, &sample, size);
}

static void put_fork_at(struct fixture *f, uint32_t ring, uint32_t pid, uint32_t parent,
			uint64_t time_ns)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, ppid, tid, ptid;
		uint64_t time_ns;
		struct attr_sample_id id;
	} fork = {.header = {.type = PERF_RECORD_FORK, .size = sizeof(fork)},
		  .pid = pid,
		  .ppid = parent,
		  .tid = pid,
		  .ptid = parent,
		  .time_ns = time_ns};

	assert_true(ring_put(f, (int)ring, &fork, sizeof(fork)));
}

static void put_fork(struct fixture *f, uint32_t ring, uint32_t pid, uint32_t parent)
{
	put_fork_at(f, ring, pid, parent, 0);
}

static void every_record_comes_whole_and_once_however_it_lies_in_the_ring(void **state)
{
	struct fixture *f = *state;
	uint64_t written = 0, read = 0;

	/* Sizes without a common factor with the ring, so that records wrap at each position. */
	for (int i = 0; i < 2000; i++) {
		size_t extra = (size_t)(i * 7 % 90);

		if (!put_sample(f, 0, 5, written + 1, extra)) {
			assert_int_equal(sampler_drain(&f->s), 0);
			assert_int_equal(f->pages[0].data_tail, f->pages[0].data_head);
			assert_true(put_sample(f, 0, 5, written + 1, extra));
		}
		written++;
		if (f->taken_bytes > TAKEN_BYTES - 2 * RING_BYTES || i == 1999) {
			assert_int_equal(sampler_drain(&f->s), 0);
			for (size_t pos = 0; pos < f->taken_bytes;) {
				const struct sample *s = (const void *)(f->taken + pos);
				const uint64_t *words = (const void *)(s + 1);

				assert_int_equal(s->first.time_ns, ++read);
				for (size_t k = 0; k < (s->header.size - sizeof(*s)) / 8; k++)
					assert_int_equal(words[k], s->first.time_ns * 1000 + k);
				pos += s->header.size;
			}
			f->taken_bytes = 0;
		}
	}
	assert_int_equal(read, written);
	assert_int_equal(f->s.stats.samples, written);
	assert_int_equal(f->s.stats.records, written);
	assert_int_equal(f->s.stats.first_sample_ns, 1);
	assert_int_equal(f->s.stats.last_sample_ns, written);
	assert_int_equal(f->s.stats.damaged, 0);
}

static void positions_may_pass_32_bits(void **state)
{
	struct fixture *f = *state;
	uint64_t start = ((uint64_t)1 << 32) - 64;

	f->pages[0].data_head = f->pages[0].data_tail = start;
	ring_of(&f->rings[0], &f->pages[0], f->data[0], RING_BYTES);
	for (int i = 0; i < 5; i++)
		assert_true(put_sample(f, 0, 1, (uint64_t)i + 1, 1));
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 5);
}

static void only_targets_and_their_children_pass_the_filter(void **state)
{
	struct fixture *f = *state;

	f->s.setup.filtered = true;
	assert_int_equal(targets_add(&f->s.targets, 100), 0);
	/* The child's samples are on the ring that is read first, its FORK is on the other. */
	put_sample(f, 0, 100, 1, 3);
	put_sample(f, 0, 999, 2, 3);
	put_sample(f, 0, 101, 3, 3);
	put_sample(f, 0, 0, 4, 3);
	put_fork(f, 1, 101, 100);
	put_fork(f, 1, 998, 999);
	put_sample(f, 1, 998, 5, 3);
	put_sample(f, 1, 101, 6, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 3);
	assert_int_equal(f->s.stats.dropped, 4);
	assert_int_equal(f->nprocesses, 1);
	assert_int_equal(f->processes[0], 101);
	for (size_t pos = 0; pos < f->taken_bytes;) {
		const struct sample *s = (const void *)(f->taken + pos);

		if (s->header.type == PERF_RECORD_SAMPLE)
			assert_in_range(s->first.pid, 100, 101);
		pos += s->header.size;
	}
	/* The same id with another parent is another process. */
	put_fork(f, 0, 101, 999);
	put_sample(f, 0, 101, 7, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 3);
}

/* Each generation runs on the other CPU, so its FORK is in another ring. */
static void grandchildren_are_found_in_whichever_ring(void **state)
{
	struct fixture *f = *state;

	f->s.setup.filtered = true;
	assert_int_equal(targets_add(&f->s.targets, 100), 0);
	for (uint32_t i = 0; i < 9; i++) {
		put_fork_at(f, (i + 1) % RINGS, 101 + i, 100 + i, 10 + i);
		put_sample(f, i % RINGS, 101 + i, 20 + i, 3);
	}
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 9);
	assert_int_equal(f->nprocesses, 9);
	/* The id of a child is reused by another parent, then again by a target. */
	put_fork_at(f, 0, 101, 100, 60);
	put_fork_at(f, 1, 101, 999, 50);
	put_sample(f, 1, 101, 70, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 10);
	/* The FORK of a grandchild is found one scan before that of its parent. */
	uint64_t soon_ns = clock_monotonic_ns() + NS_PER_MS;

	put_fork_at(f, 0, 202, 201, soon_ns + 1);
	assert_int_equal(sampler_drain(&f->s), 0);
	put_fork_at(f, 1, 201, 100, soon_ns);
	put_sample(f, 0, 202, soon_ns + 2, 3);
	usleep(2000);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 11);
	assert_int_equal(f->s.forks.len, 0);
}

/* Before the first drain, records of full rings are kept in memory. */
static void records_before_the_first_drain_come_in_order(void **state)
{
	struct fixture *f = *state;
	uint32_t pid = 1000, nth = 1000;

	for (int i = 0; i < 500; i++) {
		put_fork(f, 1, pid + 1, pid);
		put_fork(f, 0, pid, pid - 1);
		pid += 2;
		assert_int_equal(sampler_take_early(&f->s), 0);
	}
	assert_true(f->s.early_bytes > 4 * (size_t)RING_BYTES);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->rounds, 1);
	assert_int_equal(f->s.stats.records, 1000);
	assert_int_equal(f->s.stats.damaged, 0);
	/* Ring 1 is handed over first. */
	for (size_t pos = 0; pos < f->taken_bytes; nth += 2) {
		const struct sampler_task *fork = (const void *)(f->taken + pos);

		if (nth == pid)
			nth = 999;
		assert_int_equal(fork->pid, nth + 1);
		pos += fork->header.size;
	}
	assert_int_equal(f->s.early_bytes, 0);
	assert_null(f->s.early);
}

/* Children that were found in such records are targets. */
static void forks_before_the_first_drain_make_targets(void **state)
{
	struct fixture *f = *state;

	f->s.setup.filtered = true;
	assert_int_equal(targets_add(&f->s.targets, 100), 0);
	put_fork(f, 0, 101, 100);
	for (int i = 0; i < 40; i++)
		put_fork(f, 0, 500, 499);
	assert_int_equal(sampler_take_early(&f->s), 0);
	assert_int_equal(f->pages[0].data_tail, f->pages[0].data_head);
	put_fork(f, 0, 102, 101);
	put_sample(f, 1, 102, 5, 3);
	put_sample(f, 1, 500, 5, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 1);
	assert_int_equal(f->s.stats.dropped, 41);
}

/* Beyond the limit, records stay in the rings, whose kernel counts what it cannot write. */
static void memory_for_records_before_the_first_drain_is_limited(void **state)
{
	struct fixture *f = *state;
	uint64_t put = 0;

	f->s.early_bytes = SAMPLER_EARLY_MAX;
	while (put_sample(f, 0, 5, put + 1, 3)) {
		put++;
		assert_int_equal(sampler_take_early(&f->s), 0);
	}
	assert_int_equal(put, RING_BYTES / (sizeof(struct sample) + 24));
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, put);
}

static void little_memory_limits_records_before_the_first_drain(void **state)
{
	struct fixture *f = *state;
	uint64_t put = 0;

	f->s.options.memory = UINT64_C(8) << 20;
	while (put * sizeof(struct sample) < SAMPLER_EARLY_MAX && put_sample(f, 0, 5, put + 1, 3)) {
		put++;
		assert_int_equal(sampler_take_early(&f->s), 0);
	}
	assert_int_equal(f->s.early_bytes, 1 << 20);
	assert_in_range(put * (sizeof(struct sample) + 24), (1 << 20) - RING_BYTES,
			(1 << 20) + RING_BYTES);
	sampler_free_early(&f->s);
}

static void put_namespaces(struct fixture *f, int ring, uint32_t pid, uint64_t mount_ns)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t count, v[NR_NAMESPACES][2];
		struct attr_sample_id id;
	} ns = {.header = {.type = PERF_RECORD_NAMESPACES, .size = sizeof(ns)},
		.pid = pid,
		.tid = pid,
		.count = NR_NAMESPACES};

	ns.v[MNT_NS_INDEX][1] = mount_ns;
	assert_true(ring_put(f, ring, &ns, sizeof(ns)));
}

static void put_short(struct fixture *f, int ring, uint32_t type, uint16_t misc, uint32_t pid)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, second, tid, fourth;
		uint64_t time_ns;
		struct attr_sample_id id;
	} r = {.header = {.type = type, .misc = misc, .size = sizeof(r)},
	       .pid = pid,
	       .second = 1,
	       .tid = pid};

	assert_true(ring_put(f, ring, &r, sizeof(r)));
}

struct reported {
	int pid;
	enum sampler_news news;
};

static void assert_reported(struct fixture *f, const struct reported *wanted, size_t n)
{
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->nprocesses, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(f->processes[i], wanted[i].pid);
		assert_int_equal(f->news[i], wanted[i].news);
	}
}

static void processes_are_listed_with_their_container(void **state)
{
	struct fixture *f = *state;
	static const struct reported wanted[] = {
		{10, SAMPLER_PROCESS_NEW},       {10, SAMPLER_PROCESS_NEW},
		{11, SAMPLER_PROCESS_NEW},       {11, SAMPLER_PROCESS_ELSEWHERE},
		{12, SAMPLER_PROCESS_ELSEWHERE}, {11, SAMPLER_PROCESS_ENDED},
		{11, SAMPLER_PROCESS_NEW},
	};

	put_fork(f, 0, 10, 1);
	put_namespaces(f, 0, 10, 4000);
	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 10);
	put_fork(f, 0, 11, 10);
	put_namespaces(f, 0, 11, 4001);
	put_short(f, 0, PERF_RECORD_COMM, 0, 11); /* renamed only */
	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 11);
	put_short(f, 0, PERF_RECORD_MMAP2, 0, 11);
	put_fork(f, 0, 12, 11);
	put_short(f, 0, PERF_RECORD_EXIT, 0, 11);
	put_fork(f, 0, 11, 1); /* the same id again */
	assert_reported(f, wanted, sizeof(wanted) / sizeof(wanted[0]));
}

/* The kernel writes these records for a set-uid program: its exec, then the end of its events,
 * without mappings. */
static void a_process_that_loses_its_events_at_exec_is_reported(void **state)
{
	struct fixture *f = *state;
	static const struct reported wanted[] = {
		{20, SAMPLER_PROCESS_NEW},      {21, SAMPLER_PROCESS_NEW},
		{20, SAMPLER_PROCESS_ENDED},    {21, SAMPLER_PROCESS_DETACHED},
		{22, SAMPLER_PROCESS_NEW},      {22, SAMPLER_PROCESS_NEW},
		{22, SAMPLER_PROCESS_DETACHED}, {22, SAMPLER_PROCESS_ENDED},
	};

	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 20);
	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 21);
	put_short(f, 0, PERF_RECORD_MMAP2, 0, 20);
	put_short(f, 0, PERF_RECORD_EXIT, 0, 20);
	put_short(f, 0, PERF_RECORD_EXIT, 0, 21);
	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 22);
	put_short(f, 0, PERF_RECORD_MMAP2, 0, 22);
	put_short(f, 0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC,
		  22); /* now it runs another program */
	put_short(f, 0, PERF_RECORD_EXIT, 0, 22);
	put_short(f, 0, PERF_RECORD_EXIT, 0, 22);
	assert_reported(f, wanted, sizeof(wanted) / sizeof(wanted[0]));
}

static size_t put_lost(struct fixture *f, int ring, uint64_t n)
{
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		struct attr_sample_id trailer;
	} lost = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(lost)}, .lost = n};

	assert_true(ring_put(f, ring, &lost, sizeof(lost)));
	return sizeof(lost);
}

static void lost_and_throttled_are_counted_and_kept(void **state)
{
	struct fixture *f = *state;
	size_t bytes = 0;
	struct {
		struct perf_event_header header;
		uint64_t time, id, stream;
		struct attr_sample_id trailer;
	} throttle = {.header = {.type = PERF_RECORD_THROTTLE, .size = sizeof(throttle)}};

	f->s.setup.filtered = true;
	bytes += put_lost(f, 0, 7);
	ring_put(f, 1, &throttle, sizeof(throttle));
	bytes += put_lost(f, 1, 7);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.lost_records, 14);
	assert_int_equal(f->s.stats.throttled, 1);
	assert_int_equal(f->taken_bytes, bytes + sizeof(throttle));
}

/* Event-only ring i. */
#define SIDE(i) (RINGS + (i))

static void have_event_rings(struct fixture *f)
{
	f->s.event_rings = f->rings + RINGS;
	f->s.features.format_lost = true;
}

static void lone_samples_are_passed_on_unread(void **state)
{
	struct fixture *f = *state;
	static const struct reported wanted[] = {{10, SAMPLER_PROCESS_NEW},
						 {10, SAMPLER_PROCESS_ENDED}};
	uint64_t written = 0, read = 0;

	have_event_rings(f);
	put_sample(f, 0, 5, ++written, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.first_sample_ns, 1);
	f->unseen = true;
	for (int i = 0; i < 2000; i++) {
		if (!put_sample(f, 0, 5, written + 1, (size_t)(i * 7 % 90))) {
			assert_int_equal(sampler_drain(&f->s), 0);
			assert_int_equal(f->pages[0].data_tail, f->pages[0].data_head);
			assert_true(put_sample(f, 0, 5, written + 1, (size_t)(i * 7 % 90)));
		}
		written++;
		if (f->taken_bytes > TAKEN_BYTES - 2 * RING_BYTES || i == 1999) {
			assert_int_equal(sampler_drain(&f->s), 0);
			for (size_t pos = 0; pos < f->taken_bytes;) {
				const struct sample *s = (const void *)(f->taken + pos);

				assert_int_equal(s->first.time_ns, ++read);
				pos += s->header.size;
			}
			f->taken_bytes = 0;
		}
	}
	assert_int_equal(read, written);
	assert_int_equal(f->s.stats.records, 1);
	assert_true(f->s.stats.last_sample_ns > written);
	put_fork(f, SIDE(1), 10, 1);
	assert_int_equal(sampler_drain(&f->s), 0);
	put_short(f, SIDE(0), PERF_RECORD_EXIT, 0, 10);
	assert_reported(f, wanted, 2);
}

static void samples_are_counted_on_request(void **state)
{
	struct fixture *f = *state;

	have_event_rings(f);
	f->s.options.count = true;
	for (uint64_t i = 1; i <= 3; i++) {
		put_sample(f, 0, 5, i, 3);
		assert_int_equal(sampler_drain(&f->s), 0);
		assert_int_equal(f->s.stats.samples, i);
		assert_int_equal(f->s.stats.last_sample_ns, i);
	}
}

/* A kernel without a count of lost records reports them as records among the samples. */
static void lost_records_of_older_kernels_are_found(void **state)
{
	struct fixture *f = *state;

	have_event_rings(f);
	f->s.features.format_lost = false;
	put_sample(f, 0, 5, 1, 3);
	assert_int_equal(sampler_drain(&f->s), 0);
	put_lost(f, 0, 7);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.lost_records, 7);
}

/* Samples and other records have a count each. A shared ring was full of the ones it has more of.
 */
static void losses_count_for_the_records_that_filled_the_ring(void **state)
{
	struct fixture *f = *state;

	put_sample(f, 0, 5, 1, 3);
	put_short(f, 0, PERF_RECORD_COMM, 0, 5);
	put_short(f, 0, PERF_RECORD_COMM, 0, 5);
	put_lost(f, 0, 7);
	put_sample(f, 1, 5, 2, 3);
	put_lost(f, 1, 20);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.lost_others, 7);
	assert_int_equal(f->s.stats.lost_records, 20);
	have_event_rings(f);
	f->s.options.count = true;
	put_lost(f, 0, 300);
	put_sample(f, SIDE(0), 5, 3, 3);
	put_lost(f, SIDE(0), 4000);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.lost_others, 4007);
	assert_int_equal(f->s.stats.lost_records, 320);
}

static void forks_on_event_only_rings_make_targets_before_their_samples(void **state)
{
	struct fixture *f = *state;

	have_event_rings(f);
	f->s.setup.filtered = true;
	assert_int_equal(targets_add(&f->s.targets, 100), 0);
	put_sample(f, 0, 101, 1, 3);
	put_sample(f, 0, 102, 2, 3);
	put_fork(f, SIDE(1), 101, 100);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.samples, 1);
	assert_int_equal(f->s.stats.dropped, 1);
	assert_int_equal(f->nprocesses, 1);
}

static void a_ring_with_nonsense_is_skipped_and_counted(void **state)
{
	struct fixture *f = *state;
	struct perf_event_header bad = {.type = PERF_RECORD_SAMPLE, .size = 4};

	for (int filtered = 0; filtered < 2; filtered++) {
		f->s.setup.filtered = filtered;
		f->s.stats = (struct sampler_stats){0};
		assert_int_equal(targets_add(&f->s.targets, 1), 0);
		put_sample(f, 0, 1, 1, 0);
		ring_put(f, 0, &bad, sizeof(bad));
		put_sample(f, 0, 1, 2, 0);
		put_sample(f, 1, 1, 3, 0);
		assert_int_equal(sampler_drain(&f->s), 0);
		assert_int_equal(f->s.stats.damaged, 1);
		assert_int_equal(f->s.stats.samples, 2);
		put_sample(f, 0, 1, 4, 0);
		assert_int_equal(sampler_drain(&f->s), 0);
		assert_int_equal(f->s.stats.samples, 3);
	}
}

static void a_listeners_error_ends_the_drain_and_keeps_the_records(void **state)
{
	struct fixture *f = *state;

	put_sample(f, 0, 1, 1, 0);
	put_sample(f, 1, 1, 2, 0);
	f->fail_with = -ENOSPC;
	assert_int_equal(sampler_drain(&f->s), -ENOSPC);
	assert_int_equal(f->pages[0].data_tail, 0);
	assert_int_equal(f->rounds, 0);
}

static void peeked_forks_stay_in_the_ring(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pidset_new(&f->s.attached), 0);
	put_sample(f, 0, 1, 1, 0);
	put_fork(f, 0, 50, 40);
	assert_int_equal(sampler_peek_forks(&f->s), 0);
	assert_true(pidset_has(&f->s.attached, 50));
	assert_true(pidset_has(&f->s.targets.pids, 50));
	assert_int_equal(f->taken_bytes, 0);
	assert_int_equal(sampler_drain(&f->s), 0);
	assert_int_equal(f->s.stats.records, 2);
	pidset_free(&f->s.attached);
}

static void a_pidset_contains_every_possible_pid(void **state)
{
	(void)state;
	struct pidset set;

	assert_int_equal(pidset_new(&set), 0);
	assert_true(pidset_add(&set, 0));
	assert_true(pidset_add(&set, PIDSET_MAX - 1));
	assert_false(pidset_add(&set, PIDSET_MAX));
	assert_false(pidset_add(&set, -1));
	assert_false(pidset_add(&set, 0));
	assert_int_equal(set.len, 2);
	assert_true(pidset_has(&set, PIDSET_MAX - 1));
	assert_false(pidset_has(&set, -1));
	assert_true(pidset_remove(&set, 0));
	assert_false(pidset_remove(&set, 0));
	pidset_free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_record_comes_whole_and_once_however_it_lies_in_the_ring, setup,
			teardown),
		cmocka_unit_test_setup_teardown(positions_may_pass_32_bits, setup, teardown),
		cmocka_unit_test_setup_teardown(only_targets_and_their_children_pass_the_filter,
						setup, teardown),
		cmocka_unit_test_setup_teardown(grandchildren_are_found_in_whichever_ring, setup,
						teardown),
		cmocka_unit_test_setup_teardown(records_before_the_first_drain_come_in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(forks_before_the_first_drain_make_targets, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			memory_for_records_before_the_first_drain_is_limited, setup, teardown),
		cmocka_unit_test_setup_teardown(little_memory_limits_records_before_the_first_drain,
						setup, teardown),
		cmocka_unit_test_setup_teardown(processes_are_listed_with_their_container, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_process_that_loses_its_events_at_exec_is_reported,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lost_and_throttled_are_counted_and_kept, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lone_samples_are_passed_on_unread, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_are_counted_on_request, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_count_for_the_records_that_filled_the_ring,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lost_records_of_older_kernels_are_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			forks_on_event_only_rings_make_targets_before_their_samples, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_ring_with_nonsense_is_skipped_and_counted, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_listeners_error_ends_the_drain_and_keeps_the_records, setup, teardown),
		cmocka_unit_test_setup_teardown(peeked_forks_stay_in_the_ring, setup, teardown),
		cmocka_unit_test(a_pidset_contains_every_possible_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
