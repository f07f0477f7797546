/* Input: a perf map. covers: symbols/jit/perfmap.c base/ranges.c base/radix_sort.c */
#include "symbols/jit/perfmap.h"
#include "tests/fuzz/fuzz_probe.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void probe(struct symbol_provider *map, uint64_t addr)
{
	struct symbol s;

	if (fuzz_probe_range(map, addr, &s) && s.base > s.start)
		abort();
}

/* Reads the same bytes from a file, as users do, with much and with little memory. */
static void load_file(const uint8_t *data, size_t size)
{
	static const uint64_t memory[] = {UINT64_MAX, 2048};
	int fd = memfd_create("perfmap", MFD_CLOEXEC);
	struct perfmap_stats stats;
	struct symbol_provider *map;

	if (fd < 0)
		return;
	for (int i = 0; i < 2 && write(fd, data, size) == (ssize_t)size; i++) {
		if (perfmap_load(fd, memory[i], &map, &stats, NULL))
			continue;
		if (stats.memory_bytes > memory[i] || stats.cut_bytes > 2 * size)
			abort();
		symbol_provider_free(map);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_provider *map;
	struct perfmap_stats stats;
	struct parse_error err;

	load_file(data, size);
	if (perfmap_parse((const char *)data, size, &map, &stats, &err))
		return 0;
	if (stats.bad_lines >= stats.lines)
		abort();
	for (uint64_t a = 0; a < 64; a++) {
		probe(map, a * 8);
		probe(map, 0x1000 + a * 8);
	}
	for (size_t i = 0; i + 8 <= size && i < 512; i++)
		probe(map, *(const uint8_t *)(data + i) * 0x10101010101ULL);
	symbol_provider_free(map);
	return 0;
}
