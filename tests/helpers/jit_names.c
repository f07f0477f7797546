/*
 * Drives what eventpipe/ does with a running .NET process, for tests and measurements:
 *	jit_names info PID                  what the runtime says of itself
 *	jit_names map PID FILE              switches the perf map on, and at the end of stdin copies it to FILE and switches it off
 *	jit_names sweep PID                 undoes what a killed one left
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "eventpipe/perf_map.h"
#include "eventpipe/perf_map_undo.h"

#include <errno.h>
#include <fcntl.h>
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

	if (port_info(o, pid, deadline(), &i, &e))
		return port_failed(&e);
	printf("pid %llu version %s rid %s arch %s entry %s command %s\n", (unsigned long long)i.pid, i.version, i.rid, i.arch,
	       i.entry_assembly, i.command_line);
	ipc_process_info_free(&i);
	return 0;
}

static int map(struct opener *o, pid_t pid, const char *path)
{
	struct perf_map_error e = {0};
	struct perf_map *m;
	char buf[256];
	struct stat st;

	if (perf_map_begin(o, pid, deadline(), &m, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	fstat(perf_map_fd(m), &st);
	printf("on %s %.1f ms %lld bytes\n", perf_map_way(m) == PERF_MAP_OURS ? "ours" : "users",
	       (double)perf_map_enable_ns(m) / 1e6, (long long)st.st_size);
	fflush(stdout);
	while (read(0, buf, sizeof(buf)) > 0)
		;
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	int r = fd < 0 ? -errno : file_copy(perf_map_fd(m), fd);

	if (r)
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
	if (perf_map_end(o, m, deadline(), &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	puts("ended");
	return r ? 1 : 0;
}

static int sweep(struct opener *o, pid_t pid)
{
	struct perf_map_swept s = {0};
	int r = perf_map_sweep(o, pid, deadline(), &s);

	printf("removed %u in use %u left %u\n", s.removed, s.in_use, s.left);
	if (r || s.error)
		fprintf(stderr, "%s\n", strerror(r ? -r : -s.error));
	return r || s.error;
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
	else if (!strcmp(argv[1], "sweep"))
		status = sweep(o, pid);
	opener_free(o);
	return status;
}
