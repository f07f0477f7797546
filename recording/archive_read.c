/* Unpacks an archive into a directory. Members that would land elsewhere are refused. */
#include "recording/archive.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/archive_input.h"
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

/* Bytes to read after the tar's end in search of the compression's end. */
#define ARCHIVE_REST_BYTES ((size_t)1 << 20)
#define ARCHIVE_ERROR_FORMAT \
	EILSEQ /* libarchive's errno for a wrong format (its archive_platform.h) */
#define ARCHIVE_TOP ".unpacked-XXXXXXXX" /* holds a first folder while it is removed */

struct archive_reader {
	struct archive *unpacker; /* unpacks bzip2, and passes other bytes on */
	struct archive *a;        /* reads the tar from unpacker */
	struct archive_input *in;
	uint64_t header_left; /* bytes that the tar's reader may still get */
	bool header_too_large, in_member;
	int dir_fd;
	struct archive_stats *stats;
	struct parse_error *err;
	uint64_t members, dirs;
};

static const char archive_is_cut[] = "it is cut off";
static const char archive_needs_memory[] =
	"its decompression needs more than half of the memory that is left; raise the limit of "
	"memory, or decompress it on another machine";

static int archive_stop(struct archive_reader *rd, int code, const char *what)
{
	rd->stats->cut |= what == archive_is_cut;
	return parse_fail(rd->err, code, what, archive_input_packed(rd->in));
}

/* Returns why libarchive found no further member. */
static const char *archive_fault(const struct archive_reader *rd)
{
	switch (archive_input_end(rd->in)) {
	case ARCHIVE_INPUT_CUT:
		return archive_is_cut;
	case ARCHIVE_INPUT_DAMAGED:
		return "it is damaged";
	case ARCHIVE_INPUT_WHOLE:
		/* libarchive needs more bytes than the file has. */
		if (rd->members || archive_errno(rd->a) != ARCHIVE_ERROR_FORMAT)
			return archive_is_cut;
		break;
	case ARCHIVE_INPUT_GOES_ON:
		break;
	}
	rd->stats->no_tar = !rd->members;
	return rd->members ? "it is damaged" : "this is not a tar archive";
}

/*
 * Reports why libarchive stopped: its input was not readable, memory is exhausted, or the archive
 * is wrong or cut off.
 */
static int archive_stop_lib(struct archive_reader *rd)
{
	if (rd->header_too_large)
		return archive_stop(rd, -E2BIG, "a member's header is larger than the limit");
	switch (archive_errno(rd->a)) {
	case ENOMEM:
		return archive_stop(rd, -ENOMEM, "out of memory");
	case E2BIG:
		return archive_stop(rd, -E2BIG, archive_needs_memory);
	case EIO:
	case EISDIR:
	case EBADF:
		return archive_stop(rd, -archive_errno(rd->a), "the archive cannot be read");
	default:
		return archive_stop(rd, -EBADMSG, archive_fault(rd));
	}
}

/*
 * Normalises a member's name to plain components with one slash between them. False: the name is
 * refused.
 */
static bool archive_plain_name(const char *name, char *plain)
{
	size_t len = 0;
	int depth = 0;

	if (!name || *name == '/')
		return false;
	while (*name) {
		size_t n = strcspn(name, "/");

		if (n == 2 && !memcmp(name, "..", 2))
			return false;
		if (n && !(n == 1 && *name == '.')) {
			if (n > NAME_MAX || len + n + 2 > ARCHIVE_NAME_MAX ||
			    ++depth > ARCHIVE_DEPTH_MAX)
				return false;
			if (len)
				plain[len++] = '/';
			memcpy(plain + len, name, n);
			len += n;
		}
		name += n;
		name += *name == '/';
	}
	plain[len] = 0;
	return true;
}

/* Makes a directory below dir and opens it. Closes dir. */
static int archive_enter(struct archive_reader *rd, int dir, const char *name, int *ret_fd)
{
	AUTO_CLOSE int parent = dir;

	if (!mkdirat(parent, name, 0700))
		rd->dirs++;
	else if (errno != EEXIST)
		return -errno;
	if (rd->dirs > ARCHIVE_DIRS_MAX)
		return -E2BIG;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	*ret_fd = fd;
	return 0;
}

/*
 * Opens the directory of a normalised name, and makes it if necessary. *ret_base is the name's last
 * component.
 */
