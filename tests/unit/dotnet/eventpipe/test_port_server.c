/* Runtimes that connect to a socket of profcpu, well and badly. */
#include "dotnet/eventpipe/port.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_NS (20 * NS_PER_S)
#define SHORT_NS (50 * NS_PER_MS)

static char path[64];
static struct port_server *server;

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_port_server.%d", getpid());
	return port_server_new(path, &server);
}

static int tear_down(void **state)
{
	(void)state;
	port_server_free(server);
	assert_int_equal(access(path, F_OK), -1);
	return 0;
}

static int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(a.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* A connection of the runtime with this letter as its cookie. */
static int hello(char cookie)
{
	unsigned char bytes[34] = "ADVR_V1";
	int fd = dial();

	memset(bytes + 8, cookie, 16);
	bytes[24] = 7;
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	return fd;
}

static struct port_server_runtime next(void)
{
	struct port_server_runtime runtime;

	assert_int_equal(port_server_next(server, clock_monotonic_ns() + LONG_NS, &runtime), 0);
	return runtime;
}

static void assert_none(void)
{
	struct port_server_runtime runtime;

	assert_int_equal(port_server_next(server, clock_monotonic_ns() + SHORT_NS, &runtime),
			 -ETIMEDOUT);
}

/* Both are ends of one connection: ours and the runtime's. */
static void assert_joined(int ours, int theirs)
{
	char byte = 0;

	assert_int_equal(write(ours, "x", 1), 1);
	assert_int_equal(read(theirs, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(ours);
	close(theirs);
}

static void each_runtime_comes_once_and_keeps_a_connection(void **state)
{
	unsigned char a[16], b[16];
	int fd = -1;

	(void)state;
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	assert_none();
	int first = hello('a');
	struct port_server_runtime runtime = next();

	assert_int_equal(runtime.pid, getpid());
	assert_int_equal(runtime.inner_pid, 7);
	assert_memory_equal(runtime.cookie, a, sizeof(a));
	assert_none();
	int other = hello('b');

	assert_memory_equal(next().cookie, b, sizeof(b));
	assert_int_equal(port_server_connect(server, a, clock_monotonic_ns() + LONG_NS, &fd), 0);
	assert_joined(fd, first);
	/* Until the runtime connects again, it cannot be reached. */
	assert_int_equal(port_server_connect(server, a, clock_monotonic_ns() + SHORT_NS, &fd),
			 -ETIMEDOUT);
	int again = hello('a');

	assert_none();
	assert_int_equal(port_server_connect(server, a, clock_monotonic_ns() + LONG_NS, &fd), 0);
	assert_joined(fd, again);
	assert_int_equal(port_server_connect(server, b, clock_monotonic_ns() + LONG_NS, &fd), 0);
	assert_joined(fd, other);
}

/* Silent, slow, wrong and closed connections delay no other. */
static void bad_connections_are_left_out(void **state)
{
	int silent = dial(), wrong = dial(), slow = dial(), fd = -1;
	unsigned char c[16];

	(void)state;
	memset(c, 'c', sizeof(c));
	assert_int_equal(write(wrong, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", 37), 37);
	assert_int_equal(write(slow, "ADVR_V1\0aaaa", 12), 12);
	close(hello('c')); /* this one has ended */
	int good = hello('c');

	assert_memory_equal(next().cookie, c, sizeof(c));
	assert_none();
	assert_int_equal(write(slow, "aaaaaaaaaaaa\3\0\0\0\0\0\0\0\0\0", 22), 22);
	assert_int_equal(next().inner_pid, 3);
	assert_int_equal(port_server_connect(server, c, clock_monotonic_ns() + LONG_NS, &fd), 0);
	assert_joined(fd, good);
	close(silent);
	close(wrong);
	close(slow);
}

static void a_path_that_exists_or_is_too_long_is_refused(void **state)
{
	struct port_server *second = NULL;
	char longer[200];

	(void)state;
	assert_int_equal(port_server_new(path, &second), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(port_server_new(longer, &second), -ENAMETOOLONG);
	assert_int_equal(port_server_new("/tmp/no/such/dir", &second), -ENOENT);
	assert_null(second);
}

/* A runtime in another process that answers one command on each connection. */
static void run_runtime(void)
{
	static const unsigned char reply[24] = "DOTNET_IPC_V1\0\30\0\xff\0\0\0\0\0\0";
	unsigned char request[20];

	for (;;) {
		int fd = hello('r');

		if (recv(fd, request, sizeof(request), MSG_WAITALL) != (ssize_t)sizeof(request))
			_exit(1);
		if (request[16] != 4 || request[17] != 1)
			_exit(2);
		if (write(fd, reply, sizeof(reply)) != (ssize_t)sizeof(reply))
			_exit(3);
		close(fd);
	}
}

static void commands_go_through_the_runtimes_connections(void **state)
{
	pid_t pid = fork();
	struct port_error err = {0};

	(void)state;
	if (!pid)
		run_runtime();
	struct port_server_runtime runtime = next();
	struct port port = {.server = server, .pid = runtime.pid};

	memcpy(port.cookie, runtime.cookie, sizeof(port.cookie));
	assert_int_equal(runtime.pid, pid);
	for (int i = 0; i < 3; i++)
		assert_int_equal(port_command(&port, IPC_RESUME, NULL, 0,
					      clock_monotonic_ns() + LONG_NS, &err),
				 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(
		port_command(&port, IPC_RESUME, NULL, 0, clock_monotonic_ns() + SHORT_NS, &err),
		-ETIMEDOUT);
	assert_string_equal(err.what, "it does not connect");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_runtime_comes_once_and_keeps_a_connection,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_connections_are_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_path_that_exists_or_is_too_long_is_refused,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(commands_go_through_the_runtimes_connections,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
