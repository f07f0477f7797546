#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "dotnet/startup_hook.h"
#include "profcpu/port_use.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOAD_GUID_BYTES 16
#define LOAD_RETRY_NS NS_PER_S
#define LOAD_RETRY_MS 20
#define LOAD_DATA_MAX 32768
#define LOAD_TIMEOUT_S 10
#define LOAD_TIMEOUT_MAX_S 3600

struct load_options {
	struct port_use use;
	const struct port *port; /* of use */
	const char *hook, *profiler, *data;
	unsigned char clsid[LOAD_GUID_BYTES];
	bool has_clsid, force, at_start;
	uint64_t timeout_s;
};

static int load_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Reads "{01234567-89ab-cdef-0123-456789abcdef}", also without braces, as .NET stores it. */
static int load_parse_clsid(struct load_options *o)
{
	static const char form[] = "XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX";
	/* The first three numbers are little-endian. */
	static const unsigned char place[LOAD_GUID_BYTES] = {3, 2, 1,  0,  5,  4,  7,  6,
							     8, 9, 10, 11, 12, 13, 14, 15};
	const char *text = *optarg == '{' ? optarg + 1 : optarg;
	size_t digits = 0, i = 0;

	for (; form[i]; i++) {
		int digit = load_digit(text[i]);

		if (form[i] == '-' ? text[i] != '-' : digit < 0)
			break;
		if (form[i] == '-')
			continue;
		unsigned char *byte = &o->clsid[place[digits / 2]];

		*byte = (unsigned char)(digits % 2 ? *byte << 4 | digit : digit);
		digits++;
	}
	o->has_clsid = !form[i] && !strcmp(text + i, *optarg == '{' ? "}" : "");
	if (o->has_clsid)
		return 0;
	log_error("--clsid: '%s' is not a GUID such as 01234567-89ab-cdef-0123-456789abcdef",
		  optarg);
	return -EINVAL;
}

static int load_check(const struct load_options *o)
{
	if (!o->hook == !o->profiler)
		log_error("give either --startup-hook or --profiler");
	else if (o->profiler && !o->has_clsid)
		log_error("--profiler needs --clsid, the class of the profiler");
	else if (o->hook && (o->has_clsid || o->data || o->at_start))
		log_error("--clsid, --data and --at-start are for --profiler");
	else if (o->force && !o->hook)
		log_error("--force is for --startup-hook");
	else if (o->at_start && o->data)
		log_error("--data is for profilers of running processes, not with --at-start");
	else if (*(o->hook ? o->hook : o->profiler) != '/')
		log_error("give an absolute path in the root of the process");
	else
		return 0;
	return -EINVAL;
}

static int load_parse(int argc, char **argv, struct load_options *o)
{
	enum {
		LOAD_HOOK = 256,
		LOAD_PROFILER,
		LOAD_CLSID,
		LOAD_DATA,
		LOAD_START,
		LOAD_FORCE,
		LOAD_TIMEOUT
	};
	static const struct option longopts[] = {
		PORT_ARGUMENTS_LONG,
		{"startup-hook", required_argument, NULL, LOAD_HOOK},
		{"profiler", required_argument, NULL, LOAD_PROFILER},
		{"clsid", required_argument, NULL, LOAD_CLSID},
		{"data", required_argument, NULL, LOAD_DATA},
		{"at-start", no_argument, NULL, LOAD_START},
		{"timeout", required_argument, NULL, LOAD_TIMEOUT},
		{"force", no_argument, NULL, LOAD_FORCE},
		{0},
	};
	int r = 0;

	optind = 0;
	for (int c; !r && (c = options_next(&command_load, argc, argv, ":p:", longopts)) != -1;) {
		if (c == '?')
			return -EINVAL;
		r = port_arguments_take(&o->use.arguments, c);
		if (c == LOAD_TIMEOUT)
			r = options_u64("--timeout", optarg, 1, LOAD_TIMEOUT_MAX_S, &o->timeout_s);
		if (c == LOAD_CLSID)
			r = load_parse_clsid(o);
		o->hook = c == LOAD_HOOK ? optarg : o->hook;
		o->profiler = c == LOAD_PROFILER ? optarg : o->profiler;
		o->data = c == LOAD_DATA ? optarg : o->data;
		o->at_start |= c == LOAD_START;
		o->force |= c == LOAD_FORCE;
	}
	if (!r)
		r = options_no_argument(&command_load, argc, argv);
	if (!r)
		r = port_arguments_check(&o->use.arguments);
	return r ? r : load_check(o);
}

/* Opens the file as the target sees it, and checks that a runtime can run it. */
static int load_check_hook(const struct load_options *o)
{
	const char *why = NULL;
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (!o->port->pid) {
		log_error("the process is not visible from here, so %s cannot be checked; --force "
			  "loads it in any case",
			  o->hook);
		return -ESRCH;
	}
	int r = opener_file(o->port->opener, o->port->pid, o->hook, STARTUP_HOOK_BYTES_MAX, &fd);

	if (!r && fstat(fd, &st))
		r = -errno;
	if (r) {
		log_error("process %d cannot read %s: %s", o->port->pid, o->hook,
			  r == -E2BIG ? "it is larger than 64 MiB" : strerror(-r));
		return r;
	}
	r = startup_hook_check(&(struct pe_file){.fd = fd, .bytes = (uint64_t)st.st_size}, &why);
	if (r)
		log_error("%s: %s; a runtime that loads it ends its process; --force loads it in "
			  "any case",
			  o->hook, why ? why : strerror(-r));
	return r;
}

