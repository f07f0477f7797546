#include "dotnet/coreclr/stub_code.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define FIXUP "ff25fa3f0000 4c8b15fb3f0000 ff25fd3f0000 90488b05f9"
#define RESOLVE                                                                               \
	"488b07 52 49ba 10b63975a2550000 488bd0 48c1e80c 4803c2 4835 f8740000 4825 f87f0000 " \
	"4a8b0410 49ba 000000000e000000 483b5000 752b "                                       \
	"4c3b5008 7525 488b4010 5a ffe0 48b8 0cef0efa46560000 8300ff 7dac 4983cb01 52 49ba "  \
	"000000000e000000 50 48b8 55f7000000000000 ffe0"

/* As seen in processes with .NET 8 and 9. */
static const struct {
	const char *text, *name;
	unsigned int phase; /* addr % 8 */
} stubs[] = {
	{FIXUP, "stub ReportStubBlock<MethodCallThunk>", 0},
	{"4c8b15f93f0000 ff25fb3f0000 90ff25fa3f00004c8b15fb", "stub ReportStubBlock<StubPrecode>",
	 0},
	{"488b05f93f0000 66ff08 7406 ff25f63f0000 ff25f83f0000",
	 "stub ReportStubBlock<CallCountingStub>", 0},
	{RESOLVE, "stub ReportStubBlock<VSD_ResolveStub>", 0},
	{"90 48b8 0100000002000000 50 48b8 98f6a959a87f0000 ffe0",
	 "stub ReportStubBlock<VSD_LookupStub>", 0},
	{"48b8 f0ad48dba77f0000 483907 90 48b8 a07af6dca77f0000 0f85 17fcffff ffe0",
	 "stub ReportStubBlock<VSD_DispatchStub>", 0},
	{"48b8 f0ad48dba77f0000 483907 90 48b8 a07af6dca77f0000 75 02 ffe0 48b8 a07af6dca77f0000 "
	 "ffe0",
	 "stub ReportStubBlock<VSD_DispatchStub>", 0},
	{"488b07 488b4040 ff6038 07000000", "stub ReportStubBlock<VSD_VTableStub>", 0},
	{"488b07 488b8080000000 ff6018 43000000", "stub ReportStubBlock<VSD_VTableStub>", 0},
	{"48bf b82740e4617f0000 e9 bf19367e cc", "stub CreateHelper<DynamicHelper>", 0},
	{"488bf7 48bf b82740e4617f0000 e9 bf19367e cccccccccccc",
	 "stub CreateHelperArgMove<DynamicHelper>", 0},
	{"48b8 380000c4677f0000 c3 cccccccccc", "stub CreateReturnConst<DynamicHelper>", 0},
	{"488b4730 488b4000 488b4020 4885c0 7401 c3 48be 28b75f013a7f0000 e9 bf19367e "
	 "cccccccccccccc",
	 "stub CreateDictionaryLookupHelper<DynamicHelper>", 0},
	{"488b4730 488b4008 4881b8 00010000 20000000 7e 0d 488b8000010000 4885c0 7401 c3 48be "
	 "28b75f013a7f0000 e9 bf19367e cccccccccccccc",
	 "stub CreateDictionaryLookupHelper<DynamicHelper>", 0},
	{"488bc4 4989fb 4d8b5320 4983c320 49ffe2", "stub Link<DelegateShuffleThunk>", 0},
	{"488bc4 4989fb 4889f7 4889d6 4889ca 4c89c1 4d89c8 4c8b4808 4d8b5320 4983c320 49ffe2",
	 "stub Link<DelegateShuffleThunk>", 0},
	{"4889f2 48be 8007a9e8617f0000 48b8 8007a9e8617f0000 ffe0", "stub Link<InstantiatingStub>",
	 0},
	{"48be 8007a9e8617f0000 48b8 8007a9e8617f0000 ffe0", "stub Link<InstantiatingStub>", 0},
	{"4883c708 48b8 8007a9e8617f0000 ffe0", "stub Link<UnboxingStub>", 0},
	{"488b37 4883c708 48b8 a0174cbb6e7f0000 ffe0", "stub Link<UnboxingStub>", 0},
	{"49ba 003064003a7f0000 48b8 70cd5f013a7f0000 48ffe0", "stub UMEntryThunk<UMEntryThunk>",
	 4},
	{"48b8 70cd5f013a7f0000 ffe0", "stub ReportStubBlock<JumpStub>", 4},
};
#define STUBS (sizeof(stubs) / sizeof(*stubs))

