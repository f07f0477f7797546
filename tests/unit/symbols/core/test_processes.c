#include "symbols/core/processes.h"

#include "tests/unit/cpu_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Names are numbers. */
static int comm_of(void *ctx, int32_t tid, const char *name, uint32_t *ret_comm)
{
	unsigned *calls = ctx;

	*calls += 1;
	*ret_comm = name ? (uint32_t)strtoul(name, NULL, 10) : 1000000u + (uint32_t)tid;
	return 0;
}

static unsigned calls; /* of comm_of */

static uint32_t comm(struct processes *p, struct process_thread *t)
{
	uint32_t id;

	assert_int_equal(processes_comm_of(p, t, &id), 0);
	return id;
}

static struct processes *fresh(void)
{
	struct processes *p;

	assert_int_equal(
		processes_new(&(struct processes_options){.comm = comm_of,
							  .ctx = &calls,
							  .maps_bytes = PROCESSES_MAPS_BYTES_MAX},
			      &p),
		0);
	return p;
}

static void lay(struct processes *p, int32_t pid, uint64_t start, uint64_t end, uint32_t image)
{
	struct process_map map = {.start = start, .end = end, .image = image};

	assert_int_equal(processes_map(p, pid, pid, &map, false), 0);
}

static struct process_thread *thread(struct processes *p, int32_t pid, int32_t tid)
{
	struct process_thread *t;

	assert_int_equal(processes_thread(p, pid, tid, &t), 0);
	return t;
}

/* The image at an address; -1: no image. */
static int64_t at(struct processes *p, int32_t pid, int32_t tid, uint64_t addr)
{
	const struct process_map *m = processes_find_map(p, thread(p, pid, tid), addr);

	return m ? (int64_t)m->image : -1;
}

static void later_maps_overlay_earlier_ones(void **state)
{
	struct processes *p = fresh();
	const struct process_map *m;

	(void)state;
	lay(p, 1, 0x1000, 0x5000, 1);
	lay(p, 1, 0x2000, 0x3000, 2);
	assert_int_equal(at(p, 1, 1, 0xfff), -1);
	assert_int_equal(at(p, 1, 1, 0x1000), 1);
	assert_int_equal(at(p, 1, 1, 0x2fff), 2);
	m = processes_find_map(p, thread(p, 1, 1), 0x3000);
	assert_int_equal(m->image, 1);
	assert_int_equal(m->pgoff, 0x2000);
	lay(p, 1, 0x0, 0x10000, 3);
	assert_int_equal(at(p, 1, 1, 0x2000), 3);
	assert_int_equal(at(p, 1, 1, 0x10000), -1);
	processes_free(p);
}

static void threads_share_maps_and_forks_copy_them(void **state)
{
	struct processes *p = fresh();

	(void)state;
	lay(p, 1, 0x1000, 0x2000, 1);
	assert_int_equal(processes_fork(p, 1, 5, 1, 1, true), 0);
	assert_int_equal(processes_fork(p, 9, 9, 1, 5, true), 0);
	assert_int_equal(processes_generation(p, thread(p, 9, 9)),
			 processes_generation(p, thread(p, 1, 1)));
	lay(p, 1, 0x3000, 0x4000, 2);
	assert_int_equal(at(p, 1, 5, 0x3000), 2);
	assert_int_equal(at(p, 9, 9, 0x3000), -1);
	assert_int_equal(at(p, 9, 9, 0x1000), 1);
	assert_int_not_equal(processes_generation(p, thread(p, 9, 9)),
			     processes_generation(p, thread(p, 1, 1)));
	/* Processes that ran before get their maps as records of their own. */
	assert_int_equal(processes_fork(p, 10, 10, 1, 1, false), 0);
	assert_int_equal(at(p, 10, 10, 0x1000), -1);
	processes_free(p);
}

