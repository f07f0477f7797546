/* The process of commands that use a diagnostic port: info, env. */
#ifndef PROFCPU_PORT_TARGET_H
#define PROFCPU_PORT_TARGET_H

#include "base/clock.h"
#include "dotnet/eventpipe/port.h"
#include "profcpu/command.h"
#include "profcpu/trace/port_report.h"

#define PORT_TARGET_LIMIT_NS (10 * NS_PER_S) /* for one command */

struct port_options {
	struct port port; /* the caller frees its opener by opener_free */
	bool json, args;
	bool takes_args; /* set by the caller: there is an option --args */
};

/*
 * Reads the command line: -p, --json and perhaps --args. Without -p, the target is the only .NET
 * process in sight (default_target.h). EXIT_DONE; EXIT_USAGE or EXIT_FAILED after one message, and
 * then there is no opener.
 */
int port_target(const struct command *command, int argc, char **argv, struct port_options *options);

/* Ends the output on stdout. EXIT_DONE, or EXIT_FAILED after one log_error line. */
int port_target_close(struct outbuf *out);

#endif
