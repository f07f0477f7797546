/*
 * What was learned of a process's JIT-compiled code while it ran, kept in a recording as symbols/PID.methods: a text that is only
 * appended to, of which any beginning can be used. Once symbols/names (symbols/store.h) is whole it is not needed for names.
 * Numbers are hexadecimal but for PIDs and the format, times are CLOCK_MONOTONIC in ns, names escaped as in symbols/names:
 *
 *   profcpu-methods 1                       format
 *   process PID NSPID START-TICKS TIME      a program, by its PIDs here and in its innermost namespace, and field 22 of its
 *                                           /proc/PID/stat, looked at from TIME on; what is above it of another one has ended
 *   runtime VERSION                         of .NET in that program
 *   way WORD                                how the lines below were learned: memory, perfmap, rundown
 *   why TEXT                                why they could not be learned, or no longer
 *   scan TIME                               a look at all that there was, begun at TIME; the lines below are what it found
 *   partial                                 that look was not done: what the next one finds may have been there before it
 *   found START SIZE SOURCE NAME            there now, and not at the scan before
 *   doubt TIME START SOURCE                 what was added last there was seen there at TIME for the last time
 *   lost START SOURCE                       there at the scan before, and not now
 *   add TIME START SIZE SOURCE NAME         there from TIME on; 0: before anybody looked
 *   gone TIME START SOURCE                  no longer there from TIME on
 *   module NUMBER KIND ID PATH              an assembly, numbered from 0 on in that program; KIND and ID: how it is known again,
 *                                           "mvid" or "pdb" with the GUID's 16 bytes, or "- -"
 *   il START SOURCE MODULE RID MAP          what was added last there is the method in that row of the module's metadata, and which
 *                                           of its IL its places come from (symbols/jit_il.h)
 *
 * What a scan finds holds from the time of the last whole scan before on (where there is none: always; of another program's: from its own
 * time on), what it lost until its own time; symbols/jit_methods.h says what becomes of two that overlap.
 */
#ifndef SYMBOLS_JIT_METHODS_FILE_H
#define SYMBOLS_JIT_METHODS_FILE_H

#include "base/error.h"
#include "symbols/jit_methods.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_METHODS_FILE_BYTES_MAX ((size_t)1 << 30)

/* Writing: one thread, one writer a process. */
struct jit_methods_writer;

/* Opens PID.methods in a recording's symbols/ to append to it, and says which process it is from now on. 0, -ENOMEM, -errno. */
int jit_methods_writer_open(int dir_fd, pid_t pid, struct jit_methods_writer **ret_writer);

/* Errors stick, and jit_methods_writer_flush gives them; -EFBIG: no more than can be read (JIT_METHODS_FILE_BYTES_MAX), of
 * which maps to IL get half: further ones are left out. Room is left to say why. */
void jit_methods_writer_runtime(struct jit_methods_writer *w, const char *version);
void jit_methods_writer_why(struct jit_methods_writer *w, const char *why);
void jit_methods_writer_way(struct jit_methods_writer *w, const char *way);
void jit_methods_writer_scan(struct jit_methods_writer *w, uint64_t time_ns);
/* Ends a scan that did not come to its end. */
void jit_methods_writer_partial(struct jit_methods_writer *w);
/* start, bytes, source and name count. */
void jit_methods_writer_found(struct jit_methods_writer *w, const struct jit_method *method);
void jit_methods_writer_doubt(struct jit_methods_writer *w, enum symbol_source source, uint64_t start, uint64_t time_ns);
void jit_methods_writer_lost(struct jit_methods_writer *w, enum symbol_source source, uint64_t start);
/* from_ns counts too, and until_ns where it is not UINT64_MAX. */
void jit_methods_writer_add(struct jit_methods_writer *w, const struct jit_method *method);
void jit_methods_writer_gone(struct jit_methods_writer *w, enum symbol_source source, uint64_t start, uint64_t time_ns);
/* Gives the module its number, or JIT_METHODS_NO_MODULE: there are more than are read, and code that is said to be of it has no IL. */
#define JIT_METHODS_NO_MODULE UINT32_MAX
uint32_t jit_methods_writer_module(struct jit_methods_writer *w, const struct jit_il_module *module);
/* points are put in order. */
void jit_methods_writer_il(struct jit_methods_writer *w, enum symbol_source source, uint64_t start, uint32_t module, uint32_t rid,
			   struct jit_il_point *points, size_t n);

/* Hands what was put to the kernel: what a kill -9 leaves. 0 or the first error. */
int jit_methods_writer_flush(struct jit_methods_writer *w);

/* Flushes and frees; fine with NULL. 0 or the first error. */
int jit_methods_writer_close(struct jit_methods_writer *w);

/* Reading */
#define JIT_METHODS_WORD_BYTES 64
#define JIT_METHODS_WHY_BYTES 1024

struct jit_methods_file {
	pid_t pid, ns_pid; /* of the last program; 0: the file does not say */
	uint64_t start_ticks; /* 0: not known */
	/* Of the last program too, cut to fit; "": the file does not say. */
	char version[JIT_METHODS_WORD_BYTES], way[JIT_METHODS_WORD_BYTES], why[JIT_METHODS_WHY_BYTES];
	uint64_t lines, bad_lines; /* bad: not the grammar, or over a limit of jit_methods.h */
	bool cut; /* the last line has no end: the writer was killed. It is not used */
};

/* Adds what a file says to m, which is not finished. 0; -ENOENT; -EBADMSG, -ENOTSUP (another format), -E2BIG, -ENOMEM, -errno
 * with *err (may be NULL); m may hold a part then. */
int jit_methods_read(int dir_fd, pid_t pid, struct jit_methods *m, struct jit_methods_file *ret_file,
		     struct parse_error *err);

/* The same from memory, which is written to; text is NUL-terminated after len. */
int jit_methods_parse(char *text, size_t len, struct jit_methods *m, struct jit_methods_file *ret_file,
		      struct parse_error *err);

/* Whether there is a file of a process. */
bool jit_methods_has_file(int dir_fd, pid_t pid);

/* Calls fn for each such file in a recording's symbols/, until it gives non-zero, which is returned. 0 or -errno. */
int jit_methods_each_file(int dir_fd, int (*fn)(void *ctx, int dir_fd, const char *name, pid_t pid), void *ctx);

/* Removes all of them: of an older recording, or no longer needed. 0 or -errno. */
int jit_methods_remove(int dir_fd);

#endif
