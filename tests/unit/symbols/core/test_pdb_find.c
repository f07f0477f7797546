#include "symbols/core/pdb_find.h"

#include "tests/unit/metadata_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define EMBEDDED 17
#define RVA 0x1000
#define HEAD_BYTES 4096 /* the debug directory; the PDBs follow */

struct entry {
	uint32_t bytes, file_off;
};

static int no_file(void *ctx, const char *name, int *ret_fd)
{
	(void)ctx;
	(void)name;
	(void)ret_fd;
	return -ENOENT;
}

/* An image with only a debug directory. */
static struct pe image(const struct entry *entries, uint32_t n, const void *data, size_t len)
{
	struct pe pe = {.file = {.fd = memfd_create("image", MFD_CLOEXEC)},
			.sections = {{.rva = RVA, .bytes = HEAD_BYTES}},
			.nsections = 1};
	uint32_t rows[16][7] = {{0}};

	for (uint32_t i = 0; i < n; i++) {
		rows[i][3] = EMBEDDED;
		rows[i][4] = entries[i].bytes;
		rows[i][6] = entries[i].file_off;
		if (pe.file.bytes < (uint64_t)entries[i].file_off + entries[i].bytes)
			pe.file.bytes = (uint64_t)entries[i].file_off + entries[i].bytes;
	}
	pe.directories[PE_DEBUG] = (struct pe_range){RVA, n * (uint32_t)sizeof(rows[0])};
	assert_int_equal(pwrite(pe.file.fd, rows, sizeof(rows), 0), sizeof(rows));
	assert_int_equal(pwrite(pe.file.fd, data, len, HEAD_BYTES), len);
	assert_int_equal(ftruncate(pe.file.fd, (off_t)pe.file.bytes), 0);
	return pe;
}

static int find(const struct pe *pe, struct pdb_budget *budget)
{
	struct pdb_places places = {.open_beside = no_file, .budget = budget};
	struct portable_pdb *pdb;
	int r = pdb_find(pe, &places, &pdb);

	if (!r) {
		assert_true(budget->taken > 0);
		portable_pdb_free(pdb);
	}
	assert_int_equal(budget->taken, 0);
	return r;
}

/* An embedded PDB with a stated size and a stream that is none. */
static struct pe forged(uint64_t unpacked)
{
	unsigned char data[16] = "MPDB\0\0\0\0\xff\xff\xff\xff\xff\xff\xff";
	struct entry entry = {sizeof(data), HEAD_BYTES};
	uint32_t bytes = (uint32_t)unpacked;

	memcpy(data + 4, &bytes, sizeof(bytes));
	return image(&entry, 1, data, sizeof(data));
}

static void a_stated_size_counts_before_it_is_unpacked(void **state)
{
	const struct entry hole = {200 << 20, HEAD_BYTES};
	struct pe pes[] = {forged(8 * MIB), forged(9 * MIB), image(&hole, 1, "", 1)};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct pdb_budget_total all = {.left = 17 * MIB};
		struct pdb_budget budget = {&all, 0};

		assert_int_equal(find(&pes[i], &budget), i ? -E2BIG : -EBADMSG);
		assert_int_equal(all.refused, i > 0);
		assert_int_equal(all.left, 17 * MIB);
		close(pes[i].file.fd);
	}
}

static void all_embedded_pdbs_have_a_limit(void **state)
{
	struct pdb_budget_total all = {.left = 4096 * MIB};
	struct pdb_budget budget = {&all, 0};
	struct pe pe = forged(200 * MIB);

	(void)state;
	for (int i = 0; i < 7; i++)
		assert_int_equal(find(&pe, &budget), i < 5 ? -EBADMSG : -E2BIG);
	assert_int_equal(all.refused, 2);
	close(pe.file.fd);
}

/* Entries can share a stream that takes long to unpack. */
static void only_the_first_embedded_pdb_is_unpacked(void **state)
{
	struct metadata_build b = metadata_begin();
	struct outbuf data = outbuf_to(-1);
	unsigned char packed[4096];
	size_t len;
	z_stream z = {.next_out = packed, .avail_out = sizeof(packed)};

	(void)state;
	outbuf_put(&b.pdb, "abcdefghijklmnopqrst\0\0\0\0\0\0\0\0\0\0\0\0", 32);
	unsigned char *pdb = metadata_end(&b, &len);

	z.next_in = pdb;
	z.avail_in = (unsigned int)len;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	outbuf_put(&data, "MPDB", 4);
	metadata_u32(&data, (uint32_t)len);
	outbuf_put(&data, (const char *)packed, z.total_out);

	struct entry entries[] = {{(uint32_t)data.len, HEAD_BYTES},
				  {(uint32_t)data.len - 4, HEAD_BYTES},
				  {(uint32_t)data.len, HEAD_BYTES}};

	for (size_t i = 0; i < 2; i++) {
		struct pdb_budget_total all = {.left = 17 * MIB};
		struct pdb_budget budget = {&all, 0};
		struct pe pe = image(&entries[i], 2, data.data, data.len);

		assert_int_equal(find(&pe, &budget), i ? -EBADMSG : 0);
		close(pe.file.fd);
	}
	outbuf_close(&data);
	free(pdb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stated_size_counts_before_it_is_unpacked),
		cmocka_unit_test(all_embedded_pdbs_have_a_limit),
		cmocka_unit_test(only_the_first_embedded_pdb_is_unpacked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
