#include "profcpu/trace/trace_file.h"

#include "base/file.h"
#include "base/replace.h"
#include "dotnet/eventpipe/nettrace_format.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens a device or a FIFO. Other users may put one of theirs there, to read the trace. */
static bool file_open_special(struct trace_file *f, int *ret_error)
{
	struct stat st;

	if (stat(f->name, &st) || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
	    (st.st_uid && st.st_uid != geteuid()))
		return false;
	/* A FIFO without a reader would block. */
	f->fd = open(f->name, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	*ret_error = f->fd < 0 || fcntl(f->fd, F_SETFL, O_WRONLY) ? -errno : 0;
	f->special = true;
	return true;
}

int trace_file_create(struct trace_file *f, const char *name)
{
	int r = 0;

	*f = (struct trace_file){.fd = -1, .dir_fd = AT_FDCWD, .name = name};
	if (!strcmp(name, "-")) {
		f->fd = STDOUT_FILENO;
		f->special = true;
		return 0;
	}
	if (file_open_special(f, &r))
		return r;
	return file_create(AT_FDCWD, name, O_WRONLY, REPLACE_PRIVATE, &f->fd);
}

int trace_file_create_in(struct trace_file *f, int dir_fd, const char *name)
{
	*f = (struct trace_file){.fd = -1, .dir_fd = dir_fd, .name = name};
	return file_create(dir_fd, name, O_WRONLY, REPLACE_PRIVATE, &f->fd);
}

static void file_write(struct trace_file *f, const void *data, size_t len)
{
	if (!f->error && len)
		f->error = file_write_all(f->fd, data, len);
	if (!f->error)
		f->bytes += len;
}

/*
 * How many of the last bytes may be the end of the stream: the tag 1, or in version 6 four zeros.
 * Behind other objects is a tag 6, so they are not delayed.
 */
static size_t file_count_held(const unsigned char *data, size_t len)
{
	size_t n = 0;

	if (len && data[len - 1] == NETTRACE_TAG_NULL)
		return 1;
	while (n < len && n < 4 && !data[len - 1 - n])
		n++;
	return n;
}

/* Takes bytes of a special file: writes all but those that may be the end of the stream. */
static void file_hold(struct trace_file *f, const unsigned char *data, size_t len)
{
	size_t hold = file_count_held(data, len), zeros = file_count_held(f->held, f->nheld);

	/* Zeros may come in several pieces. */
	if (hold == len && !data[0] && zeros == f->nheld && (!zeros || !f->held[0])) {
		size_t all = zeros + hold, keep = all < sizeof(f->held) ? all : sizeof(f->held);

		file_write(f, f->held, all - keep);
		memset(f->held, 0, keep);
		f->nheld = keep;
		return;
	}
	file_write(f, f->held, f->nheld);
	file_write(f, data, len - hold);
	memcpy(f->held, data + len - hold, hold);
	f->nheld = hold;
}

int trace_file_take(void *file, const void *data, size_t len)
{
	struct trace_file *f = file;

	if (!f->special)
		file_write(f, data, len);
	else if (len)
		file_hold(f, data, len);
	return 0;
}

int trace_file_mend(struct trace_file *f, uint64_t whole, unsigned version,
		    const struct outbuf *more)
{
	/* The end of the list of objects, and the header of an empty block of the kind "end". */
	static const unsigned char end_v3[] = {NETTRACE_TAG_NULL}, end_v6[4] = {0};
	const void *end = more ? (const void *)more->data : version < 6 ? end_v3 : end_v6;
	size_t len = more ? more->len : version < 6 ? sizeof(end_v3) : sizeof(end_v6);

	if (!version || whole > f->bytes + f->nheld)
		return 0; /* not a stream */
	if (f->special) {
		if (whole < f->bytes || f->error)
			return 0;
		file_write(f, f->held, (size_t)(whole - f->bytes));
		f->nheld = 0;
		file_write(f, end, len);
		return f->error;
	}
	if (ftruncate(f->fd, (off_t)whole))
		return -errno;
	f->bytes = whole;
	int r = file_pwrite_all(f->fd, end, len, whole);

	if (!r)
		f->bytes += len;
	return r;
}

int trace_file_close(struct trace_file *f)
{
	if (f->fd < 0)
		return f->error;
	file_write(f, f->held, f->nheld);
	if (f->fd != STDOUT_FILENO && close(f->fd) && !f->error)
		f->error = -errno;
	if (!f->special && !f->bytes)
		unlinkat(f->dir_fd, f->name, 0);
	f->fd = -1;
	return f->error;
}
