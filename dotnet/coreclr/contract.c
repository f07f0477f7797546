#include "dotnet/coreclr/contract.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/reader.h"
#include "dotnet/coreclr/layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x0043414443434e44u /* "DNCCDAC", read as little-endian */
#define FLAG_POINTERS_32 2u
#define DESCRIPTOR_BYTES 40
#define EXECUTION_MANAGER_MAX 2
#define FAR 65536 /* limit for fields that are read alone; larger than any structure */

static const struct {
	const char *type, *field; /* "!" is the size of the type */
	uint32_t max;             /* keeps a structure within the buffers of its readers */
} fields[CLR_FIELDS] = {
	[CLR_RANGE_MAP_TOP] = {"RangeSectionMap", "TopLevelData", 248},
	[CLR_FRAGMENT_BEGIN] = {"RangeSectionFragment", "RangeBegin", 248},
	[CLR_FRAGMENT_END] = {"RangeSectionFragment", "RangeEndOpen", 248},
	[CLR_FRAGMENT_SECTION] = {"RangeSectionFragment", "RangeSection", 248},
	[CLR_FRAGMENT_NEXT] = {"RangeSectionFragment", "Next", 248},
	[CLR_SECTION_BEGIN] = {"RangeSection", "RangeBegin", 248},
	[CLR_SECTION_END] = {"RangeSection", "RangeEndOpen", 248},
	[CLR_SECTION_FLAGS] = {"RangeSection", "Flags", 248},
	[CLR_SECTION_HEAP] = {"RangeSection", "HeapList", 248},
	[CLR_SECTION_R2R] = {"RangeSection", "R2RModule", 248},
	[CLR_JIT_CODE_START] = {"CodeHeapListNode", "StartAddress", 248},
	[CLR_JIT_CODE_END] = {"CodeHeapListNode", "EndAddress", 248},
	[CLR_JIT_CODE_MAP_BASE] = {"CodeHeapListNode", "MapBase", 248},
	[CLR_JIT_CODE_MAP] = {"CodeHeapListNode", "HeaderMap", 248},
	[CLR_CODE_METHOD] = {"RealCodeHeader", "MethodDesc", 56},
	[CLR_CODE_UNWINDS] = {"RealCodeHeader", "NumUnwindInfos", 60},
	[CLR_CODE_UNWIND] = {"RealCodeHeader", "UnwindInfos", 48},
	[CLR_RUNTIME_FUNCTION_BYTES] = {"RuntimeFunction", "!", 16},
	[CLR_RUNTIME_FUNCTION_BEGIN] = {"RuntimeFunction", "BeginAddress", 12},
	[CLR_RUNTIME_FUNCTION_END] = {"RuntimeFunction", "EndAddress", 12},
	[CLR_METHOD_BYTES] = {"MethodDesc", "!", 32},
	[CLR_METHOD_CHUNK_INDEX] = {"MethodDesc", "ChunkIndex", 31},
	[CLR_METHOD_FLAGS] = {"MethodDesc", "Flags", 30},
	[CLR_METHOD_TOKEN] = {"MethodDesc", "Flags3AndTokenRemainder", 30},
	[CLR_CHUNK_BYTES] = {"MethodDescChunk", "!", 64},
	[CLR_CHUNK_TYPE] = {"MethodDescChunk", "MethodTable", 56},
	[CLR_CHUNK_TOKEN] = {"MethodDescChunk", "FlagsAndTokenRange", 62},
	[CLR_STORED_SIG] = {"StoredSigMethodDesc", "Sig", 88},
	[CLR_STORED_SIG_LEN] = {"StoredSigMethodDesc", "cSig", 92},
	[CLR_DYNAMIC_NAME] = {"DynamicMethodDesc", "MethodName", 88},
	[CLR_DYNAMIC_BYTES] = {"DynamicMethodDesc", "!", 96},
	[CLR_TYPE_BYTES] = {"MethodTable", "!", FAR},
	[CLR_TYPE_FLAGS] = {"MethodTable", "MTFlags", 184},
	[CLR_TYPE_FLAGS2] = {"MethodTable", "MTFlags2", 184},
	[CLR_TYPE_CLASS] = {"MethodTable", "EEClassOrCanonMT", 184},
	[CLR_TYPE_MODULE] = {"MethodTable", "Module", 184},
	[CLR_TYPE_INST] = {"MethodTable", "PerInstInfo", 184},
	[CLR_DICT_BYTES] = {"GenericsDictInfo", "!", 64},
	[CLR_DICT_DICTS] = {"GenericsDictInfo", "NumDicts", 6},
	[CLR_DICT_ARGS] = {"GenericsDictInfo", "NumTypeArgs", 6},
	[CLR_ARRAY_RANK] = {"ArrayClass", "Rank", FAR},
	[CLR_DESC_KIND] = {"TypeDesc", "TypeAndFlags", 184},
	[CLR_PARAM_ARG] = {"ParamTypeDesc", "TypeArg", 184},
	[CLR_MODULE_PEASSEMBLY] = {"Module", "PEAssembly", FAR},
	[CLR_MODULE_DYNAMIC] = {"Module", "DynamicMetadata", FAR},
	[CLR_PEASSEMBLY_IMAGE] = {"PEAssembly", "PEImage", FAR},
	[CLR_IMAGE_LAYOUT] = {"PEImage", "LoadedImageLayout", FAR},
	[CLR_LAYOUT_BASE] = {"PEImageLayout", "Base", FAR},
	[CLR_LAYOUT_SIZE] = {"PEImageLayout", "Size", FAR},
	[CLR_LAYOUT_FLAGS] = {"PEImageLayout", "Flags", FAR},
	[CLR_DYNAMIC_METADATA_SIZE] = {"DynamicMetadata", "Size", FAR},
	[CLR_PRECODE] = {"PlatformMetadata", "PrecodeMachineDescriptor", FAR},
	[CLR_FIXUP_BYTES] = {"PrecodeMachineDescriptor", "FixupBytes", FAR},
	[CLR_FIXUP_IGNORED] = {"PrecodeMachineDescriptor", "FixupIgnoredBytes", FAR},
	[CLR_FIXUP_SIZE] = {"PrecodeMachineDescriptor", "FixupStubPrecodeSize", FAR},
	[CLR_STUB_BYTES] = {"PrecodeMachineDescriptor", "StubBytes", FAR},
	[CLR_STUB_IGNORED] = {"PrecodeMachineDescriptor", "StubIgnoredBytes", FAR},
	[CLR_STUB_SIZE] = {"PrecodeMachineDescriptor", "StubPrecodeSize", FAR},
	[CLR_CODE_GC_INFO] = {"RealCodeHeader", "GCInfo", 56},
	[CLR_CODE_DEBUG_INFO] = {"RealCodeHeader", "DebugInfo", 56},
	[CLR_MODULE_PATH] = {"Module", "Path", FAR},
	[CLR_DYNAMIC_METADATA] = {"DynamicMetadata", "Data", FAR},
	[CLR_RUNTIME_FUNCTION_UNWIND] = {"RuntimeFunction", "UnwindData", 12},
};

