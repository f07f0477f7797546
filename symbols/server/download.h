/*
 * Downloads over http and https, several at a time, with limits of time, speed, size and redirects.
 * This is the only code that uses the network. libcurl's variables for proxies apply (http_proxy,
 * https_proxy, all_proxy, no_proxy; libcurl-env(3)). A download checks only the announced length;
 * the caller checks the content. symbol_fetch.c decides what a failure means for the server.
 */
#ifndef SYMBOLS_SERVER_DOWNLOAD_H
#define SYMBOLS_SERVER_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_REDIRECTS_MAX 5
#define DOWNLOAD_WHY_BYTES 160
#define DOWNLOAD_ROOM_BYTES ((uint64_t)4 << 20)

enum download_outcome {
	DOWNLOAD_DONE,
	DOWNLOAD_ABSENT,      /* the server has no such file */
	DOWNLOAD_FAILED,      /* this file failed; another file of the server may succeed */
	DOWNLOAD_UNREACHABLE, /* the server cannot be reached */
	DOWNLOAD_LATE,        /* the time for all downloads was over */
	DOWNLOAD_FULL,        /* the disk has no room for more */
};

struct downloads;

/*
 * One file. The caller owns the struct and the text of url, and must not move them before `ended`
 * is called.
 */
struct download {
	const char *url;
	int fd;             /* borrowed; each try truncates it and writes from its beginning */
	uint64_t max_bytes; /* after decompression; 0: no limit */
	uint64_t whole_ms;  /* for each try; 0: no limit */
	/*
	 * A try fails if it is slower than slow_bytes_s (bytes per second) for slow_s seconds; 0:
	 * no limit.
	 */
	uint32_t slow_bytes_s, slow_s;
	/* Further tries after status 408, 429, 5xx and lost connections; each waits longer. */
	unsigned int retries;
	const char *headers; /* further headers, one a line; NULL: none */
	void *ctx;           /* the caller's */

	enum download_outcome outcome;
	char why[DOWNLOAD_WHY_BYTES]; /* the failure, as a predicate of the server; or "" */
	uint64_t bytes;               /* received so far, after decompression */
	uint64_t of_bytes;            /* announced; 0: unknown */
	struct download_try *now;     /* private */
};

struct downloads_options {
	unsigned int parallel; /* downloads at a time */
	uint32_t connect_ms;   /* for name lookup, connection and TLS handshake */
	uint64_t until_ns;     /* CLOCK_MONOTONIC deadline of all downloads; 0: none */
	/*
	 * Called at the end of a download, with outcome, why and bytes set. May add others. Another
	 * result than 0 ends all downloads.
	 */
	int (*ended)(void *ctx, struct download *d);
	/* Whether more may be written; called each DOWNLOAD_ROOM_BYTES. May be NULL. */
	bool (*has_room)(void *ctx);
	/* Called several times a second. May be NULL. */
	void (*meanwhile)(void *ctx);
	void *ctx;
};

/* Returns 0, -ENOMEM or -ELIBACC (libcurl is missing or does not start). */
int downloads_new(const struct downloads_options *options, struct downloads **ret_downloads);
void downloads_free(struct downloads *d);

/* Queues a file. Returns 0 or -ENOMEM. */
int downloads_add(struct downloads *d, struct download *file);

/*
 * Runs until no download is left. Returns 0, -ENOMEM, -errno of truncating a file, or the result of
 * `ended`. After an error, `ended` may not have been called for some downloads.
 */
int downloads_run(struct downloads *d);

#endif
