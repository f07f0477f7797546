/*
 * How frames in code that CoreCLR (.NET 8 and later) compiles while it runs, and in its stubs, lead to their callers. What is needed is read out of the
 * living process once for each function and kept as rules, which need the process no more. Nothing is asked of the runtime.
 * dotnet/runtime docs/design/datacontracts/ExecutionManager.md; layouts come from symbols/clr_contract.h.
 *
 * The target goes on while it is read, and all of it may be lies: no pointer is followed without a limit, and what does not fit
 * together is told.
 */
#ifndef UNWIND_CLR_CODE_H
#define UNWIND_CLR_CODE_H

#include "symbols/clr_contract.h"
#include "unwind/code_rules.h"

#define CLR_CODE_REFRESH_NS 20000000ULL /* the map of code ranges is read again no sooner */
#define CLR_CODE_METHOD_BYTES_MAX ((uint64_t)16 << 20) /* from the start of a method on */
#define CLR_CODE_PARTS_MAX 65536 /* of a method: itself, and its funclets */

enum clr_code_kind {
	CLR_CODE_OF_METHOD,
	CLR_CODE_OF_STUB,
	CLR_CODE_OF_IMAGE, /* precompiled, of an image: its rules are in its file (r2r_unwind.h), none are here */
};

/* Zeroed is empty. */
struct clr_code {
	uint64_t start, end; /* addrs; of a method: of the part that the rules are of, itself or a funclet */
	uint64_t method; /* where its method begins; 0 of others */
	uint8_t kind; /* enum clr_code_kind */
	bool movable; /* its place may be given to other code while the runtime lives */
	struct code_rules rules;
};

struct clr_code_reader;

/* io is copied, contract too. 0 or -ENOMEM. */
int clr_code_reader_new(const struct clr_io *io, const struct clr_contract *contract, struct clr_code_reader **ret);
void clr_code_reader_free(struct clr_code_reader *r);

/*
 * Reads the code at n addrs (ips, or return addresses less 1) into code[i], each with errors[i]: 0, the caller frees it by clr_code_free; -ENOENT: it is no
 * code of the runtime, or a stub that is not known; -EAGAIN: it changes at the moment, or is newer than the map of ranges, of which the next is read after
 * CLR_CODE_REFRESH_NS; -EBADMSG, -ENOTSUP, -E2BIG: it is not as it can be. Some ten calls of the kernel for all of them; it
 * may wait for the target (container/memory.h). 0; -ENOMEM; errors of io that end all: what errors[] says does not count then, and nothing is to be freed.
 */
int clr_code_read(struct clr_code_reader *r, const uint64_t *addrs, size_t n, struct clr_code *code, int *errors);
void clr_code_free(struct clr_code *code);

/* The rule at an addr. 0, with kind UNWIND_NONE where it is not known; -ENOENT: it is in no code that the rules are of. */
int clr_code_rule(const struct clr_code *code, uint64_t addr, struct unwind_rule *ret_rule);

/* From the registers of a frame at addr to its caller's. Errors of code_rules_step; -ENOENT as clr_code_rule. */
int clr_code_step(const struct clr_code *code, uint64_t addr, struct unwind_regs *regs, const struct unwind_memory *mem);

#endif
