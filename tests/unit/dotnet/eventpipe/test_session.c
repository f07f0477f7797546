/* Requests of sessions, by the commands that a runtime knows, and copies of their streams. */
#include "dotnet/eventpipe/session.h"

#include "base/clock.h"
#include "tests/unit/fake_events.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include <cmocka.h>

#define LONG_NS (20 * NS_PER_S)
#define STREAM_METHODS 3

/* Shared with the fake runtime. */
static struct {
	unsigned newest; /* command that it knows */
	size_t damage_at, cut_at;
	atomic_int stopped;
	size_t len;
	char request[4096]; /* of the session, in hexadecimal */
} * shared;

static struct port_error err;
static struct outbuf copied;

static int set_up_all(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	copied = outbuf_to(-1);
	return shared == MAP_FAILED ? -1 : fake_set_up(state);
}

static int forget(void **state)
{
	(void)state;
	memset(shared, 0, sizeof(*shared));
	outbuf_close(&copied);
	copied = outbuf_to(-1);
	return 0;
}

static void serve(int fd, const struct fake_request *request)
{
	struct outbuf s = outbuf_to(-1);

	if (request->command == IPC_STOP_TRACING) {
		shared->stopped++;
		fake_reply(fd, 0xff00, request->payload, request->len);
		return;
	}
	if (request->command > shared->newest) {
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
		return;
	}
	snprintf(shared->request, sizeof(shared->request), "%x ", request->command);
	for (size_t i = 0; i < request->len; i++)
		sprintf(shared->request + strlen(shared->request), "%02x", request->payload[i]);
	fake_put_list(&s, STREAM_METHODS, 0);
	shared->len = s.len;
	if (shared->damage_at)
		memset((char *)s.data + shared->damage_at, 0xff, 8);
	fake_reply(fd, 0xff00, "session!", 8);
	fake_write(fd, s.data, shared->cut_at ? shared->cut_at : s.len);
	outbuf_close(&s);
}

static int count(void *ctx, const struct nettrace_event *e)
{
	(void)e;
	++*(int *)ctx;
	return 0;
}

static int copy(void *ctx, const void *data, size_t len)
{
	outbuf_put(ctx, data, len);
	return copied.error;
}

static const uint32_t ids[] = {5, 6};
static const struct session_provider provider = {
	.name = "P", .arguments = "k=v", .keywords = 0x1122, .level = 4, .ids = ids, .nids = 2};

/* Begins a session with a runtime that knows the commands up to `newest`. */
static int begin(struct session_request request, unsigned newest)
{
	struct fake_runtime fake = fake_start(serve);
	const struct port port = {.opener = o, .pid = fake.pid};
	int events = 0;
	const struct nettrace_listener listener = {.event = count, .ctx = &events};
	struct session *s = NULL;

	shared->newest = newest;
	request.providers = &provider;
	request.nproviders = 1;
	request.buffer_mb = 16;
	int r = session_begin(&port, &request, &listener, NULL, clock_monotonic_ns() + LONG_NS, &s,
			      &err);

	session_free(s);
	fake_stop(&fake);
	return r;
}

#define BUFFER "10000000"
#define FORMAT "01000000"
#define PROVIDER                                         \
	"01000000"         /* number of providers */     \
	"2211000000000000" /* keywords */                \
	"04000000"         /* level */                   \
	"0200000050000000" /* name */                    \
	"04000000"         /* length of the arguments */ \
	"6b003d0076000000"
#define IDS "01020000000500000006000000"

static void assert_request(struct session_request request, unsigned newest, const char *expected)
{
	assert_int_equal(begin(request, newest), 0);
	assert_string_equal(shared->request, expected);
}

static void each_command_gets_its_own_payload(void **state)
{
	struct session_request r = {.stacks = true, .rundown = 0x138};

	(void)state;
	assert_request(r, 0x207, "206 00000000" BUFFER FORMAT "380100000000000001" PROVIDER IDS);
	assert_request(r, 0x205, "205 " BUFFER FORMAT "380100000000000001" PROVIDER);
	assert_request(r, 0x204, "204 " BUFFER FORMAT "0101" PROVIDER);
	assert_request(r, 0x203, "203 " BUFFER FORMAT "01" PROVIDER);
	assert_request(r, 0x202, "202 " BUFFER FORMAT PROVIDER);
	r.waits = true;
	assert_request(r, 0x207,
		       "207 00000000" BUFFER FORMAT "380100000000000001" PROVIDER IDS "01000000");
	/* .NET 10 does not know that one. */
	assert_request(r, 0x206, "206 00000000" BUFFER FORMAT "380100000000000001" PROVIDER IDS);
	r = (struct session_request){0};
	assert_request(r, 0x206, "206 00000000" BUFFER FORMAT "000000000000000000" PROVIDER IDS);
	assert_request(r, 0x203, "203 " BUFFER FORMAT "00" PROVIDER);
}

