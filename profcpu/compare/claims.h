/*
 * Reads the samples of a runtime's own sampler from a trace, and its suspensions of the threads:
 * the sampler stops all threads before it notes what each of them does.
 */
#ifndef PROFCPU_COMPARE_CLAIMS_H
#define PROFCPU_COMPARE_CLAIMS_H

#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/eventpipe/nettrace.h"
#include "profcpu/compare/timeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIMS_NO_ROUND UINT32_MAX
#define CLAIMS_EXTERNAL 1 /* field "Type" of a sample outside of managed code */

struct claims_one {
	uint64_t time_ns;
	uint32_t round; /* CLAIMS_NO_ROUND: none is recorded */
	uint32_t tid;   /* in the PID namespace of the process */
	uint32_t stack; /* id in stacks */
	bool outside;   /* of managed code */
};

struct claims {
	struct nettrace_trace head;
	VEC(struct claims_one) v; /* in the order of time */
	/* Suspensions of all threads by the sampler; an end of 0 is missing in the trace. */
	VEC(struct timeline_span) rounds;
	uint64_t sampler;     /* id of the thread that samples; 0: unknown */
	struct intern stacks; /* addresses of head.pointer_bytes each, innermost first */
	uint64_t left_out;    /* samples for which memory is short */
	uint64_t lost;        /* events that the runtime dropped */
	bool is_cut;          /* the end of the trace is missing */
};

/*
 * Reads from fd to the end. max_bytes: of the samples and their stacks.
 *
 * 0; -EBADMSG, -E2BIG:
 * damaged, *err says how, and the samples before the damage are in *ret_samples; -ENOMEM; -errno of
 * read. In any case the caller frees *ret_samples.
 */
int claims_read(int fd, uint64_t max_bytes, struct claims *ret_samples, struct parse_error *err);
void claims_free(struct claims *s);

/*
 * Whether a method, in the runtime's spelling, is its poll for suspension. Samples have it above
 * what the thread did.
 */
bool claims_is_poll(const char *name);

#endif
