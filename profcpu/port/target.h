/* The runtime of a command of profcpu: how it is reached, and the command that it may run in. */
#ifndef PROFCPU_PORT_TARGET_H
#define PROFCPU_PORT_TARGET_H

#include "base/temp_dir.h"
#include "base/vec.h"
#include "dotnet/eventpipe/port.h"
#include "profcpu/record/child.h"
#include "profcpu/record/child_guard.h"
#include "profcpu/record/watch.h"

#include <stdbool.h>

#define PORT_TARGET_LIMIT_NS (10 * NS_PER_S) /* for the reply to a command */
#define PORT_TARGET_NAME_BYTES 64

/* Says which runtime; members are borrowed. One of the first three is set. */
struct port_options {
	pid_t pid;
	char *const *argv; /* a command */
	const char *socket;
	bool listen; /* runtimes connect to the socket; else a runtime listens on it */
	bool quiet;  /* no notes */
};

struct port_target {
	struct opener *opener;
	struct port port;
	struct port_server *server;
	struct temp_dir *dir;
	struct record_command command;
	struct child_guard guard;          /* of the command, until it is resumed */
	char name[PORT_TARGET_NAME_BYTES]; /* of its program */
	bool suspended;                    /* it waits until it is resumed */
	char *ports;                       /* DOTNET_DiagnosticPorts of the user; NULL: none */
	VEC(int) resumed;                  /* connections of other runtimes, until they reply */
};

/*
 * Reaches the runtime, or starts it and waits until it connects. 0; -EINTR: a signal came first,
 * *ret_signal; another -errno, after one log_error line.
 */
int port_target_reach(struct port_target *t, const struct port_options *options,
		      struct record_watch *watch, int *ret_signal);

/*
 * Lets a runtime run that waits. Programs that it starts do not connect to us. 0; errors of
 * port_command.
 */
int port_target_resume(struct port_target *t, uint64_t deadline_ns, struct port_error *err);

/*
 * Lets other runtimes run, such as those of the command's children, which also wait. Does not wait
 * for their replies. Call it now and then.
 */
void port_target_resume_others(struct port_target *t);

/*
 * After a failure to begin: ends the command, and lets the runtime run. error: of
 * port_target_reach or a later step. *signal: the one that ended profcpu, or 0. Sets it to the one
 * for the command. Returns an exit status.
 */
int port_target_give_up(struct port_target *t, int error, int *signal);

/* How the events ended. */
struct port_target_end {
	int signal;   /* that profcpu received; 0: none */
	bool process; /* its runtime ended */
};

/*
 * Waits until the command ends, and returns the status, or that of the command if it is worse.
 * Runtimes that start in it later also wait for us, and would hang without us. Signals to us go on
 * to the command; after the second one, profcpu does not wait any longer.
 */
int port_target_end_command(struct port_target *t, const struct port_options *options,
			    struct record_watch *watch, const struct port_target_end *end,
			    int status);

/* Ends a command that has not executed its program, and frees all. */
void port_target_release(struct port_target *t);

#endif
