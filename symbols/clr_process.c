#include "symbols/clr_process.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/proc.h"

#include <errno.h>

#define LAYOUT_SCANS 3
#define LAYOUT_SHARE 20 /* one of so many bodies at most is not understood */

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

static int pass_code(void *ctx, const struct clr_heap_code *code)
{
	(void)ctx;
	(void)code;
	return 0;
}

static int pass_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	(void)ctx;
	(void)seen_ns;
	(void)start;
	return 0;
}

/* A layout that the runtime does not vouch for is right where nearly all that is reached with it makes sense. */
static int check_layout(struct clr_heap *heap, uint64_t until_ns, struct parse_error *err)
{
	struct clr_heap_listener listener = {.code = pass_code, .gone = pass_gone};
	struct clr_heap_stats stats = {0};
	int r = 0;

	/* What changes while it is read makes no sense once, what is laid out in another way never. */
	for (int i = 0; i < LAYOUT_SCANS && !r; i++) {
		r = clr_heap_scan(heap, &listener, until_ns);
		clr_heap_stats(heap, &stats);
		if (!stats.unread)
			break;
	}
	if (r)
		return parse_fail(err, r, r == -ETIMEDOUT ? "its JIT code could not be looked through in time" : "its memory could not be read", 0);
	if (!stats.bodies)
		return parse_fail(err, -EAGAIN, "it has no JIT-compiled code yet", 0);
	if ((stats.unread + stats.plain) * LAYOUT_SHARE > stats.bodies)
		return parse_fail(err, -ENOTSUP, "too much of its JIT code does not make sense as this version of the runtime is known", 0);
	if (stats.unnamed > stats.bodies)
		return parse_fail(err, -ENOTSUP, "most of its JIT code has no metadata that can be read", 0);
	return 0;
}

/* A process can have any number of files mapped that are no runtime. */
struct timed {
	struct clr_io io;
	uint64_t until_ns;
};

static int read_in_time(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct timed *t = ctx;

	return clock_monotonic_ns() >= t->until_ns ? -ETIMEDOUT : t->io.read(t->io.ctx, addr, buf, len);
}

int clr_process_find(pid_t pid, uint64_t until_ns, char *maps, struct clr_anchors *ret_anchors)
{
	struct timed timed = {clr_process_io(pid), until_ns};

	return clr_contract_locate(&(struct clr_io){.read = read_in_time, .ctx = &timed}, maps, ret_anchors);
}

int clr_process_open(pid_t pid, uint64_t until_ns, struct clr_heap **ret, struct parse_error *err)
{
	struct clr_io io = clr_process_io(pid);
	struct clr_anchors anchors;
	AUTO_FREE char *maps = NULL;
	int r = read_maps(io.ctx, &maps);

	if (r)
		return parse_fail(err, r, r == -ESRCH ? "the process has ended" : "the process's memory map could not be read", 0);
	r = clr_process_find(pid, until_ns, maps, &anchors);
	if (r == -ENOENT)
		return parse_fail(err, r, "it has no .NET runtime whose structures are known", 0);
	if (r == -ETIMEDOUT)
		return parse_fail(err, r, "it could not be looked through for a .NET runtime in time", 0);
	if (r)
		return parse_fail(err, r, r == -ESRCH ? "the process has ended" : "the process's memory could not be read", 0);
	r = clr_heap_new(&io, &anchors, ret, err);
	if (r || clr_heap_is_described(*ret))
		return r;
	r = check_layout(*ret, until_ns, err);
	clr_heap_free(*ret);
	*ret = NULL;
	/* From the beginning: what was told in the trial is to be told again. */
	return r ? r : clr_heap_new(&io, &anchors, ret, err);
}
