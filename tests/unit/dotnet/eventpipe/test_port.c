#include "dotnet/eventpipe/port.h"

#include "base/clock.h"
#include "tests/port_command.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SHORT_NS (200 * NS_PER_MS)
#define LONG_NS                                                                           \
	(20 * NS_PER_S) /* time limit for events that must come, also on a loaded machine \
			 */

static struct port_error err;

static int port_of(fake_serve_fn *serve, uint64_t limit_ns)
{
	struct fake_runtime fake = fake_start(serve);
	uint64_t begin = clock_monotonic_ns();

	err = (struct port_error){0};
	int r = port_command(PORT_OF(fake.pid), IPC_DISABLE_PERF_MAP, NULL, 0, begin + limit_ns,
			     &err);

	assert_true(clock_monotonic_ns() - begin < limit_ns + LONG_NS);
	fake_stop(&fake);
	return r;
}

static void ok(int fd, const struct fake_request *request)
{
	fake_hresult(fd, request->command == IPC_DISABLE_PERF_MAP ? 0 : IPC_E_UNKNOWN_COMMAND);
}

static void unknown(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
}

static void fails(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_FAIL);
}

/* As .NET 7 and later explain why a dump failed. */
static void explains(int fd, const struct fake_request *request)
{
	static const char reply[] = "\x05\x40\0\x80\x06\0\0\0n\0o\0 \0d\0\xe4\0\0";

	fake_reply(fd, 0xffff, reply, request->command == IPC_DUMP3 ? sizeof(reply) : 10);
}

static void sets_variable(int fd, const struct fake_request *request)
{
	static const char expected[] = "\2\0\0\0A\0\0\0\3\0\0\0b\0=\0\0";

	fake_hresult(fd, request->command == IPC_SET_ENVIRONMENT &&
					 request->len == sizeof(expected) &&
					 !memcmp(request->payload, expected, sizeof(expected))
				 ? 0
				 : IPC_E_BAD_ENCODING);
}

static void fails_in_an_ok(int fd, const struct fake_request *request)
{
	(void)request;
	fake_reply(fd, 0xff00, "\x05\x40\0\x80", 4);
}

static void silent(int fd, const struct fake_request *request)
{
	(void)fd, (void)request;
	pause();
}

static void hangs_up(int fd, const struct fake_request *request)
{
	(void)fd, (void)request;
}

static void half(int fd, const struct fake_request *request)
{
	(void)request;
	fake_write(fd, "DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0", 22);
}

static void half_and_silent(int fd, const struct fake_request *request)
{
	half(fd, request);
	pause();
}

static void drips(int fd, const struct fake_request *request)
{
	static const char reply[] = "DOTNET_IPC_V1\0\x18\0\xff\0\0\0\0\0\0";

	(void)request;
	for (size_t i = 0; i < sizeof(reply); i++) {
		fake_write(fd, reply + i, 1);
		usleep(100000);
	}
}

