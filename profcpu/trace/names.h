/*
 * Names of the methods in a trace's stacks, read from the memory of the process, so that the
 * runtime need not list all its methods. The process runs on. Stacks are collected while the stream
 * passes by. Now and then a step names their new addresses: JIT-compiled code by the runtime's own
 * structures (dotnet/coreclr), precompiled code by its files. So code that is freed later, or whose
 * process ends, has names up to the last step.
 */
#ifndef PROFCPU_TRACE_NAMES_H
#define PROFCPU_TRACE_NAMES_H

#include "base/error.h"
#include "base/outbuf.h"
#include "container/opener.h"
#include "dotnet/eventpipe/nettrace.h"

#include <stdbool.h>

#define TRACE_NAMES_METHODS_MAX ((size_t)1 << 20) /* methods that are written */

struct trace_names;

/*
 * Opens the memory of a process's runtime before until_ns (CLOCK_MONOTONIC). opener is borrowed.
 * Errors of clr_runtime_open, with *err.
 */
int trace_names_new(struct opener *opener, pid_t pid, uint64_t until_ns,
		    struct trace_names **ret_names, struct parse_error *err);
void trace_names_free(struct trace_names *n);

/*
 * Takes an event of the stream: the addresses of its stack, and the code that it names itself. If
 * memory is short, both are left out.
 */
void trace_names_take(struct trace_names *n, const struct nettrace_event *event,
		      uint32_t pointer_bytes);

/* Whether a step should be made now: at most a fiftieth of the time goes to steps. */
bool trace_names_is_due(const struct trace_names *n);

/*
 * Names the addresses that were taken since the last step, before until_ns. last: no step follows.
 * 0; -ESRCH: the process has ended; -ETIMEDOUT; -EPERM; -ENOMEM; -errno. After an error the
 * methods that were found stay.
 */
int trace_names_step(struct trace_names *n, uint64_t until_ns, bool last);

struct trace_names_stats {
	size_t addresses, nameless; /* distinct ones of each step */
	/* Methods whose place another one took: their samples get the name of the latter. */
	size_t replaced;
	uint64_t stacks_left_out; /* as struct stack_addresses */
	size_t left_out;          /* addresses and methods over a limit, or without memory */
	size_t written;           /* methods */
	uint64_t step_ns;         /* time that all steps took */
};

struct trace_names_stats trace_names_stats(const struct trace_names *n);

/*
 * Writes what follows the last whole object of the stream: the methods as events, and the end.
 * Call it once. trace: head of the stream. whole: bytes up to the end of that object. last_kind_id:
 * as nettrace_last_kind_id.
 *
 * 0; -EBADMSG: no event can be added to this stream; -ENOMEM; out->error.
 */
int trace_names_write(struct trace_names *n, const struct nettrace_trace *trace, uint64_t whole,
		      uint32_t last_kind_id, struct outbuf *out);

#endif
