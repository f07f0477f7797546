#include "base/cleanup.h"
#include "base/file.h"
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_file.XXXXXX";
static int dir_fd;

static int enter(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int leave(void **state)
{
	(void)state;
	close(dir_fd);
	return rmdir(dir); /* each test removes its own files */
}

static void put(const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

static void contains(const char *name, const char *text)
{
	AUTO_FREE char *got = NULL;
	size_t len;

	assert_int_equal(file_read_at(dir_fd, name, 4096, &got, &len), 0);
	assert_string_equal(got, text);
}

static void drop(const char *name)
{
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
}

static void create_over(const char *name)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	assert_int_equal(file_create(dir_fd, name, O_RDWR, 0600, &fd), 0);
	assert_int_equal(file_write_all(fd, "new", 3), 0);
	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	contains(name, "new");
	drop(name);
}

static void a_planted_file_is_not_written_to(void **state)
{
	(void)state;
	put("victim", "precious");
	create_over("plain");
	put("plain", "old, and readable by all");
	create_over("plain");
	assert_int_equal(symlinkat("victim", dir_fd, "link"), 0);
	create_over("link");
	assert_int_equal(symlinkat("nowhere", dir_fd, "dangling"), 0);
	create_over("dangling");
	assert_int_equal(linkat(dir_fd, "victim", dir_fd, "hard", 0), 0);
	create_over("hard");
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0666), 0);
	create_over("fifo");
	contains("victim", "precious");
	drop("victim");
}

static void a_directory_in_its_place_is_an_error(void **state)
{
	int fd = -1;

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "sub", 0755), 0);
	assert_int_equal(file_create(dir_fd, "sub", O_WRONLY, 0600, &fd), -EISDIR);
	assert_int_equal(fd, -1);
	assert_int_equal(unlinkat(dir_fd, "sub", AT_REMOVEDIR), 0);
}

