#include "symbols/core/image_file.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/proc.h"
#include "elf/build_id.h"
#include "elf/debug_cache.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Tolerated difference between the clock of files and the recording's, which may be long */
#define CLOCKS_APART_NS (2 * NS_PER_S)

/* Whether an open file is the mapped one. 0, -ESTALE (it is not), -EFBIG (unknown) or -ENOMEM. */
static int is_same_file(const struct image_key *key, int fd)
{
	struct build_id id;
	struct stat st;

	if (key->build_id.len) {
		int r = elf_file_build_id_of(fd, &id);

		if (r == -ENOMEM)
			return r;
		if (r == -E2BIG)
			return -EFBIG;
		/* A file without a build id is not the mapped one. */
		return !r && id.len && id.len <= key->build_id.len &&
				       !memcmp(id.bytes, key->build_id.bytes, id.len)
			       ? 0
			       : -ESTALE;
	}
	if (!key->ino || fstat(fd, &st))
		return 0;
	/*
	 * Device numbers of a mapping and of stat differ on some file systems. Then do not compare
	 * inodes.
	 */
	return major(st.st_dev) != key->maj || minor(st.st_dev) != key->min || st.st_ino == key->ino
		       ? 0
		       : -ESTALE;
}

static bool is_deleted(const char *path)
{
	size_t len = strlen(path), tail = strlen(" (deleted)");

	return len > tail && !strcmp(path + len - tail, " (deleted)");
}

/* Whether a mapping is of the file at this path. */
static bool is_at_path(const struct proc_map *map, const char *path)
{
	size_t len = strlen(path);

	return !strncmp(map->path, path, len) &&
	       (!map->path[len] || !strcmp(map->path + len, " (deleted)"));
}

/*
 * Whether a living process maps this file at the image's place. Returns 1, 0 or -errno
 * (unknown).
 */
static int is_mapped(const struct image_file_place *p, const char *path, const struct stat *st)
{
	AUTO_FREE char *text = NULL;
	struct proc_map map;
	char *cursor;
	int r = proc_read_maps(p->pid, &text);

	if (r)
		return r;
	for (cursor = text; proc_map_next(&cursor, &map);) {
		if (map.start > p->start || p->start >= map.end)
			continue;
		/* The process may run another program now. Device numbers: see is_same_file. */
		if (!is_at_path(&map, path) || major(st->st_dev) != map.maj ||
		    minor(st->st_dev) != map.min)
			return -ENODATA;
		return st->st_ino == map.ino;
	}
	return -ENOENT;
}

/*
 * Whether a file has changed since it was mapped, by the time of the last change of status. Unlike
 * the time of the last write, nobody can choose it. Inodes are used again.
 */
static bool is_newer(const struct image_file_place *p, const struct stat *st)
{
	return clock_timespec_ns(&st->st_ctim) > p->mapped_ns + CLOCKS_APART_NS;
}

/* Whether the file at the path is surely the mapped one. Returns 0 or -ESTALE. */
static int is_exact(const struct image_file_place *p, const struct image_key *key, const char *path,
		    int fd)
{
	struct stat st;

	if (p->elsewhere || fstat(fd, &st))
		return -ESTALE;
	int mapped = p->opener && !p->later ? is_mapped(p, path, &st) : -ESRCH;

	if (mapped >= 0)
		return mapped ? 0 : -ESTALE;
	if (key->ino && major(st.st_dev) == key->maj && minor(st.st_dev) == key->min &&
	    st.st_ino != key->ino)
		return -ESTALE;
	return p->mapped_ns && is_newer(p, &st) ? -ESTALE : 0;
}

/* Ways to open the file of an image. */
enum step {
	STEP_ROOT,    /* by path in the target's root */
	STEP_MAPPED,  /* through the mapping, also of a deleted or replaced file */
	STEP_PROGRAM, /* as the program that the process runs */
	STEP_PROVEN,  /* by path in our own root, with our rights; surely the mapped file */
	STEP_OWN,     /* the same with the rights of the process; not if it has another root */
	STEPS,
};

/* The order in which they are tried. */
static const enum step any_order[STEPS] = {STEP_ROOT, STEP_MAPPED, STEP_PROGRAM, STEP_PROVEN,
					   STEP_OWN};
static const enum step exact_order[STEPS] = {STEP_MAPPED, STEP_PROGRAM, STEP_ROOT, STEP_PROVEN,
					     STEP_OWN};

static bool is_of_mapping(enum step step)
{
	return step == STEP_MAPPED || step == STEP_PROGRAM;
}

/* The rights of the process are known, because it is pinned. */
static bool is_pinned(const struct image_file_place *p, struct opener_process *ret_process)
{
	return p->opener && !p->later && !opener_process(p->opener, p->pid, ret_process);
}

static bool is_in_other_root(const struct image_file_place *p)
{
	struct opener_process process;

	return p->other_root || (is_pinned(p, &process) && process.other_root);
}

/*
 * Whether a file that is_same_file accepts is the mapped one, and not only at the same path. A
 * process of another root can choose both the path and the build id.
 */
static bool is_proven(const struct image_file_place *p, const struct image_key *key,
		      const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	bool has_device = key->ino && major(st.st_dev) == key->maj &&
			  minor(st.st_dev) == key->min && (p->only_rules || !is_newer(p, &st));

	return !is_in_other_root(p)
		       ? key->build_id.len || has_device
		       : (has_device && st.st_ino == key->ino) ||
				 (p->opener && !p->later && is_mapped(p, path, &st) == 1);
}

