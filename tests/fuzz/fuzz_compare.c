/* Input: the number of bytes of a list of thread ids, this list, and a trace. Its samples are
 * compared with waits that the bytes give, too. covers: profcpu/compare/claims.c
 * profcpu/compare/compare.c profcpu/compare/timeline.c profcpu/compare/methods.c
 * profcpu/compare/pictures.c profcpu/compare/report.c */
#include "profcpu/compare/pictures.h"
#include "profcpu/compare/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PID 42
#define STACKS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

static uint32_t make_stack(struct profile *p, int i, uint8_t kind)
{
	char name[16] = "Method0()";
	struct profile_frame frame = {
		.module = PROFILE_NONE, .srcline = PROFILE_NONE, .kind = kind};
	uint32_t id, stack;

	name[6] = (char)('0' + i);
	if (profile_text(p, name, strlen(name), &frame.name) ||
	    profile_text(p, i ? name : "void System.Threading.Thread::PollGC()", i ? 9 : 37,
			 &frame.perf_name) ||
	    profile_frame(p, &frame, &id) ||
	    profile_stack(p, i > 1 ? 1 : PROFILE_STACK_EMPTY, id, &stack))
		abort();
	return stack;
}

/* Waits whose times are in the window, or not. */
static void take_waits(struct compare *c, uint32_t thread, uint32_t stack, const uint8_t *data,
		       size_t size)
{
	const struct compare_totals *t = compare_totals(c);
	uint64_t at = t->from_ns;

	for (size_t i = 0; i + 3 < size && i < 256; i += 4) {
		const struct timeline_wait wait = {.begin_ns = at + data[i] * 10000u,
						   .end_ns = at + data[i + 1] * 20000u,
						   .runnable_ns = data[i + 2] * 5000u};
		const struct profile_sample sample = {.time_ns = wait.end_ns,
						      .weight = data[i + 3] == 255 ? UINT64_MAX
										   : data[i + 3],
						      .thread = thread,
						      .stack = stack};

		if (compare_take_wait(c, &sample, &wait) || compare_take_cpu(c, &sample))
			abort();
		at += data[i + 3] * 1000u;
	}
}

static void check(struct compare *c, struct profile *p)
{
	const struct compare_totals *t = compare_totals(c);
	struct outbuf out = outbuf_to(-1);
	struct compare_methods methods;
	uint64_t claims = 0;
	struct tree tree;

	for (int s = 0; s < TIMELINE_STATES; s++)
		claims += t->claims[s];
	if (claims != t->samples || t->outside > t->samples)
		abort();
	if (compare_methods_make(c, p, &methods))
		abort();
	compare_report_text(c, &methods, p, &out);
	compare_report_json(c, &methods, p, &out);
	compare_methods_free(&methods);
	outbuf_close(&out);
	if (pictures_tree(c, p, 0, &tree))
		abort();
	tree_free(&tree);
	if (pictures_difference(c, p, 0, &tree))
		abort();
	tree_free(&tree);
}

static void compare_all(struct compare *c, struct profile *p, const uint8_t *data, size_t size)
{
	struct profile_thread thread = {.pid = PID};
	struct profile_event event = {.has_period = true};
	struct unnamed_stack unnamed;
	uint32_t stacks[STACKS], id, last = 0;

	if (profile_text(p, "app", 3, &thread.comm) || profile_text(p, "cpu", 3, &event.name) ||
	    profile_event(p, &event, &id))
		abort();
	for (int i = 0; i < STACKS; i++)
		stacks[i] = make_stack(p, i, i == 3 ? FRAME_NATIVE : FRAME_MANAGED);
	const struct unnamed_source source = compare_source(c);

	while (source.next(source.ctx, UINT64_MAX, &unnamed)) {
		thread.tid = unnamed.tid;
		if (profile_thread(p, &thread, &last))
			abort();
		source.name(source.ctx, unnamed.number, last, stacks[unnamed.number % STACKS]);
	}
	if (!profile_nthreads(p) && profile_thread(p, &thread, &last))
		abort();
	take_waits(c, last, stacks[1], data, size);
	if (compare_take_life(c, PID, profile_thread_of(p, last)->tid, 0, UINT64_MAX / 2,
			      size % 3 != 0) ||
	    compare_finish(c))
		abort();
	check(c, p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t list = size ? data[0] : 0;
	struct parse_error err = {0};
	struct compare *c;
	struct profile *p;

	if (size < 1 + list)
		return 0;
	struct compare_options options = {.trace_fd = memory_of(data + 1 + list, size - 1 - list),
					  .place.threads_fd = list ? memory_of(data + 1, list) : -1,
					  .place.pid = PID,
					  .place.sent_ns = list * 1000,
					  .place.received_ns = list * 2000000,
					  .max_bytes = 1 << 20};

	if (profile_new(&p))
		abort();
	if (!compare_new(p, &options, &c, &err)) {
		compare_all(c, p, data, size);
		compare_free(c);
	}
	profile_free(p);
	close(options.trace_fd);
	if (options.place.threads_fd >= 0)
		close(options.place.threads_fd);
	return 0;
}
