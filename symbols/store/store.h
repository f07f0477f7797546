/*
 * Writes symbols/names of a recording: all results of its symbol lookups. A machine without the
 * symbol sources gives the same names from it. store_read.h reads it.
 *
 * The file is text, one record a line, with fields separated by one blank. Numbers are lower-case
 * hexadecimal unless stated otherwise. Names end their line and may hold blanks. Tabs, backslashes
 * and other bytes that printable_copy escapes are written \xHH in names. "Above" means the last
 * record of that kind.
 *
 *	profcpu-symbols 2
 *		The format. Format 1 has no text, lines, of and lineless.
 *	note KEY VALUE
 *		kallsyms hidden, perfmap_bad_lines N and others. Readers ignore unknown keys.
 *	note why WORD
 *		Why the source of the image above does not name all of it.
 *	note process PID NSPID STATE CONTRADICTIONS DOUBTS VERSION WAY WHY
 *		struct lookup_cache_process. PIDs are decimal; "-": unknown. STATE is the sum of 1
 *		(jitdump_early) and 2 (open).
 *	image KIND BUILD-ID MAJ MIN INO GENERATION PID PATH
 *		The image of the records below. BUILD-ID "-": none. PID is decimal.
 *	symbol START LENGTH SOURCE MODULE NAME
 *		MODULE "-": none. With SOURCE bounds, NAME is a vaddr.
 *	during FROM UNTIL
 *		Times in ns in which the symbol above holds. Without it, the symbol holds always.
 *	at OFFSET...
 *		Addresses that the symbol above covers, less its start.
 *	nothing ADDR DELTA...
 *		Addresses that no symbol covers, each less the one before.
 *	text NAME
 *		A text for the lines records below. Texts are numbered from 0.
 *	lines FUNCTION FILE LINE ...
 *		Functions inlined in the symbol above, innermost first, and the symbol itself last.
 *		FUNCTION and FILE are numbers of texts, or "-". LINE is decimal.
 *	of OFFSET...
 *		Addresses that have the lines above, less the symbol's start.
 *	lineless
 *		The image above has no lines.
 *	unread
 *		The source of the image above could not be read and is to be tried again.
 *	stripped BUILD-ID [VADDR FILE-OFF FILE-BYTES MEM-BYTES FLAGS]...
 *		The image above is an ELF file without symbols, with these segments.
 *		A debug file of this build id would name more of it.
 *	end N
 *		The number of all addresses. A file without it was cut off and is not used.
 */
#ifndef SYMBOLS_STORE_STORE_H
#define SYMBOLS_STORE_STORE_H

#include "recording/manifest.h"
#include "symbols/store/jit_damage.h"
#include "symbols/store/lookup_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_FORMAT 2
#define STORE_FILE RECORDING_NAMES
#define STORE_BYTES_MAX ((size_t)1 << 30)

/* Facts for the audit that only the first run can find out. */
struct store_notes {
	bool kallsyms_hidden;
	struct jit_damage damage;
	uint64_t images_missing, images_replaced;
	uint64_t jit_contradictions, jit_doubts; /* sums of struct jit_sources_stats */
};

/* Writes the text to fd. Returns 0, -ENOMEM or -errno. */
int store_print(const struct lookup_cache *lookup_cache, const struct store_notes *notes, int fd);

/*
 * Writes dir/names through a temporary file and a rename. Flushes it to disk, because another
 * machine could not make it again. Returns 0, -ENOMEM, -errno or -E2BIG (larger than store_read
 * accepts; the old file stays).
 */
int store_write(const struct lookup_cache *lookup_cache, const struct store_notes *notes,
		int dir_fd);

#endif
