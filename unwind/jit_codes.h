/*
 * Code that processes made while they ran, as far as it is known: its rules by address. Who unwinds asks; who may wait for a process
 * (its memory can answer late or never) reads what was asked for and puts the answer here. One thread uses it.
 */
#ifndef UNWIND_JIT_CODES_H
#define UNWIND_JIT_CODES_H

#include "unwind/code_rules.h"

#define JIT_CODES_MAX ((size_t)1 << 20) /* stretches of code, of all processes */
#define JIT_CODES_BYTES_MAX ((size_t)64 << 20) /* of rules; over it a process's are forgotten and asked for again */
#define JIT_CODES_MOVABLE_NS 500000000ULL /* what may be replaced is asked for again after that */
#define JIT_CODES_NOBODY_NS 1000000000ULL /* and what nobody knew */

struct jit_code {
	uint64_t start, end; /* addr; where a function begins, or a part of it, or a block of stubs */
	bool movable; /* it may be freed, and other code come to its place */
	struct code_rules rules; /* by offset from start */
};

struct jit_codes;

int jit_codes_new(struct jit_codes **ret_codes); /* 0 or -ENOMEM */
void jit_codes_free(struct jit_codes *c);

/*
 * The code at addr of a process, valid until the next call. 0; -ENOENT: nobody knows it; -EAGAIN: it is to be asked for, *ret_ask tells
 * whether that is news (else it was asked for already). Where what is known is to be asked for again, 0 comes with *ret_ask.
 */
int jit_codes_find(struct jit_codes *c, int32_t pid, uint64_t addr, uint64_t now_ns, const struct jit_code **ret_code, bool *ret_ask);

/* The answer to a question: code that covers addr, whose rules are taken, or NULL: nobody knows. 0 or -ENOMEM. */
int jit_codes_put(struct jit_codes *c, int32_t pid, uint64_t addr, struct jit_code *code, uint64_t now_ns);

/* A process has ended or executes another program. */
void jit_codes_forget(struct jit_codes *c, int32_t pid);

#endif
