#include "container/mounts.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/memory_left.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOUNTS_BACKSLASH "\\134" /* in mountinfo */
#define MOUNTS_COMMA "\\054"

#define MOUNTS_ALLOCATION 16                  /* bytes that malloc adds */
#define MOUNTS_FIRST_BYTES ((size_t)16 << 10) /* of a list, before its length is known */

/* Bytes that lists have taken in all threads, and may take; 0: not set yet. */
static _Atomic size_t mounts_taken, mounts_limit;

void mounts_limit_memory(size_t bytes)
{
	mounts_limit = bytes;
}

/* Takes the memory of one more mount. False: too little is left. */
static bool mounts_take(struct mounts *m, const struct mount *mount)
{
	/* An array that grows may take twice its size. */
	size_t bytes = 2 * sizeof(*mount);

	if (m->own)
		return true;
	if (!mounts_limit)
		mounts_limit = memory_left_eighth(0, MOUNTS_MEMORY_MAX) + 1;
	bytes += mount->type ? strlen(mount->type) + MOUNTS_ALLOCATION : 0;
	bytes += mount->layers ? strlen(mount->layers) + MOUNTS_ALLOCATION : 0;
	size_t mine = m->memory + bytes, all = mounts_taken + bytes, half = mounts_limit / 2;

	if (mine <= half / MOUNTS_SMALL_PARTS ? all > 2 * half : all + mine > half)
		return false;
	m->memory = mine;
	mounts_taken += bytes;
	return true;
}

int mounts_open(pid_t pid, struct mounts *ret_mounts)
{
	char path[48];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	else
		snprintf(path, sizeof(path), "/proc/self/mountinfo");
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : errno == ENFILE ? -EMFILE : -errno;
	*ret_mounts = (struct mounts){.fd = fd, .own = !pid};
	return 0;
}

static void mounts_forget(struct mounts *m)
{
	for (size_t i = 0; i < m->list.len; i++) {
		free(m->list.v[i].type);
		free(m->list.v[i].layers);
	}
	vec_free(&m->list);
	mounts_taken -= m->memory;
	m->memory = 0;
	m->read = false;
}

void mounts_close(struct mounts *m)
{
	mounts_forget(m);
	cleanup_close(&m->fd);
	m->fd = -1;
}

bool mounts_parse(char *line, struct mount *ret_mount)
{
	unsigned int major, minor;
	struct mount m = {0};
	char *fields[3], *rest, *dash = strstr(line, " - ");

	if (!dash || sscanf(line, "%d %*d %u:%u", &m.id, &major, &minor) != 3)
		return false;
	m.dev = makedev(major, minor);
	rest = dash + 3;
	/* The source may be empty. */
	for (int i = 0; i < 3; i++)
		fields[i] = strsep(&rest, " \n");
	if (!*fields[0])
		return false;
	m.kind = file_system_kind(fields[0]);
	m.type = m.kind == FILE_SYSTEM_PERMITTED ? NULL : strdup(fields[0]);
	m.layers = m.kind == FILE_SYSTEM_OVERLAY && fields[2] ? strdup(fields[2]) : NULL;
	*ret_mount = m;
	return true;
}

/*
 * Reads at most max bytes of a list, whose rest is left out; file_read_fd would refuse it. Returns
 * NULL if no memory is left.
 */
