/* Opens files of pinned processes: a part of container/opener.h. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "container/ask.h"
#include "container/opener_impl.h"
#include "container/proc.h"
#include "container/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define OPENER_TICK_NS (NS_PER_S / 100) /* the start of a process is rounded down to it */
#define OPENER_PERFMAP "/tmp/perf-%d.map"
/* Packages install debug files here. */
#define OPENER_DEBUG "/usr/lib/debug/"
/* Distributions put links here, and the rest of the path is a build id. */
#define OPENER_BUILD_IDS OPENER_DEBUG ".build-id/"

/* The request for one file. */
struct opener_request {
	pid_t pid; /* the process whose path it is; 0: none */
	struct opener_pinned_root *root;
	const struct rights *rights; /* NULL: ours */
	uid_t owner, uid0;           /* with planted: the process's user, and its uid 0 */
	const char *path;
	uint64_t max_bytes;
	bool socket; /* connect to it, instead of a regular file */
	bool probed; /* do not count it as skipped: the file may not exist */
	/* Others may put files and links there: only root's and the target's are accepted. */
	bool planted;
	uint64_t started_ns; /* CLOCK_REALTIME: an ended process had started then; or 0 */
	bool no_links;       /* as in resolve_place */
	bool other_root;     /* it is in our root, but the process has another */
};

static const struct rights opener_nobody = {.uid = OPENER_NOBODY, .gid = OPENER_NOBODY};

/* Fills in whose rights hold. After the end of a process, those read before do not. */
static void opener_set_process(struct opener_request *q, const struct opener_pinned *p)
{
	q->owner = p->rights.uid;
	q->uid0 = p->uid0;
	q->rights = &p->rights;
	if (!p->process.ended || opener_past_uid(p->rights.uid) != OPENER_NOBODY)
		return;
	q->rights = &opener_nobody;
	q->no_links = true;
	q->started_ns = clock_realtime_ns() -
			proc_age_ns(p->process.start_ticks, clock_boottime_ns()) + OPENER_TICK_NS;
}

/* Opens the file behind path_fd for reading, even if its name now belongs to another file. */
static int opener_reopen(int path_fd, int *ret_fd)
{
	char path[OPENER_PROC_PATH];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static bool opener_is_of_other(const struct opener_request *q, uid_t owner)
{
	return q->planted && owner && owner != q->owner && owner != q->uid0;
}

/*
 * Whether a file, of which st is the status, was made in the life of the process by its user. Files
 * that another user moves to its place are older.
 */
static bool opener_is_made_by(const struct opener_request *q, int path_fd, const struct stat *st)
{
	struct statx birth;

	return q->planted && q->started_ns && st->st_uid == q->owner && st->st_nlink == 1 &&
	       !statx(path_fd, "", AT_EMPTY_PATH, STATX_BTIME, &birth) &&
	       birth.stx_mask & STATX_BTIME &&
	       (uint64_t)birth.stx_btime.tv_sec * NS_PER_S + birth.stx_btime.tv_nsec >=
		       q->started_ns;
}

/* Checks the file behind path_fd, then opens it for reading. rights: as in resolve_place. */
static int opener_accept(int path_fd, const struct opener_request *q, const struct rights *rights,
			 int *ret_fd)
{
	struct stat st;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (rights && !rights_may(rights, path_fd, &st, R_OK) &&
				     !opener_is_made_by(q, path_fd, &st)))
		return -EACCES;
	if (opener_is_of_other(q, st.st_uid))
		return -EACCES;
	if (st.st_size < 0 || (uint64_t)st.st_size > q->max_bytes)
		return -E2BIG;
	return opener_reopen(path_fd, ret_fd);
}

/* Connects to the socket behind path_fd without blocking. */
static int opener_connect(int path_fd, const struct opener_request *q, const struct rights *rights,
			  int *ret_fd)
{
	AUTO_CLOSE int s = -1;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat st;

	if (fstat(path_fd, &st))
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOENT;
	if ((rights && !rights_may(rights, path_fd, &st, W_OK)) || opener_is_of_other(q, st.st_uid))
		return -EACCES;
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -errno;
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", path_fd);
	if (connect(s, (struct sockaddr *)&a, sizeof(a)))
		return -errno;
	*ret_fd = TAKE_FD(s);
	return 0;
}

static bool opener_is_below(const char *path, const char *folder)
{
	return !strncmp(path, folder, strlen(folder)) && !strstr(path, "/..");
}

