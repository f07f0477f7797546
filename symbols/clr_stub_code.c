#include "symbols/clr_stub_code.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define STUB_ALIGN 4 /* of all of them */
#define STUB_MOVES_MAX 24 /* of arguments, in one thunk */
#define STUB_LOADS_MAX 8 /* of a dictionary look-up */
#define STUB_INT3 0xcc

#define NAME_DICTIONARY "stub CreateDictionaryLookupHelper<DynamicHelper>"
#define NAME_SHUFFLE "stub Link<DelegateShuffleThunk>"
#define NAME_INSTANTIATING "stub Link<InstantiatingStub>"
#define NAME_UNBOXING "stub Link<UnboxingStub>"

/* The text: bytes in hexadecimal, ".." is any; blanks are skipped. I4, I8: operands of so many bytes. */
#define I4 "........"
#define I8 "................"

struct pattern {
	const char *name;
	uint8_t align, phase; /* addr % align == phase */
	bool padded; /* with int3 to a multiple of 8 */
	const char *text;
};

/* The longer one of two that begin alike comes first. Precode and call counting stubs have their data a block of 16 KiB behind their code. */
static const struct pattern patterns[] = {
	{"stub ReportStubBlock<MethodCallThunk>", 8, 0, false, "ff25fa3f0000 4c8b15fb3f0000 ff25fd3f0000 .. .. .. .. .."},
	{"stub ReportStubBlock<StubPrecode>", 8, 0, false, "4c8b15f93f0000 ff25fb3f0000 .. .. .. .. .. .. .. .. .. .. .."},
	{"stub ReportStubBlock<CallCountingStub>", 8, 0, false, "488b05f93f0000 66ff08 7406 ff25f63f0000 ff25f83f0000"},
	{"stub ReportStubBlock<VSD_ResolveStub>", 8, 0, false,
	 "488b07 52 49ba" I8 "488bd0 48c1e80c 4803c2 4835" I4 "4825" I4 "4a8b0410 49ba" I8 "483b50.. 75.. 4c3b50.. 75.. 488b40.. 5a ffe0 48b8" I8
	 "8300ff 7d.. 4983cb01 52 49ba" I8 "50 48b8" I8 "ffe0"},
	{"stub ReportStubBlock<VSD_LookupStub>", 8, 0, false, "90 48b8" I8 "50 48b8" I8 "ffe0"},
	{"stub ReportStubBlock<VSD_DispatchStub>", 8, 0, false, "48b8" I8 "483907 90 48b8" I8 "0f85" I4 "ffe0"},
	{"stub ReportStubBlock<VSD_DispatchStub>", 8, 0, false, "48b8" I8 "483907 90 48b8" I8 "75.. ffe0 48b8" I8 "ffe0"},
	{"stub ReportStubBlock<VSD_VTableStub>", 8, 0, false, "488b07 488b80" I4 "ffa0" I4 I4},
	{"stub ReportStubBlock<VSD_VTableStub>", 8, 0, false, "488b07 488b80" I4 "ff60.." I4},
	{"stub ReportStubBlock<VSD_VTableStub>", 8, 0, false, "488b07 488b40.. ffa0" I4 I4},
	{"stub ReportStubBlock<VSD_VTableStub>", 8, 0, false, "488b07 488b40.. ff60.." I4},
	{"stub CreateHelper<DynamicHelper>", 8, 0, true, "48bf" I8 "48be" I8 "e9" I4},
	{"stub CreateHelper<DynamicHelper>", 8, 0, true, "48bf" I8 "e9" I4},
	{"stub CreateHelperWithArg<DynamicHelper>", 8, 0, true, "48be" I8 "e9" I4},
	{"stub CreateHelperArgMove<DynamicHelper>", 8, 0, true, "488bf7 48bf" I8 "e9" I4},
	{"stub CreateHelperWithTwoArgs<DynamicHelper>", 8, 0, true, "48ba" I8 "48b9" I8 "e9" I4},
	{"stub CreateHelperWithTwoArgs<DynamicHelper>", 8, 0, true, "48ba" I8 "e9" I4},
	{"stub CreateReturnConst<DynamicHelper>", 8, 0, true, "48b8" I8 "c3"},
	{"stub CreateReturnIndirConst<DynamicHelper>", 8, 0, true, "48a1" I8 "4883c0.. c3"},
	{"stub CreateReturnIndirConst<DynamicHelper>", 8, 0, true, "48a1" I8 "c3"},
	{"stub UMEntryThunk<UMEntryThunk>", 8, 4, false, "49ba" I8 "48b8" I8 "48ffe0"},
	{"stub ReportStubBlock<JumpStub>", 4, 0, false, "48b8" I8 "ffe0"},
};

/* What is left of the code while it is taken apart. */
struct reader {
	const unsigned char *p, *end;
};

static unsigned int digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Takes what a text says; nothing where it is not that. */
static bool take(struct reader *r, const char *text)
{
	const unsigned char *p = r->p;

	for (; *text; text += 2) {
		while (*text == ' ')
			text++;
		if (p == r->end || (*text != '.' && *p != (digit(text[0]) << 4 | digit(text[1]))))
			return false;
		p++;
	}
	r->p = p;
	return true;
}

