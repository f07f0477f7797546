/*
 * jit-PID.dump: what runtimes write for perf of the code that they make, and when (Linux tools/perf/Documentation/
 * jitdump-specification.txt, tools/perf/util/jitdump.h). Both byte orders; records of other types are skipped.
 *
 * What its writers do, beyond the text of the specification:
 *  - .NET writes loads only, R2R methods among them ("[PreJIT]"). .NET 10 can fail in the middle of a record, and then writes
 *    nothing more while its process goes on: the file ends within a record.
 *  - V8 (node --perf-prof) marks the header with 0xdeadbeef, gives the addresses of debug entries 64 bytes too high (the place that its
 *    code has in the file that perf makes of it), and in some versions writes file names that are gone from memory: a table
 *    whose addresses lie outside of its function is not used.
 *  - A file name of the one byte 0xff stands for that of the entry before (perf's Java agent).
 *  - Entries name files and lines only. Inlined code shows by nothing but its file: Java's agent writes the innermost one, GraalVM
 *    all of them at one address, the innermost last. So of entries of one address the last holds, as in perf, and frames
 *    cannot be made of the others, which have no function.
 */
#ifndef SYMBOLS_JITDUMP_H
#define SYMBOLS_JITDUMP_H

#include "base/error.h"
#include "symbols/jit_methods.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITDUMP_BYTES_MAX ((uint64_t)16 << 30) /* of which code, which is skipped, is the larger part */
#define JITDUMP_LINES_MAX ((size_t)16 << 20) /* debug entries; tables beyond are not used */
#define JITDUMP_FILE_MAX 4096 /* bytes of a file name */
#define JITDUMP_FILES_MAX ((size_t)1 << 20) /* file names, and their bytes; tables with further ones are not used */
#define JITDUMP_FILES_BYTES_MAX ((size_t)256 << 20)

struct jitdump_stats {
	uint64_t records, loads, moves, lines;
	uint64_t unknown; /* records of types that the specification does not have */
	uint64_t bad; /* records whose contents cannot be, or over a limit: not used */
	uint64_t bad_tables; /* of which tables of lines */
	uint64_t last_ns; /* of the last record */
	uint32_t pid; /* in the namespace of the writer */
	bool closed; /* the writer came to its end */
	bool cut; /* the file ends within a record: somebody is writing it, or was stopped */
	bool untimed; /* its clock is the processor's: not comparable, so everything holds always, the later over the earlier */
};

/* Its tables of lines. */
struct jitdump;

/*
 * Adds all loads and moves to m (source SYMBOL_JITDUMP, of which it has none yet). fd: borrowed, a regular file; what it has now is
 * read. *ret_dump may be NULL if tables of lines are not wanted. 0; -EBADMSG: no jitdump; -ENOTSUP: a later version; -E2BIG;
 * -ENOMEM; -errno, with *err (may be NULL). On failure m may hold a part, of which *ret_stats tells, as of a file that was cut.
 */
int jitdump_load(int fd, struct jit_methods *m, struct jitdump **ret_dump, struct jitdump_stats *ret_stats,
		 struct parse_error *err);

/* Only what the header says: pid, untimed. As jitdump_load. */
int jitdump_peek(int fd, struct jitdump_stats *ret_stats);

/* jitdump_load from memory. */
int jitdump_parse(const void *data, size_t len, struct jit_methods *m, struct jitdump **ret_dump,
		  struct jitdump_stats *ret_stats, struct parse_error *err);

void jitdump_free(struct jitdump *d);

/* Where code comes from. file is borrowed from the jitdump. */
struct jitdump_line {
	const char *file;
	uint32_t line; /* from 1 on */
	uint32_t discriminator; /* V8: the column */
};

/* Whether there are any. */
bool jitdump_has_lines(const struct jitdump *d);

/* The line of an address in the method that an answer of jit_methods_at names. 0, -ENOENT. */
int jitdump_line(const struct jitdump *d, const struct jit_methods_answer *answer, uint64_t addr,
		 struct jitdump_line *ret_line);

/* Whether a file is named as perf wants it, "jit-N.dump", and N. path may have directories and " (deleted)". */
bool jitdump_is_name(const char *path, uint32_t *ret_pid);

#endif
