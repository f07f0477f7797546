/* Writes readable names of methods and types that compilers generated: lambdas, state machines. */
#include "symbols/names/managed_type_impl.h"

#include <ctype.h>
#include <string.h>

#define PLAIN_NAME_MAX 512 /* bytes of a method whose characters are restored */
#define FILE_HASH_DIGITS 64

static bool starts_with(struct managed_span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !memcmp(s.p, word, n);
}

/* Split a name that a compiler made: <INNER>REST. */
static bool split_generated(struct managed_span s, struct managed_span *ret_inner,
			    struct managed_span *ret_rest)
{
	if (!s.n || s.p[0] != '<')
		return false;
	const char *end = s.p + s.n, *close = managed_text_skip_brackets(s.p, end);

	if (close[-1] != '>')
		return false;
	*ret_inner = managed_span_of(s.p + 1, close - 1);
	*ret_rest = managed_span_of(close, end);
	return true;
}

/* Whether rest is this letter, alone or before "_". */
static bool is_kind(struct managed_span rest, char kind)
{
	return rest.n && rest.p[0] == kind && (rest.n == 1 || rest.p[1] == '_');
}

bool managed_generated_is_closure(struct managed_span name)
{
	struct managed_span inner, rest;

	return split_generated(name, &inner, &rest) && !inner.n && is_kind(rest, 'c');
}

bool managed_generated_is_state_machine(struct managed_span name)
{
	struct managed_span inner, rest;

	return split_generated(name, &inner, &rest) && inner.n && is_kind(rest, 'd');
}

void managed_arguments_put(struct managed_arguments args, struct outbuf *out, int depth)
{
	for (size_t i = 0; i < args.n; i++) {
		struct managed_text t = {args.v[i].p, args.v[i].p + args.v[i].n};

		outbuf_char(out, i ? ',' : '<');
		managed_type_put(&t, out, depth);
	}
	if (args.n)
		outbuf_char(out, '>');
}

/*
 * Write a method's name. An explicit implementation carries its interface's name:
 * A.B.IBox<System.String>.Open becomes IBox<string>.Open.
 */
static void put_plain(struct managed_span s, struct outbuf *out, int level)
{
	struct managed_text t = {s.p, s.p + s.n};
	const char *dot = NULL;
	size_t depth = 0;

	for (const char *p = s.p; p < t.end; p++) {
		if (managed_text_opens(*p))
			depth++;
		else if (managed_text_closes(*p))
			depth -= depth > 0;
		else if (*p == '.' && !depth && p > s.p && p + 1 < t.end && p[-1] != '.')
			dot = p;
	}
	if (!dot) {
		outbuf_put(out, s.p, s.n);
		return;
	}
	const char *end = t.end;

	t.end = dot;
	managed_type_put(&t, out, level);
	outbuf_put(out, t.p, (size_t)(end - t.p));
}

/*
 * Write the method of an explicit implementation's state machine. It has dashes instead of dots,
 * and backslashes as types have.
 */
static void put_method_plain(struct managed_span s, struct outbuf *out, int level)
{
	char plain[PLAIN_NAME_MAX];
	size_t n = 0;

	if (s.n > sizeof(plain) || (!memchr(s.p, '-', s.n) && !memchr(s.p, '\\', s.n))) {
		put_plain(s, out, level);
		return;
	}
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\\' && i + 1 < s.n)
			i++;
		plain[n++] = s.p[i] == '-' ? '.' : s.p[i];
	}
	put_plain((struct managed_span){plain, n}, out, level);
}

/* Recognize b__9_4 and g__Local|8_2. */
static bool is_inside(struct managed_span rest)
{
	return rest.n >= 4 && (rest.p[0] == 'b' || rest.p[0] == 'g') && rest.p[1] == '_' &&
	       rest.p[2] == '_';
}

/* Write b__9_4 as lambda4 and g__Local|8_2 as Local. */
static void put_inside(struct managed_span rest, struct outbuf *out)
{
	const char *end = rest.p + rest.n, *p = rest.p + 3;

	if (rest.p[0] == 'g') {
		const char *bar = memchr(p, '|', (size_t)(end - p));

		outbuf_char(out, '.');
		outbuf_put(out, p, (size_t)((bar ? bar : end) - p));
		return;
	}
	const char *ordinal = memrchr(p, '_', (size_t)(end - p));

	ordinal = ordinal ? ordinal + 1 : p;
	outbuf_str(out, ".lambda");
	outbuf_put(out, ordinal, (size_t)(end - ordinal));
}

/* Recursion is bounded by the nesting of brackets in name. */
void managed_type_put_method(struct managed_span name, struct managed_arguments args,
			     struct outbuf *out, int depth)
{
	struct managed_span inner, rest;

	if (depth > MANAGED_TYPE_DEPTH_MAX) {
		outbuf_put(out, name.p, name.n);
		return;
	}
	if (!split_generated(name, &inner, &rest) || !inner.n) {
		if (starts_with(name, "<>m__")) /* an iterator's finally */
			outbuf_put(out, name.p + 5, name.n - 5);
		else
			put_method_plain(name, out, depth);
		managed_arguments_put(args, out, depth);
		return;
	}
	/*
	 * Copy an unknown kind unchanged. Nothing was written for it before, so its arguments are
	 * not walked again at each level.
	 */
	if (rest.n && !(rest.n == 1 && rest.p[0] == '$') && !is_kind(rest, 'd') &&
	    !is_inside(rest)) {
		outbuf_put(out, name.p, name.n);
		managed_arguments_put(args, out, depth);
		return;
	}
	managed_type_put_method(inner, args, out, depth + 1);
	if (is_inside(rest))
		put_inside(rest, out);
}

/*
 * Give the name of a type that is private to its file: the part after the file's hash. Other names
 * are returned whole.
 */
static struct managed_span without_file(struct managed_span name)
{
	struct managed_span inner, rest;
	size_t digits = 1;

	if (!split_generated(name, &inner, &rest) || !inner.n || rest.n <= FILE_HASH_DIGITS + 3 ||
	    rest.p[0] != 'F')
		return name;
	while (digits <= FILE_HASH_DIGITS && isxdigit((unsigned char)rest.p[digits]))
		digits++;
	if (digits <= FILE_HASH_DIGITS || rest.p[digits] != '_' || rest.p[digits + 1] != '_')
		return name;
	return managed_span_of(rest.p + digits + 2, rest.p + rest.n);
}

void managed_type_put_type(struct managed_span name, struct managed_arguments args,
			   struct outbuf *out, int depth)
{
	struct managed_span inner, rest;

	if (managed_generated_is_state_machine(name)) {
		split_generated(name, &inner, &rest);
		managed_type_put_method(inner, args, out, depth);
		return;
	}
	const char *bracket = memchr(name.p, '<', name.n);

	/* The outermost type with its namespace */
	if (bracket && bracket > name.p && bracket[-1] == '.') {
		outbuf_put(out, name.p, (size_t)(bracket - name.p));
		name = managed_span_of(bracket, name.p + name.n);
	}
	name = starts_with(name, "<>f__") ? managed_span_of(name.p + 5, name.p + name.n)
					  : without_file(name);
	const char *end = name.p + name.n, *backslash;

	while ((backslash = memchr(name.p, '\\', (size_t)(end - name.p))) && backslash + 1 < end) {
		outbuf_put(out, name.p, (size_t)(backslash - name.p));
		outbuf_char(out, backslash[1]);
		name.p = backslash + 2;
	}
	outbuf_put(out, name.p, (size_t)(end - name.p));
	managed_arguments_put(args, out, depth);
}
