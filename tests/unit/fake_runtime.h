/*
 * A process that listens on a diagnostic port of its own, like a runtime. It passes the first
 * request of each connection to a function of the test, which runs in that process.
 */
#ifndef TESTS_UNIT_FAKE_RUNTIME_H
#define TESTS_UNIT_FAKE_RUNTIME_H

#include "container/opener.h"
#include "container/proc.h"
#include "dotnet/eventpipe/ipc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct opener *o; /* of the whole program */

static inline int fake_set_up(void **state)
{
	(void)state;
	return opener_new(&o);
}

static inline int fake_tear_down(void **state)
{
	(void)state;
	opener_free(o);
	return 0;
}

struct fake_request {
	unsigned command; /* enum ipc_command */
	unsigned char payload[IPC_MESSAGE_MAX];
	size_t len;
};

/* Replies on fd; the caller closes fd. */
typedef void fake_serve_fn(int fd, const struct fake_request *request);

struct fake_runtime {
	pid_t pid;
	char path[108];
};

static inline void fake_write(int fd, const void *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		data = (const char *)data + n;
		len -= (size_t)n;
	}
}

/* A whole reply: command 0xff00 is OK, 0xffff is an error. */
static inline void fake_reply(int fd, unsigned command, const void *payload, size_t len)
{
	unsigned char head[IPC_HEADER_BYTES] = "DOTNET_IPC_V1";

	head[14] = (unsigned char)(len + sizeof(head));
	head[15] = (unsigned char)((len + sizeof(head)) >> 8);
	head[16] = (unsigned char)(command >> 8);
	head[17] = (unsigned char)command;
	fake_write(fd, head, sizeof(head));
	fake_write(fd, payload, len);
}

static inline void fake_hresult(int fd, uint32_t hresult)
{
	unsigned char bytes[4] = {(unsigned char)hresult, (unsigned char)(hresult >> 8),
				  (unsigned char)(hresult >> 16), (unsigned char)(hresult >> 24)};

	fake_reply(fd, hresult >> 31 ? 0xffff : 0xff00, bytes, sizeof(bytes));
}

static inline int fake_read_request(int fd, struct fake_request *request)
{
	unsigned char head[IPC_HEADER_BYTES];

	if (recv(fd, head, sizeof(head), MSG_WAITALL) != (ssize_t)sizeof(head))
		return -1;
	request->command = (unsigned)head[16] << 8 | head[17];
	request->len = ((size_t)head[15] << 8 | head[14]) - sizeof(head);
	if (request->len &&
	    recv(fd, request->payload, request->len, MSG_WAITALL) != (ssize_t)request->len)
		return -1;
	return 0;
}

static inline _Noreturn void fake_run(int listener, fake_serve_fn *serve)
{
	static struct fake_request request;

	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			_exit(1);
		if (!fake_read_request(fd, &request))
			serve(fd, &request);
		close(fd);
	}
}

/* Binds the socket of a process with this number and start time. */
static inline int fake_bind(char *path, size_t cap, pid_t pid, uint64_t start)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *tmp = getenv("TMPDIR");

	if (listener < 0)
		abort();
	snprintf(path, cap, "%s/dotnet-diagnostic-%d-%llu-socket",
		 tmp && *tmp == '/' ? tmp : "/tmp", pid, (unsigned long long)start);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 16))
		abort();
	return listener;
}

/* Does the same under the calling process's own name. */
static inline int fake_listen(char *path, size_t cap, pid_t pid)
{
	uint64_t start;

	if (proc_start_ticks(pid, &start))
		abort();
	return fake_bind(path, cap, pid, start);
}

static inline struct fake_runtime fake_start(fake_serve_fn *serve)
{
	struct fake_runtime fake = {0};
	int ready[2];

	if (pipe(ready))
		abort();
	fake.pid = fork();
	if (!fake.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int listener = fake_listen(fake.path, sizeof(fake.path), getpid());

		if (write(ready[1], fake.path, sizeof(fake.path)) != (ssize_t)sizeof(fake.path))
			_exit(1);
		fake_run(listener, serve);
	}
	close(ready[1]);
	if (fake.pid < 0 ||
	    read(ready[0], fake.path, sizeof(fake.path)) != (ssize_t)sizeof(fake.path))
		abort();
	close(ready[0]);
	return fake;
}

static inline void fake_stop(struct fake_runtime *fake)
{
	kill(fake->pid, SIGKILL);
	waitpid(fake->pid, NULL, 0);
	unlink(fake->path);
}

#endif
