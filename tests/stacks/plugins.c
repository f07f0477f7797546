/* Two libraries, loaded and unloaded in turn at the same addresses. The arguments are their
 * paths. */
#include "known.h"

#include <dlfcn.h>

static volatile unsigned sink;

#define WITH(with, name)                                                                     \
	static NOINLINE unsigned with(const char *path, unsigned x)                          \
	{                                                                                    \
		void *library;                                                               \
		unsigned (*enter)(unsigned);                                                 \
                                                                                             \
		LIBRARY(LIBC_ANY "+", library = dlopen(path, RTLD_LAZY));                    \
		LIBRARY(LIBC_ANY "+", enter = (unsigned (*)(unsigned))dlsym(library, name)); \
		x += CALL_AS(name, enter, x);                                                \
		LIBRARY(LIBC_ANY "+", dlclose(library));                                     \
		return x;                                                                    \
	}
WITH(with_one, "one_enter")
WITH(with_two, "two_enter")

int main(int argc, char **argv)
{
	unsigned x = 1;

	if (argc != 3)
		return 2;
	for (int i = 1; i < 3; i++) {
		void *library = dlopen(argv[i], RTLD_LAZY);
		void (*print)(void) =
			library ? (void (*)(void))dlsym(library, "plugin_print_edges") : NULL;

		if (!print)
			return 1;
		print();
		dlclose(library);
	}
	known_ready();
	for (;;) {
		x += CALL(with_one, argv[1], x);
		x += CALL(with_two, argv[2], x);
		sink = x;
	}
}
