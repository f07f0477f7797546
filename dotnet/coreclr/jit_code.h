/*
 * Reads the JIT-compiled code of CoreCLR (.NET 8 and later) from the runtime's own structures.
 * Needs no help of the runtime: no request, no stop, no setting made beforehand. Each scan reports
 * code that is new or gone since the last one: it compares the nibble map of each code heap with
 * its copy of that map.
 *
 * Formats: dotnet/runtime, docs/design/datacontracts/ExecutionManager.md, RuntimeTypeSystem.md,
 * Loader.md. Layouts: dotnet/coreclr/contract.h.
 *
 * The target keeps running while its memory is read. Inconsistent data is skipped, counted, and
 * read again by the next scan. Nothing read is trusted: each pointer and count has a limit.
 */
#ifndef DOTNET_CORECLR_JIT_CODE_H
#define DOTNET_CORECLR_JIT_CODE_H

#include "dotnet/coreclr/contract.h"
#include "dotnet/il_points.h"

#include <stdbool.h>

/* Methods and stub blocks of all scans; the limit of symbols/jit/methods.h. */
#define CLR_JIT_CODE_BODIES_MAX ((size_t)2 << 20)
/* Bytes of all code heaps. Keeps their maps below 128 MiB. */
#define CLR_JIT_CODE_CODE_BYTES_MAX ((uint64_t)8 << 30)
#define CLR_JIT_CODE_BODY_BYTES_MAX ((uint32_t)256 << 20) /* of one method */
#define CLR_JIT_CODE_NAME_BYTES_MAX ((uint64_t)256 << 20) /* of all names ever reported */
/*
 * Period in which all movable bodies are compared once. A body is movable if its heap frees single
 * bodies, so the runtime may reuse its place for other code.
 */
#define CLR_JIT_CODE_RECHECK_NS 200000000ULL
/* Movable bodies compared in one scan: at least and at most. */
#define CLR_JIT_CODE_RECHECK_MIN 64
#define CLR_JIT_CODE_RECHECK_MAX 16384

struct clr_jit_code;

/* Opens a runtime; io is copied. Errors of clr_contract_load. */
int clr_jit_code_new(const struct clr_io *io, const struct clr_anchors *anchors,
		     struct clr_jit_code **ret, struct parse_error *err);
void clr_jit_code_free(struct clr_jit_code *j);

/*
 * A body of code as reported. Borrowed for the call, except name, which lives as long as the
 * clr_jit_code. name: as in .NET's perf map, without tier and without a generic method's own type
 * arguments; NUL-terminated.
 */
struct clr_jit_code_body {
	uint64_t start;
	uint32_t bytes; /* including funclets */
	bool is_stub;
	const char *name;
	uint32_t name_len;
	/* NULL if unknown. Set only after clr_jit_code_request_il. Borrowed for the call. */
	const struct clr_jit_code_il *il;
	/* These identify a method in the process: addrs of its MethodDesc and Module, 0: unknown.
	 */
	uint64_t method, module;
	uint32_t rid; /* row of its MethodDef; 0: none */
	bool is_dynamic;
};

/* The IL offsets of a body. */
struct clr_jit_code_il {
	uint64_t module;           /* identifies the module in the process */
	const unsigned char *mvid; /* 16 bytes as in the metadata */
	const char *path;          /* in the process's root, UTF-8 */
	uint32_t rid;              /* row of its MethodDef */
	struct il_point *points;   /* the caller may sort them */
	size_t npoints;
};

struct clr_jit_code_listener {
	/* Code now at its start. Follows `gone` if it replaced other code. */
	int (*code)(void *ctx, const struct clr_jit_code_body *code);
	/* seen_ns: begin of the last scan that saw it, CLOCK_MONOTONIC; 0: the previous scan. */
	int (*gone)(void *ctx, uint64_t start, uint64_t seen_ns);
	void *ctx; /* passed to both; a result other than 0 ends the scan */
};

/* Makes each later scan compare all movable bodies, as the last scan of a recording should. */
void clr_jit_code_compare_all(struct clr_jit_code *j);

/* Makes later scans report IL offsets where the runtime has them. */
void clr_jit_code_request_il(struct clr_jit_code *j);

/*
 * Scans once, until until_ns (CLOCK_MONOTONIC). May end later only while the kernel waits for the
 * target (container/memory.h).
 * 0; -ETIMEDOUT; -ESRCH: the process has ended; -EPERM; -E2BIG: more code than CLR_CODE_RANGES_MAX;
 * a listener's result; -ENOMEM. After an error all reports stay valid. Code not read is not
 * reported as gone. The next scan reports the rest.
 */
int clr_jit_code_scan(struct clr_jit_code *j, const struct clr_jit_code_listener *l,
		      uint64_t until_ns);

/* Counts: of the last scan from added to rechecked, then totals. */
struct clr_jit_code_stats {
	size_t added, gone;
	/* Structures and bodies that were unreadable or inconsistent. */
	size_t unread;
	/* Bodies without a name: no metadata of their module, or no such method in it. */
	size_t unnamed;
	size_t rechecked;
	size_t bodies, stubs; /* known now */
	/* CLR_JIT_CODE_BODIES_MAX was exceeded; later bodies are not reported. */
	bool over;
	/* Bodies of generic types named without type arguments, which could not be read. */
	size_t plain;
	/* Methods reported with and without IL offsets. */
	size_t with_il, without_il;
	/* Modules whose metadata was needed, and those for which it was unavailable. */
	size_t modules, modules_failed;
};
void clr_jit_code_stats(const struct clr_jit_code *j, struct clr_jit_code_stats *ret_stats);

/*
 * The Module of the precompiled image whose range the last scan found at an address; 0: none. For
 * code of a composite image, that of one of its assemblies.
 */
uint64_t clr_jit_code_image(const struct clr_jit_code *j, uint64_t addr);

/*
 * The path of a Module's file in the process's root; "": none. Borrowed until the next scan. 0;
 * -ENOENT: unknown, as for each file before .NET 10; -ENOMEM; errors of io.
 */
int clr_jit_code_module_path(struct clr_jit_code *j, uint64_t module, uint64_t until_ns,
			     const char **ret_path);

/*
 * Whether the runtime describes its own layout. Only then do scans find stubs outside code heaps.
 */
bool clr_jit_code_is_described(const struct clr_jit_code *j);

#endif
