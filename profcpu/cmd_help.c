#include "base/log.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"

#include <stdio.h>

void help_overview(FILE *out)
{
	fprintf(out, "usage: profcpu COMMAND [ARG...]\n\n");
	for (const struct command *const *c = command_table; *c; c++)
		fprintf(out, "  %-12s %s\n", (*c)->name, (*c)->summary);
	fputs("\n`profcpu help COMMAND` shows the options of a command.\n\n"
	      "exit status:\n"
	      "  0         done\n"
	      "  1         failed, or the input is damaged; the outputs have its readable part\n"
	      "  2         wrong usage, or a target must be named\n"
	      "  127       collect -- CMD: CMD was not found\n"
	      "  126       collect -- CMD: CMD cannot be executed\n"
	      "  STATUS    collect -- CMD: that of CMD, if all else went well\n",
	      out);
}

static int help_run(int argc, char **argv)
{
	const struct command *c = argc > 1 ? command_find(argv[1]) : NULL;

	optind = argc > 1 ? 2 : argc;
	if (options_no_argument(&command_help, argc, argv))
		return EXIT_USAGE;

	if (argc > 1 && !c) {
		log_error("no command '%s'; `profcpu help` lists the commands", argv[1]);
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
