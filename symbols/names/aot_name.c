#include "symbols/names/aot_name.h"

#include "symbols/names/managed_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static size_t left(const struct managed_text *t)
{
	return (size_t)(t->end - t->p);
}

static bool starts(const struct managed_text *t, const char *word)
{
	size_t n = strlen(word);

	return left(t) >= n && !memcmp(t->p, word, n);
}

static bool skip(struct managed_text *t, const char *word)
{
	if (!starts(t, word))
		return false;
	t->p += strlen(word);
	return true;
}

/* The first place of word outside <>, or NULL. */
static const char *find(const struct managed_text *t, const char *word)
{
	struct managed_text at = *t;
	int depth = 0;

	for (; at.p < at.end; at.p++) {
		if (!depth && starts(&at, word))
			return at.p;
		depth += *at.p == '<' ? 1 : *at.p == '>' && depth ? -1 : 0;
	}
	return NULL;
}

/* The end of text without "_12", which numbers further methods of one name. */
static const char *without_number(const char *p, const char *end)
{
	const char *q = end;

	while (q > p && isdigit((unsigned char)q[-1]))
		q--;
	return q > p + 1 && q < end && q[-1] == '_' ? q - 1 : end;
}

/* Skip the assembly's name, if it can be told from the type's. */
static void skip_assembly(struct managed_text *t, const char *program)
{
	static const char *const inner[] = {"_System_", "_Microsoft_", "_Internal_", "_Interop_"};
	struct managed_text own = *t, name = *t; /* name ends before the type arguments */
	const char *at, *first = NULL;

	while (*program && own.p < own.end &&
	       *own.p == (isalnum((unsigned char)*program) ? *program : '_')) {
		own.p++;
		program++;
	}
	if (!*program && skip(&own, "_")) {
		t->p = own.p;
		return;
	}
	if (!starts(t, "System_") && !starts(t, "Microsoft_") && !starts(t, "S_P_"))
		return;
	name.end = memchr(t->p, '<', left(t));
	name.end = name.end ? name.end : t->end;
	for (size_t i = 0; i < sizeof(inner) / sizeof(*inner); i++) {
		at = find(&name, inner[i]);
		if (at && (!first || at < first))
			first = at;
	}
	at = find(&name, "__");
	if (first && (!at || first < at))
		t->p = first + 1;
}

/*
 * The length of "_2", the number of type parameters, if it is a whole part of a type's name;
 * otherwise 0.
 */
static size_t arity_len(const char *p, const char *end)
{
	const char *q = p + 1;

	if (*p != '_')
		return 0;
	while (q < end && isdigit((unsigned char)*q))
		q++;
	return q > p + 1 && (q == end || *q == '_') ? (size_t)(q - p) : 0;
}

static void put_type(struct managed_text t, const char *program, struct outbuf *out, int depth);

/* Write the arguments between <>: "Int32__System___Canon". */
static void put_arguments(struct managed_text t, const char *program, struct outbuf *out, int depth)
{
	outbuf_char(out, '<');
	while (t.p < t.end) {
		struct managed_text one = t;
		const char *end = starts(&t, "System___Canon") ? t.p + strlen("System___Canon")
							       : find(&t, "__");

		one.end = end ? end : t.end;
		put_type(one, program, out, depth);
		t.p = end && end + 2 <= t.end ? end + 2 : t.end;
		if (t.p < t.end)
			outbuf_char(out, ',');
	}
	outbuf_char(out, '>');
}

/* Write the first part of a type's name with its arguments. Move t->p after them. */
static void put_type_part(struct managed_text *t, const char *program, struct outbuf *out,
			  int depth)
{
	const char *bracket = memchr(t->p, '<', left(t)), *name_end, *p;

	if (starts(t, "System___Canon")) {
		outbuf_str(out, "__Canon");
		t->p = t->end;
		return;
	}
	skip_assembly(t, program);
	name_end = bracket && bracket > t->p ? without_number(t->p, bracket) : t->end;
	for (p = t->p; depth && p < name_end; p++)
		if (*p == '_' && p + 1 < name_end)
			t->p = p + 1;
	for (p = t->p; p < name_end; p++) {
		p += arity_len(p, name_end);
		if (p < name_end)
			outbuf_char(out, *p == '_' ? '.' : *p);
	}
	if (!bracket || bracket < t->p) {
		t->p = t->end;
		return;
	}
	/* The brackets of an array, such as "<int[]>", are balanced too. */
	p = managed_text_skip_brackets(bracket, t->end);
	if (depth >= AOT_NAME_DEPTH_MAX)
		outbuf_put(out, bracket, (size_t)(p - bracket));
	else
		put_arguments((struct managed_text){bracket + 1,
						    p > bracket + 1 && p[-1] == '>' ? p - 1 : p},
			      program, out, depth + 1);
	t->p = p;
}

