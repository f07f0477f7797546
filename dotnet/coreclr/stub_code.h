/*
 * Recognises CoreCLR's stubs by their code alone. Finds stubs made before profiling began, which
 * are in no map, no event and, before .NET 10, no structure. x86-64 with the System V calling
 * convention only.
 *
 * All instructions of a stub must be those that the runtime writes, at its alignment; operands may
 * have any value. So no part of unknown code gets a name. Sources of .NET 8 and 9:
 * src/coreclr/vm/amd64/virtualcallstubcpu.hpp, thunktemplates.S, cgenamd64.cpp; EmitShuffleThunk
 * and EmitInstantiatingMethodStub in vm/i386/stublinkerx86.cpp.
 */
#ifndef DOTNET_CORECLR_STUB_CODE_H
#define DOTNET_CORECLR_STUB_CODE_H

#include <stddef.h>
#include <stdint.h>

#define CLR_STUB_CODE_MAX 128 /* bytes of the longest stub */

struct clr_stub_code {
	uint64_t start; /* addr */
	uint32_t bytes;
	const char *name; /* static; "stub MAKER<KIND>" as in the perf map of .NET 10 */
};

/* Recognises the stub that begins at code, len bytes at addr. 0; -ENOENT. */
int clr_stub_code_match(const unsigned char *code, size_t len, uint64_t addr,
			struct clr_stub_code *ret_stub);

/*
 * Calls fn for all stubs in code, by address. Adjacent stubs with the same name become one. A
 * result of fn other than 0 ends the scan and is returned. addr: of code, a multiple of 8.
 */
int clr_stub_code_scan(const unsigned char *code, size_t len, uint64_t addr,
		       int (*fn)(void *ctx, const struct clr_stub_code *stub), void *ctx);

#endif
