/*
 * Cache of the unwinding rules of code that processes made at run time, by address. Reading a
 * process's memory may take long or never end, so another thread reads requested code. The
 * unwinder's thread stores the result here. Only that thread uses the cache.
 */
#ifndef UNWIND_JIT_CODES_H
#define UNWIND_JIT_CODES_H

#include "unwind/code_rules.h"

#define JIT_CODES_MAX ((size_t)1 << 20) /* stretches of code, of all processes */
/* Default limit on bytes of rules. Over it, all rules are forgotten and requested again. */
#define JIT_CODES_BYTES_MAX ((size_t)64 << 20)
#define JIT_CODES_REQUESTS_MAX \
	65536 /* kept requests of all processes; over it, all are forgotten */
#define JIT_CODES_MOVABLE_NS 500000000ULL  /* until movable code is requested again */
#define JIT_CODES_UNKNOWN_NS 1000000000ULL /* until a failed lookup is requested again */

struct jit_code {
	uint64_t start, end;     /* addrs of a function, a part of one, or a block of stubs */
	bool movable;            /* it may be freed and its place reused */
	struct code_rules rules; /* by offset from start */
};

struct jit_codes;

/* bytes_max: bytes of rules. Returns 0 or -ENOMEM. */
int jit_codes_new(size_t bytes_max, struct jit_codes **ret_codes);
void jit_codes_free(struct jit_codes *c);

/*
 * Finds the code at addr of a process; valid until the next call.
 *
 * Sets *ret_request if the caller must request the code now: it is new, or the last result is too
 * old. It is false while a request is pending.
 *
 * Returns 0; -ENOENT: the last request found no code; -EAGAIN: no result yet; -ENOMEM.
 */
int jit_codes_find(struct jit_codes *c, int32_t pid, uint64_t addr, uint64_t now_ns,
		   const struct jit_code **ret_code, bool *ret_request);

/*
 * Stores the result of a request: code that covers addr, whose rules are taken, or NULL if it is
 * unknown. Ignores results for a process that was forgotten. Returns 0 or -ENOMEM.
 */
int jit_codes_put(struct jit_codes *c, int32_t pid, uint64_t addr, struct jit_code *code,
		  uint64_t now_ns);

/* Forgets a process that has ended or executes another program. */
void jit_codes_forget(struct jit_codes *c, int32_t pid);

#endif