/* Write a type. As a type argument (depth is not 0) it has no namespace. */
static void put_type(struct managed_text t, const char *program, struct outbuf *out, int depth)
{
	for (; left(&t); program = "")
		put_type_part(&t, program, out, depth);
}

static void put_method(struct managed_text t, const char *program, struct outbuf *out)
{
	const char *bracket = memchr(t.p, '<', left(&t)), *end;

	end = without_number(t.p, bracket ? bracket : t.end);
	if (starts(&t, "_ctor") || starts(&t, "_cctor"))
		outbuf_char(out, '.');
	for (const char *p = t.p + (*t.p == '_'); p < end; p++)
		outbuf_char(out, *p);
	if (bracket && t.end[-1] == '>')
		put_arguments((struct managed_text){bracket + 1, t.end - 1}, program, out, 1);
}

/* Write "TYPE___c__DisplayClass2_0___Main_b__1", a lambda of Main. */
static bool put_lambda(struct managed_text t, const char *program, struct outbuf *out)
{
	const char *closure = find(&t, "___c__"), *b = NULL;
	struct managed_text rest = t, outer = t;

	for (rest.p = t.p; (rest.p = find(&rest, "_b__")); rest.p++)
		b = rest.p;
	if (!closure || !b || b < closure + 6)
		return false;
	outer.end = closure;
	rest.p = closure + 6;
	rest.end = b;
	if (skip(&rest, "DisplayClass"))
		while (left(&rest) &&
		       (isdigit((unsigned char)*rest.p) ||
			(*rest.p == '_' && left(&rest) > 1 && isdigit((unsigned char)rest.p[1]))))
			rest.p++;
	while (skip(&rest, "_"))
		;
	if (!left(&rest))
		return false;
	put_type(outer, program, out, 0);
	outbuf_char(out, '.');
	outbuf_put(out, rest.p, left(&rest));
	outbuf_str(out, ".lambda");
	b += strlen("_b__");
	/* "b__49_0" is the first lambda of method 49. */
	const char *number = memchr(b, '_', (size_t)(t.end - b));

	number = number ? number + 1 : b;
	outbuf_put(out, number, (size_t)(t.end - number));
	return true;
}

/* Write "TYPE__Run_d__0__MoveNext", the body of the async method or iterator Run. */
static bool put_state_machine(struct managed_text t, const char *program, struct outbuf *out)
{
	static const char tail[] = "__MoveNext";
	struct managed_text type = t, method = t;
	const char *d = find(&t, "_d__"), *split;

	if (!d || left(&t) < sizeof(tail) || memcmp(t.end - strlen(tail), tail, strlen(tail)) != 0)
		return false;
	method.end = d;
	split = find(&method, "__");
	if (!split || split + 2 >= d)
		return false;
	type.end = split;
	method.p = split + 2;
	put_type(type, program, out, 0);
	outbuf_char(out, '.');
	/* "<Main>$" holds top-level statements. */
	if (left(&method) == 7 && starts(&method, "_Main__")) {
		outbuf_str(out, "Main() [async]");
		return true;
	}
	outbuf_put(out, method.p, left(&method));
	outbuf_str(out, left(&method) > 5 && !memcmp(d - 5, "Async", 5) ? "() [async]"
									: "() [state machine]");
	return true;
}

int aot_name_full(const char *raw, size_t len, const char *program, struct outbuf *out)
{
	struct managed_text t = {raw, raw + len}, type, boxed;
	const char *split;

	(void)skip(&t, "unbox_");
	boxed = t;
	if (skip(&boxed, "<Boxed>") &&
	    (split = memmem(boxed.p, left(&boxed), "__<unbox>", strlen("__<unbox>")))) {
		/* The type with its arguments stands first, then the method. */
		type = (struct managed_text){boxed.p, split};
		boxed.p = split + strlen("__<unbox>");
		t.p = type.p;
		split = find(&boxed, "__");
	} else {
		skip_assembly(&t, program);
		program = "";
		if (put_lambda(t, program, out) || put_state_machine(t, program, out))
			return out->error;
		split = find(&t, "__");
		type = (struct managed_text){t.p, split ? split : t.p};
	}
	if (!split || split + 2 >= t.end || type.p == type.end) {
		outbuf_put(out, raw, len);
		return out->error;
	}
	put_type(type, program, out, 0);
	outbuf_char(out, '.');
	put_method((struct managed_text){split + 2, t.end}, program, out);
	return out->error;
}
