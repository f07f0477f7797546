/* dotnet/coreclr/contract: a runtime's description of its structures is parsed or refused with a
 * reason. */
#include "dotnet/coreclr/contract.h"
#include "tests/unit/clr_net10.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define POINTERS CLR_NET10_POINTERS

static uint64_t pointers[POINTERS];
static struct clr_contract contract;
static struct parse_error err;

static int parse(const char *json)
{
	for (int i = 0; i < POINTERS; i++)
		pointers[i] = 0x1000u + (uint64_t)i;
	memset(&contract, 0, sizeof(contract));
	err = (struct parse_error){0};
	return clr_contract_parse(json, strlen(json), pointers, POINTERS, &contract, &err);
}

/* clr_net10 with one text replaced by another. */
static int parse_with(const char *from, const char *to)
{
	char *json = malloc(sizeof(clr_net10) + strlen(to));
	const char *at = strstr(clr_net10, from);
	int r;

	assert_non_null(json);
	assert_non_null(at);
	sprintf(json, "%.*s%s%s", (int)(at - clr_net10), clr_net10, to, at + strlen(from));
	r = parse(json);
	free(json);
	return r;
}

static void dotnet_10(void **state)
{
	(void)state;
	assert_int_equal(parse(clr_net10), 0);
	assert_int_equal(contract.execution_manager, 2);
	assert_int_equal(contract.code_range_map, 0x1000 + 20);
	assert_int_equal(contract.stub_code_block_last, 0xf);
	assert_int_equal(contract.token_remainder_bits, 12);
	assert_int_equal(contract.method_alignment, 8);
	assert_string_equal(contract.architecture, "x64");
	assert_int_equal(contract.at[CLR_RANGE_MAP_TOP], 0);
	assert_int_equal(contract.at[CLR_SECTION_HEAP], 40);
	assert_int_equal(contract.at[CLR_RUNTIME_FUNCTION_BYTES], 12);
	assert_int_equal(contract.at[CLR_DYNAMIC_NAME], 32);
	assert_int_equal(contract.at[CLR_DYNAMIC_METADATA], 4);
}

/* All spellings that the format allows. */
static void other_spellings_are_accepted(void **state)
{
	(void)state;
	assert_int_equal(parse_with("\"NumDicts\":4", "\"NumDicts\":[\"0x2\",\"uint16\"]"), 0);
	assert_int_equal(contract.at[CLR_DICT_DICTS], 2);
	assert_int_equal(parse_with("[[20],\"pointer\"]", "[3]"), 0);
	assert_int_equal(contract.code_range_map, 0x1003);
	assert_int_equal(parse_with("[[20],\"pointer\"]", "\"0x7f0000001000\""), 0);
	assert_int_equal(contract.code_range_map, 0x7f0000001000);
	assert_int_equal(parse_with("\"baseline\"",
				    "\"subDescriptors\":{\"GC\":[[2],\"pointer\"]},\"baseline\""),
			 0);
	assert_int_equal(parse_with("\"globals\":{", "\"globals\":{\"A\":\"text\",\"B\":[\"text\","
						     "\"string\"],\"C\":[[2]],\"D\":-1,"),
			 0);
	assert_int_equal(parse_with("[\"x64\",\"string\"]", "\"x64\""), 0);
}

static void bad_input_is_refused(void **state)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *what;
	} cases[] = {
		{"\"ExecutionManager\":2", "\"Thread\":1", -ENOTSUP, "layout is not built in"},
		{"\"ExecutionManager\":2", "\"ExecutionManager\":3", -ENOTSUP, "format too new"},
		{"\"HeapList\":40", "\"Heaps\":40", -ENOTSUP, "lacks a field"},
		{"\"HeapList\":40", "\"HeapList\":4096", -ENOTSUP, "lacks a field"},
		{"[[20],\"pointer\"]", "[[24],\"pointer\"]", -ENOTSUP, "map of code ranges"},
		{"\"x64\"", "\"arm64\"", -ENOTSUP, "x64"},
		{"\"HeapList\":40", "\"HeapList\":\"no\"", -EBADMSG, "number"},
		{"\"HeapList\":40", "\"HeapList\":99999999999999999999", -E2BIG, "too large"},
		{"\"HeapList\":40", "\"HeapList\":[", -EBADMSG, ""},
		{"{\"version\"", "\"version\"", -EBADMSG, "object"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse_with(cases[i].from, cases[i].to), cases[i].code);
		assert_int_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.what, cases[i].what));
	}
	assert_int_equal(parse(""), -EBADMSG);
}

