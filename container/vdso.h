/*
 * The vdso of the running kernel, which no file has. All system calls and signal handlers of 32-bit
 * programs go through theirs.
 */
#ifndef CONTAINER_VDSO_H
#define CONTAINER_VDSO_H

#include <stddef.h>

#define VDSO_BYTES_MAX ((size_t)256 << 10)

/*
 * Finds a vdso by its name: "[vdso]" of 64-bit programs, which the kernel maps here too, or
 * "[vdso32]" of 32-bit programs. The first call for "[vdso32]" maps it in a child process and
 * copies it. The data stays until profcpu ends. Any thread. Returns 0; -ENOENT: there is no such
 * vdso; -ENOTSUP: the kernel has none of 32 bits, or gives it to nobody else; -E2BIG; -ENOMEM;
 * -errno.
 */
int vdso_find(const char *name, const void **ret_data, size_t *ret_bytes);

#endif
