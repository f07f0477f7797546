/*
 * Downloads over http and https, several at a time, each with limits: of time, of speed, of size, of redirects. libcurl's own
 * variables for proxies count (http_proxy, https_proxy, all_proxy, no_proxy; libcurl-env(3)). Nothing is believed of what comes but
 * that it is as long as was said.
 */
#ifndef SYMBOLS_DOWNLOAD_H
#define SYMBOLS_DOWNLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_REDIRECTS_MAX 5
#define DOWNLOAD_WHY_BYTES 160
#define DOWNLOAD_ROOM_BYTES ((uint64_t)4 << 20)

enum download_outcome {
	DOWNLOAD_DONE,
	DOWNLOAD_ABSENT, /* the server says that it has no such file */
	DOWNLOAD_FAILED, /* this file did not come; another one of the server may */
	DOWNLOAD_UNREACHABLE, /* the server cannot be reached at all */
	DOWNLOAD_LATE, /* the time for all downloads was over */
	DOWNLOAD_FULL, /* there is no room for more of it */
};

struct downloads;

/* One file. The struct is the caller's and stays in its place until the end is told; so does the text of url. */
struct download {
	const char *url;
	int fd; /* is emptied and written to from its beginning, once for each try; borrowed */
	uint64_t max_bytes; /* as unpacked; 0: without limit */
	uint64_t whole_ms; /* for each try; 0: without limit */
	uint32_t slow_bytes_s, slow_s; /* below that speed for that long a try has failed; 0: without limit */
	unsigned int retries; /* after 408, 429, 5xx and what breaks off, each after a longer wait */
	const char *headers; /* further headers, a line each; NULL: none */
	void *ctx; /* the caller's */

	enum download_outcome outcome;
	char why[DOWNLOAD_WHY_BYTES]; /* what went wrong, as the end of a sentence; "" */
	uint64_t bytes; /* that came so far, as unpacked */
	uint64_t of_bytes; /* that are announced; 0: not known */
	struct download_try *now; /* private */
};

struct downloads_options {
	unsigned int parallel; /* at a time */
	uint32_t connect_ms; /* for the name, the connection and its encryption */
	uint64_t until_ns; /* CLOCK_MONOTONIC by which all is over; 0: without limit */
	/* The end of one: outcome, why and bytes are set. May add others. Other than 0 ends all. */
	int (*ended)(void *ctx, struct download *d);
	/* Whether more may be written; asked each DOWNLOAD_ROOM_BYTES. May be NULL. */
	bool (*has_room)(void *ctx);
	/* Several times a second. May be NULL. */
	void (*meanwhile)(void *ctx);
	void *ctx;
};

/* 0; -ENOMEM; -ENOSYS: libcurl does not start. */
int downloads_new(const struct downloads_options *options, struct downloads **ret_downloads);
void downloads_free(struct downloads *d);

/* Queues a file. 0 or -ENOMEM. */
int downloads_add(struct downloads *d, struct download *file);

/* Until none is left. 0; -ENOMEM, -errno of emptying a file, or what ended gave: then some ends may not have been told. */
int downloads_run(struct downloads *d);

#endif
