/* C++ and Rust names as people wrote them, in two forms. */
#ifndef SYMBOLS_NATIVE_NAME_H
#define SYMBOLS_NATIVE_NAME_H

#include "base/outbuf.h"

#include <stddef.h>

#define NATIVE_NAME_BYTES_MAX ((size_t)16 << 10) /* longer names are taken over as they stand */

/* What perf prints for a symbol of an ELF file: demangled, without return type and parameters; names that are not mangled
 * are taken over. raw is NUL-terminated after len bytes. 0 or out's error. */
int native_name_perf(const char *raw, size_t len, struct outbuf *out);

/*
 * The full form: perf's, less what says nothing to a reader: ABI tags, inline namespaces, allocators and character traits
 * among template arguments, "std::string" written out, "> >". Names that are not mangled lose a compiler's suffix
 * (".constprop.0", ".cold"). As native_name_perf.
 */
int native_name_full(const char *raw, size_t len, struct outbuf *out);

#endif
