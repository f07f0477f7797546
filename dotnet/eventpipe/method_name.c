#include "dotnet/eventpipe/method_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TIER_SHIFT 7
#define TIER_MASK 7u
#define SPLIT_BRACKETS_MAX 16 /* in the name of a method */

/* Primitive types: in events, and in the perf map. */
static const struct {
	const char *event, *perf;
} signature_words[] = {
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

/* Classes that the perf map spells as primitive types. */
static const struct {
	const char *event, *perf;
} signature_known[] = {{"System.String", "string"}, {"System.Object", "object"}};

static const char *const signature_conventions[] = {
	"unmanaged cdecl ", "unmanaged stdcall ", "unmanaged thiscall ", "unmanaged fastcall ",
	"vararg ",          "native vararg "};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

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
		if (*p == '<' &&
		    (p == s->p || p[-1] == '.' || p[-1] == '+' || p[-1] == '/' || open)) {
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

static void signature_convention(struct signature *s)
{
	if (signature_takes(s, "instance "))
		outbuf_str(s->out, "instance ");
	signature_takes(s, "generic ");
	for (size_t i = 0; i < COUNT(signature_conventions); i++)
		if (signature_takes(s, signature_conventions[i]))
			outbuf_str(s->out, signature_conventions[i]);
}

/* Converts a list in brackets such as "<!0,class A>". type: converts one of it. */
static int signature_list(struct signature *s, char open, char close,
			  int (*type)(struct signature *s))
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
			r = type(s);
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

static int signature_args(struct signature *s, char open, char close)
{
	return signature_list(s, open, close, signature_type);
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

	if (!n)
		return -EBADMSG;
	for (size_t i = 0; i < COUNT(signature_known) && !strcmp(word, "class "); i++) {
		if (n == strlen(signature_known[i].event) &&
		    !memcmp(s->p, signature_known[i].event, n)) {
			s->p += n;
			outbuf_str(s->out, signature_known[i].perf);
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
	const char *p = s->p;

	for (size_t i = 0; i < COUNT(signature_words); i++) {
		if (signature_takes(s, signature_words[i].event)) {
			outbuf_str(s->out, signature_words[i].perf);
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

/* Converts "fnptr void(int32)" into "method void *(int32)". */
static int signature_function(struct signature *s)
{
	outbuf_str(s->out, "method ");
	signature_convention(s);
	int r = signature_type(s);

	outbuf_str(s->out, " *");
	return r ? r : signature_args(s, '(', ')');
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
	else if (signature_takes(s, "fnptr "))
		r = signature_function(s);
	else
		r = signature_plain(s);
	s->depth--;
	if (!r)
		signature_suffixes(s);
	return r;
}

static int signature_whole(struct signature *s, const char *name, size_t name_len)
{
	signature_convention(s);
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

/* The other way: from the perf map's spelling to that of events. */

static int perf_type(struct signature *s);

/* Ends of words in a signature. */
static bool perf_at_end(const struct signature *s)
{
	return s->p == s->end || strchr(",()<>[]*& ", *s->p) != NULL;
}

static bool perf_takes_word(struct signature *s, const char *word)
{
	const char *p = s->p;

	if (signature_takes(s, word) && perf_at_end(s))
		return true;
	s->p = p;
	return false;
}

/* Moves past text up to a mark, and past that. False: there is no mark. */
static bool perf_skips(struct signature *s, const char *mark)
{
	const char *found = memmem(s->p, (size_t)(s->end - s->p), mark, strlen(mark));

	s->p = found ? found + strlen(mark) : s->p;
	return found != NULL;
}

static int perf_args(struct signature *s, char open, char close)
{
	return signature_list(s, open, close, perf_type);
}

/* Converts "[ASSEMBLY]N.OUTER/INNER<...>" into "INNER<...>": events omit the outer classes. */
static int perf_named(struct signature *s)
{
	if (signature_at(s, '[') && !perf_skips(s, "]"))
		return -EBADMSG;
	size_t n = signature_class(s);
	const char *name = s->p, *slash = memrchr(name, '/', n);

	if (!n)
		return -EBADMSG;
	s->p += n;
	name = slash ? slash + 1 : name;
	outbuf_put(s->out, name, (size_t)(s->p - name));
	return signature_at(s, '<') ? perf_args(s, '<', '>') : 0;
}

static void perf_convention(struct signature *s)
{
	signature_takes(s, "explicit ");
	signature_convention(s);
	signature_takes(s, "unmanaged ");
}

static int perf_function(struct signature *s)
{
	outbuf_str(s->out, "fnptr ");
	perf_convention(s);
	int r = perf_type(s);

	return r ? r : signature_takes(s, " *") ? perf_args(s, '(', ')') : -EBADMSG;
}

static int perf_plain(struct signature *s)
{
	const char *p = s->p;

	for (size_t i = 0; i < COUNT(signature_words); i++) {
		if (perf_takes_word(s, signature_words[i].perf)) {
			outbuf_str(s->out, signature_words[i].event);
			return 0;
		}
	}
	for (size_t i = 0; i < COUNT(signature_known); i++) {
		if (perf_takes_word(s, signature_known[i].perf)) {
			outbuf_str(s->out, "class ");
			outbuf_str(s->out, signature_known[i].event);
			return 0;
		}
	}
	while (signature_at(s, '!'))
		s->p++;
	if (s->p > p) {
		const char *digits = s->p;

		while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
			s->p++;
		outbuf_put(s->out, p, (size_t)(s->p - p));
		return s->p > digits ? 0 : -EBADMSG;
	}
	/* A type of a dynamic method: "NAME /" "* MT: 0x123 *" "/". */
	s->p += signature_class(s);
	if (!signature_takes(s, " /* MT: "))
		return -EBADMSG;
	p = s->p;
	if (!perf_skips(s, " */"))
		return -EBADMSG;
	outbuf_str(s->out, "pMT: ");
	outbuf_put(s->out, p, (size_t)(s->p - p) - strlen(" */"));
	return signature_at(s, '<') ? perf_args(s, '<', '>') : 0;
}

/* Moves " modreq(X)" behind the type that begins at `at` to its front. */
static int perf_modifier(struct signature *s, size_t at, const char *word)
{
	size_t end = s->out->len;
	int r;

	outbuf_str(s->out, word);
	if (!signature_takes(s, "class "))
		signature_takes(s, "valuetype ");
	r = perf_named(s);
	outbuf_char(s->out, ' ');
	if (r || s->out->error)
		return r ? r : s->out->error;
	size_t n = s->out->len - end;
	char *front = strndup(s->out->data + end, n);

	if (!front)
		return -ENOMEM;
	memmove(s->out->data + at + n, s->out->data + at, end - at);
	memcpy(s->out->data + at, front, n);
	free(front);
	return signature_takes(s, ")") ? 0 : -EBADMSG;
}

static int perf_suffixes(struct signature *s, size_t at)
{
	int r = 0;

	while (!r) {
		if (signature_at(s, '[')) {
			/* Only the perf map shows bounds. */
			const char *close = memchr(s->p, ']', (size_t)(s->end - s->p));

			for (; close && s->p <= close; s->p++)
				if (strchr("[],", *s->p))
					outbuf_char(s->out, *s->p);
			r = close ? 0 : -EBADMSG;
		} else if (signature_at(s, '*') || signature_at(s, '&')) {
			outbuf_char(s->out, *s->p++);
		} else if (signature_takes(s, " pinned")) {
			outbuf_str(s->out, " pinned");
		} else if (signature_takes(s, " modreq(")) {
			r = perf_modifier(s, at, "required_modifier ");
		} else if (signature_takes(s, " modopt(")) {
			r = perf_modifier(s, at, "optional_modifier ");
		} else {
			return 0;
		}
	}
	return r;
}

static int perf_type(struct signature *s)
{
	size_t at = s->out->len;
	int r = 0;

	if (++s->depth > METHOD_NAME_DEPTH_MAX)
		return -EBADMSG;
	if (signature_takes(s, "class ")) {
		outbuf_str(s->out, "class ");
		r = perf_named(s);
	} else if (signature_takes(s, "valuetype ")) {
		outbuf_str(s->out, "value class ");
		r = perf_named(s);
	} else if (signature_takes(s, "method ")) {
		r = perf_function(s);
	} else {
		r = perf_plain(s);
	}
	s->depth--;
	return r ? r : perf_suffixes(s, at);
}

/* Finds the arguments: names of methods may contain brackets. They end the name, or a tier does. */
static int perf_find_args(struct signature *s, size_t *ret_name_len)
{
	const char *name = s->p, *open = name;
	size_t out = s->out->len;

	for (int i = 0; i < SPLIT_BRACKETS_MAX; i++, open++) {
		open = memchr(open, '(', (size_t)(s->end - open));
		if (!open)
			return -EBADMSG;
		s->p = open;
		s->depth = 0;
		s->out->len = out;
		if (!perf_args(s, '(', ')') &&
		    (s->p == s->end || (*s->p == '[' && s->end[-1] == ']'))) {
			*ret_name_len = (size_t)(open - name);
			return 0;
		}
	}
	return -EBADMSG;
}

int method_name_split(const char *raw, size_t len, struct method_name_parts *ret_parts,
		      struct outbuf *signature)
{
	struct signature s = {.p = raw, .end = raw + len, .out = signature};
	struct method_name_parts parts;
	size_t begin = signature->len;
	int r;

	perf_convention(&s);
	r = perf_type(&s);
	if (!r && signature_takes(&s, " [")) {
		parts.assembly = s.p;
		r = perf_skips(&s, "] ") ? 0 : -EBADMSG;
		parts.assembly_len = (size_t)(s.p - parts.assembly) - strlen("] ");
	} else {
		r = -EBADMSG;
	}
	if (!r) {
		parts.type = s.p;
		r = perf_skips(&s, "::") ? 0 : -EBADMSG;
		parts.type_len = (size_t)(s.p - parts.type) - strlen("::");
	}
	if (!r) {
		parts.name = s.p;
		outbuf_str(signature, "  ");
		r = perf_find_args(&s, &parts.name_len);
	}
	if (!r)
		r = signature->error;
	if (r)
		signature->len = begin;
	else
		*ret_parts = parts;
	return r;
}
