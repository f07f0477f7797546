/* Native names as people read them: C++ (Itanium ABI), Rust (legacy and v0) and OCaml. */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include <stddef.h>
#include <stdint.h>

#define DEMANGLE_NAME_MAX ((size_t)64 << 10) /* longer names are left as they are */

/*
 * As `perf script` prints it: without parameters, `ns::Type<int>::method` (perf 6.1 with libiberty and DMGL_NO_OPTS; perf built
 * with the C++ runtime's demangler, as later ones may be, prints parameters, which folding cuts off).
 * NULL: not a mangled name, or memory is out; the
 * caller prints the name itself. For a name made up for a PLT slot, "NAME@plt", only NAME is demangled, as perf does.
 * The caller frees the result.
 */
char *demangle_perf(const char *name);

/* The same; *made_bytes grows by the text that was made, also where that became too long and was given up: a measure of the
 * time taken. */
char *demangle_perf_counted(const char *name, uint64_t *made_bytes);

/* With parameters: `ns::Type<int>::method(int, char const*) const`. Otherwise as demangle_perf. */
char *demangle_full(const char *name);

#endif
