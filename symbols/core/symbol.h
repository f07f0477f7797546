/*
 * The interface of symbol providers: an address and a time in, a symbol and its validity out. JIT
 * code moves and its memory is reused, so a symbol may hold only for a time.
 */
#ifndef SYMBOLS_CORE_SYMBOL_H
#define SYMBOLS_CORE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Origin of a name. profile_frame.source holds it, and recordings hold its text, so the order may
 * change.
 */
enum symbol_source {
	SYMBOL_NONE,
	SYMBOL_SYMTAB,     /* .symtab of the image */
	SYMBOL_DYNSYM,     /* .dynsym of the image */
	SYMBOL_PLT,        /* made up for a slot of a procedure linkage table */
	SYMBOL_DEBUG_FILE, /* .symtab of a separate debug file */
	SYMBOL_MINI_DEBUG, /* .symtab of the image's compressed .gnu_debugdata */
	SYMBOL_AOT,        /* as SYMTAB or DEBUG_FILE: a method that .NET compiled ahead of time */
	SYMBOL_VDSO,
	SYMBOL_KALLSYMS,
	SYMBOL_KSYMBOL, /* PERF_RECORD_KSYMBOL: BPF programs, trampolines */
	SYMBOL_PERFMAP,
	SYMBOL_JITDUMP,
	SYMBOL_MEMORY,  /* the .NET runtime's own structures, read from the process */
	SYMBOL_RUNDOWN, /* method events of the .NET runtime */
	SYMBOL_R2R,     /* ReadyToRun tables and metadata of a .NET image */
	SYMBOL_BOUNDS,  /* no name: only a function's bounds, from the image's unwind table */
	SYMBOL_SOURCES,
};

/* "symtab", "perf-map" and so on; "none" for anything else. Static. */
const char *symbol_source_name(enum symbol_source source);

#define SYMBOL_NO_PIECE UINT32_MAX

/*
 * Whether names of this source are of managed code and its stubs in the syntax of .NET's perf
 * map: `[instance ]RETURN [ASSEMBLY] TYPE::METHOD(ARGS)[TIER]`, or `stub KIND<OWNER>`.
 */
bool symbol_source_is_managed(enum symbol_source source);

/* The result of a lookup. name is borrowed from the provider until its next lookup. */
struct symbol {
	const char *name; /* NUL-terminated, raw: mangled, not cut */
	uint32_t name_len;
	enum symbol_source source;
	/* Every address in [start, end), of the provider's kind, has this result. */
	uint64_t start, end;
	/*
	 * Start of the symbol, for name+offset; before start if another symbol covers its beginning
	 */
	uint64_t base;
	uint32_t piece; /* number of the result within the provider, from 0 */
	/* The result holds for times in [from_ns, until_ns); 0 and UINT64_MAX: always. */
	uint64_t from_ns, until_ns;
};

struct symbol_provider;

struct symbol_provider_ops {
	const char *name;
	/* Results, also -ENOENT, may differ between times. If false, all hold always. */
	bool timed;
	/*
	 * Finds the symbol that covers addr at a time. Never gives a neighbour. Returns 0 or
	 * -ENOENT.
	 */
	int (*find)(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		    struct symbol *ret_symbol);
	/*
	 * Gives only the piece that find would give, for callers that cache symbols.
	 * SYMBOL_NO_PIECE: nothing covers addr.
	 */
	uint32_t (*piece)(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns);
	void (*free)(struct symbol_provider *p);
};

/*
 * The first member of every provider. addr is a file offset for image providers, an addr for
 * process and kernel providers.
 */
struct symbol_provider {
	const struct symbol_provider_ops *ops;
};

static inline int symbol_provider_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
				       struct symbol *ret_symbol)
{
	return p->ops->find(p, addr, time_ns, ret_symbol);
}

static inline uint32_t symbol_provider_piece(const struct symbol_provider *p, uint64_t addr,
					     uint64_t time_ns)
{
	return p->ops->piece(p, addr, time_ns);
}

static inline void symbol_provider_free(struct symbol_provider *p)
{
	if (p)
		p->ops->free(p);
}

#endif
