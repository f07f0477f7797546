/*
 * Compares names from metadata with those that the runtime wrote into a perf map.
 *
 * usage: metadata_names MAP ASSEMBLY...
 *
 * ASSEMBLY is a file; methods of other assemblies do not count. Each method of the map must equal a
 * method of its assembly by its text without tier. Generic types take the instantiation from the
 * map. Prints at most 100 differences. Last line: "same N generic G differ D dynamic Y unread
 * E"; G is a part of N. With -t in place of MAP, prints the times to open an assembly and to name
 * all its methods.
 */
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/metadata.h"
#include "dotnet/metadata_names.h"
#include "dotnet/pe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SHOWN_MAX 100
#define ARGUMENTS_MAX 64

static struct clr_metadata *metadata[4096];
static size_t nmetadata;

/* Names without instantiation, with the index of their metadata and their row. */
static struct intern names, assemblies;
static VEC(struct {
	size_t metadata;
	uint32_t rid;
}) places;
static size_t same, generic, differ, dynamic, unread;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* The metadata of an assembly; -EBADMSG, -ENOENT: the file is native. */
static int read_metadata(const char *path, unsigned char **ret_data, size_t *ret_len)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct pe_file file = {.fd = fd};
	struct pe pe;
	struct pe_cli cli;
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	file.bytes = (uint64_t)status.st_size;
	int error = pe_open(&file, &pe, NULL);

	if (!error)
		error = pe_cli(&pe, pe.directories[PE_CLI], &cli, NULL);
	if (!error)
		error = pe_read(&pe, cli.metadata, UINT32_MAX, ret_data, NULL);
	if (!error)
		*ret_len = cli.metadata.bytes;
	return error;
}

static int add_names(size_t index, bool timed)
{
	struct clr_metadata *m = metadata[index];
	struct outbuf out = outbuf_to(-1);

	for (uint32_t rid = 1; rid <= clr_metadata_rows(m, CLR_METHOD_DEF); rid++) {
		uint32_t id;

		out.len = 0;
		int error = clr_metadata_method_name(m, rid, NULL, NULL, NULL, &out);

		if (error)
			printf("%s: method %#x: %s\n", clr_metadata_assembly(m), rid,
			       strerror(-error));
		else if (timed)
			continue;
		else if (intern_put(&names, out.data, out.len, &id))
			return -ENOMEM;
		else if (id == places.len &&
			 vec_push(&places, ((__typeof__(*places.v)){index, rid})))
			return -ENOMEM;
	}
	return outbuf_close(&out);
}

static void load(const char *path, bool timed)
{
	unsigned char *data;
	size_t len = 0;
	struct parse_error err = {0};
	uint32_t id;
	int error = read_metadata(path, &data, &len);

	if (error == -EBADMSG || error == -ENOENT)
		return;
	if (error) {
		fprintf(stderr, "%s: %s\n", path, strerror(-error));
		exit(1);
	}
	if (nmetadata == sizeof(metadata) / sizeof(metadata[0]))
		exit(1);
	double begin = now_ms();

	error = clr_metadata_open(data, len, &metadata[nmetadata], &err);
	double opened = now_ms();

	if (error) {
		fprintf(stderr, "%s: %s at %llu\n", path, err.what, (unsigned long long)err.offset);
		exit(1);
	}
	if (!clr_metadata_assembly(metadata[nmetadata]))
		return;
	if (add_names(nmetadata, timed) ||
	    intern_str(&assemblies, clr_metadata_assembly(metadata[nmetadata]), &id))
		exit(1);
	if (timed)
		printf("%s: %u methods, open %.3f ms, all names %.3f ms\n", path,
		       clr_metadata_rows(metadata[nmetadata], CLR_METHOD_DEF), opened - begin,
		       now_ms() - opened);
	nmetadata++;
}

/* The instantiation in "RETURN [ASSEMBLY] TYPE[INSTANTIATION]::METHOD(...)", with brackets; len 0:
 * none. */