static void garbage(int fd, const struct fake_request *request)
{
	(void)request;
	fake_write(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

static void endless(int fd, const struct fake_request *request)
{
	static char zeros[65536];

	(void)request;
	memcpy(zeros, "DOTNET_IPC_V1\0\xff\xff\xff\0", 18);
	for (int i = 0; i < 10000; i++)
		fake_write(fd, zeros, sizeof(zeros));
}

static void too_short(int fd, const struct fake_request *request)
{
	(void)request;
	fake_reply(fd, 0xff00, "\0\0", 2);
}

static void replies_of_runtimes_are_distinguished(void **state)
{
	char text[PORT_TEXT_BYTES];

	(void)state;
	assert_int_equal(port_of(ok, LONG_NS), 0);
	assert_int_equal(port_of(unknown, LONG_NS), -ENOTSUP);
	port_error_text(&err, text, sizeof(text));
	assert_non_null(strstr(text, "it does not know this command (0x80131385"));
	assert_int_equal(port_of(fails, LONG_NS), -EREMOTEIO);
	assert_true(err.hresult == IPC_E_FAIL);
	assert_int_equal(port_of(fails_in_an_ok, LONG_NS), -EREMOTEIO);
	assert_true(err.hresult == 0x80004005);
}

static void a_process_that_never_replies_costs_the_time_limit(void **state)
{
	char text[PORT_TEXT_BYTES];

	(void)state;
	assert_int_equal(port_of(silent, SHORT_NS), -ETIMEDOUT);
	port_error_text(&err, text, sizeof(text));
	assert_non_null(strstr(text, "did not answer in time"));
	assert_int_equal(port_of(half_and_silent, SHORT_NS), -ETIMEDOUT);
	/* The limit is for the whole request, not for each byte. */
	assert_int_equal(port_of(drips, SHORT_NS), -ETIMEDOUT);
	assert_int_equal(port_of(drips, LONG_NS), 0);
}

static void invalid_replies_are_rejected(void **state)
{
	static fake_serve_fn *const bad[] = {hangs_up, half, garbage, too_short};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(port_of(bad[i], LONG_NS), -EBADMSG);
		assert_non_null(err.what);
	}
	/* 64 KiB are read, and the rest is not. */
	assert_int_equal(port_of(endless, LONG_NS), 0);
}

/* The environment follows the reply, in pieces. */
static void sends_environment(int fd, const struct fake_request *request)
{
	static const char rest[] = "\1\0\0\0\4\0\0\0A\0=\0x\0\0\0";

	if (request->command != IPC_ENVIRONMENT) {
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
		return;
	}
	fake_reply(fd, 0xff00, "\x10\0\0\0\0\0", 6);
	for (size_t i = 0; i < 16; i++) {
		fake_write(fd, rest + i, 1);
		usleep(1000);
	}
}

static void cuts_environment(int fd, const struct fake_request *request)
{
	(void)request;
	fake_reply(fd, 0xff00, "\x10\0\0\0\0\0", 6);
	fake_write(fd, "\1\0\0\0", 4);
}

static void promises_environment(int fd, const struct fake_request *request)
{
	cuts_environment(fd, request);
	pause();
}

static void promises_too_much(int fd, const struct fake_request *request)
{
	(void)request;
	fake_reply(fd, 0xff00, "\0\0\0\x7f\0\0", 6);
	pause();
}

static int environment_of(fake_serve_fn *serve, uint64_t limit_ns, struct ipc_environment *env)
{
	struct fake_runtime fake = fake_start(serve);

	err = (struct port_error){0};
	int r = port_environment(PORT_OF(fake.pid), clock_monotonic_ns() + limit_ns, env, &err);

	fake_stop(&fake);
	return r;
}

static void an_environment_follows_its_reply(void **state)
{
	struct ipc_environment env;

	(void)state;
	assert_int_equal(environment_of(sends_environment, LONG_NS, &env), 0);
	assert_int_equal(env.entries.len, 1);
	assert_string_equal(env.entries.v[0], "A=x");
	ipc_environment_free(&env);
	assert_int_equal(environment_of(unknown, LONG_NS, &env), -ENOTSUP);
	assert_int_equal(environment_of(cuts_environment, LONG_NS, &env), -EBADMSG);
	assert_int_equal(environment_of(too_short, LONG_NS, &env), -EBADMSG);
	assert_int_equal(environment_of(promises_environment, SHORT_NS, &env), -ETIMEDOUT);
	assert_int_equal(environment_of(promises_too_much, LONG_NS, &env), -E2BIG);
}

static void a_stopped_runtime_with_a_full_queue_costs_the_time_limit(void **state)
{
	struct fake_runtime fake = fake_start(ok);
	struct ipc_process_info info;
	int fds[64], r = 0, n = 0;

	(void)state;
	kill(fake.pid, SIGSTOP);
	while (n < 64 && !(r = port_connect(PORT_OF(fake.pid), clock_monotonic_ns() + SHORT_NS,
					    &fds[n], &err)))
		n++;
	assert_int_equal(r, -ETIMEDOUT);
	assert_int_equal(port_info(PORT_OF(fake.pid), clock_monotonic_ns() + SHORT_NS, &info, &err),
			 -ETIMEDOUT);
	while (n)
		close(fds[--n]);
	fake_stop(&fake);
}

static void a_readable_descriptor_cancels_commands(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	port_cancel_on(fds[0]);
	assert_int_equal(port_of(ok, LONG_NS), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(port_of(silent, LONG_NS), -ECANCELED);
	port_cancel_on(-1);
	assert_int_equal(port_of(ok, LONG_NS), 0);
	close(fds[0]);
	close(fds[1]);
}

/* Connects as another user, or fails with the returned error. */
static int connect_as(uid_t uid, const struct port *p)
{
	pid_t child = fork();
	int fd, status;

	if (!child)
		_exit(setgid(uid) || setuid(uid)
			      ? 99
			      : -port_connect(p, clock_monotonic_ns() + LONG_NS, &fd, NULL));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? -WEXITSTATUS(status)
									: -99;
}

static void only_our_user_and_root_may_listen_at_a_path(void **state)
{
	struct fake_runtime fake = fake_start(ok);
	struct port p = {.opener = o, .path = fake.path};
	int fd = -1;

	(void)state;
	assert_int_equal(port_connect(&p, clock_monotonic_ns() + LONG_NS, &fd, &err), 0);
	close(fd);
	p.pid = getpid();
	assert_int_equal(port_connect(&p, clock_monotonic_ns() + LONG_NS, &fd, &err), -EPERM);
	p.pid = fake.pid;
	assert_int_equal(port_connect(&p, clock_monotonic_ns() + LONG_NS, &fd, &err), 0);
	close(fd);
	if (!geteuid()) {
		assert_int_equal(chmod(fake.path, 0600), 0);
		assert_int_equal(connect_as(65534, &p), -EACCES);
		assert_int_equal(chmod(fake.path, 0666), 0);
		assert_int_equal(connect_as(65534, &p), -EPERM);
	}
	fake_stop(&fake);
	assert_int_equal(port_connect(&p, clock_monotonic_ns() + LONG_NS, &fd, &err), -ENOENT);
	p.path = "/proc/self/exe";
	assert_int_equal(port_connect(&p, clock_monotonic_ns() + LONG_NS, &fd, &err), -ENOTSOCK);
}

static void another_process_behind_the_name_is_refused(void **state)
{
	struct fake_runtime fake = fake_start(ok);
	char path[108];
	pid_t victim = fork();

	(void)state;
	if (!victim) {
		pause();
		_exit(0);
	}
	/* The test itself listens under the name of a process that has no port. */
	int fd = -1, listener = fake_listen(path, sizeof(path), victim);

	assert_int_equal(port_connect(PORT_OF(victim), clock_monotonic_ns() + LONG_NS, &fd, &err),
			 -EPERM);
	close(listener);
	assert_int_equal(port_connect(PORT_OF(victim), clock_monotonic_ns() + LONG_NS, &fd, &err),
			 -ECONNREFUSED);
	unlink(path);
	assert_int_equal(port_connect(PORT_OF(victim), clock_monotonic_ns() + LONG_NS, &fd, &err),
			 -ENOENT);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	fake_stop(&fake);
}

/* The first process of a new PID namespace, with its own /proc or the previous one. Returns a value
 * >= 0. */
static int in_a_namespace(bool own_proc, int (*fn)(void *ctx), void *ctx)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		pid_t first = fork();

		if (!first) {
			opener_free(o); /* of the other namespace */
			if (mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) ||
			    (own_proc && mount("proc", "/proc", "proc", 0, NULL)) || opener_new(&o))
				_exit(77);
			_exit(fn(ctx));
		}
		_exit(waitpid(first, &status, 0) == first && WIFEXITED(status) ? WEXITSTATUS(status)
									       : 99);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int request_runtime(void *ctx)
{
	const struct fake_runtime *fake = ctx;

	if (proc_is_own_namespace())
		return 98;
	return -port_command(PORT_OF(fake->pid), IPC_DISABLE_PERF_MAP, NULL, 0,
			     clock_monotonic_ns() + LONG_NS, &err);
}

/* Reports its process number to the outside, and sends a request once a listener has its name. */
static int request_neighbour(void *ctx)
{
	const int *fds = ctx;
	pid_t victim = fork();
	struct {
		pid_t pid;
		uint64_t start;
	} name = {.pid = victim};
	int fd = -1;
	char c;

	if (!victim)
		for (;;)
			pause();
	if (!proc_is_own_namespace() || proc_start_ticks(victim, &name.start) ||
	    write(fds[1], &name, sizeof(name)) != (ssize_t)sizeof(name) || read(fds[2], &c, 1) != 1)
		return 98;
	return -port_connect(PORT_OF(victim), clock_monotonic_ns() + LONG_NS, &fd, &err);
}

static void an_invisible_listener_counts_as_another_process(void **state)
{
	struct fake_runtime fake = fake_start(ok);
	struct {
		pid_t pid;
		uint64_t start;
	} name;
	char path[108];
	int fds[4];

	(void)state;
	int r = in_a_namespace(false, request_runtime, &fake);

	fake_stop(&fake);
	if (r == 77)
		skip();
	/* /proc belongs to another namespace. Its numbers are not those that the kernel reports. */
	assert_int_equal(r, 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(fds + 2), 0);
	pid_t requester = fork();

	if (!requester)
		_exit(in_a_namespace(true, request_neighbour, fds));
	close(fds[1]);
	if (read(fds[0], &name, sizeof(name)) != (ssize_t)sizeof(name)) {
		assert_int_equal(waitpid(requester, &r, 0), requester);
		assert_int_equal(WEXITSTATUS(r), 77);
		skip(); /* no right to mount a /proc */
	}
	int listener = fake_bind(path, sizeof(path), name.pid, name.start);

	assert_int_equal(write(fds[3], "x", 1), 1);
	assert_int_equal(waitpid(requester, &r, 0), requester);
	assert_int_equal(WEXITSTATUS(r), EPERM);
	close(listener);
	unlink(path);
	close(fds[0]);
	close(fds[2]);
	close(fds[3]);
}

static void put_info(int fd, size_t texts)
{
	struct outbuf out = outbuf_to(-1);

	if (texts == 6)
		ipc_put_u32(&out, 1);
	ipc_put_u64(&out, 42);
	outbuf_put(&out, "0123456789abcdef", 16);
	for (size_t i = 0; i < texts; i++)
		ipc_put_text(&out, i == 4 ? "8.0.1" : "x");
	fake_reply(fd, 0xff00, out.data, out.len);
	outbuf_close(&out);
}

static void info3(int fd, const struct fake_request *request)
{
	if (request->command == IPC_PROCESS_INFO3)
		put_info(fd, 6);
}

static void info2(int fd, const struct fake_request *request)
{
	if (request->command == IPC_PROCESS_INFO2)
		put_info(fd, 5);
	else
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
}

static void info1(int fd, const struct fake_request *request)
{
	if (request->command == IPC_PROCESS_INFO)
		put_info(fd, 3);
	else
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
}

static void an_older_runtime_gets_its_own_commands(void **state)
{
	static fake_serve_fn *const serve[] = {info3, info2, info1};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct fake_runtime fake = fake_start(serve[i]);
		struct ipc_process_info info;

		assert_int_equal(
			port_info(PORT_OF(fake.pid), clock_monotonic_ns() + LONG_NS, &info, &err),
			0);
		assert_true(info.pid == 42);
		assert_string_equal(info.version, i == 2 ? "" : "8.0.1");
		assert_string_equal(info.rid, i ? "" : "x");
		ipc_process_info_free(&info);
		fake_stop(&fake);
	}
	struct fake_runtime fake = fake_start(unknown);
	struct ipc_process_info info;

	assert_int_equal(port_info(PORT_OF(fake.pid), clock_monotonic_ns() + LONG_NS, &info, &err),
			 -ENOTSUP);
	fake_stop(&fake);
}

