#include "base/version.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"

#include <stdio.h>

static int version_run(int argc, char **argv)
{
	optind = 1;
	if (options_no_argument(&command_version, argc, argv))
		return EXIT_USAGE;
	printf("profcpu %s\n", PROFCPU_VERSION);
	return command_end(EXIT_DONE);
}

const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "usage: profcpu version\n",
	.run = version_run,
};