/* Open the file in our own root. Returns 0 or -errno. */
static int open_own(const struct image_file_place *p, const char *path, enum step step, int *ret_fd)
{
	struct opener *alone = NULL, *opener = p->opener;
	struct opener_process process;
	/* Its rights decide, but after its end they are not known. */
	bool has_rights = is_pinned(p, &process) && !process.other_root && !process.ended;
	int r = 0;

	if (is_deleted(path) || (step == STEP_PROVEN ? has_rights : is_in_other_root(p)))
		return -ENOENT;
	if (!opener) {
		r = opener_new(&alone);
		opener = alone;
	}
	if (!r && step == STEP_PROVEN)
		r = opener_our_file(opener, p->later ? 0 : p->pid, path, IMAGE_FILE_BYTES_MAX,
				    ret_fd);
	else if (!r)
		r = opener_own_file(opener, p->later ? 0 : p->pid,
				    p->has_uid ? p->uid : OPENER_NOBODY, path, IMAGE_FILE_BYTES_MAX,
				    ret_fd);
	opener_free(alone);
	return r;
}

/* Open the file in one way. Returns 0 or -errno. */
static int open_step(const struct image_file_place *p, const char *path, enum step step,
		     int *ret_fd)
{
	if (step == STEP_OWN || step == STEP_PROVEN)
		return open_own(p, path, step, ret_fd);
	if (p->later || !p->opener)
		return -ENOENT;
	switch (step) {
	case STEP_MAPPED:
		return opener_map_file(p->opener, p->pid, p->start, p->end, IMAGE_FILE_BYTES_MAX,
				       ret_fd);
	case STEP_PROGRAM:
		return opener_program(p->opener, p->pid, path, IMAGE_FILE_BYTES_MAX, ret_fd);
	default:
		return is_deleted(path)
			       ? -ENOENT
			       : opener_file(p->opener, p->pid, path, IMAGE_FILE_BYTES_MAX, ret_fd);
	}
}

static bool is_regular(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size <= IMAGE_FILE_BYTES_MAX;
}

int image_file_find(const struct image_file_place *p, const struct image_key *key, const char *path,
		    int *ret_fd)
{
	bool denied = false, skipped = false, no_answer = false, too_large = false;
	int r = -ENOENT;

	for (int i = 0; i < STEPS; i++) {
		enum step step = p->exact ? exact_order[i] : any_order[i];
		bool is_foreign = step == STEP_PROVEN && is_in_other_root(p);
		AUTO_CLOSE int fd = -1;
		int before = r;

		int error = open_step(p, path, step, &fd);

		if (error == -ENOMEM)
			return error;
		/* Few users may open a mapping, so a denial there says nothing about the file. */
		denied |= !is_of_mapping(step) && !is_foreign &&
			  (error == -EACCES || error == -EPERM);
		skipped |= error == -EXDEV && !is_foreign;
		no_answer |= error == -ETIME && !is_foreign;
		too_large |= error == -E2BIG && !is_foreign;
		if (error || !is_regular(fd))
			continue;
		/* Ignore a file that the process may not have been able to read. */
		if (step == STEP_PROVEN && !is_proven(p, key, path, fd))
			continue;
		r = is_same_file(key, fd);
		if (!r && p->exact && !is_of_mapping(step))
			r = is_exact(p, key, path, fd);
		if (!r)
			*ret_fd = TAKE_FD(fd);
		if (r != -ESTALE && r != -EFBIG)
			return r;
		/* Another file at that path of our root says nothing about the target's. */
		if (is_foreign)
			r = before;
	}
	if (r == -ENOENT)
		r = no_answer   ? -ETIME
		    : skipped   ? -EXDEV
		    : denied    ? -EACCES
		    : too_large ? -EFBIG
				: r;
	return r;
}

int image_file_perf_cache(const struct image_key *key, int fd)
{
	char hex[2 * BUILD_ID_MAX + 1], path[PATH_MAX];
	struct build_id id = key->build_id, cached_id;
	const char *home = debug_cache_home();
	AUTO_CLOSE int cached = -1;

	if (!home || (!id.len && (fd < 0 || elf_file_build_id_of(fd, &id))) || id.len < 2)
		return -1;
	build_id_hex(&id, hex);
	if (snprintf(path, sizeof(path), "%s/.debug/.build-id/%.2s/%s/elf", home, hex, hex + 2) >=
	    (int)sizeof(path))
		return -1;
	if (file_open_regular(AT_FDCWD, path, &cached) || !is_regular(cached) ||
	    elf_file_build_id_of(cached, &cached_id) || cached_id.len != id.len ||
	    memcmp(cached_id.bytes, id.bytes, id.len) != 0)
		return -1;
	return TAKE_FD(cached);
}

int image_file_open(const struct image_file_place *p, const char *path, int *ret_fd)
{
	int r = -ENOENT;

	for (int i = 0; i < STEPS && r && r != -ENOMEM; i++) {
		AUTO_CLOSE int fd = -1;

		if (is_of_mapping(any_order[i]) || any_order[i] == STEP_PROVEN)
			continue;
		r = open_step(p, path, any_order[i], &fd);
		if (!r && !is_regular(fd))
			r = -ENOENT;
		if (!r)
			*ret_fd = TAKE_FD(fd);
	}
	return r;
}