/* A move of an argument: between registers, or from or to the stack through rax. */
static bool take_move(struct reader *r)
{
	const unsigned char *p = r->p;
	size_t left = (size_t)(r->end - p), n;

	if (left < 3 || (p[0] & 0xfa) != 0x48 || (p[1] != 0x89 && p[1] != 0x8b))
		return false;
	switch (p[2] >> 6) {
	case 3:
		n = 3;
		break;
	case 2:
		n = 7;
		break;
	case 1:
		n = 4;
		break;
	default:
		return false;
	}
	if (left < n || (n > 3 && ((p[2] & 7) || p[0] & 1)))
		return false;
	r->p += n;
	return true;
}

static bool take_moves(struct reader *r)
{
	int n = 0;

	while (n < STUB_MOVES_MAX && take_move(r))
		n++;
	return n < STUB_MOVES_MAX;
}

/* A delegate of a static method: arguments move down by one, then to the method that the delegate holds. */
static bool take_shuffle(struct reader *r)
{
	const unsigned char *p;

	if (!take(r, "488bc4 4989fb"))
		return false;
	/* The last move looks like one of an argument. */
	for (int n = 0; n < STUB_MOVES_MAX; n++) {
		p = r->p;
		if (take(r, "4d8b53.. 4983c3.. 49ffe2") || take(r, "4d8b53.. 4983c3.. 41ffe2")) /* the latter since .NET 10 */
			return p[3] == p[7];
		if (!take_move(r))
			return false;
	}
	return false;
}

/* Arguments move up by one where need be, the instantiation comes between, and a value type's method gets what is in the box. */
static const char *take_instantiating(struct reader *r)
{
	static const char *const immediates[] = {"48bf" I8, "48be" I8, "48ba" I8, "48b9" I8, "49b8" I8, "49b9" I8};
	bool instantiated = false, unboxed;

	if (!take_moves(r))
		return NULL;
	for (size_t i = 0; i < sizeof(immediates) / sizeof(*immediates) && !instantiated; i++)
		instantiated = take(r, immediates[i]);
	/* Where code is shared by instantiations the box says which it is. */
	if (!instantiated)
		(void)take(r, "488b37");
	unboxed = take(r, "4883c708");
	if (!take(r, "48b8" I8 "ffe0"))
		return NULL;
	return instantiated ? NAME_INSTANTIATING : unboxed ? NAME_UNBOXING : NULL;
}

/* int3 up to a multiple of 8, which has to be there. */
static bool take_padding(struct reader *r, const unsigned char *code)
{
	while ((r->p - code) % 8) {
		if (r->p == r->end || *r->p != STUB_INT3)
			return false;
		r->p++;
	}
	return true;
}

/* Loads from the generic context, through a test of the size where there is one. */
static bool take_dictionary(struct reader *r)
{
	const unsigned char *code = r->p;

	if (!take(r, "488b47..") && !take(r, "488b87" I4))
		return false;
	for (int n = 1; n < STUB_LOADS_MAX; n++) {
		/* Where it has a size, that is looked at before the last load. */
		(void)take(r, "4881b8" I4 I4 "7e..");
		if (take(r, "488b40..") || take(r, "488b80" I4))
			continue;
		break;
	}
	return (take(r, "4885c0 7401 c3 48be" I8 "e9" I4) || take(r, "c3")) && take_padding(r, code);
}

/* What is not of one length. */
static const char *take_made(struct reader *r)
{
	struct reader begin = *r;
	const char *name;

	if (take_shuffle(r))
		return NAME_SHUFFLE;
	*r = begin;
	if (take_dictionary(r))
		return NAME_DICTIONARY;
	*r = begin;
	name = take_instantiating(r);
	return name;
}

int clr_stub_code_at(const unsigned char *code, size_t len, uint64_t addr, struct clr_stub_code *ret_stub)
{
	struct reader begin = {code, code + (len < CLR_STUB_CODE_MAX ? len : CLR_STUB_CODE_MAX)}, r = begin;
	const char *name = NULL;

	if (addr % STUB_ALIGN)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns) && !name; i++) {
		const struct pattern *p = &patterns[i];

		r = begin;
		if (addr % p->align == p->phase && take(&r, p->text) && (!p->padded || take_padding(&r, code)))
			name = p->name;
	}
	if (!name && addr % 8 == 0) {
		r = begin;
		name = take_made(&r);
	}
	if (!name)
		return -ENOENT;
	*ret_stub = (struct clr_stub_code){addr, (uint32_t)(r.p - code), name};
	return 0;
}

/* Whether a stub may begin so: most of what is looked at is no code. */
static bool may_begin(unsigned char c)
{
	return c == 0x48 || c == 0x49 || c == 0x4c || c == 0x4d || c == 0x90 || c == 0xff;
}

int clr_stub_code_scan(const unsigned char *code, size_t len, uint64_t addr, int (*fn)(void *ctx, const struct clr_stub_code *stub),
		       void *ctx)
{
	struct clr_stub_code run = {.name = NULL}, stub;
	int r;

	for (size_t at = 0; at < len;) {
		if (!may_begin(code[at]) || clr_stub_code_at(code + at, len - at, addr + at, &stub)) {
			at += STUB_ALIGN;
			continue;
		}
		at += (stub.bytes + STUB_ALIGN - 1) / STUB_ALIGN * STUB_ALIGN;
		if (run.name == stub.name && run.start + run.bytes == stub.start && run.bytes < UINT32_MAX / 2) {
			run.bytes += stub.bytes;
			continue;
		}
		r = run.name ? fn(ctx, &run) : 0;
		if (r)
			return r;
		run = stub;
	}
	return run.name ? fn(ctx, &run) : 0;
}
