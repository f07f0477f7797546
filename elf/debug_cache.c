#include "elf/debug_cache.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define DEBUG_CACHE_MISSING ".missing"
#define DEBUG_CACHE_DOWN ".down"
#define DEBUG_CACHE_PART ".part"
#define DEBUG_CACHE_PART_S (24 * 3600) /* older files in .part/ are abandoned */
#define DEBUG_CACHE_DEPTH_MAX 3        /* levels of directories in the cache */

struct debug_cache {
	int dir_fd;
	char path[PATH_MAX];
};

/* Paths of the caches */

static int cache_join(char *path, const char *dir, const char *rest)
{
	return snprintf(path, PATH_MAX, "%s%s", dir, rest) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/*
 * The directory that a variable names, or NULL. Relative paths are ignored, as the XDG base
 * directory specification demands.
 */
static const char *cache_directory_of(const char *variable)
{
	const char *dir = secure_getenv(variable);

	return dir && dir[0] == '/' ? dir : NULL;
}

/*
 * Whether root would write into another user's directory, or into one that others could have
 * made.
 */
static bool cache_is_foreign(const char *dir)
{
	struct stat st;

	return !geteuid() && !stat(dir, &st) && st.st_uid;
}

/*
 * A directory that a variable names, after the check of its owner. Each image asks for it, so the
 * result is kept until the variable changes.
 */
struct cache_checked {
	bool known, foreign;
	char dir[PATH_MAX];
};

/* Returns dir, or NULL if it is NULL or foreign. */
static const char *cache_check(struct cache_checked *c, const char *dir)
{
	if (!dir || strlen(dir) >= sizeof(c->dir))
		return NULL;
	if (!c->known || strcmp(c->dir, dir) != 0) {
		c->foreign = cache_is_foreign(dir);
		c->known = true;
		strcpy(c->dir, dir);
	}
	return c->foreign ? NULL : dir;
}

/* The home directory that the user database gives, or "". Valid in this thread. */
static const char *cache_database_home(void)
{
	static _Thread_local char home[PATH_MAX];
	static _Thread_local bool known;
	const struct passwd *pw = known ? NULL : getpwuid(geteuid());

	if (pw && pw->pw_dir && pw->pw_dir[0] == '/' && strlen(pw->pw_dir) < sizeof(home))
		strcpy(home, pw->pw_dir);
	known = true;
	return home;
}

const char *debug_cache_home(void)
{
	static _Thread_local struct cache_checked checked;
	const char *home = cache_check(&checked, cache_directory_of("HOME"));

	if (!home)
		home = cache_database_home();
	return home[0] ? home : NULL;
}

/* Give DIR/NAME in this user's place for caches. Returns 0, -ENOENT or -ENAMETOOLONG. */
static int cache_xdg(const char *name, char *path)
{
	static _Thread_local struct cache_checked checked;
	const char *dir = cache_check(&checked, cache_directory_of("XDG_CACHE_HOME"));
	char home_cache[PATH_MAX];

	if (!dir) {
		const char *home = debug_cache_home();

		if (!home)
			return -ENOENT;
		if (cache_join(home_cache, home, "/.cache"))
			return -ENAMETOOLONG;
		dir = home_cache;
	}
	return cache_join(path, dir, name);
}

static int cache_open_regular(const char *path)
{
	int fd = -1, r = file_open_regular(AT_FDCWD, path, &fd);

	return r ? r : fd;
}

static int cache_look_debuginfod(const char *hex, char *path)
{
	const char *own = cache_directory_of("DEBUGINFOD_CACHE_PATH"), *home = debug_cache_home();
	char dir[PATH_MAX], name[2 * BUILD_ID_MAX + 16];
	int fd = -ENOENT;

	snprintf(name, sizeof(name), "/%s/debuginfo", hex);
	if (own)
		return cache_join(path, own, name) ? -ENOENT : cache_open_regular(path);
	if (!cache_xdg("/debuginfod_client", dir) && !cache_join(path, dir, name))
		fd = cache_open_regular(path);
	if (fd < 0 && home && !cache_join(dir, home, "/.debuginfod_client_cache") &&
	    !cache_join(path, dir, name))
		fd = cache_open_regular(path);
	return fd;
}

int debug_cache_open_build_id(enum debug_cache_place place, const struct build_id *id, char *path)
{
	char hex[2 * BUILD_ID_MAX + 1], name[128], dir[PATH_MAX];
	const char *home = debug_cache_home();
	int r = -ENOENT;

	if (id->len < 2)
		return -ENOENT;
	build_id_hex(id, hex);
	if (place == DEBUG_CACHE_DEBUGINFOD) {
		int fd = cache_look_debuginfod(hex, path);

		return fd < 0 ? -ENOENT : fd;
	}
	/* Servers pad short ids with zeros. Ids of linkers have the full length. */
	snprintf(name, sizeof(name), "/_.debug/elf-buildid-sym-%s%.*s/_.debug", hex,
		 2 * (BUILD_ID_MAX - id->len), "0000000000000000000000000000000000000000");
	if (place == DEBUG_CACHE_OWN)
		r = cache_xdg("/profcpu/symbols", dir);
	else if (place == DEBUG_CACHE_DOTNET && home)
		r = cache_join(dir, home, "/.dotnet/symbolcache");
	else if (place == DEBUG_CACHE_PERF && home)
		r = cache_join(dir, home, "/.debug");
	if (place == DEBUG_CACHE_PERF)
		snprintf(name, sizeof(name), "/.build-id/%.2s/%s/debug", hex, hex + 2);
	if (r || cache_join(path, dir, name))
		return -ENOENT;
	int fd = cache_open_regular(path);

	return fd < 0 ? -ENOENT : fd;
}

int debug_cache_open_any(const char *key)
{
	const char *home = debug_cache_home();
	char dir[PATH_MAX], name[DEBUG_CACHE_KEY_MAX + 1], path[PATH_MAX];
	int fd = -ENOENT;

	if (snprintf(name, sizeof(name), "/%s", key) >= (int)sizeof(name))
		return -ENOENT;
	if (!cache_xdg("/profcpu/symbols", dir) && !cache_join(path, dir, name))
		fd = cache_open_regular(path);
	if (fd < 0 && home && !cache_join(dir, home, "/.dotnet/symbolcache") &&
	    !cache_join(path, dir, name))
		fd = cache_open_regular(path);
	return fd < 0 ? -ENOENT : fd;
}

/* profcpu's own cache */

/* Open a directory inside another, or create it. Reject links and directories of other users. */
static int cache_own_dir(int at, const char *name, int *ret_fd)
{
	struct stat st;

	if (mkdirat(at, name, 0700) && errno != EEXIST)
		return -errno;
	AUTO_CLOSE int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int cache_open_own(struct debug_cache *c)
{
	AUTO_CLOSE int parent = -1;
	AUTO_CLOSE int profcpu = -1;
	char dir[PATH_MAX];
	int r = cache_xdg("", dir);

	if (!r)
		r = cache_join(c->path, dir, "/profcpu/symbols");
	if (!r)
		r = file_mkdirs(dir);
	if (r)
		return r;
	parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	r = cache_own_dir(parent, "profcpu", &profcpu);
	return r ? r : cache_own_dir(profcpu, "symbols", &c->dir_fd);
}

static bool cache_is_old(int dir_fd, const char *name, time_t seconds)
{
	struct stat st;

	/* A time in the future comes from a wrong clock. */
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	       time(NULL) - st.st_mtime >= seconds || st.st_mtime > time(NULL) + 60;
}

/* Delete old files: parts of killed processes, expired notes. */
static void cache_sweep(int at, const char *name, time_t seconds)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		cleanup_close(&fd);
		return;
	}
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && cache_is_old(dirfd(dir), e->d_name, seconds))
			unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
}

