/*
 * symbols/names of a recording: all questions that naming it asked of symbol sources, with their answers, so that a machine
 * without those sources gives the same names.
 *
 * Text, one record a line, fields separated by one blank; numbers are lower-case hexadecimal unless said otherwise; bytes
 * below 0x20, 0x7f and backslash in names are written \xHH. Names end their line and may hold blanks.
 *   profcpu-symbols 2                                 format; 1 has no text, lines, of and lineless
 *   note KEY VALUE                                    kallsyms hidden, perfmap_bad_lines N and others; unknown ones are ignored
 *   note why WORD                                     why the source of the image above does not name all of it
 *   note process PID NSPID EARLY CONTRADICTIONS DOUBTS VERSION WAY WHY   struct answers_process; PIDs are decimal, "-": not known
 *   image KIND BUILD-ID MAJ MIN INO GENERATION PID PATH   "-" without a build id; PID is decimal; the records below are of it
 *   symbol START LENGTH SOURCE MODULE NAME            "-" without a module; SOURCE bounds: NAME is a vaddr
 *   during FROM UNTIL                                 times in ns in which the symbol above holds; without it: always
 *   at OFFSET...                                      addresses that the symbol above covers, less its start
 *   nothing ADDR DELTA...                             addresses of which nothing is known, each less the one before
 *   text NAME                                         numbered from 0 on, for the lines below it
 *   lines FUNCTION FILE LINE ...                      functions inlined in the symbol above, the innermost first, and it itself
 *                                                     last, each with its file (both numbers of texts, or "-") and line (decimal)
 *   of OFFSET...                                      addresses that have the lines above, less the symbol's start
 *   lineless                                          the image above has no lines
 *   unread                                            the source of the image above could not be read: it is to be tried again
 *   stripped BUILD-ID [VADDR FILE-OFF FILE-BYTES MEM-BYTES FLAGS]...   the image above is an ELF file without symbols of its own,
 *                                                     with these segments: a debug file of this build id would name more of it
 *   end N                                             number of all addresses; a file without it was cut and is not used
 */
#ifndef SYMBOLS_STORE_H
#define SYMBOLS_STORE_H

#include "recording/recording.h"
#include "symbols/answers.h"
#include "symbols/jit_damage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_FORMAT 2
#define STORE_FILE RECORDING_NAMES
#define STORE_BYTES_MAX ((size_t)1 << 30)

/* What the audit says and a later run cannot find out. */
struct store_notes {
	bool kallsyms_hidden;
	struct jit_damage damage;
	uint64_t images_missing, images_replaced;
	uint64_t jit_contradictions, jit_doubts; /* sums of struct jit_sources_stats */
};

/* Writes the text to fd. 0, -ENOMEM, -errno. */
int store_print(const struct answers *answers, const struct store_notes *notes, int fd);

/* Writes dir/names by a temporary file and rename, and waits until it is on the disk: it cannot be made again elsewhere.
 * 0, -ENOMEM, -errno; -E2BIG: it is more than store_read takes, and what was there stays. */
int store_write(const struct answers *answers, const struct store_notes *notes, int dir_fd);

#endif
