#include "profcpu/jit/il_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const unsigned char il[] = {0xfe, 0xff, 0xff, 0xff, 3, 0, 0, 0},
			   native[] = {0, 0, 0, 0, 8, 0, 0, 0};
static const struct rundown_module module = {.id = 5, .il_path = "/app/a.dll", .pdb_guid = {1, 2}},
				   nowhere = {.id = 6, .il_path = ""};

static void send_method(struct jit_il_maps *m, uint64_t start, uint64_t id, uint64_t code_id,
			const struct rundown_module *of)
{
	struct jit_method method = {.start = start,
				    .bytes = 0x40,
				    .source = SYMBOL_RUNDOWN,
				    .until_ns = UINT64_MAX,
				    .name = "a",
				    .len = 1};
	struct rundown_method event = {.start = start,
				       .bytes = 0x40,
				       .token = 0x06000007,
				       .id = id,
				       .code_id = code_id,
				       .module = of};

	jit_methods_writer_add(m->out, &method);
	assert_int_equal(jit_il_maps_method(m, &event), 0);
}

static void send_map(struct jit_il_maps *m, uint64_t id, uint64_t code_id)
{
	struct rundown_il_map map = {
		.method_id = id, .code_id = code_id, .count = 2, .il = il, .native = native};

	assert_int_equal(jit_il_maps_map(m, &map), 0);
}

static int begin_file(char *dir, struct jit_il_maps *maps)
{
	assert_non_null(mkdtemp(dir));
	int fd = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(jit_methods_writer_open(fd, getpid(), NULL, &maps->out), 0);
	return fd;
}

/* Reads the written file back. */
static struct jit_methods *end_file(int fd, struct jit_il_maps *maps)
{
	struct jit_methods_file file;
	struct jit_methods *m;

	assert_int_equal(jit_methods_writer_close(maps->out), 0);
	jit_il_maps_free(maps);
	assert_int_equal(jit_methods_new(&m), 0);
	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	return m;
}

static void remove_file(struct jit_methods *m, int fd, const char *dir)
{
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(fd), 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}

/* Freed ids and addresses are reused: by a module of another file, and by a body whose map comes
 * first. */
static void freed_code_does_not_affect_its_successor(void **state)
{
	static const struct rundown_module next = {
		.id = 5, .il_path = "/app/b.dll", .pdb_guid = {3}};
	char dir[] = "/tmp/test_jit_il_maps.XXXXXX";
	struct jit_il_maps maps = {0};
	int fd = begin_file(dir, &maps);

	(void)state;
	send_method(&maps, 0x1000, 1, 0, &module);
	send_map(&maps, 1, 0);
	send_method(&maps, 0x2000, 2, 0, &module);
	jit_il_maps_gone(&maps, 0x1000);
	jit_il_maps_gone(&maps, 0x2000);
	jit_il_maps_gone(&maps, 0x7000); /* was never reported */
	send_method(&maps, 0x2000, 8, 0,
		    &nowhere); /* has no module: the next line is of the previous body */
	send_map(&maps, 2, 0);
	send_method(&maps, 0x3000, 2, 0, &next);
	struct jit_methods *m = end_file(fd, &maps);

	assert_int_equal(jit_il_modules(jit_methods_il(m)), 2);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint64_t starts[] = {0x1000, 0x2000, 0x2000, 0x3000};
		const struct jit_method *method = jit_methods_get(m, SYMBOL_RUNDOWN, i);
		struct jit_il_place place;

		assert_int_equal(method->start, starts[i]);
		assert_int_equal(method->il > 0, i == 0 || i == 3);
		if (i != 3)
			continue;
		assert_int_equal(jit_il_find(jit_methods_il(m), method->il - 1, 9, &place), 0);
		assert_string_equal(jit_il_module(jit_methods_il(m), place.module)->path,
				    next.il_path);
	}
	remove_file(m, fd, dir);
}

/* This is the only table that grows with the number of starts of one body. */
static void stale_starts_are_not_kept(void **state)
{
	char dir[] = "/tmp/test_jit_il_maps.XXXXXX";
	struct jit_il_maps maps = {0};
	int fd = begin_file(dir, &maps);
	uint64_t last = 0x10000 + 16 * (uint64_t)100000;

	(void)state;
	send_method(&maps, 0x1000, 1, 0, &module);
	send_method(&maps, 0x2000, 2, 0, &module);
	jit_il_maps_gone(&maps, 0x2000);
	for (uint64_t start = 0x10000; start <= last; start += 16) {
		struct rundown_method event = {.start = start,
					       .bytes = 0x10,
					       .token = 0x06000007,
					       .id = 3,
					       .module = &module};

		assert_int_equal(jit_il_maps_method(&maps, &event), 0);
	}
	assert_int_equal(maps.bodies.len, 3);
	assert_true(maps.by_start.len < 10000);
	/* Starts that a body has are kept. */
	assert_int_equal(maps.bodies.v[2].start, last);
	jit_il_maps_gone(&maps, last - 16);
	assert_int_equal(maps.bodies.v[2].start, last);
	jit_il_maps_gone(&maps, last);
	assert_int_equal(maps.bodies.v[2].start, 0);
	jit_il_maps_gone(&maps, 0x1000);
	assert_int_equal(maps.bodies.v[0].start, 0);
	remove_file(end_file(fd, &maps), fd, dir);
}

static void maps_and_methods_match_in_either_order(void **state)
{
	static const bool has[] = {true, true, true, false, false};
	char dir[] = "/tmp/test_jit_il_maps.XXXXXX";
	struct jit_il_maps maps = {0};
	int fd = begin_file(dir, &maps);

	(void)state;
	send_map(&maps, 1, 2);
	send_map(&maps, 9, 9); /* method that never comes */
	send_method(&maps, 0x1000, 1, 2, &module);
	send_method(&maps, 0x2000, 1, 3, &module); /* another body of that method */
	send_map(&maps, 1, 3);
	send_map(&maps, 4, 0);
	send_method(&maps, 0x3000, 4, 0, &module);
	send_method(&maps, 0x4000, 7, 0, &module); /* without a map */
	send_map(&maps, 8, 0);
	send_method(&maps, 0x5000, 8, 0, &nowhere); /* without a file */
	struct jit_methods *m = end_file(fd, &maps);

	assert_int_equal(jit_il_modules(jit_methods_il(m)), 1);
	assert_string_equal(jit_il_module(jit_methods_il(m), 0)->path, module.il_path);
	assert_int_equal(jit_il_module(jit_methods_il(m), 0)->kind, JIT_IL_PDB);
	assert_memory_equal(jit_il_module(jit_methods_il(m), 0)->id, module.pdb_guid, 16);
	for (uint32_t i = 0; i < sizeof(has) / sizeof(*has); i++) {
		const struct jit_method *method = jit_methods_get(m, SYMBOL_RUNDOWN, i);
		struct jit_il_place place;

		assert_int_equal(method->start, 0x1000 * (i + 1));
		assert_int_equal(method->il > 0, has[i]);
		if (!has[i])
			continue;
		assert_int_equal(jit_il_find(jit_methods_il(m), method->il - 1, 9, &place), 0);
		assert_int_equal(place.rid, 7);
		assert_int_equal(place.il, 3);
	}
	remove_file(m, fd, dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_and_methods_match_in_either_order),
		cmocka_unit_test(stale_starts_are_not_kept),
		cmocka_unit_test(freed_code_does_not_affect_its_successor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