static void generation_changes_whenever_a_lookup_may_change(void **state)
{
	struct processes *p = fresh();
	uint32_t before;

	(void)state;
	assert_int_equal(processes_generation(p, thread(p, 1, 1)), 0);
	lay(p, 1, 0x1000, 0x2000, 1);
	before = processes_generation(p, thread(p, 1, 1));
	assert_int_not_equal(before, 0);
	lay(p, 1, 0x8000, 0x9000, 1);
	assert_int_equal(processes_generation(p, thread(p, 1, 1)), before);
	assert_int_equal(at(p, 1, 1, 0x6000), -1);
	lay(p, 1, 0x6000, 0x7000, 1);
	assert_int_not_equal(processes_generation(p, thread(p, 1, 1)), before);
	before = processes_generation(p, thread(p, 1, 1));
	lay(p, 1, 0x6800, 0x7000, 2);
	assert_int_not_equal(processes_generation(p, thread(p, 1, 1)), before);
	processes_free(p);
}

static void names_follow_threads(void **state)
{
	struct processes *p = fresh();

	(void)state;
	assert_int_equal(comm(p, thread(p, 7, 7)), 1000007);
	assert_int_equal(processes_comm(p, 7, 7, "1"), 0);
	assert_int_equal(processes_fork(p, 7, 8, 7, 7, true), 0);
	assert_int_equal(comm(p, thread(p, 7, 8)), 1);
	assert_int_equal(processes_comm(p, 7, 8, "2"), 0);
	assert_int_equal(comm(p, thread(p, 7, 7)), 1);
	processes_exit(p, 8);
	assert_int_equal(comm(p, thread(p, 7, 8)), 2);
	/* Another process reuses the tid. */
	assert_int_equal(processes_fork(p, 8, 8, 7, 7, true), 0);
	assert_int_equal(comm(p, thread(p, 8, 8)), 1);
	assert_int_equal(thread(p, 8, 8)->pid, 8);
	processes_free(p);
}

static void a_thread_seen_without_its_process_joins_it(void **state)
{
	struct processes *p = fresh();

	(void)state;
	assert_int_equal(thread(p, -1, 21)->pid, -1);
	lay(p, 20, 0x1000, 0x2000, 4);
	assert_int_equal(at(p, 20, 21, 0x1000), 4);
	processes_free(p);
}

static void code_copied_over_its_file_keeps_that_image(void **state)
{
	struct processes *p = fresh();
	struct process_map huge = {.start = 0x200000, .end = 0x400000, .image = 2};
	const struct process_map *m;

	(void)state;
	lay(p, 1, 0x100000, 0x500000, 1);
	assert_int_equal(processes_map(p, 1, 1, &huge, true), 0);
	m = processes_find_map(p, thread(p, 1, 1), 0x300000);
	assert_int_equal(m->image, 2);
	assert_int_equal(m->under, 1);
	assert_int_equal(m->under_pgoff, 0x100000);
	assert_int_equal(processes_find_map(p, thread(p, 1, 1), 0x150000)->under, PROCESS_NO_IMAGE);
	processes_free(p);
}

static void ended_processes_free_their_memory(void **state)
{
	struct processes *p = fresh();

	(void)state;
	for (int32_t pid = 10; pid < 10 + PROCESSES_ENDED_KEPT + 100; pid++) {
		assert_int_equal(processes_fork(p, pid, pid, 1, 1, true), 0);
		lay(p, pid, 0x1000, 0x2000, (uint32_t)pid);
		processes_exit(p, pid);
	}
	assert_int_equal(at(p, 10, 10, 0x1000), -1);
	assert_int_equal(
		at(p, 9 + PROCESSES_ENDED_KEPT + 100, 9 + PROCESSES_ENDED_KEPT + 100, 0x1000),
		9 + PROCESSES_ENDED_KEPT + 100);
	processes_free(p);
}

