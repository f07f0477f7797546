/* Samples of a trace get the states of their threads, and the sums of a comparison. */
#include "profcpu/compare/methods.h"
#include "profcpu/compare/pictures.h"

#include "base/clock.h"
#include "dotnet/eventpipe/session.h"
#include "tests/unit/fake_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLE = 1, SUSPEND, RESTART, PID = 50, SAMPLER = 99, RUNS = 51, WAITS = 52 };
/* When each round of the sampler begins; ticks are ns. */
#define ROUND(i) (1000000 + UINT64_C(1000000) * (i))
#define ROUNDS 10

static struct outbuf trace;
static uint32_t sequence;
static struct profile *profile;
static struct compare *compare;
static uint32_t event, threads[2], stacks[2];

static void put(uint32_t kind, uint32_t thread, uint64_t ticks, uint32_t stack, uint32_t value,
		size_t values)
{
	struct outbuf b = nt_events(true), payload = outbuf_to(-1);

	for (size_t i = 0; i < values; i++)
		ipc_put_u32(&payload, i ? 0 : value);
	struct nettrace_blob e = {.metadata_id = kind,
				  .sequence = ++sequence,
				  .capture_thread = SAMPLER,
				  .thread = thread,
				  .stack_id = stack,
				  .ticks = ticks,
				  .payload = (const unsigned char *)payload.data,
				  .payload_len = (uint32_t)payload.len};

	nt_compressed(&b, &e, 0, 0);
	nt_block(&trace, "EventBlock", &b);
	outbuf_close(&payload);
}

static void put_stacks(void)
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, 2);
	for (uint64_t i = 0; i < 2; i++) {
		ipc_put_u32(&b, 8);
		ipc_put_u64(&b, 0x1000 * (i + 1));
	}
	nt_block(&trace, "StackBlock", &b);
}

/* One thread runs, one is blocked: a sample of each in each round. Two rounds lack their begin. */
static void make_trace(uint32_t reason)
{
	sequence = 0;
	trace = outbuf_to(-1);
	nt_head(&trace);
	nt_trace(&trace, NS_PER_S);
	nt_kind(&trace, SAMPLE, PROVIDER_SAMPLER, 0, "", 0);
	nt_kind(&trace, SUSPEND, PROVIDER_RUNTIME, 9, "", 1);
	nt_kind(&trace, RESTART, PROVIDER_RUNTIME, 3, "", 1);
	put_stacks();
	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (i >= 2)
			put(SUSPEND, SAMPLER, ROUND(i), 0, reason, 3);
		put(SAMPLE, RUNS, ROUND(i) + 1000, 1, 2, 1);
		put(SAMPLE, WAITS, ROUND(i) + 2000, 2, 1, 1);
		if (i >= 2)
			put(RESTART, SAMPLER, ROUND(i) + 5000, 0, 0, 1);
	}
	nt_end(&trace);
}

static int memory_of(const void *data, size_t len)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static uint32_t text(const char *word)
{
	uint32_t id;

	assert_int_equal(profile_text(profile, word, strlen(word), &id), 0);
	return id;
}

static uint32_t stack_of(const char *method)
{
	const struct profile_frame frame = {.perf_name = text(method),
					    .name = text(method),
					    .module = PROFILE_NONE,
					    .srcline = PROFILE_NONE,
					    .kind = FRAME_MANAGED,
					    .status = FRAME_IS_NAMED};
	uint32_t id, stack;

	assert_int_equal(profile_frame(profile, &frame, &id), 0);
	assert_int_equal(profile_stack(profile, PROFILE_STACK_EMPTY, id, &stack), 0);
	return stack;
}

static void make_threads(void)
{
	static const char *const names[] = {"Runs()", "Waits()"};

	for (int i = 0; i < 2; i++) {
		const struct profile_thread thread = {
			.pid = PID, .tid = RUNS + i, .comm = text("app")};

		assert_int_equal(profile_thread(profile, &thread, &threads[i]), 0);
		stacks[i] = stack_of(names[i]);
	}
}

