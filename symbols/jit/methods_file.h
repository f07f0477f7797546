/*
 * Reads and writes symbols/PID.methods of a recording: the JIT-compiled code of one process,
 * recorded while it ran.
 * The file is a text that only grows, and any beginning of it is valid. Naming no longer needs it
 * once symbols/names (symbols/store/store.h) is complete.
 *
 * Numbers are hexadecimal, except PIDs and the format. Times are CLOCK_MONOTONIC in ns. Names are
 * escaped as in symbols/names.
 *
 *   profcpu-methods 1                   The format.
 *   process PID NSPID START-TICKS TIME  A program, watched from TIME on: its PIDs here and in
 *                                       its innermost namespace, field 22 of /proc/PID/stat.
 *                                       Code of the program before it has ended.
 *   runtime VERSION                     The .NET version of that program.
 *   way WORD                            Source of the code below: memory, rundown.
 *   why TEXT                            Why names could not be taken, or no longer.
 *   scan TIME                           A scan of all code begins; its results follow.
 *   partial                             That scan was not finished: code that the next one
 *                                       finds may have existed before.
 *   found START SIZE SOURCE NAME        The scan found it, the scan before did not.
 *   doubt TIME START SOURCE             The code last added at START was last seen at TIME.
 *   lost START SOURCE                   The scan before found it, this one did not.
 *   add TIME START SIZE SOURCE NAME     It exists from TIME on; 0: since before the capture.
 *   gone TIME START SOURCE              It ended at TIME.
 *   module NUMBER KIND ID PATH          An assembly, numbered from 0 on in that program. KIND
 *                                       and ID identify it: "mvid" or "pdb" with the 16
 *                                       bytes of the GUID, or "- -".
 *   il START SOURCE MODULE RID MAP      The code last added at START is the method in row RID
 *                                       of the module's metadata. MAP: symbols/jit/il.h.
 *
 * Code that a scan finds holds from the time of the last finished scan on. If there is none, it
 * holds always; for a program after the first, from the start of that program on. Code that a scan
 * lost holds until that scan. symbols/jit/methods.h resolves overlaps.
 */
#ifndef SYMBOLS_JIT_METHODS_FILE_H
#define SYMBOLS_JIT_METHODS_FILE_H

#include "base/error.h"
#include "base/share.h"
#include "symbols/jit/methods.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_METHODS_FILE_BYTES_MAX ((size_t)1 << 30)

/* Writing: on one thread, with one writer for each process. */
struct jit_methods_writer;

/*
 * Opens PID.methods in a recording's symbols/ to append to it, and writes the process line. disk
 * counts the bytes, and is borrowed; NULL: only the limit above. Returns 0, -ENOMEM, -errno.
 */
int jit_methods_writer_open(int dir_fd, pid_t pid, struct share *disk,
			    struct jit_methods_writer **ret_writer);

/*
 * Errors of these functions stick; jit_methods_writer_flush returns them. -EFBIG: the file has
 * reached JIT_METHODS_FILE_BYTES_MAX, the most that is read; -E2BIG: it has, or is over its share
 * of the disk. Room for a "why" line stays. Maps to IL get half of the bytes; further maps are left
 * out.
 */
void jit_methods_writer_runtime(struct jit_methods_writer *w, const char *version);
void jit_methods_writer_why(struct jit_methods_writer *w, const char *why);
void jit_methods_writer_way(struct jit_methods_writer *w, const char *way);
void jit_methods_writer_scan(struct jit_methods_writer *w, uint64_t time_ns);
/* Marks the current scan as unfinished. */
void jit_methods_writer_partial(struct jit_methods_writer *w);
/* Uses start, bytes, source and name. */
void jit_methods_writer_found(struct jit_methods_writer *w, const struct jit_method *method);
void jit_methods_writer_doubt(struct jit_methods_writer *w, enum symbol_source source,
			      uint64_t start, uint64_t time_ns);
void jit_methods_writer_lost(struct jit_methods_writer *w, enum symbol_source source,
			     uint64_t start);
/* Uses from_ns too, and until_ns if it is not UINT64_MAX. */
void jit_methods_writer_add(struct jit_methods_writer *w, const struct jit_method *method);
void jit_methods_writer_gone(struct jit_methods_writer *w, enum symbol_source source,
			     uint64_t start, uint64_t time_ns);
/*
 * Gives the module its number. JIT_METHODS_NO_MODULE: over the limit; code of such a module gets no
 * IL.
 */
#define JIT_METHODS_NO_MODULE UINT32_MAX
uint32_t jit_methods_writer_module(struct jit_methods_writer *w,
				   const struct jit_il_module *module);
/* points are sorted in place. */
void jit_methods_writer_il(struct jit_methods_writer *w, enum symbol_source source, uint64_t start,
			   uint32_t module, uint32_t rid, struct il_point *points, size_t n);

/* Hands all lines to the kernel, so that they survive a kill -9. Returns 0 or the first error. */
int jit_methods_writer_flush(struct jit_methods_writer *w);

/* Flushes and frees; w may be NULL. Returns 0 or the first error. */
int jit_methods_writer_close(struct jit_methods_writer *w);

/* Reading */
#define JIT_METHODS_WORD_BYTES 64
#define JIT_METHODS_WHY_BYTES 1024

struct jit_methods_file {
	pid_t pid, ns_pid;    /* of the last program; 0: not in the file */
	uint64_t start_ticks; /* 0: not known */
	/* From the last program too, cut to fit; "": not in the file. */
	char version[JIT_METHODS_WORD_BYTES], way[JIT_METHODS_WORD_BYTES],
		why[JIT_METHODS_WHY_BYTES];
	uint64_t lines, bad_lines; /* bad: against the grammar, or over a limit of methods.h */
	bool cut; /* The last line has no end, because the writer was killed. It is not used. */
};

/*
 * Adds the contents of a file to m, which is not finished. Returns 0; -ENOENT; -EBADMSG; -ENOTSUP:
 * another format; -E2BIG; -ENOMEM; -errno, with *err (may be NULL). After an error m may hold a
 * part.
 */
int jit_methods_read(int dir_fd, pid_t pid, struct jit_methods *m,
		     struct jit_methods_file *ret_file, struct parse_error *err);

/* The same from memory. text has a NUL after len bytes, and is overwritten. */
int jit_methods_parse(char *text, size_t len, struct jit_methods *m,
		      struct jit_methods_file *ret_file, struct parse_error *err);

/* Whether a process has such a file. */
bool jit_methods_has_file(int dir_fd, pid_t pid);

/*
 * Calls fn for each such file in a recording's symbols/. Stops at the first result that is not 0,
 * and returns it. Returns 0 or -errno.
 */
int jit_methods_each_file(int dir_fd, int (*fn)(void *ctx, int dir_fd, const char *name, pid_t pid),
			  void *ctx);

/*
 * Removes all such files, which belong to an older recording or are no longer needed. Returns 0 or
 * -errno.
 */
int jit_methods_remove(int dir_fd);

#endif
