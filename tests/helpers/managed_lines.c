/*
 * Prints the source lines of methods of a .NET assembly.
 *
 * usage: managed_lines FILE.dll
 *
 * Reads "KIND TOKEN IL NATIVE FILE:LINE", with hexadecimal numbers. Prints the same with the
 * FILE:LINE of the IL offset. For KIND native it is the line of the precompiled code directly
 * before NATIVE, a return address. Without a line it prints "unknown".
 */
#include "symbols/core/line_source.h"
#include "dotnet/portable_pdb.h"
#include "symbols/r2r_image.h"
#include "symbols/r2r_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *path;
static struct symbol_provider *symbols;

static int open_beside(void *ctx, const char *name, int *ret_fd)
{
	const char *slash = strrchr(path, '/');
	char other[4096];

	(void)ctx;
	snprintf(other, sizeof(other), "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
	*ret_fd = open(other, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int open_no_assembly(void *ctx, const char *name, struct pe_file *ret_file)
{
	(void)ctx, (void)name, (void)ret_file;
	return -ENOENT;
}

/* The file offset of a place in a method's precompiled code; 0: none, or more than one. */
static uint64_t place_of(uint32_t rid, uint32_t native)
{
	uint64_t found = 0;

	for (uint32_t i = 0; symbols && i < r2r_image_pieces(symbols); i++) {
		uint64_t at = r2r_image_piece_file_off(symbols, i);
		struct r2r_image_method m;

		if (r2r_image_method(symbols, at, &m) || m.rid != rid || m.native)
			continue;
		if (found)
			return 0;
		found = at;
	}
	return found ? found + native : 0;
}

static void print_line(struct portable_pdb *pdb, struct line_source *lines, const char *kind,
		       uint32_t token, uint32_t il, uint32_t native)
{
	struct inline_frame frame = {0};
	uint64_t at = strcmp(kind, "native") ? 0 : place_of(token & 0xffffff, native - 1);
	size_t n;
	int r;

	if (strcmp(kind, "native"))
		r = portable_pdb_line(pdb, token & 0xffffff, il, &frame.file, &frame.line);
	else
		r = at && lines ? line_source_find(lines, at, 0, &frame, &n) : -ENOENT;
	printf("%s %x %x %x ", kind, token, il, native);
	if (r)
		printf("unknown\n");
	else
		printf("%s:%u\n", frame.file, frame.line);
}

int main(int argc, char **argv)
{
	struct pe_file file = {.fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1};
	struct r2r_assembly_opener beside = {.open = open_no_assembly};
	struct line_source *lines = NULL;
	struct portable_pdb *pdb;
	char line[4096], kind[32];
	uint32_t token, il, native;
	struct stat st;
	struct pe pe;

	if (file.fd < 0 || fstat(file.fd, &st))
		return 2;
	path = argv[1];
	file.bytes = (uint64_t)st.st_size;
	int r = pe_open(&file, &pe, NULL);

	if (!r)
		r = portable_pdb_open_image(&pe, open_beside, NULL, NULL, &pdb);
	if (r) {
		fprintf(stderr, "managed_lines: %s: %s\n", path, strerror(-r));
		return 1;
	}
	if (!r2r_image_open(&file, &beside, &symbols, NULL))
		r2r_lines_open(&file, symbols, &(struct pdb_places){.open_beside = open_beside},
			       &lines);
	while (fgets(line, sizeof(line), stdin))
		if (sscanf(line, "%31s %x %x %x", kind, &token, &il, &native) == 4)
			print_line(pdb, lines, kind, token, il, native);
	portable_pdb_free(pdb);
	line_source_free(lines);
	symbol_provider_free(symbols);
	return 0;
}
