/*
 * Stubs of CoreCLR told by their code alone: for those that were made before anybody asked, which are in no map, no event and, before
 * .NET 10, no structure. x86-64 with the calling convention of System V only.
 *
 * A stub is told where all its instructions are those that the runtime writes (src/coreclr/vm/amd64/virtualcallstubcpu.hpp,
 * thunktemplates.S, cgenamd64.cpp, and EmitShuffleThunk, EmitInstantiatingMethodStub of vm/i386/stublinkerx86.cpp, as of .NET 8 and 9) at the
 * alignment that it gives them; operands may be anything. So no part of an unknown one has a name.
 */
#ifndef SYMBOLS_CLR_STUB_CODE_H
#define SYMBOLS_CLR_STUB_CODE_H

#include <stddef.h>
#include <stdint.h>

#define CLR_STUB_CODE_MAX 128 /* bytes of the longest one */

struct clr_stub_code {
	uint64_t start; /* addr */
	uint32_t bytes;
	const char *name; /* static, "stub MAKER<KIND>" as the perf map of .NET 10 has it */
};

/* The stub that begins at code, which has len bytes and is at addr. 0; -ENOENT. */
int clr_stub_code_at(const unsigned char *code, size_t len, uint64_t addr, struct clr_stub_code *ret_stub);

/*
 * Tells all stubs in code, by address; such of one name that follow each other without a gap are told as one. What is
 * not 0 of fn ends it and is given back. addr: of code, a multiple of 8.
 */
int clr_stub_code_scan(const unsigned char *code, size_t len, uint64_t addr, int (*fn)(void *ctx, const struct clr_stub_code *stub),
		       void *ctx);

#endif
