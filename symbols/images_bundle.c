/*
 * Single-file .NET programs: all have the build id of the host that they begin with, whatever is behind it. So it tells neither one from
 * another nor whether a file is still the one that was mapped.
 */
#include "base/cleanup.h"
#include "symbols/bundle.h"
#include "symbols/images_impl.h"

#include <errno.h>
#include <string.h>

/* The very file of an image. 0; -ENOENT; -ESTALE: another one is there, or may be; -EACCES, -ENOMEM. */
static int bundle_find_file(const struct images *im, const struct answers_image *key, const struct images_source *s, int *ret_fd)
{
	struct image_file_place place = images_place(im, s);

	place.exact = true;
	place.until_ns = im->options.jit.recorded_until_ns;
	place.later = jit_sources_is_later(im->jit, s->pid);
	return image_file_find(&place, key, intern_text(&im->answers->texts, key->path), ret_fd);
}

/* What the file of an image is, as the process of s has it. 0 or -ENOMEM. */
static int bundle_identify(const struct images *im, const struct answers_image *key, struct images_source *s)
{
	AUTO_CLOSE int fd = -1;
	int r = bundle_find_file(im, key, s, &fd);

	s->bundle = IMAGES_BUNDLE_UNKNOWN;
	if (!r) {
		r = bundle_identity(fd, &s->bundle_identity);
		s->bundle = r ? IMAGES_BUNDLE_NONE : IMAGES_BUNDLE_IS;
	}
	return r == -ENOMEM ? r : 0;
}

/* Most that many processes map; none is a program with a bundle. */
static bool bundle_is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strstr(slash ? slash : path, ".so");
}

/* Whether a process, of which own is, maps another program than the image's others. 1, 0 or -ENOMEM. */
static int bundle_is_another(struct images *im, const struct answers_image *key, struct images_source *others, struct images_source *own)
{
	int r = 0;

	if (others->bundle == IMAGES_BUNDLE_NONE || others->pid == own->pid || others->bundle_pid == own->pid ||
	    bundle_is_library(intern_text(&im->answers->texts, key->path)))
		return 0;
	if (others->bundle == IMAGES_BUNDLE_UNASKED)
		r = bundle_identify(im, key, others);
	if (!r && others->bundle != IMAGES_BUNDLE_NONE)
		r = bundle_identify(im, key, own);
	if (r || others->bundle == IMAGES_BUNDLE_NONE)
		return r;
	/* It is not asked again for each of its mappings. */
	others->bundle_pid = own->pid;
	if (others->bundle == IMAGES_BUNDLE_UNKNOWN && own->bundle != IMAGES_BUNDLE_IS) {
		others->bundle = own->bundle;
		return 0;
	}
	return others->bundle != own->bundle || others->bundle_identity != own->bundle_identity;
}

int images_tell_bundle(struct images *im, const struct perfdata_record *record, struct answers_image *key)
{
	struct images_source own = {.pid = record->pid, .start = record->mmap.addr, .end = record->mmap.addr + record->mmap.len};
	struct answers_image apart = *key;
	uint32_t image;
	int r;

	/* Inodes tell files apart. */
	if (!key->build_id.len || key->ino || key->pid)
		return 0;
	apart.pid = record->pid;
	/* What was found where it was recorded holds elsewhere too. */
	if (!answers_find_image(im->answers, &apart, &image)) {
		*key = apart;
		return 0;
	}
	if (im->options.has_store || answers_find_image(im->answers, key, &image))
		return 0;
	r = images_reach(im, image);
	if (!r && im->sources.v[image].end)
		r = bundle_is_another(im, key, &im->sources.v[image], &own);
	if (r > 0)
		*key = apart;
	return r < 0 ? r : 0;
}

int images_open_bundle(struct images *im, const struct answers_image *key, struct images_source *s, int fd)
{
	AUTO_CLOSE int exact = -1;
	struct parse_error err;
	uint64_t identity;
	int r = bundle_identity(fd, &identity);

	if (!r) {
		r = bundle_find_file(im, key, s, &exact);
		s->bundle_replaced = r == -ESTALE;
		im->stats.replaced += s->bundle_replaced;
	}
	if (!r)
		r = bundle_open(exact, &s->precompiled, &err);
	return r == -ENOMEM ? r : 0;
}
