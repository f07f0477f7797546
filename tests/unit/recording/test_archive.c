#include "recording/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char dir[] = "/tmp/profcpu-archive-XXXXXX";

/* A new directory DIR/outer/NAME; escaped files would land in DIR/outer. */
static int fresh_dir(const char *name)
{
	char command[256], path[256];

	snprintf(command, sizeof(command), "rm -rf %s/outer && mkdir -p %s/outer/%s", dir, dir,
		 name);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/outer/%s", dir, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void put_file(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	struct timespec t[2] = {{.tv_sec = 1700000000, .tv_nsec = 5},
				{.tv_sec = 1700000000, .tv_nsec = 5}};

	assert_int_equal(futimens(fd, t), 0);
	close(fd);
}

static const char *text_of(int dir_fd, const char *name)
{
	static char text[4096];
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return "(none)";
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = 0;
	close(fd);
	return text;
}

static int memory_file(void)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* One member of a hostile archive. */
struct member {
	const char *name, *text, *link;
	unsigned type; /* AE_IF*; 0: regular */
	bool hard;
};

static int make_archive(const struct member *m, size_t n, int (*format)(struct archive *),
			int (*filter)(struct archive *))
{
	struct archive *a = archive_write_new();
	int fd = memory_file();

	assert_int_equal(format(a), 0);
	assert_int_equal(filter(a), 0);
	assert_int_equal(archive_write_set_bytes_in_last_block(a, 1), 0);
	assert_int_equal(archive_write_open_fd(a, fd), 0);
	for (size_t i = 0; i < n; i++) {
		struct archive_entry *e = archive_entry_new();
		size_t len = m[i].text ? strlen(m[i].text) : 0;

		archive_entry_set_pathname(e, m[i].name);
		archive_entry_set_filetype(e, m[i].type ? m[i].type : AE_IFREG);
		archive_entry_set_perm(e, 06777);
		archive_entry_set_size(e, (la_int64_t)len);
		if (m[i].link && m[i].hard)
			archive_entry_set_hardlink(e, m[i].link);
		else if (m[i].link)
			archive_entry_set_symlink(e, m[i].link);
		assert_true(archive_write_header(a, e) >= ARCHIVE_WARN);
		if (len)
			assert_int_equal(archive_write_data(a, m[i].text, len), len);
		archive_entry_free(e);
	}
	assert_int_equal(archive_write_close(a), 0);
	archive_write_free(a);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int make_tar(const struct member *m, size_t n)
{
	return make_archive(m, n, archive_write_set_format_pax_restricted,
			    archive_write_add_filter_none);
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Number of entries in DIR/outer: more than one means that a file escaped. */
static int entries_outside(void)
{
	char command[256];

	snprintf(command, sizeof(command), "test $(ls -A %s/outer | wc -l) = 1", dir);
	return system(command);
}

static void fill_recording(int fd)
{
	char command[256];

	put_file(fd, "perf.data", "perf data");
	put_file(fd, "manifest.json", "{}");
	put_file(fd, "other", "not named");
	assert_int_equal(mkdirat(fd, "symbols", 0700) | mkdirat(fd, "symbols/deep", 0700), 0);
	put_file(fd, "symbols/b", "bb");
	put_file(fd, "symbols/a", "aa");
	put_file(fd, "symbols/deep/c", "");
	assert_int_equal(symlinkat("/etc/passwd", fd, "symbols/link"), 0);
	assert_int_equal(mkfifoat(fd, "symbols/fifo", 0600), 0);
	snprintf(command, sizeof(command), "find %s/outer -type d -exec touch -d @1700000000 {} +",
		 dir);
	assert_int_equal(system(command), 0);
}

static const char *const MEMBERS[] = {"symbols", "perf.data", "manifest.json", NULL};

static void written_rows_are_read_back(void **state)
{
	struct archive_stats stats;
	struct parse_error err = {0};
	struct stat st;
	int fd = memory_file(), from = fresh_dir("from");

	(void)state;
	fill_recording(from);
	assert_int_equal(archive_write(from, MEMBERS, "12-00-00_2026-11-21", fd, &err), 0);
	close(from);
	lseek(fd, 0, SEEK_SET);
	int to = fresh_dir("to");

	assert_int_equal(archive_read(fd, to, &stats, &err), 0);
	assert_int_equal(stats.files, 5);
	assert_int_equal(stats.bytes, 9 + 2 + 2 + 2);
	assert_int_equal(stats.refused_names + stats.refused_types + stats.refused_duplicates, 0);
	assert_string_equal(text_of(to, "perf.data"), "perf data");
	assert_string_equal(text_of(to, "symbols/a"), "aa");
	assert_string_equal(text_of(to, "symbols/b"), "bb");
	assert_string_equal(text_of(to, "symbols/deep/c"), "");
	assert_string_equal(text_of(to, "other"), "(none)");
	assert_string_equal(text_of(to, "symbols/link"), "(none)");
	assert_int_equal(fstatat(to, "perf.data", &st, 0), 0);
	assert_int_equal(st.st_mtime, 1700000000);
	assert_int_equal(st.st_mode & 0777, 0600);
	close(to);
	close(fd);
}

static void equal_recordings_give_equal_archives(void **state)
{
	static char bytes[2][65536];
	ssize_t n[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = memory_file(), from = fresh_dir(i ? "one" : "two");

		fill_recording(from);
		assert_int_equal(archive_write(from, MEMBERS, "p", fd, NULL), 0);
		n[i] = pread(fd, bytes[i], sizeof(bytes[i]), 0);
		close(from);
		close(fd);
		sleep(!i); /* a different time would show */
	}
	assert_int_equal(n[0], n[1]);
	assert_true(n[0] > 100);
	assert_memory_equal(bytes[0], bytes[1], (size_t)n[0]);
}

static void failed_writes_report_the_reason(void **state)
{
	static const char *const missing[] = {"nothing", NULL};
	struct parse_error err = {0};
	int from = fresh_dir("from"), full = open("/dev/full", O_WRONLY | O_CLOEXEC),
	    fd = memory_file();

	(void)state;
	fill_recording(from);
	assert_int_equal(archive_write(from, missing, "p", fd, &err), -ENOENT);
	assert_int_equal(err.code, -ENOENT);
	assert_non_null(err.what);
	assert_int_equal(archive_write(from, MEMBERS, "p", full, &err), -ENOSPC);
	assert_int_equal(archive_write(from, MEMBERS, "p", -1, &err), -EBADF);
	close(full);
	close(from);
	close(fd);
}

static void no_member_escapes_the_directory(void **state)
{
	static const struct member hostile[] = {
		{.name = "../escaped", .text = "x"},
		{.name = "a/../../escaped", .text = "x"},
		{.name = "a/..", .text = "x"},
		{.name = "..", .type = AE_IFDIR},
		{.name = "/tmp/profcpu-absolute", .text = "x"},
		{.name = "link", .type = AE_IFLNK, .link = ".."},
		{.name = "link/escaped", .text = "below what would be a link"},
		{.name = "hard", .link = "/etc/passwd", .hard = true},
		{.name = "hard2", .link = "good", .hard = true},
		{.name = "null", .type = AE_IFCHR},
		{.name = "disk", .type = AE_IFBLK},
		{.name = "pipe", .type = AE_IFIFO},
		{.name = "good", .text = "the first"},
		{.name = "good", .text = "the second"},
		{.name = "./good", .text = "the third"},
		{.name = "good/below", .text = "below a file"},
		{.name = "dir", .type = AE_IFDIR},
		{.name = "dir", .text = "a file over a directory"},
		{.name = ".//sub/./file", .text = "plain"},
		{.name = ".", .type = AE_IFDIR},
	};
	struct archive_stats stats;
	struct stat st;
	int to = fresh_dir("to"), fd = make_tar(hostile, N(hostile));

	(void)state;
	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_int_equal(entries_outside(), 0);
	assert_int_not_equal(access("/tmp/profcpu-absolute", F_OK), 0);
	assert_string_equal(text_of(to, "good"), "the first");
	assert_string_equal(text_of(to, "sub/file"), "plain");
	assert_string_equal(text_of(to, "link/escaped"), "below what would be a link");
	assert_int_equal(fstatat(to, "good", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(stats.files, 3);
	assert_int_equal(stats.refused_names, 6);
	assert_int_equal(stats.refused_types, 6);
	assert_int_equal(stats.refused_duplicates, 3);
	assert_int_not_equal(faccessat(to, "hard", F_OK, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_not_equal(faccessat(to, "null", F_OK, AT_SYMLINK_NOFOLLOW), 0);
	close(fd);
	close(to);
}

static void names_without_end_are_refused(void **state)
{
	static char name[3][2000];
	struct archive_stats stats;
	int to = fresh_dir("to");

	(void)state;
	memset(name[0], 'x', 300);
	for (int i = 0; i < 100; i++)
		strcat(name[1], "d/");
	strcat(name[1], "deep");
	for (int i = 0; i < 150; i++)
		strcat(name[2], i % 10 ? "1234567890" : "/345678901");
	memmove(name[2], name[2] + 1, strlen(name[2]));
	const struct member m[] = {
		{.name = name[0], .text = "a"},
		{.name = name[1], .text = "b"},
		{.name = name[2], .text = "c"},
		{.name = "ok", .text = "d"},
	};
	int fd = make_archive(m, N(m), archive_write_set_format_pax, archive_write_add_filter_gzip);

	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_int_equal(stats.refused_names, 3);
	assert_int_equal(stats.files, 1);
	close(fd);
	fd = make_archive(m, N(m), archive_write_set_format_gnutar, archive_write_add_filter_zstd);
	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_int_equal(stats.refused_names, 3);
	assert_int_equal(stats.refused_duplicates, 1);
	close(fd);
	close(to);
}

static void a_common_first_folder_is_removed(void **state)
{
	static const struct member same[] = {{.name = "p", .type = AE_IFDIR},
					     {.name = "p/p/p", .text = "x"},
					     {.name = "p/q", .text = "y"}};
	static const struct member two[] = {{.name = "p/q", .text = "y"},
					    {.name = "r/s", .text = "z"}};
	static const struct member file[] = {{.name = "only", .text = "y"}};
	struct archive_stats stats;
	int to = fresh_dir("to"), fd = make_tar(same, N(same));

	(void)state;
	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_string_equal(text_of(to, "p/p"), "x");
	assert_string_equal(text_of(to, "q"), "y");
	close(fd);
	close(to);
	to = fresh_dir("to");
	fd = make_archive(two, N(two), archive_write_set_format_ustar, archive_write_add_filter_xz);
	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_string_equal(text_of(to, "p/q"), "y");
	assert_string_equal(text_of(to, "r/s"), "z");
	close(fd);
	close(to);
	to = fresh_dir("to");
	fd = make_archive(file, N(file), archive_write_set_format_v7tar,
			  archive_write_add_filter_bzip2);
	assert_int_equal(archive_read(fd, to, &stats, NULL), 0);
	assert_string_equal(text_of(to, "only"), "y");
	close(fd);
	close(to);
}

static void bombs_are_stopped(void **state)
{
	static char zeros[1 << 20];
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	struct archive_stats stats;
	struct parse_error err = {0};
	int to = fresh_dir("to"), fd = memory_file();

	(void)state;
	archive_write_set_format_ustar(a);
	archive_write_add_filter_zstd(a);
	archive_write_open_fd(a, fd);
	archive_entry_set_pathname(e, "bomb");
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_size(e, (la_int64_t)sizeof(zeros) * 200);
	assert_int_equal(archive_write_header(a, e), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(archive_write_data(a, zeros, sizeof(zeros)), sizeof(zeros));
	archive_write_free(a);
	archive_entry_free(e);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(archive_read(fd, to, &stats, &err), -E2BIG);
	assert_int_equal(err.code, -E2BIG);
	assert_true(stats.bytes < ARCHIVE_RATIO_FROM + (8 << 20));
	close(fd);
	close(to);
}

static void octal(unsigned char *at, size_t n, unsigned long long x)
{
	for (at[--n] = 0; n--; x >>= 3)
		at[n] = (unsigned char)('0' + (x & 7));
}

static void raw_sum(unsigned char *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	octal(h + 148, 7, sum);
}

/* A hand-made ustar header, because libarchive would not write it. */
static void raw_header(unsigned char *h, const char *name, char type, unsigned long long size)
{
	memset(h, 0, 512);
	memcpy(h, name, strlen(name));
	octal(h + 100, 8, 0644);
	octal(h + 108, 8, 0);
	octal(h + 116, 8, 0);
	octal(h + 124, 12, size);
	octal(h + 136, 12, 1700000000);
	h[156] = (unsigned char)type;
	memcpy(h + 257, "ustar\00000", 8);
	raw_sum(h);
}

static void too_many_members_are_stopped(void **state)
{
	static unsigned char block[64][512];
	struct archive_stats stats;
	int to = fresh_dir("to"), fd = memory_file();

	(void)state;
	for (size_t i = 0; i < N(block); i++)
		raw_header(block[i], "../x", '0', 0);
	for (size_t i = 0; i < ARCHIVE_FILES_MAX + N(block); i += N(block))
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(archive_read(fd, to, &stats, NULL), -E2BIG);
	assert_int_equal(stats.refused_names, ARCHIVE_FILES_MAX);
	close(fd);
	close(to);
}

static void too_many_directories_are_stopped(void **state)
{
	static unsigned char block[512];
	struct archive_stats stats;
	int to = fresh_dir("to"), fd = memory_file();

	(void)state;
	for (int i = 0; i < ARCHIVE_DIRS_MAX / 16 + 10; i++) {
		char name[100];

		/* 16 new directories each */
		snprintf(name, sizeof(name), "%d/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/x", i);
		raw_header(block, name, '0', 0);
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	}
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(archive_read(fd, to, &stats, NULL), -E2BIG);
	assert_int_equal(stats.files, ARCHIVE_DIRS_MAX / 16);
	close(fd);
	close(to);
}

/* Reads blocks of 512 bytes as an archive into a new directory. */
static int read_blocks(const void *blocks, size_t n, struct archive_stats *stats)
{
	int to = fresh_dir("to"), fd = memory_file(), r;

	assert_int_equal(write(fd, blocks, n * 512), n * 512);
	lseek(fd, 0, SEEK_SET);
	r = archive_read(fd, to, stats, NULL);
	assert_int_equal(entries_outside(), 0);
	close(fd);
	close(to);
	return r;
}

static void odd_headers_are_refused(void **state)
{
	static unsigned char b[8][512];
	struct archive_stats stats;

	(void)state;
	/* A pax header whose path and size override those of the header. */
	raw_header(b[0], "pax", 'x', 19);
	memset(b[1], 0, 512);
	memcpy(b[1], "19 path=../escaped\n", 19);
	raw_header(b[2], "innocent", '0', 1);
	memset(b[3], 'x', 512);
	memset(b[4], 0, 1024);
	assert_int_equal(read_blocks(b, 6, &stats), 0);
	assert_int_equal(stats.refused_names, 1);
	assert_int_equal(stats.files, 0);
	/* A sparse file of an exabyte. */
	static const char sparse[] =
		"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
		"38 GNU.sparse.realsize=99999999999999\n24 GNU.sparse.name=huge\n";

	raw_header(b[0], "pax", 'x', sizeof(sparse) - 1);
	memset(b[1], 0, 512);
	memcpy(b[1], sparse, sizeof(sparse) - 1);
	raw_header(b[2], "innocent", '0', 512);
	memset(b[3], 0, 512);
	memcpy(b[3], "1\n99999999999998\n1\n", 19);
	int r = read_blocks(b, 6, &stats);

	assert_true(r == -EBADMSG || (!r && stats.refused_types == 1));
	assert_true(stats.bytes < 1024);
	/* A file that claims more bytes than follow, then the end. */
	raw_header(b[0], "claims", '0', 077777777777);
	assert_int_equal(read_blocks(b, 1, &stats), -EBADMSG);
	assert_int_equal(stats.files, 1);
	/* Types of other systems: contiguous, multi-volume, unknown. */
	raw_header(b[0], "multi", 'M', 0);
	raw_header(b[1], "empty-name-next", '0', 0);
	raw_header(b[2], "", '0', 0);
	memset(b[3], 0, 1024);
	r = read_blocks(b, 5, &stats);
	assert_true(!r || r == -EBADMSG);
	/* Garbage, and an empty archive. */
	memset(b, 0xa5, sizeof(b));
	assert_int_equal(read_blocks(b, 8, &stats), -EBADMSG);
	assert_int_equal(read_blocks(b, 0, &stats), -EBADMSG);
	memset(b, 0, sizeof(b));
	assert_int_equal(read_blocks(b, 8, &stats), -EBADMSG);
}

static struct archive_stats read_stats;

/* Unpacks bytes into a new directory and returns archive_read's result; read_stats too. The caller
 * owns the directory's descriptor. */
static int read_bytes(const char *bytes, ssize_t n, int *ret_to, const char **ret_what)
{
	struct parse_error err = {.what = "nothing"};
	int fd = memory_file(), r;

	assert_int_equal(write(fd, bytes, (size_t)n), n);
	lseek(fd, 0, SEEK_SET);
	*ret_to = fresh_dir("to");
	r = archive_read(fd, *ret_to, &read_stats, &err);
	assert_int_equal(r, r ? err.code : 0);
	*ret_what = err.what;
	close(fd);
	return r;
}

/* Makes an archive of a recording with an incompressible file; returns its size. */
static ssize_t make_incompressible(char *bytes, size_t cap, int (*filter)(struct archive *))
{
	static char text[100000];
	unsigned seed = 1;

	for (size_t i = 0; i + 1 < sizeof(text); i++) {
		seed = seed * 1103515245 + 12345;
		text[i] = (char)(1 + (seed >> 16) % 255);
	}
	const struct member m[] = {{.name = "p/first", .text = "whole"},
				   {.name = "p/second", .text = text},
				   {.name = "p/third", .text = "lost"}};
	int whole = make_archive(m, N(m), archive_write_set_format_ustar, filter);
	ssize_t n = pread(whole, bytes, cap, 0);

	close(whole);
	return n;
}

/*
 * An archive of a sparse file whose map has that many blocks of 512 bytes, in GNU's format 1.0 or
 * the old one, and of an empty file "next".
 */
static int make_sparse(bool old, size_t blocks, int (*filter)(struct archive *))
{
	static const char sparse[] = "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
				     "27 GNU.sparse.realsize=100\n22 GNU.sparse.name=map\n";
	static unsigned char b[3][512], next[512];
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	int fd = memory_file();

	memset(b, 0, sizeof(b));
	raw_header(b[0], "pax", 'x', sizeof(sparse) - 1);
	memcpy(b[1], sparse, sizeof(sparse) - 1);
	raw_header(b[2], "map", old ? 'S' : '0', old ? 0 : 512 * blocks);
	if (old) {
		memcpy(b[2] + 257, "ustar  ", 8);
		octal(b[2] + 386, 12, 0);
		octal(b[2] + 398, 12, 0);
		b[2][482] = 1;
		octal(b[2] + 483, 12, 100);
		raw_sum(b[2]);
	}
	archive_write_set_format_raw(a);
	filter(a);
	archive_write_set_bytes_in_last_block(a, 1);
	assert_int_equal(archive_write_open_fd(a, fd), 0);
	archive_entry_set_filetype(e, AE_IFREG);
	assert_int_equal(archive_write_header(a, e), 0);
	archive_write_data(a, b[old ? 2 : 0], old ? 512 : sizeof(b));
	for (size_t i = 0; i < blocks; i++) {
		memset(next, 0, sizeof(next));
		for (size_t at = 0; old && at < 504; at += 12)
			octal(next + at, 12, 0);
		next[504] = i + 1 < blocks;
		for (size_t at = 0; !old && at < sizeof(next); at += 4)
			memcpy(next + at, "0\n0\n", 4);
		if (!old && !i) {
			snprintf((char *)next, 12, "%011zu", 128 * blocks - 3);
			next[11] = '\n';
		}
		archive_write_data(a, next, sizeof(next));
	}
	raw_header(next, "next", '0', 0);
	archive_write_data(a, next, sizeof(next));
	assert_int_equal(archive_write_close(a), 0);
	archive_write_free(a);
	archive_entry_free(e);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void maps_of_sparse_files_have_a_limit(void **state)
{
	static int (*const filters[])(struct archive *) = {archive_write_add_filter_none,
							   archive_write_add_filter_gzip,
							   archive_write_add_filter_bzip2};

	(void)state;
	for (size_t i = 0; i < 2 * N(filters); i++) {
		for (size_t blocks = 1000; blocks <= 4000; blocks *= 4) {
			bool fits = 512 * blocks < ARCHIVE_HEADER_BYTES_MAX;
			struct archive_stats stats;
			struct parse_error err = {.what = "nothing"};
			int to = fresh_dir("to"), fd = make_sparse(i % 2, blocks, filters[i / 2]);

			assert_int_equal(archive_read(fd, to, &stats, &err), fits ? 0 : -E2BIG);
			assert_string_equal(err.what,
					    fits ? "nothing"
						 : "a member's header is larger than the limit");
			assert_int_equal(stats.refused_types, fits);
			assert_int_equal(stats.files, fits);
			close(fd);
			close(to);
		}
	}
}

static void a_cut_archive_keeps_its_beginning(void **state)
{
	static int (*const filters[])(struct archive *) = {
		archive_write_add_filter_gzip, archive_write_add_filter_none,
		archive_write_add_filter_zstd, archive_write_add_filter_xz,
		archive_write_add_filter_bzip2};
	static char bytes[300000];
	const char *what;
	struct stat st;
	int to;

	(void)state;
	for (size_t i = 0; i < N(filters); i++) {
		bool is_gzip = !i, is_xz = i == 3, is_plain = i == 1;
		ssize_t n = make_incompressible(bytes, sizeof(bytes), filters[i]);

		assert_true(n > 95000);
		for (ssize_t cut = 0; cut < n - (is_plain ? 1024 : 0); cut += cut < 64 ? 1 : 9973) {
			assert_int_equal(read_bytes(bytes, cut, &to, &what), -EBADMSG);
			if (cut > (is_plain ? 512 : 32))
				assert_string_equal(what, "it is cut off");
			/* The two headers, plus bytes of the last block that the decompressor still
			 * keeps. */
			if ((is_gzip || is_xz) && cut > 40000) {
				assert_string_equal(text_of(to, "first"), "whole");
				assert_int_equal(fstatat(to, "second", &st, 0), 0);
				assert_true(st.st_size > cut - (is_gzip ? 1024 : 2048));
				assert_string_equal(read_stats.cut_member, "second");
				assert_true(read_stats.cut &&
					    (off_t)read_stats.cut_bytes == st.st_size);
				assert_int_equal(read_stats.cut_of_bytes, 99999);
				assert_string_equal(text_of(to, "third"), "(none)");
			}
			close(to);
		}
	}
}

static void the_end_mark_of_compression_counts(void **state)
{
	static const char tail[] = "mail signature";
	static char bytes[300000], twice[300000];
	ssize_t n = make_incompressible(bytes, sizeof(bytes) - sizeof(tail),
					archive_write_add_filter_gzip);
	const char *what;
	int to;

	(void)state;
	/* The length and checksum follow all files. */
	for (ssize_t cut = n - 8; cut < n; cut++) {
		assert_int_equal(read_bytes(bytes, cut, &to, &what), -EBADMSG);
		assert_string_equal(what, "it is cut off");
		assert_true(read_stats.cut && !*read_stats.cut_member);
		assert_string_equal(text_of(to, "third"), "lost");
		close(to);
	}
	bytes[n - 6] ^= 1;
	assert_int_equal(read_bytes(bytes, n, &to, &what), -EBADMSG);
	assert_string_equal(what, "it is damaged");
	assert_false(read_stats.cut);
	assert_string_equal(text_of(to, "third"), "lost");
	close(to);
	bytes[n - 6] ^= 1;
	/* Anything may follow them. */
	memcpy(bytes + n, tail, sizeof(tail));
	assert_int_equal(read_bytes(bytes, n + (ssize_t)sizeof(tail), &to, &what), 0);
	close(to);
	/* Streams in sequence are read as one. The end of a tar may be in another stream than its
	 * beginning. */
	ssize_t half = 50000,
		plain = make_incompressible(twice, sizeof(twice), archive_write_add_filter_none),
		len = 0;

	for (ssize_t from = 0; from < plain; from += half) {
		z_stream z = {.next_in = (Bytef *)twice + from,
			      .avail_in = (uInt)(plain - from < half ? plain - from : half),
			      .next_out = (Bytef *)bytes + len,
			      .avail_out = (uInt)(sizeof(bytes) - (size_t)len)};

		assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
				 Z_OK);
		assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
		len += (ssize_t)z.total_out;
		deflateEnd(&z);
	}
	assert_int_equal(read_bytes(bytes, len, &to, &what), 0);
	assert_string_equal(text_of(to, "third"), "lost");
	close(to);
}

static void other_files_are_not_reported_as_cut(void **state)
{
	static const char packed_hello[] = {
		0x1f,       (char)0x8b, 8,    0,          0,          0,          0, 0, 0,
		3,          (char)0xcb, 0x48, (char)0xcd, (char)0xc9, (char)0xc9, 7, 0, (char)0x86,
		(char)0xa6, 0x10,       0x36, 5,          0,          0,          0};
	static char text[70000];
	const char *what;
	int to;

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_int_equal(read_bytes(packed_hello, sizeof(packed_hello), &to, &what), -EBADMSG);
	assert_string_equal(what, "this is not a tar archive");
	close(to);
	assert_int_equal(read_bytes(text, sizeof(text), &to, &what), -EBADMSG);
	assert_string_equal(what, "this is not a tar archive");
	close(to);
}

static void an_archive_may_come_through_a_pipe(void **state)
{
	static const struct member m[] = {{.name = "a", .text = "piped"},
					  {.name = "b", .text = ""}};
	static char bytes[65536];
	struct archive_stats stats;
	int p[2], to = fresh_dir("to"), fd = make_tar(m, N(m));
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], bytes, (size_t)n), n);
	close(p[1]);
	assert_int_equal(archive_read(p[0], to, &stats, NULL), 0);
	assert_string_equal(text_of(to, "a"), "piped");
	close(p[0]);
	close(fd);
	close(to);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_rows_are_read_back),
		cmocka_unit_test(equal_recordings_give_equal_archives),
		cmocka_unit_test(failed_writes_report_the_reason),
		cmocka_unit_test(no_member_escapes_the_directory),
		cmocka_unit_test(names_without_end_are_refused),
		cmocka_unit_test(a_common_first_folder_is_removed),
		cmocka_unit_test(bombs_are_stopped),
		cmocka_unit_test(too_many_members_are_stopped),
		cmocka_unit_test(too_many_directories_are_stopped),
		cmocka_unit_test(odd_headers_are_refused),
		cmocka_unit_test(maps_of_sparse_files_have_a_limit),
		cmocka_unit_test(a_cut_archive_keeps_its_beginning),
		cmocka_unit_test(the_end_mark_of_compression_counts),
		cmocka_unit_test(other_files_are_not_reported_as_cut),
		cmocka_unit_test(an_archive_may_come_through_a_pipe),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
