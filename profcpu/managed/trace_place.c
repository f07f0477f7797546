#include "profcpu/managed/trace_place.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_THREADS_BYTES ((size_t)16 << 20)

/* Reads the ids of threads in both PID namespaces. Damaged lines are skipped. */
static int read_threads(struct trace_place *place, int fd)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = fd < 0 ? -ENOENT : file_read_fd(fd, PLACE_THREADS_BYTES, &text, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	for (char *rest = text, *line; !r && (line = strsep(&rest, "\n"));) {
		int outer, inner;

		if (sscanf(line, RECORDING_TRACE_THREADS_LINE, &outer, &inner) == 2 && outer > 0)
			r = hashmap_put(&place->outer, (uint32_t)inner, (uint32_t)outer);
	}
	return r;
}

/* Finds out by how much the clock of the trace is ahead of ours. */
static void check_clock(struct trace_place *place, const struct trace_place_options *options,
			uint64_t sync_ns)
{
	uint64_t sent = options->sent_ns, received = options->received_ns;

	if (!sent || received <= sent)
		return;
	place->error_ns = received - sent;
	/* Between the two, the clocks are the same: no other clock is so close by chance. */
	if (sync_ns >= sent && sync_ns <= received)
		return;
	place->offset_ns = (int64_t)(sync_ns - (sent + (received - sent) / 2));
}

int trace_place_find(const struct trace_place_options *options, const struct nettrace_trace *head,
		     struct trace_place *ret_place)
{
	*ret_place = (struct trace_place){.pid = options->pid ? options->pid : (pid_t)head->pid};
	uint64_t sync_ns = nettrace_ns(head, head->sync_ticks);

	check_clock(ret_place, options, sync_ns);
	ret_place->begin_ns = trace_place_ns(ret_place, sync_ns);
	return read_threads(ret_place, options->threads_fd);
}

void trace_place_free(struct trace_place *place)
{
	hashmap_free(&place->outer);
}

int32_t trace_place_tid(const struct trace_place *place, uint64_t inner)
{
	const uint32_t *outer = hashmap_get(&place->outer, (uint32_t)inner);

	return outer ? (int32_t)*outer : place->outer.len ? 0 : (int32_t)inner;
}

uint64_t trace_place_ns(const struct trace_place *place, uint64_t trace_ns)
{
	return trace_ns - (uint64_t)place->offset_ns;
}
