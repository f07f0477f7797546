#include "profcpu/post/sniff.h"

#include "recording/archive_input.h"
#include "recording/perfdata_format.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SNIFF_TEXT_BYTES 16384
#define SNIFF_MAGIC_BYTES 512 /* a tar that is not compressed has its magic at 257 */

/* Reads up to len first bytes of a pipe. tee leaves them in it. */
static ssize_t sniff_peek_pipe(int fd, void *buf, size_t len)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	ssize_t n = tee(fd, pipes[1], len, 0);

	if (n > 0)
		n = read(pipes[0], buf, (size_t)n);
	if (n < 0)
		n = errno == EINVAL ? 0 : -errno; /* EINVAL: a terminal, which gives only text */
	close(pipes[0]);
	close(pipes[1]);
	return n;
}

/* Reads up to len first bytes of fd without consuming them. Returns their number or -errno. */
static ssize_t sniff_peek(int fd, void *buf, size_t len)
{
	ssize_t n = pread(fd, buf, len, 0);

	if (n >= 0 || errno != ESPIPE)
		return n < 0 ? -errno : n;
	n = recv(fd, buf, len, MSG_PEEK);
	if (n >= 0 || errno != ENOTSOCK)
		return n < 0 ? -errno : n;
	return sniff_peek_pipe(fd, buf, len);
}

/* The program for this compression; NULL: not compressed. */
static const char *sniff_packer(const unsigned char *m, size_t n)
{
	const char *packer = archive_input_packer(m, n);

	if (packer)
		return packer;
	return n >= 10 && !memcmp(m, "BZh", 3) && !memcmp(m + 4, "1AY&SY", 6) ? "bzip2" : NULL;
}

static bool sniff_is_tar(const unsigned char *m, size_t n)
{
	return n >= 262 && !memcmp(m + 257, "ustar", 5);
}

/* `perf record --threads` writes the file `data`, where a recording has perf.data. */
static bool sniff_is_perf_dir(int fd)
{
	struct stat st;

	return fstatat(fd, "perf.data", &st, 0) && !fstatat(fd, "data", &st, 0) &&
	       S_ISREG(st.st_mode);
}

/* nettrace, and netperf of .NET Core 2. */
static bool sniff_is_trace(const unsigned char *m, size_t n)
{
	static const char netperf[] = "\x14\0\0\0!FastSerialization.1";

	return (n >= 8 && !memcmp(m, "Nettrace", 8)) ||
	       (n >= sizeof(netperf) - 1 && !memcmp(m, netperf, sizeof(netperf) - 1));
}

int post_sniff_kind(int fd, enum input_kind *ret_kind, const char **ret_packer)
{
	unsigned char m[SNIFF_MAGIC_BYTES];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_packer = NULL;
	if (S_ISDIR(st.st_mode)) {
		*ret_kind = sniff_is_perf_dir(fd) ? INPUT_PERF_DIR : INPUT_RECORDING;
		return 0;
	}
	ssize_t n = sniff_peek(fd, m, sizeof(m));

	if (n < 0)
		return (int)n;
	/* Take byte-swapped files too: their reader has a clear message for them. */
	if (n >= 8 && (!memcmp(m, "PERFILE2", 8) || !memcmp(m, "2ELIFREP", 8))) {
		*ret_kind = INPUT_PERF_DATA;
		return 0;
	}
	if (sniff_is_trace(m, (size_t)n)) {
		*ret_kind = INPUT_TRACE;
		return 0;
	}
	*ret_packer = sniff_packer(m, (size_t)n);
	*ret_kind = *ret_packer || sniff_is_tar(m, (size_t)n) ? INPUT_ARCHIVE : INPUT_TEXT;
	return 0;
}

/* A frame of perf script: white space, an address, a space. */
static bool sniff_is_frame_line(const char *line, size_t len)
{
	size_t at = 0, digits;

	while (at < len && (line[at] == ' ' || line[at] == '\t'))
		at++;
	for (digits = at; digits < len && isxdigit((unsigned char)line[digits]);)
		digits++;
	return at && digits > at && digits < len && line[digits] == ' ';
}

/* A line of folded stacks ends in white space and a count. */
static bool sniff_is_folded_line(const char *line, size_t len)
{
	size_t at = len;

	while (at && (isdigit((unsigned char)line[at - 1]) || line[at - 1] == '.'))
		at--;
	return at < len && at && isspace((unsigned char)line[at - 1]);
}

bool post_sniff_text_is_folded(int fd)
{
	char text[SNIFF_TEXT_BYTES];
	ssize_t n = sniff_peek(fd, text, sizeof(text));
	const char *at = text, *end = text + (n > 0 ? n : 0);

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		if (!nl)
			break;
		if (sniff_is_frame_line(at, (size_t)(nl - at)))
			return false;
		if (*at != '#' && sniff_is_folded_line(at, (size_t)(nl - at)))
			return true;
		at = nl + 1;
	}
	/* The first line is longer than the buffer. Only folded stacks have semicolons. */
	return at == end || memchr(text, ';', (size_t)(end - text));
}

bool post_sniff_is_binary(int fd)
{
	char text[SNIFF_TEXT_BYTES];
	ssize_t n = sniff_peek(fd, text, sizeof(text));

	return n > 0 && memchr(text, 0, (size_t)n);
}

bool post_sniff_needs_seeking(int fd)
{
	struct perfdata_pipe_header header;

	return lseek(fd, 0, SEEK_CUR) < 0 &&
	       sniff_peek(fd, &header, sizeof(header)) == sizeof(header) &&
	       header.size != sizeof(header);
}