static void bad_maps_are_refused(void **state)
{
	struct processes *p = fresh();
	struct process_map empty = {.start = 5, .end = 5},
			   wraps = {.start = UINT64_MAX - 5, .end = 3};

	(void)state;
	assert_int_equal(processes_map(p, 1, 1, &empty, false), -EINVAL);
	assert_int_equal(processes_map(p, 1, 1, &wraps, false), -EINVAL);
	processes_exit(p, 12345);
	processes_free(p);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

#define NAIVE_END 65536
#define NAIVE_MAPS 40000

/* Reference model: the same for each address. */
struct naive {
	struct naive_addr {
		uint32_t image, under; /* image 0: not mapped */
		uint64_t file_off, under_off;
	} at[NAIVE_END];
};

static void is_as_naive(struct processes *p, int32_t pid, const struct naive *n, uint64_t addr)
{
	const struct process_map *m = processes_find_map(p, thread(p, pid, pid), addr);
	const struct naive_addr *want = &n->at[addr];

	if (!want->image) {
		assert_null(m);
		return;
	}
	assert_non_null(m);
	assert_true(m->start <= addr && addr < m->end);
	assert_int_equal(m->image, want->image);
	assert_int_equal(addr - m->start + m->pgoff, want->file_off);
	assert_int_equal(m->under, want->under);
	if (m->under != PROCESS_NO_IMAGE)
		assert_int_equal(addr - m->start + m->under_pgoff, want->under_off);
}

static void naive_lay(struct naive *n, const struct process_map *map,
		      const struct process_map *below)
{
	for (uint64_t addr = map->start; addr < map->end; addr++) {
		struct naive_addr *a = &n->at[addr], old = *a;

		*a = (struct naive_addr){.image = map->image,
					 .under = PROCESS_NO_IMAGE,
					 .file_off = addr - map->start + map->pgoff};
		if (!below)
			continue;
		a->under = old.under == PROCESS_NO_IMAGE ? old.image : old.under;
		a->under_off = old.under == PROCESS_NO_IMAGE ? old.file_off : old.under_off;
	}
}

/* Most maps are short, so that there are thousands; a few cover many others. */
static void apply_to_both(struct processes *p, int32_t pid, struct naive *n, uint32_t image,
			  uint32_t *seed)
{
	uint64_t addr = next_random(seed) % NAIVE_END;
	uint64_t bytes = 1 + next_random(seed) % (next_random(seed) % 1024 ? 4 : NAIVE_END / 4);
	struct process_map map = {
		.start = addr, .end = addr + bytes, .pgoff = next_random(seed), .image = image};
	const struct process_map *below = processes_find_map(p, thread(p, pid, pid), addr);
	bool anonymous = next_random(seed) % 2;
	uint32_t generation = processes_generation(p, thread(p, pid, pid));
	bool within = below && anonymous;

	if (map.end > NAIVE_END)
		map.end = NAIVE_END;
	within = within && map.end <= below->end;
	naive_lay(n, &map, within ? below : NULL);
	assert_int_equal(processes_map(p, pid, pid, &map, anonymous), 0);
	if (below)
		assert_int_not_equal(processes_generation(p, thread(p, pid, pid)), generation);
}

static void the_later_map_wins_at_each_address(void **state)
{
	struct naive *n = calloc(1, sizeof(*n)), *forked = calloc(1, sizeof(*n));
	struct processes *p = fresh();
	uint32_t seed = 1;

	(void)state;
	assert_non_null(n);
	assert_non_null(forked);
	for (uint32_t image = 1; image <= NAIVE_MAPS; image++) {
		if (image == NAIVE_MAPS / 2) {
			assert_int_equal(processes_fork(p, 2, 2, 1, 1, true), 0);
			*forked = *n;
		}
		apply_to_both(p, 1, n, image, &seed);
		if (image > NAIVE_MAPS / 2 && image % 2)
			apply_to_both(p, 2, forked, image, &seed);
		for (uint64_t addr = image % 1024; addr < NAIVE_END; addr += 1024) {
			is_as_naive(p, 1, n, addr);
			if (image >= NAIVE_MAPS / 2)
				is_as_naive(p, 2, forked, addr);
		}
	}
	processes_free(p);
	free(forked);
	free(n);
}

#define MANY ((size_t)1 << 17)
#define MANY_CPU_S 3 /* takes a tenth of a second; over ten if each map moved the others */

/* Address of map i: falling, or from the middle outwards. */
static uint64_t many_addr(size_t i, bool outwards)
{
	size_t place = MANY - i;

	if (outwards)
		place = i % 2 ? MANY / 2 - i / 2 : MANY / 2 + 1 + i / 2;
	return place * 0x2000;
}

static void check_many(bool outwards)
{
	const clock_t limit = cpu_limit(MANY_CPU_S);
	struct processes *p = fresh();
	clock_t since = clock();

	for (size_t i = 0; i < MANY; i++) {
		uint64_t addr = many_addr(i, outwards);

		lay(p, 1, addr, addr + 0x1000, (uint32_t)i);
		/* With lookups in between. */
		if (at(p, 1, 1, addr + 0xfff) != (int64_t)i || at(p, 1, 1, addr + 0x1000) != -1)
			fail();
		if (i % 4096 == 0)
			assert_true(clock() - since < limit);
	}
	for (size_t i = 0; i < MANY; i++)
		if (at(p, 1, 1, many_addr(i, outwards)) != (int64_t)i)
			fail();
	assert_true(clock() - since < limit);
	lay(p, 1, 0, UINT64_MAX, 7);
	for (size_t i = 0; i < MANY; i++)
		if (at(p, 1, 1, many_addr(i, outwards)) != 7)
			fail();
	processes_free(p);
}

static void many_maps_in_any_order_are_fast(void **state)
{
	(void)state;
	check_many(false);
	check_many(true);
}

static void maps_over_the_limit_are_dropped(void **state)
{
	struct process_map map = {.image = 1};
	struct processes *p = fresh();

	(void)state;
	for (uint64_t i = 0; i < PROCESS_MAPS_MAX; i++)
		lay(p, 1, i * 2, i * 2 + 1, (uint32_t)i);
	map.end = 1;
	assert_int_equal(processes_map(p, 1, 1, &map, false), -E2BIG);
	assert_int_equal(at(p, 1, 1, 2 * PROCESS_MAPS_MAX - 2), PROCESS_MAPS_MAX - 1);
	processes_free(p);
}

/* After a map was dropped, the maps below it are not there any more. */
static void maps_below_a_dropped_one_are_not_found(void **state)
{
	struct process_map map = {.start = 15, .end = 18, .image = PROCESS_NO_IMAGE};
	struct processes *p = fresh();

	(void)state;
	lay(p, 1, 10, 20, 5);
	lay(p, 1, 20, 30, 6);
	assert_int_equal(processes_fork(p, 2, 2, 1, 1, true), 0);
	assert_int_equal(at(p, 2, 2, 12), 5);
	assert_int_equal(processes_lose_map(p, 2, 2, &map), -E2BIG);
	assert_int_equal(processes_families(p)->dropped, 1);
	assert_int_equal(at(p, 2, 2, 16), -1);
	assert_int_equal(at(p, 2, 2, 12), -1);
	assert_int_equal(at(p, 2, 2, 20), 6);
	assert_int_equal(at(p, 1, 1, 16), 5);
	/* The same as before, or over nothing. */
	map = (struct process_map){.start = 22, .end = 25, .image = 6, .pgoff = 2};
	assert_int_equal(processes_lose_map(p, 2, 2, &map), -E2BIG);
	map = (struct process_map){.start = 50, .end = 60, .image = 7};
	assert_int_equal(processes_lose_map(p, 2, 2, &map), -E2BIG);
	assert_int_equal(at(p, 2, 2, 20), 6);
	/* New maps are right. */
	lay(p, 2, 14, 16, 8);
	assert_int_equal(at(p, 2, 2, 15), 8);
	assert_int_equal(at(p, 2, 2, 17), -1);
	lay(p, 2, 15, 30, 9);
	assert_int_equal(at(p, 2, 2, 17), 9);
	assert_int_equal(at(p, 2, 2, 12), 5);
	processes_free(p);
}

/* Two lost ranges that are far apart do not hide maps that come later, there or between them. */
static void maps_after_dropped_ones_are_found(void **state)
{
	struct process_map lost = {.start = 10, .end = 11, .image = PROCESS_NO_IMAGE};
	struct processes *p = fresh();

	(void)state;
	lay(p, 1, 10, 20, 5);
	lay(p, 1, 90, 99, 6);
	lay(p, 1, 60, 70, 7);
	assert_int_equal(processes_lose_map(p, 1, 1, &lost), -E2BIG);
	lost.start = 90;
	lost.end = 91;
	assert_int_equal(processes_lose_map(p, 1, 1, &lost), -E2BIG);
	assert_int_equal(at(p, 1, 1, 15), -1);
	assert_int_equal(at(p, 1, 1, 65), -1);
	lay(p, 1, 50, 60, 8);
	assert_int_equal(at(p, 1, 1, 55), 8);
	/* The same as before the loss. */
	lay(p, 1, 10, 20, 5);
	assert_int_equal(at(p, 1, 1, 10), 5);
	assert_int_equal(at(p, 1, 1, 95), -1);
	lay(p, 1, 62, 64, 7);
	assert_int_equal(at(p, 1, 1, 63), 7);
	processes_free(p);
}

#define CHAIN_FORKS 10000
#define CHAIN_MAPS 20000
#define CHAIN_CPU_S 3 /* takes a tenth of a second */

/* A copy of all maps for each fork would take 8 GB, and the time to make it. */
static void a_fork_and_a_change_cost_only_the_change(void **state)
{
	const clock_t limit = cpu_limit(CHAIN_CPU_S);
	struct processes *p = fresh();
	clock_t since = clock();

	(void)state;
	for (uint32_t i = 0; i < CHAIN_MAPS; i++)
		lay(p, 1, i * 2, i * 2 + 1, i);
	for (int32_t pid = 2; pid < 2 + CHAIN_FORKS; pid++) {
		assert_int_equal(processes_fork(p, pid, pid, pid - 1, pid - 1, true), 0);
		lay(p, pid, 1 + (uint64_t)pid * 2, 2 + (uint64_t)pid * 2,
		    CHAIN_MAPS + (uint32_t)pid);
		assert_true(clock() - since < limit);
	}
	for (int32_t pid = 1; pid < 2 + CHAIN_FORKS; pid += 100) {
		assert_int_equal(at(p, pid, pid, 2 * (CHAIN_MAPS - 1)), CHAIN_MAPS - 1);
		assert_int_equal(at(p, pid, pid, 1 + (uint64_t)pid * 2),
				 pid == 1 ? -1 : CHAIN_MAPS + pid);
		assert_int_equal(at(p, pid, pid, 3 + (uint64_t)pid * 2), -1);
	}
	assert_int_equal(processes_families(p)->dropped, 0);
	processes_free(p);
}

/* Fills the memory with maps of processes that run or have ended. Returns the number of them. */
static int32_t fill(struct processes *p, bool ends)
{
	struct process_map map;
	int32_t pid = 100;
	int r = 0;

	for (; !r && pid < 200; pid++) {
		for (uint64_t i = 0; !r && i < 10000; i++) {
			map = (struct process_map){
				.start = i * 2, .end = i * 2 + 1, .image = (uint32_t)i};
			r = processes_map(p, pid, pid, &map, false);
		}
		if (ends)
			processes_exit(p, pid);
	}
	assert_int_equal(r, ends ? 0 : -E2BIG);
	return pid - 100;
}

static void all_processes_share_one_limit(void **state)
{
	const size_t room = PROCESSES_MAPS_BYTES_MAX / 10000 / sizeof(struct map_tree_node);
	struct process_map map = {.start = 1, .end = 2, .image = 7};
	struct processes *p = fresh();
	int32_t n;

	(void)state;
	lay(p, 1, 0, 1, 5);
	n = fill(p, false);
	/* Small processes still have room. */
	assert_in_range(n, room * 4 / 5, room);
	assert_int_equal(processes_families(p)->dropped, 1);
	lay(p, 1, 1, 2, 6);
	map = (struct process_map){.start = 20001, .end = 20002, .image = 7};
	assert_int_equal(processes_map(p, 101, 101, &map, false), -E2BIG);
	assert_int_equal(processes_families(p)->dropped, 2);
	assert_int_equal(processes_families(p)->most_pid, 101);
	assert_int_equal(at(p, 1, 1, 0), 5);
	assert_int_equal(at(p, 100, 100, 0), 0);
	/* An end makes room. */
	processes_exit(p, 100);
	assert_int_equal(at(p, 100, 100, 0), 0);
	assert_int_equal(processes_map(p, 101, 101, &map, false), 0);
	assert_int_equal(at(p, 100, 100, 0), -1);
	assert_int_equal(at(p, 101, 101, 20001), 7);
	assert_int_equal(processes_families(p)->dropped, 2);
	processes_free(p);
}

#define FORKS 30
#define FORK_MAPS 20000 /* maps of a process, more than it may leave to others */

/* A process and its forks, which change all maps that they share, take no maps of later ones. */
static void maps_of_a_family_leave_room_to_others(void **state)
{
	struct processes *p = fresh();
	struct process_map map;
	int r = 0;

	(void)state;
	for (int32_t pid = 1; pid <= FORKS; pid++) {
		for (uint64_t i = 0; i < FORK_MAPS; i++) {
			map = (struct process_map){
				.start = i, .end = i + 1, .image = (uint32_t)pid};
			r = processes_map(p, pid, pid, &map, false);
			assert_true(!r || r == -E2BIG);
		}
		assert_int_equal(processes_fork(p, pid + 1, pid + 1, pid, pid, true), 0);
	}
	assert_int_equal(r, -E2BIG);
	for (uint64_t i = 0; i < FORK_MAPS; i++)
		lay(p, FORKS + 2, i, i + 1, 7);
	/* The last reference to shared maps gives their memory back. */
	for (int32_t pid = 1; pid <= FORKS + 1; pid++)
		processes_exit(p, pid);
	processes_forget_ended(p);
	for (int32_t pid = 1; pid <= 10; pid++)
		for (uint64_t i = 0; i < FORK_MAPS; i++)
			lay(p, pid, i, i + 1, 8);
	processes_free(p);
}

static void ended_processes_make_room_in_their_order(void **state)
{
	struct processes *p = fresh();
	int32_t n;

	(void)state;
	lay(p, 1, 0, 1, 5);
	n = fill(p, true);
	assert_int_equal(processes_families(p)->dropped, 0);
	assert_int_equal(at(p, 1, 1, 0), 5);
	assert_int_equal(at(p, 100, 100, 0), -1);
	assert_int_equal(at(p, 99 + n, 99 + n, 2), 1);
	processes_free(p);
}

/* Then only its own ended processes make room for it. */
static void ended_processes_make_no_room_for_a_larger_family(void **state)
{
	struct processes *p = fresh();
	struct process_map map = {.end = 1};
	uint64_t dropped;
	int r = 0;

	(void)state;
	lay(p, 1, 0, 1, 5);
	processes_exit(p, 1);
	for (int32_t pid = 100; !r; pid++) {
		for (uint64_t i = 0; !r && i < FORK_MAPS; i++) {
			map = (struct process_map){.start = i, .end = i + 1, .image = 6};
			map.pgoff = (uint64_t)pid << 20;
			r = processes_map(p, pid, pid, &map, false);
		}
		assert_int_equal(processes_fork(p, pid + 1, pid + 1, pid, pid, true), 0);
		assert_true(pid < 200);
	}
	assert_int_equal(r, -E2BIG);
	assert_int_equal(at(p, 1, 1, 0), 5);
	lay(p, 2, 0, 1, 7);
	processes_exit(p, 2);
	assert_int_equal(processes_map(p, 100, 100, &map, false), -E2BIG);
	assert_int_equal(at(p, 2, 2, 0), 7);
	processes_exit(p, 100);
	dropped = processes_families(p)->dropped;
	lay(p, 101, 1, 2, 8);
	assert_int_equal(at(p, 100, 100, 0), -1);
	assert_int_equal(at(p, 1, 1, 0), 5);
	assert_int_equal(at(p, 2, 2, 0), 7);
	assert_int_equal(processes_families(p)->dropped, dropped);
	processes_free(p);
}

static void ended_threads_are_forgotten(void **state)
{
	struct processes *p = fresh();

	(void)state;
	assert_int_equal(processes_comm(p, 1, 1, "3"), 0);
	lay(p, 1, 0x1000, 0x2000, 9);
	/* The first thread ends before its process. */
	processes_fork(p, 1, 2, 1, 1, true);
	processes_exit(p, 1);
	for (int32_t i = 0; i < 3 * PROCESSES_ENDED_KEPT; i++) {
		int32_t pid = 10 + i;

		assert_int_equal(processes_fork(p, pid, pid, 1, 2, true), 0);
		assert_int_equal(processes_fork(p, 1, 1000000 + pid, 1, 2, true), 0);
		assert_int_equal(at(p, pid, pid, 0x1000), 9);
		lay(p, pid, 0x1000, 0x1800, (uint32_t)pid);
		processes_exit(p, pid);
		processes_exit(p, 1000000 + pid);
		if (i % 1000 == 999)
			assert_int_equal(comm(p, thread(p, pid - 100, pid - 100)), 3);
	}
	assert_int_equal(comm(p, thread(p, 10, 10)), 1000010);
	assert_int_equal(comm(p, thread(p, 1, 1)), 3);
	assert_int_equal(at(p, 1, 2, 0x1000), 9);
	assert_int_equal(at(p, 1, 77, 0x1000), 9);
	processes_free(p);
}

/* The caller keeps each name that it gets, so it gets only those that a sample needs. */
static void a_storm_of_names_costs_nothing(void **state)
{
	struct processes *p = fresh();
	char name[64];

	(void)state;
	calls = 0;
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(processes_comm(p, 7, 7, name), 0);
	}
	assert_int_equal(calls, 0);
	assert_int_equal(comm(p, thread(p, 7, 7)), 99999);
	assert_int_equal(comm(p, thread(p, 7, 7)), 99999);
	assert_int_equal(calls, 1);
	/* A file can hold longer names than a thread can have. */
	assert_int_equal(processes_comm(p, 7, 7, "12, and more than a name has"), 0);
	assert_int_equal(processes_fork(p, 8, 8, 7, 7, true), 0);
	assert_int_equal(comm(p, thread(p, 7, 7)), 12);
	assert_int_equal(comm(p, thread(p, 8, 8)), 12);
	processes_free(p);
}

