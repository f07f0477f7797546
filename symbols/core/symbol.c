#include "symbols/core/symbol.h"

const char *symbol_source_name(enum symbol_source source)
{
	static const char *const names[SYMBOL_SOURCES] = {
		[SYMBOL_NONE] = "none",
		[SYMBOL_SYMTAB] = "symtab",
		[SYMBOL_DYNSYM] = "dynsym",
		[SYMBOL_PLT] = "plt",
		[SYMBOL_DEBUG_FILE] = "debug-file",
		[SYMBOL_MINI_DEBUG] = "mini-debug",
		[SYMBOL_AOT] = "aot",
		[SYMBOL_VDSO] = "vdso",
		[SYMBOL_KALLSYMS] = "kallsyms",
		[SYMBOL_KSYMBOL] = "ksymbol",
		[SYMBOL_PERFMAP] = "perf-map",
		[SYMBOL_JITDUMP] = "jitdump",
		[SYMBOL_MEMORY] = "runtime-memory",
		[SYMBOL_RUNDOWN] = "rundown",
		[SYMBOL_R2R] = "r2r",
		[SYMBOL_BOUNDS] = "bounds",
	};

	return (unsigned int)source < SYMBOL_SOURCES ? names[source] : "none";
}

bool symbol_source_is_managed(enum symbol_source source)
{
	switch (source) {
	case SYMBOL_PERFMAP:
	case SYMBOL_JITDUMP:
	case SYMBOL_MEMORY:
	case SYMBOL_RUNDOWN:
	case SYMBOL_R2R:
		return true;
	default:
		return false;
	}
}
