/* Input: a jitdump. covers: symbols/jit/jitdump.c symbols/jit/methods.c symbols/jit/names.c */
#include "symbols/jit/names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the same bytes from a file, as users do. */
static void load_file(const uint8_t *data, size_t size, const struct jitdump_stats *expected)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);
	struct jitdump_stats stats;
	struct jit_methods *m;

	if (fd < 0)
		return;
	if (write(fd, data, size) == (ssize_t)size && !jit_methods_new(&m)) {
		if (!jitdump_load(fd, m, NULL, &stats, NULL) &&
		    memcmp(&stats, expected, sizeof(stats)) != 0)
			abort();
		jit_methods_free(m);
	}
	close(fd);
}

static void probe(struct symbol_provider *names, uint64_t addr, uint64_t time)
{
	struct jitdump_line line;
	struct symbol s;

	if (symbol_provider_find(names, addr, time, &s))
		return;
	if (s.start > addr || s.end <= addr || s.from_ns > time || s.until_ns <= time ||
	    strlen(s.name) != s.name_len || symbol_provider_piece(names, addr, time) != s.piece)
		abort();
	if (!jit_names_line(names, addr, time, &line) && !line.file)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_names_sources sources = {0};
	struct symbol_provider *names;
	struct jitdump_stats stats = {0};

	if (jit_methods_new(&sources.methods))
		return 0;
	if (jitdump_parse(data, size, sources.methods, &sources.jitdump, &stats, NULL) ||
	    jit_methods_finish(sources.methods)) {
		jit_methods_free(sources.methods);
		jitdump_free(sources.jitdump);
		return 0;
	}
	load_file(data, size, &stats);
	sources.jitdump_stats = stats;
	if (jit_names_new(&sources, &names) || !names)
		return 0;
	for (uint64_t i = 0; i < 64; i++) {
		probe(names, 0x1000 + i * 16, 100 + i);
		probe(names, 0x2000 + i * 16, i * 16);
	}
	for (size_t i = 0; i + 16 <= size && i < 1024; i += 8) {
		uint64_t addr, time;

		memcpy(&addr, data + i, sizeof(addr));
		memcpy(&time, data + i + 8, sizeof(time));
		probe(names, addr, time);
	}
	symbol_provider_free(names);
	return 0;
}
