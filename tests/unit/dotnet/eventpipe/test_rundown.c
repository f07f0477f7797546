#include "dotnet/eventpipe/rundown.h"

#include "base/clock.h"
#include "tests/unit/fake_events.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define LONG_NS (20 * NS_PER_S)
#define SHORT_NS (300 * NS_PER_MS)
static struct port_error err;
static struct outbuf received;

static int on_method(void *ctx, const struct rundown_method *m)
{
	(void)ctx;
	outbuf_printf(&received, "%s %llu %llx+%x code %llu token %x %s pdb %d: %s\n",
		      m->loaded ? "load" : "there", (unsigned long long)m->time_ns,
		      (unsigned long long)m->start, m->bytes, (unsigned long long)m->code_id,
		      m->token, m->module ? m->module->il_path : "-",
		      m->module ? m->module->pdb_guid[0] : -1, m->name);
	return strlen(m->name) == m->len ? 0 : -EINVAL;
}

static int on_gone(void *ctx, uint64_t start, uint64_t time_ns)
{
	(void)ctx;
	outbuf_printf(&received, "gone %llu %llx\n", (unsigned long long)time_ns,
		      (unsigned long long)start);
	return 0;
}

static int on_il_map(void *ctx, const struct rundown_il_map *map)
{
	(void)ctx;
	outbuf_printf(&received, "map %llx/%llu %zu: %d at %u\n",
		      (unsigned long long)map->method_id, (unsigned long long)map->code_id,
		      map->count, (signed char)map->il[0], map->native[0]);
	return 0;
}

static int exact(void *ctx, const struct rundown_module *module, uint32_t token, const char *name,
		 size_t len, struct outbuf *out)
{
	(void)ctx;
	if (token != 0x06000002 || strcmp(module->il_path, "/app/a.dll"))
		return -ENOENT;
	outbuf_printf(out, "exact %.*s()", (int)len, name);
	return 0;
}

static struct share *memory; /* of the next rundowns */

static struct rundown *begin_rundown(bool with_signature)
{
	struct rundown_listener listener = {.method = on_method,
					    .gone = on_gone,
					    .il_map = on_il_map,
					    .signature = with_signature ? exact : NULL,
					    .memory = memory};
	struct rundown *r = NULL;

	outbuf_close(&received);
	received = outbuf_to(-1);
	assert_int_equal(rundown_new(o, getpid(), &listener, &r), 0);
	return r;
}

static const char *received_text(void)
{
	outbuf_char(&received, 0);
	received.len--;
	return received.data;
}

static struct outbuf il_map(void)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, 0x900);
	ipc_put_u64(&p, 77);
	ipc_put_u8(&p, 0);
	nt_u16(&p, 1);
	ipc_put_u32(&p, (uint32_t)-2);
	ipc_put_u32(&p, 5);
	nt_u16(&p, 1);
	return p;
}

/* Feeds one event; frees its payload. */
static int take(struct rundown *r, const char *provider, uint32_t event_id, uint32_t version,
		struct outbuf payload)
{
	struct nettrace_kind kind = {
		.provider = provider, .name = "", .event_id = event_id, .version = version};
	struct nettrace_event e = {
		.kind = &kind, .time_ns = 5, .blob = {.payload_len = (uint32_t)payload.len}};
	unsigned char *copy = malloc(payload.len ? payload.len : 1);

	assert_non_null(copy);
	if (payload.len)
		memcpy(copy, payload.data, payload.len);
	e.blob.payload = copy;
	int error = rundown_take_event(r, &e);

	free(copy);
	outbuf_close(&payload);
	return error;
}