/* Reads the data for a profiler, from a file of ours. 0; -errno after one log_error line. */
static int load_read_data(const struct load_options *o, char **ret_data, size_t *ret_len)
{
	int r = o->data ? file_read_at(AT_FDCWD, o->data, LOAD_DATA_MAX, ret_data, ret_len) : 0;

	if (r)
		log_error("cannot read %s: %s", o->data,
			  r == -E2BIG ? "it is larger than 32 KiB" : strerror(-r));
	return r;
}

static int load_put(const struct load_options *o, struct outbuf *payload)
{
	AUTO_FREE char *data = NULL;
	size_t len = 0;
	int r = o->hook ? 0 : load_read_data(o, &data, &len);

	if (r)
		return r;
	if (o->hook) {
		ipc_put_text(payload, o->hook);
	} else if (o->at_start) {
		outbuf_put(payload, o->clsid, sizeof(o->clsid));
		ipc_put_text(payload, o->profiler);
	} else {
		ipc_put_u32(payload, (uint32_t)o->timeout_s * 1000);
		outbuf_put(payload, o->clsid, sizeof(o->clsid));
		ipc_put_text(payload, o->profiler);
		ipc_put_u32(payload, (uint32_t)len);
		outbuf_put(payload, data, len);
	}
	if (payload->error)
		log_error("out of memory");
	return payload->error;
}

/*
 * Sends the command. A runtime that starts answers already a moment before it waits, but refuses a
 * profiler until then. So that is tried again.
 */
static int load_command(const struct load_options *o, enum ipc_command command,
			const struct outbuf *payload, struct port_error *err)
{
	uint64_t now = clock_monotonic_ns(), retry_until = now + LOAD_RETRY_NS;
	int r;

	do {
		*err = (struct port_error){0};
		r = port_command(o->port, command, payload->data, payload->len,
				 now + PORT_TARGET_LIMIT_NS + o->timeout_s * NS_PER_S, err);
		now = clock_monotonic_ns();
	} while (r && command == IPC_STARTUP_PROFILER && err->hresult == IPC_E_INVALID_VALUES &&
		 now < retry_until && !poll(NULL, 0, LOAD_RETRY_MS));
	return r;
}

static int load_send(const struct load_options *o)
{
	enum ipc_command command = o->hook       ? IPC_STARTUP_HOOK
				   : o->at_start ? IPC_STARTUP_PROFILER
						 : IPC_ATTACH_PROFILER;
	struct outbuf payload = outbuf_to(-1);
	struct port_error err = {0};
	int r = load_put(o, &payload);

	if (!r) {
		r = load_command(o, command, &payload, &err);
		if (r)
			port_report(o->port, &err);
	}
	outbuf_close(&payload);
	return r ? EXIT_FAILED : EXIT_DONE;
}

static int load_run(int argc, char **argv)
{
	struct load_options options = {.port = &options.use.target.port,
				       .timeout_s = LOAD_TIMEOUT_S};

	int status = load_parse(argc, argv, &options) ? EXIT_USAGE : port_use_begin(&options.use);

	if (status == EXIT_DONE && options.hook && !options.force && load_check_hook(&options))
		status = EXIT_FAILED;
	if (status == EXIT_DONE)
		status = load_send(&options);
	return port_use_end(&options.use, status);
}

const struct command command_load = {
	.name = "load",
	.summary = "load a profiler or a startup hook into a .NET process",
	.usage =
		"usage: profcpu load [-p PID | --diagnostic-port PATH] --startup-hook FILE\n"
		"                    [--force]\n"
		"       profcpu load [-p PID | --diagnostic-port PATH] --profiler FILE\n"
		"                    --clsid GUID [--data FILE] [--timeout SECONDS] [--at-start]\n"
		"\n"
		"Lets the .NET runtime of a process load code. FILE is an absolute path in the\n"
		"root of the process, which must be able to read it.\n"
		"\n" PORT_ARGUMENTS_USAGE
		"      --startup-hook FILE  run StartupHook.Initialize() of this assembly (.NET 8\n"
		"                           and later). A file that the runtime cannot run ends\n"
		"                           the process, so the file is checked first\n"
		"      --force              do not check it\n"
		"      --profiler FILE      attach this profiler, a native library\n"
		"      --clsid GUID         its class\n"
		"      --data FILE          data for it, from a file of profcpu, up to 32 KiB\n"
		"      --timeout SECONDS    how long it may take to attach: 1 to 3600 (10)\n"
		"      --at-start           for a runtime that waits at its start (.NET 6 and\n"
		"                           later): use the profiler from the start\n",
	.run = load_run,
};
