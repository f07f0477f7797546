/* Types as the .NET runtime writes them in signatures and instantiations, made short. */
#ifndef SYMBOLS_MANAGED_TYPE_H
#define SYMBOLS_MANAGED_TYPE_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>

#define MANAGED_TYPE_DEPTH_MAX 24 /* type arguments nested deeper are copied as they stand */

/* Text that is read from p towards end. */
struct managed_text {
	const char *p, *end;
};

/*
 * Writes one type without namespaces, assemblies, arity and modifiers, and moves t->p behind it:
 * "class [System.Collections]System.Collections.Generic.Dictionary`2<!0,valuetype A.P>&" is "Dictionary<!0,P>&". Reads ECMA-335's
 * ilasm syntax and that of reflection ("System.Collections.Generic.List`1[System.Int32]" is "List<int32>").
 */
void managed_type_put(struct managed_text *t, struct outbuf *out, int depth);

/* Types separated by commas up to the closing character (not consumed) or the end. */
void managed_types_put(struct managed_text *t, char closer, struct outbuf *out, int depth);

static inline bool managed_type_opens(char c)
{
	return c == '<' || c == '[' || c == '(';
}

static inline bool managed_type_closes(char c)
{
	return c == '>' || c == ']' || c == ')';
}

/* Behind the bracket that closes the one at p, or end. Counts <>, [] and (), but not behind reflection's backslashes. */
const char *managed_type_skip_brackets(const char *p, const char *end);

#endif