static void methods_wait_for_their_assembly(void **state)
{
	struct rundown *r = begin_rundown(false);

	(void)state;
	assert_int_equal(take(r, FAKE_RUNDOWN, 144, 1,
			      fake_method(1, 0x1000, METHOD_JITTED | 3 << 7, 0x06000001,
					  "instance void  (int32)")),
			 0);
	assert_int_equal(
		take(r, FAKE_RUNDOWN, 144, 2,
		     fake_method(2, 0x2000, 2 << 7, 0x06000002, "class System.String  ()")),
		0);
	assert_int_equal(take(r, FAKE_RUNDOWN, 154, 2, fake_module()), 0);
	assert_int_equal(received.len, 0);
	assert_int_equal(take(r, FAKE_RUNDOWN, 156, 1,
			      fake_assembly("A\\,B, Version=1.0.0.0, Culture=neutral", 0)),
			 0);
	assert_int_equal(rundown_flush(r), 0);
	assert_string_equal(received_text(),
			    "there 5 1000+40 code 0 token 6000001 /app/a.dll pdb 71: "
			    "instance void [A,B] N.T`1[System.__Canon]::M(int32)[QuickJitted]\n"
			    "there 5 2000+40 code 77 token 6000002 /app/a.dll pdb 71: string [A,B] "
			    "N.T`1[System.__Canon]::M()[PreJIT]\n");
	assert_true(rundown_stats(r).methods == 2 && rundown_stats(r).precompiled == 1 &&
		    rundown_stats(r).inexact == 2);
	rundown_free(r);
}

static void loads_and_unloads_have_their_time(void **state)
{
	struct rundown *r = begin_rundown(true);

	(void)state;
	assert_int_equal(take(r, FAKE_RUNTIME, 154, 1, fake_assembly("A", 0)), 0);
	assert_int_equal(take(r, FAKE_RUNTIME, 152, 2, fake_module()), 0);
	assert_int_equal(
		take(r, FAKE_RUNTIME, 143, 2,
		     fake_method(2, 0x1000, METHOD_JITTED | 4 << 7, 0x06000002, "bool  ()")),
		0);
	assert_int_equal(take(r, FAKE_RUNTIME, 144, 2,
			      fake_method(2, 0x1000, METHOD_JITTED, 0x06000002, "bool  ()")),
			 0);
	assert_int_equal(take(r, FAKE_RUNTIME, 190, 1, il_map()), 0);
	/* Dynamic methods have no metadata. */
	assert_int_equal(take(r, FAKE_RUNTIME, 143, 1,
			      fake_method(1, 0x2000, METHOD_DYNAMIC | METHOD_JITTED | 2 << 7,
					  0x06000002, "bool  ()")),
			 0);
	assert_string_equal(received_text(),
			    "load 5 1000+40 code 77 token 6000002 /app/a.dll pdb 71: exact [A] "
			    "N.T`1[System.__Canon]::M()[OptimizedTier1]\n"
			    "gone 5 1000\n"
			    "map 900/77 1: -2 at 5\n"
			    "load 5 2000+40 code 0 token 6000002 /app/a.dll pdb 71: bool [A] "
			    "dynamicClass::M()[Optimized]\n");
	assert_int_equal(rundown_stats(r).inexact, 1);
	rundown_free(r);
}

static void damaged_events_are_counted_and_skipped(void **state)
{
	struct rundown *r = begin_rundown(false);
	struct outbuf whole = fake_method(2, 0x1000, METHOD_JITTED, 1, "bool  ()");
	uint64_t bad = 0;

	(void)state;
	for (size_t len = 0; len < whole.len; len++) {
		struct outbuf cut = fake_method(2, 0x1000, METHOD_JITTED, 1, "bool  ()");

		cut.len = len;
		assert_int_equal(take(r, FAKE_RUNDOWN, 144, 2, cut), 0);
		bad++;
	}
	outbuf_close(&whole);
	/* An IL map that claims more entries than it has. */
	struct outbuf map = il_map();

	map.data[17] = (char)0xff;
	assert_int_equal(take(r, FAKE_RUNDOWN, 150, 1, map), 0);
	assert_int_equal(rundown_stats(r).bad, bad + 1);
	assert_int_equal(rundown_flush(r), 0);
	assert_true(rundown_stats(r).methods == 0 && received.len == 0);
	/* Events of other providers are ignored. */
	assert_int_equal(take(r, "Else", 144, 2, outbuf_to(-1)), 0);
	assert_int_equal(rundown_stats(r).bad, bad + 1);
	/* The method is reported even if it has no module. */
	assert_int_equal(
		take(r, FAKE_RUNDOWN, 144, 1, fake_method(1, 0x1000, METHOD_JITTED, 1, "garbage")),
		0);
	assert_int_equal(rundown_flush(r), 0);
	assert_non_null(
		strstr(received_text(), ": [?] N.T`1[System.__Canon]::Mgarbage[Unknown]\n"));
	assert_int_equal(rundown_stats(r).no_module, 1);
	rundown_free(r);
}

