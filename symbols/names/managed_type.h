/*
 * Shortens types as the .NET runtime writes them in signatures and instantiations. Handles nested
 * types (managed_type_nested.c) and names that compilers make (managed_type_generated.c). The three
 * files call one another, because type arguments can contain all of these.
 */
#ifndef SYMBOLS_NAMES_MANAGED_TYPE_H
#define SYMBOLS_NAMES_MANAGED_TYPE_H

#include "base/outbuf.h"
#include "symbols/names/managed_text.h"

#include <stdbool.h>
#include <stddef.h>

#define MANAGED_TYPE_DEPTH_MAX 24 /* type arguments nested deeper are copied unchanged */

/*
 * Writes one type without namespaces, assemblies, arity and modifiers, and moves t->p after it.
 * Reads the syntax of ECMA-335's ilasm and that of reflection:
 *
 *	class [System.Collections]System.Collections.Generic.Dictionary`2<!0,valuetype A.P>&
 *		Dictionary<!0,P>&
 *	System.Collections.Generic.List`1[System.Int32]
 *		List<int32>
 */
void managed_type_put(struct managed_text *t, struct outbuf *out, int depth);

/* Writes types separated by commas, up to the closing character (not consumed) or the end. */
void managed_types_put(struct managed_text *t, char closer, struct outbuf *out, int depth);

/*
 * Nested types: Outer`1+Inner`1[A,B] becomes Outer<A>.Inner<B>. All type arguments stand at the
 * end.
 */

#define MANAGED_COMPONENTS_MAX 32 /* further ones are left out */
#define MANAGED_ARGUMENTS_MAX 64

/* Borrows the text. Array elements beyond the counts are not initialized. */
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

/* Adds a component: "Outer`1". */
void managed_nested_add(struct managed_nested *n, const char *p, const char *end);

/* Adds the type arguments between the brackets: "A,B[C,D]". */
void managed_nested_add_arguments(struct managed_nested *n, const char *p, const char *end);

/* Type arguments of the method from which a compiler made a name, in any syntax. */
struct managed_arguments {
	const struct managed_span *v;
	size_t n;
};

/*
 * Writes the type, each component with its arguments. Leaves out classes that hold lambdas; the
 * last component only if of_lambda says that it holds one.
 *
 * ret_args (may be NULL) receives the type arguments of such a class. They belong to the method
 * around the lambda and live as long as n. The arguments of a class around a state machine are
 * written after its method and are not returned.
 */
void managed_nested_put(const struct managed_nested *n, bool of_lambda,
			struct managed_arguments *ret_args, struct outbuf *out, int depth);

/* Names that compilers of .NET languages make */

/* Whether a type is a state machine: <Run>d__5, or <<Run>b__0>d of a lambda. */
bool managed_generated_is_state_machine(struct managed_span name);

/*
 * Writes a method's name as in the source: <Run>b__0_4 becomes Run.lambda4, <Run>g__Local|8_2
 * becomes Run.Local, <>m__Finally1 becomes Finally1. An explicit implementation loses its
 * interface's namespace. args follow the outermost method. Other names stay unchanged.
 */
void managed_type_put_method(struct managed_span name, struct managed_arguments args,
			     struct outbuf *out, int depth);

#endif
