/* Names of the running kernel and its modules, from /proc/kallsyms or a copy of it. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include "base/error.h"
#include "symbols/symbol.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Parses kallsyms text (borrowed only during the call). 0; -EACCES where all addresses are 0 (kptr_restrict hides them);
 * -EBADMSG without a good line; -E2BIG; -ENOMEM. find takes an addr; the module of a symbol comes from kallsyms_module.
 *
 * By perf's rules (tools/perf/util/symbol.c of 6.1, dso__load_all_kallsyms): functions, weak ones, data and bss; each reaches to
 * the next one, the kernel's last and a module's before the kernel to the end of the following page (6.12: a module's
 * last one always to its page's end); of one address the last line wins.
 */
int kallsyms_parse(const char *text, size_t len, struct symbol_provider **ret_kernel,
		   struct parse_error *err);

/* Reads /proc/kallsyms. As kallsyms_parse, and -errno. */
int kallsyms_load(struct symbol_provider **ret_kernel, struct parse_error *err);

/* What perf prints as the DSO of a kernel address: "[kernel.kallsyms]" or "[module]"; borrowed. */
const char *kallsyms_module(struct symbol_provider *kernel, uint64_t addr);

/* The address of the last symbol of this name; 0: there is none. */
uint64_t kallsyms_addr_of(const struct symbol_provider *kernel, const char *name);

/* The same from /proc/kallsyms, which is read as far as the first one: "_text" is near its beginning. 0 where addresses are
 * hidden. 0; -ENOENT; -errno. */
int kallsyms_look_up(const char *name, uint64_t *ret_addr);

#endif
