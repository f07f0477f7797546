/*
 * Prints names from images with precompiled .NET code, or compares them with the runtime's.
 *
 * usage: r2r_names names FILE...
 *        r2r_names time FILE...
 *        r2r_names compare MAPS JITDUMP [MISSING]
 *
 * FILE is an image, or a program that contains many.
 *   - names: all code, "START END NAME", as file offsets in hexadecimal
 *   - time: only the time to read the tables of all files
 *   - compare: each record [PreJIT] of a jitdump of the process with the mappings MAPS. Prints
 *     counts and examples of differences; records without a name go to the file MISSING.
 *     "same": name, start and end agree; "missing": no name; "wrong": the name or an end differs.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/reader.h"
#include "base/vec.h"
#include "symbols/bundle.h"
#include "symbols/r2r_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define EXAMPLES 20

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int open_file(const char *path, struct pe_file *ret_file)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	*ret_file = (struct pe_file){fd, 0, (uint64_t)st.st_size};
	return 0;
}

static int open_beside(void *ctx, const char *name, struct pe_file *ret_file)
{
	const char *slash = strrchr(ctx, '/');
	char path[4096];

	if (slash)
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - (const char *)ctx),
			 (const char *)ctx, name);
	else
		snprintf(path, sizeof(path), "%s", name);
	return open_file(path, ret_file) ? -ENOENT : 0;
}

/* path must outlive the result. */
static int open_image(char *path, struct symbol_provider **ret_symbols, bool *ret_bundle)
{
	struct r2r_assembly_opener beside = {.open = open_beside, .ctx = path};
	struct parse_error err = {0};
	struct pe_file file = {.fd = -1};
	int error = open_file(path, &file);

	*ret_bundle = false;
	if (!error)
		error = r2r_image_open(&file, &beside, ret_symbols, &err);
	if (error == -EBADMSG) {
		*ret_bundle = true;
		error = bundle_open(file.fd, ret_symbols, &err);
	}
	if (file.fd >= 0)
		close(file.fd);
	return error;
}

static int print_code(void *ctx, struct symbol_provider *symbols)
{
	struct symbol s;

	(void)ctx;
	for (uint32_t i = 0; i < r2r_image_pieces(symbols); i++) {
		int error =
			symbol_provider_find(symbols, r2r_image_piece_file_off(symbols, i), 0, &s);

		if (error)
			return error;
		printf("%llx %llx %s\n", (unsigned long long)s.start, (unsigned long long)s.end,
		       s.name);
	}
	return 0;
}

static int count_code(void *ctx, struct symbol_provider *symbols)
{
	*(unsigned long *)ctx += r2r_image_pieces(symbols);
	return 0;
}

static int files(char **paths, int n, bool only_time)
{
	struct symbol_provider **all =
		calloc((size_t)n + 1, sizeof(*all)); /* read into memory at once for measurements */
	unsigned long images = 0, pieces = 0;
	double start = now_ms();
	int failed = !all;

	for (int i = 0; i < n && all; i++) {
		struct symbol_provider *symbols = NULL;
		bool bundle;
		int r = open_image(paths[i], &symbols, &bundle);

		if (!r) {
			int (*use)(void *, struct symbol_provider *) =
				only_time ? count_code : print_code;

			images++;
			r = bundle ? bundle_each(symbols, use, &pieces) : use(&pieces, symbols);
		}
		/* The input may include assemblies without code. */
		if (r && r != -EBADMSG && r != -ENOENT) {
			fprintf(stderr, "%s: %s\n", paths[i], strerror(-r));
			failed = 1;
		}
		if (only_time)
			all[i] = symbols;
		else
			symbol_provider_free(symbols);
	}
	if (only_time)
		printf("%.2f ms %lu images %lu pieces\n", now_ms() - start, images, pieces);
	for (int i = 0; i < n && all; i++)
		symbol_provider_free(all[i]);
	free(all);
	return failed;
}

struct map {
	uint64_t start, end, pgoff;
	size_t image;
};

struct image {
	char *path;
	struct symbol_provider *symbols; /* NULL: no name */
	bool tried;
};

static VEC(struct map) maps;
static VEC(struct image) images;

static size_t image_of(const char *path)
{
	struct image image = {.path = NULL};

	for (size_t i = images.len; i-- > 0;)
		if (!strcmp(images.v[i].path, path))
			return i;
	image.path = strdup(path);
	if (!image.path || vec_push(&images, image))
		abort();
	return images.len - 1;
}

