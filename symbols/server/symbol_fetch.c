#include "symbols/server/symbol_fetch.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FETCH_PARALLEL 4
/* A transfer fails if it is slower than this rate for this time. */
#define FETCH_SLOW_BYTES_S 1000
#define FETCH_SLOW_S 20
#define FETCH_HEADERS_MAX ((size_t)64 << 10)         /* bytes of DEBUGINFOD_HEADERS_FILE */
#define FETCH_DEBUGINFOD_BYTES ((uint64_t)100 << 10) /* that must arrive in DEBUGINFOD_TIMEOUT */

/* The state of an item during the requests to servers. */
struct symbol_fetch_request {
	struct download download;
	struct debug_cache_part part;
	struct outbuf url;
	size_t server; /* in the list */
	char key[DEBUG_CACHE_KEY_MAX];
};

struct fetch {
	const struct debug_cache *cache;
	struct symbol_fetch_item *items;
	size_t n;
	const struct symbol_fetch_options *options;
	struct downloads *downloads;
	struct symbol_server_limits debuginfod;
	char *headers; /* for debuginfod servers; NULL: none */
	bool down[SYMBOL_SERVERS_MAX];
	/*
	 * The first item that was not begun. Few are begun at a time, because each has an open
	 * file.
	 */
	size_t next;
	unsigned int active; /* items with a download */
	struct symbol_fetch_progress progress;
};

static bool fetch_is_cached(const struct debug_cache *cache, const struct symbol_file *file,
			    const char *key)
{
	AUTO_CLOSE int fd = debug_cache_open_key(cache, key);
	const char *what;

	return fd >= 0 && !symbol_file_check(file, fd, &what);
}

/* Whether a server may get a request for a file. */
static bool fetch_is_allowed(const struct debug_cache *cache, const struct symbol_server *server,
			     const struct symbol_file *file, const char *key,
			     const struct symbol_fetch_options *o)
{
	if (!symbol_server_accepts(server, file))
		return false;
	return o->again || ((o->unreachable || !debug_cache_has_failed(cache, server->url, NULL)) &&
			    !debug_cache_has_failed(cache, server->url, key));
}

bool symbol_fetch_is_due(const struct debug_cache *cache, const struct symbol_fetch_item *item,
			 const struct symbol_fetch_options *options)
{
	char key[DEBUG_CACHE_KEY_MAX];
	bool due = false;

	if (symbol_file_key(&item->file, key, sizeof(key)) ||
	    fetch_is_cached(cache, &item->file, key))
		return false;
	for (size_t i = 0; i < options->servers->list.len && !due; i++)
		due = fetch_is_allowed(cache, &options->servers->list.v[i], &item->file, key,
				       options);
	return due;
}

static void fetch_end(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request = item->now;

	debug_cache_abort(f->cache, &request->part);
	outbuf_close(&request->url);
	free(request);
	item->now = NULL;
	f->active--;
	f->progress.ended++;
}

static void fetch_limit(const struct fetch *f, const struct symbol_server *server,
			struct download *d)
{
	d->max_bytes = SYMBOL_FETCH_BYTES_MAX;
	d->slow_bytes_s = FETCH_SLOW_BYTES_S;
	d->slow_s = FETCH_SLOW_S;
	d->retries = f->options->retries;
	if (server->kind != SYMBOL_SERVER_DEBUGINFOD)
		return;
	d->headers = f->headers;
	d->whole_ms = (f->debuginfod.whole_s < UINT32_MAX ? f->debuginfod.whole_s : 0) * 1000;
	d->slow_s = f->debuginfod.timeout_s < UINT32_MAX ? (uint32_t)f->debuginfod.timeout_s : 0;
	d->slow_bytes_s = d->slow_s ? (uint32_t)(FETCH_DEBUGINFOD_BYTES / d->slow_s) + 1 : 0;
	if (f->debuginfod.max_bytes && f->debuginfod.max_bytes < d->max_bytes)
		d->max_bytes = f->debuginfod.max_bytes;
	if (f->debuginfod.retries < d->retries)
		d->retries = (unsigned int)f->debuginfod.retries;
}

