#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/options.h"

#include <stdio.h>

void help_overview(FILE *out)
{
	fprintf(out, "usage: profcpu COMMAND [ARG...]\n\n");
	for (const struct command *const *c = command_table; *c; c++)
		fprintf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
	fprintf(out,
		"\n`profcpu help COMMAND` shows the options of one. Exit status: 0 done; 1 failed, or the input was\n"
		"damaged and the outputs hold what could be read; 2 wrong usage; of collect -- CMD that of the\n"
		"command, or 127 where it is not found, 126 where it cannot be executed.\n");
}

static int help_run(int argc, char **argv)
{
	const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;

	optind = argc > 1 ? 2 : argc;
	if (options_no_argument(&command_help, argc, argv))
		return EXIT_USAGE;

	if (argc > 1 && !c) {
		log_error("there is no command '%s'; `profcpu help` lists them", argv[1]);
		return EXIT_USAGE;
	}
	if (c)
		fputs(c->usage, stdout);
	else
		help_overview(stdout);
	return command_end(EXIT_DONE);
}

const struct command command_help = {
	.name = "help",
	.summary = "show the commands, or the options of one",
	.usage = "usage: profcpu help [COMMAND]\n",
	.run = help_run,
};