static int read_maps(const char *path)
{
	AUTO_FCLOSE FILE *f = fopen(path, "r");
	char line[8192];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;
		char prot[5];
		int at = 0;

		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, prot, &pgoff, &at) <
			    4 ||
		    prot[2] != 'x' || !at || line[at] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		struct map m = {start, end, pgoff, image_of(line + at)};

		if (vec_push(&maps, m))
			abort();
	}
	return f ? 0 : -errno;
}

static struct symbol_provider *symbols_at(uint64_t addr, uint64_t *ret_file_off)
{
	for (size_t i = 0; i < maps.len; i++) {
		const struct map *m = &maps.v[i];
		struct image *image = &images.v[m->image];
		bool bundle;

		if (addr < m->start || addr >= m->end)
			continue;
		if (!image->tried && open_image(image->path, &image->symbols, &bundle))
			image->symbols = NULL;
		image->tried = true;
		*ret_file_off = addr - m->start + m->pgoff;
		return image->symbols;
	}
	return NULL;
}

struct counts {
	unsigned long records, same, missing, wrong;
	FILE *missing_names;
};

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

/* For a cold part the runtime appends its name to that of the hot part: "NAME[PreJIT]NAME[PreJit-
 * cold]". */
static const char *name_of_cold(const char *name)
{
	size_t hot = strlen("[PreJIT]"), cold = strlen("[PreJit-cold]"),
	       len = strlen(name) > hot + cold ? (strlen(name) - hot - cold) / 2 : 0;
	const char *second = name + len + hot;

	return len && !strncmp(name + len, "[PreJIT]", hot) && !strncmp(name, second, len) ? second
											   : name;
}

static void compare_record(struct counts *c, uint64_t addr, uint64_t bytes, const char *name)
{
	uint64_t file_off = 0;
	struct symbol_provider *symbols;
	struct symbol s = {.name = ""};

	if (ends_with(name, "[PreJit-cold]"))
		name = name_of_cold(name);
	else if (!ends_with(name, "[PreJIT]"))
		return;
	c->records++;
	symbols = symbols_at(addr, &file_off);
	if (!symbols || symbol_provider_find(symbols, file_off, 0, &s) || s.source != SYMBOL_R2R) {
		if (c->missing++ < EXAMPLES)
			printf("missing: %llx %s\n", (unsigned long long)addr, name);
		if (c->missing_names)
			fprintf(c->missing_names, "%llx %llx %llx %s\n", (unsigned long long)addr,
				(unsigned long long)bytes, (unsigned long long)file_off, name);
		return;
	}
	if (!strcmp(s.name, name) && s.start == file_off && s.base == file_off &&
	    s.end == file_off + bytes) {
		c->same++;
		return;
	}
	if (c->wrong++ < EXAMPLES)
		printf("wrong: %llx-%llx of the runtime, %llx-%llx of the image\n\t%s\n\t%s\n",
		       (unsigned long long)file_off, (unsigned long long)(file_off + bytes),
		       (unsigned long long)s.start, (unsigned long long)s.end, name, s.name);
}

/* Records of a jitdump (Linux, tools/perf/Documentation/jitdump-specification.txt): type, size,
 * time; for code also pid, tid, vma, addr, size, index, name. */
static int compare(char **paths, int n)
{
	struct counts c = {.missing_names = n > 2 ? fopen(paths[2], "w") : NULL};
	AUTO_FREE char *data = NULL;
	size_t len;
	int error = read_maps(paths[0]);

	if (!error)
		error = file_read_at(AT_FDCWD, paths[1], (size_t)4 << 30, &data, &len);
	if (error) {
		fprintf(stderr, "%s\n", strerror(-error));
		return 1;
	}
	struct reader r = reader_of(data, len);

	reader_seek(&r, 8);
	for (size_t at = reader_u32(&r); at < len;) {
		reader_seek(&r, at);
		uint32_t type = reader_u32(&r), bytes = reader_u32(&r);

		reader_skip(&r, 8 + 4 + 4 + 8);
		uint64_t addr = reader_u64(&r), code_bytes = reader_u64(&r);

		reader_skip(&r, 8);
		const char *name = reader_cstr(&r, 1 << 20, NULL);

		if (r.failed || bytes < 16)
			break;
		if (!type)
			compare_record(&c, addr, code_bytes, name);
		at += bytes;
	}
	printf("records %lu same %lu missing %lu wrong %lu\n", c.records, c.same, c.missing,
	       c.wrong);
	if (c.missing_names && fclose(c.missing_names))
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "names"))
		return files(argv + 2, argc - 2, false);
	if (argc > 2 && !strcmp(argv[1], "time"))
		return files(argv + 2, argc - 2, true);
	if (argc > 3 && !strcmp(argv[1], "compare"))
		return compare(argv + 2, argc - 2);
	return 2;
}