static char descriptor[40];

/* The descriptor is at 0x2000, its text at 0x3000, its pointers at 0x4000. */
static int read_mem(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr == 0x2000 && len <= sizeof(descriptor))
		memcpy(buf, descriptor, len);
	else if (addr == 0x3000 && len < sizeof(clr_net10))
		memcpy(buf, clr_net10, len);
	else if (addr == 0x4000 && len <= sizeof(pointers))
		memcpy(buf, pointers, len);
	else
		return -EFAULT;
	return 0;
}

static int load(uint64_t magic, uint32_t flags, uint32_t len, uint32_t npointers)
{
	const struct clr_io io = {.read = read_mem};
	const uint64_t text = 0x3000, table = 0x4000;

	memcpy(descriptor, &magic, 8);
	memcpy(descriptor + 8, &flags, 4);
	memcpy(descriptor + 12, &len, 4);
	memcpy(descriptor + 16, &text, 8);
	memcpy(descriptor + 24, &npointers, 4);
	memcpy(descriptor + 32, &table, 8);
	return clr_contract_load(&io, &(struct clr_anchors){.descriptor = 0x2000}, &contract, &err);
}

static void a_descriptor_is_read_from_a_process(void **state)
{
	const uint64_t magic = 0x0043414443434e44;
	const uint32_t len = sizeof(clr_net10) - 1;

	(void)state;
	assert_int_equal(load(magic, 1, len, POINTERS), 0);
	assert_int_equal(contract.at[CLR_SECTION_HEAP], 40);
	assert_int_equal(load(magic + 1, 1, len, POINTERS), -EBADMSG);
	assert_int_equal(load(magic, 3, len, POINTERS), -ENOTSUP);
	assert_int_equal(load(magic, 1, CLR_CONTRACT_JSON_MAX + 1, POINTERS), -E2BIG);
	assert_int_equal(load(magic, 1, len, CLR_CONTRACT_POINTERS_MAX + 1), -E2BIG);
	/* Pointers to unmapped memory, as before the module was relocated. */
	assert_int_equal(load(magic, 1, len + 1, POINTERS), -EAGAIN);
	assert_int_equal(load(magic, 1, len, POINTERS + 1), -EAGAIN);
}

/* Contents of each mapped module: a hash table whose chain of matching hashes never ends. The right
 * position has the symbol or nothing. */
#define MODULE_BYTES 0x10000u
#define RUNTIME_NAME "DotNetRuntimeContractDescriptor"

static unsigned char module[MODULE_BYTES];
static uint64_t runtime_at; /* the one with the symbol */
static size_t reads;

static int read_module(void *ctx, uint64_t addr, void *buf, size_t len)
{
	size_t at = addr % MODULE_BYTES;

	(void)ctx;
	reads++;
	if (len > MODULE_BYTES - at)
		return -EFAULT;
	memcpy(buf, module + at, len);
	if (at == 0x800 && addr - at != runtime_at)
		memset(buf, 'x', len);
	return 0;
}

static void make_module(void)
{
	Elf64_Ehdr elf = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
			  .e_phoff = 0x100,
			  .e_phnum = 2,
			  .e_phentsize = sizeof(Elf64_Phdr)};
	Elf64_Phdr headers[2] = {
		{.p_type = PT_LOAD},
		{.p_type = PT_DYNAMIC, .p_vaddr = 0x200, .p_memsz = 4 * sizeof(Elf64_Dyn)}};
	Elf64_Dyn dynamic[4] = {{DT_SYMTAB, {0x3000}},
				{DT_STRTAB, {0x800}},
				{DT_GNU_HASH, {0x9000}},
				{DT_NULL, {0}}};
	uint32_t hash = 5381, head[4] = {1, 0, 0, 0};

	for (const char *p = RUNTIME_NAME; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	hash &= ~1u;
	memcpy(module, &elf, sizeof(elf));
	memcpy(module + 0x100, headers, sizeof(headers));
	memcpy(module + 0x200, dynamic, sizeof(dynamic));
	memcpy(module + 0x800, RUNTIME_NAME, sizeof(RUNTIME_NAME));
	for (size_t at = 0x3000; at < 0x8000; at += sizeof(Elf64_Sym))
		memcpy(module + at, &(Elf64_Sym){.st_shndx = 1, .st_value = 0x1234},
		       sizeof(Elf64_Sym));
	memcpy(module + 0x9000, head, sizeof(head));
	for (size_t at = 0x9014; at < 0xd000; at += 4)
		memcpy(module + at, &hash, 4);
}

