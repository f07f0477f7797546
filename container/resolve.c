#include "container/resolve.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/time_budget.h"
#include "container/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RESOLVE_TRIES 16 /* after -EAGAIN: another process renamed a file during the walk */

/*
 * Steps of a walk. Those beyond RESOLVE_FREE_STEPS may take RESOLVE_LONG_NS in all walks of a
 * thread, and later this share of the time.
 */
#define RESOLVE_FREE_STEPS 128
#define RESOLVE_STEPS_MAX 1024
#define RESOLVE_STEP_NS ((uint64_t)50000) /* about, if another process is asked */
#define RESOLVE_LONG_NS (UINT64_C(3) * NS_PER_S)
#define RESOLVE_LONG_SHARE 50

/* One lookup: of a whole path, or of one component. */
struct resolve_lookup {
	int dir;
	bool old; /* by openat, not openat2 */
	struct open_how how;
	bool limited; /* by rights */
	struct rights rights;
	int fd; /* the result, or -1 */
	char path[PATH_MAX];
};

/* Returns a descriptor or -errno. */
static int resolve_now(const struct resolve_lookup *l, const struct open_how *how)
{
	int fd = l->old ? openat(l->dir, l->path, (int)how->flags)
			: (int)syscall(SYS_openat2, l->dir, l->path, how, sizeof(*how));

	/*
	 * Container runtimes of 2020 return EPERM for system calls that they do not know. A denied
	 * O_PATH open returns EACCES.
	 */
	return fd >= 0 ? fd : errno == EPERM && !l->old ? -ENOSYS : -errno;
}

static int resolve_ask(void *question)
{
	struct resolve_lookup *l = question;
	struct rights_saved *saved = NULL;
	int r = l->limited ? rights_assume(&l->rights, &saved) : 0;

	for (int i = 0; i < RESOLVE_TRIES && !r; i++) {
		l->fd = resolve_now(l, &l->how);
		if ((l->fd != -EAGAIN || l->how.resolve & RESOLVE_CACHED) && l->fd != -EINTR)
			break;
	}
	rights_restore(saved);
	/* A file system can return -ETIME, too. Then the question was answered. */
	return r == -EPERM ? -EACCES : r ? r : l->fd == -ETIME ? -EIO : l->fd < 0 ? l->fd : 0;
}

static void resolve_drop(void *question)
{
	struct resolve_lookup *l = question;

	cleanup_close(&l->fd);
	cleanup_close(&l->dir);
	rights_free(&l->rights);
}

/* Looks a path up. 0 or -errno. */
static int resolve_lookup(const struct resolve_place *place, struct resolve_lookup *l,
			  const char *path, int *ret_fd)
{
	struct resolve_lookup cached;
	int r;

	if (strlen(path) >= sizeof(l->path))
		return -ENAMETOOLONG;
	strcpy(l->path, path);
	l->limited = place->lookup != NULL;
	if (l->limited)
		l->rights = *place->lookup;
	/* Names that the kernel has in memory need no other process. EINVAL: Linux before 5.12 */
	cached = *l;
	cached.how.resolve |= RESOLVE_CACHED;
	r = l->old ? -EAGAIN : resolve_ask(&cached);
	if (!r)
		*ret_fd = cached.fd;
	if (r != -EAGAIN && r != -EINVAL)
		return r;
	/* These stay with the process that asks if it gets no answer. */
	r = l->limited ? rights_copy(place->lookup, &l->rights) : 0;
	if (r)
		return r;
	l->fd = -1;
	if (l->dir >= 0) {
		l->dir = fcntl(l->dir, F_DUPFD_CLOEXEC, 0);
		r = l->dir < 0 ? -errno : 0;
	}
	if (!r)
		/* A question about our own process would run here, without a limit of time. */
		r = ask(place->pid && place->pid != getpid() ? place->pid : ASK_PATHS, resolve_ask,
			resolve_drop, l, sizeof(*l));
	if (r == -ETIME)
		return r;
	if (!r)
		*ret_fd = TAKE_FD(l->fd);
	resolve_drop(l);
	return r;
}

