/* Finds the separate debug file of an image. */
#ifndef SYMBOLS_DEBUG_FILE_H
#define SYMBOLS_DEBUG_FILE_H

#include "symbols/elf_file.h"

#include <stddef.h>

/*
 * Looks under each root in perf's order (tools/perf/util/symbol.c, binary_type_symtab): debug link beside the image, in
 * .debug/ and under /usr/lib/debug, then the image's path and its build id under /usr/lib/debug; and, where the image
 * has no .symtab of its own, .debug/NAME beside it. A file counts when it has a .symtab and the image's build id; where
 * the image has no build id, only the one with the debug link's checksum.
 * path: absolute inside a root, may be NULL. 0 (the caller closes debug and then *ret_fd) or -ENOENT, -ENOMEM.
 */
int debug_file_find(const struct elf_file *image, const char *path, const int *roots, size_t nroots,
		    struct elf_file *ret_debug, int *ret_fd);

/* Opens a regular file for reading as seen from root_fd: links cannot lead out of it. A descriptor or -errno. */
int debug_file_open_in_root(int root_fd, const char *path);

#endif
