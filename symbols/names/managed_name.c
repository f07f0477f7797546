#include "symbols/names/managed_name.h"

#include "symbols/names/managed_type.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* The parts of "instance bool [M] T::F(int32)[Tier]". */
struct method {
	struct managed_span returns, module, type, name, args, tier;
	bool has_args;
};

static bool span_is(struct managed_span s, const char *text)
{
	return strlen(text) == s.n && !memcmp(s.p, text, s.n);
}

/* Dynamic methods and IL stubs have no type; the runtime writes this one. */
static bool is_dynamic(const struct method *m)
{
	return span_is(m->type, "dynamicClass");
}

/* Find " [NAME] " with a name in it. */
static bool find_module(const char *p, const char *end, struct managed_span *ret_name)
{
	const char *name = NULL;

	for (const char *q = p + 1; q + 1 < end; q++) {
		if (*q == '[')
			name = q[-1] == ' ' ? q + 1 : NULL;
		if (*q != ']')
			continue;
		if (name && q > name && q[1] == ' ') {
			*ret_name = managed_span_of(name, q);
			return true;
		}
		name = NULL;
	}
	return false;
}

/* Remove "[Tier]" from the end. Gives the new end. */
static const char *split_tier(const char *start, const char *end, struct managed_span *ret_tier)
{
	if (end - start < 3 || end[-1] != ']')
		return end;
	const char *open = memrchr(start, '[', (size_t)(end - start));

	if (!open || open == start || open[-1] != ')')
		return end;
	*ret_tier = managed_span_of(open + 1, end - 1);
	return open;
}

/*
 * Find the parenthesis that begins the arguments. It is the one that the last parenthesis closes,
 * because names can have parentheses too. In a text that is cut off, it is the first one.
 */
static const char *find_arguments(const char *start, const char *end)
{
	size_t depth = 0;

	if (end > start && end[-1] == ')') {
		for (const char *p = end; p > start;) {
			p--;
			depth += *p == ')';
			if (*p == '(' && !--depth)
				return p;
		}
	}
	return memchr(start, '(', (size_t)(end - start));
}

/*
 * The next :: outside brackets, or NULL. A backslash precedes special characters of a type's name.
 */
static const char *next_colons(const char *p, const char *end)
{
	while (p + 1 < end && (p[0] != ':' || p[1] != ':')) {
		if (*p == '<' || *p == '[')
			p = managed_text_skip_brackets(p, end);
		else
			p += *p == '\\' ? 2 : 1;
	}
	return p + 1 < end ? p : NULL;
}

/*
 * Find the :: after the type. A state machine can follow its class with :: too. If brackets are
 * damaged, take the last ::.
 */
static const char *find_colons(const char *start, const char *end)
{
	const char *colons = next_colons(start, end), *more = NULL;

	if (colons && colons + 2 < end && colons[2] == '<')
		more = next_colons(colons + 2, end);
	if (colons)
		return more ? more : colons;
	while (end > start && (end = memrchr(start, ':', (size_t)(end - start)))) {
		if (end > start && end[-1] == ':')
			return end - 1;
	}
	return NULL;
}

static bool split_method(const char *p, const char *end, struct method *ret_method)
{
	struct method m = {0};

	if (!find_module(p, end, &m.module))
		return false;
	m.returns = managed_span_of(p, m.module.p - 2);
	const char *type = m.module.p + m.module.n + 2;

	end = split_tier(type, end, &m.tier);
	const char *paren = find_arguments(type, end), *name_end = paren ? paren : end,
		   *colons = find_colons(type, name_end);

	if (!colons || colons == type)
		return false;
	m.type = managed_span_of(type, colons);
	m.name = managed_span_of(colons + 2, name_end);
	if (!m.name.n && !is_dynamic(&m)) /* dynamic methods may have no name */
		return false;
	m.has_args = paren != NULL;
	if (paren)
		m.args = managed_span_of(paren + 1,
					 end > paren + 1 && end[-1] == ')' ? end - 1 : end);
	*ret_method = m;
	return true;
}