static int archive_parent(struct archive_reader *rd, char *plain, int *ret_fd,
			  const char **ret_base)
{
	int fd = fcntl(rd->dir_fd, F_DUPFD_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	for (char *slash; (slash = strchr(plain, '/')); plain = slash + 1) {
		*slash = 0;
		r = archive_enter(rd, fd, plain, &fd);
		if (r)
			return r;
	}
	*ret_fd = fd;
	*ret_base = plain;
	return 0;
}

static int archive_check_limits(struct archive_reader *rd)
{
	uint64_t packed = archive_input_packed(rd->in);

	if (rd->stats->bytes > ARCHIVE_BYTES_MAX)
		return archive_stop(rd, -E2BIG, "the archive unpacks to more than the limit");
	if (rd->stats->bytes > ARCHIVE_RATIO_FROM && rd->stats->bytes / ARCHIVE_RATIO_MAX > packed)
		return archive_stop(rd, -E2BIG,
				    "the archive unpacks to more than a thousand times its size");
	return 0;
}

static int archive_stop_write(struct archive_reader *rd, int code, const char *what)
{
	rd->stats->unwritten = true;
	return archive_stop(rd, code, what);
}

/*
 * Writes a member's data to fd, or discards them if fd is -1. *ret_size: bytes that were read, also
 * after an error.
 */
static int archive_take_data(struct archive_reader *rd, int fd, uint64_t *ret_size)
{
	uint64_t size = 0;

	for (;; *ret_size = size) {
		const void *block;
		la_int64_t offset;
		size_t len;
		int r = archive_read_data_block(rd->a, &block, &len, &offset);

		if (r == ARCHIVE_EOF)
			return 0;
		if (r < ARCHIVE_WARN)
			return archive_stop_lib(rd);
		/* A gap would be a hole, but sparse files were refused before. */
		if (offset < 0 || (uint64_t)offset != size)
			return archive_stop(rd, -EBADMSG, "the archive has a file with holes");
		size += len;
		rd->stats->bytes += len;
		r = archive_check_limits(rd);
		if (r)
			return r;
		r = fd < 0 ? 0 : file_write_all(fd, block, len);
		if (r)
			return archive_stop_write(rd, r, "a file of the archive cannot be written");
	}
}

static void archive_keep_time(struct archive_entry *e, int fd)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = archive_entry_mtime(e)}};

	/* The file is useful without its time. */
	if (archive_entry_mtime_is_set(e) && futimens(fd, times))
		return;
}

/* Unpacks a file to fd (-1: nowhere), and records if it ends early. */
static int archive_take_content(struct archive_reader *rd, struct archive_entry *e, int fd,
				const char *base)
{
	uint64_t size = 0;
	int r = archive_take_data(rd, fd, &size);

	if (r) {
		snprintf(rd->stats->cut_member, sizeof(rd->stats->cut_member), "%s", base);
		rd->stats->cut_bytes = size;
		rd->stats->cut_of_bytes = (uint64_t)archive_entry_size(e);
	}
	return r;
}

static int archive_take_file(struct archive_reader *rd, struct archive_entry *e, int parent,
			     const char *base)
{
	AUTO_CLOSE int fd =
		openat(parent, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       recording_is_public(base) ? 0666 : 0600);

	if (fd < 0 && (errno == EEXIST || errno == EISDIR)) {
		rd->stats->refused_duplicates++;
		return 0;
	}
	if (fd < 0)
		return archive_stop_write(rd, -errno, "a file of the archive cannot be written");
	rd->stats->files++;
	int r = archive_take_content(rd, e, fd, base);

	archive_keep_time(e, fd);
	return r;
}

