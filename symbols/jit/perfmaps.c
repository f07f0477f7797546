#include "symbols/jit/perfmaps.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/holes.h"
#include "container/memory_left.h"
#include "container/rights.h"
#include "symbols/jit/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define JIT_FILES_BYTES_MAX ((uint64_t)16 << 30) /* perf maps and jitdumps of all processes */
/* Bytes of holes that count as one byte of the limit, because they are read but not kept. */
#define JIT_FILE_HOLES 4
#define JIT_PERFMAP_MEMORY_MIN ((uint64_t)4 << 10) /* no perf map is read into less memory */

/*
 * Opens the perf map of a process that has ended and that no descriptor refers to. Its path is the
 * one that a process with our root and PIDs would have used, as in perf. -EKEYREJECTED: it may not
 * be the process's own.
 */
static int perfmaps_open_ended(struct jit_perfmaps *maps, int32_t pid, int *ret_fd)
{
	const uint32_t *uid = jit_users_uid(maps->users, pid);
	/* An unknown user has our rights, but not those of root. */
	const uid_t unknown = geteuid() ? geteuid() : OPENER_NOBODY;
	const struct rights rights = {.uid = maps->users->foreign ? maps->users->owner
					     : uid                ? opener_past_uid(*uid)
								  : unknown,
				      .gid = OPENER_NOBODY};
	AUTO_CLOSE int fd = -1;
	struct stat st;
	char path[32];

	/* Without a shared /tmp, the file there is another process's. */
	if (jit_users_in_other_root(maps->users, pid))
		return -ENOENT;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	int r = opener_own_entry(maps->opener, pid, path, &fd);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	if (!jit_users_may_own(maps->users, pid, &st))
		return -EKEYREJECTED;
	/* The user may have moved a file of root there. */
	if (!rights_may(&rights, fd, &st, R_OK))
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
		return "access to its perf map is denied; its own user, or everybody after its "
		       "end, must be able to read it, and profcpu needs CAP_SYS_PTRACE and "
		       "CAP_DAC_OVERRIDE";
	case -EXDEV:
		return "its perf map is on a file system that may not answer; permit it with "
		       "--allow-fs TYPE";
	case -E2BIG:
		return "its perf map exceeds 4 GiB; truncate or remove it";
	case -EDQUOT:
		return JIT_FILES_EXCEED;
	case -EKEYREJECTED:
		return "its perf map may belong to another user; if you trust it, give it to root "
		       "with chown and run `profcpu postprocess` again";
	case -ENOSPC:
		return "too little memory is left for its perf map; free some, or raise the limit "
		       "of the container";
	case -ETIME:
		return "the lookup of its perf map did not end: another process may keep the "
		       "directory locked; end it, or the server of its file system";
	case -EBADMSG:
		return "its perf map is not a regular file, or has no valid line";
	default:
		return "its perf map cannot be read";
	}
}

int jit_perfmaps_charge(struct jit_perfmaps *maps, int32_t pid, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	uint64_t bytes = (uint64_t)st.st_size, data = holes_data_bytes(fd, bytes);

	bytes = data + (bytes - data) / JIT_FILE_HOLES;
	maps->files.limit = JIT_FILES_BYTES_MAX;
	if (bytes > fair_share_room(&maps->files, pid))
		return -EDQUOT;
	fair_share_take(&maps->files, pid, bytes);
	return 0;
}

uint64_t jit_perfmaps_memory(struct jit_perfmaps *maps, int32_t pid)
{
	if (!maps->memory.limit)
		maps->memory.limit = memory_left() / 2 + 1;
	return fair_share_room(&maps->memory, pid);
}

/* Reads a map into the process's share of the memory. */
static int perfmaps_read(struct jit_perfmaps *maps, int32_t pid, int fd,
			 struct symbol_provider **ret_names, struct perfmap_stats *stats)
{
	uint64_t room = jit_perfmaps_memory(maps, pid);
	struct parse_error err;
	int r = jit_perfmaps_charge(maps, pid, fd);

	if (r)
		return r;
	if (room < JIT_PERFMAP_MEMORY_MIN)
		return -ENOSPC;
	r = perfmap_load(fd, room, ret_names, stats, &err);
	fair_share_take(&maps->memory, pid, stats->memory_bytes);
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
		r = perfmaps_read(maps, pid, fd, &map.names, &stats);
	if (r == -ENOMEM)
		return r;
	if (r)
		map.why = perfmaps_reason(r);
	else if (stats.no_answer)
		map.why = "only the start of its perf map was read: the search for holes in a "
			  "file did not end; end the process that keeps the file locked";
	else if (stats.cut_bytes)
		map.why = "only the end of its perf map was read, because too little memory is "
			  "left; free some, or raise the limit of the container";
	damage->n[JIT_PERFMAPS_REFUSED] += r && map.why;
	damage->n[JIT_PERFMAP_BAD_LINES] += stats.bad_lines;
	damage->n[JIT_PERFMAP_BYTES_CUT] += stats.cut_bytes;
	*ret_map = map;
	return 0;
}
