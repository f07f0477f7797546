/*
 * Switches on the perf map of a running .NET process (8 and later) for the time it is needed.
 * EnablePerfMap also writes methods compiled before. So the map is complete when perf_map_begin
 * returns, and grows afterwards.
 *
 * A map that was on stays on: it belongs to its user, unless a mark says otherwise
 * (perf_map_mark.h). DisablePerfMap would also end a jitdump, so no map is switched on while the
 * target writes a jitdump. A file that exists and that nobody writes is left alone.
 */
#ifndef DOTNET_EVENTPIPE_PERF_MAP_H
#define DOTNET_EVENTPIPE_PERF_MAP_H

#include "container/opener.h"

#include <stdint.h>
#include <sys/types.h>

#define PERF_MAP_TEXT_BYTES 384

/*
 * The reason for having no map, or for failing to switch it off, with a remedy. One line without a
 * full stop.
 */
struct perf_map_error {
	int code;
	char text[PERF_MAP_TEXT_BYTES];
};

enum perf_map_way {
	PERF_MAP_OURS,  /* the last profcpu that uses it switches it off and removes it */
	PERF_MAP_USERS, /* it was on before; only read it */
};

struct perf_map;

/*
 * Switches the map of a process on, or finds it on. On success pass *ret_map to perf_map_end.
 *   0;
 *   -ENOTSUP: before .NET 8, no maps in this build, or no absolute path for them;
 *   -ENOENT: no diagnostic port;
 *   -EBUSY: the process writes a jitdump, or another user's profcpu has the map on, or a mark that
 *   cannot be undone was left;
 *   -EEXIST: a file that nobody writes has the map's name;
 *   -EACCES, -EPERM, -EROFS: no right to write there;
 *   -EREMOTEIO, -EBADMSG: the runtime's reply;
 *   -ENOSPC; -ETIMEDOUT; -ESRCH; -errno.
 */
int perf_map_begin(struct opener *o, pid_t pid, uint64_t deadline_ns, struct perf_map **ret_map,
		   struct perf_map_error *err);

enum perf_map_way perf_map_way(const struct perf_map *m);

/*
 * The map's file, open for reading; borrowed until perf_map_end. It grows by whole lines while the
 * target runs. A partial last line means that the target could not finish it (full disk, killed
 * target). Use pread, because others in this process may read it too.
 */
int perf_map_fd(const struct perf_map *m);

/* Time the runtime took to write methods compiled before; 0 if the map was on. */
uint64_t perf_map_enable_ns(const struct perf_map *m);

/*
 * Notes that the process executed another program. No request goes to that program, and a map
 * belongs to its user, even in the same file.
 */
void perf_map_set_replaced(struct perf_map *m);

/*
 * Ends the use of a map; call it when its content is safe. Switches off and removes our map unless
 * another profcpu still uses it. Always frees m, which may be NULL. If the runtime does not switch
 * it off in time (-ETIMEDOUT, -EREMOTEIO, -EBADMSG, ...), map and mark stay for perf_map_sweep.
 */
int perf_map_end(struct opener *o, struct perf_map *m, uint64_t deadline_ns,
		 struct perf_map_error *err);

#endif