static int archive_take_member(struct archive_reader *rd, struct archive_entry *e)
{
	const char *name = archive_entry_pathname(e);
	bool is_dir = archive_entry_filetype(e) == AE_IFDIR;
	char plain[ARCHIVE_NAME_MAX];
	AUTO_CLOSE int parent = -1;
	const char *base = plain;

	/* The name is not text in this locale. */
	if (!name)
		name = archive_entry_pathname_utf8(e);
	if (!archive_plain_name(name, plain) || (!*plain && !is_dir)) {
		rd->stats->refused_names++;
		return 0;
	}
	if ((!is_dir && archive_entry_filetype(e) != AE_IFREG) || archive_entry_hardlink(e) ||
	    archive_entry_symlink(e) || archive_entry_sparse_count(e) > 0) {
		rd->stats->refused_types++;
		return 0;
	}
	if (!*plain)
		return 0;
	int r = archive_parent(rd, plain, &parent, &base);

	if (!r && is_dir)
		r = archive_enter(rd, TAKE_FD(parent), base, &parent);
	if (r == -E2BIG)
		return archive_stop(rd, r, "the archive has more directories than the limit");
	if (r == -ENOTDIR) {
		rd->stats->refused_names++;
		return 0;
	}
	if (r)
		return archive_stop_write(rd, r, "a directory of the archive cannot be made");
	if (!is_dir && recording_is_derived(base))
		return archive_take_content(rd, e, -1, base);
	return is_dir ? 0 : archive_take_file(rd, e, parent, base);
}

/*
 * Reads the next header within a limit, because libarchive stores the maps of sparse files in
 * twelve times their bytes. The rest of the member before has no limit and is skipped first.
 */
static int archive_next_header(struct archive_reader *rd, struct archive_entry **ret_e)
{
	int r = rd->in_member ? archive_read_data_skip(rd->a) : ARCHIVE_OK;

	if (r < ARCHIVE_WARN)
		return r;
	rd->header_left = ARCHIVE_HEADER_BYTES_MAX;
	r = archive_read_next_header(rd->a, ret_e);
	rd->header_left = UINT64_MAX;
	rd->in_member = r == ARCHIVE_OK || r == ARCHIVE_WARN;
	return r;
}

static int archive_take_all(struct archive_reader *rd)
{
	for (;;) {
		struct archive_entry *e;
		int r = archive_next_header(rd, &e);

		if (r == ARCHIVE_EOF)
			return rd->members
				       ? 0
				       : archive_stop(rd, -EBADMSG, "the archive has no members");
		if (r < ARCHIVE_WARN && r != ARCHIVE_RETRY)
			return archive_stop_lib(rd);
		if (++rd->members > ARCHIVE_FILES_MAX)
			return archive_stop(rd, -E2BIG,
					    "the archive has more members than the limit");
		if (r == ARCHIVE_RETRY)
			continue;
		r = archive_take_member(rd, e);
		if (r)
			return r;
	}
}

/*
 * Reads the only entry of a directory into name (NAME_MAX + 1 bytes). 0; -ENOENT: none or several;
 * -errno.
 */
static int archive_only_entry(int dir_fd, char *name)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		cleanup_close(&fd);
		return -errno;
	}
	while ((d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		snprintf(name, NAME_MAX + 1, "%s", d->d_name);
		n++;
	}
	closedir(dir);
	return n == 1 ? 0 : -ENOENT;
}

/* Moves all entries of one directory into another, which must not have these names. */
static int archive_move_up(int from_fd, int to_fd)
{
	int fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		r = -errno;
		cleanup_close(&fd);
		return r;
	}
	while (!r && (d = readdir(dir))) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (renameat(from_fd, d->d_name, to_fd, d->d_name))
			r = -errno;
	}
	closedir(dir);
	return r;
}

/*
 * Removes the first folder if it contains all files. Members may come in any order and from a pipe,
 * so this happens after all are unpacked. The folder is renamed first, because it may contain an
 * entry with its own name.
 */
