#include "symbols/jit/users.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int jit_users_add(int dir_fd, const struct jit_user *users, size_t n)
{
	AUTO_CLOSE int fd = -1;
	int r = file_open_to_write(dir_fd, JIT_USERS_FILE, O_WRONLY | O_APPEND | O_CREAT, &fd);
	struct stat st;

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	if ((uint64_t)st.st_size / sizeof(*users) + n > JIT_USERS_MAX)
		return -E2BIG;
	return file_write_all(fd, users, n * sizeof(*users));
}

static int users_put_root(struct hashmap *root, const struct jit_user *user, bool has)
{
	if (has)
		return hashmap_put(root, user->pid, user->uid);
	hashmap_remove(root, user->pid);
	return 0;
}

static int users_put(struct jit_users *users, const struct jit_user *user)
{
	bool is_known = user->uid != RIGHTS_NOBODY;
	int r = 0;

	if (is_known)
		r = hashmap_put(&users->uids, user->pid, user->uid);
	else
		hashmap_remove(&users->uids, user->pid);
	if (!r)
		r = users_put_root(&users->our_root, user, user->our_root && is_known);
	return r ? r : users_put_root(&users->other_root, user, user->other_root);
}

/* Without the file, no process has a known user. */
static void users_read(struct jit_users *users)
{
	AUTO_FREE char *data = NULL;
	struct jit_user user;
	size_t len;
	int r = -ENOENT;

	if (!users->read && users->dir_fd >= 0)
		r = file_read_at(users->dir_fd, JIT_USERS_FILE, JIT_USERS_MAX * sizeof(user), &data,
				 &len);
	users->read = true;
	/* A recorder that was killed may have left a part of an entry. */
	for (size_t at = 0; !r && at + sizeof(user) <= len; at += sizeof(user)) {
		memcpy(&user, data + at, sizeof(user));
		r = users_put(users, &user);
	}
}

bool jit_users_in_our_root(struct jit_users *users, int32_t pid, uint32_t *ret_uid)
{
	users_read(users);
	const uint32_t *uid = hashmap_get(&users->our_root, (uint32_t)pid);

	if (uid)
		*ret_uid = users->foreign ? users->owner : *uid;
	return uid;
}

bool jit_users_in_other_root(struct jit_users *users, int32_t pid)
{
	users_read(users);
	return pid ? hashmap_get(&users->other_root, (uint32_t)pid) != NULL
		   : users->other_root.len > 0;
}

const uint32_t *jit_users_uid(struct jit_users *users, int32_t pid)
{
	if (users->foreign)
		return &users->owner;
	users_read(users);
	return hashmap_get(&users->uids, (uint32_t)pid);
}

bool jit_users_may_own(struct jit_users *users, int32_t pid, const struct stat *st)
{
	const uint32_t *uid = jit_users_uid(users, pid);

	return st->st_nlink <= 1 &&
	       (!st->st_uid || st->st_uid == geteuid() || (uid && st->st_uid == *uid));
}

void jit_users_free(struct jit_users *users)
{
	hashmap_free(&users->uids);
	hashmap_free(&users->our_root);
	hashmap_free(&users->other_root);
}
