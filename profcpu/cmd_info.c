#include "base/json_writer.h"
#include "dotnet/eventpipe/event_payload.h"
#include "profcpu/port_use.h"

#include <errno.h>
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

struct info_options {
	struct port_use use;
	const struct port *port; /* of use */
	bool json, args;
};

static int info_parse(int argc, char **argv, struct info_options *o)
{
	enum { INFO_JSON = 256, INFO_ARGS };
	static const struct option longopts[] = {
		PORT_ARGUMENTS_LONG,
		{"json", no_argument, NULL, INFO_JSON},
		{"args", no_argument, NULL, INFO_ARGS},
		{0},
	};

	optind = 0;
	for (int c; (c = options_next(&command_info, argc, argv, ":p:", longopts)) != -1;) {
		if (c == '?' || port_arguments_take(&o->use.arguments, c))
			return -EINVAL;
		o->json |= c == INFO_JSON;
		o->args |= c == INFO_ARGS;
	}
	return options_no_argument(&command_info, argc, argv)
		       ? -EINVAL
		       : port_arguments_check(&o->use.arguments);
}

static void info_print(struct outbuf *out, const struct info_options *o,
		       const struct ipc_process_info *i)
{
	if (o->port->pid)
		outbuf_printf(out, "%-13s %d\n", "pid", o->port->pid);
	else
		info_put(out, "pid", ""); /* it is not in our PID namespace */
	outbuf_printf(out, "%-13s %llu\n", "pid inside", (unsigned long long)i->pid);
	info_put(out, ".NET", i->version);
	info_put(out, "program", i->entry_assembly);
	info_put(out, "system", i->os);
	info_put(out, "architecture", i->arch);
	info_put(out, "rid", i->rid);
	if (o->args)
		info_put(out, "command line", i->command_line);
}

static void info_print_json(struct outbuf *out, const struct info_options *o,
			    const struct ipc_process_info *i)
{
	struct json_writer w = json_put_document(out, 1);

	if (o->port->pid)
		json_put_i64(&w, "pid", o->port->pid);
	else
		json_put_text(&w, "pid", NULL);
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

static int info_show(const struct info_options *o)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct ipc_process_info info;
	struct port_error error = {0};
	int r = port_info(o->port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &info, &error);

	if (r) {
		port_report(o->port, &error);
		return EXIT_FAILED;
	}
	if (o->json)
		info_print_json(&out, o, &info);
	else
		info_print(&out, o, &info);
	ipc_process_info_free(&info);
	return port_use_end_output(&out);
}

static int info_run(int argc, char **argv)
{
	struct info_options options = {.port = &options.use.target.port};
	int status = info_parse(argc, argv, &options) ? EXIT_USAGE : port_use_begin(&options.use);

	if (status == EXIT_DONE)
		status = info_show(&options);
	return port_use_end(&options.use, status);
}

const struct command command_info = {
	.name = "info",
	.summary = "print what a .NET runtime says of itself: version, program, system",
	.usage = "usage: profcpu info [-p PID | --diagnostic-port PATH] [--json] [--args]\n"
		 "\n"
		 "Asks the .NET runtime of a process for its version, program, system and PID in\n"
		 "its own namespace, through its diagnostic port.\n"
		 "\n" PORT_ARGUMENTS_USAGE
		 "      --args               print the command line too; it may hold secrets\n"
		 "      --json               print JSON\n",
	.run = info_run,
};
