/* Memory of a process with an assembly made by Reflection.Emit in .NET 8. Used by the tests of
 * dotnet/coreclr/emitted and by its fuzz target. */
#ifndef TESTS_UNIT_EMITTED_IMAGE_H
#define TESTS_UNIT_EMITTED_IMAGE_H

#include "dotnet/coreclr/contract.h"
#include "dotnet/metadata_tables.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Memory of a process from 0x10000 on: PEAssembly, metadata importer, database, segments, rows and
 * heaps. */
#define EMITTED_BASE 0x10000u
#define EMITTED_ASSEMBLY 0x0u
#define EMITTED_IMPORT 0x100u
#define EMITTED_DATABASE 0x1000u
#define EMITTED_SEGMENT 0x4000u
#define EMITTED_ROWS 0x5000u
#define EMITTED_HEAPS 0x6000u
#define EMITTED_BYTES 0x8000u

static unsigned char emitted_memory[EMITTED_BYTES];
static int emitted_reads_left; /* reads left until -EFAULT; below 0: unlimited */

static inline int emitted_read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (!emitted_reads_left || addr < EMITTED_BASE || addr - EMITTED_BASE > EMITTED_BYTES ||
	    len > EMITTED_BYTES - (addr - EMITTED_BASE))
		return -EFAULT;
	emitted_reads_left -= emitted_reads_left > 0;
	memcpy(buf, emitted_memory + (addr - EMITTED_BASE), len);
	return 0;
}

static const struct clr_io emitted_io = {.read = emitted_read_memory};

static inline void emitted_put(size_t at, uint64_t x, size_t bytes)
{
	memcpy(emitted_memory + at, &x, bytes);
}

static inline void emitted_put_segment(size_t at, size_t data, size_t next, uint32_t used)
{
	emitted_put(at, EMITTED_BASE + data, 8);
	emitted_put(at + 8, next ? EMITTED_BASE + next : 0, 8);
	emitted_put(at + 16, used + 16, 4);
	emitted_put(at + 20, used, 4);
}

static inline void emitted_put_table(int table, uint32_t rows, uint16_t row_bytes, size_t data)
{
	emitted_put(EMITTED_DATABASE + 32 + 4 * (size_t)table, rows, 4);
	emitted_put(EMITTED_DATABASE + 224 + 16 * (size_t)table + 10, row_bytes, 2);
	emitted_put_segment(EMITTED_DATABASE + 1368 + 80 * (size_t)table + 8, data, 0,
			    rows * row_bytes);
}

/* One type N.T with two static methods "int32 a()" and "int32 b()". The second is in a segment of
 * its own. */
static inline void emitted_make(bool wide)
{
	static const char strings[] = "\0N\0T\0a\0b\0Em";
	static const char blobs[] = "\0\3\0\0\10";
	size_t i = wide ? 4 : 2, at = EMITTED_ROWS, type, method = 8 + 3 * i;

	memset(emitted_memory, 0, sizeof(emitted_memory));
	emitted_reads_left = -1;
	emitted_put(EMITTED_ASSEMBLY + 24, EMITTED_BASE + EMITTED_IMPORT, 8);
	emitted_put(EMITTED_IMPORT + 16, EMITTED_BASE + EMITTED_DATABASE, 8);
	emitted_put(EMITTED_DATABASE + 12, 2, 1);
	emitted_put(EMITTED_DATABASE + 14, wide ? 7 : 0, 1);
	type = at;
	emitted_put(at + 4, 3, i), emitted_put(at + 4 + i, 1, i), emitted_put(at + 4 + 3 * i, 1, i),
		emitted_put(at + 4 + 4 * i, 1, i);
	emitted_put_table(CLR_TYPE_DEF, 1, (uint16_t)(4 + 5 * i), type);
	for (size_t m = 0; m < 2; m++) {
		at = EMITTED_ROWS + 0x100 + 0x100 * m;
		emitted_put(at + 8, 5 + 2 * m, i), emitted_put(at + 8 + i, 1, i),
			emitted_put(at + 8 + 2 * i, 1, i);
	}
	emitted_put_table(CLR_METHOD_DEF, 2, (uint16_t)method, EMITTED_ROWS + 0x100);
	emitted_put_segment(EMITTED_DATABASE + 1368 + 80 * CLR_METHOD_DEF + 8, EMITTED_ROWS + 0x100,
			    EMITTED_SEGMENT, (uint32_t)method);
	emitted_put_segment(EMITTED_SEGMENT, EMITTED_ROWS + 0x200, 0, (uint32_t)method);
	at = EMITTED_ROWS + 0x400;
	emitted_put(at + 16 + i, 9, i);
	emitted_put_table(CLR_ASSEMBLY, 1, (uint16_t)(16 + 3 * i), at);
	memcpy(emitted_memory + EMITTED_HEAPS, strings, sizeof(strings));
	memcpy(emitted_memory + EMITTED_HEAPS + 0x100, blobs, sizeof(blobs));
	emitted_put_segment(EMITTED_DATABASE + 5328 + 8, EMITTED_HEAPS, 0, sizeof(strings));
	emitted_put_segment(EMITTED_DATABASE + 5456 + 8, EMITTED_HEAPS + 0x100, 0, sizeof(blobs));
	emitted_put_segment(EMITTED_DATABASE + 5696 + 8, EMITTED_HEAPS + 0x200, 0, 16);
}

#endif
