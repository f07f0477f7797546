#include "base/json_writer.h"
#include "dotnet/eventpipe/event_payload.h"
#include "profcpu/port_target.h"

#include <string.h>
#include <unistd.h>

#define INFO_TEXT_BYTES 4096 /* of one value on a terminal */

static void info_put(struct outbuf *out, const char *name, const char *value)
{
	outbuf_printf(out, "%-13s ", name);
	outbuf_printable(out, *value ? value : "unknown", strlen(*value ? value : "unknown"),
			 INFO_TEXT_BYTES);
	outbuf_char(out, '\n');
}

static void info_print(struct outbuf *out, const struct port_options *o,
		       const struct ipc_process_info *i)
{
	outbuf_printf(out, "%-13s %d\n", "pid", o->port.pid);
	outbuf_printf(out, "%-13s %llu\n", "pid inside", (unsigned long long)i->pid);
	info_put(out, ".NET", i->version);
	info_put(out, "program", i->entry_assembly);
	info_put(out, "system", i->os);
	info_put(out, "architecture", i->arch);
	info_put(out, "rid", i->rid);
	if (o->args)
		info_put(out, "command line", i->command_line);
}

static void info_print_json(struct outbuf *out, const struct port_options *o,
			    const struct ipc_process_info *i)
{
	struct json_writer w = json_put_document(out, 1);

	json_put_i64(&w, "pid", o->port.pid);
	json_put_u64(&w, "pid_inside", i->pid);
	json_put_text(&w, "dotnet_version", i->version);
	json_put_text(&w, "entry_assembly", i->entry_assembly);
	json_put_text(&w, "os", i->os);
	json_put_text(&w, "arch", i->arch);
	json_put_text(&w, "rid", i->rid);
	event_put_guid(&w, "runtime_cookie", i->cookie);
	if (o->args)
		json_put_text(&w, "command_line", i->command_line);
	json_put_end(&w);
}

static int info_run(int argc, char **argv)
{
	struct port_options options = {.takes_args = true};
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct ipc_process_info info;
	struct port_error error = {0};
	int status = port_target(&command_info, argc, argv, &options);

	if (status != EXIT_DONE)
		return status;
	int r = port_info(&options.port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &info,
			  &error);

	opener_free(options.port.opener);
	if (r) {
		port_report(&options.port, &error);
		return EXIT_FAILED;
	}
	if (options.json)
		info_print_json(&out, &options, &info);
	else
		info_print(&out, &options, &info);
	ipc_process_info_free(&info);
	return port_target_close(&out);
}

const struct command command_info = {
	.name = "info",
	.summary = "print what a .NET runtime says of itself: version, program, system",
	.usage = "usage: profcpu info [-p PID] [--json] [--args]\n"
		 "\n"
		 "Asks the .NET runtime of a process for its version, program, system and PID in\n"
		 "its own namespace, through its diagnostic port.\n"
		 "\n"
		 "  -p, --pid PID  the process; default: the only .NET process in sight\n"
		 "      --args     print the command line too; it may hold secrets\n"
		 "      --json     print JSON\n",
	.run = info_run,
};
