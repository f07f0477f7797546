#include "dotnet/coreclr/stub_code.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define STUB_ALIGN 4      /* of all stubs */
#define STUB_MOVES_MAX 24 /* moves of arguments in one thunk */
#define STUB_LOADS_MAX 8  /* loads of a dictionary lookup */
#define STUB_INT3 0xcc

#define NAME_DICTIONARY "stub CreateDictionaryLookupHelper<DynamicHelper>"
#define NAME_SHUFFLE "stub Link<DelegateShuffleThunk>"
#define NAME_INSTANTIATING "stub Link<InstantiatingStub>"
#define NAME_UNBOXING "stub Link<UnboxingStub>"

/*
 * Patterns: bytes in hexadecimal; ".." matches any byte; blanks are ignored. I4, I8: operands of 4
 * and 8 bytes.
 */
#define I4 "........"
#define I8 "................"

struct pattern {
	const char *name;
	uint8_t align, phase; /* addr % align == phase */
	bool padded;          /* with int3 to a multiple of 8 */
	const char *text;
};

/*
 * If two patterns begin alike, the longer one comes first. The data of precode and call counting
 * stubs follows 16 KiB after their code.
 */
static const struct pattern patterns[] = {
	{"stub ReportStubBlock<MethodCallThunk>", 8, 0, false,
	 "ff25fa3f0000 4c8b15fb3f0000 ff25fd3f0000 .. .. .. .. .."},
	{"stub ReportStubBlock<StubPrecode>", 8, 0, false,
	 "4c8b15f93f0000 ff25fb3f0000 .. .. .. .. .. .. .. .. .. .. .."},
	{"stub ReportStubBlock<CallCountingStub>", 8, 0, false,
	 "488b05f93f0000 66ff08 7406 ff25f63f0000 ff25f83f0000"},
	{"stub ReportStubBlock<VSD_ResolveStub>", 8, 0, false,
	 "488b07 52 49ba" I8 "488bd0 48c1e80c 4803c2 4835" I4 "4825" I4 "4a8b0410 49ba" I8
	 "483b50.. 75.. 4c3b50.. 75.. 488b40.. 5a ffe0 48b8" I8 "8300ff 7d.. 4983cb01 52 49ba" I8
	 "50 48b8" I8 "ffe0"},
	{"stub ReportStubBlock<VSD_LookupStub>", 8, 0, false, "90 48b8" I8 "50 48b8" I8 "ffe0"},
	{"stub ReportStubBlock<VSD_DispatchStub>", 8, 0, false,
	 "48b8" I8 "483907 90 48b8" I8 "0f85" I4 "ffe0"},
	{"stub ReportStubBlock<VSD_DispatchStub>", 8, 0, false,
	 "48b8" I8 "483907 90 48b8" I8 "75.. ffe0 48b8" I8 "ffe0"},
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

/* Code not matched yet. */
struct cursor {
	const unsigned char *p, *end;
};

static unsigned int hex_digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Consumes the bytes of a pattern; nothing if they differ. */
static bool match(struct cursor *r, const char *text)
{
	const unsigned char *p = r->p;

	for (; *text; text += 2) {
		while (*text == ' ')
			text++;
		if (p == r->end ||
		    (*text != '.' && *p != (hex_digit(text[0]) << 4 | hex_digit(text[1]))))
			return false;
		p++;
	}
	r->p = p;
	return true;
}

/* Consumes a move of an argument: between registers, or through rax from or to the stack. */
static bool match_move(struct cursor *r)
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

static bool match_moves(struct cursor *r)
{
	int n = 0;

	while (n < STUB_MOVES_MAX && match_move(r))
		n++;
	return n < STUB_MOVES_MAX;
}

/*
 * Consumes the thunk of a delegate to a static method: moves arguments down by one, then jumps to
 * the delegate's method.
 */
static bool match_shuffle(struct cursor *r)
{
	const unsigned char *p;

	if (!match(r, "488bc4 4989fb"))
		return false;
	/* The last move has the form of a move of an argument. */
	for (int n = 0; n < STUB_MOVES_MAX; n++) {
		p = r->p;
		if (match(r, "4d8b53.. 4983c3.. 49ffe2") ||
		    match(r, "4d8b53.. 4983c3.. 41ffe2")) /* since .NET 10 */
			return p[3] == p[7];
		if (!match_move(r))
			return false;
	}
	return false;
}

/*
 * Consumes a thunk that moves arguments up by one if needed, inserts the instantiation, and unboxes
 * the object of a value type's method.
 */
static const char *match_instantiating(struct cursor *r)
{
	static const char *const immediates[] = {"48bf" I8, "48be" I8, "48ba" I8,
						 "48b9" I8, "49b8" I8, "49b9" I8};
	bool instantiated = false, unboxed;

	if (!match_moves(r))
		return NULL;
	for (size_t i = 0; i < sizeof(immediates) / sizeof(*immediates) && !instantiated; i++)
		instantiated = match(r, immediates[i]);
	/* In code shared by instantiations the boxed object gives the instantiation. */
	if (!instantiated)
		(void)match(r, "488b37");
	unboxed = match(r, "4883c708");
	if (!match(r, "48b8" I8 "ffe0"))
		return NULL;
	return instantiated ? NAME_INSTANTIATING : unboxed ? NAME_UNBOXING : NULL;
}

/* Consumes int3 up to a multiple of 8. The padding must be complete. */
static bool match_padding(struct cursor *r, const unsigned char *code)
{
	while ((r->p - code) % 8) {
		if (r->p == r->end || *r->p != STUB_INT3)
			return false;
		r->p++;
	}
	return true;
}

/*
 * Consumes a dictionary lookup: loads from the generic context, with an optional test of its size.
 */
static bool match_dictionary(struct cursor *r)
{
	const unsigned char *code = r->p;

	if (!match(r, "488b47..") && !match(r, "488b87" I4))
		return false;
	for (int n = 1; n < STUB_LOADS_MAX; n++) {
		/* A test of the size stands before the last load. */
		(void)match(r, "4881b8" I4 I4 "7e..");
		if (match(r, "488b40..") || match(r, "488b80" I4))
			continue;
		break;
	}
	return (match(r, "4885c0 7401 c3 48be" I8 "e9" I4) || match(r, "c3")) &&
	       match_padding(r, code);
}

/* Consumes a stub of variable length. */
static const char *match_variable(struct cursor *r)
{
	struct cursor begin = *r;
	const char *name;

	if (match_shuffle(r))
		return NAME_SHUFFLE;
	*r = begin;
	if (match_dictionary(r))
		return NAME_DICTIONARY;
	*r = begin;
	name = match_instantiating(r);
	return name;
}

int clr_stub_code_match(const unsigned char *code, size_t len, uint64_t addr,
			struct clr_stub_code *ret_stub)
{
	struct cursor begin = {code, code + (len < CLR_STUB_CODE_MAX ? len : CLR_STUB_CODE_MAX)},
		      r = begin;
	const char *name = NULL;

	if (addr % STUB_ALIGN)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns) && !name; i++) {
		const struct pattern *p = &patterns[i];

		r = begin;
		if (addr % p->align == p->phase && match(&r, p->text) &&
		    (!p->padded || match_padding(&r, code)))
			name = p->name;
	}
	if (!name && addr % 8 == 0) {
		r = begin;
		name = match_variable(&r);
	}
	if (!name)
		return -ENOENT;
	*ret_stub = (struct clr_stub_code){addr, (uint32_t)(r.p - code), name};
	return 0;
}

/* Whether a stub may begin with this byte. Skips quickly what is not code. */
static bool may_begin(unsigned char c)
{
	return c == 0x48 || c == 0x49 || c == 0x4c || c == 0x4d || c == 0x90 || c == 0xff;
}

int clr_stub_code_scan(const unsigned char *code, size_t len, uint64_t addr,
		       int (*fn)(void *ctx, const struct clr_stub_code *stub), void *ctx)
{
	struct clr_stub_code run = {.name = NULL}, stub;
	int r;

	for (size_t at = 0; at < len;) {
		if (!may_begin(code[at]) ||
		    clr_stub_code_match(code + at, len - at, addr + at, &stub)) {
			at += STUB_ALIGN;
			continue;
		}
		at += (stub.bytes + STUB_ALIGN - 1) / STUB_ALIGN * STUB_ALIGN;
		if (run.name == stub.name && run.start + run.bytes == stub.start &&
		    run.bytes < UINT32_MAX / 2) {
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
