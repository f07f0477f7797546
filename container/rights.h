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
#include <sys/stat.h>
#include <sys/types.h>

#define RIGHTS_GROUPS_MAX 1024 /* rights from further groups are ignored */

struct rights {
	uid_t uid;
	gid_t gid;
	bool all; /* it may read every file that we may read */
	int ngroups;
	gid_t *groups;
};

/*
 * Reads the rights of a process, and its status on the way (kernel_thread is not set). They are
 * those of its file system ids. A setuid or setgid program has the rights of the user who started
 * it, because that user may have chosen the files. `all` is set for root with CAP_DAC_OVERRIDE or
 * CAP_DAC_READ_SEARCH in our user namespace. 0; errors of proc_status. The caller frees
 * *ret_rights.
 */
int rights_read(pid_t pid, struct proc_status *ret_status, struct rights *ret_rights);
void rights_free(struct rights *r);

/* The calling thread's rights before rights_assume. */
struct rights_saved;

/*
 * Limits the calling thread to the rights r for access to files, until rights_restore. Between the
 * two calls, only open files. 0; -EPERM: profcpu may not take them on, so check with rights_may;
 * -ENOMEM. *ret_saved: NULL if the thread has no other rights anyway.
 */
int rights_assume(const struct rights *r, struct rights_saved **ret_saved);
/* Frees saved, which may be NULL. Ends profcpu if the kernel refuses. */
void rights_restore(struct rights_saved *saved);

/*
 * Whether the mode, the owner and the ACL of an open file allow the access `want`: R_OK, W_OK or
 * X_OK. fd may be an O_PATH descriptor; st is its fstat.
 */
bool rights_may(const struct rights *r, int fd, const struct stat *st, int want);

#endif
