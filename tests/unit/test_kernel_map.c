#include "symbols/kernel_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

static const char *at(const struct kernel_map *k, uint64_t addr)
{
	const struct kernel_map_range *r = kernel_map_find(k, addr);

	return r ? intern_text(&k->names, r->name) : "-";
}

static void modules_are_named_as_perf_names_them(void **state)
{
	struct kernel_map k = {0};

	(void)state;
	assert_int_equal(kernel_map_add(&k, 0x1000, 0x1000, 0x1010, "[kernel.kallsyms]_text"), 0);
	assert_int_equal(kernel_map_add(&k, 0x2000, 0x1000, 0, "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko"), 0);
	assert_int_equal(kernel_map_add(&k, 0x3000, 0x1000, 0, "/lib/modules/6.1.0/snd-hda-intel.ko.xz"), 0);
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
	/* One that lies over several is laid over all of them. */
	assert_int_equal(kernel_map_symbol(&k, 0x2f00, 0x300, false, "bpf_prog_2"), 0);
	assert_string_equal(at(&k, 0x2eff), "[kernel.kallsyms]");
	assert_string_equal(at(&k, 0x2f00), "bpf_prog_2");
	assert_string_equal(at(&k, 0x31ff), "bpf_prog_2");
	assert_string_equal(at(&k, 0x3200), "[kernel.kallsyms]");
	assert_int_equal(kernel_map_symbol(&k, UINT64_MAX, 0x100, false, "wraps"), 0);
	assert_string_equal(at(&k, UINT64_MAX), "-");
	kernel_map_free(&k);
}

static void the_build_id_is_found_among_notes(void **state)
{
	static const unsigned char notes[] = {
		4, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 'X', 'e', 'n', 0, 9, 0, 0, 0, /* another owner */
		4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 0,
	};
	struct image_build_id id;

	(void)state;
	assert_int_equal(kernel_map_notes_build_id(notes, sizeof(notes), &id), 0);
	assert_int_equal(id.len, 3);
	assert_memory_equal(id.bytes, "\1\2\3", 3);
	for (size_t len = 0; len < sizeof(notes); len++)
		assert_int_equal(kernel_map_notes_build_id(notes, len, &id), -ENOENT);
}

static void another_kernel_s_names_are_not_taken(void **state)
{
	struct kernel_map k = {.build_id = {.len = 20}};

	(void)state;
	assert_int_equal(kernel_map_load(&k), 0);
	/* Where the running kernel tells its build id it is not all zeroes. */
	if (k.live == KERNEL_MAP_FOREIGN) {
		assert_false(kernel_map_is_running(&k));
		assert_null(k.kallsyms);
		assert_false(kernel_map_begin(&k));
	}
	kernel_map_free(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modules_are_named_as_perf_names_them),
		cmocka_unit_test(symbols_come_and_go),
		cmocka_unit_test(the_build_id_is_found_among_notes),
		cmocka_unit_test(another_kernel_s_names_are_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