static bool fetch_has_room(void *ctx)
{
	const struct fetch *f = ctx;
	uint64_t bytes;

	return debug_cache_free_bytes(f->cache, &bytes) || bytes >= SYMBOL_FETCH_ROOM_BYTES;
}

/* Start a download from the next server. Returns 0 or -errno. */
static int fetch_start_download(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[request->server];
	int r = 0;

	outbuf_close(&request->url);
	request->url = outbuf_to(-1);
	if (request->part.fd < 0)
		r = debug_cache_begin(f->cache, &request->part);
	if (!r)
		r = symbol_server_url(server, &item->file, &request->url);
	if (r)
		return r;
	outbuf_char(&request->url, 0);
	if (request->url.error)
		return request->url.error;
	request->download =
		(struct download){.url = request->url.data, .fd = request->part.fd, .ctx = item};
	fetch_limit(f, server, &request->download);
	return downloads_add(f->downloads, &request->download);
}

/* Send a request to the next server that may get one, or end the item. */
static int fetch_next(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request = item->now;
	const struct symbol_servers *servers = f->options->servers;

	for (; request->server < servers->list.len; request->server++) {
		const struct symbol_server *server = &servers->list.v[request->server];

		if (!symbol_server_accepts(server, &item->file))
			continue;
		/*
		 * A note that the server lacked the file counts as absent. A note that it was not
		 * reached counts as failed.
		 */
		if (f->down[request->server] ||
		    !fetch_is_allowed(f->cache, server, &item->file, request->key, f->options)) {
			if (item->state == SYMBOL_FETCH_NO_SERVER &&
			    debug_cache_has_failed(f->cache, server->url, request->key))
				item->state = SYMBOL_FETCH_ABSENT;
			if (f->down[request->server] ||
			    (!f->options->unreachable &&
			     debug_cache_has_failed(f->cache, server->url, NULL))) {
				item->state = SYMBOL_FETCH_FAILED;
				item->server = server->shown;
				snprintf(item->why, sizeof(item->why), "%s",
					 f->down[request->server] ? "could not be reached"
								  : "was unreachable recently; "
								    "`profcpu symbols fetch` "
								    "tries again");
			}
			continue;
		}
		if (fetch_has_room(f))
			return fetch_start_download(f, item);
		item->state = SYMBOL_FETCH_NO_ROOM;
		break;
	}
	fetch_end(f, item);
	return 0;
}

/*
 * Check a downloaded file before it enters the cache. Returns 0, -EBADMSG (not the wanted file) or
 * -errno.
 */
static int fetch_store_file(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[request->server];
	const char *what = "";
	int r = symbol_file_check(&item->file, request->part.fd, &what);

	if (r == -EBADMSG) {
		item->state = SYMBOL_FETCH_FAILED;
		snprintf(item->why, sizeof(item->why), "sent a file that %s", what);
		debug_cache_note_failure(f->cache, server->url, request->key);
	}
	if (r)
		return r;
	item->bytes = request->download.bytes;
	r = debug_cache_commit(f->cache, &request->part, request->key);
	if (!r) {
		item->state = SYMBOL_FETCH_DOWNLOADED;
		item->why[0] = 0;
	}
	return r;
}

/* Handle the end of a download: finish the item or try the next server. */
static int fetch_download_ended(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[request->server];
	const struct download *d = &request->download;
	int r;

	if (d->outcome == DOWNLOAD_ABSENT) {
		debug_cache_note_failure(f->cache, server->url, request->key);
		item->state =
			item->state == SYMBOL_FETCH_NO_SERVER ? SYMBOL_FETCH_ABSENT : item->state;
	} else {
		item->server = server->shown;
	}
	if (d->outcome == DOWNLOAD_UNREACHABLE) {
		f->down[request->server] = true;
		debug_cache_note_failure(f->cache, server->url, NULL);
	} else if (d->outcome != DOWNLOAD_LATE) {
		debug_cache_clear_failure(f->cache, server->url, NULL);
	}
	if (d->outcome != DOWNLOAD_DONE && d->outcome != DOWNLOAD_ABSENT) {
		item->state =
			d->outcome == DOWNLOAD_FULL ? SYMBOL_FETCH_NO_ROOM : SYMBOL_FETCH_FAILED;
		snprintf(item->why, sizeof(item->why), "%s", d->why);
	}
	r = d->outcome == DOWNLOAD_DONE ? fetch_store_file(f, item) : -ENOENT;
	if (!r || d->outcome == DOWNLOAD_LATE || d->outcome == DOWNLOAD_FULL) {
		fetch_end(f, item);
		return 0;
	}
	if (r != -ENOENT && r != -EBADMSG)
		return r;
	request->server++;
	return fetch_next(f, item);
}