/* State while parsing the text. */
struct parsed {
	struct json json;
	struct clr_contract *contract;
	const uint64_t *pointers;
	size_t npointers;
	bool has_versions;
};

/* Reads a number in the runtime's spellings: 16, "16", "0x10". */
static int read_number(struct json *j, uint64_t *ret)
{
	AUTO_FREE char *text = NULL;
	char *end;

	if (json_peek(j) != '"')
		return json_u64(j, ret);
	if (json_string(j, &text))
		return j->error;
	errno = 0;
	*ret = strtoull(text, &end, 0);
	return errno || end == text || *end || *text == '-' ? -EDOM : 0;
}

/* Reads an offset: OFFSET or [OFFSET, type]. */
static int read_offset(struct json *j, uint64_t *ret)
{

	if (json_peek(j) != '[')
		return read_number(j, ret);
	if (json_array(j) || json_item(j) <= 0 || read_number(j, ret))
		return j->error ? j->error : -EBADMSG;
	while (json_item(j) > 0)
		(void)json_skip(j);
	return j->error;
}

/* The place for a field's offset; NULL: a field that this program does not use. */
static uint32_t *field_place(struct clr_contract *c, const char *type, const char *field,
			     uint32_t *ret_max)
{
	for (int i = 0; i < CLR_FIELDS; i++) {
		if (strcmp(fields[i].type, type) || strcmp(fields[i].field, field))
			continue;
		*ret_max = fields[i].max;
		return &c->at[i];
	}
	return NULL;
}

