/* Writes archives; archive_read.c reads them. */
#define ZLIB_CONST
#include "recording/archive.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "base/vec.h"
#include "recording/manifest.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define ARCHIVE_BUFFER_BYTES ((size_t)128 << 10)
/*
 * Low, because a service next to us needs its CPU: 2.4 times as fast as level 6, output 17 %
 * larger.
 */
#define ARCHIVE_GZIP_LEVEL 1
/* zlib: window of 32 KiB and a gzip header without a time. */
#define ARCHIVE_GZIP_WINDOW (15 + 16)

/*
 * Compresses and writes here instead of in libarchive, because libarchive 3.6 leaks its
 * compressor's memory when a write fails. For the same reason libarchive never learns about a
 * failure; the first error stays in `error`.
 */
struct archive_sink {
	z_stream z;
	int fd, error;
	unsigned char packed[ARCHIVE_BUFFER_BYTES];
};

struct archive_writer {
	struct archive *a;
	struct parse_error *err;
	struct archive_sink *sink;
	char *buffer;
};

static int archive_fail(struct archive_writer *w, int code, const char *what)
{
	return parse_fail(w->err, code, what, w->sink->z.total_out);
}

/* Reports the sink's error, or else libarchive's error. */
static int archive_fail_lib(struct archive_writer *w)
{
	bool no_memory = errno == ENOMEM; /* libarchive does not always report it */
	int e = archive_errno(w->a);

	return archive_fail(w,
			    w->sink->error ? w->sink->error
			    : e > 0        ? -e
			    : no_memory    ? -ENOMEM
					   : -EIO,
			    "the archive cannot be written");
}

/* Compresses the pending input and writes the output; with Z_FINISH up to the end. */
static void archive_sink_run(struct archive_sink *sink, int flush)
{
	int r = Z_OK;

	while (!sink->error && (sink->z.avail_in || (flush == Z_FINISH && r != Z_STREAM_END))) {
		r = deflate(&sink->z, flush);
		if (r == Z_STREAM_ERROR)
			sink->error = -EIO;
		else if (!sink->z.avail_out || r == Z_STREAM_END) {
			sink->error = file_write_all(sink->fd, sink->packed,
						     sizeof(sink->packed) - sink->z.avail_out);
			sink->z.next_out = sink->packed;
			sink->z.avail_out = sizeof(sink->packed);
		}
	}
}

static la_ssize_t archive_sink_put(struct archive *a, void *ctx, const void *data, size_t len)
{
	struct archive_sink *sink = ctx;
	size_t n = len < INT_MAX ? len : INT_MAX;

	(void)a;
	sink->z.next_in = data;
	sink->z.avail_in = (uInt)n;
	archive_sink_run(sink, Z_NO_FLUSH);
	return (la_ssize_t)n;
}

