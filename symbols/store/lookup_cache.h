/*
 * Cache of symbol lookups, negative results included. Written out (symbols/store/store.h), it lets
 * another machine give the same names.
 *
 * The key is an image and an address of the image's kind: a file offset in files, an addr in the
 * kernel and in JIT code.
 */
#ifndef SYMBOLS_STORE_LOOKUP_CACHE_H
#define SYMBOLS_STORE_LOOKUP_CACHE_H

#include "base/fair_share.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "elf/build_id.h"
#include "elf/segments.h"
#include "symbols/core/image_key.h"
#include "symbols/core/symbol.h"
#include "symbols/store/line_cache.h"

#include <stdbool.h>
#include <stdint.h>

#define LOOKUP_NONE UINT32_MAX
/* Results for one address, each for a time of its own; a lookup checks them one after another */
#define LOOKUP_TIMES_MAX 1024

/* Why the source of an image gives no names, or not all. Recordings hold the text of each. */
enum image_reason {
	IMAGE_REASON_NONE, /* it gives names, or was not tried */
	IMAGE_REASON_GONE,
	IMAGE_REASON_REPLACED, /* another file has its path */
	IMAGE_REASON_DENIED,   /* access is denied */
	IMAGE_REASON_UNREADABLE,
	IMAGE_REASON_NO_FORMAT,    /* neither ELF nor a .NET image */
	IMAGE_REASON_NO_R2R,       /* a .NET image without precompiled code, or without metadata */
	IMAGE_REASON_NO_SYMBOLS,   /* stripped, and without a build id to find its debug file by */
	IMAGE_REASON_OTHER_KERNEL, /* another kernel runs now */
	IMAGE_REASON_NO_DBG,       /* stripped .NET native AOT: its publish made a debug file */
	IMAGE_REASON_FILE_SYSTEM,  /* on one that may never answer */
	IMAGE_REASON_MEMORY,       /* too little memory is left for its symbols */
	IMAGE_REASON_NO_ANSWER,    /* the lookup of its path did not end */
	IMAGE_REASON_DEBUG_DENIED, /* stripped, and access to its debug file is denied */
	IMAGE_REASON_TOO_LARGE,    /* it, or a table in it, is over a limit */
	IMAGE_REASONS,
};

struct lookup_cache_image {
	struct image_key key;
	/*
	 * Addresses lack names because its source, or a part of it, could not be read: when the
	 * results were stored (wanted), or in this run (unread). Those without a result, or without
	 * a name, are then looked up again.
	 */
	bool wanted, unread;
	bool lineless;     /* lines were looked up; it has none */
	bool lines_unread; /* lines could not be read in this run */
	uint8_t why;       /* enum image_reason */
	/*
	 * Index + 1 into lookup_cache.stripped: a debug file would name more of it; 0: not stripped
	 */
	uint32_t stripped;
};

/* The data that name an image without symbols later, and elsewhere, from its debug file. */
struct lookup_cache_stripped {
	struct build_id build_id;
	struct elf_segment *segments;
	size_t nsegments;
	bool named; /* its debug file was found meanwhile */
};

/* A symbol that covers a looked-up address. start is its beginning, for name+offset. */
struct lookup_cache_symbol {
	uint64_t start, end;
	uint32_t image;
	/*
	 * In lookup_cache.texts; for SYMBOL_BOUNDS, which has no name, the function's vaddr
	 * "0x1234"
	 */
	uint32_t name;
	uint32_t module;            /* kernel symbols: "[ext4]"; else LOOKUP_NONE */
	uint32_t source;            /* enum symbol_source */
	uint64_t from_ns, until_ns; /* as in struct symbol */
};

struct lookup_cache_entry {
	uint64_t addr;
	uint32_t image, symbol; /* symbol LOOKUP_NONE: no symbol covers addr */
};

/*
 * A process with JIT-compiled code that was looked up, and how its names were obtained. Texts are
 * in lookup_cache.texts; LOOKUP_NONE: unknown.
 */
struct lookup_cache_process {
	int32_t pid, ns_pid;             /* ns_pid 0: unknown */
	uint32_t version;                /* of its .NET runtime */
	uint32_t way;                    /* a word of --jit-names */
	uint32_t why;                    /* why its names could not be obtained */
	bool jitdump_early;              /* its jitdump stopped early */
	bool open;                       /* its runtime could still add names when they were read */
	uint64_t contradictions, doubts; /* struct jit_names_stats */
};

/* Memory of a result, while its tables grow. */
#define LOOKUP_ENTRY_BYTES 128
/* The same of a symbol, with its texts, frames and stacks in a profile and outputs. */
#define LOOKUP_SYMBOL_BYTES 512