static int parse_type(struct parsed *p, const char *type)
{
	struct json *j = &p->json;
	int r = json_object(j);
	uint64_t x = 0;
	uint32_t max;
	char *key;

	while (!r && (r = json_key(j, &key)) > 0) {
		uint32_t *at = field_place(p->contract, type, key, &max);

		free(key);
		r = at ? read_offset(j, &x) : json_skip(j);
		if (!r && at)
			*at = x <= max ? (uint32_t)x : CLR_NONE;
	}
	return r;
}

/*
 * Reads NUMBER, [NUMBER, type], [INDEX] or [[INDEX], type]. An index selects an entry of the table
 * of pointers.
 */
static int parse_value(struct parsed *p, uint64_t *ret)
{
	struct json *j = &p->json;
	bool list = json_peek(j) == '[';
	int r;

	if (list && (json_array(j) || json_item(j) <= 0))
		return j->error ? j->error : -EBADMSG;
	bool indirect = json_peek(j) == '[', alone = list;

	r = indirect ? read_offset(j, ret) : read_number(j, ret);
	if (r)
		return r;
	for (; list && json_item(j) > 0; alone = false)
		(void)json_skip(j);
	if (j->error)
		return j->error;
	if (indirect || alone)
		*ret = *ret < p->npointers ? p->pointers[*ret] : 0;
	return 0;
}

/* Reads "TEXT" or ["TEXT", type]. */
static int parse_architecture(struct parsed *p)
{
	struct json *j = &p->json;
	bool list = json_peek(j) == '[';
	AUTO_FREE char *text = NULL;

	if (list && (json_array(j) || json_item(j) <= 0))
		return j->error ? j->error : -EBADMSG;
	if (json_string(j, &text))
		return j->error;
	if (strlen(text) < sizeof(p->contract->architecture))
		strcpy(p->contract->architecture, text);
	while (list && json_item(j) > 0)
		(void)json_skip(j);
	return j->error;
}

static int parse_global(struct parsed *p, const char *name)
{
	struct clr_contract *c = p->contract;
	const struct {
		const char *name;
		uint64_t *value;
	} ours[] = {
		{"ExecutionManagerCodeRangeMapAddress", &c->code_range_map},
		{"PlatformMetadata", &c->platform_metadata},
		{"StubCodeBlockLast", &c->stub_code_block_last},
		{"MethodDescTokenRemainderBitCount", &c->token_remainder_bits},
		{"MethodDescAlignment", &c->method_alignment},
		{CLR_LAYOUTS_TOKEN_SHIFT, &c->type_token_shift},
		{CLR_LAYOUTS_EMITTED, &c->emitted},
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(name, ours[i].name))
			return parse_value(p, ours[i].value);
	return strcmp(name, "Architecture") ? json_skip(&p->json) : parse_architecture(p);
}

static int parse_contracts(struct parsed *p)
{
	struct json *j = &p->json;
	int r = json_object(j);
	uint64_t x = 0;
	char *key;

	while (!r && (r = json_key(j, &key)) > 0) {
		bool ours = !strcmp(key, "ExecutionManager");

		free(key);
		r = ours && json_peek(j) != '"' ? json_u64(j, &x) : json_skip(j);
		if (!r && ours) {
			p->contract->execution_manager =
				x <= EXECUTION_MANAGER_MAX ? (uint32_t)x : CLR_NONE;
			p->has_versions = true;
		}
	}
	return r;
}