static void make_profile(void)
{
	assert_int_equal(profile_new(&profile), 0);
	make_threads();
	const struct profile_event cpu = {.name = text("cpu-clock"), .has_period = true};

	assert_int_equal(profile_event(profile, &cpu, &event), 0);
}

static int make(const struct compare_options *more, struct parse_error *err)
{
	struct compare_options options = *more;

	options.trace_fd = memory_of(trace.data, trace.len);
	options.place.pid = PID;
	options.max_bytes = options.max_bytes ? options.max_bytes : 1 << 20;
	int r = compare_new(profile, &options, &compare, err);

	close(options.trace_fd);
	return r;
}

static size_t name_all(void)
{
	struct unnamed_stack unnamed;
	size_t n = 0;

	const struct unnamed_source source = compare_source(compare);

	while (source.next(source.ctx, UINT64_MAX, &unnamed)) {
		int which = unnamed.tid == WAITS;

		assert_int_equal(unnamed.ncallchain, 2);
		assert_int_equal(unnamed.callchain[1], 0x1000 * (uint64_t)(which + 1));
		source.name(source.ctx, unnamed.number, threads[which], stacks[which]);
		n++;
	}
	return n;
}

/* Thread WAITS is in one wait; RUNS is blocked in each round, by the stop. */
static void take_kernel(uint64_t until)
{
	struct profile_sample sample = {.event = event, .thread = threads[0], .stack = stacks[0]};
	struct timeline_wait wait = {.begin_ns = 500, .end_ns = until};

	for (uint64_t i = 0; i < ROUNDS; i++) {
		const struct timeline_wait stop = {
			.begin_ns = ROUND(i) + 500, .end_ns = ROUND(i) + 5500, .runnable_ns = 400};

		sample.time_ns = ROUND(i) + 500000;
		sample.weight = 7;
		assert_int_equal(compare_take_cpu(compare, &sample), 0);
		assert_int_equal(compare_take_wait(compare, &sample, &stop), 0);
	}
	sample.thread = threads[1];
	sample.stack = stacks[1];
	assert_int_equal(compare_take_wait(compare, &sample, &wait), 0);
	assert_int_equal(compare_take_life(compare, PID, RUNS, 1, until, true), 0);
	assert_int_equal(compare_take_life(compare, PID, WAITS, 1, until, true), 0);
	assert_int_equal(compare_take_life(compare, PID + 1, WAITS, 1, until, false), 0);
	assert_int_equal(compare_finish(compare), 0);
}

static void end(void)
{
	compare_free(compare);
	compare = NULL;
	profile_free(profile);
	outbuf_close(&trace);
}

static void samples_have_the_states_of_their_threads(void **state)
{
	struct parse_error err = {0};
	struct compare_methods methods;

	(void)state;
	make_trace(0);
	make_profile();
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	assert_int_equal(name_all(), 2 * ROUNDS);
	take_kernel(ROUND(ROUNDS + 1));
	const struct compare_totals *t = compare_totals(compare);

	assert_int_equal(t->samples, 2 * ROUNDS);
	assert_int_equal(t->outside, ROUNDS);
	assert_int_equal(t->rounds, ROUNDS - 2);
	assert_int_equal(t->claims[TIMELINE_RUNNING], ROUNDS - 2);
	assert_int_equal(t->claims[TIMELINE_BLOCKED], ROUNDS - 2);
	assert_int_equal(t->claims[TIMELINE_UNKNOWN], 2 * 2);
	assert_int_equal(t->suspended_ns, 5000 * (ROUNDS - 2));
	assert_int_equal(t->stopped_ns, (5000 - 400) * (ROUNDS - 2));
	assert_int_equal(t->from_ns, ROUND(0) + 1000);
	assert_int_equal(t->to_ns, ROUND(ROUNDS - 1) + 2000);
	assert_int_equal(compare_methods_make(compare, profile, &methods), 0);
	assert_int_equal(methods.v.len, 2);
	const struct compare_method *runs = &methods.v.v[0];

	assert_string_equal(profile_text_of(profile, runs->name, NULL), "Runs()");
	struct compare_shares shares = compare_shares(&methods, runs->self);

	assert_true(shares.cpu == 1 && shares.claimed == 0.5 && shares.claimed_running == 1);
	/* Samples share out the time that the thread ran. */
	assert_in_range(runs->self[COMPARE_ON_CPU], t->states[TIMELINE_RUNNING] - ROUNDS,
			t->states[TIMELINE_RUNNING]);
	assert_int_equal(methods.v.v[1].self[COMPARE_BLOCKED], t->to_ns - t->from_ns);
	compare_methods_free(&methods);
	end();
}

