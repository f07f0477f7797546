/* Names that compilers of .NET languages make from the source's: closures, state machines, lambdas, local functions. */
#ifndef SYMBOLS_MANAGED_GENERATED_H
#define SYMBOLS_MANAGED_GENERATED_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>

struct managed_span {
	const char *p;
	size_t n;
};

static inline struct managed_span managed_span_of(const char *p, const char *end)
{
	return (struct managed_span){p, (size_t)(end - p)};
}

/* <>c, <>c__DisplayClass5_0: holders of lambdas and of what they capture. */
bool managed_generated_is_closure(struct managed_span name);

/* <Run>d__5, and of lambdas <<Run>b__0>d. */
bool managed_generated_is_state_machine(struct managed_span name);

/* Type arguments that belong to the method a name was made from, as texts in any spelling. */
struct managed_arguments {
	const struct managed_span *v;
	size_t n;
};

void managed_arguments_put(struct managed_arguments args, struct outbuf *out, int depth);

/*
 * A method's name as in the source: <Run>b__0_4 is Run.lambda4, <Run>g__Local|8_2 is Run.Local, <>m__Finally1 is Finally1; an
 * explicit implementation loses its interface's namespace. args stand behind the outermost method. Other names as they are.
 */
void managed_generated_put_method(struct managed_span name, struct managed_arguments args, struct outbuf *out, int depth);

/*
 * One component of a type's name: a state machine's is its method's, <>f__AnonymousType0 is AnonymousType0,
 * <File>F0123...__Type (64 hexadecimal digits) is Type. Reflection's backslashes go.
 */
void managed_generated_put_type(struct managed_span name, struct managed_arguments args, struct outbuf *out, int depth);

#endif
