/*
 * The rights of a target to files: its user, its groups and its capabilities. A target can put
 * links to files that it may not read, so profcpu opens a target's files with no more rights than
 * these.
 *
 * The kernel checks them if profcpu may take them on (CAP_SETUID and CAP_SETGID). If it may not,
 * rights_may checks mode, owner and access control list (ACL) of each component of the path.
 * Sources: Linux fs/namei.c, generic_permission; fs/posix_acl.c, posix_acl_permission.
 */
#ifndef CONTAINER_RIGHTS_H
#define CONTAINER_RIGHTS_H

#include "container/proc_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define RIGHTS_NOBODY UINT32_MAX /* an id that no file has: the kernel refuses it */
#define RIGHTS_GROUPS_MAX 1024   /* further groups are unknown */

/*
 * A gid of RIGHTS_NOBODY means: it may be in any group beside `groups`. A uid of RIGHTS_NOBODY
 * means: it may be any user, in any group. Then a file must give the right to others, and also to
 * each user and group that it names and that the process may have. So no process gains rights
 * because profcpu does not know a group that the file excludes.
 */
struct rights {
	uid_t uid;
	gid_t gid;
	bool all; /* it may read every file that we may read */
	int ngroups;
	gid_t *groups;
};

/*
 * Reads the rights of a process, and its status on the way (kernel_thread is not set). They are
 * those of its file system ids. A setuid or setgid program has at most the rights of the user who
 * started it, because that user may have chosen the files. The same holds for a program whose file
 * gives CAP_SETUID or CAP_SETGID. This holds even after the program has changed its real ids, until
 * it executes another program. Ids that it may have gained become RIGHTS_NOBODY; if the ids at its
 * start are unreadable, its groups may be. `all` is set for root with CAP_DAC_OVERRIDE or
 * CAP_DAC_READ_SEARCH in our user namespace.
 *
 * 0; -ESRCH: it has ended, is ending or is a thread of the kernel; errors of proc_read. The caller
 * frees *ret_rights.
 */
int rights_read(pid_t pid, struct proc_status *ret_status, struct rights *ret_rights);
/* Whether a process has gained rights: all files, another user than before, or groups. */
bool rights_exceed(const struct rights *now, const struct rights *before);
/*
 * Whether a process that has ended, and that nobody has waited for yet, was root with all rights in
 * our user namespace at its end.
 */
bool rights_ended_as_root(pid_t pid);
/* Copies rights, for rights_free. 0, -ENOMEM. */
int rights_copy(const struct rights *r, struct rights *ret_copy);
/* Takes from r what `now` lacks. A user who changed becomes unknown, also a group. */
void rights_intersect(struct rights *r, const struct rights *now);
void rights_free(struct rights *r);

/* The calling thread's rights before rights_assume. */
struct rights_saved;

/*
 * Limits the calling thread to the rights r for access to files, until rights_restore. Between the
 * two calls, only open files, and do not call it again. 0; -EPERM: profcpu may not take them on, or
 * the user is unknown, so check with rights_may. *ret_saved: NULL if the thread has no other rights
 * anyway. If rights_unknown, the thread is limited less than r, so check with rights_may too.
 */
int rights_assume(const struct rights *r, struct rights_saved **ret_saved);
/* saved: may be NULL. Ends profcpu with an error if the kernel refuses. */
void rights_restore(struct rights_saved *saved);

/* Whether some of the ids are unknown. */
bool rights_unknown(const struct rights *r);

/*
 * Whether the mode, the owner and the ACL of an open file allow the access `want`: R_OK, W_OK or
 * X_OK. fd may be an O_PATH descriptor; st is its fstat.
 */
bool rights_may(const struct rights *r, int fd, const struct stat *st, int want);

#endif