static void suspensions_for_collections_are_no_rounds(void **state)
{
	struct parse_error err = {0};

	(void)state;
	make_trace(1);
	make_profile();
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	name_all();
	take_kernel(ROUND(ROUNDS + 1));
	assert_int_equal(compare_totals(compare)->rounds, 0);
	assert_int_equal(compare_totals(compare)->claims[TIMELINE_UNKNOWN], 2 * ROUNDS);
	end();
}

static void another_clock_is_found_and_moved(void **state)
{
	struct parse_error err = {0};
	struct compare_options options = {
		.place = {.threads_fd = -1, .sent_ns = 1, .received_ns = 50000}};

	(void)state;
	make_trace(0);
	make_profile();
	assert_int_equal(make(&options, &err), 0);
	/* Its clock showed 5000 when the trace began. */
	assert_int_equal(compare_totals(compare)->clock_error_ns, 49999);
	assert_int_equal(compare_totals(compare)->clock_offset_ns, 0);
	assert_int_equal(compare_totals(compare)->from_ns, ROUND(0) + 1000);
	compare_free(compare);
	options.place.sent_ns = 7000000;
	options.place.received_ns = 7020000;
	assert_int_equal(make(&options, &err), 0);
	assert_int_equal(compare_totals(compare)->clock_offset_ns, 5000 - 7010000);
	assert_int_equal(compare_totals(compare)->from_ns, ROUND(0) + 1000 + 7010000 - 5000);
	end();
}

static void threads_of_another_namespace_are_mapped(void **state)
{
	static const char ids[] = "151 51\nnonsense\n-4 3\n152 52\n";
	struct parse_error err = {0};
	struct unnamed_stack unnamed;
	struct compare_options options = {.place.threads_fd = memory_of(ids, sizeof(ids) - 1)};
	size_t n;

	(void)state;
	make_trace(0);
	make_profile();
	assert_int_equal(make(&options, &err), 0);
	const struct unnamed_source source = compare_source(compare);

	assert_true(source.next(source.ctx, ROUND(0) + 1001, &unnamed));
	assert_int_equal(unnamed.tid, 151);
	assert_false(source.next(source.ctx, ROUND(0) + 1001, &unnamed));
	assert_true(source.next(source.ctx, ROUND(0) + 2001, &unnamed));
	assert_int_equal(unnamed.tid, 152);
	(void)compare_threads(compare, &n);
	assert_int_equal(n, 2);
	close(options.place.threads_fd);
	end();
}

static void damage_and_limits_keep_the_samples_before(void **state)
{
	struct parse_error err = {0};
	size_t whole;

	(void)state;
	make_trace(0);
	make_profile();
	whole = trace.len;
	trace.len = whole / 2;
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	assert_true(compare_totals(compare)->is_cut);
	assert_in_range(compare_totals(compare)->samples, 1, 2 * ROUNDS - 1);
	compare_free(compare);
	trace.len = whole;
	memset(trace.data + whole / 2, 0xff, 64);
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	assert_true(err.code == -EBADMSG || err.code == -E2BIG);
	compare_free(compare);
	trace.len = 40;
	err = (struct parse_error){0};
	compare = NULL;
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), -ENODATA);
	outbuf_close(&trace);
	make_trace(0);
	assert_int_equal(
		make(&(struct compare_options){.place.threads_fd = -1, .max_bytes = 1}, &err), 0);
	assert_true(compare_totals(compare)->left_out > 0);
	end();
}

