#include "container/memory.h"

#include "base/bigmem.h"
#include "container/ask.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Pieces of one call: few enough for the stack of a thread. The kernel's limit is 1,024. */
#define PIECES_MAX 256
#define COPY_MAX ((size_t)2 << 20) /* bytes of one call for a range: a huge page */

/*
 * Returns whether a read failed because of the memory, not of the process. EIO: the file behind a
 * page no longer has it.
 */
static bool is_memory_error(int error)
{
	return error == EFAULT || error == EIO || error == ENOMEM || error == EINVAL;
}

/* One call of process_vm_readv by another thread, because pages may be on a silent file system. */
struct memory_question {
	pid_t pid;
	size_t n, bytes;
	unsigned char *copy;
	ssize_t got;
	struct iovec theirs[PIECES_MAX]; /* only the first n are set and copied */
};

static int memory_ask(void *question)
{
	struct memory_question *q = question;
	const struct iovec ours = {.iov_base = q->copy, .iov_len = q->bytes};

	q->got = process_vm_readv(q->pid, &ours, 1, q->theirs, q->n, 0);
	return q->got < 0 ? -errno : 0;
}

static void memory_drop(void *question)
{
	free(((struct memory_question *)question)->copy);
}

/*
 * Reads pieces from the first on. The kernel stops at the first page that it cannot read. Returns
 * the bytes that were read, also 0, or -errno if not the memory is the reason.
 */
static ssize_t read_some(pid_t pid, const struct memory_piece *pieces, size_t n)
{
	struct memory_question q;
	size_t copied = 0;

	q.pid = pid;
	q.n = n;
	q.bytes = 0;
	q.got = 0;
	for (size_t i = 0; i < n; i++) {
		q.theirs[i] = (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].addr,
					     .iov_len = pieces[i].len};
		q.bytes += pieces[i].len;
	}
	if (!q.bytes)
		return 0;
	q.copy = bigmem_alloc(q.bytes, 1);
	if (!q.copy)
		return -ENOMEM;
	int r = ask(pid, memory_ask, memory_drop, &q,
		    offsetof(struct memory_question, theirs) + n * sizeof(q.theirs[0]));

	if (r == -ETIME)
		return r;
	for (size_t i = 0; i < n && !r && copied < (size_t)q.got; i++) {
		size_t left = (size_t)q.got - copied;
		size_t len = left < pieces[i].len ? left : pieces[i].len;

		if (len)
			memcpy(pieces[i].buf, q.copy + copied, len);
		copied += len;
	}
	free(q.copy);
	return r && !is_memory_error(-r) ? r : (ssize_t)copied;
}

/* Reads the start of a range, up to the first page that it cannot read. Returns as read_some. */
static ssize_t read_rest(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	const struct memory_piece rest = {
		.addr = addr, .buf = buf, .len = (uint32_t)(len < COPY_MAX ? len : COPY_MAX)};

	return read_some(pid, &rest, 1);
}

int memory_read_pieces(pid_t pid, struct memory_piece *pieces, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t batch = n - done < PIECES_MAX ? n - done : PIECES_MAX;
		ssize_t got = read_some(pid, pieces + done, batch);
		size_t end = done + batch;

		if (got < 0)
			return (int)got;
		while (done < end && (size_t)got >= pieces[done].len) {
			got -= (ssize_t)pieces[done].len;
			pieces[done++].ok = true;
		}
		if (done < end)
			pieces[done++].ok = false;
	}
	return 0;
}

int memory_read_start(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t got = read_rest(pid, addr + done, (char *)buf + done, len - done);

		if (got < 0)
			return (int)got;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (len && !done)
		return -EFAULT;
	*ret_len = done;
	return 0;
}

int memory_read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	size_t got = 0;
	int r = memory_read_start(pid, addr, buf, len, &got);

	return r ? r : got < len ? -EFAULT : 0;
}

int memory_read_pages(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_missing)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t missing = 0;

	for (size_t done = 0; done < len;) {
		ssize_t got = read_rest(pid, addr + done, (char *)buf + done, len - done);

		if (got < 0)
			return (int)got;
		if (got > 0) {
			done += (size_t)got;
			continue;
		}
		size_t left = page - (addr + done) % page;

		left = left < len - done ? left : len - done;
		memset((char *)buf + done, 0, left);
		missing += left;
		done += left;
	}
	if (ret_missing)
		*ret_missing = missing;
	return 0;
}
