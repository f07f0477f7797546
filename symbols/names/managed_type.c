#include "symbols/names/managed_type_impl.h"

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

/* The ilasm word for a primitive type of reflection, or NULL. */
static const char *primitive(const char *name, size_t len)
{
	static const char *const words[][2] = {
		{"Boolean", "bool"},        {"Char", "char"},      {"SByte", "int8"},
		{"Byte", "uint8"},          {"Int16", "int16"},    {"UInt16", "uint16"},
		{"Int32", "int32"},         {"UInt32", "uint32"},  {"Int64", "int64"},
		{"UInt64", "uint64"},       {"Single", "float32"}, {"Double", "float64"},
		{"String", "string"},       {"Object", "object"},  {"IntPtr", "native int"},
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

/* Characters that end a component of a type's name. */
static const bool ends_component[256] = {
	['/'] = true, ['+'] = true, ['`'] = true, ['<'] = true, ['>'] = true,
	['['] = true, [']'] = true, ['('] = true, [')'] = true, [','] = true,
	['&'] = true, ['*'] = true, [' '] = true,
};

/*
 * Skip to the end of a component: Inner in Outer`1/Inner. A compiler's name begins with brackets.
 */
static void skip_component(struct managed_text *t)
{
	if (t->p < t->end && *t->p == '<')
		t->p = managed_text_skip_brackets(t->p, t->end);
	while (t->p < t->end && !ends_component[(unsigned char)*t->p])
		t->p += *t->p == '\\' && t->p + 1 < t->end ? 2 : 1;
}

static void skip_namespace(struct managed_text *t)
{
	for (const char *p = t->p; p < t->end && !ends_component[(unsigned char)*p]; p++) {
		if (*p == '\\' && p + 1 < t->end)
			p++;
		else if (*p == '.')
			t->p = p + 1;
	}
}

/*
 * Whether type arguments begin here. [], [0...,0...] and [,] are arrays; [System.Int32] is a
 * list of arguments.
 */
static bool at_arguments(const struct managed_text *t)
{
	char next = left(t) > 1 ? t->p[1] : ']';

	if (!left(t) || (*t->p != '[' && *t->p != '<'))
		return false;
	return *t->p == '<' ||
	       (next != ']' && next != ',' && next != '*' && !isdigit((unsigned char)next));
}

/*
 * Write a name with its arguments, such as System.Threading.Tasks.Task`1 or Outer`1/Inner. Drop the
 * namespace and keep nested types.
 */
static void put_name(struct managed_text *t, struct outbuf *out, int depth)
{
	struct managed_nested n;
	const char *whole = t->p, *start;

	skip_namespace(t);
	start = t->p;
	skip_component(t);
	bool in_system = start - whole == 7 && !memcmp(whole, "System.", 7);
	const char *word = in_system ? primitive(start, (size_t)(t->p - start)) : NULL;

	if (word) {
		outbuf_str(out, word);
		return;
	}
	skip_arity(t);
	managed_nested_begin(&n);
	managed_nested_add(&n, start, t->p);
	while (t->p < t->end && (*t->p == '/' || *t->p == '+')) {
		start = ++t->p;
		skip_component(t);
		skip_arity(t);
		managed_nested_add(&n, start, t->p);
	}
	if (depth < MANAGED_TYPE_DEPTH_MAX && at_arguments(t)) {
		const char *end = managed_text_skip_brackets(t->p, t->end);

		managed_nested_add_arguments(&n, t->p + 1,
					     end - (end[-1] == '>' || end[-1] == ']'));
		if (managed_nested_arity(&n) == n.narguments)
			t->p = end;
		else
			n.narguments = 0; /* put_suffixes writes them at the end */
	}
	managed_nested_put(&n, false, NULL, out, depth + 1);
}

static void put_arguments(struct managed_text *t, char closer, struct outbuf *out, int depth)
{
	if (depth >= MANAGED_TYPE_DEPTH_MAX) {
		const char *end = managed_text_skip_brackets(t->p, t->end);

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

static void put_brackets(struct managed_text *t, struct outbuf *out, int depth)
{
	if (at_arguments(t)) {
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

/* Write a function pointer: "method void *(int32)". */
static void put_function_pointer(struct managed_text *t, struct outbuf *out, int depth)
{
	static const char *const conventions[] = {"explicit ", "instance ", "unmanaged ",
						  "cdecl ",    "stdcall ",  "thiscall ",
						  "fastcall ", "vararg "};

	outbuf_str(out, "method ");
	for (size_t i = 0; i < sizeof(conventions) / sizeof(conventions[0]); i++) {
		if (skip(t, conventions[i]))
			outbuf_str(out, conventions[i]);
	}
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

/* Write the text after a type's name. */
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
			t->p = managed_text_skip_brackets(t->p, t->end);
		} else if (at(t, " /*")) { /* " MT: 0x7f..", different in each run */
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
		t->p = managed_text_skip_brackets(t->p, t->end);
	if (depth < MANAGED_TYPE_DEPTH_MAX && skip(t, "method ")) {
		put_function_pointer(t, out, depth);
		return;
	}
	if (skip(t, "native "))
		outbuf_str(out, "native ");
	put_name(t, out, depth);
	put_suffixes(t, out, depth);
}

static bool has_closure(const char *p, const char *end)
{
	static const char closure[] = "<>c__DisplayClass";

	return memmem(p, (size_t)(end - p), closure, strlen(closure)) != NULL;
}

/*
 * Skip a closure that the compiler passes to a local function by reference, after its own
 * parameters. Gives the place after it; NULL: not such an argument. *ret_end: the end of the
 * argument.
 */
static const char *behind_captured(const struct managed_text *t, char closer, const char **ret_end)
{
	const char *p = t->p;

	while (p < t->end && *p != ',' && *p != closer)
		p = managed_text_opens(*p) ? managed_text_skip_brackets(p, t->end) : p + 1;
	*ret_end = p;
	return p > t->p && p[-1] == '&' && has_closure(t->p, p) ? p : NULL;
}

void managed_types_put(struct managed_text *t, char closer, struct outbuf *out, int depth)
{
	bool comma = false, captures = depth == 0 && t->p < t->end && has_closure(t->p, t->end);
	const char *checked = t->p; /* end of the text that was checked for closures */

	while (t->p < t->end && *t->p != closer) {
		const char *behind = captures && t->p >= checked
					     ? behind_captured(t, closer, &checked)
					     : NULL,
			   *before = t->p;

		if (behind) {
			t->p = behind + (behind < t->end && *behind == ',');
			continue;
		}
		if (comma)
			outbuf_char(out, ',');
		managed_type_put(t, out, depth);
		comma = t->p < t->end && *t->p == ',' && *t->p != closer;
		if (comma)
			t->p++;
		else if (t->p < t->end && *t->p != closer && (t->p == before || *t->p == ' '))
			outbuf_char(out,
				    t->p == before ? *t->p++ : ' '); /* words of unknown meaning */
	}
}
