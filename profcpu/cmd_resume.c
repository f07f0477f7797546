#include "profcpu/port_use.h"

static int resume_run(int argc, char **argv)
{
	static const struct option longopts[] = {PORT_ARGUMENTS_LONG, {0}};
	struct port_use use = {0};
	int status = EXIT_DONE;

	optind = 0;
	for (int c; status == EXIT_DONE &&
		    (c = options_next(&command_resume, argc, argv, ":p:", longopts)) != -1;)
		if (c == '?' || port_arguments_take(&use.arguments, c))
			status = EXIT_USAGE;
	if (status == EXIT_DONE && (options_no_argument(&command_resume, argc, argv) ||
				    port_arguments_check(&use.arguments)))
		status = EXIT_USAGE;
	if (status == EXIT_DONE)
		status = port_use_begin(&use);
	/* profcpu does not know whether a process that it connects to waits. */
	if (status == EXIT_DONE)
		use.target.suspended = true;
	return port_use_end(&use, status);
}

const struct command command_resume = {
	.name = "resume",
	.summary = "let a .NET runtime go on that waits at its start",
	.usage = "usage: profcpu resume [-p PID | --diagnostic-port PATH]\n"
		 "\n"
		 "A runtime that starts with DOTNET_DefaultDiagnosticPortSuspend=1, or with\n"
		 "DOTNET_DiagnosticPorts=PATH, waits until a tool resumes it. Until then,\n"
		 "`profcpu env`, `profcpu load` and `profcpu trace` can prepare it. Without\n"
		 "effect on one that runs.\n"
		 "\n" PORT_ARGUMENTS_USAGE,
	.run = resume_run,
};
