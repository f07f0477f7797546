#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "profcpu/port_use.h"

#include <errno.h>
#include <limits.h>
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

struct env_options {
	struct port_use use;
	const struct port *port; /* of use */
	bool json;
	VEC(const char *) changes; /* "NAME=VALUE"; "NAME": remove it */
};

static int env_add_change(struct env_options *o, bool set)
{
	const char *equals = strchr(optarg, '=');

	if (set ? !equals || equals == optarg || !equals[1] : equals || !*optarg) {
		log_error("%s: '%s' is not %s", set ? "--set" : "--unset", optarg,
			  set ? "NAME=VALUE" : "the name of a variable");
		return -EINVAL;
	}
	if (!vec_push(&o->changes, (const char *)optarg))
		return 0;
	log_error("out of memory");
	return -ENOMEM;
}

static int env_parse(int argc, char **argv, struct env_options *o)
{
	enum { ENV_JSON = 256, ENV_SET, ENV_UNSET };
	static const struct option longopts[] = {
		PORT_ARGUMENTS_LONG,
		{"json", no_argument, NULL, ENV_JSON},
		{"set", required_argument, NULL, ENV_SET},
		{"unset", required_argument, NULL, ENV_UNSET},
		{0},
	};

	optind = 0;
	for (int c; (c = options_next(&command_env, argc, argv, ":p:", longopts)) != -1;) {
		if (c == '?' || port_arguments_take(&o->use.arguments, c) ||
		    ((c == ENV_SET || c == ENV_UNSET) && env_add_change(o, c == ENV_SET)))
			return -EINVAL;
		o->json |= c == ENV_JSON;
	}
	if (o->json && o->changes.len) {
		log_error("--json prints the environment; leave it out with --set and --unset");
		return -EINVAL;
	}
	return options_no_argument(&command_env, argc, argv)
		       ? -EINVAL
		       : port_arguments_check(&o->use.arguments);
}

static int env_change(const struct env_options *o, struct port_error *err)
{
	int r = 0;
	size_t i = 0;

	for (; i < o->changes.len && !r; i++) {
		const char *change = o->changes.v[i], *equals = strchr(change, '=');
		AUTO_FREE char *name =
			strndup(change, equals ? (size_t)(equals - change) : strlen(change));

		*err = (struct port_error){.code = -ENOMEM, .what = "cannot change a variable"};
		r = name ? port_set_variable(o->port, name, equals ? equals + 1 : "",
					     clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, err)
			 : -ENOMEM;
	}
	if (r && o->changes.len > 1)
		log_note("'%s' failed; %zu before it %s done", o->changes.v[i - 1], i - 1,
			 i == 2 ? "was" : "were");
	return r;
}

static int env_show(const struct env_options *o, struct port_error *err)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct ipc_environment environment;
	int r = port_environment(o->port, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS, &environment,
				 err);

	if (r)
		return r;
	if (o->json)
		env_print_json(&out, &environment);
	else
		env_print(&out, &environment);
	ipc_environment_free(&environment);
	*err = (struct port_error){0};
	return port_use_end_output(&out) == EXIT_DONE ? 0 : -EIO;
}

static int env_run(int argc, char **argv)
{
	struct env_options options = {.port = &options.use.target.port};
	struct port_error err = {0};
	int status = env_parse(argc, argv, &options) ? EXIT_USAGE : port_use_begin(&options.use);

	if (status == EXIT_DONE) {
		int r = options.changes.len ? env_change(&options, &err) : env_show(&options, &err);

		if (r && err.code)
			port_report(options.port, &err);
		status = r ? EXIT_FAILED : EXIT_DONE;
	}
	vec_free(&options.changes);
	return port_use_end(&options.use, status);
}

const struct command command_env = {
	.name = "env",
	.summary = "print or change the environment of a .NET process",
	.usage = "usage: profcpu env [-p PID | --diagnostic-port PATH] [--json]\n"
		 "       profcpu env [-p PID | --diagnostic-port PATH] [--set NAME=VALUE]...\n"
		 "                   [--unset NAME]...\n"
		 "\n"
		 "Asks the .NET runtime of a process for its environment, through its diagnostic\n"
		 "port, and prints NAME=VALUE lines. Unlike /proc/PID/environ, it has what was\n"
		 "set since the start through that port. Values may hold secrets.\n"
		 "\n" PORT_ARGUMENTS_USAGE "      --json               print JSON\n"
		 "      --set NAME=VALUE     set a variable (.NET 6 and later). The program sees\n"
		 "                           it; most settings of the runtime are read only once\n"
		 "      --unset NAME         remove a variable\n",
	.run = env_run,
};
