/* Events of a runtime become event profiles: their weights, what they are about, and their stacks.
 */
#include "profcpu/managed/report.h"

#include "dotnet/eventpipe/session.h"
#include "flamegraph/collapse.h"
#include "profcpu/managed/labels.h"
#include "tests/unit/fake_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { PID = 50, THREAD = 51, OWNER = 52, COLLECTOR = 53, CODE = 0x1000, COMPILED = 0x9000 };
#define ALL ((1u << MANAGED_KINDS) - 1)

static struct outbuf trace;
static uint32_t sequence, from = THREAD; /* from: thread of the next events */
static struct profile *profile;
static struct managed_profiles *managed;
static uint32_t thread, holder, stack, compiled; /* compiled: with the method above it */

static void begin(void)
{
	struct outbuf b = outbuf_to(-1);

	sequence = 0;
	trace = outbuf_to(-1);
	nt_head(&trace);
	nt_trace(&trace, NS_PER_S);
	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, 8);
	ipc_put_u64(&b, CODE);
	nt_block(&trace, "StackBlock", &b);
}

/* Puts an event of a provider. has_stack: the stack with CODE. Frees the payload. */
static void put_of(const char *provider, uint32_t id, uint32_t version, uint64_t ticks,
		   bool has_stack, struct outbuf payload)
{
	struct outbuf b = nt_events(true);
	struct nettrace_blob e = {.metadata_id = 1000 + sequence,
				  .sequence = sequence + 1,
				  .capture_thread = from,
				  .thread = from,
				  .stack_id = has_stack,
				  .ticks = ticks,
				  .payload = (const unsigned char *)payload.data,
				  .payload_len = (uint32_t)payload.len};

	nt_kind(&trace, 1000 + sequence++, provider, id, "", version);
	nt_compressed(&b, &e, 0, 0);
	nt_block(&trace, "EventBlock", &b);
	outbuf_close(&payload);
}

static void put(uint32_t id, uint32_t version, uint64_t ticks, bool has_stack,
		struct outbuf payload)
{
	put_of(PROVIDER_RUNTIME, id, version, ticks, has_stack, payload);
}

static struct outbuf numbers(size_t n, const uint32_t *values)
{
	struct outbuf p = outbuf_to(-1);

	for (size_t i = 0; i < n; i++)
		ipc_put_u32(&p, values[i]);
	return p;
}
#define NUMBERS(...) \
	numbers(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static struct outbuf sampled(const char *type, uint64_t size)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u32(&p, 0);
	nt_u16(&p, 1);
	ipc_put_u64(&p, 7);
	nt_text(&p, type);
	ipc_put_u64(&p, 8);
	ipc_put_u64(&p, size);
	ipc_put_u64(&p, 0);
	return p;
}

static struct outbuf tick(const char *type, uint64_t amount)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u32(&p, 1);
	ipc_put_u32(&p, 0);
	nt_u16(&p, 1);
	ipc_put_u64(&p, amount);
	ipc_put_u64(&p, 7);
	nt_text(&p, type);
	return p;
}

static struct outbuf thrown(const char *type)
{
	struct outbuf p = outbuf_to(-1);

	nt_text(&p, type);
	nt_text(&p, "message");
	return p;
}

/* owner 0: unknown. */
static struct outbuf contention_start(uint64_t owner)
{
	struct outbuf p = outbuf_to(-1);

	outbuf_char(&p, 0);
	nt_u16(&p, 1);
	ipc_put_u64(&p, 1);
	ipc_put_u64(&p, 2);
	ipc_put_u64(&p, owner);
	return p;
}

/* ns NAN: an old event without a duration. */
static struct outbuf contention_stop(double ns)
{
	struct outbuf p = outbuf_to(-1);

	outbuf_char(&p, 0);
	nt_u16(&p, 1);
	if (ns == ns)
		outbuf_put(&p, &ns, sizeof(ns));
	return p;
}