/* Carries out a request, with no more rights than it allows. */
static int opener_open(struct opener *o, const struct opener_request *q, int *ret_fd)
{
	const struct rights *confined = opener_confined(),
			    *rights = confined ? confined : q->rights;
	struct opener_visit visit = {.o = o, .root = q->root, .path = q->probed ? NULL : q->path};
	bool no_links = q->no_links && !opener_is_below(q->path, OPENER_BUILD_IDS);
	struct resolve_place place = {.root_fd = q->root->root_fd,
				      .pid = q->pid,
				      /* Steps refuse links of others on any kernel. */
				      .by_steps = q->planted || no_links,
				      .no_openat2 = o->no_openat2,
				      .uid = rights ? rights->uid : geteuid(),
				      .no_links = no_links,
				      .enter = opener_enter,
				      .ctx = &visit};
	struct rights_saved *saved = NULL;
	AUTO_CLOSE int path_fd = -1;
	/* Our own rights find the layers of an overlay. */
	int r = opener_enter(&visit, place.root_fd);

	if (r)
		return r;
	/* Each lookup assumes them for itself, because it may need another process. */
	if (rights)
		r = o->by_mode ? -EPERM : rights_assume(rights, &saved);
	rights_restore(saved);
	saved = NULL;
	place.lookup = r ? NULL : rights;
	if (r == -EPERM || (!r && rights && rights_unknown(rights)))
		place.rights = rights;
	if (!r || r == -EPERM)
		r = resolve(&place, q->path, &path_fd);
	if (!r && place.lookup)
		r = rights_assume(place.lookup, &saved);
	if (!r)
		r = q->socket ? opener_connect(path_fd, q, place.rights, ret_fd)
			      : opener_accept(path_fd, q, place.rights, ret_fd);
	rights_restore(saved);
	return r;
}

/*
 * Opens a root only for this call, because OPENER_ROOTS_MAX roots are pinned. The process must be
 * alive.
 */
static int opener_root_once(const struct opener_pinned *p, pid_t pid,
			    struct opener_pinned_root *root)
{
	uint64_t start;
	int r = opener_open_root(pid, root);

	if (r)
		return r;
	r = proc_start_ticks(pid, &start);
	if (!r && start == p->process.start_ticks)
		return 0;
	opener_close_root(root);
	return -ESRCH;
}

/* Fills in root and rights of a target's request and carries it out. */
static int opener_open_in_target(struct opener *o, pid_t pid, struct opener_request *q, int *ret_fd)
{
	struct opener_pinned_root once = OPENER_CLOSED_ROOT;
	struct opener_pinned *p;
	int r = opener_refresh(o, pid);

	if (r)
		return r;
	r = opener_get(o, pid, &p);
	q->pid = pid;
	q->root = &once;
	if (!r)
		q->root = &o->roots.v[p->root];
	else if (r == -EMFILE && opener_find(o, pid))
		r = opener_root_once(p, pid, &once);
	if (r)
		return r;
	opener_set_process(q, p);
	r = opener_open(o, q, ret_fd);
	opener_close_root(&once);
	return r;
}

int opener_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd)
{
	struct opener_request q = {.path = path, .max_bytes = max_bytes};

	return opener_open_in_target(o, pid, &q, ret_fd);
}

int opener_socket(struct opener *o, pid_t pid, const char *path, int *ret_fd)
{
	struct opener_request q = {.path = path, .socket = true, .planted = true};

	return opener_open_in_target(o, pid, &q, ret_fd);
}

/*
 * The same in our own root, with the rights of a pinned process, or else those of the request.
 * A process of another root must not choose files of our root, nor links in a directory that both
 * share. It gets only debug files of packages, which everybody may read.
 */
static int opener_open_in_own(struct opener *o, pid_t pid, struct opener_request *q, int *ret_fd)
{
	struct opener_pinned *p = opener_find(o, pid);

	q->pid = pid;
	if (p) {
		int r = opener_refresh(o, pid);

		if (r)
			return r;
		/* Without descriptors it is not known whether it has our root. */
		if (p->root_error == -EMFILE && !p->process.other_root)
			return -EMFILE;
		q->no_links = p->root != OPENER_OWN_ROOT;
		opener_set_process(q, p);
		q->other_root = p->process.other_root;
	}
	if (q->other_root) {
		if (!opener_is_below(q->path, OPENER_DEBUG))
			return -ENOENT;
		q->rights = &opener_nobody;
		q->no_links = true;
	}
	q->root = &o->roots.v[OPENER_OWN_ROOT];
	return opener_open(o, q, ret_fd);
}

