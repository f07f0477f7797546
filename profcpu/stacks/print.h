/* The stacks of a process as text for people, or as JSON. */
#ifndef PROFCPU_STACKS_PRINT_H
#define PROFCPU_STACKS_PRINT_H

#include "base/outbuf.h"
#include "profcpu/stacks/groups.h"
#include "profcpu/stacks/snapshot.h"

/* Errors stay in the outbuf. */
void stacks_print_text(struct outbuf *out, const struct snapshot *s,
		       const struct stacks_groups *groups);
void stacks_print_json(struct outbuf *out, const struct snapshot *s,
		       const struct stacks_groups *groups);

#endif
