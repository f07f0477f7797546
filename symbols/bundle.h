/*
 * Finds assemblies in single-file .NET programs: an ELF host with the files of the application
 * appended. Uncompressed assemblies are mapped from that file. Their precompiled code is named by
 * offset in the program's file. Format: dotnet/runtime, src/native/corehost/bundle (header,
 * manifest, file_entry) and docs/design/features/ (single-file bundler.md, host-error-codes);
 * version 6, since .NET 6.
 */
#ifndef SYMBOLS_BUNDLE_H
#define SYMBOLS_BUNDLE_H

#include "base/error.h"
#include "symbols/core/symbol.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes of the host that are searched for the place of the bundle. */
#define BUNDLE_HOST_BYTES_MAX ((uint64_t)64 << 20)
#define BUNDLE_MANIFEST_BYTES_MAX ((size_t)2 << 20)
#define BUNDLE_FILES_MAX ((uint32_t)1 << 14)
#define BUNDLE_PATH_MAX 4096

/* A file of the bundle. path points into the manifest and is not NUL-terminated. */
struct bundle_file {
	uint64_t offset, bytes;
	const char *path;
	uint32_t path_len;
};

/* Assemblies only, by offset, without overlaps. */
struct bundle_files {
	unsigned char *manifest;
	size_t manifest_bytes;
	struct bundle_file *files;
	size_t nfiles;
	uint64_t taken; /* of ELF_BUDGET_SECTIONS */
};

/*
 * Reads the manifest at the start of data, len bytes. On success *ret_files owns data. Files that
 * are compressed or reach past file_bytes are left out. Returns 0; -EBADMSG; -ENOTSUP: another
 * version; -E2BIG; -ENOMEM.
 */
int bundle_manifest(unsigned char *data, size_t len, uint64_t file_bytes,
		    struct bundle_files *ret_files, struct parse_error *err);

/*
 * Reads the manifest from a program's file. As bundle_manifest; -ENOENT: no bundle in the file;
 * -errno.
 */
int bundle_read(int fd, struct bundle_files *ret_files, struct parse_error *err);
void bundle_files_free(struct bundle_files *files);

/*
 * Makes a provider for all precompiled code in a bundle. Addresses are offsets in the program's
 * file. Each image is read when one of its addresses is first looked up. fd is borrowed; the
 * provider keeps a duplicate.
 *
 * Returns 0; -ENOENT: no bundle in the file; -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM, -errno.
 */
int bundle_open(int fd, struct symbol_provider **ret_symbols, struct parse_error *err);

/*
 * Gets a number that differs between bundles of one host, whose build id is the same for all. It
 * hashes the manifest, which holds the place of each file and an id of the bundle. Returns 0;
 * -ENOENT: no bundle in the file; -ENOMEM, -errno.
 */
int bundle_identity(int fd, uint64_t *ret_identity);

/*
 * Reads all images with precompiled code and calls image for each. Stops at the first result that
 * is not 0, and returns it.
 */
int bundle_each(struct symbol_provider *bundle,
		int (*image)(void *ctx, struct symbol_provider *symbols), void *ctx);

#endif