/* Very many mapped files, each with an endless chain of symbols. libcoreclr.so comes last and is
 * found. */
static void a_runtime_is_found_despite_many_hostile_files(void **state)
{
	enum { MODULES = 20000 };
	const struct clr_io io = {.read = read_module};
	const uint64_t first = 0x7f0000000000;
	struct clr_anchors found = {0};

	(void)state;
	make_module();
	for (int has_runtime = 0; has_runtime < 2; has_runtime++) {
		size_t cap = MODULES * 64 + 128, len = 0;
		char *maps = malloc(cap);

		assert_non_null(maps);
		for (uint64_t i = 0; i <= MODULES; i++) {
			uint64_t start = first + i * MODULE_BYTES;
			bool runtime = i == MODULES && has_runtime;

			len += (size_t)snprintf(maps + len, cap - len,
						"%llx-%llx r-xp 00000000 00:01 1 %s\n",
						(unsigned long long)start,
						(unsigned long long)(start + MODULE_BYTES),
						runtime ? "/app/libcoreclr.so" : "/app/other.so");
			runtime_at = runtime ? start : 1;
		}
		reads = 0;
		int r = clr_locate_in_process(&io, maps, &found);

		assert_int_equal(r, has_runtime ? 0 : -ENOENT);
		assert_true(reads > 100000 && reads < 8000000);
		free(maps);
	}
	assert_true(found.descriptor == runtime_at + 0x1234);
}

static uint64_t map_of_code;

static int read_globals(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (addr != 0x1000 || len != 8)
		return -EFAULT;
	memcpy(buf, &map_of_code, 8);
	return 0;
}

static void versions_without_a_descriptor_have_built_in_layouts(void **state)
{
	const struct clr_io io = {.read = read_globals};
	struct clr_anchors at = {.dac_table = 0x1000};
	struct clr_contract c = {0};

	(void)state;
	map_of_code = 0x7f0012345678;
	at.major = 8;
	assert_int_equal(clr_contract_load(&io, &at, &c, &err), 0);
	assert_false(c.described);
	assert_true(c.code_range_map == 0x7f0012345678);
	assert_int_equal(c.at[CLR_METHOD_BYTES], 8);
	assert_int_equal(c.type_token_shift, 16);
	assert_int_equal(c.at[CLR_MODULE_DYNAMIC], CLR_NONE);
	assert_int_equal(c.execution_manager, 1);
	at.major = 9;
	assert_int_equal(clr_contract_load(&io, &at, &c, &err), 0);
	assert_int_equal(c.at[CLR_METHOD_BYTES], 16);
	assert_int_equal(c.type_token_shift, 8);
	assert_int_equal(c.at[CLR_MODULE_DYNAMIC], 1120);
	for (at.major = 0; at.major < 8; at.major++)
		assert_int_equal(clr_contract_load(&io, &at, &c, &err), -ENOTSUP);
	at.major = 8;
	at.dac_table = 0x2000;
	assert_int_equal(clr_contract_load(&io, &at, &c, &err), -EFAULT);
	at.dac_table = 0x1000;
	map_of_code = 0;
	assert_int_equal(clr_contract_load(&io, &at, &c, &err), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_without_a_descriptor_have_built_in_layouts),
		cmocka_unit_test(dotnet_10),
		cmocka_unit_test(other_spellings_are_accepted),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(a_descriptor_is_read_from_a_process),
		cmocka_unit_test(a_runtime_is_found_despite_many_hostile_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
