#include "profcpu/trace/target.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TARGET_VARIABLE "DOTNET_DiagnosticPorts"
#define TARGET_WAIT_MS 50
#define TARGET_NOTE_NS (5 * NS_PER_S)

static const char *target_temp(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp == '/' ? tmp : "/tmp";
}

static void target_name(struct trace_target *t, const char *argv0)
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

static int target_listen(struct trace_target *t, const char *path, struct record_watch *watch)
{
	int r = port_server_new(path, &t->server);

	if (r == -EADDRINUSE)
		log_error("%s exists: give a path at which the socket can be created", path);
	else if (r)
		log_error("cannot create the socket %s: %s", path, strerror(-r));
	return r ? r : record_watch_fd(watch, port_server_fd(t->server));
}

/* Starts the command; its runtime stops at its start and connects to us. */
static int target_start(struct trace_target *t, const struct trace_options *options,
			struct record_watch *watch)
{
	AUTO_FREE char *base = realpath(target_temp(), NULL), *path = NULL, *value = NULL;
	AUTO_CLOSE int dir_fd = -1;
	int r = base ? temp_dir_make(base, &t->dir, &dir_fd) : -errno;
	char link[64];
	char dir[PATH_MAX];

	if (!r) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
		ssize_t n = readlink(link, dir, sizeof(dir) - 1);

		dir[n > 0 ? n : 0] = 0;
		r = n > 0 ? 0 : -errno;
	}
	if (r) {
		log_error("cannot make a directory in %s: %s%s", target_temp(), strerror(-r),
			  remedy_for(r));
		return r;
	}
	if (asprintf(&path, "%s/port", dir) < 0 || asprintf(&value, "%s,suspend", path) < 0)
		return -ENOMEM;
	r = target_listen(t, path, watch);
	if (r)
		return r;
	const char *before = getenv(TARGET_VARIABLE);
	AUTO_FREE char *kept = before ? strdup(before) : NULL;

	setenv(TARGET_VARIABLE, value, 1);
	r = record_child_fork(&t->command, options->argv, &watch->old_mask);
	if (kept)
		setenv(TARGET_VARIABLE, kept, 1);
	else
		unsetenv(TARGET_VARIABLE);
	if (!r)
		r = record_child_go(&t->command);
	if (r)
		log_error("cannot execute %s: %s", options->argv[0], strerror(-r));
	return r;
}

/* Waits for the first runtime that connects. */
static int target_wait(struct trace_target *t, const struct trace_options *options,
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
				log_note("waiting for a .NET runtime to start in the command");
			else
				log_note("waiting for a runtime that starts with " TARGET_VARIABLE
					 "=%s",
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

int trace_target_reach(struct trace_target *t, const struct trace_options *options,
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
	if (!r && t->server)
		r = target_wait(t, options, watch, ret_signal);
	if (!r)
		target_name(t, options->argv ? options->argv[0] : NULL);
	return r;
}

static int target_resume(const struct port *port, struct port_error *err)
{
	return port_command(port, IPC_RESUME, NULL, 0, clock_monotonic_ns() + TRACE_LIMIT_NS, err);
}

int trace_target_resume(struct trace_target *t, struct port_error *err)
{
	if (!t->suspended)
		return 0;
	t->suspended = false;
	return target_resume(&t->port, err);
}

void trace_target_resume_others(struct trace_target *t)
{
	struct port_server_runtime runtime;

	while (t->server && !port_server_next(t->server, 0, &runtime)) {
		struct port other = {.server = t->server};
		struct port_error err;

		memcpy(other.cookie, runtime.cookie, sizeof(other.cookie));
		if (target_resume(&other, &err))
			log_warn("another runtime, of process %d, cannot be resumed: %s",
				 runtime.pid, err.what);
	}
}

void trace_target_release(struct trace_target *t)
{
	record_child_release(&t->command);
	port_server_free(t->server);
	temp_dir_remove(t->dir);
	opener_free(t->opener);
}
