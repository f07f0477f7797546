/*
 * Unwinding rules of code that CoreCLR (.NET 8 and later) compiles at run time, and of its stubs.
 * Each function is read once from the memory of the living process and kept as rules. The runtime
 * is never contacted. Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md; layouts
 * come from dotnet/coreclr/contract.h.
 *
 * The target runs while it is read, and its data may be wrong or hostile. Every read is limited,
 * and contradictions are errors.
 */
#ifndef UNWIND_CLR_CODE_H
#define UNWIND_CLR_CODE_H

#include "dotnet/coreclr/contract.h"
#include "unwind/code_rules.h"

#define CLR_CODE_REFRESH_NS 20000000ULL /* least time between reads of the map of code ranges */
#define CLR_CODE_METHOD_BYTES_MAX ((uint64_t)16 << 20) /* from the start of a method */
#define CLR_CODE_BYTES_MAX ((size_t)8 << 20)           /* of code and rules, in one call */
#define CLR_CODE_PARTS_MAX 65536                       /* of a method: its body and funclets */

enum clr_code_kind {
	CLR_CODE_OF_METHOD,
	CLR_CODE_OF_STUB,
	CLR_CODE_OF_IMAGE, /* precompiled: its rules are in its file (r2r_unwind.h), not here */
};

/* Zeroed is empty. */
struct clr_code {
	uint64_t start, end; /* addrs that the rules cover; one part of a method */
	uint64_t method;     /* start of the method; 0: no method */
	uint8_t kind;        /* enum clr_code_kind */
	bool movable;        /* the runtime may reuse its place for other code */
	struct code_rules rules;
};

struct clr_code_reader;

/* Copies io and contract. Returns 0 or -ENOMEM. */
int clr_code_reader_new(const struct clr_io *io, const struct clr_contract *contract,
			struct clr_code_reader **ret);
void clr_code_reader_free(struct clr_code_reader *r);

/* seen_ns: CLOCK_MONOTONIC when the process already had code at addr. */
struct clr_code_query {
	uint64_t addr, seen_ns;
};

/*
 * Reads the code at n addresses, which are ips, or return addresses minus 1. Makes about ten system
 * calls for all, and may wait for the target (container/memory.h). Fills code[i] and
 * errors[i]:
 *   0: free code[i] with clr_code_free
 *   -ENOENT: no code of the runtime, or an unknown stub
 *   -EAGAIN: it is changing, or was seen after the map of ranges was read, or a part of that map
 *   was unreadable, or CLR_CODE_BYTES_MAX is reached (read again after CLR_CODE_REFRESH_NS)
 *   -EBADMSG, -ENOTSUP, -E2BIG: its data is invalid
 *
 * Returns 0; -ENOMEM; errors of io that end all. After an error, ignore errors[] and free nothing.
 */
int clr_code_read(struct clr_code_reader *r, const struct clr_code_query *queries, size_t n,
		  struct clr_code *code, int *errors);
void clr_code_free(struct clr_code *code);

/*
 * The rule at an addr; kind UNWIND_NONE if unknown. Returns 0; -ENOENT: the rules do not cover
 * addr.
 */
int clr_code_rule(const struct clr_code *code, uint64_t addr, struct unwind_rule *ret_rule);

/*
 * Replaces the registers of a frame at addr with its caller's. Errors of code_rules_step; -ENOENT
 * as in clr_code_rule.
 */
int clr_code_step(const struct clr_code *code, uint64_t addr, struct unwind_regs *regs,
		  const struct unwind_memory *mem);

#endif
