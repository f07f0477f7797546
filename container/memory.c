#include "container/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Pieces of one call: few enough for the stack of a thread. The kernel's limit is 1,024. */
#define PIECES_MAX 256

/*
 * Returns whether a read failed because of the memory, not of the process. EIO: the file behind a
 * page no longer has it.
 */
static bool is_memory_error(int error)
{
	return error == EFAULT || error == EIO || error == ENOMEM || error == EINVAL;
}

/*
 * Reads pieces from the first on. The kernel stops at the first piece that it cannot read, possibly
 * inside it. Returns the number of complete pieces, or -errno.
 */
static ssize_t read_some(pid_t pid, const struct memory_piece *pieces, size_t n)
{
	struct iovec ours[PIECES_MAX], theirs[PIECES_MAX];
	ssize_t whole = 0;

	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++) {
		ours[i] = (struct iovec){.iov_base = pieces[i].buf, .iov_len = pieces[i].len};
		theirs[i] = (struct iovec){.iov_base = (void *)(uintptr_t)pieces[i].addr,
					   .iov_len = pieces[i].len};
	}
	ssize_t got = process_vm_readv(pid, ours, n, theirs, n, 0);

	if (got < 0 && !is_memory_error(errno))
		return -errno;
	got = got < 0 ? 0 : got;
	while ((size_t)whole < n && got >= (ssize_t)pieces[whole].len)
		got -= (ssize_t)pieces[whole++].len;
	return whole;
}

int memory_read_pieces(pid_t pid, struct memory_piece *pieces, size_t n)
{
	for (size_t done = 0; done < n;) {
		size_t batch = n - done < PIECES_MAX ? n - done : PIECES_MAX;
		ssize_t whole = read_some(pid, pieces + done, batch);

		if (whole < 0)
			return (int)whole;
		for (ssize_t i = 0; i < whole; i++)
			pieces[done + (size_t)i].ok = true;
		done += (size_t)whole;
		if ((size_t)whole < batch)
			pieces[done++].ok = false;
	}
	return 0;
}

int memory_read_start(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_len)
{
	size_t done = 0;

	while (done < len) {
		struct iovec ours = {.iov_base = (char *)buf + done, .iov_len = len - done};
		struct iovec theirs = {.iov_base = (void *)(uintptr_t)(addr + done),
				       .iov_len = len - done};
		ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);

		if (got < 0 && !is_memory_error(errno))
			return -errno;
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
	size_t got;
	int r = memory_read_start(pid, addr, buf, len, &got);

	return r ? r : got < len ? -EFAULT : 0;
}

int memory_read_pages(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_missing)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t missing = 0;

	for (size_t done = 0; done < len;) {
		struct iovec ours = {.iov_base = (char *)buf + done, .iov_len = len - done};
		struct iovec theirs = {.iov_base = (void *)(uintptr_t)(addr + done),
				       .iov_len = len - done};
		ssize_t got = process_vm_readv(pid, &ours, 1, &theirs, 1, 0);

		if (got < 0 && !is_memory_error(errno))
			return -errno;
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
