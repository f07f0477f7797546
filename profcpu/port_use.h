/*
 * The runtime of commands that use a diagnostic port for a moment: info, env, dump, load, resume.
 *
 * With --diagnostic-port PATH,listen, the runtime that connects may wait at its start. It runs when
 * the command is done, also if that failed or was interrupted.
 */
#ifndef PROFCPU_PORT_USE_H
#define PROFCPU_PORT_USE_H

#include "base/clock.h"
#include "base/outbuf.h"
#include "profcpu/command.h"
#include "profcpu/port/report.h"
#include "profcpu/port_arguments.h"
#include "profcpu/record/watch.h"

struct port_use {
	struct port_arguments arguments;
	struct port_target target; /* target.port reaches the runtime */
	struct record_watch watch; /* while runtimes connect to us */
	bool begun;
};

/*
 * Reaches the runtime that the arguments name; waits for one that connects. EXIT_DONE; EXIT_USAGE
 * or EXIT_FAILED after one message. Call port_use_end in any case, also without this.
 *
 * From here on, with runtimes that connect, a signal ends commands to it with -ECANCELED.
 */
int port_use_begin(struct port_use *u);

/* Lets the runtime run if it waits for us, and frees all. Returns status, or a worse one. */
int port_use_end(struct port_use *u, int status);

/* Ends the output on stdout. EXIT_DONE, or EXIT_FAILED after one log_error line. */
int port_use_end_output(struct outbuf *out);

#endif
