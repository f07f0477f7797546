#include "profcpu/port_target.h"

#include "profcpu/arguments.h"

#include <limits.h>

static int resume_run(int argc, char **argv)
{
	static const struct option longopts[] = {{"pid", required_argument, NULL, 'p'}, {0}};
	struct port port = {0};
	struct port_error err = {0};

	optind = 0;
	for (int c; (c = options_next(&command_resume, argc, argv, ":p:", longopts)) != -1;) {
		if (c == '?' || port_target_pid(&port, optarg))
			return EXIT_USAGE;
	}
	if (options_no_argument(&command_resume, argc, argv))
		return EXIT_USAGE;
	int status = port_target_open(&port);

	if (status == EXIT_DONE &&
	    port_command(&port, IPC_RESUME, NULL, 0, clock_monotonic_ns() + PORT_TARGET_LIMIT_NS,
			 &err)) {
		port_report(&port, &err);
		status = EXIT_FAILED;
	}
	opener_free(port.opener);
	return status;
}

const struct command command_resume = {
	.name = "resume",
	.summary = "let a .NET runtime go on that waits at its start",
	.usage = "usage: profcpu resume [-p PID]\n"
		 "\n"
		 "A runtime that starts with DOTNET_DefaultDiagnosticPortSuspend=1 waits until a\n"
		 "tool resumes it. Until then, `profcpu env`, `profcpu load` and `profcpu trace`\n"
		 "can prepare it. Without effect on one that runs.\n"
		 "\n"
		 "  -p, --pid PID  the process; default: the only .NET process in sight\n",
	.run = resume_run,
};
