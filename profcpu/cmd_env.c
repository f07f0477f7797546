#include "base/json_writer.h"
#include "profcpu/port_target.h"

#include <string.h>
#include <unistd.h>

/* A value may have any characters, so those that control a terminal are escaped. */
static void env_print(struct outbuf *out, const struct ipc_environment *environment)
{
	for (size_t i = 0; i < environment->entries.len; i++) {
		const char *entry = environment->entries.v[i];

		outbuf_printable(out, entry, strlen(entry), SIZE_MAX);
		outbuf_char(out, '\n');
	}
}

static void env_print_json(struct outbuf *out, const struct ipc_environment *environment)
{
	struct json_writer w = json_put_document(out, 2);
	struct json_writer list = json_put_array(&w, "environment");

	for (size_t i = 0; i < environment->entries.len; i++) {
		const char *entry = environment->entries.v[i], *equals = strchr(entry, '=');
		size_t name = equals ? (size_t)(equals - entry) : strlen(entry);
		struct json_writer one = json_put_object(&list, NULL);

		json_put_chars(&one, "name", entry, name);
		json_put_text(&one, "value", equals ? equals + 1 : NULL);
		json_put_end(&one);
	}
	json_put_end(&list);
	json_put_end(&w);
}

static int env_run(int argc, char **argv)
{
	struct port_options options = {0};
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct ipc_environment environment;
	struct port_error error = {0};
	int status = port_target(&command_env, argc, argv, &options);

	if (status != EXIT_DONE)
		return status;
	int r = port_environment(&options.port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS,
				 &environment, &error);

	opener_free(options.port.opener);
	if (r) {
		port_report(&options.port, &error);
		return EXIT_FAILED;
	}
	if (options.json)
		env_print_json(&out, &environment);
	else
		env_print(&out, &environment);
	ipc_environment_free(&environment);
	return port_target_close(&out);
}

const struct command command_env = {
	.name = "env",
	.summary = "print the environment of a .NET process as its runtime has it",
	.usage = "usage: profcpu env [-p PID] [--json]\n"
		 "\n"
		 "Asks the .NET runtime of a process for its environment, through its diagnostic\n"
		 "port, and prints NAME=VALUE lines. Unlike /proc/PID/environ, it has what was\n"
		 "set since the start through that port. Values may hold secrets.\n"
		 "\n"
		 "  -p, --pid PID  the process; default: the only .NET process in sight\n"
		 "      --json     print JSON\n",
	.run = env_run,
};
