/* Distributes type arguments to nested classes: A`1+B`1[X,Y] becomes A<X>.B<Y>. */
#include "symbols/names/managed_type_impl.h"

#include <ctype.h>
#include <string.h>

void managed_nested_add(struct managed_nested *n, const char *p, const char *end)
{
	const char *tick = memrchr(p, '`', (size_t)(end - p));
	size_t arity = 0;

	if (n->ncomponents == MANAGED_COMPONENTS_MAX)
		return;
	for (const char *digit = tick ? tick + 1 : end;
	     digit < end && isdigit((unsigned char)*digit); digit++)
		arity = arity < MANAGED_ARGUMENTS_MAX ? arity * 10 + (size_t)(*digit - '0') : arity;
	n->components[n->ncomponents] = managed_span_of(p, arity ? tick : end);
	n->arity[n->ncomponents++] = arity;
}

void managed_nested_add_arguments(struct managed_nested *n, const char *p, const char *end)
{
	const char *start = p;

	for (; p <= end; p++) {
		if (p + 1 < end && *p == '\\') {
			p++;
		} else if (p < end && managed_text_opens(*p)) {
			p = managed_text_skip_brackets(p, end) - 1;
		} else if (p == end || *p == ',') {
			if (n->narguments < MANAGED_ARGUMENTS_MAX && p > start)
				n->arguments[n->narguments++] = managed_span_of(start, p);
			start = p + 1;
		}
	}
}

size_t managed_nested_arity(const struct managed_nested *n)
{
	size_t arity = 0;

	for (size_t i = 0; i < n->ncomponents; i++)
		arity += n->arity[i];
	return arity;
}

/* Take the arguments of the next component. */
static struct managed_arguments take_arguments(const struct managed_nested *n, size_t *used,
					       size_t arity)
{
	size_t from = *used < n->narguments ? *used : n->narguments, left = n->narguments - from;

	*used += arity;
	return (struct managed_arguments){n->arguments + from, arity < left ? arity : left};
}

void managed_nested_put(const struct managed_nested *n, bool of_lambda,
			struct managed_arguments *ret_args, struct outbuf *out, int depth)
{
	static const struct managed_arguments none = {0};
	struct managed_arguments of_method = none;
	size_t used = 0, shown = 0;

	for (size_t i = 0; i < n->ncomponents; i++) {
		struct managed_span component = n->components[i];
		struct managed_arguments args = take_arguments(n, &used, n->arity[i]);

		if (managed_generated_is_closure(component) &&
		    (i + 1 < n->ncomponents || of_lambda)) {
			of_method = args.n ? args : of_method;
			continue;
		}
		if (shown++)
			outbuf_char(out, '.');
		bool of_state_machine = managed_generated_is_state_machine(component);

		managed_type_put_type(component, of_state_machine ? of_method : none, out, depth);
		/*
		 * Write them once. Nested state machines could otherwise repeat them at each level.
		 */
		if (of_state_machine)
			of_method = none;
		managed_arguments_put(args, out, depth);
	}
	if (ret_args)
		*ret_args = of_method;
}