static struct outbuf jitting(uint64_t method)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, method);
	ipc_put_u64(&p, FAKE_MODULE);
	ipc_put_u32(&p, 1);
	ipc_put_u32(&p, 1);
	nt_text(&p, "N.T");
	nt_text(&p, "Made");
	nt_text(&p, "instance void  (class System.String)");
	nt_u16(&p, 1);
	return p;
}

static struct outbuf loaded(uint64_t method, uint64_t start)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, method);
	ipc_put_u64(&p, FAKE_MODULE);
	ipc_put_u64(&p, start);
	ipc_put_u32(&p, 0x40);
	ipc_put_u32(&p, 1);
	ipc_put_u32(&p, METHOD_JITTED);
	return p;
}

/* A collection whose phases took these times, in microseconds. */
static struct outbuf history(uint32_t n, const uint32_t *us)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, 1);
	for (int i = 0; i < 5; i++)
		ipc_put_u32(&p, 0);
	nt_u16(&p, 1);
	for (int i = 0; i < 4; i++)
		ipc_put_u32(&p, 0);
	ipc_put_u32(&p, n);
	for (uint32_t i = 0; i < n; i++)
		ipc_put_u32(&p, us[i]);
	return p;
}

static uint32_t text(const char *word)
{
	uint32_t id;

	assert_int_equal(profile_text(profile, word, strlen(word), &id), 0);
	return id;
}

static uint32_t above(uint32_t parent, const char *name, uint32_t module, uint8_t kind)
{
	const struct profile_frame frame = {.perf_name = text(name),
					    .name = text(name),
					    .module = module,
					    .srcline = PROFILE_NONE,
					    .kind = kind,
					    .status = FRAME_IS_NAMED};
	uint32_t id, made;

	assert_int_equal(profile_frame(profile, &frame, &id), 0);
	assert_int_equal(profile_stack(profile, parent, id, &made), 0);
	return made;
}

static uint32_t stack_of(uint32_t parent, const char *method)
{
	return above(parent, method, PROFILE_NONE, FRAME_MANAGED);
}

static uint32_t native_above(uint32_t parent, const char *module)
{
	return above(parent, "f", text(module), FRAME_RUNTIME);
}

static uint32_t thread_of(int32_t tid, const char *comm)
{
	const struct profile_thread t = {.pid = PID, .tid = tid, .comm = text(comm)};
	uint32_t id;

	assert_int_equal(profile_thread(profile, &t, &id), 0);
	return id;
}

static void make_profile(void)
{
	holder = thread_of(OWNER, "holder");
	thread = thread_of(THREAD, "app");
	stack = stack_of(PROFILE_STACK_EMPTY, "Program.Calls()");
	compiled = stack_of(stack, "N.T.Compiled()");
}

