/* Shared by methods_file.c, the writer, and methods_file_read.c, the reader. */
#ifndef SYMBOLS_JIT_METHODS_FILE_IMPL_H
#define SYMBOLS_JIT_METHODS_FILE_IMPL_H

#include "symbols/jit/methods_file.h"

#define JIT_FILE_FORMAT 1
#define JIT_FILE_HEAD "profcpu-methods "
#define JIT_FILE_NAME_BYTES 32
/* Bytes of a line; longer ones are bad. Maps to IL have the longest, of 1.2 MB. */
#define JIT_FILE_READ_BYTES ((size_t)2 << 20)

/* name: JIT_FILE_NAME_BYTES bytes */
void jit_file_name(pid_t pid, char *name);

/* Words of enum jit_il_id. */
extern const char *const jit_id_kinds[];

#endif