static int archive_take_off_top(struct archive_reader *rd)
{
	char name[NAME_MAX + 1];
	struct stat st;
	int r = archive_only_entry(rd->dir_fd, name);

	if (r == -ENOENT || fstatat(rd->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISDIR(st.st_mode))
		return 0;
	if (!r && renameat(rd->dir_fd, name, rd->dir_fd, ARCHIVE_TOP))
		r = -errno;
	AUTO_CLOSE int top = r ? -1
			       : openat(rd->dir_fd, ARCHIVE_TOP,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (!r)
		r = top < 0 ? -errno : archive_move_up(top, rd->dir_fd);
	if (!r && unlinkat(rd->dir_fd, ARCHIVE_TOP, AT_REMOVEDIR))
		r = -errno;
	return r ? archive_stop(rd, r, "the archive's first folder cannot be taken off") : 0;
}

static la_ssize_t archive_take_input(struct archive *a, void *ctx, const void **ret_bytes)
{
	const struct archive_reader *rd = ctx;
	ssize_t n = archive_input_next(rd->in, ret_bytes);

	if (n < 0)
		archive_set_error(a, (int)-n, "%s", strerror((int)-n));
	return n < 0 ? -1 : n;
}

static la_ssize_t archive_take_unpacked(struct archive *a, void *ctx, const void **ret_bytes)
{
	struct archive_reader *rd = ctx;
	la_int64_t offset;
	size_t n = 0;

	rd->header_too_large = !rd->header_left;
	if (rd->header_too_large)
		return -1;
	if (archive_read_data_block(rd->unpacker, ret_bytes, &n, &offset) < ARCHIVE_WARN) {
		archive_copy_error(a, rd->unpacker);
		return -1;
	}
	rd->header_left -= n < rd->header_left ? n : rd->header_left;
	return (la_ssize_t)n;
}

/*
 * Enables bzip2 only if libarchive decodes it itself; otherwise it would execute a program. The
 * input is unpacked from gzip, zstd and xz before, so an archive that is compressed twice is not
 * recognised.
 */
static int archive_add_filters(struct archive_reader *rd)
{
	struct archive *probe = archive_read_new();
	int r = probe ? archive_read_support_filter_bzip2(probe) : ARCHIVE_FATAL;

	archive_read_free(probe);
	return !probe || (r == ARCHIVE_OK && archive_read_support_filter_bzip2(rd->unpacker)) ||
			       archive_read_support_format_raw(rd->unpacker) ||
			       archive_read_support_format_tar(rd->a)
		       ? archive_stop(rd, -ENOMEM, "out of memory")
		       : 0;
}

/* Opens the unpacker and the tar. 0 or -errno. */
static int archive_open(struct archive_reader *rd)
{
	struct archive_entry *e;

	if (!archive_read_open(rd->unpacker, rd, NULL, archive_take_input, NULL) &&
	    !archive_read_next_header(rd->unpacker, &e) &&
	    !archive_read_open(rd->a, rd, NULL, archive_take_unpacked, NULL))
		return 0;
	if (archive_errno(rd->unpacker))
		archive_copy_error(rd->a, rd->unpacker);
	return archive_stop_lib(rd);
}

/*
 * Reads on after the tar's end, to check that the compression also ends and that its checksum is
 * right.
 */
static int archive_check_end(struct archive_reader *rd)
{
	const void *bytes;
	ssize_t n = 1;

	for (size_t rest = 0; n > 0 && rest < ARCHIVE_REST_BYTES; rest += (size_t)n)
		n = archive_input_next(rd->in, &bytes);
	if (n < 0)
		return archive_stop(rd, (int)n,
				    n == -E2BIG ? archive_needs_memory
						: "the archive cannot be read");
	if (archive_input_end(rd->in) == ARCHIVE_INPUT_CUT)
		return archive_stop(rd, -EBADMSG, archive_is_cut);
	return archive_input_end(rd->in) == ARCHIVE_INPUT_DAMAGED
		       ? archive_stop(rd, -EBADMSG, "it is damaged")
		       : 0;
}

static int archive_read_all(struct archive_reader *rd)
{
	int r = archive_add_filters(rd);

	if (!r)
		r = archive_open(rd);
	if (!r)
		r = archive_take_all(rd);
	if (!r)
		r = archive_check_end(rd);
	/* Also after an error, so that the files of a cut archive are in their places. */
	if (!r || r == -EBADMSG || r == -E2BIG) {
		rd->err = r ? NULL : rd->err;
		int top = archive_take_off_top(rd);

		r = r ? r : top;
	}
	return r;
}

int archive_read(int in_fd, int dir_fd, struct archive_stats *ret_stats, struct parse_error *err)
{
	struct archive_reader rd = {
		.dir_fd = dir_fd, .stats = ret_stats, .err = err, .header_left = UINT64_MAX};

	memset(ret_stats, 0, sizeof(*ret_stats));
	if (archive_input_new(in_fd, &rd.in))
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	rd.unpacker = archive_read_new();
	rd.a = archive_read_new();
	int r = rd.unpacker && rd.a ? archive_read_all(&rd)
				    : archive_stop(&rd, -ENOMEM, "out of memory");

	archive_read_free(rd.a);
	archive_read_free(rd.unpacker);
	archive_input_free(rd.in);
	return r;
}
