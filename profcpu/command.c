#include "profcpu/command.h"

#include "base/log.h"
#include "base/remedy.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct command *const command_table[] = {
	&command_collect, &command_postprocess, &command_fold,    &command_flamegraph,
	&command_doctor,  &command_ps,          &command_compare, &command_symbols,
	&command_stacks,  &command_trace,       &command_events,  &command_counters,
	&command_info,    &command_env,         &command_dump,    &command_load,
	&command_resume,  &command_help,        &command_version, NULL,
};

const struct command *command_find(const char *name)
{
	for (const struct command *const *c = command_table; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

int command_end(int status)
{
	bool failed = ferror(stdout);

	/* The commands that ignore SIGPIPE have their results in files. */
	if ((!fflush(stdout) && !failed) || errno == EPIPE)
		return status;
	if (status != EXIT_FAILED)
		log_error("cannot write to stdout: %s%s", strerror(errno),
			  remedy_for_stdout(-errno));
	return EXIT_FAILED;
}
