#include "symbols/symtab/kernel_map.h"

#include "tests/unit/cpu_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static const char *at(const struct kernel_map *k, uint64_t addr)
{
	const struct kernel_range *r = kernel_map_find(k, addr);

	return r ? intern_text(&k->names, r->name) : "-";
}

static void modules_are_named_as_perf_names_them(void **state)
{
	struct kernel_map k = {0};

	(void)state;
	assert_int_equal(kernel_map_add(&k, 0x1000, 0x1000, 0x1010, "[kernel.kallsyms]_text"), 0);
	assert_int_equal(
		kernel_map_add(&k, 0x2000, 0x1000, 0, "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko"),
		0);
	assert_int_equal(
		kernel_map_add(&k, 0x3000, 0x1000, 0, "/lib/modules/6.1.0/snd-hda-intel.ko.xz"), 0);
	assert_int_equal(kernel_map_add(&k, 0x4000, 0x1000, 0, "[xfs]"), 0);
	assert_int_equal(kernel_map_add(&k, 0, 0x1000, 0, "[kernel.kallsyms]_text"), 0);
	assert_string_equal(at(&k, 0xfff), "-");
	assert_string_equal(at(&k, 0x1000), "[kernel.kallsyms]");
	assert_string_equal(at(&k, 0x2000), "[ext4]");
	assert_string_equal(at(&k, 0x3fff), "[snd_hda_intel]");
	assert_string_equal(at(&k, 0x4000), "[xfs]");
	assert_string_equal(at(&k, 0x5000), "-");
	assert_int_equal(k.ref_addr, 0x1010);
	assert_string_equal(k.ref_name, "_text");
	kernel_map_free(&k);
}

