/* Input: the text of /proc/kallsyms. covers: symbols/symtab/kallsyms.c symbols/symtab/symtab.c */
#include "symbols/symtab/kallsyms.h"
#include "tests/fuzz/fuzz_probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The running kernel's symbols, if readable: each address has a symbol. */
static void read_running(void)
{
	struct symbol_provider *k;
	struct symbol s;
	static bool done;
	uint64_t addr;

	if (done)
		return;
	done = true;
	if (kallsyms_load(&k, NULL))
		return;
	if (!kallsyms_find_live("_text", &addr) && symbol_provider_find(k, addr, 0, &s))
		abort();
	symbol_provider_free(k);
}

static void probe(struct symbol_provider *k, uint64_t addr)
{
	struct symbol s;

	if (!fuzz_probe_range(k, addr, &s))
		return;
	if (!*kallsyms_module(k, addr))
		abort();
	/* The last of several equal names wins. */
	if (symbol_provider_find(k, kallsyms_addr_of(k, s.name), 0, &s))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_provider *k;
	struct parse_error err;

	read_running();
	if (kallsyms_parse((const char *)data, size, &k, &err))
		return 0;
	for (uint64_t i = 0; i < 256; i++) {
		probe(k, i * 0x800);
		probe(k, 0xffffffff80800000 + i * 0x800);
		probe(k, 0xffffffffc0000000 + i * 0x10000);
	}
	symbol_provider_free(k);
	return 0;
}
