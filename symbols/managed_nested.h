/* Names of types nested in each other, whose type arguments stand together at the end: Outer`1+Inner`1[A,B] is
 * Outer<A>.Inner<B>. */
#ifndef SYMBOLS_MANAGED_NESTED_H
#define SYMBOLS_MANAGED_NESTED_H

#include "symbols/managed_generated.h"

#define MANAGED_COMPONENTS_MAX 32 /* further ones are left out */
#define MANAGED_ARGUMENTS_MAX 64

/* Borrows the text. What is behind the counts is not set. */
struct managed_nested {
	struct managed_span components[MANAGED_COMPONENTS_MAX]; /* without arity */
	size_t arity[MANAGED_COMPONENTS_MAX];
	size_t ncomponents;
	struct managed_span arguments[MANAGED_ARGUMENTS_MAX];
	size_t narguments;
};

static inline void managed_nested_begin(struct managed_nested *n)
{
	n->ncomponents = n->narguments = 0;
}

/* "Outer`1" */
void managed_nested_add(struct managed_nested *n, const char *p, const char *end);

/* "A,B[C,D]": what is between the brackets. */
void managed_nested_add_arguments(struct managed_nested *n, const char *p, const char *end);

/* How many arguments the components take. */
size_t managed_nested_arity(const struct managed_nested *n);

/*
 * Writes the type, each component with its arguments. A lambda's holder is left out; the last component only where of_lambda says
 * that it is a lambda's. ret_args (may be NULL): the type arguments of holders, which are the method's around the lambda; they
 * live as long as n. Those of a holder around a state machine stand behind its method, and are not given.
 */
void managed_nested_put(const struct managed_nested *n, bool of_lambda, struct managed_arguments *ret_args, struct outbuf *out,
			int depth);

#endif
