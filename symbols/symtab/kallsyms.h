/* The symbol provider of the running kernel and its modules, from /proc/kallsyms or a copy. */
#ifndef SYMBOLS_SYMTAB_KALLSYMS_H
#define SYMBOLS_SYMTAB_KALLSYMS_H

#include "base/error.h"
#include "symbols/core/symbol.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Parses kallsyms text, which is borrowed during the call. The provider takes an addr;
 * kallsyms_module gives the module of a symbol.
 *
 * It follows perf (tools/perf/util/symbol.c of 6.1, dso__load_all_kallsyms). It takes functions,
 * weak symbols, data and bss. Each symbol reaches to the next one. The kernel's last symbol, and a
 * module's last symbol before the kernel, reach to the end of the following page. (6.12: a module's
 * last symbol always reaches to its page's end.) If several lines have one address, the last one
 * wins.
 *
 * Returns 0, -EACCES (all addresses are 0, because kptr_restrict hides them), -EBADMSG (no good
 * line), -E2BIG or -ENOMEM.
 */
int kallsyms_parse(const char *text, size_t len, struct symbol_provider **ret_kernel,
		   struct parse_error *err);

/* Reads /proc/kallsyms. Errors: as for kallsyms_parse, or -errno. */
int kallsyms_load(struct symbol_provider **ret_kernel, struct parse_error *err);

/* The DSO that perf prints for a kernel address: "[kernel.kallsyms]" or "[module]"; borrowed. */
const char *kallsyms_module(struct symbol_provider *kernel, uint64_t addr);

/* The address of the last symbol of this name; 0: none. */
uint64_t kallsyms_addr_of(const struct symbol_provider *kernel, const char *name);

/*
 * Finds a kernel symbol in /proc/kallsyms. Reads only up to the first match; "_text" is near the
 * beginning. *ret_addr is 0 if addresses are hidden. Returns 0, -ENOENT or -errno.
 */
int kallsyms_find_live(const char *name, uint64_t *ret_addr);

#endif