static int parse_each(struct parsed *p, int (*parse)(struct parsed *p, const char *name))
{
	int r = json_object(&p->json);
	char *key;

	while (!r && (r = json_key(&p->json, &key)) > 0) {
		r = parse(p, key);
		free(key);
	}
	return r;
}

static int parse_document(struct parsed *p)
{
	struct json *j = &p->json;
	int r = json_object(j);
	char *key;

	while (!r && (r = json_key(j, &key)) > 0) {
		if (!strcmp(key, "contracts"))
			r = parse_contracts(p);
		else if (!strcmp(key, "types"))
			r = parse_each(p, parse_type);
		else if (!strcmp(key, "globals"))
			r = parse_each(p, parse_global);
		else
			r = json_skip(j);
		free(key);
	}
	return r ? r : json_end(j);
}

/*
 * Sets the offset of a method's debug information. The description of .NET 10 lacks it. It is
 * the first member if the other members are where the sources have them (src/coreclr/vm/codeman.h,
 * RealCodeHeader). Runtimes that describe it store it in another form, which this program does not
 * read.
 */
static void place_debug_info(struct clr_contract *c)
{
	bool as_sources = c->at[CLR_CODE_GC_INFO] == 16 && c->at[CLR_CODE_METHOD] == 24 &&
			  c->at[CLR_CODE_UNWINDS] == 32;

	c->at[CLR_CODE_DEBUG_INFO] =
		c->at[CLR_CODE_DEBUG_INFO] == CLR_NONE && as_sources ? 0 : CLR_NONE;
}

/* Checks that the contract has everything needed to read JIT code. */
static int check_complete(const struct parsed *p, struct parse_error *err)
{
	const struct clr_contract *c = p->contract;

	if (!p->has_versions)
		return parse_fail(err, -ENOTSUP,
				  "the runtime does not describe its JIT code, and its layout is "
				  "not built in",
				  0);
	if (c->execution_manager == CLR_NONE || !c->execution_manager)
		return parse_fail(
			err, -ENOTSUP,
			"the runtime describes its JIT code in a format too new for this program",
			0);
	/* Only on x64 does unwind information hold ends, which give the sizes of methods. */
	if (strcmp(c->architecture, "x64") != 0)
		return parse_fail(err, -ENOTSUP, "JIT code is read from memory on x64 only", 0);
	for (int i = 0; i < CLR_OPTIONAL; i++)
		if (c->at[i] == CLR_NONE)
			return parse_fail(err, -ENOTSUP,
					  "the runtime's description of its JIT code lacks a "
					  "field, or has an invalid offset for it",
					  0);
	if (c->at[CLR_MODULE_DYNAMIC] != CLR_NONE &&
	    (c->at[CLR_DYNAMIC_METADATA_SIZE] == CLR_NONE ||
	     c->at[CLR_DYNAMIC_METADATA] == CLR_NONE))
		return parse_fail(
			err, -ENOTSUP,
			"the runtime's description of metadata made at run time is incomplete", 0);
	if (!c->code_range_map)
		return parse_fail(err, -ENOTSUP,
				  "the runtime's description lacks the map of code ranges", 0);
	if (c->token_remainder_bits > 16 || c->type_token_shift > 31 || !c->method_alignment ||
	    c->method_alignment > 64 || c->stub_code_block_last > 0xff)
		return parse_fail(err, -ENOTSUP,
				  "the runtime describes its methods in an unknown format", 0);
	return 0;
}

int clr_contract_parse(const char *json, size_t len, const uint64_t *pointers, size_t npointers,
		       struct clr_contract *ret_contract, struct parse_error *err)
{
	struct clr_contract c = {.stub_code_block_last = 0xf,
				 .token_remainder_bits = 12,
				 .method_alignment = 8,
				 .type_token_shift = 8};
	struct parsed p = {.json = json_of(json, len),
			   .contract = &c,
			   .pointers = pointers,
			   .npointers = npointers};