/* Split a type at reflection's separators and at :: between components. */
static void split_type(struct managed_span type, struct managed_nested *n)
{
	const char *p = type.p, *end = type.p + type.n, *start = p;

	while (p < end && *p != '[') {
		if (*p == '<') {
			p = managed_text_skip_brackets(p, end);
		} else if (*p == '+' || *p == '/' || (*p == ':' && p + 1 < end && p[1] == ':')) {
			managed_nested_add(n, start, p);
			p += *p == ':' ? 2 : 1;
			start = p;
		} else {
			p += *p == '\\' && p + 1 < end ? 2 : 1;
		}
	}
	managed_nested_add(n, start, p);
	if (p < end)
		managed_nested_add_arguments(n, p + 1, managed_text_skip_brackets(p, end) - 1);
}

static bool ends_with(struct managed_span s, const char *word)
{
	size_t n = strlen(word);

	return s.n >= n && !memcmp(s.p + s.n - n, word, n);
}

static void put_arguments(const struct method *m, struct outbuf *out)
{
	if (!m->has_args)
		return;
	struct managed_text args = {m->args.p, m->args.p + m->args.n};

	outbuf_char(out, '(');
	managed_types_put(&args, ')', out, 0);
	outbuf_char(out, ')');
}

/*
 * Write a stub, such as "dynamicClass::IL_STUB_PInvoke(int32)", or a method that a program made at
 * run time.
 */
static void put_dynamic(const struct method *m, struct outbuf *out)
{
	static const char stub[] = "IL_STUB_";
	bool is_stub = m->name.n >= sizeof(stub) && !memcmp(m->name.p, stub, sizeof(stub) - 1);
	size_t skip = is_stub ? sizeof(stub) - 1 : 0;

	outbuf_str(out, is_stub ? "[stub] " : "[dynamic] ");
	outbuf_put(out, m->name.p + skip, m->name.n - skip);
	put_arguments(m, out);
}

static void put_method(const struct method *m, struct outbuf *out)
{
	struct managed_nested type;
	struct managed_arguments args;

	managed_nested_begin(&type);
	split_type(m->type, &type);
	managed_nested_put(&type, m->name.n && m->name.p[0] == '<', &args, out, 0);
	if (span_is(m->name, "MoveNext") &&
	    managed_generated_is_state_machine(type.components[type.ncomponents - 1])) {
		outbuf_str(out, ends_with(m->returns, "bool") ? "() [iterator]" : "() [async]");
		return;
	}
	outbuf_char(out, '.');
	managed_type_put_method(m->name, args, out, 0);
	put_arguments(m, out);
}

static struct managed_name_part part_of(const char *text, struct managed_span s)
{
	return s.n ? (struct managed_name_part){(size_t)(s.p - text), s.n}
		   : (struct managed_name_part){0};
}

/* The place after "stub ", "stub12 " or "stub<12> " (some runtimes count stubs); NULL: no stub. */
static const char *behind_stub(const char *p, const char *end)
{
	bool counted;

	if (end - p < 6 || memcmp(p, "stub", 4))
		return NULL;
	p += 4;
	counted = *p == '<';
	for (p += counted; p < end && isdigit((unsigned char)*p); p++)
		;
	if (counted && (p == end || *p++ != '>'))
		return NULL;
	return p + 1 < end && *p == ' ' ? p + 1 : NULL;
}

bool managed_name_is_stub(const char *text, size_t len)
{
	return behind_stub(text, text + len);
}

/*
 * Write the kind of "MAKER<KIND>". MAKER, a function of the runtime, matters only if the kind is
 * unknown.
 */
static void put_stub(const char *p, const char *end, struct outbuf *out)
{
	const char *open = memchr(p, '<', (size_t)(end - p));

	if (open && open > p && end[-1] == '>') {
		bool unknown = end - open < 3 || (end - open == 3 && open[1] == '?');

		p = unknown ? p : open + 1;
		end = unknown ? open : end - 1;
	}
	outbuf_str(out, "[stub] ");
	outbuf_put(out, p, (size_t)(end - p));
}

enum managed_name_kind managed_name_full(const char *text, size_t len, struct outbuf *out,
					 struct managed_name_part *ret_tier,
					 struct managed_name_part *ret_module)
{
	struct method m = {0};

	text = len ? text : "";
	const char *stub = behind_stub(text, text + len);
	bool method = !stub && split_method(text, text + len, &m);

	if (method && is_dynamic(&m))
		put_dynamic(&m, out);
	else if (method)
		put_method(&m, out);
	else if (stub)
		put_stub(stub, text + len, out);
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
