#include "profcpu/port_target.h"

#include "base/log.h"
#include "base/remedy.h"
#include "profcpu/arguments.h"
#include "profcpu/default_target.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

static int port_target_parse(const struct command *command, int argc, char **argv,
			     struct port_options *options)
{
	enum { TARGET_JSON = 256, TARGET_ARGS };
	struct option longopts[] = {
		{"pid", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, TARGET_JSON},
		{"args", no_argument, NULL, TARGET_ARGS},
		{0},
	};
	uint64_t pid;

	if (!options->takes_args)
		longopts[2] = (struct option){0};
	optind = 0;
	for (int c; (c = options_next(command, argc, argv, ":p:", longopts)) != -1;) {
		if (c == '?' || (c == 'p' && options_u64("--pid", optarg, 1, INT_MAX, &pid)))
			return -EINVAL;
		if (c == 'p')
			options->port.pid = (pid_t)pid;
		options->json |= c == TARGET_JSON;
		options->args |= c == TARGET_ARGS;
	}
	return options_no_argument(command, argc, argv);
}

int port_target(const struct command *command, int argc, char **argv, struct port_options *options)
{
	struct options_pids pids = {0};
	int status = EXIT_DONE;

	if (port_target_parse(command, argc, argv, options))
		return EXIT_USAGE;
	if (!options->port.pid)
		status = default_target(&pids);
	if (!options->port.pid && status == EXIT_DONE)
		options->port.pid = pids.list.v[0];
	vec_free(&pids.list);
	if (status != EXIT_DONE)
		return status;
	int r = opener_new(&options->port.opener);

	if (r)
		log_error("cannot open files of process %d: %s", options->port.pid, strerror(-r));
	return r ? EXIT_FAILED : EXIT_DONE;
}

int port_target_close(struct outbuf *out)
{
	int r = outbuf_close(out);

	if (r)
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
	return r ? EXIT_FAILED : EXIT_DONE;
}