static int make(unsigned wanted, uint64_t max_bytes)
{
	struct managed_options options = {.trace_fd = memfd_create("trace", MFD_CLOEXEC),
					  .wanted = wanted,
					  .place = {.threads_fd = -1, .pid = PID},
					  .max_bytes = max_bytes};
	struct parse_error err = {0};

	assert_true(options.trace_fd >= 0);
	assert_int_equal(write(options.trace_fd, trace.data, trace.len), trace.len);
	assert_int_equal(lseek(options.trace_fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_new(&profile), 0);
	make_profile();
	int r = managed_profiles_new(profile, &options, &managed, &err);

	close(options.trace_fd);
	return r;
}

/* Names the stacks as the import does. Code at COMPILED has a name. Returns their number. */
static size_t name_all(void)
{
	struct unnamed_source source = managed_profiles_source(managed);
	struct unnamed_stack s;
	uint64_t before = 0;
	size_t n = 0;

	assert_int_equal(source.pid, PID);
	while (source.next(source.ctx, UINT64_MAX, &s)) {
		bool has_leaf = s.ncallchain > 1 && s.callchain[1] == COMPILED,
		     has_stack = s.callchain[s.ncallchain - 1] == CODE;

		if (s.tid == OWNER) {
			assert_int_equal(s.ncallchain, 1);
			source.name(source.ctx, s.number, holder, PROFILE_STACK_EMPTY);
			continue;
		}
		n++;
		assert_true(s.tid == THREAD || (s.tid == COLLECTOR && !has_stack));
		assert_true(s.time_ns >= before);
		before = s.time_ns;
		source.name(source.ctx, s.number, thread,
			    has_leaf    ? compiled
			    : has_stack ? stack
					: PROFILE_STACK_EMPTY);
	}
	return n;
}

static void run(unsigned wanted, size_t events)
{
	nt_end(&trace);
	assert_int_equal(make(wanted, 1 << 20), 0);
	assert_int_equal(name_all(), events);
	assert_int_equal(managed_profiles_finish(managed), 0);
}

static void end(void)
{
	managed_profiles_free(managed);
	managed = NULL;
	profile_free(profile);
	outbuf_close(&trace);
}

static void check_folded(enum managed_kind kind, uint64_t divisor, const char *lines)
{
	const struct managed_profile *p = managed_profile_of(managed, kind);
	const struct collapse_options options = {.names = COLLAPSE_FULL,
						 .event_filter = managed_kind_info(kind)->name,
						 .groups = p->v.v,
						 .ngroups = p->v.len,
						 .divisor = divisor};
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;

	assert_int_equal(collapse_write(profile, &options, &out, &stats), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, lines);
	outbuf_close(&out);
}

static void test_allocations(void **state)
{
	(void)state;
	begin();
	put(303, 0, 10, true, sampled("System.Byte[]", 64));
	put(303, 0, 20, true, sampled("System.Collections.Generic.List`1[System.Int32]", 1024000));
	/* .NET 10 does not send this one if it samples; if it does, it counts nothing twice. */
	put(10, 4, 30, true, tick("Tick", 100000));
	run(ALL, 2);
	const struct managed_profile *p = managed_profile_of(managed, MANAGED_ALLOC);

	assert_true(managed_totals(managed)->exact_samples);
	assert_int_equal(p->events, 2);
	/* A small object stands for the mean, and a large one for itself, nearly. */
	assert_in_range(p->labels.list.v[1].weight, 102400, 102400 + 64);
	assert_in_range(p->labels.list.v[0].weight, 1024000, 1024000 + 100);
	check_folded(MANAGED_ALLOC, 1000,
		     "app;Program.Calls();System.Byte[] 102\n"
		     "app;Program.Calls();System.Collections.Generic.List<int32> 1024\n");
	end();
}

static void test_old_allocations(void **state)
{
	(void)state;
	begin();
	put(10, 4, 30, true, tick("Outer+Inner", 100000));
	put(10, 4, 40, false, tick("System.String", 50000));
	run(1u << MANAGED_ALLOC, 2);
	assert_false(managed_totals(managed)->exact_samples);
	check_folded(MANAGED_ALLOC, 1,
		     "app;Program.Calls();Outer.Inner 100000\napp;System.String 50000\n");
	end();
}

static void test_exceptions(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 5; i++)
		put(80, 1, 10 + (uint64_t)i, true,
		    thrown(i < 3 ? "System.FormatException" : "N.Other"));
	run(ALL, 5);
	const struct managed_profile *p = managed_profile_of(managed, MANAGED_EXCEPTIONS);

	check_folded(MANAGED_EXCEPTIONS, 1,
		     "app;Program.Calls();N.Other 2\n"
		     "app;Program.Calls();System.FormatException 3\n");
	assert_int_equal(p->places.list.len, 1);
	assert_int_equal(p->places.list.v[0].weight, 5);
	assert_string_equal(profile_text_of(profile, p->places.list.v[0].name, NULL),
			    "Program.Calls()");
	/* Only this kind has an event, and no sample of the profile counts it. */
	assert_int_equal(managed_profile_of(managed, MANAGED_GC)->event, PROFILE_NONE);
	assert_int_equal(profile_nsamples(profile), 0);
	end();
}

