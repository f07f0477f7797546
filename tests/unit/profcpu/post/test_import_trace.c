/* Stacks, names and weights that events of a trace give. */
#include "profcpu/post/import_trace.h"

#include "dotnet/eventpipe/session.h"
#include "flamegraph/collapse.h"
#include "tests/unit/fake_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SAMPLE = 1, METHOD, MODULE, ASSEMBLY, EXCEPTION, ALLOCATION, INFO, LOADED };

static struct outbuf trace;
static struct import_trace_result result;
static struct parse_error err;
static uint32_t sequence;
static char folded[8192];
static size_t max_stack;

/* Adds a kind's event with these values of a thread, and a stack (0: none). */
static void put(uint32_t kind, uint32_t thread, uint32_t stack, struct outbuf payload)
{
	struct outbuf b = nt_events(true);
	struct nettrace_blob e = {.metadata_id = kind,
				  .sequence = ++sequence,
				  .capture_thread = 1,
				  .thread = thread,
				  .stack_id = stack,
				  .ticks = 50,
				  .payload = (const unsigned char *)payload.data,
				  .payload_len = (uint32_t)payload.len};

	nt_compressed(&b, &e, 0, 0);
	nt_block(&trace, "EventBlock", &b);
	outbuf_close(&payload);
}

static struct outbuf numbers(size_t n, const uint32_t *v)
{
	struct outbuf p = outbuf_to(-1);

	for (size_t i = 0; i < n; i++)
		ipc_put_u32(&p, v[i]);
	return p;
}
#define NUMBERS(...) \
	numbers(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

/* Stacks from this id on, each of addresses that end with 0. */
static void put_stacks(uint32_t id, size_t n, const uint64_t (*stacks)[4])
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u32(&b, id);
	ipc_put_u32(&b, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		uint32_t len = 0;

		while (len < 4 && stacks[i][len])
			len++;
		ipc_put_u32(&b, len * 8);
		for (uint32_t j = 0; j < len; j++)
			ipc_put_u64(&b, stacks[i][j]);
	}
	nt_block(&trace, "StackBlock", &b);
}

/* An event that lists the method "TYPE::NAME(int32)" with 0x40 bytes. */
static void put_listed(uint32_t kind, uint64_t start, const char *type, const char *name)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, start);
	ipc_put_u64(&p, FAKE_MODULE);
	ipc_put_u64(&p, start);
	ipc_put_u32(&p, 0x40);
	ipc_put_u32(&p, 0x06000001);
	ipc_put_u32(&p, METHOD_JITTED);
	nt_text(&p, type);
	nt_text(&p, name);
	nt_text(&p, "void  (int32)");
	nt_u16(&p, 1);
	ipc_put_u64(&p, 0);
	put(kind, 1, 0, p);
}

static void put_method(uint64_t start, const char *type, const char *name)
{
	put_listed(METHOD, start, type, name);
}

static void begin(void)
{
	static const uint64_t stacks[][4] = {
		{0x1010, 0x2020, 0x3030},
		{0x5010, 0x1010, 0x2020}, /* polls for suspension in the first one */
		{0x9999, 0x1010},         /* nothing is known of 0x9999 */
		{0x1010, 0x2040, 0x3030}, /* the call is the last instruction of its method */
		{0x1010, 0x2020, 0x3030}, /* equal to the first one */
	};

	sequence = 0;
	trace = outbuf_to(-1);
	nt_head(&trace);
	nt_trace(&trace, NS_PER_S);
	nt_kind(&trace, SAMPLE, PROVIDER_SAMPLER, 0, "", 0);
	nt_kind(&trace, METHOD, FAKE_RUNDOWN, 144, "", 2);
	nt_kind(&trace, MODULE, FAKE_RUNDOWN, 154, "", 2);
	nt_kind(&trace, ASSEMBLY, FAKE_RUNDOWN, 156, "", 1);
	nt_kind(&trace, EXCEPTION, FAKE_RUNTIME, 80, "", 1);
	nt_kind(&trace, ALLOCATION, FAKE_RUNTIME, 10, "", 4);
	nt_kind(&trace, INFO, "Microsoft-DotNETCore-EventPipe", 1, "", 0);
	nt_kind(&trace, LOADED, FAKE_RUNTIME, 143, "", 2);
	put_stacks(1, 5, stacks);
}

