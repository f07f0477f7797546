/*
 * The directories of this user in which debug files are kept by what they belong to, and the one of our own, into which
 * downloads go.
 *
 * Ours is $XDG_CACHE_HOME/profcpu/symbols, without the variable ~/.cache/profcpu/symbols, laid out as symbol servers are (SSQP:
 * `_.debug/elf-buildid-sym-ID/_.debug`), so that it can be served or copied. Beside the files it has .missing/ (what a server did
 * not have, for a day), .down/ (servers that could not be reached, for a quarter of an hour) and .part/ (what is being
 * downloaded). Files appear whole, by rename, so that any number of processes can share it; a file is checked before it gets there,
 * and each time it is opened, as everything else that is found.
 */
#ifndef SYMBOLS_DEBUG_CACHE_H
#define SYMBOLS_DEBUG_CACHE_H

#include "symbols/image.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define DEBUG_CACHE_KEY_MAX 600 /* bytes of a key with its NUL: three names of which the middle one is short */
#define DEBUG_CACHE_MISSING_S (24 * 3600) /* how long it is believed that a server does not have a file */
#define DEBUG_CACHE_DOWN_S (15 * 60) /* and that it cannot be reached */

/* Where other tools keep debug files by build id, and we do; each is looked into in this order. */
enum debug_cache_place {
	DEBUG_CACHE_OWN,
	DEBUG_CACHE_DOTNET, /* ~/.dotnet/symbolcache of dotnet-dump and SOS, same layout */
	/* $DEBUGINFOD_CACHE_PATH, $XDG_CACHE_HOME/debuginfod_client, ~/.cache/debuginfod_client, ~/.debuginfod_client_cache */
	DEBUG_CACHE_DEBUGINFOD,
	DEBUG_CACHE_PERF, /* ~/.debug of `perf buildid-cache` */
	DEBUG_CACHE_PLACES,
};

/*
 * The debug file of a build id in one of these places, opened for reading; the caller checks what it is. path (PATH_MAX bytes) gets
 * its path. A descriptor; -ENOENT.
 */
int debug_cache_look(enum debug_cache_place place, const struct image_build_id *id, char *path);

/* The same of a file by its key, in our directory or .NET's; made if need be it is not. A descriptor; -ENOENT. */
int debug_cache_find(const char *key);

struct debug_cache;

/* The home of this user: root with another user's HOME, as sudo may leave it, has its own. NULL: there is none. */
const char *debug_cache_home(void);

/*
 * Opens our directory, made if need be. Root does not write into another user's home: where HOME is not root's, root's own is
 * taken. What is over in .part, .missing and .down goes. 0; -ENOENT: there is no home to put it in; -EPERM: somebody else made
 * it; -ENOMEM; -errno.
 */
int debug_cache_open(struct debug_cache **ret_cache);
void debug_cache_free(struct debug_cache *c);

/* Its path, for messages. Borrowed. */
const char *debug_cache_path(const struct debug_cache *c);

/* Keys are relative paths without "." and ".." in them. A file by its key, for reading. A descriptor; -ENOENT; -errno. */
int debug_cache_get(const struct debug_cache *c, const char *key);

/* Bytes that can still be written where it is. 0 or -errno. */
int debug_cache_room(const struct debug_cache *c, uint64_t *ret_bytes);

/* A file that is being downloaded. A zeroed struct with fd -1 holds none. */
struct debug_cache_part {
	int fd; /* for reading and writing */
	char name[40];
};

/* Makes one, empty. 0 or -errno. */
int debug_cache_begin(const struct debug_cache *c, struct debug_cache_part *ret_part);
/* Waits until it is on the disk and gives it its key, in the place of an older one. Closes it in each case. 0 or -errno. */
int debug_cache_commit(const struct debug_cache *c, struct debug_cache_part *part, const char *key);
void debug_cache_abort(const struct debug_cache *c, struct debug_cache_part *part);

/* Remembers for a time that a server does not have a file (or has a wrong one), or, key NULL, that it cannot be reached. */
void debug_cache_note(const struct debug_cache *c, const char *server, const char *key);
bool debug_cache_noted(const struct debug_cache *c, const char *server, const char *key);
void debug_cache_forget(const struct debug_cache *c, const char *server, const char *key);

/* Calls fn for each file by its key, in no order, until it gives non-zero, which is returned. 0 or -errno. */
int debug_cache_each(const struct debug_cache *c, int (*fn)(void *ctx, const char *key, uint64_t bytes), void *ctx);

#endif
