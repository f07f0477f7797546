#include "profcpu/command.h"

#include <stddef.h>
#include <string.h>

const struct command *const command_table[] = {
	&command_collect,
	&command_postprocess,
	&command_fold,
	&command_flamegraph,
	&command_doctor,
	&command_ps,
	&command_help,
	&command_version,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (const struct command *const *c = command_table; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}
