#include "profcpu/port/target.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exit_status.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/proc.h"
#include "profcpu/port/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TARGET_VARIABLE "DOTNET_DiagnosticPorts"
#define TARGET_WAIT_MS 50
#define TARGET_END_WAIT_MS 20
#define TARGET_NOTE_NS (5 * NS_PER_S)
#define TARGET_RESUMED_MAX 64 /* connections that wait for a reply; the reply does not matter */
#define TARGET_RESUMED_AT_ONCE 16

static const char *target_temp(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp == '/' ? tmp : "/tmp";
}

static void target_name(struct port_target *t, const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
	struct proc_status status;

	if (argv0)
		snprintf(t->name, sizeof(t->name), "%s", slash ? slash + 1 : argv0);
	else if (t->port.pid && !proc_status(t->port.pid, &status))
		snprintf(t->name, sizeof(t->name), "%s", status.comm);
	for (char *p = t->name; *p; p++)
		if (*p == '/' || *p < ' ')
			*p = '_';
	if (!t->name[0] || t->name[0] == '.')
		snprintf(t->name, sizeof(t->name), "trace");
}

static int target_listen(struct port_target *t, const char *path, struct record_watch *watch)
{
	int r = port_server_new(path, &t->server);

	if (r == -EADDRINUSE)
		log_error("%s exists; remove it if no tool waits there, or give another path",
			  path);
	else if (r == -ENAMETOOLONG)
		log_error("%s: longer than the path of a socket can be, 107 bytes", path);
	else if (r)
		log_error("cannot create the socket %s: %s; give a path in a directory that "
			  "you may write",
			  path, strerror(-r));
	if (r)
		return r;
	r = record_watch_fd(watch, port_server_fd(t->server));
	if (r)
		log_error("cannot wait for a runtime: %s", strerror(-r));
	return r;
}

/* Starts the command; its runtime stops at its start and connects to us. */
static int target_start(struct port_target *t, const struct port_options *options,
			struct record_watch *watch)
{
	AUTO_FREE char *base = realpath(target_temp(), NULL), *path = NULL, *value = NULL;
	AUTO_CLOSE int dir_fd = -1;
	int r = base ? temp_dir_make(base, &t->dir, &dir_fd) : -errno;

	if (r) {
		log_error("cannot make a directory in %s: %s%s", target_temp(), strerror(-r),
			  remedy_for(r));
		return r;
	}
	const char *before = getenv(TARGET_VARIABLE);

	t->ports = before && *before ? strdup(before) : NULL;
	/* A semicolon or comma in the path would end it. */
	if ((before && *before && !t->ports) ||
	    asprintf(&path, "%s/port", temp_dir_path(t->dir)) < 0 ||
	    asprintf(&value, "%s,suspend%s%s", path, t->ports ? ";" : "",
		     t->ports ? t->ports : "") < 0) {
		log_error("out of memory");
		return -ENOMEM;
	}
	if (strpbrk(path, ",;")) {
		log_error("TMPDIR=%s: runtimes cannot connect to a path with , or ;",
			  target_temp());
		return -EINVAL;
	}
	r = target_listen(t, path, watch);
	if (r)
		return r;
	setenv(TARGET_VARIABLE, value, 1);
	r = record_child_fork(&t->command, options->argv, &watch->old_mask);
	if (t->ports)
		setenv(TARGET_VARIABLE, t->ports, 1);
	else
		unsetenv(TARGET_VARIABLE);
	/* Some kernels permit no guard. Then nobody ends the command if we are killed. */
	if (!r)
		(void)child_guard_new(t->command.pid, &t->guard);
	if (!r)
		r = record_child_go(&t->command);
	if (r)
		log_error("cannot execute %s: %s", options->argv[0], strerror(-r));
	return r;
}

/* Waits for the first runtime that connects. */
static int target_wait(struct port_target *t, const struct port_options *options,
		       struct record_watch *watch, int *ret_signal)
{
	const uint64_t begin = clock_monotonic_ns();
	bool noted = options->quiet;
	int r = 0;

	while (!r) {
		struct port_server_runtime runtime;

		r = port_server_next(t->server, 0, &runtime);
		if (!r) {
			t->port = (struct port){
				.opener = t->opener, .pid = runtime.pid, .server = t->server};
			memcpy(t->port.cookie, runtime.cookie, sizeof(t->port.cookie));
			t->suspended = true;
			child_guard_add(&t->guard, runtime.pid);
			return 0;
		}
		if (r != -ETIMEDOUT) {
			log_error("cannot wait for a runtime: %s", strerror(-r));
			return r;
		}
		if (t->command.pid && record_child_ended(&t->command)) {
			log_error("the command ended before a .NET runtime started in it; it must "
				  "be .NET 5 or later");
			return -ESRCH;
		}
		if (!noted && clock_monotonic_ns() - begin > TARGET_NOTE_NS) {
			if (t->command.pid)
				log_note(
					"waiting for a .NET runtime in the command; it must run as "
					"the user who runs profcpu");
			else
				log_note("waiting for a runtime that starts with " TARGET_VARIABLE
					 "=%s and may write to this socket",
					 options->socket);
			noted = true;
		}
		r = record_watch_wait(watch, TARGET_WAIT_MS, ret_signal);
		if (!r && *ret_signal)
			return -EINTR;
	}
	log_error("cannot wait for a runtime: %s", strerror(-r));
	return r;
}