/* A zeroed struct is empty. Other modules of symbols/ read it; only this module changes it. */
struct lookup_cache {
	struct intern texts;
	VEC(struct lookup_cache_image) images;
	VEC(struct lookup_cache_symbol) symbols;
	VEC(struct lookup_cache_entry) entries;
	VEC(struct lookup_cache_stripped) stripped;
	struct line_cache lines;
	VEC(struct lookup_cache_process) processes;
	struct hashmap image_ids, symbol_ids, entry_ids; /* hash -> index; collisions use key + 1 */
	struct hashmap process_ids;                      /* pid -> index */
	/* Results beyond LOOKUP_TIMES_MAX that were dropped; their sources are needed again */
	uint64_t unkept;
	bool full;          /* no image is added */
	size_t entries_max; /* for lookup_cache_put; 0: no limit */
	/* Bytes of symbols, with LOOKUP_SYMBOL_BYTES for each; for lookup_cache_name */
	struct fair_share names;
	struct fair_share line_bytes; /* of lines, with their texts */
	int32_t taker;                /* PID that the next names and lines count for */
	uint64_t left_out;            /* symbols and lines that were left out */
	uint64_t bytes_max;           /* for lookup_cache_fits; 0: no limit */
};

/* Whether the tables take at most half of bytes_max: each may double when it grows. */
bool lookup_cache_fits(const struct lookup_cache *cache);

void lookup_cache_free(struct lookup_cache *cache);

/* Each finds an equal element or adds it. Returns 0, -ENOMEM or -E2BIG (an image: it is full). */
int lookup_cache_image(struct lookup_cache *cache, const struct image_key *key,
		       uint32_t *ret_image);
int lookup_cache_symbol(struct lookup_cache *cache, const struct lookup_cache_symbol *symbol,
			uint32_t *ret_symbol);

/*
 * Interns the name of one more symbol. A name over LOOKUP_NAME_MAX is cut to this size by
 * printable_copy_distinct. Returns 0, -ENOMEM, -E2BIG; -ENOSPC: the process has taken its
 * share, and the name is counted.
 */
#define LOOKUP_NAME_MAX ((size_t)16 << 10)
int lookup_cache_name(struct lookup_cache *cache, const char *name, size_t len, uint32_t *ret_name);

/*
 * Marks an image as stripped and copies its segments. Only the first call for an image counts.
 * Returns 0 or -ENOMEM.
 */
int lookup_cache_stripped(struct lookup_cache *cache, uint32_t image,
			  const struct build_id *build_id, const struct elf_segment *segments,
			  size_t nsegments);

/* Adds a process or replaces the one of its PID. Returns 0 or -ENOMEM. */
int lookup_cache_process(struct lookup_cache *cache, const struct lookup_cache_process *process);

/* The process of a PID, or NULL. */
const struct lookup_cache_process *lookup_cache_find_process(const struct lookup_cache *cache,
							     int32_t pid);

/* Finds an equal image without adding it. Returns 0 or -ENOENT. */
int lookup_cache_find_image(const struct lookup_cache *cache, const struct image_key *key,
			    uint32_t *ret_image);

/* Whether a result holds only at some times. */
static inline bool lookup_cache_is_timed(const struct lookup_cache *cache, uint32_t symbol)
{
	return symbol != LOOKUP_NONE && (cache->symbols.v[symbol].from_ns ||
					 cache->symbols.v[symbol].until_ns != UINT64_MAX);
}

/* Whether a result is a name. */
static inline bool lookup_cache_is_named(const struct lookup_cache *cache, uint32_t symbol)
{
	return symbol != LOOKUP_NONE && cache->symbols.v[symbol].source != SYMBOL_BOUNDS;
}

/*
 * Looks up an address at a time. Returns 0 and a symbol id or LOOKUP_NONE, -ENOENT (not in the
 * cache) or -ESTALE (known only for other times).
 */
int lookup_cache_get(const struct lookup_cache *cache, uint32_t image, uint64_t addr,
		     uint64_t time_ns, uint32_t *ret_symbol);

/*
 * Adds a result that lookup_cache_get does not have for that time. Beyond LOOKUP_TIMES_MAX results
 * for other times, drops it and counts it in unkept. Beyond entries_max, drops it, and its image
 * becomes unread if it had a symbol. LOOKUP_NONE holds always. Returns 0, -ENOMEM or -E2BIG.
 */
int lookup_cache_put(struct lookup_cache *cache, uint32_t image, uint64_t addr, uint32_t symbol);

/* Replaces a result that holds always. Returns 0 or -ENOENT. */
int lookup_cache_replace(struct lookup_cache *cache, uint32_t image, uint64_t addr,
			 uint32_t symbol);

#endif
