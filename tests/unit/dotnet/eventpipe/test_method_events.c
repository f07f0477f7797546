/* method_events: the reader of a runtime's list of methods gets those that were written. */
#include "dotnet/eventpipe/method_events.h"
#include "base/clock.h"
#include "dotnet/eventpipe/rundown.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct nettrace_trace head = {
	.sync_ticks = 5, .ticks_per_second = NS_PER_S / 100, .pointer_bytes = 8, .pid = 42};

static struct outbuf received;
static struct rundown *rundown;
static unsigned last_id;
static size_t events;

static int on_method(void *ctx, const struct rundown_method *m)
{
	(void)ctx;
	outbuf_printf(&received, "%llx+%x id %llx token %x %s (%s): %s\n",
		      (unsigned long long)m->start, m->bytes, (unsigned long long)m->id, m->token,
		      m->module ? m->module->assembly : "-", m->module ? m->module->il_path : "-",
		      m->name);
	return 0;
}

static int on_event(void *ctx, const struct nettrace_event *e)
{
	(void)ctx;
	events++;
	last_id = e->kind->event_id;
	assert_string_equal(e->kind->provider, PROVIDER_RUNDOWN);
	/* The clock has ticks of 100 ns. */
	assert_int_equal(e->time_ns, 1234500 + (events - 1) * 100);
	assert_true(e->thread == 42 && e->pid == 42 && e->kind->level == 4 && !e->stack);
	return rundown_take_event(rundown, e);
}

/* Writes a stream of methods and reads it again. */
static struct method_events_result write_and_read(unsigned version,
						  const struct method_event *methods, size_t n)
{
	const struct rundown_listener names = {.method = on_method};
	const struct nettrace_listener listener = {.event = on_event};
	struct method_events_result result = {0};
	struct outbuf out = outbuf_to(-1);
	struct nettrace_writer w = nettrace_writer_to(&out, version, 0);
	struct parse_error err;
	struct nettrace *trace;

	outbuf_close(&received);
	received = outbuf_to(-1);
	events = 0;
	nettrace_writer_head(&w, &head);
	assert_int_equal(method_events_write(&w, &head, 7, 1234567, methods, n, &result), 0);
	nettrace_writer_end(&w);
	assert_int_equal(out.error, 0);
	assert_int_equal(rundown_new(NULL, 0, &names, &rundown), 0);
	assert_int_equal(nettrace_new(&listener, &trace), 0);
	assert_int_equal(nettrace_feed(trace, out.data, out.len, &err), 0);
	assert_true(nettrace_ended(trace) && !nettrace_stats(trace).lost &&
		    !nettrace_stats(trace).unknown);
	assert_int_equal(nettrace_last_kind_id(trace), 7 + METHOD_EVENTS_KINDS - 1);
	assert_int_equal(rundown_flush(rundown), 0);
	assert_int_equal(rundown_stats(rundown).bad, 0);
	nettrace_free(trace);
	rundown_free(rundown);
	outbuf_close(&out);
	outbuf_char(&received, 0);
	/* It ends with the event that ends a list. */
	assert_int_equal(last_id, 146);
	return result;
}

#define NAME(text) .name = (text), .len = sizeof(text) - 1