static void test_contention(void **state)
{
	(void)state;
	begin();
	put(91, 1, 5, false, contention_stop(9)); /* began before the recording */
	/* Blocks are not in the order of time. */
	put(91, 1, 3000000, false, contention_stop(0.0 / 0.0));
	put(81, 2, 1000000, true, contention_start(OWNER));
	put(81, 2, 4000000, true, contention_start(0));
	put(91, 1, 5000000, false, contention_stop(700000));
	put(81, 2, 6000000, true, contention_start(OWNER)); /* goes on at the end */
	run(ALL, 2);
	check_folded(MANAGED_CONTENTION, 1000,
		     "app;Program.Calls();[lock owner unknown] 700\n"
		     "app;Program.Calls();[locked by holder-52] 2000\n");
	const struct managed_profile *p = managed_profile_of(managed, MANAGED_CONTENTION);

	assert_int_equal(p->unpaired, 2);
	assert_int_equal(p->weight, 2700000);
	assert_int_equal(p->weights.v[0], 700000);
	assert_int_equal(p->weights.v[1], 2000000);
	end();
}

static void test_pauses(void **state)
{
	(void)state;
	begin();
	/* The sampler stops the threads: no pause of the GC. */
	put(9, 1, 1000000, true, NUMBERS(0, 0, 0));
	put(3, 1, 2000000, false, NUMBERS(0));
	/* A collection of generation 1, and one of generation 2 that goes on in the background. */
	put(35, 0, 2900000, true, NUMBERS(0));
	from = COLLECTOR; /* as with the server GC */
	put(9, 1, 3000000, false, NUMBERS(1, 1, 0));
	put(1, 2, 3100000, false, NUMBERS(1, 1, 0, 0));
	put(1, 2, 3200000, false, NUMBERS(2, 2, 4, 1));
	put(3, 1, 5000000, false, NUMBERS(0));
	put(9, 1, 7000000, false, NUMBERS(6, 2, 0));
	put(3, 1, 7500000, false, NUMBERS(0));
	put(2, 1, 8000000, false, NUMBERS(2, 2));
	from = THREAD;
	/* No collection follows. */
	put(9, 1, 9000000, true, NUMBERS(1, 3, 0));
	put(3, 1, 9300000, false, NUMBERS(0));
	put(9, 1, 9900000, false, NUMBERS(1, 3, 0)); /* cut */
	run(ALL, 3);
	check_folded(MANAGED_GC, 1000,
		     "app;Program.Calls();[gen 2, large objects, background] 2000\n"
		     "app;Program.Calls();[no collection known] 300\n"
		     "app;[gen 2, large objects, background] 500\n");
	assert_int_equal(managed_profile_of(managed, MANAGED_GC)->unpaired, 1);
	end();
}

static void test_compilations(void **state)
{
	(void)state;
	begin();
	put(145, 1, 1000000, true, jitting(1));
	put(145, 1, 1500000, true, jitting(2)); /* while it compiles the other one */
	put(143, 2, 2000000, true, loaded(2, 0));
	put(143, 2, 5000000, true, loaded(1, COMPILED));
	put(143, 2, 6000000, true, loaded(3, 0x7000)); /* precompiled */
	run(ALL, 2);
	check_folded(MANAGED_JIT, 1000,
		     "app;Program.Calls();N.T.Compiled() 4000\n"
		     "app;Program.Calls();N.T.Made(string) 500\n");
	assert_int_equal(managed_profile_of(managed, MANAGED_JIT)->unpaired, 0);
	end();
}

/* A sample on a CPU, at a time in milliseconds of the trace. */
static void runs(uint32_t of, uint32_t in, double ms)
{
	const struct profile_sample sample = {.time_ns = (uint64_t)(ms * NS_PER_MS),
					      .weight = NS_PER_MS,
					      .thread = of,
					      .stack = in};

	assert_int_equal(managed_profiles_take_cpu(managed, &sample), 0);
}