	for (int i = 0; i < CLR_FIELDS; i++)
		c.at[i] = CLR_NONE;
	c.at[CLR_DICT_BYTES] = 8; /* it ends where the dictionaries begin */
	int r = parse_document(&p);

	if (r)
		return parse_fail(err, r == -EDOM ? -EBADMSG : r,
				  p.json.what ? p.json.what : "expected a number", p.json.pos);
	r = check_complete(&p, err);
	if (!r) {
		place_debug_info(&c);
		*ret_contract = c;
	}
	return r;
}

static int load_described(const struct clr_io *io, uint64_t descriptor,
			  struct clr_contract *ret_contract, struct parse_error *err)
{
	unsigned char head[DESCRIPTOR_BYTES];
	AUTO_FREE uint64_t *pointers = NULL;
	AUTO_FREE char *json = NULL;
	int r = io->read(io->ctx, descriptor, head, sizeof(head));

	if (r)
		return parse_fail(err, r, "the runtime's contract descriptor could not be read", 0);
	struct reader h = reader_of(head, sizeof(head));

	if (reader_u64(&h) != MAGIC)
		return parse_fail(err, -EBADMSG, "not a contract descriptor", 0);
	if (reader_u32(&h) & FLAG_POINTERS_32)
		return parse_fail(err, -ENOTSUP, "the runtime has 32 bits, not 64", 8);
	uint32_t len = reader_u32(&h);
	uint64_t json_addr = reader_u64(&h);
	uint32_t npointers = reader_u32(&h);

	reader_skip(&h, 4);
	uint64_t table = reader_u64(&h);

	if (len > CLR_CONTRACT_JSON_MAX || npointers > CLR_CONTRACT_POINTERS_MAX)
		return parse_fail(err, -E2BIG, "the contract descriptor is too large", 12);
	json = malloc(len + 1);
	pointers = calloc(npointers + 1, sizeof(*pointers));
	if (!json || !pointers)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	r = io->read(io->ctx, json_addr, json, len);
	if (!r)
		r = io->read(io->ctx, table, pointers, npointers * sizeof(*pointers));
	/*
	 * While the runtime is being loaded, its pointers are not yet relocated and may be invalid.
	 */
	if (r == -EFAULT)
		return parse_fail(err, -EAGAIN,
				  "the runtime's contract descriptor has invalid pointers (the "
				  "runtime may be starting)",
				  16);
	if (r)
		return parse_fail(err, r, "the runtime's contract descriptor could not be read",
				  16);
	r = clr_contract_parse(json, len, pointers, npointers, ret_contract, err);
	ret_contract->described = !r;
	return r;
}

static int load_known(const struct clr_io *io, uint64_t dac_table, const char *layout,
		      struct clr_contract *ret_contract, struct parse_error *err)
{
	uint64_t code_range_map;
	int r = io->read(io->ctx, dac_table, &code_range_map, sizeof(code_range_map));

	if (r)
		return parse_fail(err, r, "the runtime's table of globals could not be read", 0);
	if (!code_range_map)
		return parse_fail(err, -EAGAIN, "the runtime has not started yet", 0);
	return clr_contract_parse(layout, strlen(layout), &code_range_map, 1, ret_contract, err);
}

int clr_contract_load(const struct clr_io *io, const struct clr_anchors *anchors,
		      struct clr_contract *ret_contract, struct parse_error *err)
{
	const char *layout = anchors->dac_table ? clr_layouts_find(anchors->major) : NULL;
	int r = -ENOTSUP;

	ret_contract->described = false;
	if (anchors->descriptor)
		r = load_described(io, anchors->descriptor, ret_contract, err);
	else
		(void)parse_fail(
			err, r,
			"the runtime is too old; reading its JIT code needs .NET 8 or later", 0);
	return r == -ENOTSUP && layout
		       ? load_known(io, anchors->dac_table, layout, ret_contract, err)
		       : r;
}
