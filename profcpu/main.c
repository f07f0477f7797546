#include "base/log.h"
#include "profcpu/command.h"

#include <stdio.h>
#include <string.h>

/* Messages go to stderr, one line each; only here is anything printed that the library parts say. */
static void main_sink(enum log_level level, const char *text, unsigned long repeats)
{
	static const char *const words[] = {
		[LOG_ERROR] = "error: ", [LOG_WARN] = "warning: ", [LOG_NOTE] = ""};

	fprintf(stderr, "profcpu: %s%s", words[level], text);
	if (repeats)
		fprintf(stderr, " (and %lu more like it)", repeats);
	fputc('\n', stderr);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";

	log_set_sink(main_sink);
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	const struct command *c = command_find(name);

	if (!c) {
		fprintf(stderr, "profcpu: there is no command '%s'; `profcpu help` lists them\n", name);
		return EXIT_USAGE;
	}
	if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		fputs(c->usage, stdout);
		return fflush(stdout) ? EXIT_FAILED : EXIT_DONE;
	}
	/* getopt begins its messages with argv[0]. */
	char getopt_name[64];

	snprintf(getopt_name, sizeof(getopt_name), "profcpu: %s", c->name);
	if (argc > 1) {
		argc--;
		argv++;
	}
	argv[0] = getopt_name;
	int status = c->run(argc, argv);

	log_sum_up();
	return status;
}