/* Makes a trace of collections, and reads it. */
static void collect_several(void)
{
	static const uint32_t told[] = {0, 1000, 0, 0, 0, 1000, 1000, 1000};
	static const uint32_t blocking[] = {0, 1000, 0, 0, 0, 500, 500};
	static const uint32_t sweeping[] = {0, 1000, 500, 300, 200, 3000, 1000};
	/* As .NET 8 tells it. */
	static const uint32_t compacting[] = {0, 1000, 0, 0, 0, 1000, 1000, UINT32_MAX};

	begin();
	put(9, 1, 10000000, true, NUMBERS(1, 0, 0));
	put(1, 2, 11000000, false, NUMBERS(1, 1, 0, 0));
	put(205, 4, 17100000, false, history(7, sweeping));
	put(3, 1, 18000000, false, NUMBERS(0));
	put(9, 1, 20000000, true, NUMBERS(1, 0, 0));
	put(1, 2, 20000000, false, NUMBERS(2, 1, 0, 0));
	put(205, 4, 23500000, false, history(8, compacting)); /* ends before its phases */
	put(205, 4, 23600000, false, history(7, sweeping));   /* of no collection that is known */
	put(3, 1, 25000000, false, NUMBERS(0));
	/* To be in the background, and becomes a blocking one. */
	put(9, 1, 26000000, true, NUMBERS(1, 0, 0));
	put(1, 2, 26000000, false, NUMBERS(3, 2, 0, 1));
	put(205, 4, 28100000, false, history(7, blocking));
	put(3, 1, 28500000, false, NUMBERS(0));
	put(9, 1, 80000000, true, NUMBERS(1, 0, 0));
	put(1, 2, 80000000, false, NUMBERS(4, 1, 0, 0));
	put(205, 4, 86000000, false, history(8, told));
	put(3, 1, 87000000, false, NUMBERS(0));
	from = COLLECTOR;
	put_of(PROVIDER_PRIVATE, 11, 0, 30000000, false, NUMBERS(0));
	put_of(PROVIDER_PRIVATE, 16, 0, 40000000, false, NUMBERS(0));
	put_of(PROVIDER_PRIVATE, 17, 0, 50000000, false, NUMBERS(0));
	put(11, 1, 60000000, false, NUMBERS(0)); /* another event of the same number */
	put(17, 1, 70000000, false, NUMBERS(0));
	from = THREAD;
	nt_end(&trace);
	assert_int_equal(make(1u << MANAGED_CAUSES | 1u << MANAGED_RUNTIME, 1 << 20), 0);
	assert_int_equal(name_all(), 0);
}

static void test_work_of_the_gc(void **state)
{
	(void)state;
	collect_several();
	uint32_t in_gc = native_above(stack, "/app/libcoreclr.so"),
		 in_server = native_above(PROFILE_STACK_EMPTY, "/app/libclrgc.so"),
		 background = thread_of(COLLECTOR, ".NET BGC"),
		 server = thread_of(54, ".NET Server GC");

	runs(thread, in_gc, 9);    /* before it */
	runs(thread, stack, 12);   /* in the program */
	runs(holder, in_gc, 12);   /* another thread runs in native code */
	runs(thread, in_gc, 10.5); /* stops the threads */
	runs(thread, in_gc, 11.5);
	runs(thread, in_gc, 12.9);
	runs(thread, in_gc, 13.1);
	runs(server, in_server, 15.9);
	runs(thread, in_gc, 16.1);
	runs(thread, in_gc, 17.5); /* starts them */
	runs(thread, in_gc, 22.1);
	runs(thread, in_gc, 23.2);
	runs(thread, in_gc, 26.5);
	runs(thread, in_gc, 83); /* between plan and relocate */
	runs(thread, in_gc, 84.5);
	runs(background, in_server, 29);
	runs(background, in_server, 35);
	/* A single-file program has the runtime in itself. */
	runs(background, above(PROFILE_STACK_EMPTY, "g", text("/app/app"), FRAME_NATIVE), 36);
	runs(background, in_server, 45);
	assert_int_equal(managed_profiles_finish(managed), 0);
	check_folded(MANAGED_RUNTIME, 1000000,
		     ".NET BGC;[GC: background mark];f 1\n"
		     ".NET BGC;[GC: background mark];g 1\n"
		     ".NET BGC;[GC: background sweep];f 1\n"
		     ".NET BGC;[GC: background];f 1\n"
		     ".NET Server GC;[GC: plan];f 1\n"
		     "app;Program.Calls();[GC: compact];f 1\n"
		     "app;Program.Calls();[GC: mark];f 3\n"
		     "app;Program.Calls();[GC: other];f 3\n"
		     "app;Program.Calls();[GC: plan];f 1\n"
		     "app;Program.Calls();[GC: relocate];f 2\n"
		     "app;Program.Calls();[GC: sweep];f 1\n");
	end();
}

