#include "dotnet/pdb_budget.h"
#include "dotnet/portable_pdb.h"

#include "tests/unit/metadata_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_BLOB_RECORDS (PORTABLE_PDB_POINTS_MAX - 100)

static struct metadata_build begin(void)
{
	struct metadata_build b = metadata_begin();

	b.heaps = 4; /* wide blob indices */
	outbuf_put(&b.pdb, "abcdefghijklmnopqrst\0\0\0\0\0\0\0\0\0\0\0\0", 32);
	return b;
}

static uint32_t add_document(struct metadata_build *b, const char *name)
{
	uint32_t part = metadata_blob(b, name, strlen(name));
	uint32_t parts = BLOB_OF(b, '/', (uint8_t)(0x80 | part >> 8), (uint8_t)part);

	return metadata_row(b, CLR_DOCUMENT, "4242", parts, 0, 0, 0);
}

static void add_method(struct metadata_build *b, uint32_t document, uint32_t points)
{
	metadata_row(b, CLR_METHOD_DEBUG_INFORMATION, "24", document, points);
}

/* A blob of one point and of document changes. */
static uint32_t long_blob(struct metadata_build *b, uint32_t records)
{
	uint32_t at = (uint32_t)b->blobs.len, len = 1 + 5 + 2 * records;

	outbuf_put(&b->blobs,
		   (const char[]){(char)(0xc0 | len >> 24), (char)(len >> 16), (char)(len >> 8),
				  (char)len},
		   4);
	outbuf_put(&b->blobs, "\0\0\0\5\7\1", 6);
	for (uint32_t i = 0; i < records; i++)
		outbuf_put(&b->blobs, "\0\1", 2);
	return at;
}

static struct portable_pdb *finish(struct metadata_build *b)
{
	struct portable_pdb *pdb;
	size_t len;
	unsigned char *data = metadata_end(b, &len);

	assert_int_equal(portable_pdb_open(data, len, &pdb, NULL), 0);
	return pdb;
}

static void assert_line(struct portable_pdb *pdb, uint32_t rid, uint32_t il,
			const char *expected_file, uint32_t expected_line)
{
	const char *file;
	uint32_t line;

	assert_int_equal(portable_pdb_line(pdb, rid, il, &file, &line), 0);
	assert_string_equal(file, expected_file);
	assert_int_equal(line, expected_line);
}

static void assert_none(struct portable_pdb *pdb, uint32_t rid, uint32_t il)
{
	const char *file;
	uint32_t line;

	assert_int_equal(portable_pdb_line(pdb, rid, il, &file, &line), -ENOENT);
}

static void the_last_visible_point_gives_the_line(void **state)
{
	struct metadata_build b = begin();

	(void)state;
	uint32_t one = add_document(&b, "src/one.cs"), two = add_document(&b, "two.cs");

	/* il 2: line 10; il 5: line 12; then in the other document il 9: hidden; il 12: line 11 */
	add_method(&b, one,
		   BLOB_OF(&b, 0, 2, 0, 5, 10, 1, 3, 0, 5, 4, 0, 0, (uint8_t)two, 4, 0, 0, 3, 0, 5,
			   0x7f, 0));
	add_method(&b, 0, BLOB_OF(&b, 0, (uint8_t)two, 0, 0, 5, 3, 1));
	add_method(&b, one, 0);
	struct portable_pdb *pdb = finish(&b);

	for (int again = 0; again < 2; again++) {
		assert_none(pdb, 1, 1);
		assert_line(pdb, 1, 2, "one.cs", 10);
		assert_line(pdb, 1, 4, "one.cs", 10);
		assert_line(pdb, 1, 11, "one.cs", 12);
		assert_line(pdb, 1, 12, "two.cs", 11);
		assert_line(pdb, 1, UINT32_MAX, "two.cs", 11);
		assert_line(pdb, 2, 0, "two.cs", 3);
		assert_none(pdb, 3, 0);
		assert_none(pdb, 4, 0);
		assert_none(pdb, 0, 0);
	}
	portable_pdb_free(pdb);
}

static void documents_without_a_name_have_no_lines(void **state)
{
	static const uint8_t many[PORTABLE_PDB_PARTS_MAX + 1] = {'/'};
	struct metadata_build b = begin();

	(void)state;
	uint32_t points = BLOB_OF(&b, 0, 0, 0, 5, 3, 1), last = metadata_blob(&b, "a.cs", 4);

	metadata_row(&b, CLR_DOCUMENT, "4242", BLOB_OF(&b, '/', (uint8_t)last, 0xff), 0, 0, 0);
	metadata_row(&b, CLR_DOCUMENT, "4242", metadata_blob(&b, many, sizeof(many)), 0, 0, 0);
	metadata_row(&b, CLR_DOCUMENT, "4242", BLOB_OF(&b, '/', (uint8_t)last), 0, 0, 0);
	for (uint32_t document = 1; document <= 4; document++)
		add_method(&b, document, points);
	struct portable_pdb *pdb = finish(&b);

	for (int again = 0; again < 2; again++) {
		assert_none(pdb, 1, 0);
		assert_none(pdb, 2, 0);
		assert_line(pdb, 3, 0, "a.cs", 3);
		assert_none(pdb, 4, 0);
	}
	portable_pdb_free(pdb);
}

