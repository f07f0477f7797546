/* Shared by tests of symbols/jit/methods and its file: adding and looking up methods. */
#ifndef JIT_METHODS_CHECK_H
#define JIT_METHODS_CHECK_H

#include "base/bitset.h"
#include "base/file.h"
#include "symbols/jit/methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCE SYMBOL_MEMORY

static inline struct jit_methods *new_methods(void)
{
	struct jit_methods *m;

	assert_int_equal(jit_methods_new(&m), 0);
	return m;
}

static inline int add(struct jit_methods *m, uint64_t start, uint32_t bytes, uint64_t from,
		      uint64_t sure, uint64_t until, const char *name)
{
	return jit_methods_add(m, &(struct jit_method){.start = start,
						       .bytes = bytes,
						       .source = SOURCE,
						       .from_ns = from,
						       .sure_ns = sure,
						       .until_ns = until,
						       .name = name,
						       .len = (uint32_t)strlen(name)});
}

static inline struct jit_methods_result at(const struct jit_methods *m, uint64_t addr,
					   uint64_t time)
{
	struct jit_methods_result a;

	jit_methods_find(m, SOURCE, addr, time, &a);
	assert_true(a.from_ns <= time && time < a.until_ns);
	return a;
}

static inline void assert_at(const struct jit_methods *m, uint64_t addr, uint64_t time,
			     const char *name, uint64_t from, uint64_t until)
{
	struct jit_methods_result a = at(m, addr, time);

	if (name) {
		assert_non_null(a.method);
		assert_string_equal(a.method->name, name);
	} else {
		assert_null(a.method);
	}
	assert_int_equal(a.from_ns, from);
	assert_true(a.until_ns == until);
}

#endif
