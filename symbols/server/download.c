#include "symbols/server/download.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/vec.h"
#include "symbols/server/libcurl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DOWNLOAD_POLL_MS 100
/* Wait before the first retry; it doubles with each further one */
#define DOWNLOAD_BACK_OFF_NS (500 * NS_PER_MS)
#define DOWNLOAD_AGENT "profcpu" /* User-Agent */
#define DOWNLOAD_HEADERS_MAX 64

enum download_stop {
	DOWNLOAD_GOES_ON,
	DOWNLOAD_TOO_LARGE,
	DOWNLOAD_NOT_WRITTEN,
	DOWNLOAD_NO_ROOM,
};

/* The state of a download between its beginning and its end. */
struct download_try {
	struct downloads *all;
	CURL *easy;
	struct curl_slist *headers;
	unsigned int tries;
	uint64_t not_before_ns; /* earliest time of the next try */
	bool running;
	enum download_stop stop;
	int error; /* -errno of a write */
};

struct downloads {
	struct downloads_options options;
	CURLM *multi;
	VEC(struct download *) files; /* not ended yet, in the order in which they were added */
	unsigned int running;
	uint64_t unchecked; /* bytes written since the last call of has_room */
};

static const struct libcurl *curl; /* set while a struct downloads exists */

int downloads_new(const struct downloads_options *options, struct downloads **ret_downloads)
{
	struct downloads *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->options = *options;
	curl = libcurl_load();
	if (!curl || curl->global_init(CURL_GLOBAL_DEFAULT)) {
		free(d);
		return -ELIBACC;
	}
	d->multi = curl->multi_init();
	if (!d->multi) {
		curl->global_cleanup();
		free(d);
		return -ENOMEM;
	}
	*ret_downloads = d;
	return 0;
}

/* Free the private state of a download. */
static void download_drop(struct downloads *d, struct download *file)
{
	struct download_try *t = file->now;

	if (!t)
		return;
	if (t->running) {
		curl->multi_remove_handle(d->multi, t->easy);
		d->running--;
	}
	curl->easy_cleanup(t->easy);
	curl->slist_free_all(t->headers);
	free(t);
	file->now = NULL;
}

void downloads_free(struct downloads *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->files.len; i++)
		download_drop(d, d->files.v[i]);
	vec_free(&d->files);
	curl->multi_cleanup(d->multi);
	curl->global_cleanup();
	free(d);
}

static bool downloads_have_room(struct downloads *d, size_t len)
{
	d->unchecked += len;
	if (!d->options.has_room || d->unchecked < DOWNLOAD_ROOM_BYTES)
		return true;
	d->unchecked = 0;
	return d->options.has_room(d->options.ctx);
}

static size_t download_write(char *data, size_t one, size_t n, void *ctx)
{
	struct download *file = ctx;
	size_t len = one * n;

	if (file->max_bytes && len > file->max_bytes - file->bytes) {
		file->now->stop = DOWNLOAD_TOO_LARGE;
		return 0;
	}
	if (!downloads_have_room(file->now->all, len)) {
		file->now->stop = DOWNLOAD_NO_ROOM;
		return 0;
	}
	file->now->error = file_write_all(file->fd, data, len);
	if (file->now->error) {
		file->now->stop = DOWNLOAD_NOT_WRITTEN;
		return 0;
	}
	file->bytes += len;
	return len;
}

static int download_progress(void *ctx, curl_off_t of, curl_off_t now, curl_off_t up_of,
			     curl_off_t up_now)
{
	struct download *file = ctx;

	(void)now, (void)up_of, (void)up_now;
	file->of_bytes = of > 0 ? (uint64_t)of : 0;
	return 0;
}

static int download_headers(struct download_try *t, const char *text)
{
	char line[1024];

	for (int n = 0; text && *text && n < DOWNLOAD_HEADERS_MAX; n++) {
		size_t len = strcspn(text, "\r\n");

		if (len && strspn(text, " \t") < len && len < sizeof(line)) {
			snprintf(line, sizeof(line), "%.*s", (int)len, text);
			struct curl_slist *more = curl->slist_append(t->headers, line);

			if (!more)
				return -ENOMEM;
			t->headers = more;
		}
		text += len;
		text += strspn(text, "\r\n");
	}
	return 0;
}

/* Allow only http and https. A redirect from https to http is not allowed. */
static CURLcode download_protocols(CURL *easy, bool secure)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	CURLcode r = curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");

	return r ? r
		 : curl->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
				     secure ? "https" : "http,https");