/* The list that a runtime sends at the end. */
static void put_rundown(const char *command_line)
{
	struct outbuf info = outbuf_to(-1);

	put_method(0x1000, "App.Work", "Spin");
	put_method(0x2000, "App.Work", "Run");
	put_method(0x3000, "App.Program", "Main");
	put_method(0x5000, "System.Threading.Thread", "<PollGC>g__PollGCWorker|68_0");
	put(MODULE, 1, 0, fake_module());
	put(ASSEMBLY, 1, 0, fake_assembly("app, Version=1.0.0.0", 0));
	nt_text(&info, command_line);
	nt_text(&info, "Linux");
	nt_text(&info, "x64");
	put(INFO, 1, 0, info);
}

static int load(const char *event, size_t bytes)
{
	const struct import_trace_options options = {
		.event = event, .functions_only = true, .max_stack = max_stack};
	int fd = memfd_create("trace", 0);
	struct collapse_options collapse = {.names = COLLAPSE_FULL, .include_tid = true};
	struct collapse_stats stats;
	struct outbuf out = outbuf_to(-1);
	struct profile *p;

	assert_int_equal(write(fd, trace.data, bytes), (ssize_t)bytes);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_new(&p), 0);
	int r = post_import_trace(fd, &options, p, &result, &err);

	assert_int_equal(profile_nsamples(p), result.samples);
	assert_int_equal(collapse_write(p, &collapse, &out, &stats), 0);
	snprintf(folded, sizeof(folded), "%.*s", (int)out.len, out.data ? out.data : "");
	outbuf_close(&out);
	profile_free(p);
	close(fd);
	return r;
}

static void loaded(const char *event, const char *expected)
{
	assert_int_equal(load(event, trace.len), 0);
	assert_string_equal(folded, expected);
}

static int forget(void **state)
{
	(void)state;
	outbuf_close(&trace);
	return 0;
}

static void samples_have_the_names_of_the_rundown(void **state)
{
	(void)state;
	begin();
	put(SAMPLE, 7, 1, NUMBERS(2));
	put(SAMPLE, 7, 5, NUMBERS(2));
	put(SAMPLE, 7, 2, NUMBERS(2));
	put(SAMPLE, 8, 4, NUMBERS(2));
	put(SAMPLE, 8, 3, NUMBERS(1));
	put_rundown("/srv/shop/app --password secret");
	nt_end(&trace);
	loaded(NULL, "app-42/7;App.Program.Main(int32);App.Work.Run(int32);App.Work.Spin(int32) 2\n"
		     "app-42/7;App.Work.Run(int32);App.Work.Spin(int32) 1\n"
		     "app-42/8;App.Program.Main(int32);App.Work.Run(int32);App.Work.Spin(int32) 1\n"
		     "app-42/8;App.Work.Spin(int32);[unknown];[outside of managed code] 1\n");
	assert_int_equal(result.samples, 5);
	assert_int_equal(result.frames, 13);
	assert_int_equal(result.nameless, 1);
	assert_false(result.is_cut);
}

static void a_program_of_the_shared_framework_has_its_own_name(void **state)
{
	(void)state;
	begin();
	put(SAMPLE, 7, 1, NUMBERS(2));
	put_rundown("/usr/bin/dotnet bin/shop.dll --password secret");
	nt_end(&trace);
	assert_int_equal(load(NULL, trace.len), 0);
	assert_non_null(strstr(folded, "shop-42/7;App.Program.Main(int32)"));
}

static void other_events_are_drawn_by_name_and_field(void **state)
{
	struct outbuf thrown = outbuf_to(-1);

	(void)state;
	begin();
	nt_text(&thrown, "System.Exception");
	put(EXCEPTION, 7, 1, thrown);
	put(ALLOCATION, 7, 1, NUMBERS(100000, 0));
	put(ALLOCATION, 7, 1, NUMBERS(5, 0));
	put(ALLOCATION, 9, 3, NUMBERS(7, 0));
	put(ALLOCATION, 9, 3, (struct outbuf){.fd = -1}); /* without values */
	put_rundown("app");
	nt_end(&trace);
	loaded("ExceptionThrown",
	       "app-42/7;App.Program.Main(int32);App.Work.Run(int32);App.Work.Spin(int32) 1\n");
	assert_int_equal(result.other_events, 4);
	assert_string_equal(result.others, "GCAllocationTick (4)");
	loaded("GCAllocationTick:AllocationAmount",
	       "app-42/7;App.Program.Main(int32);App.Work.Run(int32);App.Work.Spin(int32) 100005\n"
	       "app-42/9;App.Work.Spin(int32);[unknown] 7\n");
	assert_int_equal(result.unweighted, 1);
	/* A field that is a text has no weight. */
	loaded("ExceptionThrown:ExceptionType", "");
	assert_int_equal(result.unweighted, 1);
	loaded(NULL, "");
	assert_int_equal(result.samples, 0);
	assert_string_equal(result.others, "GCAllocationTick (4), ExceptionThrown (1)");
}