/* A method with empty texts, of a module that never comes. */
static int take_without_module(struct rundown *r, uint64_t start)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, 1);
	ipc_put_u64(&p, UINT64_MAX);
	ipc_put_u64(&p, start);
	ipc_put_u32(&p, 1);
	ipc_put_u64(&p, 0);
	for (int i = 0; i < 3; i++)
		nt_text(&p, "");
	return take(r, FAKE_RUNDOWN, 144, 1, p);
}

/* A hostile runtime cannot make us use unbounded memory. */
static void endless_modules_and_methods_cost_bounded_memory(void **state)
{
	enum { PATH_BYTES = 32000, MODULES = 3000 };
	static char path[PATH_BYTES + 1];
	struct rundown *r = begin_rundown(false);
	int error = 0;
	size_t n = 0;

	(void)state;
	memset(path, 'x', PATH_BYTES);
	assert_int_equal(take(r, FAKE_RUNDOWN, 156, 1, fake_assembly("A", 0)), 0);
	assert_true((uint64_t)PATH_BYTES * MODULES > RUNDOWN_MODULES_BYTES_MAX);
	for (int i = 0; i <= MODULES; i++) {
		struct outbuf p = outbuf_to(-1);

		ipc_put_u64(&p, i < MODULES ? (uint64_t)i + 1 : FAKE_MODULE);
		ipc_put_u64(&p, FAKE_ASSEMBLY);
		ipc_put_u64(&p, 0);
		nt_text(&p, path);
		assert_int_equal(take(r, FAKE_RUNDOWN, 154, 1, p), 0);
	}
	assert_int_equal(
		take(r, FAKE_RUNDOWN, 144, 1, fake_method(1, 0x1000, METHOD_JITTED, 1, "bool  ()")),
		0);
	assert_string_equal(received_text(), "there 5 1000+40 code 0 token 1  pdb 0: bool [A] "
					     "N.T`1[System.__Canon]::M()[Unknown]\n");
	/* Methods of a module that never comes, with empty texts. */
	while (!error && n <= RUNDOWN_PENDING_MAX)
		error = take_without_module(r, n++);
	assert_int_equal(error, -E2BIG);
	assert_int_equal(n, RUNDOWN_PENDING_MAX + 1);
	rundown_free(r);
}

static void put_module(struct rundown *r, uint64_t id)
{
	struct outbuf p = outbuf_to(-1);

	ipc_put_u64(&p, id);
	ipc_put_u64(&p, FAKE_ASSEMBLY);
	ipc_put_u64(&p, 0);
	nt_text(&p, "/b.dll");
	assert_int_equal(take(r, FAKE_RUNTIME, 152, 1, p), 0);
}

/* Without memory to wait for their modules, methods are reported at once. */
static void little_memory_costs_modules_but_no_methods(void **state)
{
	enum { METHODS = 100000, MODULES = 50000 };
	struct share_total total = {.limit = 8 << 20};
	struct share share = {.of = &total};

	(void)state;
	memory = &share;
	struct rundown *r = begin_rundown(false);

	memory = NULL;
	for (uint64_t i = 0; i < MODULES; i++)
		put_module(r, i);
	assert_true(share.taken > SHARE_SMALL / 2 && share.taken <= total.limit / 2);
	for (uint64_t i = 0; i < METHODS; i++) {
		assert_int_equal(take_without_module(r, i), 0);
		assert_true(share.taken <= total.limit / 2);
		received.len = 0;
	}
	assert_int_equal(rundown_flush(r), 0);
	assert_int_equal(rundown_stats(r).methods, METHODS);
	assert_true(rundown_stats(r).refused > 0);
	rundown_free(r);
	assert_int_equal(share.taken, 0);
	assert_int_equal(total.taken, 0);
}

