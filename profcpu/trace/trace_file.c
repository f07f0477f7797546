#include "profcpu/trace/trace_file.h"

#include "base/file.h"
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool file_is_stdout(const struct trace_file *f)
{
	return f->fd == STDOUT_FILENO;
}

int trace_file_create(struct trace_file *f, const char *name)
{
	*f = (struct trace_file){.fd = -1, .name = name};
	if (!strcmp(name, "-")) {
		f->fd = STDOUT_FILENO;
		return 0;
	}
	return file_create(AT_FDCWD, name, O_WRONLY, REPLACE_PRIVATE, &f->fd);
}

int trace_file_take(void *file, const void *data, size_t len)
{
	struct trace_file *f = file;

	if (!f->error)
		f->error = file_write_all(f->fd, data, len);
	if (!f->error)
		f->bytes += len;
	return 0;
}

int trace_file_mend(struct trace_file *f, uint64_t whole, unsigned version)
{
	/* The end of the list of objects, and the header of an empty block of the kind "end". */
	static const unsigned char end_v3[] = {1}, end_v6[4] = {0};
	const void *end = version < 6 ? end_v3 : end_v6;
	size_t len = version < 6 ? sizeof(end_v3) : sizeof(end_v6);

	if (!version || whole > f->bytes)
		return 0; /* not a stream */
	if (file_is_stdout(f)) {
		/* Nothing can be taken back from a pipe. */
		return whole == f->bytes && !f->error ? file_write_all(f->fd, end, len) : 0;
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
	if (!file_is_stdout(f)) {
		if (close(f->fd) && !f->error)
			f->error = -errno;
		if (!f->bytes)
			unlink(f->name);
	}
	f->fd = -1;
	return f->error;
}