/* Methods that were listed before the cut have names; the rest has samples. */
static void a_cut_trace_gives_what_came_before(void **state)
{
	(void)state;
	begin();
	put(SAMPLE, 7, 1, NUMBERS(2));
	size_t sampled = trace.len;

	put_rundown("app");
	assert_int_equal(load(NULL, trace.len), 0);
	assert_true(result.is_cut);
	assert_int_equal(result.nameless, 0);
	assert_int_equal(load(NULL, sampled + 10), 0);
	assert_true(result.is_cut);
	assert_int_equal(result.samples, 1);
	assert_int_equal(result.nameless, 3);
	assert_string_equal(folded, ".NET-42/7;[unknown];[unknown];[unknown] 1\n");
	memset((char *)trace.data + sampled + 2, 0xff, 8);
	assert_int_equal(load(NULL, trace.len), -EBADMSG);
	assert_int_equal(result.samples, 1);
}

/* A trace without a rundown has the methods that were compiled meanwhile. */
static void compiled_methods_have_names_too(void **state)
{
	(void)state;
	begin();
	put(SAMPLE, 7, 1, NUMBERS(2));
	put_listed(LOADED, 0x1000, "App.Work", "Spin");
	put_listed(LOADED, 0x2000, "Old", "Code");
	put_listed(LOADED, 0x2000, "New", "Code");
	nt_end(&trace);
	loaded(NULL, ".NET-42/7;[unknown];New.Code(int32);App.Work.Spin(int32) 1\n");
	/* Methods that are drawn themselves are known, too. */
	loaded("MethodLoadVerbose", "");
	assert_int_equal(result.other_events, 1);
}

static void stacks_are_limited_as_asked(void **state)
{
	(void)state;
	begin();
	put(SAMPLE, 7, 1, NUMBERS(2));
	put(SAMPLE, 7, 3, NUMBERS(2));
	put_rundown("app");
	nt_end(&trace);
	max_stack = 2;
	loaded(NULL, "app-42/7;App.Work.Spin(int32);[unknown] 1\n"
		     "app-42/7;[truncated];App.Work.Run(int32);App.Work.Spin(int32) 1\n");
	max_stack = 0;
}

/* Runtimes record the innermost 100 frames. */
static void deep_stacks_are_marked_as_cut(void **state)
{
	struct outbuf b = outbuf_to(-1);

	(void)state;
	begin();
	ipc_put_u32(&b, 6);
	ipc_put_u32(&b, 2);
	for (uint32_t n = 99; n <= 100; n++) {
		ipc_put_u32(&b, n * 8);
		for (uint32_t i = 0; i < n; i++)
			ipc_put_u64(&b, 0x1010);
	}
	nt_block(&trace, "StackBlock", &b);
	put(SAMPLE, 7, 6, NUMBERS(2));
	put(SAMPLE, 8, 7, NUMBERS(2));
	put_rundown("app");
	nt_end(&trace);
	assert_int_equal(load(NULL, trace.len), 0);
	assert_non_null(strstr(folded, "app-42/7;App.Work.Spin(int32);"));
	assert_non_null(strstr(folded, "app-42/8;[truncated];App.Work.Spin(int32);"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(samples_have_the_names_of_the_rundown, forget),
		cmocka_unit_test_teardown(a_program_of_the_shared_framework_has_its_own_name,
					  forget),
		cmocka_unit_test_teardown(other_events_are_drawn_by_name_and_field, forget),
		cmocka_unit_test_teardown(a_cut_trace_gives_what_came_before, forget),
		cmocka_unit_test_teardown(compiled_methods_have_names_too, forget),
		cmocka_unit_test_teardown(stacks_are_limited_as_asked, forget),
		cmocka_unit_test_teardown(deep_stacks_are_marked_as_cut, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