/*
 * Finds out which process listens on the socket. The runtime sees a connection that ends at once.
 * Errors of port_connect, after one log_error line.
 */
static int target_find_listener(struct port_target *t)
{
	AUTO_CLOSE int fd = -1;
	struct port_error err;
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int r = port_connect(&t->port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &fd, &err);

	if (r)
		port_report(&t->port, &err);
	else if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		t->port.pid = peer.pid;
	return r;
}

int port_target_reach(struct port_target *t, const struct port_options *options,
		      struct record_watch *watch, int *ret_signal)
{
	int r = opener_new(&t->opener);

	*ret_signal = 0;
	if (r) {
		log_error("cannot open files of the process: %s", strerror(-r));
		return r;
	}
	if (options->argv)
		r = target_start(t, options, watch);
	else if (options->listen)
		r = target_listen(t, options->socket, watch);
	else
		t->port = (struct port){
			.opener = t->opener, .pid = options->pid, .path = options->socket};
	if (!r && options->socket && !options->listen)
		r = target_find_listener(t);
	if (!r && t->server)
		r = target_wait(t, options, watch, ret_signal);
	if (!r)
		target_name(t, options->argv ? options->argv[0] : NULL);
	return r;
}

int port_target_resume(struct port_target *t, uint64_t deadline_ns, struct port_error *err)
{
	if (!t->suspended)
		return 0;
	t->suspended = false;
	/* Since .NET 6. Without it, programs that outlive us would wait for us for ever. */
	if (t->command.pid)
		(void)port_set_variable(&t->port, TARGET_VARIABLE, t->ports ? t->ports : "",
					deadline_ns, NULL);
	int r = port_command(&t->port, IPC_RESUME, NULL, 0, deadline_ns, err);

	child_guard_end(&t->guard);
	return r;
}

/* Closes the connections that have replied, or ended. */
static void target_close_replied(struct port_target *t, size_t keep)
{
	for (size_t i = 0; i < t->resumed.len;) {
		char byte;
		bool waits = recv(t->resumed.v[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
			     errno == EAGAIN;

		if (waits && t->resumed.len <= keep) {
			i++;
			continue;
		}
		close(t->resumed.v[i]);
		t->resumed.v[i] = t->resumed.v[--t->resumed.len];
	}
}

void port_target_resume_others(struct port_target *t)
{
	struct port_server_runtime runtime;

	target_close_replied(t, TARGET_RESUMED_MAX - TARGET_RESUMED_AT_ONCE);
	for (int i = 0;
	     i < TARGET_RESUMED_AT_ONCE && t->server && !port_server_next(t->server, 0, &runtime);
	     i++) {
		struct outbuf message = outbuf_to(-1);
		int fd = -1;

		if (!ipc_request(&message, IPC_RESUME, NULL, 0) &&
		    !port_server_connect(t->server, runtime.cookie, 0, &fd) &&
		    (port_send(fd, message.data, message.len, 0) || vec_push(&t->resumed, fd)))
			close(fd);
		outbuf_close(&message);
	}
}

int port_target_give_up(struct port_target *t, int error, int *signal)
{
	const struct record_command *c = &t->command;
	struct port_error err;

	if (c->pid && c->ended)
		return error == -ENOENT   ? EXIT_NOT_FOUND
		       : error == -EACCES ? EXIT_NOT_EXECUTABLE
					  : EXIT_FAILED;
	if (c->pid && !*signal)
		*signal = SIGTERM;
	if (c->pid)
		kill(c->pid, record_child_signal(*signal));
	(void)port_target_resume(t, clock_monotonic_ns() + NS_PER_S, &err);
	return EXIT_FAILED;
}

int port_target_end_command(struct port_target *t, const struct port_options *options,
			    struct record_watch *watch, const struct port_target_end *end,
			    int status)
{
	struct record_command *c = &t->command;
	bool noted = options->quiet || end->process || end->signal;
	int signal = end->signal, signals = 0;

	if (!c->pid || c->go_fd >= 0)
		return status;
	while (!record_child_ended(c) && signals < 2) {
		if (signal) {
			kill(c->pid, record_child_signal(signal));
			signals++;
		}
		if (!noted)
			log_note("waiting for the end of %s, process %d; Ctrl-C ends it",
				 options->argv[0], c->pid);
		noted = true;
		port_target_resume_others(t);
		if (record_watch_wait(watch, TARGET_END_WAIT_MS, &signal))
			break;
	}
	if (!c->ended || end->signal)
		return status;
	int of_command = record_child_exit_status(c->status);

	return of_command && (status == EXIT_DONE || end->process) ? of_command : status;
}

void port_target_release(struct port_target *t)
{
	record_child_release(&t->command);
	child_guard_end(&t->guard);
	target_close_replied(t, 0);
	vec_free(&t->resumed);
	free(t->ports);
	port_server_free(t->server);
	temp_dir_remove(t->dir);
	opener_free(t->opener);
}
