/*
 * Methods that a trace lists: at its end (rundown), or when the runtime compiles them. Their names
 * are made only when they are needed.
 */
#ifndef PROFCPU_POST_TRACE_METHODS_H
#define PROFCPU_POST_TRACE_METHODS_H

#include "dotnet/eventpipe/nettrace.h"

struct trace_methods;

/* max_bytes: of the list; methods beyond it are counted. 0; -ENOMEM. */
int trace_methods_new(size_t max_bytes, struct trace_methods **ret_methods);
void trace_methods_free(struct trace_methods *m);

/* Whether trace_methods_take has a use for events of this kind. */
bool trace_methods_wants(const struct nettrace_kind *kind);

/* Takes an event of the runtime or its rundown. 0; -ENOMEM. */
int trace_methods_take(struct trace_methods *m, const struct nettrace_event *event);

uint64_t trace_methods_left_out(const struct trace_methods *m);

struct trace_method_name {
	uint64_t start;
	const char *name; /* in the runtime's spelling; valid as long as m */
	size_t len;
	const char *assembly; /* "": unknown */
};

/*
 * The name of the method at an address; of several, the one that the trace listed last. No event
 * may be taken after this. 0; -ENOENT; -ENOMEM.
 */
int trace_methods_find(struct trace_methods *m, uint64_t addr, struct trace_method_name *ret_name);

#endif