/* The recording may have neither samples nor waits. */
static void samples_alone_have_a_picture(void **state)
{
	struct parse_error err = {0};
	struct tree tree;

	(void)state;
	make_trace(0);
	assert_int_equal(profile_new(&profile), 0);
	make_threads();
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	name_all();
	assert_int_equal(compare_finish(compare), 0);
	assert_int_equal(pictures_tree(compare, profile, 0, &tree), 0);
	assert_true(tree.nodes.v[TREE_ROOT].total > 0);
	tree_free(&tree);
	end();
}

/* A forged recording. */
static void the_largest_weights_do_not_overflow(void **state)
{
	struct parse_error err = {0};
	struct profile_sample sample = {.time_ns = ROUND(1), .weight = UINT64_MAX};
	struct tree tree;

	(void)state;
	make_trace(0);
	make_profile();
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	name_all();
	for (int i = 0; i < 3; i++) {
		sample.event = event;
		sample.thread = threads[0];
		sample.stack = stacks[i == 2];
		assert_int_equal(compare_take_cpu(compare, &sample), 0);
		sample.weight = i ? 5 : UINT64_MAX;
	}
	take_kernel(ROUND(ROUNDS + 1));
	assert_int_equal(pictures_difference(compare, profile, 0, &tree), 0);
	tree_free(&tree);
	assert_int_equal(pictures_tree(compare, profile, 0, &tree), 0);
	tree_free(&tree);
	end();
}

static void pictures_have_all_parts(void **state)
{
	struct parse_error err = {0};
	struct tree tree;
	uint32_t id;

	(void)state;
	make_trace(0);
	make_profile();
	assert_int_equal(make(&(struct compare_options){.place.threads_fd = -1}, &err), 0);
	name_all();
	take_kernel(ROUND(ROUNDS + 1));
	assert_int_equal(pictures_tree(compare, profile, 0, &tree), 0);
	static const char *const names[] = {PICTURES_ON_CPU,      PICTURES_WAITS, PICTURES_CLAIMS,
					    PICTURES_NO_EVIDENCE, "[running]",    "[blocked]",
					    PROFILE_RUNNABLE};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(intern_find(&tree.names, names[i], strlen(names[i]), &id), 0);
	/* Marks have no colour of code. */
	for (size_t i = 1; i < tree.nodes.len; i++)
		if (*intern_text(&tree.names, tree.nodes.v[i].name) == '[')
			assert_false(frame_kind_is_code(tree.nodes.v[i].kind));
	tree_free(&tree);
	assert_int_equal(pictures_difference(compare, profile, 0, &tree), 0);
	assert_true(tree.differential);
	for (size_t i = 1; i < tree.nodes.len; i++) {
		bool runs = !strcmp(intern_text(&tree.names, tree.nodes.v[i].name), "Runs()");

		assert_int_equal(tree.nodes.v[i].total, 500000000);
		assert_int_equal(tree.before.v[i].total, runs ? 1000000000 : 0);
	}
	tree_free(&tree);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_have_the_states_of_their_threads),
		cmocka_unit_test(suspensions_for_collections_are_no_rounds),
		cmocka_unit_test(another_clock_is_found_and_moved),
		cmocka_unit_test(threads_of_another_namespace_are_mapped),
		cmocka_unit_test(damage_and_limits_keep_the_samples_before),
		cmocka_unit_test(samples_alone_have_a_picture),
		cmocka_unit_test(the_largest_weights_do_not_overflow),
		cmocka_unit_test(pictures_have_all_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
