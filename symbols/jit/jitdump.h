/*
 * Reads jit-PID.dump, the file in which runtimes record for perf the code that they make, and when.
 * Source: Linux tools/perf/Documentation/jitdump-specification.txt and tools/perf/util/jitdump.h.
 * Both byte orders are read; records of other types are skipped.
 *
 * Known writers differ from the specification.
 *
 * - .NET writes loads only, R2R methods among them ("[PreJIT]"). .NET 10 can fail in the middle of
 *   a record. It then writes nothing more while its process continues, so the file ends within a
 *   record.
 * - V8 (node --perf-prof) marks the header with 0xdeadbeef. Its addresses in debug entries are 64
 *   bytes too high: they are places in the file that perf makes of the code.
 * - Some versions of V8 write file names that are gone from memory. A table with addresses outside
 *   of its function is not used.
 * - A file name of the one byte 0xff stands for the name in the entry before (perf's Java agent).
 * - Entries name only files and lines, so only the file shows that code was inlined. Java's agent
 *   writes the innermost line. GraalVM writes all lines at one address, the innermost last. The
 *   last of several entries with one address counts, as in perf.
 */
#ifndef SYMBOLS_JIT_JITDUMP_H
#define SYMBOLS_JIT_JITDUMP_H

#include "base/error.h"
#include "symbols/jit/methods.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITDUMP_BYTES_MAX ((uint64_t)16 << 30) /* most of it is code, which is skipped */
#define JITDUMP_LINES_MAX ((size_t)16 << 20)   /* debug entries; further tables are not used */
#define JITDUMP_FILE_MAX 4096                  /* bytes of a file name */
/*
 * File names and their bytes; tables with further names are not used. Methods, rows and names also
 * take no more memory than jit_methods_limit_memory leaves.
 */
#define JITDUMP_FILES_MAX ((size_t)1 << 20)
#define JITDUMP_FILES_BYTES_MAX ((size_t)256 << 20)
/*
 * Methods that are refused before reading stops, as at a cut record. A refused method still ends
 * earlier code, so a few more are read.
 */
#define JITDUMP_REFUSED_MAX ((size_t)256 << 10)

struct jitdump_stats {
	uint64_t records, loads, moves, lines;
	uint64_t unknown;    /* records of types that the specification lacks */
	uint64_t bad;        /* records with impossible contents or over a limit: not used */
	uint64_t bad_tables; /* the same of tables of lines, which cost no name */
	uint64_t last_ns;    /* time of the last record */
	uint32_t pid;        /* in the namespace of the writer */
	bool closed;         /* the writer closed the file */
	/*
	 * The file ends within a record: a writer is still at work, or was stopped. Or too many
	 * methods were refused.
	 */
	bool cut;
	/*
	 * Its times are processor ticks, which cannot be compared. So every method holds always,
	 * later ones over earlier ones.
	 */
	bool untimed;
};

/* The tables of lines of a jitdump. */
struct jitdump;

/*
 * Adds all loads and moves to m as source SYMBOL_JITDUMP; m must have none of that source yet. The
 * file fd is borrowed, a regular file, and read up to its current size. ret_dump may be NULL if
 * lines are not wanted.
 *
 * Returns 0; -EBADMSG: no jitdump; -ENOTSUP: a later version; -E2BIG; -ENOMEM; -errno, with *err
 * (may be NULL). On failure m may hold a part, which *ret_stats counts as for a cut file.
 */
int jitdump_load(int fd, struct jit_methods *m, struct jitdump **ret_dump,
		 struct jitdump_stats *ret_stats, struct parse_error *err);

/* Reads only the header: pid, untimed. As jitdump_load. */
int jitdump_peek(int fd, struct jitdump_stats *ret_stats);

/* jitdump_load from memory. */
int jitdump_parse(const void *data, size_t len, struct jit_methods *m, struct jitdump **ret_dump,
		  struct jitdump_stats *ret_stats, struct parse_error *err);

void jitdump_free(struct jitdump *d);

/* A source line. file is borrowed from the jitdump. */
struct jitdump_line {
	const char *file;
	uint32_t line;          /* from 1 on */
	uint32_t discriminator; /* V8: the column */
};

/* Whether the jitdump has any lines. */
bool jitdump_has_lines(const struct jitdump *d);

/* Finds the line of an address in the method of a jit_methods_find result. Returns 0, -ENOENT. */
int jitdump_line(const struct jitdump *d, const struct jit_methods_result *result, uint64_t addr,
		 struct jitdump_line *ret_line);

/*
 * Whether a path has the name that perf expects, "jit-N.dump", and N. Directories before and "
 * (deleted)" after are allowed.
 */
bool jitdump_is_name(const char *path, uint32_t *ret_pid);

#endif
