/* Input: a trace. Its events become event profiles, which are folded and reported.
 * covers: profcpu/managed/events.c profcpu/managed/events_pair.c profcpu/managed/profiles.c
 * profcpu/managed/profiles_causes.c profcpu/managed/profiles_work.c
 * profcpu/managed/work.c profcpu/managed/evidence.c profcpu/managed/labels.c */
#include "flamegraph/collapse.h"
#include "profcpu/managed/report.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names the stacks: each address is a method, and some have no name. */
static void name_all(struct managed_profiles *m, struct profile *p)
{
	struct unnamed_source source = managed_profiles_source(m);
	struct unnamed_stack s;
	uint64_t before = 0;
	uint32_t thread, stack;

	while (source.next(source.ctx, UINT64_MAX, &s)) {
		const struct profile_thread t = {.pid = source.pid, .tid = s.tid};
		struct profile_frame frame = {.kind = FRAME_MANAGED,
					      .perf_name = PROFILE_NONE,
					      .module = PROFILE_NONE,
					      .srcline = PROFILE_NONE};

		if (s.time_ns < before)
			abort();
		before = s.time_ns;
		if (profile_text(p, "M()", 3, &frame.name) || profile_thread(p, &t, &thread))
			abort();
		stack = PROFILE_STACK_EMPTY;
		for (size_t i = s.ncallchain; i-- > 1;) {
			uint32_t id;

			frame.addr = s.callchain[i] % 16;
			frame.status = frame.addr % 2 ? FRAME_IS_NAMED : FRAME_IS_UNKNOWN;
			if (profile_frame(p, &frame, &id) || profile_stack(p, stack, id, &stack))
				abort();
		}
		source.name(source.ctx, s.number, thread, stack);
		struct cause_wait wait = {.begin_ns = s.time_ns - s.number % 64,
					  .end_ns = s.time_ns,
					  .blocked_ns = s.number % 7,
					  .runnable_ns = s.number % 3,
					  .thread = thread,
					  .stack = stack};

		if (managed_profiles_take_wait(m, &wait))
			abort();
		const struct profile_sample sample = {.time_ns = s.time_ns + s.number % 64,
						      .weight = s.number % 5,
						      .thread = thread,
						      .stack = stack};

		if (managed_profiles_take_cpu(m, &sample))
			abort();
	}
}

static void fold(struct profile *p, const struct managed_profiles *m, enum managed_kind kind)
{
	const struct managed_profile *k = managed_profile_of(m, kind);
	const struct collapse_options options = {.names = COLLAPSE_FULL,
						 .event_filter = managed_kind_info(kind)->name,
						 .groups = k->v.v,
						 .ngroups = k->v.len};
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats = {0};
	uint64_t samples = 0;

	for (size_t i = 0; i < k->v.len; i++)
		samples += k->v.v[i].samples;
	if (samples != k->events || (k->v.len && collapse_write(p, &options, &out, &stats)))
		abort();
	outbuf_close(&out);
}

static void profile_all(int fd, const struct managed_options *options)
{
	struct managed_profiles *m = NULL;
	struct outbuf out = outbuf_to(-1);
	struct parse_error err = {0};
	struct profile *p;

	if (lseek(fd, 0, SEEK_SET) || profile_new(&p))
		abort();
	if (!managed_profiles_new(p, options, &m, &err)) {
		name_all(m, p);
		if (managed_profiles_finish(m))
			abort();
		for (unsigned k = 0; k < MANAGED_KINDS; k++)
			fold(p, m, k);
		struct json_writer top = json_put_document(&out, JSON_LINES_ALL);

		managed_report_json(m, p, &top);
		json_put_end(&top);
		managed_report_text(m, p, &out);
		if (out.error)
			abort();
	}
	outbuf_close(&out);
	managed_profiles_free(m);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct managed_options options = {.unlisted = size % 2,
					  .trace_fd = memfd_create("trace", MFD_CLOEXEC),
					  .wanted = (1u << MANAGED_KINDS) - 1,
					  .place = {.threads_fd = -1, .pid = 50},
					  .max_bytes = 1 << 20};

	if (options.trace_fd < 0 || write(options.trace_fd, data, size) != (ssize_t)size)
		abort();
	profile_all(options.trace_fd, &options);
	options.max_bytes = 2000;
	options.raw_names = true;
	profile_all(options.trace_fd, &options);
	close(options.trace_fd);
	return 0;
}
