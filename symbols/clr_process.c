#include "symbols/clr_process.h"

#include "base/cleanup.h"
#include "container/proc.h"

#include <errno.h>

static pid_t pid_of(void *ctx)
{
	return (pid_t)(intptr_t)ctx;
}

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return memory_read(pid_of(ctx), addr, buf, len);
}

static int read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	return memory_read_pieces(pid_of(ctx), pieces, n);
}

static int read_maps(void *ctx, char **ret_text)
{
	size_t len;

	return proc_read(pid_of(ctx), 0, "maps", PROC_MAPS_MAX, ret_text, &len);
}

struct clr_io clr_process_io(pid_t pid)
{
	return (struct clr_io){.read = read_memory, .read_pieces = read_pieces, .maps = read_maps, .ctx = (void *)(intptr_t)pid};
}

int clr_process_open(pid_t pid, struct clr_heap **ret, struct parse_error *err)
{
	struct clr_io io = clr_process_io(pid);
	AUTO_FREE char *maps = NULL;
	uint64_t descriptor;
	int r = read_maps(io.ctx, &maps);

	if (r)
		return parse_fail(err, r, r == -ESRCH ? "the process has ended" : "the process's memory map could not be read", 0);
	r = clr_contract_locate(&io, maps, &descriptor);
	if (r == -ENOENT)
		return parse_fail(err, r, "it has no .NET runtime that describes itself (.NET 10 and later do)", 0);
	if (r)
		return parse_fail(err, r, r == -ESRCH ? "the process has ended" : "the process's memory could not be read", 0);
	return clr_heap_new(&io, descriptor, ret, err);
}
