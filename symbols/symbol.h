/* What every source of symbols answers, and through which interface. */
#ifndef SYMBOLS_SYMBOL_H
#define SYMBOLS_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a name comes from; stored in profile_frame.source and in recordings by its text, so order may change. */
enum symbol_source {
	SYMBOL_NONE,
	SYMBOL_SYMTAB, /* .symtab of the image */
	SYMBOL_DYNSYM, /* .dynsym of the image */
	SYMBOL_PLT, /* entry made up for a procedure linkage table slot */
	SYMBOL_DEBUG_FILE, /* .symtab of a separate debug file */
	SYMBOL_MINI_DEBUG, /* .symtab of the image's compressed .gnu_debugdata */
	SYMBOL_AOT, /* as SYMTAB or DEBUG_FILE: a method that .NET compiled ahead of time */
	SYMBOL_VDSO,
	SYMBOL_KALLSYMS,
	SYMBOL_KSYMBOL, /* PERF_RECORD_KSYMBOL: BPF programs, trampolines */
	SYMBOL_PERFMAP,
	SYMBOL_JITDUMP,
	SYMBOL_MEMORY, /* the .NET runtime's own structures, read from the process */
	SYMBOL_RUNDOWN, /* method events of the .NET runtime */
	SYMBOL_R2R, /* ReadyToRun tables and metadata of a .NET image */
	SYMBOL_BOUNDS, /* no name: where a function begins and ends, by the image's unwind table */
	SYMBOL_SOURCES,
};

/* "symtab", "perf-map" and so on; "none" for anything else. Static. */
const char *symbol_source_name(enum symbol_source source);

#define SYMBOL_NO_PIECE UINT32_MAX

/*
 * Whether names of this source are of managed code and its stubs, as .NET's perf map spells them:
 * `[instance ]RETURN [ASSEMBLY] TYPE::METHOD(ARGS)[TIER]`, or `stub KIND<OWNER>`.
 */
bool symbol_source_is_managed(enum symbol_source source);

/* One answer. name is borrowed from the provider and lives as long as it. */
struct symbol {
	const char *name; /* NUL-terminated, raw: mangled, not cut */
	uint32_t name_len;
	enum symbol_source source;
	uint64_t start, end; /* [start, end) in the provider's kind of address: every address in it has this answer */
	uint64_t base; /* where the symbol begins, for name+offset; before start where another one covers its beginning */
	uint32_t piece; /* numbers the answer among the provider's, from 0 on */
	uint64_t from_ns, until_ns; /* [from, until) in which the answer holds; 0 and UINT64_MAX: always */
};

struct symbol_provider;

struct symbol_provider_ops {
	const char *name;
	/* Answers, also that nothing covers an address, may be others at other times. Else all of them hold always. */
	bool timed;
	/* The symbol that covers addr at a time. 0; -ENOENT when nothing does: never a neighbour. */
	int (*find)(struct symbol_provider *p, uint64_t addr, uint64_t time_ns, struct symbol *ret_symbol);
	/* Only the piece of what find would give: for who has seen it before. SYMBOL_NO_PIECE: nothing covers addr. */
	uint32_t (*piece)(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns);
	void (*free)(struct symbol_provider *p);
};

/* The first member of every provider. addr is a file offset for image providers, an addr for process and kernel providers. */
struct symbol_provider {
	const struct symbol_provider_ops *ops;
};

static inline int symbol_provider_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
				       struct symbol *ret_symbol)
{
	return p->ops->find(p, addr, time_ns, ret_symbol);
}

static inline uint32_t symbol_provider_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	return p->ops->piece(p, addr, time_ns);
}

static inline void symbol_provider_free(struct symbol_provider *p)
{
	if (p)
		p->ops->free(p);
}

#endif