static size_t bytes_of(const char *text, unsigned char *code)
{
	size_t n = 0;
	unsigned int byte;

	for (; *text; text++)
		if (*text != ' ') {
			assert_int_equal(sscanf(text++, "%2x", &byte), 1);
			code[n++] = (unsigned char)byte;
		}
	return n;
}

static void test_each_kind_is_reported_completely(void **state)
{
	struct clr_stub_code stub;
	unsigned char code[256];

	(void)state;
	for (size_t i = 0; i < STUBS; i++) {
		uint64_t addr = 0x7f0000001000 + stubs[i].phase;
		size_t n = bytes_of(stubs[i].text, code);

		assert_int_equal(clr_stub_code_match(code, n, addr, &stub), 0);
		assert_string_equal(stub.name, stubs[i].name);
		assert_int_equal(stub.start, addr);
		assert_int_equal(stub.bytes, n);
		/* Neither cut stubs nor stubs at an impossible place match. */
		for (size_t cut = 0; cut < n; cut++)
			if (!clr_stub_code_match(code, cut, addr, &stub))
				fail_msg("%s in %zu of %zu bytes", stub.name, cut, n);
		for (unsigned int k = 1; k < 4; k++)
			assert_int_equal(clr_stub_code_match(code, n, addr + k, &stub), -ENOENT);
	}
}

/* Changing any bit outside the operands gives no stub, or a complete stub of another kind. */
static void test_every_instruction_counts(void **state)
{
	struct clr_stub_code stub;
	unsigned char code[256];
	size_t kept = 0, changed = 0;

	(void)state;
	for (size_t i = 0; i < STUBS; i++) {
		size_t n = bytes_of(stubs[i].text, code);

		for (size_t at = 0; at < n; at++) {
			code[at] ^= 0xff;
			if (!clr_stub_code_match(code, n, stubs[i].phase, &stub)) {
				kept++;
				assert_true(at >= 2 && stub.bytes <= n);
			} else {
				changed++;
			}
			code[at] ^= 0xff;
		}
	}
	/* About half of the bits are operands. */
	assert_true(changed > 200 && kept > 200);
}

static struct clr_stub_code reported[8];
static size_t nreported;

static int take(void *ctx, const struct clr_stub_code *stub)
{
	(void)ctx;
	assert_true(nreported < sizeof(reported) / sizeof(*reported));
	reported[nreported++] = *stub;
	return 0;
}

static int refuse(void *ctx, const struct clr_stub_code *stub)
{
	(void)ctx;
	(void)stub;
	return -E2BIG;
}

static void test_a_scan_joins_equal_rules(void **state)
{
	unsigned char code[1024] = {0};
	size_t n;

	(void)state;
	n = 16 + bytes_of(FIXUP FIXUP FIXUP, code + 16);
	n += bytes_of("0000000000000000", code + n);
	n += bytes_of(FIXUP, code + n);
	/* Its last instructions alone equal a jump stub. They must not match as one. */
	n += bytes_of(RESOLVE RESOLVE, code + n);
	nreported = 0;
	assert_int_equal(clr_stub_code_scan(code, n, 0x10000, take, NULL), 0);
	assert_int_equal(nreported, 3);
	assert_int_equal(reported[0].start, 0x10010);
	assert_int_equal(reported[0].bytes, 72);
	assert_int_equal(reported[1].start, 0x10060);
	assert_int_equal(reported[1].bytes, 24);
	assert_string_equal(reported[2].name, "stub ReportStubBlock<VSD_ResolveStub>");
	assert_int_equal(reported[2].start, 0x10078);
	assert_int_equal(reported[2].start + reported[2].bytes, 0x10000 + n);
	assert_int_equal(clr_stub_code_scan(code, n, 0x10000, refuse, NULL), -E2BIG);
	assert_int_equal(clr_stub_code_scan(code, 0, 0x10000, refuse, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_is_reported_completely),
		cmocka_unit_test(test_every_instruction_counts),
		cmocka_unit_test(test_a_scan_joins_equal_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
