/* Gets debug files from servers into our cache, each from the first server that has it and only after it was checked. */
#ifndef SYMBOLS_SYMBOL_FETCH_H
#define SYMBOLS_SYMBOL_FETCH_H

#include "symbols/debug_cache.h"
#include "symbols/download.h"
#include "symbols/symbol_server.h"

#define SYMBOL_FETCH_BYTES_MAX ((uint64_t)2 << 30) /* of one file */
#define SYMBOL_FETCH_ROOM_BYTES ((uint64_t)64 << 20) /* that stay free where the cache is, whatever servers send */

enum symbol_fetch_state {
	SYMBOL_FETCH_NOT_ASKED, /* there is no server that may be asked for it */
	SYMBOL_FETCH_CACHED, /* it is in the cache already */
	SYMBOL_FETCH_GOT,
	SYMBOL_FETCH_ABSENT, /* no server has it */
	SYMBOL_FETCH_FAILED, /* a server may have it, and it did not come: why */
	SYMBOL_FETCH_NO_ROOM, /* it was left out, or given up: less than SYMBOL_FETCH_ROOM_BYTES would have stayed free */
	SYMBOL_FETCH_STATES,
};

/* One file that is wanted. A zeroed rest is right. */
struct symbol_fetch_item {
	struct symbol_file file;

	enum symbol_fetch_state state;
	const char *server; /* that it came from, or that failed last; lives as long as the servers. NULL: none */
	char why[DOWNLOAD_WHY_BYTES]; /* of FAILED, as the end of a sentence that begins with the server */
	uint64_t bytes;

	struct symbol_fetch_asking *now; /* private */
};

/* How far all of them are. */
struct symbol_fetch_progress {
	size_t ended, all; /* of what had to be asked for */
	uint64_t bytes; /* that came */
};

struct symbol_fetch_options {
	const struct symbol_servers *servers;
	uint64_t until_ns; /* CLOCK_MONOTONIC by which all is over; 0: without limit */
	uint32_t connect_ms;
	unsigned int retries;
	bool again; /* also what a server did not have a while ago, and servers that could not be reached */
	void (*meanwhile)(void *ctx, const struct symbol_fetch_progress *progress); /* several times a second; may be NULL */
	void *ctx;
};

/*
 * Fetches items, several at a time. A server that cannot be reached is asked once and then, also by later runs, not for a while;
 * nor is a file asked for again soon of a server that did not have it, or had another one under its name. 0, with the state of each
 * item set; -ENOMEM; -ENOSYS; -errno of the cache (-ENOSPC).
 */
int symbol_fetch(const struct debug_cache *cache, struct symbol_fetch_item *items, size_t n,
		 const struct symbol_fetch_options *options);

/* Whether an item is to be asked for at all: it is not in the cache, and a server may be asked that is not known to lack it. */
bool symbol_fetch_is_due(const struct debug_cache *cache, const struct symbol_fetch_item *item,
			 const struct symbol_fetch_options *options);

#endif