/* In a full table a reused id does not get its old module. */
static void a_full_table_names_no_wrong_assembly(void **state)
{
	struct rundown *r = begin_rundown(false);

	(void)state;
	assert_int_equal(take(r, FAKE_RUNTIME, 154, 1, fake_assembly("A", 0)), 0);
	assert_int_equal(take(r, FAKE_RUNTIME, 152, 2, fake_module()), 0);
	for (uint64_t id = 1; id < RUNDOWN_MODULES_MAX; id++)
		put_module(r, 0x100000 + id);
	assert_int_equal(
		take(r, FAKE_RUNTIME, 143, 1, fake_method(1, 0x1000, METHOD_JITTED, 1, "bool  ()")),
		0);
	put_module(r, FAKE_MODULE);
	assert_int_equal(
		take(r, FAKE_RUNTIME, 143, 1, fake_method(1, 0x2000, METHOD_JITTED, 1, "bool  ()")),
		0);
	assert_string_equal(received_text(),
			    "load 5 1000+40 code 0 token 1 /app/a.dll pdb 71: bool "
			    "[A] N.T`1[System.__Canon]::M()[Unknown]\n"
			    "load 5 2000+40 code 0 token 1  pdb 0: bool [?] "
			    "N.T`1[System.__Canon]::M()[Unknown]\n");
	assert_int_equal(rundown_stats(r).no_module, 1);
	rundown_free(r);
}

/* In the fake runtime. */
static int stream_fd = -1;
#define STREAM_METHODS 10000 /* far more than a socket buffer */
static unsigned stream_methods = STREAM_METHODS;
static uint32_t assembly_flags;

static void collect(int fd, const struct fake_request *request, unsigned known)
{
	if (request->command == IPC_STOP_TRACING && request->len == 8 &&
	    !memcmp(request->payload, "session!", 8)) {
		struct outbuf s = outbuf_to(-1);

		fake_put_list(&s, stream_methods, assembly_flags);
		/* Acts as a runtime: the reply to the stop comes when all has been read. */
		fake_write(stream_fd, s.data, s.len);
		close(stream_fd);
		outbuf_close(&s);
		fake_reply(fd, 0xff00, "session!", 8);
	} else if (request->command == known) {
		fake_reply(fd, 0xff00, "session!", 8);
		stream_fd = dup(fd);
	} else {
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
	}
}

static void collect2(int fd, const struct fake_request *request)
{
	collect(fd, request, IPC_COLLECT_TRACING2);
}

static void collect5(int fd, const struct fake_request *request)
{
	collect(fd, request, IPC_COLLECT_TRACING5);
}

static void never_stops(int fd, const struct fake_request *request)
{
	if (request->command == IPC_STOP_TRACING)
		pause();
	collect5(fd, request);
}

static void endless(int fd, const struct fake_request *request)
{
	static char junk[65536];

	collect5(fd, request);
	if (request->command != IPC_COLLECT_TRACING5)
		return;
	fake_write(stream_fd, "Nettrace\x14\0\0\0!FastSerialization.1", 32);
	for (;;)
		fake_write(stream_fd, junk, sizeof(junk));
}

static void cut(int fd, const struct fake_request *request)
{
	if (request->command == IPC_STOP_TRACING) {
		struct outbuf s = outbuf_to(-1);

		fake_put_list(&s, 3, 0);
		fake_write(stream_fd, s.data, s.len - 100);
		close(stream_fd);
		outbuf_close(&s);
		return;
	}
	collect5(fd, request);
}

static void sends_stream(int fd, const struct fake_request *request)
{
	struct outbuf s = outbuf_to(-1);

	collect5(fd, request);
	fake_put_list(&s, 3, 0);
	if (request->command == IPC_COLLECT_TRACING5)
		fake_write(stream_fd, s.data, s.len - 100);
	outbuf_close(&s);
}

