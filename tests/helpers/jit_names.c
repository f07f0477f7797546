/*
 * Runs functions of eventpipe/ on a running .NET process, for tests and measurements:
 *
 *   jit_names info PID           prints the runtime's process info
 *   jit_names map PID FILE       the perf map that the runtime writes on request
 *   jit_names rundown PID FILE   all methods as lines of a perf map; precompiled ones in FILE.r2r
 *   jit_names live PID FILE      existing methods, then those compiled or freed until the end of
 *                                stdin: "seen TIME LINE", "load TIME LINE", "gone TIME START"
 *   jit_names listen PID FILE    the same without existing methods, whose listing can crash CoreCLR
 *                                when code is freed
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "dotnet/eventpipe/method_name.h"
#include "dotnet/eventpipe/rundown.h"
#include "dotnet/eventpipe/event_signatures.h"
#include "tests/helpers/runtime_map.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LIMIT_NS (20 * NS_PER_S)

static uint64_t deadline(void)
{
	return clock_monotonic_ns() + LIMIT_NS;
}

static int port_failed(const struct port_error *e)
{
	char text[PORT_TEXT_BYTES];

	port_error_text(e, text, sizeof(text));
	fprintf(stderr, "%s\n", text);
	return 1;
}

static int info(struct opener *o, pid_t pid)
{
	struct ipc_process_info i;
	struct port_error e = {0};

	if (port_info(PORT_OF(pid), deadline(), &i, &e))
		return port_failed(&e);
	printf("pid %llu version %s rid %s arch %s entry %s command %s\n",
	       (unsigned long long)i.pid, i.version, i.rid, i.arch, i.entry_assembly,
	       i.command_line);
	ipc_process_info_free(&i);
	return 0;
}

static int map(struct opener *o, pid_t pid, const char *path)
{
	int r, end, map;

	if (runtime_map_begin(o, pid, deadline(), &map))
		return 1;
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	r = fd < 0 ? -errno : file_copy(map, fd);
	end = runtime_map_end(o, pid, deadline(), map);
	if (r || end)
		fprintf(stderr, "%s: %s\n", path, strerror(r ? -r : -end));
	return r || end;
}

struct sink {
	struct event_signatures *signatures;
	FILE *map, *r2r;
	bool live;
};

static int put_method(void *ctx, const struct rundown_method *m)
{
	struct sink *s = ctx;
	FILE *f = m->flags & METHOD_JITTED || s->live ? s->map : s->r2r;

	if (s->live)
		fprintf(f, "%s %llu ", m->loaded ? "load" : "seen", (unsigned long long)m->time_ns);
	fprintf(f, "0x%llx %x %s\n", (unsigned long long)m->start, m->bytes, m->name);
	return 0;
}

static int put_gone(void *ctx, uint64_t start, uint64_t time_ns)
{
	struct sink *s = ctx;

	fprintf(s->map, "gone %llu 0x%llx\n", (unsigned long long)time_ns,
		(unsigned long long)start);
	return 0;
}

static int put_signature(void *ctx, const struct rundown_module *module, uint32_t token,
			 const char *name, size_t len, struct outbuf *out)
{
	return event_signatures_put(((struct sink *)ctx)->signatures, module, token, name, len,
				    out);
}

static int listen_until_eof(struct rundown *r, struct port_error *e)
{
	struct pollfd p[2] = {{.fd = 0, .events = POLLIN},
			      {.fd = rundown_live_fd(r), .events = POLLIN}};
	char buf[256];
	int error = 0;

	while (!error) {
		poll(p, 2, -1);
		if (p[0].revents && read(0, buf, sizeof(buf)) <= 0)
			return 0;
		if (p[1].revents)
			error = rundown_live_read(r, e);
	}
	return error == -ENODATA ? 0 : error;
}

static int listen_live(struct rundown *r, bool list, struct port_error *e)
{
	int error = rundown_live_begin(r, false, deadline(), e);

	if (!error && list)
		error = rundown_snapshot(r, false, deadline(), e);
	if (!error) {
		puts("listening");
		fflush(stdout);
		error = listen_until_eof(r, e);
	}
	return error ? error : rundown_live_end(r, deadline(), e);
}

static int methods(struct opener *o, pid_t pid, const char *path, bool live, bool list)
{
	char r2r_path[4096];
	struct sink sink = {.live = live};
	struct rundown_listener listener = {
		.method = put_method, .gone = put_gone, .signature = put_signature, .ctx = &sink};
	struct port_error e = {0};
	struct rundown *r;
	uint64_t begin = clock_monotonic_ns();

	snprintf(r2r_path, sizeof(r2r_path), "%s.r2r", path);
	sink.map = fopen(path, "w");
	sink.r2r = fopen(r2r_path, "w");
	if (!sink.map || !sink.r2r || event_signatures_new(o, pid, NULL, &sink.signatures) ||
	    rundown_new(o, pid, &listener, &r))
		return 1;
	int error = live ? listen_live(r, list, &e) : rundown_snapshot(r, false, deadline(), &e);
	struct rundown_stats s = rundown_stats(r);

	printf("methods %llu precompiled %llu gone %llu inexact %llu no_module %llu bad %llu; "
	       "stream %llu bytes %llu events %llu lost "
	       "%llu unknown; %.1f ms\n",
	       (unsigned long long)s.methods, (unsigned long long)s.precompiled,
	       (unsigned long long)s.gone, (unsigned long long)s.inexact,
	       (unsigned long long)s.no_module, (unsigned long long)s.bad,
	       (unsigned long long)s.stream.bytes, (unsigned long long)s.stream.events,
	       (unsigned long long)s.stream.lost, (unsigned long long)s.stream.unknown,
	       (double)(clock_monotonic_ns() - begin) / 1e6);
	rundown_free(r);
	event_signatures_free(sink.signatures);
	fclose(sink.map);
	fclose(sink.r2r);
	return error ? port_failed(&e) : 0;
}

int main(int argc, char **argv)
{
	struct opener *o;
	int status = 2;

	if (argc < 3 || opener_new(&o))
		return 2;
	pid_t pid = (pid_t)atoi(argv[2]);

	if (!strcmp(argv[1], "info"))
		status = info(o, pid);
	else if (!strcmp(argv[1], "map") && argc == 4)
		status = map(o, pid, argv[3]);
	else if ((!strcmp(argv[1], "rundown") || !strcmp(argv[1], "live") ||
		  !strcmp(argv[1], "listen")) &&
		 argc == 4)
		status = methods(o, pid, argv[3], argv[1][0] == 'l', strcmp(argv[1], "listen"));
	opener_free(o);
	return status;
}
