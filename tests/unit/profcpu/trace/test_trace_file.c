/* trace_file: what is behind the last whole object of the stream can be replaced, also in pipes. */
#include "profcpu/trace/trace_file.h"

#include "base/file.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH_BYTES 64
static char dir[] = "/tmp/profcpu-trace-file-XXXXXX", path[PATH_BYTES], result[256];

/* A stream of objects that end with their tag, and the end of the stream. */
static const char v4[] = "Nettrace....\6....\6\1";
static const char v6[] = "Nettrace\0\0\0\0....\0\0\0\0\0";

static void read_file(int fd)
{
	ssize_t n = pread(fd, result, sizeof(result) - 1, 0);

	assert_true(n >= 0);
	result[n] = 0;
}

/* Takes a stream in pieces, and mends its end. Returns the number of bytes of the file. */
static size_t file_of(const char *stream, size_t len, size_t step, uint64_t whole, unsigned version,
		      const char *more)
{
	struct outbuf tail = outbuf_to(-1);
	struct trace_file f;
	struct outbuf *tails = more ? &tail : NULL;

	assert_int_equal(trace_file_create(&f, path), 0);
	if (more)
		outbuf_str(&tail, more);
	for (size_t at = 0; at < len; at += step)
		trace_file_take(&f, stream + at, len - at < step ? len - at : step);
	assert_int_equal(trace_file_mend(&f, whole, version, tails), 0);
	size_t bytes = f.bytes;

	assert_int_equal(trace_file_close(&f), 0);
	outbuf_close(&tail);
	return bytes;
}

static void a_file_gets_more_behind_its_last_object(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(file_of(v4, 18, 5, 17, 4, "<more>"), 23);
	fd = open(path, O_RDONLY);
	read_file(fd);
	close(fd);
	assert_string_equal(result, "Nettrace....\6....<more>");
	assert_int_equal(file_of(v4, 15, 5, 13, 4, NULL), 14);
	fd = open(path, O_RDONLY);
	read_file(fd);
	close(fd);
	assert_string_equal(result, "Nettrace....\6\1");
}

/* The same with a pipe, from which nothing can be taken back. */
static size_t pipe_of(const char *stream, size_t len, size_t step, uint64_t whole, unsigned version,
		      const char *more)
{
	char fifo[PATH_BYTES + 8];
	struct outbuf tail = outbuf_to(-1);
	struct trace_file f;

	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int fd = open(fifo, O_RDONLY | O_NONBLOCK);

	assert_int_equal(trace_file_create(&f, fifo), 0);
	if (more)
		outbuf_str(&tail, more);
	for (size_t at = 0; at < len; at += step)
		trace_file_take(&f, stream + at, len - at < step ? len - at : step);
	if (whole)
		assert_int_equal(trace_file_mend(&f, whole, version, more ? &tail : NULL), 0);
	assert_int_equal(trace_file_close(&f), 0);
	ssize_t n = read(fd, result, sizeof(result) - 1);

	assert_true(n >= 0 && (size_t)n == f.bytes);
	result[n] = 0;
	close(fd);
	unlink(fifo);
	outbuf_close(&tail);
	return (size_t)n;
}

static void a_pipe_gets_more_instead_of_the_end(void **state)
{
	(void)state;
	for (size_t step = 1; step < 30; step++) {
		pipe_of(v4, 19, step, 18, 4, "<more>");
		assert_string_equal(result, "Nettrace....\6....\6<more>");
		assert_int_equal(pipe_of(v6, 21, step, 17, 6, "<more>"), 23);
		assert_memory_equal(result, "Nettrace\0\0\0\0....\0<more>", 23);
		/* Nothing is lost if nothing is added, or if it cannot be. */
		pipe_of(v4, 19, step, 0, 4, NULL);
		assert_string_equal(result, v4);
		assert_int_equal(pipe_of(v6, 21, step, 0, 6, NULL), 21);
		assert_memory_equal(result, v6, 21);
		pipe_of(v4, 16, step, 13, 4, "<more>");
		assert_string_equal(result, "Nettrace....\6...");
	}
}

/* A reader of the pipe need not wait for later events. */
static void whole_objects_are_not_held_back(void **state)
{
	char fifo[PATH_BYTES + 8];
	struct trace_file f;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int fd = open(fifo, O_RDONLY | O_NONBLOCK);

	assert_int_equal(trace_file_create(&f, fifo), 0);
	trace_file_take(&f, v4, 18);
	assert_int_equal(read(fd, result, sizeof(result)), 18);
	assert_int_equal(trace_file_close(&f), 0);
	close(fd);
	unlink(fifo);
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/file", mkdtemp(dir));
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_gets_more_behind_its_last_object),
		cmocka_unit_test(a_pipe_gets_more_instead_of_the_end),
		cmocka_unit_test(whole_objects_are_not_held_back),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
