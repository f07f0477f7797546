/* Writes the methods in a runtime's events to the recording of its process. */
#ifndef PROFCPU_JIT_EVENTS_H
#define PROFCPU_JIT_EVENTS_H

#include "dotnet/eventpipe/rundown.h"
#include "profcpu/jit/known.h"
#include "profcpu/jit/way.h"

struct jit_events;

/*
 * t and known are borrowed. Each method written is added to known. Returns 0, -ENOMEM, errors of
 * rundown_new.
 */
int jit_events_new(struct jit_target *t, struct jit_known *known, struct jit_events **ret_events);
void jit_events_free(struct jit_events *e);

/* The event sessions; owned by e. */
struct rundown *jit_events_rundown(struct jit_events *e);

/* Writes an error as words to why (JIT_WAY_WHY_BYTES). Returns the error. */
int jit_events_explain(int error, const struct port_error *err, char *why);

#endif
