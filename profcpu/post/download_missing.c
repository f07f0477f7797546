#include "profcpu/post/download_missing.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "base/progress.h"
#include "base/remedy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FETCH_CONNECT_MS 5000

static int fetch_bad_server(const char *where, const char *bad, int error)
{
	size_t len = strcspn(bad, "; \t\n");
	const char *user = memrchr(bad, '@', len);

	/* The part before "@" may be a password. */
	if (user) {
		len -= (size_t)(user + 1 - bad);
		bad = user + 1;
	}
	if (error == -EINVAL)
		log_error("%s: '%s%.*s' is not the URL of a server; begin it with http:// or "
			  "https://",
			  where, user ? "...@" : "", (int)len, bad);
	else if (error == -E2BIG)
		log_error("%s: more than %d servers", where, SYMBOL_SERVERS_MAX);
	else
		log_error("out of memory");
	return error;
}

int download_missing_add_server(struct fetch_options *o, const char *text)
{
	const char *bad = text;
	int r = symbol_servers_add(&o->servers, SYMBOL_SERVER_SSQP, text, ";", &bad);

	return r ? fetch_bad_server("--symbol-server", bad, r) : 0;
}

int download_missing_add_environment_servers(struct fetch_options *o)
{
	const char *variable = NULL, *bad = NULL;
	int r = symbol_servers_add_environment(&o->servers, &variable, &bad);

	return r ? fetch_bad_server(variable, bad ? bad : "", r) : 0;
}

void download_missing_options_free(struct fetch_options *o)
{
	symbol_servers_free(&o->servers);
}

/* Adds a file, unless one with this key is in the list. */
static int fetch_put(struct fetch_list *list, const struct symbol_file *file, const void *key,
		     size_t len, size_t *ret_item)
{
	struct symbol_fetch_item item = {.file = *file};
	uint32_t id;
	int r = intern_put(&list->ids, key, len, &id);

	if (!r && id == list->items.len)
		r = vec_push(&list->items, item);
	*ret_item = id;
	return r ? -ENOMEM : 0;
}

int download_missing_add(struct fetch_list *list, const char *path, const struct build_id *build_id,
			 size_t *ret_item)
{
	struct symbol_file file = {
		.kind = SYMBOL_FILE_ELF, .name = path_base(path), .build_id = *build_id};

	return fetch_put(list, &file, build_id->bytes, build_id->len, ret_item);
}

int download_missing_add_pdb(struct fetch_list *list, const char *name,
			     const unsigned char guid[16], size_t *ret_item)
{
	struct symbol_file file = {.kind = SYMBOL_FILE_PDB, .name = name};
	char key[sizeof(file.id) + BUILD_ID_MAX] = ""; /* longer than the key of any build id */

	_Static_assert(sizeof(file.id) == 16, "both are GUIDs");
	memcpy(file.id, guid, sizeof(file.id));
	memcpy(key, guid, sizeof(file.id));
	return fetch_put(list, &file, key, sizeof(key), ret_item);
}

void download_missing_list_free(struct fetch_list *list)
{
	vec_free(&list->items);
	intern_free(&list->ids);
}

/* " and 2 others" for n = 3; "" for n = 1. */
static const char *fetch_others(size_t n, char *text, size_t cap)
{
	if (n > 1)
		snprintf(text, cap, " and %zu other%s", n - 1, n > 2 ? "s" : "");
	else
		*text = 0;
	return text;
}

int download_missing_open_cache(struct debug_cache **ret_cache, bool is_note)
{
	int r = debug_cache_open(ret_cache);
	const char *why = r == -ENOENT  ? "this user has no home directory"
			  : r == -EPERM ? "another user owns it or may write to it"
					: strerror(-r);

	if (!r)
		return 0;
	if (is_note)
		log_note(
			"debug files: not downloaded: cannot use the cache: %s; set XDG_CACHE_HOME "
			"to a directory of this user, or give --no-download",
			why);
	else
		log_error(
			"debug files: cannot use the cache: %s; set XDG_CACHE_HOME to a directory "
			"of this user",
			why);
	return r;
}

static void fetch_show_progress(void *ctx, const struct symbol_fetch_progress *now)
{
	progress_show(ctx, "downloading debug files: %zu of %zu, %.1f MiB", now->ended, now->all,
		      (double)now->bytes / (1 << 20));
}

static bool fetch_same_failure(const struct symbol_fetch_item *a, const struct symbol_fetch_item *b)
{
	return b->state == SYMBOL_FETCH_FAILED && a->server == b->server && !strcmp(a->why, b->why);
}

/* Warns once for all files that failed for one reason. */
static void fetch_warn_failures(const struct fetch_list *list)
{
	VEC(struct fetch_failure {
		const struct symbol_fetch_item *first;
		size_t n;
	})
	failures = {0};
	char others[48];
	size_t k;

	for (size_t i = 0; i < list->items.len; i++) {
		const struct symbol_fetch_item *item = &list->items.v[i];

		if (item->state != SYMBOL_FETCH_FAILED)
			continue;
		for (k = 0; k < failures.len && !fetch_same_failure(failures.v[k].first, item); k++)
			;
		if (k == failures.len &&
		    vec_push(&failures, ((struct fetch_failure){.first = item})))
			break;
		failures.v[k].n++;
	}
	for (k = 0; k < failures.len; k++) {
		const struct symbol_fetch_item *item = failures.v[k].first;

		log_warn("no debug file for %s%s: %s %s", item->file.name,
			 fetch_others(failures.v[k].n, others, sizeof(others)),
			 item->server ? item->server : "a server", item->why);
	}
	vec_free(&failures);
}