static int archive_sink_open(struct archive_sink *sink, int fd)
{
	sink->fd = fd;
	sink->z.next_out = sink->packed;
	sink->z.avail_out = sizeof(sink->packed);
	return deflateInit2(&sink->z, ARCHIVE_GZIP_LEVEL, Z_DEFLATED, ARCHIVE_GZIP_WINDOW,
			    MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

/* libarchive warns about names that are not text in this locale; they are written as bytes. */
static bool archive_ok(la_ssize_t r)
{
	return r >= 0 || r == ARCHIVE_WARN;
}

static int archive_put_header(struct archive_writer *w, const char *name, const struct stat *st)
{
	struct archive_entry *e = archive_entry_new();
	int r = 0;

	if (!e)
		return archive_fail(w, -ENOMEM, "out of memory");
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, S_ISDIR(st->st_mode) ? AE_IFDIR : AE_IFREG);
	archive_entry_set_perm(e, S_ISDIR(st->st_mode)                   ? 0700
				  : recording_is_public(path_base(name)) ? 0644
									 : 0600);
	archive_entry_set_size(e, S_ISDIR(st->st_mode) ? 0 : st->st_size);
	archive_entry_set_mtime(e, st->st_mtime, 0);
	archive_entry_set_uid(e, 0);
	archive_entry_set_gid(e, 0);
	if (!archive_ok(archive_write_header(w->a, e)) || w->sink->error)
		r = archive_fail_lib(w);
	archive_entry_free(e);
	return r;
}

static int archive_put_data(struct archive_writer *w, int fd, uint64_t left)
{
	while (left) {
		ssize_t n = read(fd, w->buffer,
				 left < ARCHIVE_BUFFER_BYTES ? left : ARCHIVE_BUFFER_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return archive_fail(w, -errno, "a file cannot be read");
		if (!n)
			return archive_fail(w, -EIO, "a file became shorter while it was read");
		if (archive_write_data(w->a, w->buffer, (size_t)n) != n || w->sink->error)
			return archive_fail_lib(w);
		left -= (uint64_t)n;
	}
	return 0;
}

static int archive_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct archive_names {
	VEC(char *) all;
};

static void archive_names_free(struct archive_names *names)
{
	for (size_t i = 0; i < names->all.len; i++)
		free(names->all.v[i]);
	vec_free(&names->all);
}

/* Reads the names in a directory, sorted. Takes fd. */
static int archive_list(int fd, struct archive_names *names)
{
	DIR *dir = fdopendir(fd);
	int r = 0;

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!r) {
		errno = 0;
		struct dirent *d = readdir(dir);

		if (!d) {
			r = -errno;
			break;
		}
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		char *name = strdup(d->d_name);

		if (!name || vec_push(&names->all, name)) {
			free(name);
			r = -ENOMEM;
		}
	}
	closedir(dir);
	if (!r && names->all.len)
		qsort(names->all.v, names->all.len, sizeof(*names->all.v), archive_compare);
	return r;
}

static int archive_put(struct archive_writer *w, int dir_fd, const char *name, const char *full,
		       int depth);

static int archive_put_below(struct archive_writer *w, int fd, const char *full, int depth)
{
	struct archive_names names = {0};
	char below[ARCHIVE_NAME_MAX];
	int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = list_fd < 0 ? -errno : archive_list(list_fd, &names);

	if (r)
		archive_fail(w, r, "a directory cannot be read");
	for (size_t i = 0; i < names.all.len && !r; i++) {
		int n = snprintf(below, sizeof(below), "%s/%s", full, names.all.v[i]);

		if ((size_t)n >= sizeof(below))
			r = archive_fail(w, -ENAMETOOLONG, "a name is too long for the archive");
		else
			r = archive_put(w, fd, names.all.v[i], below, depth + 1);
	}
	archive_names_free(&names);
	return r;
}

/* Adds a file, or a directory with everything below it. Omits other kinds, also links of other
 * users. */
static int archive_put(struct archive_writer *w, int dir_fd, const char *name, const char *full,
		       int depth)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return archive_fail(w, -errno, "a file to archive is not there");
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (depth > ARCHIVE_DEPTH_MAX)
		return archive_fail(w, -ENAMETOOLONG, "directories are too deep for the archive");
	AUTO_CLOSE int fd = -1;
	int r = S_ISDIR(st.st_mode) ? file_open_dir(dir_fd, name, &fd)
				    : file_open_regular(dir_fd, name, &fd);

	if (r == -ELOOP)
		return 0;
	if (!r && fstat(fd, &st))
		r = -errno;
	if (r)
		return archive_fail(w, r, "a file to archive cannot be opened");
	r = archive_put_header(w, full, &st);

	if (r)
		return r;
	if (S_ISDIR(st.st_mode))
		return archive_put_below(w, fd, full, depth);
	return archive_put_data(w, fd, (uint64_t)st.st_size);
}

static int archive_put_members(struct archive_writer *w, int dir_fd, const char *const *members,
			       const char *prefix)
{
	char full[ARCHIVE_NAME_MAX];
	int r = 0;

	for (const char *const *m = members; *m && !r; m++) {
		int n = snprintf(full, sizeof(full), "%s/%s", prefix, *m);

		if ((size_t)n >= sizeof(full))
			r = archive_fail(w, -ENAMETOOLONG, "a name is too long for the archive");
		else
			r = archive_put(w, dir_fd, *m, full, 0);
	}
	return r;
}

/* Restricted pax equals plain ustar if that can hold the entry, so any tar can read it. */
static int archive_write_all(struct archive_writer *w, int dir_fd, const char *const *members,
			     const char *prefix)
{
	int r;

	if (archive_write_set_format_pax_restricted(w->a) || archive_write_add_filter_none(w->a) ||
	    archive_write_set_bytes_in_last_block(w->a, 1) ||
	    archive_write_open(w->a, w->sink, NULL, archive_sink_put, NULL))
		return archive_fail_lib(w);
	r = archive_put_members(w, dir_fd, members, prefix);
	if (r) {
		/* Write nothing more, not even the end of the archive. */
		w->sink->error = r;
		return r;
	}
	if (archive_write_close(w->a))
		return archive_fail_lib(w);
	archive_sink_run(w->sink, Z_FINISH);
	return w->sink->error ? archive_fail_lib(w) : 0;
}

int archive_write(int dir_fd, const char *const *members, const char *prefix, int out_fd,
		  struct parse_error *err)
{
	AUTO_FREE char *buffer = malloc(ARCHIVE_BUFFER_BYTES);
	AUTO_FREE struct archive_sink *sink = calloc(1, sizeof(*sink));
	struct archive_writer w = {.err = err, .buffer = buffer, .sink = sink};

	if (!buffer || !sink || archive_sink_open(sink, out_fd))
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	w.a = archive_write_new();
	int r = w.a ? archive_write_all(&w, dir_fd, members, prefix)
		    : parse_fail(err, -ENOMEM, "out of memory", 0);

	/* This first ends an unfinished entry, so the sink must still exist. */
	archive_write_free(w.a);
	deflateEnd(&sink->z);
	return r;
}
