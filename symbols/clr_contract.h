/*
 * The data contract descriptor of a CoreCLR in a process: how that very build lays out its structures, told by the runtime itself.
 * dotnet/runtime docs/design/datacontracts/contract-descriptor.md and data_descriptor.md. libcoreclr.so exports it as
 * `DotNetRuntimeContractDescriptor`, and so does the executable of a single-file application, which has CoreCLR linked in. .NET 10 is the
 * first whose descriptor tells of JIT code (contract ExecutionManager). Of .NET 8 and 9 we know the layouts (clr_layouts.h), and they export
 * where their globals are for debuggers: `g_dacTable`, addrs in the order of dotnet/runtime src/coreclr/inc/dacvars.h, of which the first
 * is that of the map of code ranges.
 */
#ifndef SYMBOLS_CLR_CONTRACT_H
#define SYMBOLS_CLR_CONTRACT_H

#include "base/error.h"
#include "container/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLR_CONTRACT_JSON_MAX ((uint32_t)1 << 20) /* bytes; .NET 10 has 10,563 */
#define CLR_CONTRACT_POINTERS_MAX 4096

/* How the memory of a process is read. All functions may give errors of memory.h; those but -EFAULT end whatever is under way. */
struct clr_io {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len); /* as memory_read */
	int (*read_pieces)(void *ctx, struct memory_piece *pieces, size_t n); /* as memory_read_pieces */
	int (*maps)(void *ctx, char **ret_text); /* /proc/PID/maps, which the caller frees; may be NULL: some stubs are not found then */
	void *ctx;
};

/* Fields of runtime types, by their offsets; _BYTES: sizes of types. The names of both are in clr_contract.c, in this order. */
enum clr_field {
	CLR_RANGE_MAP_TOP,
	CLR_FRAGMENT_BEGIN,
	CLR_FRAGMENT_END,
	CLR_FRAGMENT_SECTION,
	CLR_FRAGMENT_NEXT,
	CLR_SECTION_BEGIN,
	CLR_SECTION_END,
	CLR_SECTION_FLAGS,
	CLR_SECTION_HEAP,
	CLR_SECTION_R2R,
	CLR_HEAP_START,
	CLR_HEAP_END,
	CLR_HEAP_MAP_BASE,
	CLR_HEAP_MAP,
	CLR_CODE_METHOD,
	CLR_CODE_UNWINDS,
	CLR_CODE_UNWIND,
	CLR_RUNTIME_FUNCTION_BYTES,
	CLR_RUNTIME_FUNCTION_BEGIN,
	CLR_RUNTIME_FUNCTION_END,
	CLR_METHOD_BYTES,
	CLR_METHOD_CHUNK_INDEX,
	CLR_METHOD_FLAGS,
	CLR_METHOD_TOKEN,
	CLR_CHUNK_BYTES,
	CLR_CHUNK_TYPE,
	CLR_CHUNK_TOKEN,
	CLR_STORED_SIG,
	CLR_STORED_SIG_LEN,
	CLR_DYNAMIC_NAME,
	CLR_DYNAMIC_BYTES,
	CLR_TYPE_BYTES,
	CLR_TYPE_FLAGS,
	CLR_TYPE_FLAGS2,
	CLR_TYPE_CLASS,
	CLR_TYPE_MODULE,
	CLR_TYPE_INST,
	CLR_DICT_BYTES, /* made up: the contract has no size of it */
	CLR_DICT_DICTS,
	CLR_DICT_ARGS,
	CLR_ARRAY_RANK,
	CLR_DESC_KIND,
	CLR_PARAM_ARG,
	CLR_MODULE_PEASSEMBLY,
	CLR_PEASSEMBLY_IMAGE,
	CLR_IMAGE_LAYOUT,
	CLR_LAYOUT_BASE,
	CLR_LAYOUT_SIZE,
	CLR_LAYOUT_FLAGS,
	CLR_OPTIONAL, /* from here on: CLR_NONE where the runtime does not tell */
	CLR_MODULE_DYNAMIC = CLR_OPTIONAL, /* with the next two: a copy of the metadata that is made while the program runs */
	CLR_DYNAMIC_METADATA_SIZE,
	CLR_DYNAMIC_METADATA,
	CLR_PRECODE,
	CLR_FIXUP_BYTES,
	CLR_FIXUP_IGNORED,
	CLR_FIXUP_SIZE,
	CLR_STUB_BYTES,
	CLR_STUB_IGNORED,
	CLR_STUB_SIZE,
	CLR_CODE_GC_INFO,
	CLR_CODE_DEBUG_INFO,
	CLR_MODULE_PATH,
	CLR_RUNTIME_FUNCTION_UNWIND,
	CLR_FIELDS,
};

#define CLR_NONE UINT32_MAX

struct clr_contract {
	uint32_t at[CLR_FIELDS];
	uint64_t code_range_map; /* addr of the RangeSectionMap */
	uint64_t platform_metadata; /* addr, or 0 */
	uint64_t stub_code_block_last;
	uint64_t token_remainder_bits;
	uint64_t method_alignment;
	uint64_t type_token_shift; /* in MTFlags2: bits below the number of the type's definition */
	uint64_t emitted; /* 1: what Reflection.Emit makes is read by clr_emitted.h */
	char architecture[16]; /* "x64", "arm64" */
	uint32_t execution_manager; /* version of the contract: 1 or 2, which say how nibble maps are written */
	bool described; /* by the runtime itself; else a layout of ours, which is to be checked, and which does not tell of stubs */
};

/* What in a CoreCLR leads to its structures: addrs, 0 where there is none. */
struct clr_anchors {
	uint64_t descriptor;
	uint64_t dac_table;
	uint32_t major; /* version, by the text that is compiled into it; looked for where there is a dac_table. 0: it says none */
};

/* One of them, which lies in the module's data. */
static inline uint64_t clr_anchors_any(const struct clr_anchors *anchors)
{
	return anchors->descriptor ? anchors->descriptor : anchors->dac_table;
}

/*
 * Looks through the text of /proc/PID/maps (changed by reading) for the module that has them: libcoreclr.so, else any
 * ELF file that is mapped. The module is read in memory, so that a file that was replaced or deleted does not matter. 0;
 * -ENOENT: no CoreCLR; errors of io.
 */
int clr_contract_locate(const struct clr_io *io, char *maps, struct clr_anchors *ret_anchors);

/* The same in the one ELF module that begins at addr. */
int clr_contract_find(const struct clr_io *io, uint64_t addr, struct clr_anchors *ret_anchors);

/*
 * Reads the descriptor, or takes the layout that is known for the version. 0; -ENOTSUP: it tells nothing of JIT code or not as we know it
 * (err->what says it in words: .NET 7 and older, or newer than what we know); -EAGAIN: a runtime that starts; -EBADMSG no descriptor;
 * -E2BIG; -ENOMEM; errors of io.
 */
int clr_contract_load(const struct clr_io *io, const struct clr_anchors *anchors, struct clr_contract *ret_contract,
		      struct parse_error *err);

/* The same from its text alone; pointers: the table of the descriptor. err->offset is in the text. */
int clr_contract_parse(const char *json, size_t len, const uint64_t *pointers, size_t npointers,
		       struct clr_contract *ret_contract, struct parse_error *err);

#endif