#else
	CURLcode r = curl->easy_setopt(easy, CURLOPT_PROTOCOLS,
				       (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));

	return r ? r
		 : curl->easy_setopt(
			   easy, CURLOPT_REDIR_PROTOCOLS,
			   (long)(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

#define SET(option, value) (r = r ? r : curl->easy_setopt(easy, option, value))

static CURLcode download_options(const struct downloads *d, struct download *file)
{
	CURL *easy = file->now->easy;
	CURLcode r = download_protocols(easy, !strncasecmp(file->url, "https:", 6));

	SET(CURLOPT_URL, file->url);
	SET(CURLOPT_PRIVATE, file);
	SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Do not wait beyond the limit for a name server that does not answer. */
	SET(CURLOPT_QUICK_EXIT, 1L);
#endif
	SET(CURLOPT_USERAGENT, DOWNLOAD_AGENT);
	SET(CURLOPT_FOLLOWLOCATION, 1L);
	SET(CURLOPT_MAXREDIRS, (long)DOWNLOAD_REDIRECTS_MAX);
	SET(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
	SET(CURLOPT_FAILONERROR, 1L); /* skip the body of error responses */
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)d->options.connect_ms);
	SET(CURLOPT_TIMEOUT_MS, (long)file->whole_ms);
	SET(CURLOPT_LOW_SPEED_LIMIT, (long)file->slow_bytes_s);
	SET(CURLOPT_LOW_SPEED_TIME, (long)file->slow_s);
	if (file->max_bytes)
		SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)file->max_bytes);
	SET(CURLOPT_WRITEFUNCTION, download_write);
	SET(CURLOPT_WRITEDATA, file);
	SET(CURLOPT_NOPROGRESS, 0L);
	SET(CURLOPT_XFERINFOFUNCTION, download_progress);
	SET(CURLOPT_XFERINFODATA, file);
	if (file->now->headers)
		SET(CURLOPT_HTTPHEADER, file->now->headers);
	return r;
}

int downloads_add(struct downloads *d, struct download *file)
{
	struct download_try *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	file->outcome = DOWNLOAD_DONE;
	file->why[0] = 0;
	file->bytes = file->of_bytes = 0;
	file->now = t;
	t->all = d;
	t->easy = curl->easy_init();
	if (!t->easy || download_headers(t, file->headers) || download_options(d, file) ||
	    vec_push(&d->files, file)) {
		download_drop(d, file);
		return -ENOMEM;
	}
	return 0;
}

/* Results of libcurl */

static void download_set_outcome(struct download *file, enum download_outcome outcome,
				 const char *why)
{
	file->outcome = outcome;
	snprintf(file->why, sizeof(file->why), "%s", why);
}

static bool download_status_is_passing(long status)
{
	return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 505);
}

/* Set the outcome for an error status. Returns true if a later try may succeed. */
static bool download_classify_status(struct download *file, long status)
{
	char why[64];

	if (status == 404 || status == 410) {
		download_set_outcome(file, DOWNLOAD_ABSENT, "does not have it");
		return false;
	}
	snprintf(why, sizeof(why),
		 status == 401 || status == 403 ? "refuses it (status %ld)"
						: "answers with status %ld",
		 status);
	download_set_outcome(file, DOWNLOAD_FAILED, why);
	return download_status_is_passing(status);
}

static void download_classify_timeout(struct download *file)
{
	double connected = 0;

	curl->easy_getinfo(file->now->easy, CURLINFO_CONNECT_TIME, &connected);
	if (connected > 0)
		download_set_outcome(file, DOWNLOAD_FAILED, "is too slow");
	else
		download_set_outcome(file, DOWNLOAD_UNREACHABLE, "does not answer");
}

static void download_classify_stop(struct download *file)
{
	char why[DOWNLOAD_WHY_BYTES];

	if (file->now->stop == DOWNLOAD_NO_ROOM) {
		download_set_outcome(file, DOWNLOAD_FULL, "sends more than the disk has room for");
		return;
	}
	if (file->now->stop == DOWNLOAD_NOT_WRITTEN)
		snprintf(why, sizeof(why), "sends data that cannot be written: %s",
			 strerror(-file->now->error));
	else
		snprintf(why, sizeof(why), "sends more than %llu MiB",
			 (unsigned long long)(file->max_bytes >> 20));
	download_set_outcome(file, DOWNLOAD_FAILED, why);
}

