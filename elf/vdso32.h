/*
 * The vdso that the running kernel maps into 32-bit programs. All of their system calls and signal
 * handlers go through it, and no file has it.
 */
#ifndef ELF_VDSO32_H
#define ELF_VDSO32_H

#include <stddef.h>

#define VDSO32_BYTES_MAX ((size_t)64 << 10)

/*
 * Maps it in a child process, which has none of its own, and copies it. The caller frees *ret_data.
 * Returns 0; -ENOTSUP: the kernel has none, or gives it to nobody else; -ENOMEM; -errno.
 */
int vdso32_read(void **ret_data, size_t *ret_bytes);

#endif