static void full_sessions(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_FAIL);
}

static int snapshot(fake_serve_fn *serve, uint64_t limit_ns, struct rundown_stats *stats)
{
	struct rundown_listener listener = {.method = on_method};
	struct fake_runtime fake = fake_start(serve);
	struct rundown *r;

	outbuf_close(&received);
	received = outbuf_to(-1);
	assert_int_equal(rundown_new(o, fake.pid, &listener, &r), 0);
	err = (struct port_error){0};
	int error = rundown_snapshot(r, false, clock_monotonic_ns() + limit_ns, &err);

	*stats = rundown_stats(r);
	rundown_free(r);
	fake_stop(&fake);
	return error;
}

static void a_session_is_read_during_its_stop(void **state)
{
	struct rundown_stats stats;

	(void)state;
	assert_int_equal(snapshot(collect5, LONG_NS, &stats), 0);
	assert_true(stats.methods == stream_methods && !stats.stream.lost &&
		    stats.stream.bytes > (1 << 20));
	assert_non_null(
		strstr(received_text(),
		       "there 50 1000+40 code 0 token 6000001 /app/a.dll pdb 71: void [Old] "));
	/* A runtime that supports only the oldest command. */
	assert_int_equal(snapshot(collect2, LONG_NS, &stats), 0);
	assert_int_equal(stats.methods, stream_methods);
}

/* Lists the assemblies of a runtime that knows the commands up to `known`. */
static int count_collectible(fake_serve_fn *serve, struct rundown_stats *stats)
{
	struct rundown_listener listener = {.method = on_method};
	struct fake_runtime fake = fake_start(serve);
	struct rundown *r;

	assert_int_equal(rundown_new(o, fake.pid, &listener, &r), 0);
	err = (struct port_error){0};
	int error = rundown_count_collectible(r, clock_monotonic_ns() + LONG_NS, &err);

	*stats = rundown_stats(r);
	rundown_free(r);
	fake_stop(&fake);
	return error;
}

/* The older command would list all methods, which can crash a runtime that unloads assemblies. */
static void assemblies_are_listed_without_methods(void **state)
{
	struct rundown_stats stats;

	(void)state;
	stream_methods = 0;
	assert_int_equal(count_collectible(collect5, &stats), 0);
	assert_int_equal(stats.collectible, 0);
	assembly_flags = FAKE_COLLECTIBLE;
	assert_int_equal(count_collectible(collect5, &stats), 0);
	assert_int_equal(stats.collectible, 1);
	assert_int_equal(count_collectible(collect2, &stats), -ENOTSUP);
	assembly_flags = 0;
	stream_methods = STREAM_METHODS;
}

static void failed_sessions_end_in_time_with_a_reason(void **state)
{
	struct rundown_stats stats;
	char text[PORT_TEXT_BYTES];

	(void)state;
	assert_int_equal(snapshot(never_stops, SHORT_NS, &stats), -ETIMEDOUT);
	assert_int_equal(snapshot(endless, LONG_NS, &stats), -EBADMSG);
	assert_int_equal(snapshot(full_sessions, LONG_NS, &stats), -EREMOTEIO);
	port_error_text(&err, text, sizeof(text));
	assert_non_null(strstr(text, "it failed"));
	/* Methods before the cut are reported. */
	assert_int_equal(snapshot(cut, LONG_NS, &stats), -EBADMSG);
	assert_string_equal(err.what, "its events were cut off");
	assert_int_equal(stats.methods, 3);
}

