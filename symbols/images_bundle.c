/*
 * Single-file .NET programs among images. All have the build id of their host, whatever follows it
 * in the file. So the build id neither distinguishes two programs nor shows that a file is still
 * the one that was mapped.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "symbols/bundle.h"
#include "symbols/images_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/*
 * Finds the mapped file of an image. Returns 0; -ENOENT; -ESTALE: another file is there, or may be;
 * -EACCES, -ENOMEM.
 */
static int bundle_find_file(const struct images *im, const struct image_key *key,
			    const struct images_source *s, int *ret_fd)
{
	struct image_file_place place = images_place(im, s);

	place.exact = true;
	place.elsewhere = im->options.recorded_elsewhere;
	return image_file_find(&place, key, intern_text(&im->lookup_cache->texts, key->path),
			       ret_fd);
}

/* Searches a file for a bundle, once. Returns 0 or -ENOMEM. */
static int bundle_probe(struct images *im, int fd, enum images_bundle *ret_bundle,
			uint64_t *ret_identity)
{
	const uint32_t *place;
	struct stat st;
	int r;

	*ret_bundle = IMAGES_BUNDLE_UNKNOWN;
	if (fstat(fd, &st))
		return 0;
	struct images_bundle_file file = {
		.dev = st.st_dev, .ino = st.st_ino, .changed_ns = clock_timespec_ns(&st.st_ctim)};
	uint64_t key = hash_mix(hash_mix(file.dev, file.ino), file.changed_ns);

	for (; (place = hashmap_get(&im->bundle_file_ids, key)); key++) {
		const struct images_bundle_file *known = &im->bundle_files.v[*place];

		if (known->dev != file.dev || known->ino != file.ino ||
		    known->changed_ns != file.changed_ns)
			continue;
		*ret_bundle = known->is_bundle ? IMAGES_BUNDLE_IS : IMAGES_BUNDLE_NONE;
		*ret_identity = known->identity;
		return 0;
	}
	r = bundle_identity(fd, &file.identity);
	if (r && r != -ENOENT)
		return r == -ENOMEM ? r : 0;
	file.is_bundle = !r;
	if (vec_push(&im->bundle_files, file))
		return -ENOMEM;
	*ret_bundle = file.is_bundle ? IMAGES_BUNDLE_IS : IMAGES_BUNDLE_NONE;
	*ret_identity = file.identity;
	return hashmap_put(&im->bundle_file_ids, key, (uint32_t)im->bundle_files.len - 1);
}

/*
 * Sets bundle and bundle_identity of the image's file, as the process of s has it. Returns 0 or
 * -ENOMEM.
 */
static int bundle_identify(struct images *im, const struct image_key *key, struct images_source *s)
{
	AUTO_CLOSE int fd = -1;
	int r = bundle_find_file(im, key, s, &fd);

	s->bundle = IMAGES_BUNDLE_UNKNOWN;
	if (!r)
		r = bundle_probe(im, fd, &s->bundle, &s->bundle_identity);
	return r == -ENOMEM ? r : 0;
}

/* Many processes map libraries, and none of them holds a bundle. */
static bool bundle_is_library(const char *path)
{
	size_t len = strlen(path), tail = strlen(".so");

	return (len > tail && !strcmp(path + len - tail, ".so")) || strstr(path, ".so.");
}

/*
 * Whether the process of own maps another program than the image's first process. 1, 0 or -ENOMEM.
 */
static int bundle_differs(struct images *im, const struct image_key *key, uint32_t image,
			  struct images_source *own)
{
	struct images_source *first = &im->sources.v[image];
	uint64_t same_key = (uint64_t)image << 32 | (uint32_t)own->pid;
	int r = 0;

	if (first->bundle == IMAGES_BUNDLE_NONE || first->pid == own->pid ||
	    hashmap_get(&im->same_bundles, same_key) ||
	    bundle_is_library(intern_text(&im->lookup_cache->texts, key->path)))
		return 0;
	if (first->bundle == IMAGES_BUNDLE_NOT_SEARCHED)
		r = bundle_identify(im, key, first);
	if (!r && first->bundle != IMAGES_BUNDLE_NONE)
		r = bundle_identify(im, key, own);
	if (r || first->bundle == IMAGES_BUNDLE_NONE)
		return r;
	/* If the first file is gone, assume that it was of the same kind as this one. */
	if (first->bundle == IMAGES_BUNDLE_UNKNOWN && own->bundle == IMAGES_BUNDLE_NONE)
		first->bundle = IMAGES_BUNDLE_NONE;
	if (first->bundle == own->bundle &&
	    (own->bundle != IMAGES_BUNDLE_IS || first->bundle_identity == own->bundle_identity))
		return hashmap_put(&im->same_bundles, same_key, 1);
	return 1;
}

int images_separate_bundle(struct images *im, const struct perfdata_record *record,
			   struct image_key *key)
{
	struct images_source own = {.pid = record->pid,
				    .start = record->mmap.addr,
				    .end = record->mmap.addr + record->mmap.len,
				    .mapped_ns = record->time_ns};
	struct image_key apart = *key;
	uint32_t image;
	int r;

	/* With inodes, files are already distinct. */
	if (!key->build_id.len || key->ino || key->pid)
		return 0;
	apart.pid = record->pid;
	/* Facts found on the machine of the recording hold on others too. */
	if (!lookup_cache_find_image(im->lookup_cache, &apart, &image)) {
		*key = apart;
		return 0;
	}
	if (!im->options.jit.live || im->options.has_store ||
	    lookup_cache_find_image(im->lookup_cache, key, &image))
		return 0;
	r = images_add_source(im, image);
	if (!r && im->sources.v[image].end)
		r = bundle_differs(im, key, image, &own);
	if (r > 0)
		*key = apart;
	return r < 0 ? r : 0;
}

/* Takes the provider of another image that is the same program. */
static bool bundle_share(struct images *im, struct images_source *s)
{
	for (size_t i = 0; i < im->sources.len; i++) {
		const struct images_source *other = &im->sources.v[i];

		if (other == s || !other->precompiled || other->bundle != IMAGES_BUNDLE_IS ||
		    other->bundle_identity != s->bundle_identity)
			continue;
		s->precompiled = other->precompiled;
		s->precompiled_shared = true;
		return true;
	}
	return false;
}

int images_open_bundle(struct images *im, const struct image_key *key, struct images_source *s,
		       int fd)
{
	AUTO_CLOSE int exact = -1;
	enum images_bundle there;
	struct parse_error err;
	uint64_t identity;
	int r = bundle_probe(im, fd, &there, &identity);

	if (r || there == IMAGES_BUNDLE_NONE)
		return r;
	r = bundle_find_file(im, key, s, &exact);
	if (!r)
		r = bundle_probe(im, exact, &s->bundle, &s->bundle_identity);
	if (r || s->bundle == IMAGES_BUNDLE_NONE)
		return r;
	if (s->bundle == IMAGES_BUNDLE_IS && bundle_share(im, s))
		return 0;
	r = bundle_open(exact, &s->precompiled, &err);
	/* A damaged bundle, or one of an unknown version, counts as none. */
	return r == -EBADMSG || r == -ENOTSUP || r == -E2BIG || r == -ENOENT ? 0 : r;
}
