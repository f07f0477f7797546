/* The runtime of a trace: how it is reached, and the command that it may run in. */
#ifndef PROFCPU_TRACE_TARGET_H
#define PROFCPU_TRACE_TARGET_H

#include "base/temp_dir.h"
#include "base/vec.h"
#include "dotnet/eventpipe/port.h"
#include "profcpu/record/child.h"
#include "profcpu/record/watch.h"
#include "profcpu/trace/options.h"

#include <stdbool.h>

#define TRACE_LIMIT_NS (10 * NS_PER_S) /* for the reply to a command */
#define TRACE_NAME_BYTES 64

struct trace_target {
	struct opener *opener;
	struct port port;
	struct port_server *server;
	struct temp_dir *dir;
	struct record_command command;
	char name[TRACE_NAME_BYTES]; /* of its program */
	bool suspended;              /* it waits until it is resumed */
	char *ports;                 /* DOTNET_DiagnosticPorts of the user; NULL: none */
	VEC(int) resumed;            /* connections of other runtimes, until they reply */
};

/*
 * Reaches the runtime, or starts it and waits until it connects. 0; -EINTR: a signal came first,
 * *ret_signal; another -errno, after one log_error line.
 */
int trace_target_reach(struct trace_target *t, const struct trace_options *options,
		       struct record_watch *watch, int *ret_signal);

/*
 * Lets a runtime run that waits. Programs that it starts do not connect to us. 0; errors of
 * port_command.
 */
int trace_target_resume(struct trace_target *t, uint64_t deadline_ns, struct port_error *err);

/*
 * Lets other runtimes run, such as those of the command's children, which also wait. Does not wait
 * for their replies. Call it now and then.
 */
void trace_target_resume_others(struct trace_target *t);

/*
 * After a failure to begin: ends the command, and lets the runtime run. error: of
 * trace_target_reach or a later step. *signal: the one that ended profcpu, or 0. Sets it to the one
 * for the command. Returns an exit status.
 */
int trace_target_give_up(struct trace_target *t, int error, int *signal);

/* How the events ended. */
struct trace_target_end {
	int signal;   /* that profcpu received; 0: none */
	bool process; /* its runtime ended */
};

/*
 * Waits until the command ends, and returns the status, or that of the command if it is worse.
 * Runtimes that start in it later also wait for us, and would hang without us. Signals to us go on
 * to the command; after the second one, profcpu does not wait any longer.
 */
int trace_target_end_command(struct trace_target *t, const struct trace_options *options,
			     struct record_watch *watch, const struct trace_target_end *end,
			     int status);

/* Ends a command that has not executed its program, and frees all. */
void trace_target_release(struct trace_target *t);

#endif