int debug_cache_open(struct debug_cache **ret_cache)
{
	struct debug_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->dir_fd = -1;
	int r = cache_open_own(c);

	if (r) {
		debug_cache_free(c);
		return r;
	}
	cache_sweep(c->dir_fd, DEBUG_CACHE_PART, DEBUG_CACHE_PART_S);
	cache_sweep(c->dir_fd, DEBUG_CACHE_MISSING, DEBUG_CACHE_MISSING_S);
	cache_sweep(c->dir_fd, DEBUG_CACHE_DOWN, DEBUG_CACHE_DOWN_S);
	*ret_cache = c;
	return 0;
}

void debug_cache_free(struct debug_cache *c)
{
	if (!c)
		return;
	cleanup_close(&c->dir_fd);
	free(c);
}

const char *debug_cache_path(const struct debug_cache *c)
{
	return c->path;
}

int debug_cache_open_key(const struct debug_cache *c, const char *key)
{
	int fd = -1, r = file_open_regular(c->dir_fd, key, &fd);

	return r ? r : fd;
}

int debug_cache_free_bytes(const struct debug_cache *c, uint64_t *ret_bytes)
{
	struct statvfs fs;

	if (fstatvfs(c->dir_fd, &fs))
		return -errno;
	*ret_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	return 0;
}