static void methods_have_their_names_and_modules(void **state)
{
	const struct method_event methods[] = {
		{.start = 0x9000,
		 .bytes = 0x20,
		 .flags = METHOD_JITTED,
		 .token = 0x06000005,
		 .id = 0x111,
		 .module = 0x5000,
		 .path = "/app/\xc3\xa4 b.dll",
		 NAME("instance string [\xc3\xa4 b] N.T`1[System.__Canon]::M(class "
		      "[X]N.U,uint8[])")},
		/* Precompiled, in the image of another assembly, and in one that nothing names. */
		{.start = 0x3000, .bytes = 0x10, NAME("void [\xc3\xa4 b] T::P()[PreJIT]")},
		{.start = 0x2000, .bytes = 0x10, NAME("void [Lib, 2\\] T::Q()[PreJIT]")},
		{.start = 0x1000, .bytes = 0x10, NAME("stub ReportStubBlock<JumpStub>")},
		/* Without a file. */
		{.start = 0x4000,
		 .bytes = 1,
		 .flags = METHOD_JITTED | METHOD_DYNAMIC,
		 .module = 0x6000,
		 .path = "",
		 NAME("int32 [Emitted] dynamicClass::D(object)")},
		{.start = 0x4800, .bytes = 0, NAME("void [A] T::Empty()")},
	};

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct method_events_result result =
			write_and_read(version, methods, sizeof(methods) / sizeof(methods[0]));

		assert_true(result.written == 4 && !result.replaced);
		/* Those of modules that are known come first. */
		assert_string_equal(
			received.data,
			"4000+1 id 4000 token 0 Emitted (Emitted): int32 [Emitted] "
			"dynamicClass::D(object)[Unknown]\n"
			"9000+20 id 111 token 6000005 \xc3\xa4 b (/app/\xc3\xa4 b.dll): "
			"instance string [\xc3\xa4 b] N.T`1[System.__Canon]::M(class "
			"N.U,uint8[])[Unknown]\n"
			"2000+10 id 2000 token 6000000 Lib, 2\\ (Lib, 2\\.dll): void "
			"[Lib, 2\\] T::Q()[PreJIT]\n"
			"3000+10 id 3000 token 6000000 \xc3\xa4 b (/app/\xc3\xa4 b.dll): "
			"void [\xc3\xa4 b] T::P()[PreJIT]\n");
	}
}

static void of_methods_that_overlap_the_last_is_written(void **state)
{
	const struct method_event methods[] = {
		{.start = 0x1000, .bytes = 0x100, NAME("void [A] T::Old()")},
		{.start = 0x1200, .bytes = 0x100, NAME("void [A] T::Beside()")},
		{.start = 0x1040, .bytes = 0x10, NAME("void [A] T::New1()")},
		{.start = 0x1060, .bytes = 0x10, NAME("void [A] T::Gone()")},
		{.start = 0x1060, .bytes = 0x20, NAME("void [A] T::New2()")},
		{.start = 0x0f00, .bytes = 0x101, NAME("void [A] T::New3()")},
	};

	(void)state;
	struct method_events_result result =
		write_and_read(4, methods, sizeof(methods) / sizeof(methods[0]));

	assert_true(result.written == 4 && result.replaced == 2);
	assert_non_null(strstr(received.data, "f00+101 "));
	assert_non_null(strstr(received.data, "T::New1()"));
	assert_non_null(strstr(received.data, "T::New2()"));
	assert_non_null(strstr(received.data, "T::Beside()"));
}

/* An id of a module may be used again after it was unloaded. */
static void a_module_has_one_assembly(void **state)
{
	const struct method_event methods[] = {
		{.start = 0x1000, .bytes = 1, .module = 0x5000, NAME("void [A] T::M()")},
		{.start = 0x2000, .bytes = 1, .module = 0x5000, NAME("void [B] T::M()")},
		{.start = 0x3000, .bytes = 1, .module = 0x5000, NAME("void [B] T::N()")},
	};

	(void)state;
	assert_int_equal(write_and_read(4, methods, 3).written, 3);
	assert_non_null(strstr(received.data, "A (A.dll): void [A] T::M()"));
	assert_non_null(strstr(received.data, "B (B.dll): void [B] T::M()"));
	assert_int_equal(events, 3 + 2 * 2 + 1);
}

static void a_list_may_be_empty(void **state)
{
	(void)state;
	assert_int_equal(write_and_read(4, NULL, 0).written, 0);
	assert_int_equal(events, 1);
}

static int free_received(void **state)
{
	(void)state;
	return outbuf_close(&received);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_have_their_names_and_modules),
		cmocka_unit_test(of_methods_that_overlap_the_last_is_written),
		cmocka_unit_test(a_module_has_one_assembly),
		cmocka_unit_test(a_list_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, free_received);
}
