/*
 * Finds stubs of the runtime that no source reports, by their code in the memory of the process
 * (dotnet/coreclr/stub_code.h).
 */
#ifndef PROFCPU_JIT_STUBS_H
#define PROFCPU_JIT_STUBS_H

#include "base/vec.h"
#include "dotnet/coreclr/stub_code.h"
#include "profcpu/jit/known.h"
#include "profcpu/jit/way.h"

#define JIT_STUBS_BYTES_MAX ((uint64_t)256 << 20) /* executable memory that one search reads */
#define JIT_STUBS_MAX ((size_t)256 << 10)         /* runs of stubs of one process */
#define JIT_STUBS_SEARCH_NS 500000000ULL          /* limit of one search; 5 ms a MB are usual */

/* A zeroed struct is empty. */
struct jit_stubs {
	bool tried;                      /* a search was made, even if it failed */
	int error;                       /* of the last search; 0: none */
	uint64_t searched_ns;            /* start of the last search without an error; 0: none */
	bool cut;                        /* a limit ended it, and memory beyond was left out */
	VEC(struct clr_stub_code) found; /* found by that search; by address */
};

/*
 * Searches executable memory of the runtime that no flushed method of known covers. Writes the
 * stubs that are new and gone since the last search. Returns 0; -ESRCH; -ENOMEM; -errno. After an
 * error, the stubs found before stay.
 */
int jit_stubs_search(struct jit_stubs *s, struct jit_target *t, const struct jit_known *known,
		     uint64_t now_ns);

/*
 * Appends to why (JIT_WAY_WHY_BYTES), after the last search, the reasons why stubs may be missing.
 * The caller reports that the process has ended.
 */
void jit_stubs_report(const struct jit_stubs *s, const struct jit_known *known, char *why);
void jit_stubs_free(struct jit_stubs *s);

#endif
