/* Decides which mounts a target's path may enter: a part of container/opener.h. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "container/opener_impl.h"
#include "container/resolve.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/*
 * Finds the mount of fd in the target's mounts, or in ours if the target's do not have it.
 * *ret_mounts: those that have it.
 */
static struct mount *opener_mount_of(const struct opener_visit *v, int fd,
				     struct mounts **ret_mounts)
{
	struct mounts *own = &v->o->roots.v[OPENER_OWN_ROOT].mounts;
	struct mount *m = mounts_of(&v->root->mounts, fd);

	*ret_mounts = m ? &v->root->mounts : own;
	if (!m && &v->root->mounts != own)
		m = mounts_of(own, fd);
	return m ? m : mounts_of_device(own, mounts_device(fd));
}

/*
 * Looks at the file systems of all layers of an administrator's overlay. Their paths are those of
 * the process that mounted it. Layers that do not exist in our root are trusted. 0; -EXDEV: one is
 * not permitted; -ETIME: not known now.
 */
static int opener_check_layers(const struct opener_visit *v, const char *options)
{
	struct opener_visit layer = {
		.o = v->o, .root = &v->o->roots.v[OPENER_OWN_ROOT], .depth = v->depth + 1};
	struct resolve_place place = {.root_fd = layer.root->root_fd,
				      .no_openat2 = v->o->no_openat2,
				      .uid = geteuid(),
				      .enter = opener_enter,
				      .ctx = &layer};
	char path[PATH_MAX];

	while (mounts_next_layer(&options, path, sizeof(path))) {
		AUTO_CLOSE int fd = -1;

		int r = resolve(&place, path, &fd);

		if (r == -EXDEV || r == -ETIME)
			return r;
	}
	return 0;
}

/*
 * The same for the overlay with this device, which is checked once until mounts change. A user who
 * mounts in a user namespace can state paths that lead elsewhere in our root. So there, only an
 * overlay that is also mounted in our namespace counts.
 */
static bool opener_overlay_permitted(const struct opener_visit *v, struct mounts *mounts, dev_t dev)
{
	struct mounts *from = v->root->trusted ? mounts : &v->o->roots.v[OPENER_OWN_ROOT].mounts;
	struct mount *m = mounts_of_device(from, dev);

	if (!m || m->kind != FILE_SYSTEM_OVERLAY || v->depth == OPENER_LAYERS_DEPTH_MAX)
		return false;
	if (m->checked)
		return m->permitted;
	AUTO_FREE char *options = strdup(m->layers ? m->layers : "");
	int r = options ? opener_check_layers(v, options) : -ENOMEM;

	m = mounts_of_device(from, dev);
	if (m && r != -ETIME) {
		m->checked = true;
		m->permitted = !r;
	}
	return !r;
}

/* Whether files of a device may be read. m: its mount in mounts; NULL: unknown. */
static bool opener_device_permitted(const struct opener_visit *v, const struct mount *m,
				    struct mounts *mounts, dev_t dev)
{
	/* profcpu itself runs on its root, so requests there are answered. */
	return (m && m->kind == FILE_SYSTEM_PERMITTED) || (dev && dev == v->o->own_dev) ||
	       (dev && dev == v->o->memory_dev) ||
	       (m && m->kind == FILE_SYSTEM_OVERLAY && opener_overlay_permitted(v, mounts, dev));
}

bool opener_may_read_device(struct opener *o, pid_t pid, dev_t dev)
{
	struct opener_visit visit = {.o = o, .root = &o->roots.v[OPENER_OWN_ROOT]};
	struct mount *m = mounts_of_device(&visit.root->mounts, dev);
	struct opener_pinned *p;

	if (!m && !opener_get(o, pid, &p)) {
		visit.root = &o->roots.v[p->root];
		m = mounts_of_device(&visit.root->mounts, dev);
	}
	return opener_device_permitted(&visit, m, &visit.root->mounts, dev);
}

int opener_enter(void *visit, int fd)
{
	const struct opener_visit *v = visit;
	struct mounts *mounts;
	struct mount *m = opener_mount_of(v, fd, &mounts);
	dev_t dev = m ? m->dev : mounts_device(fd);
	/* One byte more, so that a cut type is still too long to be permitted */
	char type[FILE_SYSTEMS_TYPE_BYTES + 1] = "";

	if (m && m->kind == FILE_SYSTEM_KERNEL)
		return -EACCES;
	if (m && m->type)
		snprintf(type, sizeof(type), "%s", m->type);
	if (opener_device_permitted(v, m, mounts, dev))
		return 0;
	if (v->path)
		file_systems_note_skipped(
			type, hash_mix(hash_bytes(v->path, strlen(v->path)), v->root->key.mnt_ns));
	return -EXDEV;
}