static void symbols_come_and_go(void **state)
{
	struct kernel_map k = {0};
	uint32_t generation;

	(void)state;
	assert_int_equal(kernel_map_add(&k, 0x1000, 0x8000, 0, "[kernel.kallsyms]_text"), 0);
	generation = k.generation;
	assert_int_equal(kernel_map_symbol(&k, 0x3000, 0x100, false, "bpf_prog_1"), 0);
	assert_int_not_equal(k.generation, generation);
	assert_string_equal(at(&k, 0x2fff), "[kernel.kallsyms]");
	assert_string_equal(at(&k, 0x3000), "bpf_prog_1");
	assert_string_equal(at(&k, 0x3100), "[kernel.kallsyms]");
	assert_int_equal(kernel_map_symbol(&k, 0x3050, 0x10, true, "bpf_prog_1"), 0);
	assert_string_equal(at(&k, 0x3000), "bpf_prog_1");
	assert_int_equal(kernel_map_symbol(&k, 0x3000, 0x100, true, "bpf_prog_1"), 0);
	assert_string_equal(at(&k, 0x3000), "-");
	/* A record over several others covers all of them. */
	assert_int_equal(kernel_map_symbol(&k, 0x2f00, 0x300, false, "bpf_prog_2"), 0);
	assert_string_equal(at(&k, 0x2eff), "[kernel.kallsyms]");
	assert_string_equal(at(&k, 0x2f00), "bpf_prog_2");
	assert_string_equal(at(&k, 0x31ff), "bpf_prog_2");
	assert_string_equal(at(&k, 0x3200), "[kernel.kallsyms]");
	assert_int_equal(kernel_map_symbol(&k, UINT64_MAX, 0x100, false, "wraps"), 0);
	assert_string_equal(at(&k, UINT64_MAX), "-");
	kernel_map_free(&k);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

#define NAIVE_END 512
#define NAIVE_RECORDS 10000

/* Reference model: the same for each address. */
struct naive {
	struct {
		uint32_t record; /* owner; 0: none */
		bool is_symbol;
	} at[NAIVE_END + 1];
};

/* Stores the piece that covers addr in *ret_start and *ret_end. */
static bool naive_find(const struct naive *n, uint64_t addr, uint64_t *ret_start, uint64_t *ret_end)
{
	uint32_t record = n->at[addr].record;

	for (*ret_start = addr; *ret_start && n->at[*ret_start - 1].record == record;)
		--*ret_start;
	for (*ret_end = addr; *ret_end <= NAIVE_END && n->at[*ret_end].record == record;)
		++*ret_end;
	return record;
}

static void naive_put(struct naive *n, uint64_t start, uint64_t end, uint32_t record,
		      bool is_symbol)
{
	for (; start < end; start++) {
		n->at[start].record = record;
		n->at[start].is_symbol = is_symbol;
	}
}

static void is_as_naive(const struct kernel_map *k, const struct naive *n, uint64_t addr)
{
	const struct kernel_range *r = kernel_map_find(k, addr);
	uint64_t start, end;

	if (!naive_find(n, addr, &start, &end)) {
		assert_null(r);
		return;
	}
	assert_non_null(r);
	assert_int_equal(r->start, start);
	assert_int_equal(r->end, end);
	assert_int_equal(r->is_symbol, n->at[addr].is_symbol);
	assert_int_equal(strtoul(intern_text(&k->names, r->name) + 1, NULL, 10),
			 n->at[addr].record);
}

static size_t naive_count(const struct naive *n)
{
	size_t count = 0;

	for (uint64_t addr = 1; addr <= NAIVE_END; addr++)
		count += n->at[addr].record && n->at[addr].record != n->at[addr - 1].record;
	return count;
}

static void apply_to_both(struct kernel_map *k, struct naive *n, uint32_t record, uint32_t *seed)
{
	uint32_t kind = next_random(seed) % 8,
		 bytes = next_random(seed) % (1u << next_random(seed) % 10);
	uint64_t addr = 1 + next_random(seed) % (NAIVE_END - 1), start, end;
	char name[16];

	if (bytes > NAIVE_END - addr)
		bytes = (uint32_t)(NAIVE_END - addr);
	snprintf(name, sizeof(name), "[%u]", record);
	if (kind < 3) {
		/* Half of the lookups are at a start. */
		if (naive_find(n, addr, &start, &end) && next_random(seed) % 2)
			addr = start;
		if (naive_find(n, addr, &start, &end) && start == addr && n->at[addr].is_symbol)
			naive_put(n, start, end, 0, false);
		assert_int_equal(kernel_map_symbol(k, addr, bytes, true, name), 0);
	} else if (kind == 3) {
		naive_put(n, addr, addr + bytes, record, false);
		assert_int_equal(kernel_map_add(k, addr, bytes, 0, name), 0);
	} else {
		naive_put(n, addr, addr + bytes, record, true);
		assert_int_equal(kernel_map_symbol(k, addr, bytes, false, name), 0);
	}
}

static void the_later_record_wins_at_each_address(void **state)
{
	struct naive *n = calloc(1, sizeof(*n)), *before = malloc(sizeof(*before));
	struct kernel_map k = {0};
	uint32_t seed = 1;

	(void)state;
	assert_non_null(n);
	assert_non_null(before);
	for (uint32_t record = 1; record <= NAIVE_RECORDS; record++) {
		uint32_t generation = k.generation;

		*before = *n;
		apply_to_both(&k, n, record, &seed);
		if (memcmp(before, n, sizeof(*n)))
			assert_int_not_equal(k.generation, generation);
		assert_int_equal(k.ranges.n, naive_count(n));
		for (uint64_t addr = record % 16; addr <= NAIVE_END; addr += 16)
			is_as_naive(&k, n, addr);
	}
	kernel_map_free(&k);
	free(before);
	free(n);
}

#define MANY_BASE 0xffffffff00000000
#define MANY_CPU_S 20 /* takes a second; if each record moved the others, minutes */

/* Address of record i of n: falling, or from the middle outwards. */
static uint64_t many_addr(size_t i, size_t n, bool outwards)
{
	size_t place = n - i;

	if (outwards)
		place = i % 2 ? n / 2 - i / 2 : n / 2 + 1 + i / 2;
	return MANY_BASE + place * 0x100;
}

static void many_in_time(clock_t since)
{
	assert_true(clock() - since < cpu_limit(MANY_CPU_S));
}

static void check_many(size_t n, bool outwards)
{
	struct kernel_map k = {0};
	clock_t since = clock();

	for (size_t i = 0; i < n; i++) {
		uint64_t addr = many_addr(i, n, outwards);

		/* With lookups in between. */
		if (kernel_map_symbol(&k, addr, 0x80, false, "bpf_prog") ||
		    !kernel_map_find(&k, addr + 0x7f) || kernel_map_find(&k, addr + 0x80))
			fail();
		if (i % 4096 == 0)
			many_in_time(since);
	}
	assert_int_equal(k.ranges.n, n);
	for (size_t i = 0; i < n / 2; i++) {
		uint64_t addr = many_addr(i, n, outwards);

		if (kernel_map_symbol(&k, addr, 0x80, true, "bpf_prog") ||
		    kernel_map_find(&k, addr))
			fail();
		if (i % 4096 == 0)
			many_in_time(since);
	}
	assert_int_equal(k.ranges.n, n / 2);
	assert_int_equal(kernel_map_add(&k, MANY_BASE, 0x80000000, 0, "[over_all]"), 0);
	assert_int_equal(k.ranges.n, 1);
	kernel_map_free(&k);
}

static void many_records_in_any_order_are_fast(void **state)
{
	(void)state;
	check_many(1 << 19, false);
	check_many(1 << 17, true);
}

static void ranges_over_the_limit_are_counted(void **state)
{
	struct kernel_map k = {0};

	(void)state;
	for (size_t i = 0; i < KERNEL_RANGES_MAX; i++)
		if (kernel_map_symbol(&k, MANY_BASE + i * 0x100, 0x80, false, "bpf_prog"))
			fail();
	assert_int_equal(k.refused, 0);
	uint32_t generation = k.generation;

	assert_int_equal(kernel_map_symbol(&k, 0x1000, 0x80, false, "bpf_prog"), 0);
	assert_int_equal(kernel_map_add(&k, 0x3000, 0x1000, 0, "[xfs]"), 0);
	assert_int_equal(k.refused, 2);
	assert_int_equal(k.generation, generation);
	assert_string_equal(at(&k, 0x1000), "-");
	assert_string_equal(at(&k, MANY_BASE), "bpf_prog");
	kernel_map_free(&k);
}

static void the_build_id_is_found_among_notes(void **state)
{
	static const unsigned char notes[] = {
		4, 0, 0,   0,   1,   0, 0, 0, 7, 0,
		0, 0, 'X', 'e', 'n', 0, 9, 0, 0, 0, /* another owner */
		4, 0, 0,   0,   3,   0, 0, 0, 3, 0,
		0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 0,
	};
	struct build_id id;

	(void)state;
	assert_int_equal(kernel_map_notes_build_id(notes, sizeof(notes), &id), 0);
	assert_int_equal(id.len, 3);
	assert_memory_equal(id.bytes, "\1\2\3", 3);
	for (size_t len = 0; len < sizeof(notes); len++)
		assert_int_equal(kernel_map_notes_build_id(notes, len, &id), -ENOENT);
}

static void names_of_another_kernel_are_not_used(void **state)
{
	struct kernel_map k = {.build_id = {.len = 20}};

	(void)state;
	assert_int_equal(kernel_map_load(&k), 0);
	/* If the running kernel reports its build id, that is not all zeroes. */
	if (k.live == KERNEL_MAP_FOREIGN) {
		assert_false(kernel_map_is_running(&k));
		assert_null(k.kallsyms);
		assert_false(kernel_map_start_loading(&k));
	}
	kernel_map_free(&k);
}

/* Its author would learn where the kernel is from the names of his addresses. */
static void a_forged_recording_gets_no_names(void **state)
{
	struct kernel_map k = {.secret = true};

	(void)state;
	assert_false(kernel_map_start_loading(&k));
	assert_int_equal(kernel_map_load(&k), 0);
	assert_int_equal(k.live, KERNEL_MAP_HIDDEN);
	assert_null(k.kallsyms);
	/* Nor does it learn whether this is the recorded address of _text. */
	kernel_map_free(&k);
	for (uint64_t at = 0; at < 2; at++) {
		k = (struct kernel_map){.secret = true, .ref_addr = at, .ref_name = "_text"};
		assert_int_equal(kernel_map_is_running(&k), !access("/proc/kallsyms", R_OK));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_are_named_as_perf_names_them),
		cmocka_unit_test(symbols_come_and_go),
		cmocka_unit_test(the_later_record_wins_at_each_address),
		cmocka_unit_test(many_records_in_any_order_are_fast),
		cmocka_unit_test(ranges_over_the_limit_are_counted),
		cmocka_unit_test(the_build_id_is_found_among_notes),
		cmocka_unit_test(names_of_another_kernel_are_not_used),
		cmocka_unit_test(a_forged_recording_gets_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
