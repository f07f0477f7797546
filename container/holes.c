#include "container/holes.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLES_SPARSE_BYTES_MIN ((uint64_t)1 << 20)
#define HOLES_BLOCK 512 /* of st_blocks */

struct holes_question {
	int fd;
	uint64_t bytes, data; /* bytes: size of the file, or where to search; data: the answer */
};

static int holes_count(void *question)
{
	struct holes_question *q = question;

	q->data = file_data_bytes(q->fd, q->bytes);
	return 0;
}

static int holes_seek(void *question)
{
	struct holes_question *q = question;
	off_t data = lseek(q->fd, (off_t)q->bytes, SEEK_DATA);

	q->data = data >= 0 ? (uint64_t)data : errno == ENXIO ? INT64_MAX : q->bytes;
	return 0;
}

static void holes_drop(void *question)
{
	cleanup_close(&((struct holes_question *)question)->fd);
}

/* Asks fn about a file that may have holes. Returns the answer; `none` without one. */
static uint64_t holes_ask(int fd, uint64_t bytes, int (*fn)(void *question), uint64_t none)
{
	struct holes_question q = {.bytes = bytes};
	struct stat st;

	/* Unlike lseek(), this waits for no lock. */
	if (fstat(fd, &st) || (uint64_t)st.st_blocks * HOLES_BLOCK >= (uint64_t)st.st_size)
		return bytes;
	q.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (q.fd < 0)
		return bytes;
	/* After one is silent, others with holes count as silent, too. */
	if (ask(ASK_HOLES, fn, holes_drop, &q, sizeof(q)) == -ETIME)
		return none;
	holes_drop(&q);
	return q.data;
}

uint64_t holes_data_bytes(int fd, uint64_t bytes)
{
	return holes_ask(fd, bytes, holes_count, 0);
}

uint64_t holes_next_data(int fd, uint64_t at)
{
	return holes_ask(fd, at, holes_seek, UINT64_MAX);
}

bool holes_is_sparse(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_size < HOLES_SPARSE_BYTES_MIN)
		return false;
	return holes_data_bytes(fd, (uint64_t)st.st_size) < (uint64_t)st.st_size / 2;
}
