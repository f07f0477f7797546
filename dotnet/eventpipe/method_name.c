#include "dotnet/eventpipe/method_name.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define TIER_SHIFT 7
#define TIER_MASK 7u

/* Unread part of a signature. */
struct signature {
	const char *p, *end;
	struct outbuf *out;
	unsigned depth;
};

const char *method_name_tier(uint32_t flags)
{
	static const char *const tiers[TIER_MASK + 1] = {
		"Unknown",          "MinOptJitted",
		"Optimized",        "QuickJitted",
		"OptimizedTier1",   "OptimizedTier1OSR",
		"InstrumentedTier", "InstrumentedTierOptimized",
	};

	return flags & METHOD_JITTED ? tiers[flags >> TIER_SHIFT & TIER_MASK] : "PreJIT";
}

static bool signature_takes(struct signature *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n))
		return false;
	s->p += n;
	return true;
}

static bool signature_at(const struct signature *s, char c)
{
	return s->p < s->end && *s->p == c;
}

/*
 * Length of a class name. Brackets belong to arrays. "`1<" begins type arguments, but
 * compiler-generated names begin with "<".
 */
static size_t signature_class(const struct signature *s)
{
	const char *p = s->p;
	unsigned open = 0;

	for (; p < s->end; p++) {
		if (*p == '<' && (p == s->p || p[-1] == '.' || p[-1] == '+' || open)) {
			open++;
			continue;
		}
		if (*p == '>' && open) {
			open--;
			continue;
		}
		if (!open && strchr(",()<>[]*& ", *p))
			break;
	}
	return (size_t)(p - s->p);
}

static int signature_type(struct signature *s);

/* Converts "<!0,class A>". */
static int signature_args(struct signature *s, char open, char close)
{
	if (!signature_at(s, open))
		return -EBADMSG;
	s->p++;
	outbuf_char(s->out, open);
	while (!signature_at(s, close)) {
		int r = 0;

		if (signature_takes(s, "..."))
			outbuf_str(s->out, "...");
		else
			r = signature_type(s);
		if (r)
			return r;
		if (signature_at(s, ',') && s->p + 1 < s->end && s->p[1] != close) {
			s->p++;
			outbuf_char(s->out, ',');
		} else if (!signature_at(s, close)) {
			return -EBADMSG;
		}
	}
	s->p++;
	outbuf_char(s->out, close);
	return 0;
}

/* Converts the suffixes of a type: "[]", "[,]", "*", "&", " pinned". */
static void signature_suffixes(struct signature *s)
{
	for (;;) {
		if (signature_takes(s, "[]")) {
			outbuf_str(s->out, "[]");
		} else if (signature_at(s, '[')) {
			/*
			 * Compilers give each dimension of an array the lower bound 0. Only the
			 * perf map shows it.
			 */
			for (s->p++; s->p < s->end && *s->p == ','; s->p++)
				outbuf_str(s->out, s->p[-1] == '[' ? "[0...,0..." : ",0...");
			if (!signature_takes(s, "]"))
				return;
			outbuf_char(s->out, ']');
		} else if (signature_at(s, '*') || signature_at(s, '&')) {
			outbuf_char(s->out, *s->p++);
		} else if (signature_takes(s, " pinned")) {
			outbuf_str(s->out, " pinned");
		} else {
			return;
		}
	}
}

static int signature_named(struct signature *s, const char *word)
{
	size_t n = signature_class(s);
	static const struct {
		const char *from, *to;
	} known[] = {{"System.String", "string"}, {"System.Object", "object"}};

	if (!n)
		return -EBADMSG;
	for (size_t i = 0; i < 2 && !strcmp(word, "class "); i++) {
		if (n == strlen(known[i].from) && !memcmp(s->p, known[i].from, n)) {
			s->p += n;
			outbuf_str(s->out, known[i].to);
			return 0;
		}
	}
	outbuf_str(s->out, word);
	outbuf_put(s->out, s->p, n);
	s->p += n;
	return signature_at(s, '<') ? signature_args(s, '<', '>') : 0;
}

/*
 * Converts "required_modifier System.Runtime.InteropServices.InAttribute int32&" into "int32&
 * modreq(...)".
 */
