/* Options that say which runtime a command uses: -p and --diagnostic-port. */
#ifndef PROFCPU_PORT_ARGUMENTS_H
#define PROFCPU_PORT_ARGUMENTS_H

#include "profcpu/arguments.h"
#include "profcpu/port/target.h"

#define PORT_ARGUMENTS_SOCKET 513
/* Entries of a table of long options; 'p' also needs its place among the short ones. */
#define PORT_ARGUMENTS_LONG                                                                  \
	{"pid", required_argument, NULL, 'p'}, {"process-id", required_argument, NULL, 'p'}, \
	{                                                                                    \
		"diagnostic-port", required_argument, NULL, PORT_ARGUMENTS_SOCKET            \
	}

/* Their text in `profcpu help COMMAND`. */
#define PORT_ARGUMENTS_USAGE                                                                 \
	"  -p, --pid PID            the process; default: the only .NET process in sight\n"  \
	"      --diagnostic-port PATH[,listen|,connect]\n"                                   \
	"                           listen, the default: create a socket, and wait until\n"  \
	"                           a runtime connects that starts with\n"                   \
	"                           DOTNET_DiagnosticPorts=PATH; it runs when the command\n" \
	"                           is done. connect: a runtime listens on this socket\n"

struct port_arguments {
	struct port_options options; /* valid until port_arguments_free */
	char *socket;                /* owned */
};

/* Takes an option if it is one of these. 0; -EINVAL or -ENOMEM after one log_error line. */
int port_arguments_take(struct port_arguments *a, int option);

/* Checks that they do not exclude each other. 0; -EINVAL after one log_error line. */
int port_arguments_check(const struct port_arguments *a);

/*
 * Without any, takes the only .NET process in sight. EXIT_DONE; EXIT_USAGE or EXIT_FAILED after one
 * message.
 */
int port_arguments_default(struct port_arguments *a);

void port_arguments_free(struct port_arguments *a);

#endif