static char *mounts_text(int fd, size_t max, size_t *ret_len)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0, cap = 0;
	ssize_t n = 1;

	while (n > 0 && len < max) {
		if (vec_grow((void **)&text, &cap, 1, len ? len + 2 : MOUNTS_FIRST_BYTES))
			return NULL;
		size_t room = cap - len - 1;

		n = pread(fd, text + len, room < max - len ? room : max - len, (off_t)len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = 0;
	*ret_len = len;
	return TAKE_PTR(text);
}

/* small: only a list that fits into MOUNTS_SMALL_BYTES. */
static void mounts_read(struct mounts *m, bool small)
{
	size_t len, max = small ? MOUNTS_SMALL_BYTES : MOUNTS_BYTES_MAX;
	AUTO_FREE char *text = mounts_text(m->fd, max, &len);
	struct mount mount;

	m->read = text && !(small && len == max);
	if (!m->read)
		return;
	for (char *end, *line = text; line && m->list.len < MOUNTS_MAX; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = 0;
		if (mounts_parse(line, &mount) &&
		    (!mounts_take(m, &mount) || vec_push(&m->list, mount))) {
			free(mount.type);
			free(mount.layers);
			break;
		}
	}
}

/*
 * Forgets mounts that changed, because ids and devices are used again. Reads them when the budgets
 * permit it. The kernel reports each change once. A change while we read is reported at the next
 * call.
 */
static void mounts_refresh(struct mounts *m)
{
	static _Thread_local struct time_budget all, all_small;
	struct pollfd p = {.fd = m->fd, .events = POLLPRI};

	if (m->fd < 0)
		return;
	if (poll(&p, 1, 0) > 0 && (p.revents & POLLPRI))
		mounts_forget(m);
	uint64_t now_ns = m->read ? 0 : clock_monotonic_ns();

	if (m->read || time_budget_debt(&m->budget, now_ns, MOUNTS_SHARE) >= MOUNTS_BURST_NS)
		return;
	/* Long lists of others must not take the time of usual ones. */
	bool small =
		!m->own && time_budget_debt(&all, now_ns, MOUNTS_ALL_SHARE) >= MOUNTS_ALL_BURST_NS;

	if (small && time_budget_debt(&all_small, now_ns, MOUNTS_ALL_SHARE) >= MOUNTS_ALL_BURST_NS)
		return;
	/* On a loaded machine, the time that others run does not count. */
	uint64_t begin_ns = clock_thread_ns();

	mounts_read(m, small);
	uint64_t took_ns = clock_thread_ns() - begin_ns;

	m->budget.debt_ns += took_ns;
	if (!m->own)
		(small ? &all_small : &all)->debt_ns += took_ns;
}

/* Linux before 5.8 has no STATX_MNT_ID. */
static int mounts_id_in_proc(int fd)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[48], line[128];
	int id = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && id < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "mnt_id: %d", &id) != 1)
			id = -1;
	return id;
}

/* Reads the id of a file's mount, and asks no file system. Returns -1: unknown. */
static int mounts_id(int fd)
{
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) &&
	    (stx.stx_mask & STATX_MNT_ID))
		return (int)stx.stx_mnt_id;
	return mounts_id_in_proc(fd);
}

struct mount *mounts_of(struct mounts *m, int fd)
{
	int id = mounts_id(fd);

	mounts_refresh(m);
	for (size_t i = 0; i < m->list.len; i++)
		if (m->list.v[i].id == id)
			return &m->list.v[i];
	return NULL;
}

dev_t mounts_device(int fd)
{
	struct statx stx;

	/* With no field requested, FUSE and network file systems answer from memory. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx))
		return 0;
	return makedev(stx.stx_dev_major, stx.stx_dev_minor);
}

struct mount *mounts_of_device(struct mounts *m, dev_t dev)
{
	mounts_refresh(m);
	for (size_t i = 0; i < m->list.len; i++)
		if (m->list.v[i].dev == dev)
			return &m->list.v[i];
	return NULL;
}

static bool mounts_is_octal(const char *p)
{
	return p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
	       p[3] >= '0' && p[3] <= '7';
}

/* Copies text and decodes \NNN. False: no room. */
static bool mounts_decode(const char *text, size_t len, char *buf, size_t cap)
{
	size_t n = 0;

	for (const char *p = text; p < text + len && n + 1 < cap; n++) {
		/* Overlays have a backslash before a colon, comma or backslash in a path. */
		if (!strncmp(p, MOUNTS_BACKSLASH, 4) &&
		    (p[4] == ':' || !strncmp(p + 4, MOUNTS_COMMA, 4) ||
		     !strncmp(p + 4, MOUNTS_BACKSLASH, 4)))
			p += 4;
		bool octal = mounts_is_octal(p);

		buf[n] = octal ? (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + p[3] - '0') : *p;
		p += octal ? 4 : 1;
	}
	buf[n] = 0;
	return n + 1 < cap;
}

/* The length of the path of a layer. */
static size_t mounts_layer_len(const char *layer)
{
	size_t len = strcspn(layer, ":,\\");

	while (layer[len] == '\\') {
		bool quotes = !strncmp(layer + len, MOUNTS_BACKSLASH, 4);

		len += quotes ? 4 : 1;
		if (quotes && layer[len] == ':')
			len++;
		else if (quotes && !strncmp(layer + len, MOUNTS_BACKSLASH, 4))
			len += 4;
		len += strcspn(layer + len, ":,\\");
	}
	return len;
}

bool mounts_next_layer(const char **options, char *path, size_t cap)
{
	static const char *const names[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};

	while (**options) {
		const char *word = *options, *layer = *word == ':' ? word + 1 : NULL;

		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !layer; i++)
			if (!strncmp(word, names[i], strlen(names[i])))
				layer = word + strlen(names[i]);
		size_t len = layer ? mounts_layer_len(layer) : strcspn(word, ",");
		const char *end = (layer ? layer : word) + len;

		/* The next layer of the same option begins at the colon. */
		*options = *end == ',' ? end + 1 : end;
		if (layer && len && mounts_decode(layer, len, path, cap))
			return true;
	}
	return false;
}
