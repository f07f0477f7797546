/* The process of commands that use a diagnostic port: info, env, dump and others. */
#ifndef PROFCPU_PORT_TARGET_H
#define PROFCPU_PORT_TARGET_H

#include "base/clock.h"
#include "dotnet/eventpipe/port.h"
#include "profcpu/command.h"
#include "profcpu/trace/port_report.h"

#define PORT_TARGET_LIMIT_NS (10 * NS_PER_S) /* for one command */

/* Takes the argument of the option -p. 0; -EINVAL after one log_error line. */
int port_target_pid(struct port *p, const char *text);

/*
 * Opens the port's process: p->pid, or if that is 0, the only .NET process in sight. EXIT_DONE, and
 * the caller frees p->opener by opener_free; EXIT_USAGE or EXIT_FAILED after one message.
 */
int port_target_open(struct port *p);

/* Ends the output on stdout. EXIT_DONE, or EXIT_FAILED after one log_error line. */
int port_target_close(struct outbuf *out);

#endif