static void only_regular_files_are_opened_to_write(void **state)
{
	AUTO_CLOSE int reader = -1, fd = -1;

	(void)state;
	put("victim", "precious");
	assert_int_equal(symlinkat("victim", dir_fd, "link"), 0);
	assert_int_equal(linkat(dir_fd, "victim", dir_fd, "hard", 0), 0);
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
	assert_int_equal(file_open_to_write(dir_fd, "link", O_WRONLY | O_CREAT, &fd), -ELOOP);
	assert_int_equal(file_open_to_write(dir_fd, "hard", O_WRONLY | O_CREAT, &fd), -EMLINK);
	assert_int_equal(file_open_to_write(dir_fd, "none", O_WRONLY, &fd), -ENOENT);
	assert_int_equal(file_open_to_write(dir_fd, "fifo", O_WRONLY | O_CREAT, &fd), -ENXIO);
	reader = openat(dir_fd, "fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_int_equal(file_open_to_write(dir_fd, "fifo", O_WRONLY | O_CREAT, &fd), -EEXIST);
	assert_int_equal(fd, -1);
	assert_int_equal(file_open_to_write(dir_fd, "plain", O_WRONLY | O_APPEND | O_CREAT, &fd),
			 0);
	assert_int_equal(file_write_all(fd, "new", 3), 0);
	contains("plain", "new");
	close(TAKE_FD(fd));
	if (!fchownat(dir_fd, "plain", 54321, 54321, 0)) {
		assert_int_equal(file_open_to_write(dir_fd, "plain", O_WRONLY | O_CREAT, &fd),
				 -EPERM);
		assert_int_equal(file_open_to_write(dir_fd, "plain", O_WRONLY, &fd), 0);
	}
	contains("victim", "precious");
	drop("plain");
	drop("fifo");
	drop("hard");
	drop("link");
	drop("victim");
}

static void a_replaced_file_is_whole_or_the_old_one(void **state)
{
	struct replace r;
	struct stat st;
	char temp[64];

	(void)state;
	put("victim", "precious");
	snprintf(temp, sizeof(temp), "out.%ld.tmp", (long)getpid());
	assert_int_equal(linkat(dir_fd, "victim", dir_fd, temp, 0), 0);
	put("out", "old");
	assert_int_equal(replace_open(&r, dir_fd, "out", REPLACE_PRIVATE), 0);
	assert_int_equal(file_write_all(r.fd, "new", 3), 0);
	contains("out", "old");
	assert_int_equal(replace_commit(&r), 0);
	replace_abort(&r);
	contains("out", "new");
	assert_int_equal(fstatat(dir_fd, "out", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(replace_open(&r, dir_fd, "out", REPLACE_PUBLIC), 0);
	replace_abort(&r);
	contains("out", "new");
	contains("victim", "precious");
	drop("out");
	drop("victim");
}

static bool is_there(const char *name)
{
	return !faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void only_files_of_killed_writers_are_removed(void **state)
{
	static const char *const names[] = {"other", "out"}, *const stay[] = {
								     "out.12",      "out.12.tmp2",
								     "out..tmp",    "out.1x.tmp",
								     "xout.12.tmp", "out.12.tm",
								     "out"};
	struct replace r;

	(void)state;
	for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++)
		put(stay[i], "stays");
	put("out.12.tmp", "left");
	put("other.4194304.tmp", "left");
	assert_int_equal(symlinkat("out.12", dir_fd, "out.13.tmp"), 0);
	assert_int_equal(mkfifoat(dir_fd, "out.14.tmp", 0600), 0);
	/* A temporary file stays while a process writes it, until it gets its name. */
	assert_int_equal(replace_open(&r, dir_fd, "other", REPLACE_PRIVATE), 0);
	replace_remove_stale(dir_fd, names, 2);
	assert_false(is_there("out.12.tmp") || is_there("other.4194304.tmp"));
	assert_true(is_there("out.13.tmp") && is_there("out.14.tmp") && is_there(r.temp));
	assert_int_equal(file_write_all(r.fd, "new", 3), 0);
	assert_int_equal(replace_commit(&r), 0);
	contains("other", "new");
	for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
		contains(stay[i], "stays");
		drop(stay[i]);
	}
	drop("other");
	drop("out.13.tmp");
	drop("out.14.tmp");
}

static void only_regular_files_are_read(void **state)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	(void)state;
	assert_int_equal(mkfifoat(dir_fd, "fifo", 0600), 0);
	assert_int_equal(file_read_at(dir_fd, "fifo", 4096, &text, &len),
			 -EINVAL); /* does not block on the FIFO */
	assert_int_equal(file_read_at(dir_fd, ".", 4096, &text, &len), -EINVAL);
	assert_int_equal(file_read_at(AT_FDCWD, "/dev/null", 4096, &text, &len), -EINVAL);
	assert_int_equal(file_read_at(dir_fd, "nothing", 4096, &text, &len), -ENOENT);
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", 65536, &text, &len), 0);
	drop("fifo");
}

static void positioned_io_is_complete_or_reports_why(void **state)
{
	char got[8] = "";

	(void)state;
	put("at", "0123456789");
	AUTO_CLOSE int fd = openat(dir_fd, "at", O_RDWR | O_CLOEXEC);
	AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	assert_int_equal(file_pwrite_all(fd, "abc", 3, 8), 0);
	assert_int_equal(file_pread_all(fd, got, 5, 6), 0);
	assert_string_equal(got, "67abc");
	contains("at", "01234567abc");
	assert_int_equal(file_pread_all(fd, got, 5, 7), -ENODATA);
	assert_int_equal(file_pread_all(dir_fd, got, 1, 0), -EISDIR);
	assert_int_equal(file_pwrite_all(full, "abc", 3, 0), -ENOSPC);
	drop("at");
}

static void removal_is_recursive_and_follows_no_link(void **state)
{
	(void)state;
	put("kept", "precious");
	assert_int_equal(mkdirat(dir_fd, "below", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "below/deep", 0700), 0);
	put("below/deep/file", "x");
	put("below/file", "x");
	assert_int_equal(symlinkat("../kept", dir_fd, "below/link"), 0);
	assert_int_equal(symlinkat("..", dir_fd, "below/up"), 0);
	AUTO_CLOSE int fd = openat(dir_fd, "below", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	file_remove_contents(fd);
	assert_int_equal(unlinkat(dir_fd, "below", AT_REMOVEDIR), 0);
	contains("kept", "precious");
	drop("kept");
}

static void a_copy_begins_at_the_file_position_also_for_a_pipe(void **state)
{
	AUTO_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	int pipes[2];

	(void)state;
	put("from", "skipped, copied");
	put("to", "");
	put("other", "skipped, copier");
	AUTO_CLOSE int from = openat(dir_fd, "from", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int to = openat(dir_fd, "to", O_RDWR | O_CLOEXEC);
	AUTO_CLOSE int other = openat(dir_fd, "other", O_RDONLY | O_CLOEXEC);

	assert_int_equal(lseek(from, 9, SEEK_SET), 9);
	assert_int_equal(file_copy(from, to), 0);
	contains("to", "copied");
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(file_write_all(pipes[1], " piped", 6), 0);
	close(pipes[1]);
	assert_int_equal(file_copy(pipes[0], to), 0);
	close(pipes[0]);
	contains("to", "copied piped");
	assert_false(file_equal(from, to));
	assert_false(file_equal(from, other));
	assert_false(file_equal(full, full));
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	assert_int_equal(ftruncate(to, 0), 0);
	assert_int_equal(lseek(to, 0, SEEK_SET), 0);
	assert_int_equal(file_copy(from, to), 0);
	assert_true(file_equal(from, to));
	assert_int_equal(lseek(from, 0, SEEK_SET), 0);
	assert_int_equal(file_copy(from, full), -ENOSPC);
	drop("from");
	drop("to");
	drop("other");
}

/* A hole gives a file a large size without using disk space. */
static void holes_contain_no_data(void **state)
{
	enum { SIZE = 64 << 20, PART = 1 << 20 };
	AUTO_CLOSE int fd = openat(dir_fd, "holes", O_RDWR | O_CREAT | O_EXCL, 0600);
	AUTO_FREE char *part = malloc(PART);

	(void)state;
	assert_non_null(part);
	memset(part, 'x', PART);
	assert_int_equal(file_data_bytes(fd, 0), 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(file_data_bytes(fd, SIZE), 0);
	assert_int_equal(file_pwrite_all(fd, part, PART, 8 * PART), 0);
	assert_int_equal(file_pwrite_all(fd, part, PART, 16 * PART), 0);
	assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
	assert_int_equal(file_data_bytes(fd, SIZE), 2 * PART);
	assert_int_equal(file_data_bytes(fd, 16 * PART + 1), PART + 1);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
	for (uint64_t at = 0; at < SIZE / 2; at += PART)
		assert_int_equal(file_pwrite_all(fd, part, PART, at), 0);
	assert_int_equal(file_data_bytes(fd, SIZE), SIZE / 2);
	unlinkat(dir_fd, "holes", 0);
}

/* Opens NAME as file_open_regular does, and returns the error. */
static int open_error(int at, const char *name)
{
	AUTO_CLOSE int fd = -1;

	return file_open_regular(at, name, &fd);
}

static void links_of_other_users_are_not_followed(void **state)
{
	AUTO_CLOSE int below = -1;

	(void)state;
	if (geteuid())
		skip();
	put("private", "secret");
	assert_int_equal(fchmodat(dir_fd, "private", 0600, 0), 0);
	assert_int_equal(mkdirat(dir_fd, "theirs", 0755), 0);
	assert_int_equal(symlinkat("../private", dir_fd, "theirs/link"), 0);
	assert_int_equal(symlinkat("..", dir_fd, "theirs/dir"), 0);
	assert_int_equal(linkat(dir_fd, "private", dir_fd, "theirs/name", 0), 0);
	/* Ours, in a directory of ours; also by a path through it */
	assert_int_equal(file_open_dir(dir_fd, "theirs", &below), 0);
	assert_int_equal(open_error(below, "link"), 0);
	assert_int_equal(open_error(below, "name"), 0);
	assert_int_equal(open_error(dir_fd, "theirs/link"), 0);
	/* In a directory of another user, or in one that others write to */
	assert_int_equal(fchown(below, 12345, 12345), 0);
	assert_int_equal(open_error(below, "link"), 0);
	assert_int_equal(open_error(below, "name"), -ELOOP);
	assert_int_equal(fchown(below, 0, 0), 0);
	assert_int_equal(fchmod(below, 01777), 0);
	assert_int_equal(open_error(below, "name"), -ELOOP);
	assert_int_equal(fchmodat(dir_fd, "private", 0644, 0), 0);
	assert_int_equal(open_error(below, "name"), 0);
	/* Another user's link, whoever owns the directory; the command line may name it. */
	assert_int_equal(fchownat(below, "link", 12345, 12345, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(fchownat(below, "dir", 12345, 12345, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(open_error(below, "link"), -ELOOP);
	assert_int_equal(file_open_dir(below, "dir", &below), -ELOOP);
	AUTO_FREE char *path = file_join(dir, "theirs/link");

	assert_int_equal(open_error(AT_FDCWD, path), 0);
	/* The user's own file may have several names. */
	assert_int_equal(fchmodat(dir_fd, "private", 0600, 0), 0);
	assert_int_equal(fchownat(dir_fd, "private", 12345, 12345, 0), 0);
	assert_int_equal(fchown(below, 12345, 12345), 0);
	assert_int_equal(fchmod(below, 0755), 0);
	assert_int_equal(open_error(below, "name"), 0);
	file_remove_contents(dir_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_planted_file_is_not_written_to),
		cmocka_unit_test(a_directory_in_its_place_is_an_error),
		cmocka_unit_test(only_regular_files_are_opened_to_write),
		cmocka_unit_test(only_files_of_killed_writers_are_removed),
		cmocka_unit_test(only_regular_files_are_read),
		cmocka_unit_test(links_of_other_users_are_not_followed),
		cmocka_unit_test(positioned_io_is_complete_or_reports_why),
		cmocka_unit_test(a_replaced_file_is_whole_or_the_old_one),
		cmocka_unit_test(a_copy_begins_at_the_file_position_also_for_a_pipe),
		cmocka_unit_test(holes_contain_no_data),
		cmocka_unit_test(removal_is_recursive_and_follows_no_link),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
