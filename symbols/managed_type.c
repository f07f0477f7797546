#include "symbols/managed_type.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static size_t left(const struct managed_text *t)
{
	return (size_t)(t->end - t->p);
}

static bool at(const struct managed_text *t, const char *word)
{
	size_t n = strlen(word);

	return left(t) >= n && !memcmp(t->p, word, n);
}

static bool skip(struct managed_text *t, const char *word)
{
	if (!at(t, word))
		return false;
	t->p += strlen(word);
	return true;
}

const char *managed_type_skip_brackets(const char *p, const char *end)
{
	size_t depth = 0;

	for (; p < end; p++) {
		if (memchr("<[(", *p, 3))
			depth++;
		else if (memchr(">])", *p, 3) && !--depth)
			return p + 1;
	}
	return end;
}

/* Reflection's names of the types that ilasm has a word for. */
static const char *primitive(const char *name, size_t len)
{
	static const char *const words[][2] = {
		{"Boolean", "bool"},   {"Char", "char"},       {"SByte", "int8"},     {"Byte", "uint8"},
		{"Int16", "int16"},    {"UInt16", "uint16"},   {"Int32", "int32"},    {"UInt32", "uint32"},
		{"Int64", "int64"},    {"UInt64", "uint64"},   {"Single", "float32"}, {"Double", "float64"},
		{"String", "string"},  {"Object", "object"},   {"IntPtr", "native int"},
		{"UIntPtr", "native uint"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i][0]) == len && !memcmp(words[i][0], name, len))
			return words[i][1];
	}
	return NULL;
}

static void skip_arity(struct managed_text *t)
{
	if (t->p < t->end && *t->p == '`') {
		t->p++;
		while (t->p < t->end && isdigit((unsigned char)*t->p))
			t->p++;
	}
}

/*
 * An async method's state machine as a type argument, AsyncStateMachineBox<P.<Run>d__3> or, of top-level statements,
 * <<Main>$>d__0: reads Run. Others of a compiler's names stay.
 */
static const char *put_state_machine(const char *p, const char *end, struct outbuf *out)
{
	const char *close = managed_type_skip_brackets(p, end), *inner = p + 1, *inner_end = close - 1;

	if (close[-1] != '>' || close == end || *close != 'd' || (close + 1 < end && isalnum((unsigned char)close[1])))
		return NULL;
	if (inner_end - inner > 3 && *inner == '<' && inner_end[-1] == '$' && inner_end[-2] == '>') {
		inner++;
		inner_end -= 2;
	}
	if (memchr(inner, '<', (size_t)(inner_end - inner)))
		return NULL;
	outbuf_put(out, inner, (size_t)(inner_end - inner));
	for (close++; close < end && (*close == '_' || isdigit((unsigned char)*close)); close++)
		;
	return close;
}

/* A name such as System.Threading.Tasks.Task`1 or Outer`1/Inner: the namespace goes, what is nested stays. */
static void put_name(struct managed_text *t, struct outbuf *out)
{
	const char *start = t->p, *whole = t->p;

	while (t->p < t->end) {
		char c = *t->p;

		if (c == '<' && t->p == start) { /* a compiler's name */
			const char *behind = put_state_machine(t->p, t->end, out);

			t->p = behind ? behind : managed_type_skip_brackets(t->p, t->end);
			start = whole = behind ? behind : start;
		} else if (c == '/' || c == '+' || c == '`') {
			outbuf_put(out, start, (size_t)(t->p - start));
			skip_arity(t);
			start = whole = t->p;
			if (t->p == t->end || (*t->p != '/' && *t->p != '+'))
				break;
			outbuf_char(out, '.');
			start = whole = ++t->p;
		} else if (memchr("<>[](),&* ", c, 10)) {
			break;
		} else if (*t->p++ == '.') {
			start = t->p;
		}
	}
	bool in_system = start - whole == 7 && !memcmp(whole, "System.", 7);
	const char *word = in_system ? primitive(start, (size_t)(t->p - start)) : NULL;

	if (word)
		outbuf_str(out, word);
	else
		outbuf_put(out, start, (size_t)(t->p - start));
}

