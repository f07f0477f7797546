/* Names of C++ and Rust functions in two forms: perf's, and a shorter one for people. */
#ifndef SYMBOLS_NAMES_NATIVE_NAME_H
#define SYMBOLS_NAMES_NATIVE_NAME_H

#include "base/outbuf.h"

#include <stddef.h>

#define NATIVE_NAME_BYTES_MAX ((size_t)16 << 10) /* longer names are copied unchanged */

/*
 * Writes what perf prints for a symbol of an ELF file: demangled, without return type and
 * parameters. Names that are not mangled are copied. raw is NUL-terminated after len bytes. Returns
 * 0 or out's error.
 */
int native_name_perf(const char *raw, size_t len, struct outbuf *out);

/*
 * Writes the full form: perf's form without ABI tags, inline namespaces, and allocators and
 * character traits among template arguments. Writes "std::string" for its template and ">>" for ">
 * >". Names that are not mangled lose a compiler's suffix (".constprop.0", ".cold"). Otherwise like
 * native_name_perf.
 */
int native_name_full(const char *raw, size_t len, struct outbuf *out);

#endif
