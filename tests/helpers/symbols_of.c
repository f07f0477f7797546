/*
 * Prints the results of symbol sources, for comparison with perf and for timing.
 *
 * usage: symbols_of [-t] [-m] [-r ROOT] image FILE | kallsyms | perfmap FILE | inlines FILE
 *
 * Reads addresses, one in hexadecimal per line: file offsets for image, vaddrs for inlines. Prints
 * "ADDR NAME+0xOFFSET" for each, with names as in perf script; "[unknown]" without a name. For
 * inlines prints the format of addr2line -a -i -f -s -C. -t: prints only the time to load. -m:
 * prints inlines as in DWARF: one line "ADDR NAME FILE:LINE ..." for each address, with mangled
 * names, innermost first.
 */
#include "symbols/names/demangle.h"
#include "symbols/symtab/image.h"
#include "elf/inlines.h"
#include "symbols/symtab/kallsyms.h"
#include "symbols/jit/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct image *image;
static struct inlines *inlines;

static int load(const char *kind, const char *path, const char *root, struct symbol_provider **ret)
{
	struct parse_error err = {0};
	int fd = path ? open(path, O_RDONLY) : -1;
	static struct opener_place roots[1] = {{.own = true}};
	int root_fd = open(root, O_PATH | O_DIRECTORY), error = -EINVAL;

	if (root_fd < 0 || opener_new_in(root_fd, &roots[0].opener))
		exit(2);
	close(root_fd);

	if (!strcmp(kind, "image") || !strcmp(kind, "inlines")) {
		struct elf_file file;

		error = elf_file_open(&file, fd, NULL, 0, &err);
		bool is_open = !error;

		if (!error && !strcmp(kind, "inlines"))
			error = inlines_open(&file, path, roots, 1, &inlines, &err);
		if (!error)
			error = image_open(&file, path, roots, 1, &image);
		if (!error && !strcmp(kind, "image"))
			*ret = image->symbols;
		if (is_open)
			elf_file_close(&file);
	} else if (!strcmp(kind, "kallsyms")) {
		error = kallsyms_load(ret, &err);
	} else if (!strcmp(kind, "perfmap")) {
		error = perfmap_load(fd, UINT64_MAX, ret, NULL, &err);
	}
	if (error)
		fprintf(stderr, "%s: %s: %s\n", path ? path : kind, strerror(-error),
			err.what ? err.what : "");
	return error;
}

static void print_symbol(struct symbol_provider *p, uint64_t addr)
{
	struct symbol s;

	if (!p || symbol_provider_find(p, addr, 0, &s)) {
		printf("%llx [unknown]\n", (unsigned long long)addr);
		return;
	}
	char *demangled = image ? demangle_perf(s.name) : NULL;

	printf("%llx %s+0x%llx\n", (unsigned long long)addr, demangled ? demangled : s.name,
	       (unsigned long long)(addr - s.base));
	free(demangled);
}

static const char *symbol_at(uint64_t vaddr, const char *otherwise)
{
	struct symbol s;
	uint64_t file_off;

	return image->symbols &&
			       !elf_segments_file_off(image->segments, image->nsegments, vaddr,
						      &file_off) &&
			       !symbol_provider_find(image->symbols, file_off, 0, &s)
		       ? s.name
		       : otherwise;
}

static void print_inlines(uint64_t vaddr)
{
	struct inline_frame frames[INLINES_DEPTH_MAX] = {{0}};
	size_t n = 1;

	printf("0x%016llx\n", (unsigned long long)vaddr);
	inlines_find(inlines, vaddr, frames, &n);
	for (size_t i = 0; i < n; i++) {
		const char *raw = frames[i].function ? frames[i].function : "??";

		if (!i && (!frames[i].function || frames[i].is_unqualified))
			raw = symbol_at(vaddr, raw);
		char *demangled = demangle_full(raw);

		printf("%s\n%s:", demangled ? demangled : raw,
		       frames[i].file ? frames[i].file : "??");
		if (frames[i].line || !frames[i].file)
			printf("%u\n", frames[i].line);
		else
			printf("?\n");
		free(demangled);
	}
}

static void print_raw_inlines(uint64_t vaddr)
{
	struct inline_frame frames[INLINES_DEPTH_MAX] = {{0}};
	size_t n = 1;

	inlines_find(inlines, vaddr, frames, &n);
	printf("%llx", (unsigned long long)vaddr);
	for (size_t i = 0; i < n; i++)
		printf(" %s %s:%u", frames[i].function ? frames[i].function : "??",
		       frames[i].file ? frames[i].file : "??", frames[i].line);
	printf("\n");
}

int main(int argc, char **argv)
{
	const char *root = "/";
	int only_time = 0, raw = 0, option;
	struct symbol_provider *p = NULL;
	char line[64];

	while ((option = getopt(argc, argv, "mr:t")) > 0) {
		if (option == 'r')
			root = optarg;
		only_time |= option == 't';
		raw |= option == 'm';
	}
	if (optind >= argc)
		return 2;
	double start = now_ms();

	if (load(argv[optind], argv[optind + 1], root, &p))
		return 1;
	if (only_time) {
		printf("%.2f ms\n", now_ms() - start);
		return 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (inlines && raw)
			print_raw_inlines(strtoull(line, NULL, 16));
		else if (inlines)
			print_inlines(strtoull(line, NULL, 16));
		else
			print_symbol(p, strtoull(line, NULL, 16));
	}
	if (!image)
		symbol_provider_free(p);
	image_free(image);
	inlines_free(inlines);
	return 0;
}