static void test_work_of_the_jit(void **state)
{
	(void)state;
	begin();
	put(145, 1, 10000000, true, jitting(1));
	put(143, 2, 20000000, true, loaded(1, COMPILED));
	nt_end(&trace);
	assert_int_equal(make(1u << MANAGED_CAUSES | 1u << MANAGED_RUNTIME, 1 << 20), 0);
	assert_int_equal(name_all(), 0);
	uint32_t in_runtime = native_above(stack, "/app/libcoreclr.so"),
		 in_jit = native_above(in_runtime, "/app/libclrjit.so"),
		 asks = native_above(in_jit, "/app/libcoreclr.so"),
		 below = stack_of(in_jit, "Resolve()");

	runs(thread, in_runtime, 9);
	runs(thread, in_runtime, 11);
	runs(thread, in_jit, 12);
	runs(thread, asks, 13);
	runs(thread, below, 14);      /* a method that the JIT has called */
	runs(holder, in_runtime, 15); /* another thread */
	runs(thread, in_jit, 21);     /* of a compilation whose event is missing */
	assert_int_equal(managed_profiles_finish(managed), 0);
	check_folded(MANAGED_RUNTIME, 1000000,
		     "app;Program.Calls();[JIT: N.T.Made(string)];f 1\n"
		     "app;Program.Calls();[JIT: N.T.Made(string)];f;f 1\n"
		     "app;Program.Calls();[JIT: N.T.Made(string)];f;f;"
		     "f 1\n"
		     "app;Program.Calls();[JIT: method unknown];f;f 1\n");
	const struct managed_profile *p = managed_profile_of(managed, MANAGED_RUNTIME);

	assert_int_equal(p->events, 4);
	assert_int_equal(p->labels.list.len, 1);
	assert_string_equal(profile_text_of(profile, p->labels.list.v[0].name, NULL), "JIT");
	assert_string_equal(profile_text_of(profile, p->places.list.v[0].name, NULL),
			    "JIT: N.T.Made(string)");
	end();
}

static void test_reports(void **state)
{
	struct outbuf out = outbuf_to(-1);
	const struct profile_event cpu = {.has_period = true};
	struct profile_sample sample = {.weight = 30, .time_ns = 10 * NS_PER_S};

	(void)state;
	begin();
	put(80, 1, 1000000, true, thrown("N.Other"));
	nt_end(&trace);
	assert_int_equal(make(ALL & ~(1u << MANAGED_JIT), 1 << 20), 0);
	/* Samples on CPUs: a fourth of them is of the thread that writes the trace. */
	assert_int_equal(profile_event(profile, &cpu, &sample.event), 0);
	sample.thread = thread;
	sample.stack = stack;
	assert_int_equal(profile_sample(profile, &sample), 0);
	sample.thread = thread_of(60, ".NET EventPipe");
	sample.weight = 10;
	assert_int_equal(profile_sample(profile, &sample), 0);
	assert_int_equal(name_all(), 1);
	assert_int_equal(managed_profiles_finish(managed), 0);
	assert_int_equal(managed_totals(managed)->cpu_weight, 40);
	assert_int_equal(managed_totals(managed)->writer_weight, 10);
	managed_report_text(managed, profile, &out);
	outbuf_char(&out, 0);
	assert_non_null(strstr(out.data, "exception 1 thrown"));
	assert_non_null(strstr(out.data, "100.00 %  N.Other\n"));
	assert_non_null(strstr(out.data, "100.00 %  in Program.Calls()\n"));
	assert_non_null(strstr(out.data, "gc        none\n"));
	assert_null(strstr(out.data, "jit "));
	assert_non_null(strstr(out.data, "25.00 % of the process's CPU samples"));
	outbuf_close(&out);
	out = outbuf_to(-1);
	struct json_writer top = json_put_document(&out, JSON_LINES_ALL);

	managed_report_json(managed, profile, &top);
	json_put_end(&top);
	outbuf_char(&out, 0);
	assert_non_null(strstr(out.data, "\"runtime_events\": 1,"));
	assert_non_null(strstr(out.data, "\"name\": \"N.Other\""));
	outbuf_close(&out);
	end();
}