static void a_live_session_lists_methods_at_its_end(void **state)
{
	struct rundown_listener listener = {.method = on_method};
	struct fake_runtime fake = fake_start(collect5);
	struct rundown *r;

	(void)state;
	assert_int_equal(rundown_new(o, fake.pid, &listener, &r), 0);
	assert_int_equal(rundown_live_fd(r), -1);
	assert_int_equal(rundown_live_begin(r, false, clock_monotonic_ns() + LONG_NS, &err), 0);
	assert_true(rundown_live_fd(r) >= 0);
	assert_int_equal(rundown_live_read(r, &err), 0);
	assert_int_equal(rundown_live_begin(r, false, clock_monotonic_ns() + LONG_NS, &err),
			 -EBUSY);
	assert_int_equal(rundown_live_end(r, clock_monotonic_ns() + LONG_NS, &err), 0);
	assert_int_equal(rundown_stats(r).methods, stream_methods);
	assert_int_equal(rundown_live_end(r, clock_monotonic_ns() + LONG_NS, &err), 0);
	/* A target that ends during a session. */
	assert_int_equal(rundown_live_begin(r, false, clock_monotonic_ns() + LONG_NS, &err), 0);
	fake_stop(&fake);
	assert_int_equal(rundown_live_read(r, &err), -ENODATA);
	rundown_free(r);
	outbuf_close(&received);
}

static void events_count_if_no_stop_can_be_sent(void **state)
{
	struct rundown_listener listener = {.method = on_method};
	struct fake_runtime fake = fake_start(sends_stream);
	struct rundown *r;

	(void)state;
	assert_int_equal(rundown_new(o, fake.pid, &listener, &r), 0);
	assert_int_equal(rundown_live_begin(r, false, clock_monotonic_ns() + LONG_NS, &err), 0);
	/* A process that ends and closes its connection last. */
	assert_int_equal(unlink(fake.path), 0);
	usleep(100000);
	assert_int_equal(rundown_live_end(r, clock_monotonic_ns() + LONG_NS, &err), -ENOENT);
	assert_int_equal(rundown_stats(r).methods, 3);
	rundown_free(r);
	outbuf_close(&received);
	fake_stop(&fake);
}

/* Writes the whole stream at once, like a runtime that compiles much. */
static void sends_whole_stream(int fd, const struct fake_request *request)
{
	struct outbuf s = outbuf_to(-1);

	(void)request;
	fake_put_list(&s, stream_methods, assembly_flags);
	fake_reply(fd, 0xff00, "session!", 8);
	fake_write(fd, s.data, s.len);
	outbuf_close(&s);
}

static int pass(void *ctx, const struct nettrace_event *e)
{
	(void)ctx;
	(void)e;
	return 0;
}

static void a_short_read_is_detected(void **state)
{
	const struct session_provider provider = {.name = FAKE_RUNTIME};
	const struct session_request request = {.providers = &provider, .nproviders = 1};
	struct nettrace_listener listener = {.event = pass};
	struct fake_runtime fake = fake_start(sends_whole_stream);
	const struct port port = {.opener = o, .pid = fake.pid};
	struct session *s;
	int r = 0;

	(void)state;
	assert_int_equal(session_begin(&port, &request, &listener, NULL,
				       clock_monotonic_ns() + LONG_NS, &s, &err),
			 0);
	for (int i = 0; i < 1000 && !session_has_more(s) && !r; i++) {
		r = session_read(s, 1, &err);
		usleep(1000);
	}
	assert_true(session_has_more(s));
	for (int i = 0; i < 1000 && !r; i++) {
		r = session_read(s, 1 << 20, &err);
		usleep(1000);
	}
	assert_int_equal(r, -ENODATA);
	assert_false(session_has_more(s));
	session_free(s);
	fake_stop(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_wait_for_their_assembly),
		cmocka_unit_test(loads_and_unloads_have_their_time),
		cmocka_unit_test(damaged_events_are_counted_and_skipped),
		cmocka_unit_test(endless_modules_and_methods_cost_bounded_memory),
		cmocka_unit_test(little_memory_costs_modules_but_no_methods),
		cmocka_unit_test(a_full_table_names_no_wrong_assembly),
		cmocka_unit_test(a_session_is_read_during_its_stop),
		cmocka_unit_test(assemblies_are_listed_without_methods),
		cmocka_unit_test(failed_sessions_end_in_time_with_a_reason),
		cmocka_unit_test(a_short_read_is_detected),
		cmocka_unit_test(a_live_session_lists_methods_at_its_end),
		cmocka_unit_test(events_count_if_no_stop_can_be_sent),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
