#include "profcpu/stacks/running.h"

#include "base/clock.h"
#include "base/vec.h"
#include "recording/perfdata_records.h"
#include "sampler/sampler.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct running {
	struct sampler *sampler;
	struct perfdata *records; /* decoder */
	VEC(unsigned char) part;  /* start of a record that the next chunk continues */
	running_take take;
	void *ctx;
	bool synthesizing; /* the maps of the process were taken before */
};

static int running_take_record(struct running *r, const void *data)
{
	struct perfdata_record record;

	if (perfdata_records_parse(r->records, data, &record))
		return 0;
	if (r->synthesizing && record.pid != -1)
		return 0;
	return r->take(r->ctx, &record);
}

/* Completes a partial record, which has its header. Sets *used to the bytes of data that it took.
 */
static int running_complete(struct running *r, const void *data, size_t len, size_t *used)
{
	const struct perf_event_header *header = (const void *)r->part.v;
	size_t size = header->size, need = size - r->part.len;

	*used = need < len ? need : len;
	if (vec_reserve(&r->part, *used))
		return -ENOMEM;
	memcpy(r->part.v + r->part.len, data, *used);
	r->part.len += *used;
	if (r->part.len < size)
		return 0;
	r->part.len = 0;
	return running_take_record(r, r->part.v);
}

static int running_records(void *ctx, int cpu, const void *data, size_t len)
{
	struct running *r = ctx;
	const unsigned char *at = data, *end = at + len;
	size_t used = 0;
	int error = r->part.len ? running_complete(r, data, len, &used) : 0;

	(void)cpu;
	at += used;
	while (!error && at < end) {
		const struct perf_event_header *header = (const void *)at;
		size_t left = (size_t)(end - at);

		if (header->size < sizeof(*header))
			return 0; /* a damaged ring */
		if (header->size > left) {
			if (vec_reserve(&r->part, left))
				return -ENOMEM;
			memcpy(r->part.v, at, left);
			r->part.len = left;
			return 0;
		}
		error = running_take_record(r, header);
		at += header->size;
	}
	return error;
}

static int running_event_id(void *ctx, size_t event, uint64_t id)
{
	struct running *r = ctx;

	return perfdata_records_add_id(r->records, event, id);
}

static int running_decode(struct running *r)
{
	struct perf_event_attr attrs[SAMPLER_DEFAULT_MAX];
	size_t n;
	const struct sampler_opened *opened = sampler_opened(r->sampler, &n);

	for (size_t i = 0; i < n; i++)
		attrs[i] = opened[i].attr;
	int error = perfdata_records_new(attrs, n, &r->records);

	for (size_t i = 0; i < n && !error; i++)
		for (size_t k = 0; k < opened[i].nids && !error; k++)
			error = perfdata_records_add_id(r->records, i, opened[i].ids[k]);
	return error;
}

static int running_begin(struct running *r, pid_t pid, struct sampler_problem *problem)
{
	struct sampler_event events[SAMPLER_DEFAULT_MAX];
	const char *why;
	struct sampler_options options = {
		.pids = &pid,
		.npids = 1,
		.events = events,
		.events_chosen = true,
		.freq_hz = RUNNING_HZ,
		.identified = true,
		.stack_bytes = SAMPLER_STACK_BYTES_MAX,
	};
	const struct sampler_listener listener = {
		.ctx = r, .records = running_records, .event_id = running_event_id};

	sampler_event_default(NULL, events, &options.nevents, &why);
	int error = sampler_open(&options, &r->sampler, problem);

	if (!error)
		error = running_decode(r);
	if (!error)
		error = sampler_listen(r->sampler, &listener);
	r->synthesizing = true;
	if (!error)
		error = sampler_synthesize(r->sampler);
	r->synthesizing = false;
	r->part.len = 0;
	if (!error)
		(void)sampler_start(r->sampler);
	return error;
}

int running_new(pid_t pid, running_take take, void *ctx, struct running **ret_running,
		struct sampler_problem *problem)
{
	struct running *r = calloc(1, sizeof(*r));

	if (!r)
		return sampler_fail(problem, -ENOMEM, "sample", "process %d: out of memory", pid);
	*problem = (struct sampler_problem){0};
	r->take = take;
	r->ctx = ctx;
	int error = running_begin(r, pid, problem);

	if (!error)
		*ret_running = r;
	else
		running_free(r);
	return error;
}

void running_free(struct running *r)
{
	if (!r)
		return;
	sampler_close(r->sampler);
	perfdata_close(r->records);
	vec_free(&r->part);
	free(r);
}

int running_drain(struct running *r, uint64_t until_ns)
{
	struct pollfd poll_fd = {.fd = sampler_poll_fd(r->sampler), .events = POLLIN};
	uint64_t now_ns = clock_monotonic_ns();

	if (until_ns > now_ns)
		(void)poll(&poll_fd, 1, (int)((until_ns - now_ns) / NS_PER_MS));
	return sampler_drain(r->sampler);
}