int opener_own_file(struct opener *o, pid_t pid, uid_t uid, const char *path, uint64_t max_bytes,
		    int *ret_fd)
{
	const struct rights rights = {.uid = opener_past_uid(uid), .gid = OPENER_NOBODY};
	struct opener_request q = {.rights = &rights,
				   .path = path,
				   .max_bytes = max_bytes,
				   .no_links = rights.uid == OPENER_NOBODY};

	return opener_open_in_own(o, pid, &q, ret_fd);
}

int opener_our_file(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd)
{
	struct opener_request q = {.pid = pid,
				   .root = &o->roots.v[OPENER_OWN_ROOT],
				   .path = path,
				   .max_bytes = max_bytes,
				   .no_links = true};

	return opener_open(o, &q, ret_fd);
}

int opener_named_file(struct opener *o, const char *path, uint64_t max_bytes, int *ret_fd)
{
	pid_t self = getuid() ? getpid() : 0;

	struct opener_request q = {.rights = &opener_nobody, .path = path, .max_bytes = max_bytes};

	if (self && !opener_find(o, self))
		(void)opener_pin(o, self);
	return opener_open_in_own(o, self, &q, ret_fd);
}

int opener_each(struct opener *o, int (*fn)(void *ctx, pid_t pid, uid_t uid, bool other_root),
		void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < o->pinned.len && !r; i++) {
		struct opener_pinned *p = &o->pinned.v[i];

		if (opener_refresh(o, p->pid) ||
		    (p->root != OPENER_OWN_ROOT && !p->process.other_root))
			continue;
		r = fn(ctx, p->pid, p->rights.uid, p->process.other_root);
	}
	return r;
}

int opener_own_entry(struct opener *o, pid_t pid, const char *path, int *ret_fd)
{
	struct opener_visit visit = {.o = o, .path = path};
	AUTO_CLOSE int fd = -1;
	int r = resolve_own(pid, path, &fd);

	if (!r && o) {
		visit.root = &o->roots.v[OPENER_OWN_ROOT];
		r = opener_enter(&visit, fd);
	}
	struct stat st;

	if (!r && fstat(fd, &st))
		r = -errno;
	if (!r && !S_ISREG(st.st_mode))
		r = S_ISLNK(st.st_mode) ? -ELOOP : -EBADMSG;
	return r ? r : opener_reopen(fd, ret_fd);
}

struct opener_place opener_named_place(struct opener *o)
{
	return (struct opener_place){
		.opener = o, .own = true, .by_uid = !geteuid(), .uid = OPENER_NOBODY};
}

int opener_place_open(const struct opener_place *place, const char *path, int *ret_fd)
{
	const struct rights rights = {.uid = opener_past_uid(place->uid), .gid = OPENER_NOBODY};
	struct opener_request q = {.rights = place->by_uid ? &rights : NULL,
				   .path = path,
				   .max_bytes = UINT64_MAX,
				   .probed = true,
				   .no_links = place->no_links,
				   .other_root = place->other_root};

	return place->own ? opener_open_in_own(place->opener, place->pid, &q, ret_fd)
			  : opener_open_in_target(place->opener, place->pid, &q, ret_fd);
}

/* A link in /proc/PID: its text and what it leads to. */
struct opener_link {
	pid_t pid;
	int path_fd, alive;
	uint64_t start_ticks;
	char name[OPENER_PROC_PATH / 2], text[PATH_MAX];
};

/* 0 if the text was read; then path_fd is -errno if the file cannot be opened. */
static int opener_ask_link(void *question)
{
	struct opener_link *q = question;
	char place[OPENER_PROC_PATH];
	int r = proc_link(q->pid, q->name, q->text, sizeof(q->text));

	snprintf(place, sizeof(place), "/proc/%d/%s", q->pid, q->name);
	if (!r) {
		q->path_fd = open(place, O_PATH | O_CLOEXEC);
		q->path_fd = q->path_fd < 0 ? -errno : q->path_fd;
	}
	q->alive = proc_start_ticks(q->pid, &q->start_ticks);
	return r;
}

static void opener_drop_link(void *question)
{
	cleanup_close(&((struct opener_link *)question)->path_fd);
}

/* Opens a link in /proc/PID to a file that the process has mapped. path: the link's text, or NULL.
 */
