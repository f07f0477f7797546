/* Demangles native names: C++ (Itanium ABI), Rust (legacy and v0) and OCaml. */
#ifndef SYMBOLS_NAMES_DEMANGLE_H
#define SYMBOLS_NAMES_DEMANGLE_H

#include <stddef.h>
#include <stdint.h>

#define DEMANGLE_NAME_MAX ((size_t)64 << 10) /* bytes; longer names are not demangled */

/*
 * Demangles as `perf script` does, without parameters: `ns::Type<int>::method` (perf 6.1 with
 * libiberty and DMGL_NO_OPTS). A perf that was built with the C++ runtime's demangler prints
 * parameters, which folding cuts off.
 *
 * In the made-up name of a PLT slot, "NAME@plt", only NAME is demangled, as in perf. Returns NULL
 * if the name is not mangled, memory is out, or the name takes over 50 ms of CPU; the caller then
 * prints the name itself. The caller frees the result.
 */
char *demangle_perf(const char *name);

/*
 * Does the same and adds the bytes of text to *made_bytes, also of text that grew too long and was
 * dropped. They measure the time taken.
 */
char *demangle_perf_counted(const char *name, uint64_t *made_bytes);

/*
 * Demangles with parameters: `ns::Type<int>::method(int, char const*) const`. Otherwise like
 * demangle_perf.
 */
char *demangle_full(const char *name);

#endif
