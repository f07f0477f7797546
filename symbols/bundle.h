/*
 * Single-file .NET programs: an ELF host with the application's files behind it. Assemblies in it that are not compressed are
 * mapped out of it, so their precompiled code has its names by offset in the program's file.
 * Format: dotnet/runtime, src/native/corehost/bundle (header, manifest, file_entry) and docs/design/features/
 * (single-file bundler.md, host-error-codes); version 6, since .NET 6.
 */
#ifndef SYMBOLS_BUNDLE_H
#define SYMBOLS_BUNDLE_H

#include "base/error.h"
#include "symbols/symbol.h"

#include <stddef.h>
#include <stdint.h>

#define BUNDLE_HOST_BYTES_MAX ((uint64_t)256 << 20) /* of the host, in which the place of the bundle is looked for */
#define BUNDLE_MANIFEST_BYTES_MAX ((size_t)16 << 20)
#define BUNDLE_FILES_MAX ((uint32_t)1 << 16)
#define BUNDLE_PATH_MAX 4096

/* A file of the bundle. path lies in the manifest and has no NUL at its end. */
struct bundle_file {
	uint64_t offset, bytes;
	const char *path;
	uint32_t path_len;
};

/* Assemblies only, by offset, apart from each other. */
struct bundle_files {
	unsigned char *manifest;
	struct bundle_file *files;
	size_t nfiles;
};

/*
 * Reads the manifest out of len bytes that begin with it; data is taken by *ret_files where it succeeds. Files are inside of
 * file_bytes, and compressed ones left out. 0, -EBADMSG, -ENOTSUP: of another version; -E2BIG, -ENOMEM.
 */
int bundle_manifest(unsigned char *data, size_t len, uint64_t file_bytes, struct bundle_files *ret_files,
		    struct parse_error *err);

/* The same of a program's file. As bundle_manifest; -ENOENT: it holds no bundle; -errno. */
int bundle_read(int fd, struct bundle_files *ret_files, struct parse_error *err);
void bundle_files_free(struct bundle_files *files);

/*
 * A provider for all precompiled code in a bundle, by offset in the program's file; images in it are read when an address in them
 * is asked. fd is borrowed, a duplicate is kept. 0; -ENOENT: the file holds no bundle; -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM, -errno.
 */
int bundle_open(int fd, struct symbol_provider **ret_symbols, struct parse_error *err);

/*
 * What tells a bundle from others with the same host, as its build id does not: made of its manifest, which says where each file is and
 * has an id that is made of them all. 0; -ENOENT: the file holds no bundle; -ENOMEM, -errno.
 */
int bundle_identity(int fd, uint64_t *ret_identity);

/* Calls for each image with precompiled code, all of which are read now; stops where it gives other than 0, and gives that. */
int bundle_each(struct symbol_provider *bundle, int (*image)(void *ctx, struct symbol_provider *symbols), void *ctx);

#endif
