#include "symbols/managed_name.h"

#include "symbols/managed_type.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define COMPONENTS_MAX 32 /* types nested in each other */
#define ARGUMENTS_MAX 64 /* type arguments of one type */
#define MACHINE_NAME_MAX 512 /* of a method, where its dots have to be put back */

struct span {
	const char *p;
	size_t n;
};

/* "instance bool [M] T::F(int32)[Tier]", taken apart. */
struct method {
	struct span returns, module, type, name, args, tier;
	bool has_args;
};

static struct span span_of(const char *p, const char *end)
{
	return (struct span){p, (size_t)(end - p)};
}

static bool span_is(struct span s, const char *text)
{
	return strlen(text) == s.n && !memcmp(s.p, text, s.n);
}

/* " [NAME] " with a name in it. */
static bool find_module(const char *p, const char *end, struct span *ret_name)
{
	while ((p = memmem(p, (size_t)(end - p), " [", 2))) {
		const char *name = p + 2, *close = memchr(name, ']', (size_t)(end - name));

		if (!close)
			return false;
		if (close > name && close + 1 < end && close[1] == ' ' && !memchr(name, '[', (size_t)(close - name))) {
			*ret_name = span_of(name, close);
			return true;
		}
		p = name;
	}
	return false;
}

/* Takes a "[Tier]" off the end. */
static const char *split_tier(const char *start, const char *end, struct span *ret_tier)
{
	if (end - start < 3 || end[-1] != ']')
		return end;
	const char *open = memrchr(start, '[', (size_t)(end - start));

	if (!open || open == start || open[-1] != ')')
		return end;
	*ret_tier = span_of(open + 1, end - 1);
	return open;
}

static bool split_method(const char *p, const char *end, struct method *ret_method)
{
	struct method m = {0};

	if (!find_module(p, end, &m.module))
		return false;
	m.returns = span_of(p, m.module.p - 2);
	const char *type = m.module.p + m.module.n + 2;

	end = split_tier(type, end, &m.tier);
	const char *paren = memchr(type, '(', (size_t)(end - type));
	const char *name_end = paren ? paren : end, *colons = name_end;

	do {
		colons = memrchr(type, ':', (size_t)(colons - type));
	} while (colons && (colons == type || colons[-1] != ':'));
	if (!colons || colons + 1 >= name_end || colons - 1 == type)
		return false;
	m.type = span_of(type, colons - 1);
	m.name = span_of(colons + 1, name_end);
	m.has_args = paren != NULL;
	if (paren)
		m.args = span_of(paren + 1, end > paren + 1 && end[-1] == ')' ? end - 1 : end);
	*ret_method = m;
	return true;
}

/* A name that a compiler made, <INNER>REST. */
static bool split_generated(struct span s, struct span *ret_inner, struct span *ret_rest)
{
	if (!s.n || s.p[0] != '<')
		return false;
	const char *end = s.p + s.n, *close = managed_type_skip_brackets(s.p, end);

	if (close[-1] != '>')
		return false;
	*ret_inner = span_of(s.p + 1, close - 1);
	*ret_rest = span_of(close, end);
	return true;
}

/* <>c, <>c__DisplayClass5_0: holders of lambdas and of what they capture. */
static bool is_closure(struct span s)
{
	struct span inner, rest;

	return split_generated(s, &inner, &rest) && !inner.n && rest.n && rest.p[0] == 'c' &&
	       (rest.n == 1 || rest.p[1] == '_');
}

/* <Run>d__5, and of lambdas <<Run>b__0>d. */
static bool is_state_machine(struct span s)
{
	struct span inner, rest;

	return split_generated(s, &inner, &rest) && inner.n && rest.n && rest.p[0] == 'd' &&
	       (rest.n == 1 || rest.p[1] == '_');
}

