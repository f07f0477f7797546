/*
 * Reads and writes symbols/users of a recording: whose rights a process had. During the recording
 * it gets the processes that belong to neither root nor the recorder. If another process gets their
 * PID, it replaces the entry, also by one without a user. At the end the file gets all pinned ones
 * whose root is known. After the end of a process, only this shows which perf map is its own, and
 * whether it had our root.
 *
 * The file is an array of struct jit_user in the recorder's byte order, because only the machine of
 * the recording uses it. The last entry of a PID counts. The recorder deletes
 * the file if it cannot replace a wrong entry.
 */
#ifndef SYMBOLS_JIT_USERS_H
#define SYMBOLS_JIT_USERS_H

#include "base/hashmap.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define JIT_USERS_FILE "users"
#define JIT_USERS_PID_MAX (((uint32_t)1 << 30) - 1) /* Linux has PIDs up to 2^22 */
#define JIT_USERS_MAX ((size_t)128 << 10) /* entries; further processes have no known user */

struct jit_user {
	uint32_t pid : 30;
	uint32_t other_root : 1; /* they are known to be those of another root */
	uint32_t our_root : 1;   /* paths of the process are known to be those of our root */
	uint32_t uid;
};
_Static_assert(sizeof(struct jit_user) == 8, "the file's layout");

/*
 * Appends n entries to the file in a recording's symbols/. Returns 0; -E2BIG: the file would have
 * more than JIT_USERS_MAX, and nothing was added; -errno.
 */
int jit_users_add(int dir_fd, const struct jit_user *users, size_t n);

/* The users of a recording. With dir_fd (borrowed; -1: none) set, it is read at the first use. */
struct jit_users {
	int dir_fd;
	bool foreign; /* another user may have forged the recording: all have the owner's rights */
	uint32_t owner;
	bool read;
	struct hashmap uids;                 /* by PID */
	struct hashmap our_root, other_root; /* PIDs whose last entry has it, to uids */
};

/* The recorded user of a process; NULL: unknown. Borrowed. */
const uint32_t *jit_users_uid(struct jit_users *users, int32_t pid);

/*
 * Whether the file of a process that has ended may be its own. Anyone can leave a file in /tmp.
 * Accepts root's and ours, and that of the recorded user. Refuses a second name of a file: its
 * owner may not have made it.
 */
bool jit_users_may_own(struct jit_users *users, int32_t pid, const struct stat *st);

/*
 * Returns the user whose rights a process had in our root. False: it had another root, as in a
 * container, or there is no entry.
 */
bool jit_users_in_our_root(struct jit_users *users, int32_t pid, uint32_t *ret_uid);

/* Whether a process is known to have had another root, as in a container. pid 0: any process. */
bool jit_users_in_other_root(struct jit_users *users, int32_t pid);

void jit_users_free(struct jit_users *users);

#endif
