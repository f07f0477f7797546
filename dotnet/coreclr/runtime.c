#include "dotnet/coreclr/runtime.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/proc.h"

#include <errno.h>

#define LAYOUT_SCANS 3
/* At most one body in this many may be inconsistent. */
#define LAYOUT_SHARE 20

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
	return proc_read_maps(pid_of(ctx), ret_text);
}

struct clr_io clr_runtime_io(pid_t pid)
{
	return (struct clr_io){.read = read_memory,
			       .read_pieces = read_pieces,
			       .maps = read_maps,
			       .ctx = (void *)(intptr_t)pid};
}

static int ignore_code(void *ctx, const struct clr_jit_code_body *code)
{
	(void)ctx;
	(void)code;
	return 0;
}

static int ignore_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	(void)ctx;
	(void)seen_ns;
	(void)start;
	return 0;
}

/* Checks a built-in layout. It is right if nearly all data read with it is consistent. */
static int check_layout(struct clr_jit_code *jit, uint64_t until_ns, struct parse_error *err)
{
	struct clr_jit_code_listener listener = {.code = ignore_code, .gone = ignore_gone};
	struct clr_jit_code_stats stats = {0};
	int r = 0;

	/*
	 * Data that changes during the read fails once. Data with another layout fails each time.
	 */
	for (int i = 0; i < LAYOUT_SCANS && !r; i++) {
		r = clr_jit_code_scan(jit, &listener, until_ns);
		clr_jit_code_stats(jit, &stats);
		if (!stats.unread)
			break;
	}
	if (r)
		return parse_fail(err, r,
				  r == -ETIMEDOUT ? "scanning its JIT code took too long"
						  : "its memory could not be read",
				  0);
	if (!stats.bodies)
		return parse_fail(err, -EAGAIN, "it has no JIT-compiled code yet", 0);
	if ((stats.unread + stats.plain) * LAYOUT_SHARE > stats.bodies)
		return parse_fail(err, -ENOTSUP,
				  "too much of its JIT code does not fit the known layout of this "
				  "runtime version",
				  0);
	if (stats.unnamed > stats.bodies)
		return parse_fail(err, -ENOTSUP,
				  "the metadata of most of its JIT code is unreadable", 0);
	return 0;
}

/* Limits the search in time: a process may map any number of files. */
struct timed {
	struct clr_io io;
	uint64_t until_ns;
};

static int read_in_time(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct timed *t = ctx;

	return clock_monotonic_ns() >= t->until_ns ? -ETIMEDOUT
						   : t->io.read(t->io.ctx, addr, buf, len);
}

int clr_runtime_locate(pid_t pid, uint64_t until_ns, char *maps, struct clr_anchors *ret_anchors)
{
	struct timed timed = {clr_runtime_io(pid), until_ns};

	return clr_locate_in_process(&(struct clr_io){.read = read_in_time, .ctx = &timed}, maps,
				     ret_anchors);
}

int clr_runtime_open(pid_t pid, uint64_t until_ns, struct clr_jit_code **ret,
		     struct parse_error *err)
{
	struct clr_io io = clr_runtime_io(pid);
	struct clr_anchors anchors;
	AUTO_FREE char *maps = NULL;
	int r = read_maps(io.ctx, &maps);

	if (r)
		return parse_fail(err, r,
				  r == -ESRCH ? "the process has ended"
				  : r == -E2BIG
					  ? "the list of its memory maps is too large for the "
					    "memory that is left"
					  : "the process's memory map could not be read",
				  0);
	r = clr_runtime_locate(pid, until_ns, maps, &anchors);
	if (r == -ENOENT)
		return parse_fail(err, r, "it has no known .NET runtime", 0);
	if (r == -ETIMEDOUT)
		return parse_fail(err, r, "searching it for a .NET runtime took too long", 0);
	if (r)
		return parse_fail(err, r,
				  r == -ESRCH ? "the process has ended"
					      : "the process's memory could not be read",
				  0);
	r = clr_jit_code_new(&io, &anchors, ret, err);
	if (r || clr_jit_code_is_described(*ret))
		return r;
	r = check_layout(*ret, until_ns, err);
	clr_jit_code_free(*ret);
	*ret = NULL;
	/* Open it anew, because the trial has already reported its bodies. */
	return r ? r : clr_jit_code_new(&io, &anchors, ret, err);
}
