#include "sampler/offcpu/schedstat.h"

#include "base/cleanup.h"
#include "base/descriptor_budget.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "container/proc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SCHEDSTAT_TEXT 80 /* three numbers of 20 digits */
#define SCHEDSTAT_PATH 4096

struct schedstat_reader {
	const char *proc;
	struct hashmap slots; /* tid -> index of fds */
	int *fds;             /* -1: free */
	size_t nfds;
	size_t unused; /* slots from here on were never used */
	uint32_t *freed;
	size_t nfreed;
};

int schedstat_parse(const char *text, struct schedstat *ret_stat)
{
	struct schedstat s;
	int end = -1;

	/* sscanf also accepts signs, which the kernel never writes. */
	if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &s.run_ns, &s.wait_ns, &s.count,
		   &end) != 3 ||
	    text[0] == '-' || (text[end] && text[end] != '\n'))
		return -EBADMSG;
	*ret_stat = s;
	return 0;
}

/* tid: of the thread; our own needs no question. */
static int open_stat(const struct schedstat_reader *r, pid_t tid, const char *of)
{
	char path[SCHEDSTAT_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s/schedstat", r->proc, of), fd = -1;
	int error =
		n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : proc_open_path(tid, path, &fd);

	return error ? error : fd;
}

static int read_stat(int fd, struct schedstat *ret_stat)
{
	char text[SCHEDSTAT_TEXT];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = 0;
	return schedstat_parse(text, ret_stat);
}

/* Checks our own counters. A kernel that does not count has "0 0 0" although we run. */
static int try_own(const struct schedstat_reader *r)
{
	AUTO_CLOSE int fd = open_stat(r, getpid(), "thread-self");
	struct schedstat own;
	int error = fd < 0 ? fd : read_stat(fd, &own);

	return error ? error : own.count ? 0 : -ENOENT;
}

int schedstat_new(const char *proc, size_t descriptors, struct schedstat_reader **ret_reader)
{
	struct schedstat_reader *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	r->proc = proc ? proc : "/proc";
	error = try_own(r);
	r->nfds = descriptors;
	if (!error && descriptors) {
		r->fds = calloc(descriptors, sizeof(*r->fds));
		r->freed = calloc(descriptors, sizeof(*r->freed));
		error = r->fds && r->freed ? 0 : -ENOMEM;
	}
	if (error)
		schedstat_free(r);
	else
		*ret_reader = r;
	return error;
}

void schedstat_free(struct schedstat_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->unused; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	free(r->fds);
	free(r->freed);
	hashmap_free(&r->slots);
	free(r);
}

/* Keeps the descriptor open if the budget allows. */
static bool keep(struct schedstat_reader *r, pid_t tid, int fd)
{
	bool again = r->nfreed;

	if ((!again && r->unused == r->nfds) ||
	    descriptor_budget_above(fd) < SCHEDSTAT_RESERVED_DESCRIPTORS)
		return false;
	uint32_t slot = again ? r->freed[r->nfreed - 1] : (uint32_t)r->unused;

	if (hashmap_put(&r->slots, (uint64_t)tid, slot))
		return false;
	r->nfreed -= again;
	r->unused += !again;
	r->fds[slot] = fd;
	return true;
}

void schedstat_forget(struct schedstat_reader *r, pid_t tid)
{
	const uint32_t *slot = hashmap_get(&r->slots, (uint64_t)tid);

	if (!slot)
		return;
	close(r->fds[*slot]);
	r->fds[*slot] = -1;
	r->freed[r->nfreed++] = *slot;
	hashmap_remove(&r->slots, (uint64_t)tid);
}

int schedstat_read(struct schedstat_reader *r, pid_t tid, struct schedstat *ret_stat)
{
	const uint32_t *slot = hashmap_get(&r->slots, (uint64_t)tid);
	char of[16];

	if (slot) {
		int error = read_stat(r->fds[*slot], ret_stat);

		if (error != -ESRCH)
			return error;
		/* Another thread may have this id now. */
		schedstat_forget(r, tid);
	}
	snprintf(of, sizeof(of), "%d", tid);
	AUTO_CLOSE int fd = open_stat(r, tid, of);

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	int error = read_stat(fd, ret_stat);

	if (!error && keep(r, tid, fd))
		(void)TAKE_FD(fd);
	return error;
}
