#include "symbols/symbol.h"

const char *symbol_source_name(enum symbol_source source)
{
	static const char *const names[SYMBOL_SOURCES] = {
		[SYMBOL_NONE] = "none",
		[SYMBOL_SYMTAB] = "symtab",
		[SYMBOL_DYNSYM] = "dynsym",
		[SYMBOL_PLT] = "plt",
		[SYMBOL_DEBUG_FILE] = "debug-file",
		[SYMBOL_VDSO] = "vdso",
		[SYMBOL_KALLSYMS] = "kallsyms",
		[SYMBOL_KSYMBOL] = "ksymbol",
		[SYMBOL_PERFMAP] = "perf-map",
		[SYMBOL_BOUNDS] = "bounds",
	};

	return (unsigned int)source < SYMBOL_SOURCES ? names[source] : "none";
}