static void fetch_warn_room(const struct debug_cache *cache, const struct fetch_list *list)
{
	const char *first = NULL;
	char others[48];
	size_t n = 0;

	for (size_t i = 0; i < list->items.len; i++) {
		if (list->items.v[i].state != SYMBOL_FETCH_NO_ROOM)
			continue;
		first = first ? first : list->items.v[i].file.name;
		n++;
	}
	if (n)
		log_warn("no debug file for %s%s: less than %llu MiB would stay free at %s; free "
			 "some space, or set XDG_CACHE_HOME to another disk",
			 first, fetch_others(n, others, sizeof(others)),
			 (unsigned long long)(SYMBOL_FETCH_ROOM_BYTES >> 20),
			 debug_cache_path(cache));
}

int download_missing_run(const struct debug_cache *cache, struct fetch_list *list,
			 struct symbol_fetch_options *how, bool quiet)
{
	struct progress progress = progress_to(2, quiet);

	how->meanwhile = fetch_show_progress;
	how->ctx = &progress;
	int r = symbol_fetch(cache, list->items.v, list->items.len, how);

	progress_close(&progress);
	if (r) {
		log_error("cannot download debug files to %s: %s%s", debug_cache_path(cache),
			  strerror(-r), remedy_for(r));
	} else if (!quiet) {
		fetch_warn_failures(list);
		fetch_warn_room(cache, list);
	}
	return r;
}

/* Removes items that need no request. */
static void fetch_keep_due(struct fetch_list *list, const struct debug_cache *cache,
			   const struct symbol_fetch_options *how)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->items.len; i++)
		if (symbol_fetch_is_due(cache, &list->items.v[i], how))
			list->items.v[kept++] = list->items.v[i];
	list->items.len = kept;
}

/* "https://a" or "https://a and 2 others": servers that get a request for an item. */
static void fetch_name_servers(const struct symbol_servers *servers, const struct fetch_list *list,
			       char *text, size_t cap)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t s = 0; s < servers->list.len; s++) {
		bool used = false;

		for (size_t i = 0; i < list->items.len && !used; i++)
			used = symbol_server_accepts(&servers->list.v[s], &list->items.v[i].file);
		n += used;
		if (used && !first)
			first = servers->list.v[s].shown;
	}
	char others[48];

	snprintf(text, cap, "%s%s", first ? first : "", fetch_others(n, others, sizeof(others)));
}

static size_t fetch_due(const struct debug_cache *cache, struct fetch_list *list,
			struct symbol_fetch_options *how, bool quiet)
{
	uint64_t bytes = 0;
	char names[256];
	size_t got = 0;

	fetch_keep_due(list, cache, how);
	if (!list->items.len)
		return 0;
	fetch_name_servers(how->servers, list, names, sizeof(names));
	if (!quiet)
		log_note("downloading debug files of %zu librar%s from %s, for at most %d s; "
			 "--no-download prevents it",
			 list->items.len, list->items.len == 1 ? "y" : "ies", names, FETCH_LIMIT_S);
	if (download_missing_run(cache, list, how, quiet))
		return 0;
	for (size_t i = 0; i < list->items.len; i++) {
		if (list->items.v[i].state != SYMBOL_FETCH_DOWNLOADED)
			continue;
		got++;
		bytes += list->items.v[i].bytes;
	}
	if (!quiet && got)
		log_note("downloaded %zu debug file%s, %.1f MiB, to %s", got, got == 1 ? "" : "s",
			 (double)bytes / (1 << 20), debug_cache_path(cache));
	return got;
}

size_t download_missing_files(struct fetch_options *o, const struct symbolizer_images *images)
{
	struct symbol_fetch_options how = {.connect_ms = FETCH_CONNECT_MS, .retries = 1};
	struct debug_cache *cache = NULL;
	struct fetch_list list = {0};
	size_t got = 0, item;

	for (size_t i = 0; i < images->list.len; i++) {
		const struct symbolizer_image *image = &images->list.v[i];

		if (image->stripped && image->addrs[SYMBOL_NONE] + image->addrs[SYMBOL_BOUNDS] &&
		    download_missing_add(&list, image->path, &image->build_id, &item))
			break;
	}
	for (size_t i = 0; i < images->pdbs.len; i++)
		if (download_missing_add_pdb(&list, images->pdbs.v[i].name, images->pdbs.v[i].guid,
					     &item))
			break;
	if (list.items.len && !o->off && !download_missing_add_environment_servers(o) &&
	    o->servers.list.len && !download_missing_open_cache(&cache, !o->quiet)) {
		how.servers = &o->servers;
		how.until_ns = clock_monotonic_ns() + FETCH_LIMIT_S * NS_PER_S;
		got = fetch_due(cache, &list, &how, o->quiet);
		debug_cache_free(cache);
	}
	download_missing_list_free(&list);
	return got;
}
