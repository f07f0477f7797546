#include "profcpu/port_arguments.h"

#include "base/exit_status.h"
#include "base/log.h"
#include "profcpu/default_target.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

int port_arguments_take(struct port_arguments *a, int option)
{
	uint64_t pid;
	int r = 0;

	if (option == 'p') {
		r = options_u64("-p", optarg, 1, INT_MAX, &pid);
		a->options.pid = r ? 0 : (pid_t)pid;
	} else if (option == PORT_ARGUMENTS_SOCKET) {
		r = options_port(optarg, &a->socket, &a->options.listen);
		a->options.socket = a->socket;
	}
	return r;
}

int port_arguments_check(const struct port_arguments *a)
{
	const struct port_options *o = &a->options;

	if ((o->pid != 0) + (o->argv != NULL) + (o->socket != NULL) < 2)
		return 0;
	log_error("-p, --diagnostic-port and a command exclude each other");
	return -EINVAL;
}

int port_arguments_default(struct port_arguments *a)
{
	struct port_options *o = &a->options;

	return o->argv || o->socket ? EXIT_DONE : default_target_one(&o->pid, true);
}

void port_arguments_free(struct port_arguments *a)
{
	free(a->socket);
}