static int no_memory(void *ctx, int32_t tid, const char *name, uint32_t *ret_comm)
{
	(void)tid;
	(void)name;
	if (*(bool *)ctx)
		return -ENOMEM;
	*ret_comm = 7;
	return 0;
}

static void a_name_that_found_no_memory_is_tried_again(void **state)
{
	bool fails = true;
	uint32_t id = 0;
	struct processes *p;

	(void)state;
	assert_int_equal(
		processes_new(&(struct processes_options){.comm = no_memory, .ctx = &fails}, &p),
		0);
	assert_int_equal(processes_comm_of(p, thread(p, 10, 11), &id), -ENOMEM);
	assert_int_equal(processes_comm(p, 10, 11, "more than 15 characters"), -ENOMEM);
	fails = false;
	assert_int_equal(processes_comm_of(p, thread(p, 10, 11), &id), 0);
	assert_int_equal(id, 7);
	processes_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_maps_overlay_earlier_ones),
		cmocka_unit_test(threads_share_maps_and_forks_copy_them),
		cmocka_unit_test(generation_changes_whenever_a_lookup_may_change),
		cmocka_unit_test(names_follow_threads),
		cmocka_unit_test(a_thread_seen_without_its_process_joins_it),
		cmocka_unit_test(code_copied_over_its_file_keeps_that_image),
		cmocka_unit_test(ended_processes_free_their_memory),
		cmocka_unit_test(bad_maps_are_refused),
		cmocka_unit_test(the_later_map_wins_at_each_address),
		cmocka_unit_test(many_maps_in_any_order_are_fast),
		cmocka_unit_test(maps_over_the_limit_are_dropped),
		cmocka_unit_test(maps_below_a_dropped_one_are_not_found),
		cmocka_unit_test(maps_after_dropped_ones_are_found),
		cmocka_unit_test(a_fork_and_a_change_cost_only_the_change),
		cmocka_unit_test(all_processes_share_one_limit),
		cmocka_unit_test(maps_of_a_family_leave_room_to_others),
		cmocka_unit_test(ended_processes_make_room_in_their_order),
		cmocka_unit_test(ended_processes_make_no_room_for_a_larger_family),
		cmocka_unit_test(ended_threads_are_forgotten),
		cmocka_unit_test(a_storm_of_names_costs_nothing),
		cmocka_unit_test(a_name_that_found_no_memory_is_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
