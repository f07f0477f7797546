#include "base/cleanup.h"
#include "base/log.h"
#include "profcpu/port_use.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DUMP_LIMIT_NS (900 * NS_PER_S) /* a large process takes minutes */
/* Flags of the commands since .NET 6. */
#define DUMP_LOGS 1u
#define DUMP_LOGS_MORE 2u
#define DUMP_CRASH_REPORT 4u

struct dump_options {
	struct port_use use;
	const struct port *port; /* of use */
	const char *out;
	uint32_t type, flags;
};

static int dump_parse_type(struct dump_options *o)
{
	/* As the runtime numbers them, from 1; dotnet-dump writes them with capital letters. */
	static const char *const types[] = {"mini", "heap", "triage", "full"};

	for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcasecmp(types[i], optarg)) {
			o->type = i + 1;
			return 0;
		}
	log_error("--type: '%s' is none of mini, heap, triage and full", optarg);
	return -EINVAL;
}

static int dump_parse(int argc, char **argv, struct dump_options *o)
{
	enum { DUMP_TYPE = 256, DUMP_DIAG, DUMP_REPORT };
	static const struct option longopts[] = {
		PORT_ARGUMENTS_LONG,
		{"type", required_argument, NULL, DUMP_TYPE},
		{"output", required_argument, NULL, 'o'},
		{"diag", no_argument, NULL, DUMP_DIAG},
		{"crash-report", no_argument, NULL, DUMP_REPORT},
		{0},
	};

	optind = 0;
	for (int c; (c = options_next(&command_dump, argc, argv, ":p:o:", longopts)) != -1;) {
		if (c == '?' || port_arguments_take(&o->use.arguments, c) ||
		    (c == DUMP_TYPE && dump_parse_type(o)))
			return -EINVAL;
		if (c == 'o')
			o->out = optarg;
		o->flags |= c == DUMP_DIAG     ? DUMP_LOGS | DUMP_LOGS_MORE
			    : c == DUMP_REPORT ? DUMP_CRASH_REPORT
					       : 0;
	}
	return options_no_argument(&command_dump, argc, argv)
		       ? -EINVAL
		       : port_arguments_check(&o->use.arguments);
}

/*
 * The path in the target's root; the caller frees it. The program that writes the dump runs there,
 * with the rights of the target. NULL after one log_error line.
 */
static char *dump_path(const struct dump_options *o, bool other_root)
{
	char name[64], dir[PATH_MAX] = "/tmp", *path = NULL;
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(name, sizeof(name), "core_%Y%m%d_%H%M%S", &tm);
	if (o->out && *o->out == '/') {
		path = strdup(o->out);
	} else if (o->out && other_root) {
		log_error(
			"-o %s: the target writes the file, and it has another root than profcpu; "
			"give an absolute path in that root",
			o->out);
		return NULL;
	} else if (!other_root && !getcwd(dir, sizeof(dir))) {
		log_error("the current directory is not known: %s; give an absolute path with -o",
			  strerror(errno));
		return NULL;
	} else if (asprintf(&path, "%s/%s", dir, o->out ? o->out : name) < 0) {
		path = NULL;
	}
	if (!path)
		log_error("out of memory");
	return path;
}

/* The runtime removes its file after a failure, also a device such as /dev/full. */
static int dump_check_place(const struct dump_options *o, const char *path, bool other_root)
{
	AUTO_FREE char *seen = NULL;
	struct stat st;

	if (!o->port->pid)
		return 0;
	if (asprintf(&seen, "/proc/%d/root%s", o->port->pid, path) < 0) {
		seen = NULL;
		log_error("out of memory");
		return -ENOMEM;
	}
	if (stat(other_root ? seen : path, &st) || S_ISREG(st.st_mode))
		return 0;
	log_error("-o %s: not a regular file, and the runtime could remove it", path);
	return -EINVAL;
}

