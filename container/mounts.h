/*
 * Mounts of a mount namespace, by descriptors of files on them. No function here makes a request
 * to a file system that was not permitted yet. Source: proc(5), /proc/PID/mountinfo.
 */
#ifndef CONTAINER_MOUNTS_H
#define CONTAINER_MOUNTS_H

#include "base/clock.h"
#include "base/time_budget.h"
#include "base/vec.h"
#include "container/file_systems.h"

#include <stdbool.h>
#include <sys/types.h>

/* Further mounts of a namespace stay unknown. */
#define MOUNTS_MAX 8192
#define MOUNTS_BYTES_MAX ((size_t)4 << 20)

/*
 * Memory of the lists of all namespaces except ours: at most this, and an eighth of what is left
 * when the first is read. In one half of it, a list may take as much as it leaves to all others.
 * The other half is for small lists, which take at most one of MOUNTS_SMALL_PARTS of it.
 */
#define MOUNTS_MEMORY_MAX ((size_t)64 << 20)
#define MOUNTS_SMALL_PARTS 128

/*
 * Limits of the CPU time of a thread that reads mounts: at once, and the share of elapsed time as a
 * divisor. Targets can change their mounts all the time. Beyond a limit, mounts stay unknown.
 */
#define MOUNTS_BURST_NS (NS_PER_S / 4) /* of one namespace */
#define MOUNTS_SHARE 32
#define MOUNTS_ALL_BURST_NS NS_PER_S /* of all namespaces except ours */
#define MOUNTS_ALL_SHARE 8
/* Lists up to this size have a limit of their own with the same values: about 100 usual mounts. */
#define MOUNTS_SMALL_BYTES ((size_t)32 << 10)

struct mount {
	int id;
	dev_t dev;
	bool checked, permitted; /* for the caller; false when the mounts changed */
	enum file_system_kind kind;
	char *type;   /* NULL for a permitted type */
	char *layers; /* options of an overlay, or NULL */
};

struct mounts {
	int fd; /* of mountinfo; keeps the mount namespace alive. -1: closed */
	bool own, read;
	size_t memory; /* bytes that the list was charged with */
	VEC(struct mount) list;
	struct time_budget budget;
};

/* Opens the mounts that a process sees; pid 0: those that we see. 0, -ESRCH or -errno. */
int mounts_open(pid_t pid, struct mounts *ret_mounts);
void mounts_close(struct mounts *m);

/*
 * Finds the mount of an open file, or the first mount of a device. Reads the mounts again if they
 * changed and the limits permit it. NULL: unknown. The result is valid until the next call.
 */
struct mount *mounts_of(struct mounts *m, int fd);
struct mount *mounts_of_device(struct mounts *m, dev_t dev);

/* Returns the device of an open file without a request to its file system; 0: unknown. */
dev_t mounts_device(int fd);

/* Sets the limit of memory, for tests. 0: as above. */
void mounts_limit_memory(size_t bytes);

/* Parses one line of mountinfo, which it changes. False: none. The caller frees both texts. */
bool mounts_parse(char *line, struct mount *ret_mount);

/*
 * Copies the path of the next layer in the options of an overlay, and moves *options on. False: no
 * further layer. A backslash quotes a colon in a path.
 */
bool mounts_next_layer(const char **options, char *path, size_t cap);

#endif