/* By openat2; -ENOSYS: it cannot be used. */
static int resolve_at(const struct resolve_place *place, int dir, const char *path, uint64_t flags,
		      uint64_t resolve, int *ret_fd)
{
	struct resolve_lookup l = {
		.dir = dir,
		.how = {.flags = O_PATH | O_CLOEXEC | flags, .resolve = resolve},
	};

	return place->no_openat2 ? -ENOSYS : resolve_lookup(place, &l, path, ret_fd);
}

static int resolve_by_openat(const struct resolve_place *place, int dir, const char *path,
			     int *ret_fd)
{
	struct resolve_lookup l = {
		.dir = dir, .old = true, .how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC};

	return resolve_lookup(place, &l, path, ret_fd);
}

int resolve_own(pid_t pid, const char *path, int *ret_fd)
{
	const struct resolve_place place = {.pid = pid};

	int r = resolve_at(&place, AT_FDCWD, path, O_NOFOLLOW, 0, ret_fd);

	return r == -ENOSYS ? resolve_by_openat(&place, AT_FDCWD, path, ret_fd) : r;
}

/*
 * State of a walk. done: names from the root to cur, each after a slash; todo: the rest of the
 * path.
 */
struct resolve_walk {
	const struct resolve_place *place;
	int cur;
	unsigned links, steps;
	char done[PATH_MAX], todo[PATH_MAX];
};

/* Whether the rights allow a search of dir. The kernel rejects what is no directory. */
static bool resolve_may_search(const struct resolve_walk *w, int dir)
{
	const struct rights *rights = w->place->rights;
	struct stat st;

	return !rights ||
	       (!fstat(dir, &st) && (!S_ISDIR(st.st_mode) || rights_may(rights, dir, &st, X_OK)));
}

/*
 * Whether the walk may open one more component. Paths of targets can be long, and each ".." and
 * each link adds steps.
 */
static bool resolve_take_step(struct resolve_walk *w)
{
	static _Thread_local struct time_budget long_steps;

	if (++w->steps <= RESOLVE_FREE_STEPS || w->steps > RESOLVE_STEPS_MAX)
		return w->steps <= RESOLVE_FREE_STEPS;
	if (time_budget_debt(&long_steps, clock_monotonic_ns(), RESOLVE_LONG_SHARE) >=
	    RESOLVE_LONG_NS)
		return false;
	long_steps.debt_ns += RESOLVE_STEP_NS;
	return true;
}

