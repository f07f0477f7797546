/*
 * Records events of a runtime into a file: finds the runtime or starts it, begins a session, copies
 * its stream, and ends both well.
 */
#ifndef PROFCPU_TRACE_TRACE_H
#define PROFCPU_TRACE_TRACE_H

#include "profcpu/trace/options.h"

/* Returns an exit status; messages tell what happened. */
int trace_run(const struct trace_options *options);

#endif
