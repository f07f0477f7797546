#include "dotnet/coreclr/barriers.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "container/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RUNTIME_CODE_MAX ((size_t)64 << 20)
#define BARRIERS_BYTES_MAX 65536
/* Bytes that must equal the runtime's own code. */
#define BARRIER_BYTES 32
/* Bytes from the start of the copy that are compared, in steps of 16. The runtime patches some. */
#define BARRIER_COMPARED_BYTES 80
/* Ranges compared with the runtime's code; each comparison takes some milliseconds. */
#define BARRIER_TRIES_MAX 16

/*
 * Reads the last executable mapping before an address in the runtime's module. A single-file
 * application has other images in the same file.
 */
static void read_code(struct clr_barriers *b, const struct clr_io *io, const char *text,
		      uint64_t module)
{
	AUTO_FREE char *maps = strdup(text);
	uint64_t start = 0, end = 0;
	char *cursor = maps;
	struct proc_map map;

	while (cursor && proc_map_next(&cursor, &map) && map.start <= module) {
		if (map.path[0] != '/' || !(map.prot & PROT_EXEC) || map.flags & MAP_SHARED)
			continue;
		start = map.start;
		end = map.end;
	}
	b->has_read = true;
	if (end - start > RUNTIME_CODE_MAX)
		return;
	unsigned char *code = bigmem_alloc((size_t)(end - start), 1);
	int r = code ? io->read(io->ctx, start, code, (size_t)(end - start)) : -ENOMEM;

	if (r) {
		free(code);
		b->has_read = r != -ETIMEDOUT;
		return;
	}
	b->code = code;
	b->bytes = (size_t)(end - start);
}

bool clr_barriers_is_copy(struct clr_barriers *b, const struct clr_io *io, const char *maps,
			  uint64_t module, uint64_t start, uint64_t end)
{
	unsigned char code[BARRIER_COMPARED_BYTES];

	if (end - start > BARRIERS_BYTES_MAX || end - start < sizeof(code) ||
	    b->tries >= BARRIER_TRIES_MAX || io->read(io->ctx, start, code, sizeof(code)))
		return false;
	if (!b->has_read)
		read_code(b, io, maps, module);
	b->tries += b->has_read;
	for (size_t i = 0; i + BARRIER_BYTES <= sizeof(code); i += 16)
		if (b->bytes && memcmp(code + i, code + i + 1, BARRIER_BYTES - 1) != 0 &&
		    memmem(b->code, b->bytes, code + i, BARRIER_BYTES))
			return true;
	return false;
}

void clr_barriers_free(struct clr_barriers *b)
{
	free(b->code);
}