/* Sends the newest command that the runtime knows. Errors of port_command. */
static int dump_send(const struct dump_options *o, const char *path, struct port_error *err)
{
	static const enum ipc_command newest_first[] = {IPC_DUMP3, IPC_DUMP2, IPC_DUMP};
	uint64_t deadline_ns = clock_monotonic_ns() + DUMP_LIMIT_NS;
	int r = -ENOTSUP;

	for (size_t i = 0; i < sizeof(newest_first) / sizeof(newest_first[0]) && r == -ENOTSUP;
	     i++) {
		struct outbuf payload = outbuf_to(-1);

		ipc_put_text(&payload, path);
		ipc_put_u32(&payload, o->type);
		/* The oldest command takes only whether to write logs. */
		ipc_put_u32(&payload,
			    newest_first[i] == IPC_DUMP ? o->flags & DUMP_LOGS : o->flags);
		r = payload.error ? payload.error
				  : port_command(o->port, newest_first[i], payload.data,
						 payload.len, deadline_ns, err);
		if (payload.error)
			*err = (struct port_error){.code = r, .what = "the path does not fit"};
		outbuf_close(&payload);
	}
	return r;
}

/* Prints where the file is, seen from here. Returns an exit status. */
static int dump_report(const struct dump_options *o, const char *path, bool other_root)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (!o->port->pid) {
		printf("%s\n", path);
		log_note("the file is in the root of the process, which is not visible from here");
		return EXIT_DONE;
	}
	int r = opener_file(o->port->opener, o->port->pid, path, UINT64_MAX, &fd);

	/* The runtime replaces %p and others in the name. */
	if (r == -ENOENT && !strchr(path, '%')) {
		log_error("process %d: the runtime reported a dump, but wrote no file; until it "
			  "runs its program, it writes only --type full",
			  o->port->pid);
		return EXIT_FAILED;
	}
	if (other_root)
		printf("/proc/%d/root", o->port->pid);
	printf("%s", path);
	if (!r && !fstat(fd, &st))
		printf("  %.1f MB\n", (double)st.st_size / 1e6);
	else
		printf("\n");
	if (other_root)
		log_note("the file is in the root of process %d, and gone with its container; copy "
			 "it from there",
			 o->port->pid);
	return EXIT_DONE;
}

static int dump_write(struct dump_options *o)
{
	/* A process without a PID here is in another container. */
	struct opener_process process = {.other_root = true};
	struct port_error err = {0};
	int r = o->port->pid ? opener_pin(o->port->opener, o->port->pid) : 0;

	if (!r && o->port->pid)
		r = opener_process(o->port->opener, o->port->pid, &process);
	if (r) {
		err = (struct port_error){.code = r, .what = "its root cannot be opened"};
		port_report(o->port, &err);
		return EXIT_FAILED;
	}
	AUTO_FREE char *path = dump_path(o, process.other_root);

	if (!path || dump_check_place(o, path, process.other_root))
		return EXIT_FAILED;
	r = dump_send(o, path, &err);
	if (r) {
		port_report(o->port, &err);
		for (char *rest = err.detail, *line; (line = strsep(&rest, "\n"));)
			if (*line)
				log_note("%s", line);
		return EXIT_FAILED;
	}
	return dump_report(o, path, process.other_root);
}

static int dump_run(int argc, char **argv)
{
	struct dump_options options = {.port = &options.use.target.port, .type = 4};

	int status = dump_parse(argc, argv, &options) ? EXIT_USAGE : port_use_begin(&options.use);

	if (status == EXIT_DONE)
		status = dump_write(&options);
	return command_end(port_use_end(&options.use, status));
}

const struct command command_dump = {
	.name = "dump",
	.summary = "let a .NET process write its memory to a file",
	.usage =
		"usage: profcpu dump [-p PID | --diagnostic-port PATH] [--type TYPE] [-o FILE]\n"
		"                    [--diag] [--crash-report]\n"
		"\n"
		"The .NET runtime of a process writes a dump (a core file), for dotnet-dump,\n"
		"lldb and other debuggers. The process stands still meanwhile. Prints where\n"
		"the file is. It holds the memory of the process, so it may hold secrets.\n"
		"\n" PORT_ARGUMENTS_USAGE
		"      --type TYPE          full: all memory, the default; heap: the managed heap\n"
		"                           and stacks; mini: stacks; triage: mini without\n"
		"                           secrets such as paths and passwords, as far as the\n"
		"                           runtime can. Until it runs its program, it writes\n"
		"                           only full\n"
		"  -o, --output FILE        a path that the process itself can write, in its own\n"
		"                           root (core_YYYYMMDD_HHMMSS here, or in /tmp of a\n"
		"                           container)\n"
		"      --diag               let the runtime log what it does, on its own output\n"
		"      --crash-report       write FILE.crashreport.json too (.NET 6 and later)\n",
	.run = dump_run,
};