static int resolve_open_step(struct resolve_walk *w, int dir, const char *name, int *ret_fd)
{
	const struct resolve_place *place = w->place;
	AUTO_CLOSE int fd = -1;

	if (!resolve_take_step(w))
		return -ELOOP;
	if (!resolve_may_search(w, dir))
		return -EACCES;
	int r = resolve_at(place, dir, name, O_NOFOLLOW, RESOLVE_NO_XDEV, &fd);

	if (r == -EXDEV || r == -ENOSYS) {
		/* Perhaps another mount. Opening its root makes no request to its file system. */
		r = r == -EXDEV ? resolve_at(place, dir, name, O_NOFOLLOW, 0, &fd)
				: resolve_by_openat(place, dir, name, &fd);
		if (!r)
			r = place->enter(place->ctx, fd);
	}
	if (!r)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static void resolve_set_cur(struct resolve_walk *w, int fd)
{
	if (w->cur >= 0)
		close(w->cur);
	w->cur = fd;
}

static int resolve_to_root(struct resolve_walk *w)
{
	int fd = -1, r = resolve_open_step(w, w->place->root_fd, ".", &fd);

	if (r)
		return r;
	w->done[0] = 0;
	resolve_set_cur(w, fd);
	return 0;
}

/*
 * Handles "..": walks from the root again, so that concurrent renames cannot lead out of the root.
 */
static int resolve_up(struct resolve_walk *w)
{
	char names[PATH_MAX], *slash = strrchr(w->done, '/');
	char *save = NULL;
	int r, fd = -1;

	if (slash)
		*slash = 0;
	strcpy(names, w->done);
	r = resolve_to_root(w);
	for (char *name = strtok_r(names, "/", &save); name && !r;
	     name = strtok_r(NULL, "/", &save)) {
		r = resolve_open_step(w, w->cur, name, &fd);
		if (r)
			break;
		resolve_set_cur(w, fd);
		strcat(w->done, "/");
		strcat(w->done, name);
	}
	return r;
}

/* Whether fs.protected_symlinks=1 permits to follow a link of that user in the current directory.
 */
static bool resolve_may_follow(const struct resolve_walk *w, uid_t owner)
{
	struct stat dir;

	if (fstat(w->cur, &dir))
		return false;
	return (dir.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
	       owner == w->place->uid || owner == dir.st_uid;
}

/* Puts a link's text in front of the rest of the path. */
static int resolve_link(struct resolve_walk *w, int link_fd, uid_t owner)
{
	char text[PATH_MAX];

	if (++w->links > RESOLVE_LINKS_MAX || (w->place->no_links && w->done[0]))
		return -ELOOP;
	if (!resolve_may_follow(w, owner))
		return -EACCES;
	ssize_t n = readlinkat(link_fd, "", text, sizeof(text));

	if (n < 0)
		return -errno;
	if (!n)
		return -ENOENT;
	size_t left = strlen(w->todo);

	if ((size_t)n + 1 + left >= sizeof(w->todo))
		return -ENAMETOOLONG;
	memmove(w->todo + n + 1, w->todo, left + 1);
	memcpy(w->todo, text, (size_t)n);
	w->todo[n] = '/';
	return text[0] == '/' ? resolve_to_root(w) : 0;
}

/* Removes the next name from todo. False: todo is empty. */
static bool resolve_next_name(struct resolve_walk *w, char *name)
{
	const char *p = w->todo + strspn(w->todo, "/");
	size_t n = strcspn(p, "/");

	memcpy(name, p, n);
	name[n] = 0;
	memmove(w->todo, p + n, strlen(p + n) + 1);
	return n > 0;
}

static int resolve_step(struct resolve_walk *w, const char *name)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;
	bool up = !strcmp(name, "..");

	/* The next name fails below a file. */
	if (!strcmp(name, ".") && w->todo[strspn(w->todo, "/")])
		return 0;
	/* Open ".", so that it fails below a file. */
	int r = resolve_open_step(w, w->cur, up ? "." : name, &fd);

	if (r)
		return r;
	if (up)
		return resolve_up(w);
	if (!strcmp(name, "."))
		return 0;
	if (fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return resolve_link(w, fd, st.st_uid);
	if (strlen(w->done) + strlen(name) + 2 > sizeof(w->done))
		return -ENAMETOOLONG;
	strcat(w->done, "/");
	strcat(w->done, name);
	resolve_set_cur(w, TAKE_FD(fd));
	return 0;
}

static int resolve_by_steps(const struct resolve_place *place, const char *path, int *ret_fd)
{
	struct resolve_walk w = {.place = place, .cur = -1};
	char name[PATH_MAX];
	int r;

	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(w.todo))
		return -ENAMETOOLONG;
	strcpy(w.todo, path);
	r = resolve_to_root(&w);
	while (!r && resolve_next_name(&w, name))
		r = resolve_step(&w, name);
	/* Like the kernel, reject "file/" and "file/.". */
	struct stat st;

	if (!r && path[strlen(path) - 1] == '/' && (fstat(w.cur, &st) || !S_ISDIR(st.st_mode)))
		r = -ENOTDIR;
	if (r) {
		resolve_set_cur(&w, -1);
		return r;
	}
	*ret_fd = w.cur;
	return 0;
}

int resolve(const struct resolve_place *place, const char *path, int *ret_fd)
{
	int r = place->by_steps || place->rights
			? -ENOSYS
			: resolve_at(place, place->root_fd, path, 0,
				     RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
				     ret_fd);

	return r == -ENOSYS || r == -EXDEV ? resolve_by_steps(place, path, ret_fd) : r;
}
