/*
 * Shared by the parts of managed_type: the grammar (managed_type.c), nested classes and their type
 * arguments (managed_type_nested.c), names that compilers made (managed_type_generated.c).
 */
#ifndef SYMBOLS_NAMES_MANAGED_TYPE_IMPL_H
#define SYMBOLS_NAMES_MANAGED_TYPE_IMPL_H

#include "symbols/names/managed_type.h"

/* The number of arguments that the components take. */
size_t managed_nested_arity(const struct managed_nested *n);

/* Writes "<A,B>", or nothing without arguments. */
void managed_arguments_put(struct managed_arguments args, struct outbuf *out, int depth);

/*
 * Whether a class holds lambdas and the variables that they capture: <>c,
 * <>c__DisplayClass5_0.
 */
bool managed_generated_is_closure(struct managed_span name);

/*
 * Writes one component of a type's name: a state machine as its method, <>f__AnonymousType0 as
 * AnonymousType0, <File>F0123...__Type (64 hexadecimal digits) as Type. Drops reflection's
 * backslashes.
 */
void managed_type_put_type(struct managed_span name, struct managed_arguments args,
			   struct outbuf *out, int depth);

#endif