static void a_command_that_would_do_more_is_not_sent(void **state)
{
	(void)state;
	/* It always lists all methods. */
	assert_int_equal(begin((struct session_request){0}, 0x202), -ENOTSUP);
	assert_int_equal(
		begin((struct session_request){.rundown = 8, .rundown_exact = true}, 0x204),
		-ENOTSUP);
	assert_string_equal(shared->request, "");
}

/* Reads a session to its end. Returns the last result, and the number of events. */
static int read_all(const struct session_copy *c, int *ret_events, struct session **ret_session)
{
	struct fake_runtime fake = fake_start(serve);
	static struct port port;
	const struct session_request request = {.providers = &provider, .nproviders = 1};
	const struct nettrace_listener listener = {.event = count, .ctx = ret_events};
	int r;

	port = (struct port){.opener = o, .pid = fake.pid};
	*ret_events = 0;
	shared->newest = 0x206;
	assert_int_equal(session_begin(&port, &request, &listener, c,
				       clock_monotonic_ns() + LONG_NS, ret_session, &err),
			 0);
	for (int i = 0; !(r = session_read(*ret_session, 1 << 20, &err)) && i < 10000; i++)
		usleep(1000);
	fake_stop(&fake);
	return r;
}

static void a_copy_has_the_stream_as_it_came(void **state)
{
	const struct session_copy c = {.take = copy, .ctx = &copied};
	struct session *s;
	int events;

	(void)state;
	assert_int_equal(read_all(&c, &events, &s), -ENODATA);
	assert_true(events > STREAM_METHODS);
	assert_true(session_is_whole(s));
	assert_int_equal(session_damage(s).code, 0);
	assert_int_equal(copied.len, shared->len);
	assert_int_equal(session_whole_bytes(s), shared->len - 1); /* without its end */
	session_free(s);
}

/* Other tools may read what profcpu cannot. */
static void a_damaged_stream_is_copied_to_its_end(void **state)
{
	const struct session_copy c = {.take = copy, .ctx = &copied};
	struct session *s;
	int events;

	(void)state;
	shared->damage_at = 200;
	assert_int_equal(read_all(NULL, &events, &s), -EBADMSG);
	session_free(s);
	assert_int_equal(read_all(&c, &events, &s), -ENODATA);
	assert_int_equal(session_damage(s).code, -EBADMSG);
	assert_false(session_is_whole(s));
	assert_int_equal(copied.len, shared->len);
	assert_true(session_whole_bytes(s) <= 200);
	session_free(s);
}

static void the_whole_part_of_a_cut_stream_is_known(void **state)
{
	struct session *s;
	int events, all;

	(void)state;
	assert_int_equal(read_all(NULL, &all, &s), -ENODATA);
	session_free(s);
	shared->cut_at = shared->len - 3;
	assert_int_equal(read_all(NULL, &events, &s), -ENODATA);
	assert_false(session_is_whole(s));
	uint64_t whole = session_whole_bytes(s);

	assert_in_range(whole, 100, shared->cut_at);
	session_free(s);
	/* A stream that is cut there has the same events. */
	int before = events;

	shared->cut_at = (size_t)whole;
	assert_int_equal(read_all(NULL, &events, &s), -ENODATA);
	assert_int_equal(events, before);
	assert_int_equal(session_whole_bytes(s), whole);
	session_free(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_command_gets_its_own_payload, forget),
		cmocka_unit_test_teardown(a_command_that_would_do_more_is_not_sent, forget),
		cmocka_unit_test_teardown(a_copy_has_the_stream_as_it_came, forget),
		cmocka_unit_test_teardown(a_damaged_stream_is_copied_to_its_end, forget),
		cmocka_unit_test_teardown(the_whole_part_of_a_cut_stream_is_known, forget),
	};

	return cmocka_run_group_tests(tests, set_up_all, fake_tear_down);
}