/* Set outcome and why at the end of a try. Returns true if another try may succeed. */
static bool download_classify(struct download *file, CURLcode code)
{
	long status = 0;
	char why[DOWNLOAD_WHY_BYTES];

	curl->easy_getinfo(file->now->easy, CURLINFO_RESPONSE_CODE, &status);
	switch (code) {
	case CURLE_OK:
		download_set_outcome(file, DOWNLOAD_DONE, "");
		return false;
	case CURLE_HTTP_RETURNED_ERROR:
		return download_classify_status(file, status);
	case CURLE_WRITE_ERROR:
	case CURLE_FILESIZE_EXCEEDED:
		download_classify_stop(file);
		return false;
	case CURLE_TOO_MANY_REDIRECTS:
		download_set_outcome(file, DOWNLOAD_FAILED, "redirects too often");
		return false;
	case CURLE_UNSUPPORTED_PROTOCOL:
		download_set_outcome(file, DOWNLOAD_FAILED,
				     "redirects to a URL that is not allowed");
		return false;
	case CURLE_OPERATION_TIMEDOUT:
		download_classify_timeout(file);
		return false;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		download_set_outcome(file, DOWNLOAD_UNREACHABLE,
				     code == CURLE_COULDNT_RESOLVE_HOST
					     ? "has a name that cannot be resolved"
					     : "has a proxy whose name cannot be resolved");
		return false;
	case CURLE_COULDNT_CONNECT:
		download_set_outcome(file, DOWNLOAD_UNREACHABLE, "cannot be reached");
		return true;
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_GOT_NOTHING:
		download_set_outcome(file, DOWNLOAD_FAILED, "closed the connection early");
		return true;
	default: {
		bool refused =
			code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;

		snprintf(why, sizeof(why), "failed: %s", curl->easy_strerror(code));
		download_set_outcome(file, refused ? DOWNLOAD_UNREACHABLE : DOWNLOAD_FAILED, why);
		return false;
	}
	}
}

/* Remove a download from the list and report its end. */
static int downloads_end(struct downloads *d, struct download *file)
{
	size_t i = 0;

	while (d->files.v[i] != file)
		i++;
	memmove(d->files.v + i, d->files.v + i + 1, (d->files.len - i - 1) * sizeof(*d->files.v));
	d->files.len--;
	download_drop(d, file);
	return d->options.ended(d->options.ctx, file);
}

static int downloads_try_ended(struct downloads *d, struct download *file, CURLcode code)
{
	struct download_try *t = file->now;
	bool passing = download_classify(file, code);

	curl->multi_remove_handle(d->multi, t->easy);
	t->running = false;
	d->running--;
	if (!passing || t->tries > file->retries)
		return downloads_end(d, file);
	t->not_before_ns = clock_monotonic_ns() + (DOWNLOAD_BACK_OFF_NS << (t->tries - 1));
	return 0;
}

static int download_begin(struct downloads *d, struct download *file)
{
	struct download_try *t = file->now;

	file->bytes = file->of_bytes = 0;
	t->stop = DOWNLOAD_GOES_ON;
	t->tries++;
	if (ftruncate(file->fd, 0) || lseek(file->fd, 0, SEEK_SET))
		return -errno;
	if (curl->multi_add_handle(d->multi, t->easy))
		return -ENOMEM;
	t->running = true;
	d->running++;
	return 0;
}

/* Begin downloads up to the limit. */
static int downloads_begin(struct downloads *d)
{
	uint64_t now = clock_monotonic_ns();

	for (size_t i = 0; i < d->files.len && d->running < d->options.parallel; i++) {
		struct download *file = d->files.v[i];

		if (file->now->running || now < file->now->not_before_ns)
			continue;
		int r = download_begin(d, file);

		if (r)
			return r;
	}
	return 0;
}

static int downloads_collect_ended(struct downloads *d)
{
	CURLMsg *message;
	int left, r = 0;

	while (!r && (message = curl->multi_info_read(d->multi, &left))) {
		char *file = NULL;
		CURLcode code = message->data.result;

		if (message->msg == CURLMSG_DONE &&
		    !curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &file) && file)
			r = downloads_try_ended(d, (struct download *)(void *)file, code);
	}
	return r;
}

static bool downloads_over_deadline(const struct downloads *d)
{
	return d->options.until_ns && clock_monotonic_ns() >= d->options.until_ns;
}

static int downloads_step(struct downloads *d)
{
	int running = 0, r = downloads_begin(d);

	if (r)
		return r;
	if (curl->multi_perform(d->multi, &running))
		return -ENOMEM;
	r = downloads_collect_ended(d);
	if (r)
		return r;
	if (d->options.meanwhile)
		d->options.meanwhile(d->options.ctx);
	return d->files.len && curl->multi_poll(d->multi, NULL, 0, DOWNLOAD_POLL_MS, NULL) ? -ENOMEM
											   : 0;
}

int downloads_run(struct downloads *d)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	int r = 0;

	/*
	 * Ignore SIGPIPE, which a server causes by closing a connection. With NOSIGNAL, libcurl
	 * leaves that to its caller.
	 */
	sigaction(SIGPIPE, &ignore, &before);
	while (!r && d->files.len && !downloads_over_deadline(d))
		r = downloads_step(d);
	while (!r && d->files.len) {
		download_set_outcome(d->files.v[0], DOWNLOAD_LATE, "did not send it in time");
		r = downloads_end(d, d->files.v[0]);
	}
	sigaction(SIGPIPE, &before, NULL);
	return r;
}
