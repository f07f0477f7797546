/* What the runtime's events tell of a process's methods, written to its recording. */
#ifndef PROFCPU_JIT_EVENTS_H
#define PROFCPU_JIT_EVENTS_H

#include "eventpipe/rundown.h"
#include "profcpu/jit_known.h"
#include "profcpu/jit_way.h"

struct jit_events;

/*
 * t and known are borrowed. What is written is known from then on. 0, -ENOMEM, errors of rundown_new.
 */
int jit_events_new(struct jit_target *t, struct jit_known *known, struct jit_events **ret_events);
void jit_events_free(struct jit_events *e);

/* The sessions; owned by e. */
struct rundown *jit_events_rundown(struct jit_events *e);

/* Puts an error into words (JIT_WAY_WHY_BYTES). Gives the error back. */
int jit_events_explain(int error, const struct port_error *err, char *why);

#endif