static void errors_have_the_runtimes_own_text(void **state)
{
	struct fake_runtime fake = fake_start(explains);

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(port_command(PORT_OF(fake.pid), i ? IPC_DUMP2 : IPC_DUMP3, NULL, 0,
					      clock_monotonic_ns() + LONG_NS, &err),
				 -EREMOTEIO);
		assert_int_equal(err.hresult, IPC_E_FAIL);
		assert_string_equal(err.detail, i ? "" : "no d\xc3\xa4");
	}
	fake_stop(&fake);
	fake = fake_start(sets_variable);
	assert_int_equal(port_set_variable(PORT_OF(fake.pid), "A",
					   "b=", clock_monotonic_ns() + LONG_NS, &err),
			 0);
	assert_int_equal(
		port_set_variable(PORT_OF(fake.pid), "A", "", clock_monotonic_ns() + LONG_NS, &err),
		-EREMOTEIO);
	fake_stop(&fake);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_of_runtimes_are_distinguished),
		cmocka_unit_test(a_process_that_never_replies_costs_the_time_limit),
		cmocka_unit_test(invalid_replies_are_rejected),
		cmocka_unit_test(errors_have_the_runtimes_own_text),
		cmocka_unit_test(an_environment_follows_its_reply),
		cmocka_unit_test(a_stopped_runtime_with_a_full_queue_costs_the_time_limit),
		cmocka_unit_test(a_readable_descriptor_cancels_commands),
		cmocka_unit_test(only_our_user_and_root_may_listen_at_a_path),
		cmocka_unit_test(another_process_behind_the_name_is_refused),
		cmocka_unit_test(an_invisible_listener_counts_as_another_process),
		cmocka_unit_test(an_older_runtime_gets_its_own_commands),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