static void fetch_meanwhile(void *ctx)
{
	struct fetch *f = ctx;
	struct symbol_fetch_progress now = f->progress;

	for (size_t i = 0; i < f->next; i++)
		now.bytes += f->items[i].now ? f->items[i].now->download.bytes : 0;
	if (f->options->meanwhile)
		f->options->meanwhile(f->options->ctx, &now);
}

/* Check whether an item is in the cache. Count it if it is not. */
static void fetch_check_cache(struct fetch *f, struct symbol_fetch_item *item)
{
	char key[DEBUG_CACHE_KEY_MAX];

	item->state = SYMBOL_FETCH_NO_SERVER;
	item->now = NULL;
	if (symbol_file_key(&item->file, key, sizeof(key)))
		return;
	if (fetch_is_cached(f->cache, &item->file, key))
		item->state = SYMBOL_FETCH_CACHED;
	else
		f->progress.all++;
}

static int fetch_begin(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_request *request;
	char key[DEBUG_CACHE_KEY_MAX];

	if (item->state == SYMBOL_FETCH_CACHED || symbol_file_key(&item->file, key, sizeof(key)))
		return 0;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request->part.fd = -1;
	request->url = outbuf_to(-1);
	strcpy(request->key, key);
	item->now = request;
	f->active++;
	return fetch_next(f, item);
}

static int fetch_fill(struct fetch *f)
{
	int r = 0;

	while (!r && f->active < FETCH_PARALLEL && f->next < f->n)
		r = fetch_begin(f, &f->items[f->next++]);
	return r;
}

static int fetch_ended(void *ctx, struct download *d)
{
	struct symbol_fetch_item *item = d->ctx;
	struct fetch *f = ctx;

	f->progress.bytes += d->bytes;
	int r = fetch_download_ended(f, item);

	return r ? r : fetch_fill(f);
}

/*
 * Read further header lines that an organisation's debuginfod servers may want. Ignore an
 * unreadable file.
 */
static void fetch_read_headers(struct fetch *f)
{
	const char *path = secure_getenv("DEBUGINFOD_HEADERS_FILE");
	size_t len;

	if (path)
		file_read_at(AT_FDCWD, path, FETCH_HEADERS_MAX, &f->headers, &len);
}

int symbol_fetch(const struct debug_cache *cache, struct symbol_fetch_item *items, size_t n,
		 const struct symbol_fetch_options *options)
{
	struct fetch f = {.cache = cache,
			  .items = items,
			  .n = n,
			  .options = options,
			  .debuginfod = symbol_server_debuginfod_limits()};
	struct downloads_options downloads = {.parallel = FETCH_PARALLEL,
					      .connect_ms = options->connect_ms,
					      .until_ns = options->until_ns,
					      .ended = fetch_ended,
					      .has_room = fetch_has_room,
					      .meanwhile = fetch_meanwhile,
					      .ctx = &f};
	int r = downloads_new(&downloads, &f.downloads);

	if (r)
		return r;
	fetch_read_headers(&f);
	for (size_t i = 0; i < n; i++)
		fetch_check_cache(&f, &items[i]);
	r = fetch_fill(&f);
	if (!r)
		r = downloads_run(f.downloads);
	downloads_free(f.downloads);
	for (size_t i = 0; i < n; i++)
		if (items[i].now)
			fetch_end(&f, &items[i]);
	free(f.headers);
	return r;
}
