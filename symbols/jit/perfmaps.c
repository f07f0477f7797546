#include "symbols/jit/perfmaps.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/memory_left.h"
#include "container/rights.h"
#include "symbols/jit/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the perf maps of all processes. One process may take at most half of the bytes left. */
#define JIT_PERFMAPS_BYTES_MAX ((uint64_t)16 << 30)
/* Bytes of holes that count as one byte of the limit, because they are read but not kept. */
#define JIT_PERFMAP_HOLES 4
#define JIT_PERFMAP_MEMORY_MIN ((uint64_t)64 << 10) /* no perf map is read into less memory */

/*
 * Opens the perf map of a process that has ended and that no descriptor refers to. Its path is the
 * one that a process with our root and PIDs would have used, as in perf. -EKEYREJECTED: it may not
 * be the process's own.
 */
static int perfmaps_open_ended(struct jit_perfmaps *maps, int32_t pid, int *ret_fd)
{
	const uint32_t *uid = jit_users_uid(maps->users, pid);
	const struct rights rights = {.uid = uid ? *uid : OPENER_NOBODY, .gid = OPENER_NOBODY};
	AUTO_CLOSE int fd = -1;
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	int r = opener_own_entry(maps->opener, path, &fd);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	if (!jit_users_may_own(maps->users, pid, &st))
		return -EKEYREJECTED;
	/* The user may have moved a file of root there. */
	if (uid && !rights_may(&rights, fd, &st, R_OK))
		return -EACCES;
	if ((uint64_t)st.st_size > PERFMAP_BYTES_MAX)
		return -E2BIG;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Why an existing perf map is not used; NULL: there is none. */
static const char *perfmaps_reason(int error)
{
	switch (error) {
	case -ENOENT:
	case -ESRCH:
		return NULL;
	case -EACCES:
	case -EPERM:
		return "access to its perf map is denied; its own user must be able to read it, "
		       "and profcpu needs CAP_SYS_PTRACE and CAP_DAC_OVERRIDE";
	case -EXDEV:
		return "its perf map is on a file system that may not answer; permit it with "
		       "--allow-fs TYPE";
	case -E2BIG:
		return "its perf map exceeds 4 GiB; truncate or remove it";
	case -EDQUOT:
		return "the perf maps of all processes exceed 16 GiB; truncate or remove the "
		       "largest";
	case -EKEYREJECTED:
		return "its perf map may belong to another user; if you trust it, give it to root "
		       "with chown and run `profcpu postprocess` again";
	case -ENOSPC:
		return "too little memory is left for its perf map; free some, or raise the limit "
		       "of the container";
	case -EBADMSG:
		return "its perf map is not a regular file, or has no valid line";
	default:
		return "its perf map cannot be read";
	}
}

/* Charges a perf map. Returns 0; -EDQUOT: it takes more than half of the bytes left; -errno. */
static int perfmaps_charge(struct jit_perfmaps *maps, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	uint64_t bytes = (uint64_t)st.st_size, data = file_data_bytes(fd, bytes);
	uint64_t most = (JIT_PERFMAPS_BYTES_MAX - maps->bytes) / 2;

	bytes = data + (bytes - data) / JIT_PERFMAP_HOLES;
	if (bytes > most)
		return -EDQUOT;
	maps->bytes += bytes;
	return 0;
}

uint64_t jit_perfmaps_memory(struct jit_perfmaps *maps)
{
	if (!maps->memory_set)
		maps->memory = memory_left() / 2;
	maps->memory_set = true;
	return maps->memory / 2;
}

/* Reads a map into at most half of the memory that is left for all. */
static int perfmaps_read(struct jit_perfmaps *maps, int fd, struct symbol_provider **ret_names,
			 struct perfmap_stats *stats)
{
	struct parse_error err;
	int r = perfmaps_charge(maps, fd);

	if (r)
		return r;
	if (jit_perfmaps_memory(maps) < JIT_PERFMAP_MEMORY_MIN)
		return -ENOSPC;
	r = perfmap_load(fd, jit_perfmaps_memory(maps), ret_names, stats, &err);
	maps->memory -= stats->memory_bytes;
	return r;
}

int jit_perfmaps_load(struct jit_perfmaps *maps, int32_t pid, struct jit_damage *damage,
		      struct jit_perfmap *ret_map)
{
	struct jit_perfmap map = {0};
	struct perfmap_stats stats = {0};
	AUTO_CLOSE int fd = -1;
	int r = maps->opener ? opener_perfmap(maps->opener, pid, PERFMAP_BYTES_MAX, &fd) : -ESRCH;

	if (r == -ESRCH)
		r = perfmaps_open_ended(maps, pid, &fd);
	map.found = !r;
	if (!r)
		r = perfmaps_read(maps, fd, &map.names, &stats);
	if (r == -ENOMEM)
		return r;
	if (r)
		map.why = perfmaps_reason(r);
	else if (stats.cut_bytes)
		map.why = "only the end of its perf map was read, because too little memory is "
			  "left; free some, or raise the limit of the container";
	damage->n[JIT_PERFMAPS_REFUSED] += r && map.why;
	damage->n[JIT_PERFMAP_BAD_LINES] += stats.bad_lines;
	damage->n[JIT_PERFMAP_BYTES_CUT] += stats.cut_bytes;
	*ret_map = map;
	return 0;
}
