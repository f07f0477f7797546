#include "symbols/symbol_fetch.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FETCH_PARALLEL 4
#define FETCH_SLOW_BYTES_S 1000 /* a server that sends less is given up, */
#define FETCH_SLOW_S 20 /* after this time */
#define FETCH_HEADERS_MAX ((size_t)64 << 10) /* bytes of DEBUGINFOD_HEADERS_FILE */
#define FETCH_DEBUGINFOD_BYTES ((uint64_t)100 << 10) /* that are to come in DEBUGINFOD_TIMEOUT */

/* What there is of an item while it is asked for. */
struct symbol_fetch_asking {
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
	size_t next; /* the first item that was not begun; few are at a time, as each has a file open */
	unsigned int asking;
	struct symbol_fetch_progress progress;
};

static bool fetch_is_cached(const struct debug_cache *cache, const struct symbol_file *file, const char *key)
{
	AUTO_CLOSE int fd = debug_cache_get(cache, key);
	const char *what;

	return fd >= 0 && !symbol_file_check(file, fd, &what);
}

/* Whether a server is worth asking for a file. */
static bool fetch_may_ask(const struct debug_cache *cache, const struct symbol_server *server, const struct symbol_file *file,
			  const char *key, bool again)
{
	return symbol_server_is_asked(server, file) &&
	       (again || (!debug_cache_noted(cache, server->url, NULL) && !debug_cache_noted(cache, server->url, key)));
}

bool symbol_fetch_is_due(const struct debug_cache *cache, const struct symbol_fetch_item *item,
			 const struct symbol_fetch_options *options)
{
	char key[DEBUG_CACHE_KEY_MAX];
	bool due = false;

	if (symbol_file_key(&item->file, key, sizeof(key)) || fetch_is_cached(cache, &item->file, key))
		return false;
	for (size_t i = 0; i < options->servers->list.len && !due; i++)
		due = fetch_may_ask(cache, &options->servers->list.v[i], &item->file, key, options->again);
	return due;
}

static void fetch_end(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_asking *asking = item->now;

	debug_cache_abort(f->cache, &asking->part);
	outbuf_close(&asking->url);
	free(asking);
	item->now = NULL;
	f->asking--;
	f->progress.ended++;
}

static void fetch_limit(const struct fetch *f, const struct symbol_server *server, struct download *d)
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

	return debug_cache_room(f->cache, &bytes) || bytes >= SYMBOL_FETCH_ROOM_BYTES;
}

/* Asks the server that is next. 0; -errno. */
static int fetch_ask(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_asking *asking = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[asking->server];
	int r = 0;

	outbuf_close(&asking->url);
	asking->url = outbuf_to(-1);
	if (asking->part.fd < 0)
		r = debug_cache_begin(f->cache, &asking->part);
	if (!r)
		r = symbol_server_url(server, &item->file, &asking->url);
	if (r)
		return r;
	outbuf_char(&asking->url, 0);
	if (asking->url.error)
		return asking->url.error;
	asking->download = (struct download){.url = asking->url.data, .fd = asking->part.fd, .ctx = item};
	fetch_limit(f, server, &asking->download);
	return downloads_add(f->downloads, &asking->download);
}

/* Goes on with the next server that may be asked, or ends. */
static int fetch_next(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_asking *asking = item->now;
	const struct symbol_servers *servers = f->options->servers;

	for (; asking->server < servers->list.len; asking->server++) {
		const struct symbol_server *server = &servers->list.v[asking->server];

		if (!symbol_server_is_asked(server, &item->file))
			continue;
		/* That it lacked the file a while ago is as good as that it lacks it now; that it was not reached says nothing. */
		if (f->down[asking->server] || !fetch_may_ask(f->cache, server, &item->file, asking->key, f->options->again)) {
			if (item->state == SYMBOL_FETCH_NOT_ASKED && debug_cache_noted(f->cache, server->url, asking->key))
				item->state = SYMBOL_FETCH_ABSENT;
			if (f->down[asking->server] || debug_cache_noted(f->cache, server->url, NULL)) {
				item->state = SYMBOL_FETCH_FAILED;
				item->server = server->shown;
				snprintf(item->why, sizeof(item->why), "%s",
					 f->down[asking->server] ? "could not be reached" :
								   "could not be reached a short while ago; --again asks it now");
			}
			continue;
		}
		if (fetch_has_room(f))
			return fetch_ask(f, item);
		item->state = SYMBOL_FETCH_NO_ROOM;
		break;
	}
	fetch_end(f, item);
	return 0;
}

