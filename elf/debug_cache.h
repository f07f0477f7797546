/*
 * Caches of debug files of this user: those of other tools, read only, and profcpu's own, which
 * receives downloads.
 *
 * profcpu's cache is $XDG_CACHE_HOME/profcpu/symbols, or ~/.cache/profcpu/symbols if the variable
 * is not set. It has the layout of symbol servers (SSQP: `_.debug/elf-buildid-sym-ID/_.debug`), so
 * it can be served or copied. Beside the files it holds three directories:
 *	.missing/  files that a server did not have, remembered for a day
 *	.down/     servers that could not be reached, remembered for 15 minutes
 *	.part/     files that are being downloaded
 *
 * Files appear whole, by rename, so any number of processes can share the cache. A file is checked
 * before it enters the cache and each time it is opened.
 */
#ifndef ELF_DEBUG_CACHE_H
#define ELF_DEBUG_CACHE_H

#include "elf/build_id.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a key with its NUL: three names, the middle one short */
#define DEBUG_CACHE_KEY_MAX 600
/* Seconds for which a note holds that a server lacks a file */
#define DEBUG_CACHE_MISSING_S (24 * 3600)
/* Seconds for which a note holds that a server cannot be reached */
#define DEBUG_CACHE_DOWN_S (15 * 60)

/* Caches that hold debug files by build id, in the order in which they are searched. */
enum debug_cache_place {
	DEBUG_CACHE_OWN,
	DEBUG_CACHE_DOTNET, /* ~/.dotnet/symbolcache of dotnet-dump and SOS, same layout */
	/*
	 * $DEBUGINFOD_CACHE_PATH, $XDG_CACHE_HOME/debuginfod_client, ~/.cache/debuginfod_client or
	 * ~/.debuginfod_client_cache
	 */
	DEBUG_CACHE_DEBUGINFOD,
	DEBUG_CACHE_PERF, /* ~/.debug of `perf buildid-cache` */
	DEBUG_CACHE_PLACES,
};

/*
 * Opens the debug file of a build id in one cache for reading. The caller checks the content. path
 * (PATH_MAX bytes) receives its path. Returns a descriptor or -ENOENT.
 */
int debug_cache_open_build_id(enum debug_cache_place place, const struct build_id *id, char *path);

/*
 * Opens a file by its key in profcpu's cache or in .NET's. Creates no directory. Returns a
 * descriptor or -ENOENT.
 */
int debug_cache_open_any(const char *key);

struct debug_cache;

/*
 * The home directory of this user, or NULL if there is none. If HOME belongs to another user, as
 * sudo may leave it, root gets its own home instead.
 */
const char *debug_cache_home(void);

/*
 * Opens profcpu's cache and creates it if needed. Root never writes into another user's home; if
 * HOME is not root's, root's own home is used. Deletes expired files from .part, .missing and
 * .down. Returns 0, -ENOENT (no home to put it in), -EPERM (another user made the directory),
 * -ENOMEM or -errno.
 */
int debug_cache_open(struct debug_cache **ret_cache);
void debug_cache_free(struct debug_cache *c);

/* Its path, for messages. Borrowed. */
const char *debug_cache_path(const struct debug_cache *c);

/*
 * Opens a file by its key for reading. Keys are relative paths without "." and "..". Returns a
 * descriptor, -ENOENT or -errno.
 */
int debug_cache_open_key(const struct debug_cache *c, const char *key);

/* Gives the free bytes of the file system that holds the cache. Returns 0 or -errno. */
int debug_cache_free_bytes(const struct debug_cache *c, uint64_t *ret_bytes);

/* A file that is being downloaded. A zeroed struct with fd -1 holds none. */
struct debug_cache_part {
	int fd; /* for reading and writing */
	char name[40];
};

/* Creates an empty file to download to. Returns 0 or -errno. */
int debug_cache_begin(const struct debug_cache *c, struct debug_cache_part *ret_part);
/*
 * Flushes the file to disk and renames it to its key; replaces an older file. Always closes it.
 * Returns 0 or -errno.
 */
int debug_cache_commit(const struct debug_cache *c, struct debug_cache_part *part, const char *key);
void debug_cache_abort(const struct debug_cache *c, struct debug_cache_part *part);

/*
 * Notes that a server lacks a file, or has a wrong one, for DEBUG_CACHE_MISSING_S. If key is NULL,
 * notes that the server cannot be reached, for DEBUG_CACHE_DOWN_S. The others test and delete such
 * a note.
 */
void debug_cache_note_failure(const struct debug_cache *c, const char *server, const char *key);
bool debug_cache_has_failed(const struct debug_cache *c, const char *server, const char *key);
void debug_cache_clear_failure(const struct debug_cache *c, const char *server, const char *key);

/*
 * Calls fn for each file with its key, in any order. Stops when fn returns non-zero and returns
 * that value. Returns 0 at the end, or -errno.
 */
int debug_cache_each(const struct debug_cache *c,
		     int (*fn)(void *ctx, const char *key, uint64_t bytes), void *ctx);

#endif
