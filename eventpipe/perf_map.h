/*
 * The perf map of a running .NET process (8 and later), switched on for as long as it is wanted. EnablePerfMap also writes what
 * was compiled before, so the map is whole when perf_map_begin returns, and grows from then on.
 *
 * What was on stays on: a map that the target writes is its user's unless a mark says otherwise (perf_map_mark.h). DisablePerfMap would
 * end a jitdump too, so where one is being written no map is switched on. A file that is there and not written is not touched.
 */
#ifndef EVENTPIPE_PERF_MAP_H
#define EVENTPIPE_PERF_MAP_H

#include "container/opener.h"

#include <stdint.h>
#include <sys/types.h>

#define PERF_MAP_TEXT_BYTES 384

/* Why there is no map, or why it could not be switched off, and what can be done: one line without a full stop. */
struct perf_map_error {
	int code;
	char text[PERF_MAP_TEXT_BYTES];
};

enum perf_map_way {
	PERF_MAP_OURS, /* the last profcpu that ends switches it off and removes it */
	PERF_MAP_USERS, /* it was on: it is only read */
};

struct perf_map;

/*
 * Switches the map of a process on, or finds it on. With 0 *ret_map must go to perf_map_end.
 * -ENOTSUP: a runtime before .NET 8, one that has no maps, or they are at no absolute path; -ENOENT: no diagnostic port; -EBUSY: it writes a jitdump, another
 * user's profcpu has it on, or one has left a mark that cannot be taken back; -EEXIST: a file that nobody writes has the map's name;
 * -EACCES, -EPERM, -EROFS: no right to write there; -ENOSPC; -ETIMEDOUT; -EREMOTEIO, -EBADMSG: the runtime's answer; -ESRCH; -errno.
 */
int perf_map_begin(struct opener *o, pid_t pid, uint64_t deadline_ns, struct perf_map **ret_map, struct perf_map_error *err);

enum perf_map_way perf_map_way(const struct perf_map *m);

/* The map's file, for reading, borrowed until perf_map_end. It grows by whole lines while the target runs; one that ends
 * within a line could not be written any more (a full disk, a killed target). Read by offset (pread): others of this process
 * may read it too. */
int perf_map_fd(const struct perf_map *m);

/* How long the runtime took to write what it had compiled before; 0 where it was on. */
uint64_t perf_map_enable_ns(const struct perf_map *m);

/* The process executed another program: that is asked nothing, and its map is its user's even where it is the same file. */
void perf_map_is_replaced(struct perf_map *m);

/*
 * Ends the use of a map, once its content is safe. Ours is switched off and removed unless another profcpu uses it still. Frees m
 * always. Where the runtime does not switch it off in time (-ETIMEDOUT, -EREMOTEIO, -EBADMSG, ...) the map and its mark stay, for
 * perf_map_sweep to find. m may be NULL.
 */
int perf_map_end(struct opener *o, struct perf_map *m, uint64_t deadline_ns, struct perf_map_error *err);

#endif