/* A PDB that claims huge methods is read in bounded time. */
static void points_have_a_limit(void **state)
{
	enum { METHODS = 2 * PORTABLE_PDB_RECORDS_MAX / LONG_BLOB_RECORDS };
	struct metadata_build b = begin();

	(void)state;
	uint32_t document = add_document(&b, "a.cs"), most = long_blob(&b, LONG_BLOB_RECORDS);

	add_method(&b, document, long_blob(&b, PORTABLE_PDB_POINTS_MAX));
	for (int i = 1; i < METHODS; i++)
		add_method(&b, document, most);
	struct portable_pdb *pdb = finish(&b);

	for (int again = 0; again < 2; again++) {
		assert_none(pdb, 1, 0);
		assert_line(pdb, 2, 0, "a.cs", 7);
		assert_line(pdb, 3, 5, "a.cs", 7);
		for (uint32_t rid = 4; rid < METHODS; rid++) {
			const char *file;
			uint32_t line;
			int r = portable_pdb_line(pdb, rid, 0, &file, &line);

			assert_true(!r || r == -ENOENT);
		}
		assert_none(pdb, METHODS, 0);
	}
	portable_pdb_free(pdb);
}

/* The limits are for each process: others get as much, in any order. */
static void each_process_leaves_half_of_the_room(void **state)
{
	struct pdb_budget_total rooms = {.left = 64};
	struct pdb_budget a = {&rooms, 0}, b = {&rooms, 0};

	(void)state;
	assert_true(pdb_budget_take(&a, 32));
	assert_false(pdb_budget_take(&a, 1));
	assert_false(pdb_budget_take(&b, 17));
	assert_true(pdb_budget_take(&b, 16));
	assert_int_equal(rooms.left, 16);
	pdb_budget_release(&a, 32);
	assert_int_equal(rooms.left, 48);
	assert_true(pdb_budget_take(&a, 24));
	assert_true(pdb_budget_take(NULL, UINT64_MAX));
	assert_false(pdb_budget_take(&b, UINT64_MAX));
	pdb_budget_count_refused(&a, "one");
	pdb_budget_count_refused(&b, "two");
	assert_int_equal(rooms.refused, 2);
	assert_string_equal(rooms.first, "one");
}

static void a_pdb_costs_only_the_memory_that_is_read(void **state)
{
	struct metadata_build b = begin();
	struct pdb_budget_total rooms = {.left = 1 << 20};
	struct pdb_budget room = {&rooms, 0};

	(void)state;
	uint32_t document = add_document(&b, "a.cs");

	add_method(&b, document, BLOB_OF(&b, 0, 0, 0, 5, 3, 1));
	add_method(&b, document, BLOB_OF(&b, 0, 0, 0, 5, 4, 1));
	add_method(&b, document, BLOB_OF(&b, 0, 0, 0, 5, 5, 1));
	struct portable_pdb *pdb = finish(&b);

	assert_true(portable_pdb_charge_budget(pdb, &room));
	uint64_t taken = room.taken;

	assert_true(taken > 0);
	assert_line(pdb, 1, 0, "a.cs", 3);
	assert_true(room.taken > taken);
	/* There is room for exactly one more point. */
	rooms.left = room.taken + 2 * (room.taken - taken);
	assert_line(pdb, 2, 0, "a.cs", 4);
	assert_none(pdb, 3, 0);
	assert_line(pdb, 1, 0, "a.cs", 3);
	portable_pdb_free(pdb);
	assert_int_equal(room.taken, 0);
}

/* A hole takes its whole size in memory. */
static void a_hollow_pdb_is_refused(void **state)
{
	static const off_t sizes[] = {0, 64 << 20};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct metadata_build b = begin();
		struct portable_pdb *pdb;
		size_t len;
		int fd = memfd_create("pdb", MFD_CLOEXEC);

		add_document(&b, "a.cs");
		unsigned char *data = metadata_end(&b, &len);

		assert_int_equal(write(fd, data, len), len);
		assert_int_equal(sizes[i] ? ftruncate(fd, sizes[i]) : 0, 0);
		assert_int_equal(portable_pdb_open_file(fd,
							(const unsigned char *)"no GUID of any one",
							NULL, &pdb),
				 i ? -EBADMSG : -ENOENT);
		free(data);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_visible_point_gives_the_line),
		cmocka_unit_test(documents_without_a_name_have_no_lines),
		cmocka_unit_test(points_have_a_limit),
		cmocka_unit_test(each_process_leaves_half_of_the_room),
		cmocka_unit_test(a_pdb_costs_only_the_memory_that_is_read),
		cmocka_unit_test(a_hollow_pdb_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