static void put_arguments(struct managed_text *t, char closer, struct outbuf *out, int depth)
{
	if (depth >= MANAGED_TYPE_DEPTH_MAX) {
		const char *end = managed_type_skip_brackets(t->p, t->end);

		outbuf_put(out, t->p, (size_t)(end - t->p));
		t->p = end;
		return;
	}
	t->p++;
	outbuf_char(out, '<');
	managed_types_put(t, closer, out, depth + 1);
	outbuf_char(out, '>');
	if (t->p < t->end)
		t->p++;
}

/* [], [0...,0...] and [,] are arrays, [System.Int32] are type arguments. */
static void put_brackets(struct managed_text *t, struct outbuf *out, int depth)
{
	char next = left(t) > 1 ? t->p[1] : ']';

	if (next != ']' && next != ',' && next != '*' && !isdigit((unsigned char)next)) {
		put_arguments(t, ']', out, depth);
		return;
	}
	outbuf_char(out, '[');
	for (t->p++; t->p < t->end && *t->p != ']'; t->p++) {
		if (*t->p == ',')
			outbuf_char(out, ',');
	}
	outbuf_char(out, ']');
	if (t->p < t->end)
		t->p++;
}

/* "method void *(int32)". */
static void put_function_pointer(struct managed_text *t, struct outbuf *out, int depth)
{
	outbuf_str(out, "method ");
	managed_type_put(t, out, depth + 1);
	if (skip(t, " *("))
		outbuf_str(out, " *(");
	else if (skip(t, "("))
		outbuf_str(out, "(");
	else
		return;
	managed_types_put(t, ')', out, depth + 1);
	outbuf_char(out, ')');
	if (t->p < t->end)
		t->p++;
}

/* What follows a type's name. */
static void put_suffixes(struct managed_text *t, struct outbuf *out, int depth)
{
	while (t->p < t->end) {
		if (*t->p == '<') {
			put_arguments(t, '>', out, depth);
		} else if (*t->p == '[') {
			put_brackets(t, out, depth);
		} else if (*t->p == '&' || (*t->p == '*' && !at(t, "*("))) {
			outbuf_char(out, *t->p++);
		} else if (at(t, " modreq(") || at(t, " modopt(")) {
			t->p = managed_type_skip_brackets(t->p, t->end);
		} else if (at(t, " /*")) { /* " MT: 0x7f..", another one in each run */
			const char *end = memmem(t->p, left(t), "*/", 2);

			t->p = end ? end + 2 : t->end;
		} else {
			return;
		}
	}
}

void managed_type_put(struct managed_text *t, struct outbuf *out, int depth)
{
	while (skip(t, " ") || skip(t, "class ") || skip(t, "valuetype "))
		;
	if (left(t) && *t->p == '[') /* the assembly */
		t->p = managed_type_skip_brackets(t->p, t->end);
	if (depth < MANAGED_TYPE_DEPTH_MAX && skip(t, "method ")) {
		put_function_pointer(t, out, depth);
		return;
	}
	if (skip(t, "native "))
		outbuf_str(out, "native ");
	put_name(t, out);
	put_suffixes(t, out, depth);
}

void managed_types_put(struct managed_text *t, char closer, struct outbuf *out, int depth)
{
	while (t->p < t->end && *t->p != closer) {
		const char *before = t->p;

		managed_type_put(t, out, depth);
		if (t->p < t->end && *t->p != closer && (*t->p == ',' || t->p == before))
			outbuf_char(out, *t->p++);
		else if (t->p < t->end && *t->p == ' ')
			outbuf_char(out, ' '); /* two words that we know nothing of */
	}
}