/* What came is checked before it gets its name. 0; -EBADMSG: it is not what was asked for; -errno. */
static int fetch_take(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_asking *asking = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[asking->server];
	const char *what = "";
	int r = symbol_file_check(&item->file, asking->part.fd, &what);

	if (r == -EBADMSG) {
		item->state = SYMBOL_FETCH_FAILED;
		snprintf(item->why, sizeof(item->why), "sent a file that is %s", what);
		debug_cache_note(f->cache, server->url, asking->key);
	}
	if (r)
		return r;
	item->bytes = asking->download.bytes;
	r = debug_cache_commit(f->cache, &asking->part, asking->key);
	if (!r) {
		item->state = SYMBOL_FETCH_GOT;
		item->why[0] = 0;
	}
	return r;
}

static int fetch_judge(struct fetch *f, struct symbol_fetch_item *item)
{
	struct symbol_fetch_asking *asking = item->now;
	const struct symbol_server *server = &f->options->servers->list.v[asking->server];
	const struct download *d = &asking->download;
	int r;

	if (d->outcome == DOWNLOAD_ABSENT) {
		debug_cache_note(f->cache, server->url, asking->key);
		item->state = item->state == SYMBOL_FETCH_NOT_ASKED ? SYMBOL_FETCH_ABSENT : item->state;
	} else {
		item->server = server->shown;
	}
	if (d->outcome == DOWNLOAD_UNREACHABLE) {
		f->down[asking->server] = true;
		debug_cache_note(f->cache, server->url, NULL);
	} else if (d->outcome != DOWNLOAD_LATE) {
		debug_cache_forget(f->cache, server->url, NULL);
	}
	if (d->outcome != DOWNLOAD_DONE && d->outcome != DOWNLOAD_ABSENT) {
		item->state = d->outcome == DOWNLOAD_FULL ? SYMBOL_FETCH_NO_ROOM : SYMBOL_FETCH_FAILED;
		snprintf(item->why, sizeof(item->why), "%s", d->why);
	}
	r = d->outcome == DOWNLOAD_DONE ? fetch_take(f, item) : -ENOENT;
	if (!r || d->outcome == DOWNLOAD_LATE || d->outcome == DOWNLOAD_FULL) {
		fetch_end(f, item);
		return 0;
	}
	if (r != -ENOENT && r != -EBADMSG)
		return r;
	asking->server++;
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

/* What is in the cache is told at once; what is not is counted. */
static void fetch_look(struct fetch *f, struct symbol_fetch_item *item)
{
	char key[DEBUG_CACHE_KEY_MAX];

	item->state = SYMBOL_FETCH_NOT_ASKED;
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
	struct symbol_fetch_asking *asking;
	char key[DEBUG_CACHE_KEY_MAX];

	if (item->state == SYMBOL_FETCH_CACHED || symbol_file_key(&item->file, key, sizeof(key)))
		return 0;
	asking = calloc(1, sizeof(*asking));
	if (!asking)
		return -ENOMEM;
	asking->part.fd = -1;
	asking->url = outbuf_to(-1);
	strcpy(asking->key, key);
	item->now = asking;
	f->asking++;
	return fetch_next(f, item);
}

static int fetch_fill(struct fetch *f)
{
	int r = 0;

	while (!r && f->asking < FETCH_PARALLEL && f->next < f->n)
		r = fetch_begin(f, &f->items[f->next++]);
	return r;
}

static int fetch_ended(void *ctx, struct download *d)
{
	struct symbol_fetch_item *item = d->ctx;
	struct fetch *f = ctx;

	f->progress.bytes += d->bytes;
	int r = fetch_judge(f, item);

	return r ? r : fetch_fill(f);
}

/* Lines of headers that debuginfod servers of an organisation may want; what cannot be read is as if it were not there. */
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
	struct fetch f = {.cache = cache, .items = items, .n = n, .options = options, .debuginfod = symbol_server_debuginfod_limits()};
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
		fetch_look(&f, &items[i]);
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