static int opener_open_mapped(struct opener *o, pid_t pid, const char *link, const char *path,
			      uint64_t max_bytes, int *ret_fd)
{
	struct opener_request q = {.max_bytes = max_bytes};
	struct opener_visit visit = {.o = o};
	struct opener_link at = {.pid = pid, .path_fd = -1};
	struct opener_pinned *p;
	int r = opener_get(o, pid, &p);

	/* A process that is pinned without its root is sufficient. */
	if (r && !opener_find(o, pid))
		return r;
	snprintf(at.name, sizeof(at.name), "%s", link);
	r = ask(pid, opener_ask_link, opener_drop_link, &at, sizeof(at));
	if (r == -ETIME)
		return r;
	AUTO_CLOSE int path_fd = at.path_fd;

	if (at.alive == -ESRCH || (!at.alive && at.start_ticks != p->process.start_ticks))
		return -ESRCH;
	if (!r && path && strcmp(at.text, path) != 0)
		r = -ENOENT;
	else if (!r && path_fd < 0)
		r = path_fd;
	visit.root = &o->roots.v[p->root == OPENER_NO_ROOT ? OPENER_OWN_ROOT : p->root];
	visit.path = at.text;
	if (!r)
		r = opener_enter(&visit, path_fd);
	return r ? r : opener_accept(path_fd, &q, NULL, ret_fd);
}

int opener_map_file(struct opener *o, pid_t pid, uint64_t start, uint64_t end, uint64_t max_bytes,
		    int *ret_fd)
{
	char link[OPENER_PROC_PATH / 2];

	snprintf(link, sizeof(link), "map_files/%llx-%llx", (unsigned long long)start,
		 (unsigned long long)end);
	return opener_open_mapped(o, pid, link, NULL, max_bytes, ret_fd);
}

int opener_program(struct opener *o, pid_t pid, const char *path, uint64_t max_bytes, int *ret_fd)
{
	return opener_open_mapped(o, pid, "exe", path, max_bytes, ret_fd);
}

/* Opens /tmp of a root, as a place. */
static int opener_tmp(struct opener *o, struct opener_pinned_root *root, pid_t pid,
		      struct opener_root_key *ret_key)
{
	struct opener_visit visit = {.o = o, .root = root};
	const struct resolve_place place = {.root_fd = root->root_fd,
					    .pid = pid,
					    .no_openat2 = o->no_openat2,
					    .uid = geteuid(),
					    .enter = opener_enter,
					    .ctx = &visit};
	AUTO_CLOSE int fd = -1;
	int r = opener_enter(&visit, root->root_fd);

	if (!r)
		r = resolve(&place, "/tmp", &fd);
	return r ? r : opener_root_key_of(fd, 0, ret_key);
}

/* Whether a process of another root shares our /tmp, as a container can. */
static bool opener_shares_tmp(struct opener *o, const struct opener_pinned *p)
{
	struct opener_root_key its, ours;

	return p->root != OPENER_NO_ROOT && !opener_tmp(o, &o->roots.v[p->root], p->pid, &its) &&
	       !opener_tmp(o, &o->roots.v[OPENER_OWN_ROOT], p->pid, &ours) && its.dev == ours.dev &&
	       its.ino == ours.ino;
}

/*
 * Opens the pinned process's perf map with this number in our own root. For another root, it is the
 * target's, if /tmp is the same.
 */
static int opener_own_perfmap(struct opener *o, pid_t pid, pid_t number, uint64_t max_bytes,
			      int *ret_fd)
{
	char path[OPENER_PROC_PATH];
	struct opener_request q = {.path = path, .max_bytes = max_bytes, .planted = true};
	const struct opener_pinned *p = opener_find(o, pid);

	snprintf(path, sizeof(path), OPENER_PERFMAP, number);
	if (p->process.other_root)
		return opener_shares_tmp(o, p) ? opener_open_in_target(o, pid, &q, ret_fd)
					       : -ENOENT;
	return opener_open_in_own(o, pid, &q, ret_fd);
}

int opener_perfmap(struct opener *o, pid_t pid, uint64_t max_bytes, int *ret_fd)
{
	char path[OPENER_PROC_PATH];
	struct opener_request q = {.path = path, .max_bytes = max_bytes, .planted = true};
	struct opener_pinned *p;
	int entered = opener_get(o, pid, &p);

	if (entered && !opener_find(o, pid))
		return entered;
	snprintf(path, sizeof(path), OPENER_PERFMAP, p->process.ns_pid);
	int first = opener_open_in_target(o, pid, &q, ret_fd);

	if (!first)
		return 0;
	int r = opener_own_perfmap(o, pid, pid, max_bytes, ret_fd);

	/*
	 * If the target's root is readable, the map with that number in our /tmp belongs to another
	 * process.
	 */
	if (r && entered && !p->process.other_root && p->process.ns_pid != pid) {
		int other = opener_own_perfmap(o, pid, p->process.ns_pid, max_bytes, ret_fd);

		r = r == -ENOENT || !other ? other : r;
	}
	return r && first != -ENOENT ? first : r;
}
