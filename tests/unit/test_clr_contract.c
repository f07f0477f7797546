/* symbols/clr_contract: what a runtime tells of its structures is understood, or refused in words. */
#include "symbols/clr_contract.h"
#include "tests/unit/clr_net10.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
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

/* clr_net10 with one text in the place of another. */
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

/* All ways in which the format may be written. */
static void other_spellings(void **state)
{
	(void)state;
	assert_int_equal(parse_with("\"NumDicts\":4", "\"NumDicts\":[\"0x2\",\"uint16\"]"), 0);
	assert_int_equal(contract.at[CLR_DICT_DICTS], 2);
	assert_int_equal(parse_with("[[20],\"pointer\"]", "[3]"), 0);
	assert_int_equal(contract.code_range_map, 0x1003);
	assert_int_equal(parse_with("[[20],\"pointer\"]", "\"0x7f0000001000\""), 0);
	assert_int_equal(contract.code_range_map, 0x7f0000001000);
	assert_int_equal(parse_with("\"baseline\"", "\"subDescriptors\":{\"GC\":[[2],\"pointer\"]},\"baseline\""), 0);
	assert_int_equal(parse_with("\"globals\":{", "\"globals\":{\"A\":\"text\",\"B\":[\"text\",\"string\"],\"C\":[[2]],\"D\":-1,"), 0);
	assert_int_equal(parse_with("[\"x64\",\"string\"]", "\"x64\""), 0);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *what;
	} cases[] = {
		{"\"ExecutionManager\":2", "\"Thread\":1", -ENOTSUP, ".NET 10 is the first"},
		{"\"ExecutionManager\":2", "\"ExecutionManager\":3", -ENOTSUP, "newer way"},
		{"\"HeapList\":40", "\"Heaps\":40", -ENOTSUP, "lacks a field"},
		{"\"HeapList\":40", "\"HeapList\":4096", -ENOTSUP, "lacks a field"},
		{"[[20],\"pointer\"]", "[[24],\"pointer\"]", -ENOTSUP, "map of its code"},
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
	return clr_contract_load(&io, 0x2000, &contract, &err);
}

static void out_of_memory_of_a_process(void **state)
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
	assert_int_equal(load(magic, 1, len + 1, POINTERS), -EFAULT);
	assert_int_equal(load(magic, 1, len, POINTERS + 1), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dotnet_10),
		cmocka_unit_test(other_spellings),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(out_of_memory_of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