static const char *find_instantiation(const char *type, size_t *ret_len)
{
	size_t depth = 0;
	const char *open = NULL;

	*ret_len = 0;
	for (const char *p = type; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '[') {
			open = depth++ ? open : p;
		} else if (*p == ']' && depth && !--depth) {
			*ret_len = (size_t)(p + 1 - open);
			return open;
		} else if (!depth && p[0] == ':' && p[1] == ':') {
			return NULL;
		}
	}
	return NULL;
}

/* Splits "[A,B[C,D]]" in place into NUL-terminated parts. */
static size_t split_arguments(char *text, const char **args)
{
	size_t n = 0, depth = 0;

	args[n++] = text + 1;
	for (char *p = text; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '[') {
			depth++;
		} else if (*p == ']' && !--depth) {
			*p = 0;
			break;
		} else if (*p == ',' && depth == 1 && n < ARGUMENTS_MAX) {
			*p = 0;
			args[n++] = p + 1;
		}
	}
	return n;
}

static bool same_with_arguments(const char *name, char *instantiation, uint32_t id)
{
	const char *args[ARGUMENTS_MAX];
	struct clr_instantiation inst = {args, split_arguments(instantiation, args)};
	struct outbuf out = outbuf_to(-1);
	int error = clr_metadata_method_name(metadata[places.v[id].metadata], places.v[id].rid,
					     NULL, &inst, NULL, &out);
	bool is_same = !error && out.len == strlen(name) && !memcmp(out.data, name, out.len);

	outbuf_close(&out);
	return is_same;
}

/* Only the assembly's brackets have a space on both sides. */
static char *find_assembly(char *name)
{
	for (char *p = name; (p = strstr(p, " [")); p += 2) {
		char *close = strchr(p + 2, ']');

		if (close && close[1] == ' ')
			return p + 2;
	}
	return NULL;
}

static void check(char *name)
{
	char *assembly = find_assembly(name), *tier = strrchr(name, '[');

	if (!assembly)
		return;
	if (tier && tier[-1] == ')')
		*tier = 0;
	char *close = strchr(assembly, ']');
	size_t len;
	uint32_t id;

	if (!strncmp(close, "] dynamicClass::", 16)) {
		dynamic++;
		return;
	}
	if (intern_find(&assemblies, assembly, (size_t)(close - assembly), &id)) {
		unread++;
		return;
	}
	const char *instantiation = find_instantiation(close + 2, &len);
	char *bare = strdup(name), *arguments = len ? strndup(instantiation, len) : NULL;

	if (len)
		memmove(bare + (instantiation - name), instantiation + len,
			strlen(instantiation + len) + 1);
	bool found = !intern_find(&names, bare, strlen(bare), &id);
	bool is_same = found && (!len || same_with_arguments(name, arguments, id));

	same += is_same;
	generic += is_same && len;
	if (!is_same && differ++ < SHOWN_MAX)
		printf("differs: %s\n", name);
	free(bare);
	free(arguments);
}

int main(int argc, char **argv)
{
	bool timed = argc > 1 && !strcmp(argv[1], "-t");
	char line[65536];

	for (int i = 2; i < argc; i++)
		load(argv[i], timed);
	if (timed)
		return 0;
	FILE *map = argc > 1 ? fopen(argv[1], "re") : NULL;

	if (!map)
		return 2;
	while (fgets(line, sizeof(line), map)) {
		char *name = strchr(line, ' ');

		name = name ? strchr(name + 1, ' ') : NULL;
		line[strcspn(line, "\n")] = 0;
		if (name && strncmp(name + 1, "stub", 4) != 0)
			check(name + 1);
	}
	fclose(map);
	printf("same %zu generic %zu differ %zu dynamic %zu unread %zu\n", same, generic, differ,
	       dynamic, unread);
	return differ != 0;
}