static int signature_modified(struct signature *s, const char *word)
{
	const char *name = s->p;
	size_t n = signature_class(s);

	s->p += n;
	if (!n || !signature_takes(s, " "))
		return -EBADMSG;
	int r = signature_type(s);

	outbuf_str(s->out, word);
	outbuf_put(s->out, name, n);
	outbuf_char(s->out, ')');
	return r;
}

static int signature_plain(struct signature *s)
{
	static const struct {
		const char *from, *to;
	} words[] = {
		{"unsigned int8", "uint8"},
		{"unsigned int16", "uint16"},
		{"unsigned int32", "uint32"},
		{"unsigned int64", "uint64"},
		{"unsigned int", "native uint"},
		{"int8", "int8"},
		{"int16", "int16"},
		{"int32", "int32"},
		{"int64", "int64"},
		{"int", "native int"},
		{"wchar", "char"},
		{"refany", "typedref"},
		{"void", "void"},
		{"bool", "bool"},
		{"float32", "float32"},
		{"float64", "float64"},
	};
	const char *p = s->p;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (signature_takes(s, words[i].from)) {
			outbuf_str(s->out, words[i].to);
			return 0;
		}
	}
	/* A type that a dynamic method names only by its address. */
	if (signature_takes(s, "pMT: ")) {
		for (p = s->p; s->p < s->end && strchr("0123456789abcdefx", *s->p);)
			s->p++;
		outbuf_str(s->out, "? /* MT: ");
		outbuf_put(s->out, p, (size_t)(s->p - p));
		outbuf_str(s->out, " */");
		return signature_at(s, '<') ? signature_args(s, '<', '>') : 0;
	}
	/* !0, !!1 */
	while (signature_at(s, '!'))
		s->p++;
	const char *digits = s->p;

	while (digits > p && s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	outbuf_put(s->out, p, (size_t)(s->p - p));
	return s->p > digits ? 0 : -EBADMSG;
}

static int signature_type(struct signature *s)
{
	int r;

	if (++s->depth > METHOD_NAME_DEPTH_MAX)
		return -EBADMSG;
	if (signature_takes(s, "class "))
		r = signature_named(s, "class ");
	else if (signature_takes(s, "value class "))
		r = signature_named(s, "valuetype ");
	else if (signature_takes(s, "required_modifier "))
		r = signature_modified(s, " modreq(");
	else if (signature_takes(s, "optional_modifier "))
		r = signature_modified(s, " modopt(");
	else
		r = signature_plain(s);
	s->depth--;
	if (!r)
		signature_suffixes(s);
	return r;
}

static int signature_whole(struct signature *s, const char *name, size_t name_len)
{
	static const char *const conventions[] = {"unmanaged cdecl ",
						  "unmanaged stdcall ",
						  "unmanaged thiscall ",
						  "unmanaged fastcall ",
						  "vararg ",
						  "native vararg "};

	if (signature_takes(s, "instance "))
		outbuf_str(s->out, "instance ");
	signature_takes(s, "generic ");
	for (size_t i = 0; i < sizeof(conventions) / sizeof(conventions[0]); i++)
		if (signature_takes(s, conventions[i]))
			outbuf_str(s->out, conventions[i]);
	int r = signature_type(s);

	if (r || !signature_takes(s, "  "))
		return -EBADMSG;
	outbuf_char(s->out, ' ');
	outbuf_put(s->out, name, name_len);
	r = signature_args(s, '(', ')');
	return r || s->p != s->end ? -EBADMSG : 0;
}

int method_name_signature(const char *signature, size_t len, const char *name, size_t name_len,
			  struct outbuf *out)
{
	struct outbuf text = outbuf_to(-1);
	struct signature s = {.p = signature, .end = signature + len, .out = &text};
	int r = signature_whole(&s, name, name_len);

	if (!r)
		r = text.error;
	if (!r) {
		outbuf_put(out, text.data, text.len);
	} else {
		outbuf_put(out, name, name_len);
		outbuf_put(out, signature, len);
	}
	outbuf_close(&text);
	return r;
}
