/*
 * Downloads debug files from servers into the cache. Each comes from the first server that has it,
 * and is checked before it enters the cache. Gives up servers that cannot be reached.
 */
#ifndef SYMBOLS_SERVER_SYMBOL_FETCH_H
#define SYMBOLS_SERVER_SYMBOL_FETCH_H

#include "elf/debug_cache.h"
#include "symbols/server/download.h"
#include "symbols/server/symbol_server.h"

#define SYMBOL_FETCH_BYTES_MAX ((uint64_t)2 << 30) /* of one file */
/* Bytes that stay free in the cache's file system */
#define SYMBOL_FETCH_ROOM_BYTES ((uint64_t)64 << 20)

enum symbol_fetch_state {
	SYMBOL_FETCH_NO_SERVER, /* no server may get a request for it */
	SYMBOL_FETCH_CACHED,    /* it was in the cache before */
	SYMBOL_FETCH_DOWNLOADED,
	SYMBOL_FETCH_ABSENT, /* no server has it */
	SYMBOL_FETCH_FAILED, /* a server may have it, but the download failed: see why */
	/* Not begun, or given up, to keep SYMBOL_FETCH_ROOM_BYTES free */
	SYMBOL_FETCH_NO_ROOM,
	SYMBOL_FETCH_STATES,
};

/* A wanted file. The caller sets file and zeroes the rest. */
struct symbol_fetch_item {
	struct symbol_file file;

	enum symbol_fetch_state state;
	/* The server that sent it or that failed last, or NULL; lives as long as the servers */
	const char *server;
	char why[DOWNLOAD_WHY_BYTES]; /* for FAILED: a predicate of the server */
	uint64_t bytes;

	struct symbol_fetch_request *now; /* private */
};

/* Progress of all items together. */
struct symbol_fetch_progress {
	size_t ended, all; /* items that were not in the cache */
	uint64_t bytes;    /* received */
};

struct symbol_fetch_options {
	const struct symbol_servers *servers;
	uint64_t until_ns; /* CLOCK_MONOTONIC deadline of all downloads; 0: none */
	uint32_t connect_ms;
	unsigned int retries;
	bool again;       /* ignore the notes about absent files */
	bool unreachable; /* ignore the notes about unreachable servers; again does it too */
	/* Called several times a second; may be NULL */
	void (*meanwhile)(void *ctx, const struct symbol_fetch_progress *progress);
	void *ctx;
};

/*
 * Fetches items, several at a time. A server that cannot be reached gets only one request, and
 * later runs skip it for 15 minutes. For a day, a server gets no further request for a file that it
 * lacked or that failed the check. Returns 0 and sets the state of each item, or -ENOMEM, -ENOSYS
 * or -errno of the cache (-ENOSPC).
 */
int symbol_fetch(const struct debug_cache *cache, struct symbol_fetch_item *items, size_t n,
		 const struct symbol_fetch_options *options);

/*
 * Whether an item needs a download: it is not in the cache, and a server that is not known to
 * lack it may get a request.
 */
bool symbol_fetch_is_due(const struct debug_cache *cache, const struct symbol_fetch_item *item,
			 const struct symbol_fetch_options *options);

#endif