/* An explicit implementation carries its interface's name: A.B.IBox<System.String>.Open is IBox<string>.Open. */
static void put_plain_name(struct span s, struct outbuf *out)
{
	struct managed_text t = {s.p, s.p + s.n};
	const char *dot = NULL;
	size_t depth = 0;

	for (const char *p = s.p; p < t.end; p++) {
		if (memchr("<[(", *p, 3))
			depth++;
		else if (memchr(">])", *p, 3))
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
	managed_type_put(&t, out, 0);
	outbuf_put(out, t.p, (size_t)(end - t.p));
}

/* State machines of explicit implementations have dashes where the method has dots. */
static void put_machine_name(struct span s, struct outbuf *out)
{
	char dotted[MACHINE_NAME_MAX];

	if (s.n > sizeof(dotted) || !memchr(s.p, '-', s.n)) {
		put_plain_name(s, out);
		return;
	}
	for (size_t i = 0; i < s.n; i++)
		dotted[i] = s.p[i] == '-' ? '.' : s.p[i];
	put_plain_name((struct span){dotted, s.n}, out);
}

/* b__9_4 is lambda4, g__Local|8_2 is Local. */
static bool put_inside(struct span rest, struct outbuf *out)
{
	const char *end = rest.p + rest.n, *p = rest.p + 3;

	if (rest.n < 4 || rest.p[1] != '_' || rest.p[2] != '_')
		return false;
	if (rest.p[0] == 'g') {
		const char *bar = memchr(p, '|', (size_t)(end - p));

		outbuf_char(out, '.');
		outbuf_put(out, p, (size_t)((bar ? bar : end) - p));
		return true;
	}
	if (rest.p[0] != 'b')
		return false;
	const char *ordinal = memrchr(p, '_', (size_t)(end - p));

	ordinal = ordinal ? ordinal + 1 : p;
	outbuf_str(out, ".lambda");
	outbuf_put(out, ordinal, (size_t)(end - ordinal));
	return true;
}

/* A method's name, maybe one that a compiler made from another's. Names nest at most as deep as brackets: as s is long. */
static void put_name(struct span s, struct outbuf *out, int depth)
{
	struct span inner, rest;

	if (depth > MANAGED_TYPE_DEPTH_MAX || !split_generated(s, &inner, &rest) || !inner.n) {
		put_machine_name(s, out);
		return;
	}
	size_t before = out->len;
	uint64_t written = out->written;

	put_name(inner, out, depth + 1);
	if (!rest.n || span_is(rest, "$") || is_state_machine(s) || put_inside(rest, out))
		return;
	if (out->written == written && out->len >= before)
		out->len = before; /* an unknown kind stays as it is */
	outbuf_put(out, s.p, s.n);
}

/* The declaring type: components Outer`1, <>c and so on, and type arguments for all of them together. */
struct declaring {
	struct span components[COMPONENTS_MAX];
	size_t arity[COMPONENTS_MAX];
	size_t ncomponents;
	struct span arguments[ARGUMENTS_MAX];
	size_t narguments;
};

static void split_arguments(const char *p, const char *end, struct declaring *d)
{
	const char *start = p;

	for (; p <= end; p++) {
		if (p < end && memchr("<[(", *p, 3)) {
			p = managed_type_skip_brackets(p, end) - 1;
		} else if (p == end || *p == ',') {
			if (d->narguments < ARGUMENTS_MAX && p > start)
				d->arguments[d->narguments++] = span_of(start, p);
			start = p + 1;
		}
	}
}

static void add_component(struct declaring *d, const char *p, const char *end)
{
	const char *tick = memrchr(p, '`', (size_t)(end - p));
	size_t arity = 0;

	if (d->ncomponents == COMPONENTS_MAX)
		return;
	for (const char *digit = tick ? tick + 1 : end; digit < end && isdigit((unsigned char)*digit); digit++)
		arity = arity < ARGUMENTS_MAX ? arity * 10 + (size_t)(*digit - '0') : arity;
	d->components[d->ncomponents] = span_of(p, arity ? tick : end);
	d->arity[d->ncomponents++] = arity;
}

static void split_type(struct span type, struct declaring *d)
{
	const char *p = type.p, *end = type.p + type.n, *start = p;

	while (p < end && *p != '[') {
		if (*p == '<') {
			p = managed_type_skip_brackets(p, end);
		} else if (*p == '+' || *p == '/' || (*p == ':' && p + 1 < end && p[1] == ':')) {
			add_component(d, start, p);
			p += *p == ':' ? 2 : 1;
			start = p;
		} else {
			p++;
		}
	}
	add_component(d, start, p);
	if (p < end)
		split_arguments(p + 1, managed_type_skip_brackets(p, end) - 1, d);
}

static void put_type_arguments(const struct declaring *d, size_t from, size_t n, struct outbuf *out)
{
	for (size_t i = from; i < from + n && i < d->narguments; i++) {
		struct managed_text t = {d->arguments[i].p, d->arguments[i].p + d->arguments[i].n};

		outbuf_char(out, i == from ? '<' : ',');
		managed_type_put(&t, out, 0);
	}
	if (n && from < d->narguments)
		outbuf_char(out, '>');
}

static void put_component(struct span s, struct outbuf *out)
{
	struct span inner, rest;

	if (is_state_machine(s)) {
		split_generated(s, &inner, &rest);
		put_name(inner, out, 0);
	} else if (s.n > 5 && !memcmp(s.p, "<>f__", 5)) {
		outbuf_put(out, s.p + 5, s.n - 5); /* AnonymousType0 */
	} else {
		outbuf_put(out, s.p, s.n);
	}
}

/* Writes the type and gives whether it is a method's state machine. The holder of a lambda is left out, its own methods
 * (its constructor) are not. */
static bool put_declaring(struct span type, bool of_lambda, struct outbuf *out)
{
	struct declaring d = {0};
	size_t used = 0, shown = 0;

	split_type(type, &d);
	for (size_t i = 0; i < d.ncomponents; i++) {
		bool last = i + 1 == d.ncomponents;

		if (!is_closure(d.components[i]) || (last && !of_lambda)) {
			if (shown++)
				outbuf_char(out, '.');
			put_component(d.components[i], out);
			put_type_arguments(&d, used, d.arity[i], out);
		}
		used += d.arity[i];
	}
	return is_state_machine(d.components[d.ncomponents - 1]);
}

static bool ends_with(struct span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !memcmp(s.p + s.n - n, word, n);
}

static void put_method(const struct method *m, struct outbuf *out)
{
	bool machine = put_declaring(m->type, m->name.n && m->name.p[0] == '<', out);

	if (machine && span_is(m->name, "MoveNext")) {
		outbuf_str(out, ends_with(m->returns, "bool") ? "() [iterator]" : "() [async]");
		return;
	}
	outbuf_char(out, '.');
	put_name(m->name, out, 0);
	if (!m->has_args)
		return;
	struct managed_text args = {m->args.p, m->args.p + m->args.n};

	outbuf_char(out, '(');
	managed_types_put(&args, ')', out, 0);
	outbuf_char(out, ')');
}

static struct managed_name_part part_of(const char *text, struct span s)
{
	return s.n ? (struct managed_name_part){(size_t)(s.p - text), s.n} : (struct managed_name_part){0};
}

/* "stub12 Link<InstantiatingStub>": the number is another one for each stub. */
static void put_stub(const char *p, const char *end, struct outbuf *out)
{
	outbuf_str(out, "stub");
	for (p += strlen("stub"); p < end && isdigit((unsigned char)*p); p++)
		;
	outbuf_put(out, p, (size_t)(end - p));
}

static bool is_stub(const char *p, const char *end)
{
	if (end - p < 6 || memcmp(p, "stub", 4))
		return false;
	for (p += 4; p < end && isdigit((unsigned char)*p); p++)
		;
	return p < end && *p == ' ';
}

enum managed_name_kind managed_name_full(const char *text, size_t len, struct outbuf *out,
					 struct managed_name_part *ret_tier, struct managed_name_part *ret_module)
{
	struct method m = {0};

	text = len ? text : "";
	bool stub = is_stub(text, text + len);
	bool method = !stub && split_method(text, text + len, &m);

	if (method)
		put_method(&m, out);
	else if (stub)
		put_stub(text, text + len, out);
	else
		outbuf_put(out, text, len);
	if (ret_tier)
		*ret_tier = part_of(text, m.tier);
	if (ret_module)
		*ret_module = part_of(text, m.module);
	if (method)
		return MANAGED_NAME_METHOD;
	return stub ? MANAGED_NAME_STUB : MANAGED_NAME_OTHER;
}