static void test_limits_and_damage(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 2000; i++)
		put(80, 1, 10 + i, true, thrown("N.Other"));
	nt_end(&trace);
	assert_int_equal(make(ALL, 100000), 0);
	size_t named = name_all();

	assert_int_equal(managed_profiles_finish(managed), 0);
	assert_in_range(named, 1, 1999);
	assert_int_equal(managed_totals(managed)->left_out, 2000 - named);
	assert_int_equal(managed_profile_of(managed, MANAGED_EXCEPTIONS)->events, named);
	managed_profiles_free(managed);
	managed = NULL;
	profile_free(profile);
	/* The events before a cut and before damage count. */
	trace.len /= 2;
	assert_int_equal(make(ALL, 1 << 20), 0);
	assert_true(managed_totals(managed)->is_cut);
	assert_in_range(name_all(), 500, 1500);
	managed_profiles_free(managed);
	managed = NULL;
	profile_free(profile);
	memset(trace.data + trace.len - 100, 0xff, 100);
	assert_int_equal(make(ALL, 1 << 20), 0);
	assert_in_range(name_all(), 500, 1500);
	managed_profiles_free(managed);
	managed = NULL;
	profile_free(profile);
	trace.len = 3;
	memcpy(trace.data, "???", 3);
	assert_true(make(ALL, 1 << 20) == -EBADMSG);
	profile_free(profile);
	outbuf_close(&trace);
}

static void check_type(const char *name, const char *shown)
{
	struct outbuf out = outbuf_to(-1);

	managed_label_type(name, strlen(name), &out);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, shown);
	outbuf_close(&out);
}

static void test_types(void **state)
{
	(void)state;
	check_type("Small", "Small");
	check_type("System.Double[,]", "System.Double[,]");
	check_type("A.B`1+C[System.Int32][]", "A.B<int32>.C[]");
	check_type("]", "]");
	check_type("", "");
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(managed_kinds_of(NULL), 0);
	assert_int_equal(managed_kinds_of("sampler"), 0);
	assert_int_equal(managed_kinds_of("sampler,alloc,jit"),
			 1u << MANAGED_ALLOC | 1u << MANAGED_JIT);
	assert_int_equal(managed_kinds_of("allocs,,gc,"), 1u << MANAGED_GC);
	assert_int_equal(managed_kinds_of("runtime"), 0);
	assert_int_equal(managed_kinds_of("causes,unlisted"),
			 1u << MANAGED_CAUSES | 1u << MANAGED_RUNTIME);
	assert_true(managed_words_have("alloc,sampler", "sampler"));
	assert_false(managed_words_have("alloc,samplers", "sampler"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocations),    cmocka_unit_test(test_old_allocations),
		cmocka_unit_test(test_exceptions),     cmocka_unit_test(test_contention),
		cmocka_unit_test(test_pauses),         cmocka_unit_test(test_compilations),
		cmocka_unit_test(test_work_of_the_gc), cmocka_unit_test(test_work_of_the_jit),
		cmocka_unit_test(test_reports),        cmocka_unit_test(test_limits_and_damage),
		cmocka_unit_test(test_types),          cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