/* Files that are being downloaded */

int debug_cache_begin(const struct debug_cache *c, struct debug_cache_part *ret_part)
{
	struct debug_cache_part part = {.fd = -1};
	AUTO_CLOSE int dir_fd = -1;
	uint64_t random[2];
	int r = cache_own_dir(c->dir_fd, DEBUG_CACHE_PART, &dir_fd);

	if (r)
		return r;
	/*
	 * Processes of several containers can share the directory, so a process ID is not
	 * unique.
	 */
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(part.name, sizeof(part.name), "%016llx%016llx", (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	part.fd = openat(dir_fd, part.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (part.fd < 0)
		return -errno;
	*ret_part = part;
	return 0;
}

void debug_cache_abort(const struct debug_cache *c, struct debug_cache_part *part)
{
	char path[sizeof(part->name) + sizeof(DEBUG_CACHE_PART) + 1];

	if (part->fd < 0)
		return;
	close(part->fd);
	part->fd = -1;
	snprintf(path, sizeof(path), "%s/%s", DEBUG_CACHE_PART, part->name);
	unlinkat(c->dir_fd, path, 0);
}

/* Whether a key is at most DIR/DIR/NAME and cannot lead out of the cache. */
static bool cache_is_key(const char *key)
{
	size_t depth = 0;

	if (strlen(key) >= DEBUG_CACHE_KEY_MAX)
		return false;
	for (const char *p = key; *p; p += strcspn(p, "/"), p += *p == '/', depth++) {
		size_t len = strcspn(p, "/");

		/* Names that begin with a dot are the cache's own. */
		if (!len || len > NAME_MAX || p[0] == '.')
			return false;
	}
	return depth && depth <= DEBUG_CACHE_DEPTH_MAX && key[strlen(key) - 1] != '/';
}

/* Open or create the directory of a key's file. *ret_name: the file's name in it. */
static int cache_key_dir(const struct debug_cache *c, const char *key, int *ret_fd,
			 const char **ret_name)
{
	AUTO_CLOSE int at = fcntl(c->dir_fd, F_DUPFD_CLOEXEC, 0);
	char name[NAME_MAX + 1];
	const char *slash;

	if (at < 0)
		return -errno;
	for (; (slash = strchr(key, '/')); key = slash + 1) {
		int next = -1;

		snprintf(name, sizeof(name), "%.*s", (int)(slash - key), key);
		int r = cache_own_dir(at, name, &next);

		if (r)
			return r;
		close(at);
		at = next;
	}
	*ret_name = key;
	*ret_fd = TAKE_FD(at);
	return 0;
}

int debug_cache_commit(const struct debug_cache *c, struct debug_cache_part *part, const char *key)
{
	char path[sizeof(part->name) + sizeof(DEBUG_CACHE_PART) + 1];
	AUTO_CLOSE int dir_fd = -1;
	const char *name = NULL;
	int r = cache_is_key(key) ? file_sync(part->fd) : -EINVAL;

	if (!r)
		r = cache_key_dir(c, key, &dir_fd, &name);
	snprintf(path, sizeof(path), "%s/%s", DEBUG_CACHE_PART, part->name);
	if (!r && renameat(c->dir_fd, path, dir_fd, name))
		r = -errno;
	if (r) {
		debug_cache_abort(c, part);
		return r;
	}
	close(part->fd);
	part->fd = -1;
	return file_sync(dir_fd);
}

/* Notes about servers */

static const char *cache_note_dir(const char *key)
{
	return key ? DEBUG_CACHE_MISSING : DEBUG_CACHE_DOWN;
}

/*
 * A note's file and its text. The text tells notes with the same hash apart. A server's URL can
 * hold a password, so the text has its hash.
 */
struct cache_note {
	char path[64], *text;
	const char *name; /* in path */
};

/* FNV-1a: the same value in every process. */
static uint64_t cache_hash(uint64_t hash, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		hash = (hash ^ *c) * 0x100000001b3ULL;
	return hash;
}

static int cache_note_of(const char *server, const char *key, struct cache_note *note)
{
	static const uint64_t basis = 0xcbf29ce484222325ULL;

	if (asprintf(&note->text, "%016llx %s\n", (unsigned long long)cache_hash(~basis, server),
		     key ? key : "") < 0) {
		note->text = NULL;
		return -ENOMEM;
	}
	snprintf(note->path, sizeof(note->path), "%s/%016llx", cache_note_dir(key),
		 (unsigned long long)cache_hash(cache_hash(basis, server), key ? key : ""));
	note->name = strchr(note->path, '/') + 1;
	return 0;
}

void debug_cache_note_failure(const struct debug_cache *c, const char *server, const char *key)
{
	struct cache_note note;
	AUTO_CLOSE int dir_fd = -1;
	AUTO_CLOSE int fd = -1;

	if (cache_note_of(server, key, &note))
		return;
	/* Ignore errors: without a note, only time is lost. */
	if (!cache_own_dir(c->dir_fd, cache_note_dir(key), &dir_fd) &&
	    !file_create(dir_fd, note.name, O_WRONLY, 0600, &fd) &&
	    write(fd, note.text, strlen(note.text)) < 0)
		unlinkat(dir_fd, note.name, 0);
	free(note.text);
}

bool debug_cache_has_failed(const struct debug_cache *c, const char *server, const char *key)
{
	AUTO_FREE char *text = NULL;
	struct cache_note note;
	size_t len;

	if (cache_note_of(server, key, &note))
		return false;
	bool noted = !cache_is_old(c->dir_fd, note.path,
				   key ? DEBUG_CACHE_MISSING_S : DEBUG_CACHE_DOWN_S) &&
		     !file_read_at(c->dir_fd, note.path, strlen(note.text), &text, &len) &&
		     len == strlen(note.text) && !memcmp(text, note.text, len);

	free(note.text);
	return noted;
}

void debug_cache_clear_failure(const struct debug_cache *c, const char *server, const char *key)
{
	struct cache_note note;

	if (cache_note_of(server, key, &note))
		return;
	unlinkat(c->dir_fd, note.path, 0);
	free(note.text);
}

/* List of files */

struct cache_walk {
	int (*fn)(void *ctx, const char *key, uint64_t bytes);
	void *ctx;
	char key[PATH_MAX];
};

/* Walk a directory and close its descriptor. depth counts the levels below the cache. */
static int cache_walk(struct cache_walk *w, int fd, size_t len, int depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *e;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (!r && (e = readdir(dir))) {
		struct stat st;
		int n = snprintf(w->key + len, sizeof(w->key) - len, "%s%s", len ? "/" : "",
				 e->d_name);

		if (e->d_name[0] == '.' || (size_t)n >= sizeof(w->key) - len ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode))
			r = w->fn(w->ctx, w->key, (uint64_t)st.st_size);
		if (!S_ISDIR(st.st_mode) || depth >= DEBUG_CACHE_DEPTH_MAX)
			continue;
		int below = openat(dirfd(dir), e->d_name,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below >= 0)
			r = cache_walk(w, below, len + (size_t)n, depth + 1);
	}
	closedir(dir);
	return r;
}

int debug_cache_each(const struct debug_cache *c,
		     int (*fn)(void *ctx, const char *key, uint64_t bytes), void *ctx)
{
	AUTO_FREE struct cache_walk *w = malloc(sizeof(*w));
	int fd = openat(c->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!w) {
		close(fd);
		return -ENOMEM;
	}
	w->fn = fn;
	w->ctx = ctx;
	return cache_walk(w, fd, 0, 0);
}
