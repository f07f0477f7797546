/*
 * CoreCLR's data contract: how one build of the runtime lays out its structures.
 *
 * .NET 10 and later describe themselves in an exported descriptor, DotNetRuntimeContractDescriptor
 * (contract ExecutionManager). Format: dotnet/runtime,
 * docs/design/datacontracts/contract-descriptor.md and data_descriptor.md.
 *
 * The layouts of .NET 8 and 9 are built in (dotnet/coreclr/layouts.h). These versions export a
 * table of their globals for debuggers, g_dacTable, with addrs in the order of dotnet/runtime,
 * src/coreclr/inc/dacvars.h. Its first entry is the map of code ranges.
 *
 * Both symbols are in libcoreclr.so. A single-file application has them in its executable, into
 * which CoreCLR is linked.
 */
#ifndef DOTNET_CORECLR_CONTRACT_H
#define DOTNET_CORECLR_CONTRACT_H

#include "base/error.h"
#include "dotnet/coreclr/io.h"
#include "dotnet/coreclr/locate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLR_CONTRACT_JSON_MAX ((uint32_t)1 << 20) /* bytes; .NET 10 has 10,563 */
#define CLR_CONTRACT_POINTERS_MAX 4096

/*
 * Fields of runtime types, by offset. Names that end in _BYTES are sizes of types. contract.c has
 * the runtime's names.
 */
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
	CLR_JIT_CODE_START,
	CLR_JIT_CODE_END,
	CLR_JIT_CODE_MAP_BASE,
	CLR_JIT_CODE_MAP,
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
	CLR_DICT_BYTES, /* made up: the contract does not have this size */
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
	CLR_OPTIONAL, /* fields from here on are CLR_NONE if the runtime does not describe them */
	/* This and the next two: the runtime's copy of metadata that is made at run time. */
	CLR_MODULE_DYNAMIC = CLR_OPTIONAL,
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
	uint64_t code_range_map;    /* addr of the RangeSectionMap */
	uint64_t platform_metadata; /* addr, or 0 */
	uint64_t stub_code_block_last;
	uint64_t token_remainder_bits;
	uint64_t method_alignment;
	/* Bits of MTFlags2 below the row of the type's definition. */
	uint64_t type_token_shift;
	/* 1: read Reflection.Emit metadata by dotnet/coreclr/emitted.h. */
	uint64_t emitted;
	char architecture[16]; /* "x64", "arm64" */
	/*
	 * Version of the contract ExecutionManager, 1 or 2. It selects the format of nibble maps.
	 */
	uint32_t execution_manager;
	/*
	 * Described by the runtime itself. False: a built-in layout, which must be checked and does
	 * not describe stubs.
	 */
	bool described;
};

/*
 * Reads the descriptor, or takes the built-in layout of the version. err->what explains each error
 * in words.
 *   0;
 *   -ENOTSUP: JIT code is not described, or in an unknown way (.NET 7 and older, or too new);
 *   -EAGAIN: the runtime is starting;
 *   -EBADMSG: no descriptor; -E2BIG; -ENOMEM; errors of io.
 */
int clr_contract_load(const struct clr_io *io, const struct clr_anchors *anchors,
		      struct clr_contract *ret_contract, struct parse_error *err);

/*
 * Parses the text of a descriptor. pointers: the descriptor's table. err->offset counts in the
 * text.
 */
int clr_contract_parse(const char *json, size_t len, const uint64_t *pointers, size_t npointers,
		       struct clr_contract *ret_contract, struct parse_error *err);

#endif
