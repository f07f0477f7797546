#include "symbols/images_impl.h"

#include "base/cleanup.h"
#include "base/descriptor_budget.h"
#include "base/hash.h"
#include "base/path.h"
#include "container/vdso.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/sources.h"
#include "symbols/r2r_image.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define IMAGES_FILES_PART 4 /* of the limit of open files, for those of images */

static jit_sources_open_fn images_open_marker;

int images_new(struct lookup_cache *lookup_cache, struct kernel_map *kernel, struct opener *opener,
	       const struct images_options *options, struct images **ret_images)
{
	struct images *im = calloc(1, sizeof(*im));

	if (!im)
		return -ENOMEM;
	im->lookup_cache = lookup_cache;
	im->kernel = kernel;
	im->opener = opener;
	im->options = *options;
	im->pdb_budget_total = pdb_budget_all();
	im->options.jit.counted = lookup_cache;
	im->files_max = descriptor_budget_raise() / IMAGES_FILES_PART;
	int r = jit_sources_new(&im->options.jit, opener, images_open_marker, im, &im->jit);

	if (r)
		images_free(im);
	else
		*ret_images = im;
	return r;
}

void images_free(struct images *im)
{
	if (!im)
		return;
	for (size_t i = 0; i < im->sources.len; i++) {
		if (im->sources.v[i].fd >= 0)
			close(im->sources.v[i].fd);
		line_source_free(im->sources.v[i].lines);
		im->sources.v[i].lines = NULL;
		images_source_close(&im->sources.v[i]);
	}
	for (size_t i = 0; i < im->pdbs.len; i++)
		free(im->pdbs.v[i].name);
	vec_free(&im->pdbs);
	for (size_t i = 0; i < im->process_budgets.len; i++)
		free(im->process_budgets.v[i]);
	vec_free(&im->process_budgets);
	hashmap_free(&im->budget_of);
	opener_free(im->alone);
	jit_sources_free(im->jit);
	vec_free(&im->sources);
	map_record_ids_free(&im->header_ids);
	hashmap_free(&im->by_name);
	hashmap_free(&im->jit_ids);
	hashmap_free(&im->bounds_ids);
	vec_free(&im->open_files);
	vec_free(&im->held);
	hashmap_free(&im->held_kib);
	vec_free(&im->bundle_files);
	hashmap_free(&im->bundle_file_ids);
	hashmap_free(&im->same_bundles);
	free(im);
}

struct images_stats images_stats(const struct images *im)
{
	struct images_stats stats = im->stats;

	stats.jit = jit_sources_stats(im->jit);
	stats.pdbs_refused = im->pdb_budget_total.refused;
	stats.first_refused = im->pdb_budget_total.first;
	return stats;
}

int images_build_id(struct images *im, const char *path, const struct perfdata_build_id *id)
{
	uint32_t text;
	int r = intern_str(&im->lookup_cache->texts, path, &text);

	return r ? r : map_record_ids_put(&im->header_ids, text, id);
}

int images_add_source(struct images *im, uint32_t image)
{
	struct images_source fresh = {.fd = -1};

	while (im->sources.len <= image)
		if (vec_push(&im->sources, fresh))
			return -ENOMEM;
	return 0;
}

static uint64_t images_name_key(int32_t pid, const char *name)
{
	return hash_mix(hash_bytes(name, strlen(name)), (uint32_t)pid);
}

/* Adds an image to the list of those that its process mapped from files of this name. */
static int images_add_name(struct images *im, uint32_t image)
{
	struct images_source *s = im->sources.v;
	const char *path =
		intern_text(&im->lookup_cache->texts, im->lookup_cache->images.v[image].key.path);
	uint64_t key = images_name_key(s[image].pid, path_base(path));
	uint32_t *first;
	int r = hashmap_entry(&im->by_name, key, image, &first, NULL);

	if (r)
		return r;
	if (*first != image)
		s[s[*first].last_of_name - 1].next_of_name = image + 1;
	s[*first].last_of_name = image + 1;
	return 0;
}

int images_add_record(struct images *im, const struct perfdata_record *record, uint32_t *ret_image,
		      bool *ret_anonymous)
{
	const struct perfdata_mmap *m = &record->mmap;
	struct image_key key;
	uint32_t jitdump_pid;
	int r = map_record_key(record, &im->lookup_cache->texts, &im->header_ids, im->opener, &key,
			       ret_anonymous);
	bool code_file = !r && key.kind == IMAGE_KIND_FILE && map_record_is_executable(record);

	if (code_file)
		r = images_separate_bundle(im, record, &key);
	if (!r)
		r = lookup_cache_image(im->lookup_cache, &key, ret_image);
	if (!r)
		r = images_add_source(im, *ret_image);
	if (r)
		return r;
	if (code_file && jitdump_is_name(m->filename, &jitdump_pid))
		r = jit_sources_add_jitdump(im->jit, record->pid, jitdump_pid, *ret_image);
	if (!im->sources.v[*ret_image].end) {
		im->sources.v[*ret_image].pid = record->pid;
		im->sources.v[*ret_image].start = m->addr;
		im->sources.v[*ret_image].end = m->addr + m->len;
		im->sources.v[*ret_image].mapped_ns = record->time_ns;
		if (!r && key.kind == IMAGE_KIND_FILE) {
			im->sources.v[*ret_image].runtime = jit_runtime_of(m->filename);
			r = images_add_name(im, *ret_image);
		}
	}
	return r;
}

/* CLOCK_REALTIME of the time when the file was mapped, or later; 0: not known. */
static uint64_t images_mapped_ns(const struct images *im, const struct images_source *s)
{
	const struct images_options *o = &im->options;

	if (o->jit.untimed || !o->recorded_from_ns)
		return o->jit.recorded_until_ns;
	return o->recorded_from_ns + (s->mapped_ns > o->from_ns ? s->mapped_ns - o->from_ns : 0);
}

struct image_file_place images_place(const struct images *im, const struct images_source *s)
{
	struct image_file_place place = {
		.opener = im->opener, .pid = s->pid, .start = s->start, .end = s->end};

	place.mapped_ns = images_mapped_ns(im, s);
	place.has_uid = jit_sources_user(im->jit, s->pid, &place.uid);
	place.other_root = jit_sources_in_other_root(im->jit, s->pid);
	place.later = jit_sources_pid_is_reused(im->jit, s->pid, s->mapped_ns);
	return place;
}

enum jit_runtime images_runtime(const struct images *im, uint32_t image)
{
	return im->sources.v[image].runtime;
}

int images_find_file(const struct images *im, const struct image_key *key,
		     const struct images_source *s, int *ret_fd)
{
	struct image_file_place place = images_place(im, s);

	return image_file_find(&place, key, intern_text(&im->lookup_cache->texts, key->path),
			       ret_fd);
}

/* Keeps the open file of an image, instead of an earlier one if there are many. Takes fd. */
static int images_keep_file(struct images *im, uint32_t image, int fd)
{
	if (im->open_files.len < im->files_max || !im->open_files.len) {
		if (vec_push(&im->open_files, image)) {
			close(fd);
			return -ENOMEM;
		}
	} else {
		uint32_t *earlier = &im->open_files.v[im->next_file++ % im->open_files.len];

		close(im->sources.v[*earlier].fd);
		im->sources.v[*earlier].fd = -1;
		*earlier = image;
	}
	im->sources.v[image].fd = fd;
	return 0;
}

int images_file(struct images *im, uint32_t image, int *ret_fd)
{
	const struct images_source *s = &im->sources.v[image];
	int fd, r = 0;

	if (s->fd < 0) {
		r = images_find_file(im, &im->lookup_cache->images.v[image].key, s, &fd);
		if (!r)
			r = images_keep_file(im, image, fd);
	}
	if (!r)
		*ret_fd = s->fd;
	return r;
}

int images_headers(struct images *im, uint32_t image, struct elf_file *ret_file)
{
	int fd, r = images_file(im, image, &fd);

	return r ? r : elf_file_open(ret_file, fd, NULL, 0, NULL);
}

int images_open_again(struct images *im, uint32_t image, int *ret_fd)
{
	int fd = -1, r = images_add_source(im, image);

	if (!r)
		r = images_file(im, image, &fd);
	if (!r)
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!r && fd < 0)
		r = -errno;
	if (!r)
		*ret_fd = fd;
	return r;
}

/*
 * jit_sources_open_fn: opens the jitdump that a process has mapped, if it is still the same file.
 */
static int images_open_marker(void *ctx, uint32_t image, int *ret_fd)
{
	struct images *im = ctx;
	const struct image_key *key = &im->lookup_cache->images.v[image].key;

	return images_find_file(im, key, &im->sources.v[image], ret_fd);
}

/*
 * Limits for hostile images, which can refer to many assemblies, and processes, which can map many
 * files of one name. All images of .NET 10 with ASP.NET Core need a few thousand.
 */
#define IMAGES_BESIDE_SAME_NAME 16
#define IMAGES_BESIDE_OPENS_MAX 32768

int images_open_beside(void *ctx, const char *name, struct pe_file *ret_file)
{
	const struct images_beside *beside = ctx;
	struct images *im = beside->images;
	struct image_file_place place = images_place(im, &im->sources.v[beside->image]);
	const char *path = intern_text(&im->lookup_cache->texts,
				       im->lookup_cache->images.v[beside->image].key.path);
	const char *slash = strrchr(path, '/');
	char other[PATH_MAX];
	struct stat st;
	int fd = -1, r = -ENOENT, tries = 0;

	if (im->beside_opens++ >= IMAGES_BESIDE_OPENS_MAX)
		return -E2BIG;
	if (slash && snprintf(other, sizeof(other), "%.*s/%s", (int)(slash - path), path, name) <
			     (int)sizeof(other))
		r = image_file_open(&place, other, &fd);
	const uint32_t *first = hashmap_get(&im->by_name, images_name_key(place.pid, name));

	for (uint32_t i = first ? *first + 1 : 0;
	     r && r != -ENOMEM && i && tries < IMAGES_BESIDE_SAME_NAME;
	     i = im->sources.v[i - 1].next_of_name) {
		const struct image_key *key = &im->lookup_cache->images.v[i - 1].key;

		/* Names and processes can share a hash. */
		if (im->sources.v[i - 1].pid != place.pid ||
		    strcmp(path_base(intern_text(&im->lookup_cache->texts, key->path)), name) != 0)
			continue;
		tries++;
		im->beside_opens++;
		r = images_find_file(im, key, &im->sources.v[i - 1], &fd);
	}
	if (r)
		return r;
	*ret_file = (struct pe_file){fd, 0, fstat(fd, &st) ? 0 : (uint64_t)st.st_size};
	return 0;
}

bool images_make_room_beside(void *ctx)
{
	const struct images_beside *beside = ctx;

	return images_make_room(beside->images, beside->image);
}

/*
 * Opens .NET code that was compiled ahead: in a PE image, or in assemblies that an ELF program
 * carries.
 *
 * Returns 0; -EBADMSG: no PE image with such code; -ESTALE, -ENOENT, -EACCES: the mapped program
 * itself cannot be opened; -errno.
 */
static int images_open_precompiled(struct images *im, const struct image_key *key,
				   struct images_source *s, int fd)
{
	struct r2r_assembly_opener beside = {.open = images_open_beside,
					     .make_room = images_make_room_beside};
	struct pe_file file = {.fd = fd};
	struct parse_error err;
	struct stat st;

	if (s->elf)
		return images_open_bundle(im, key, s, fd);
	beside.ctx = s->beside = malloc(sizeof(*s->beside));
	if (!s->beside)
		return -ENOMEM;
	*s->beside = (struct images_beside){im, (uint32_t)(s - im->sources.v)};
	if (fstat(fd, &st))
		return -errno;
	file.bytes = (uint64_t)st.st_size;
	return r2r_image_open(&file, &beside, &s->precompiled, &err);
}

size_t images_roots(struct images *im, const struct images_source *s, const struct elf_file *file,
		    struct opener_place roots[2])
{
	struct image_file_place place = images_place(im, s);
	struct opener_place own = {.pid = place.later ? 0 : s->pid, .own = true};
	struct build_id id;
	size_t n = 0;
	int root;

	own.by_uid = place.has_uid || !geteuid() || elf_file_build_id(file, &id) || !id.len;
	own.uid = place.has_uid ? opener_past_uid(place.uid) : OPENER_NOBODY;
	own.no_links = own.uid == OPENER_NOBODY;
	own.other_root = place.other_root;

	if (!im->opener && !im->alone)
		(void)opener_new(&im->alone);

	if (im->opener && !place.later && !opener_root(im->opener, s->pid, &root))
		roots[n++] = (struct opener_place){.opener = im->opener, .pid = s->pid};
	own.opener = im->opener ? im->opener : im->alone;
	if (own.opener)
		roots[n++] = own;
	return n;
}

void images_note_why(struct images *im, const struct image_key *key, enum image_reason why)
{
	struct lookup_cache_image *image =
		&im->lookup_cache->images
			 .v[(const struct lookup_cache_image *)key - im->lookup_cache->images.v];

	/* Its names are known; this lookup is for lines only. */
	if (im->options.has_store && !image->wanted)
		return;
	if (!why || !image->why ||
	    (image->why == IMAGE_REASON_DENIED && why == IMAGE_REASON_REPLACED))
		image->why = (uint8_t)why;
}

/* Why a file could not be found. */
static enum image_reason images_reason_not_found(int error)
{
	switch (error) {
	case -ESTALE:
		return IMAGE_REASON_REPLACED;
	case -EACCES:
		return IMAGE_REASON_DENIED;
	case -EXDEV:
		return IMAGE_REASON_FILE_SYSTEM;
	case -ETIME:
		return IMAGE_REASON_NO_ANSWER;
	case -EFBIG:
	case -E2BIG:
		return IMAGE_REASON_TOO_LARGE;
	default:
		return IMAGE_REASON_GONE;
	}
}

/* Why a file that was found gives no names. */
static enum image_reason images_reason_unread(int error)
{
	return error == -ESTALE || error == -EACCES || error == -ENOENT || error == -EXDEV ||
			       error == -ETIME || error == -EFBIG || error == -E2BIG
		       ? images_reason_not_found(error)
		       : IMAGE_REASON_UNREADABLE;
}

/* Why a file that could be read gives no names. */
static enum image_reason images_reason_nameless(const char *path, const struct images_source *s)
{
	const char *dot = strrchr(path, '.');

	if (s->precompiled)
		return IMAGE_REASON_NONE;
	if (s->elf && (s->elf->has_symtab || s->elf->debug_place))
		return IMAGE_REASON_NONE;
	if (s->elf)
		return s->elf->debug_denied   ? IMAGE_REASON_DEBUG_DENIED
		       : s->elf->native_aot   ? IMAGE_REASON_NO_DBG
		       : s->elf->build_id.len ? IMAGE_REASON_NONE
					      : IMAGE_REASON_NO_SYMBOLS;
	return dot && (!strcmp(dot, ".dll") || !strcmp(dot, ".exe")) ? IMAGE_REASON_NO_R2R
								     : IMAGE_REASON_NO_FORMAT;
}

/* Opens the symbols of an image's file, or of perf's copy. Errors: as for images_headers. */
static int images_open_elf(struct images *im, uint32_t image, const char *path, int cached)
{
	struct images_source *s = &im->sources.v[image];
	struct opener_place roots[2];
	struct elf_file file;
	int r = cached < 0 ? images_headers(im, image, &file)
			   : elf_file_open(&file, cached, NULL, 0, NULL);

	if (r)
		return r;
	r = image_open(&file, path, roots, images_roots(im, s, &file, roots), &s->elf);
	elf_file_close(&file);
	return r;
}

/*
 * Opens all symbols of an image's file. Frees those of other images if there is too little memory.
 * Errors: as for images_open_elf and images_open_precompiled. *ret_over_limit: not all fit.
 */
static int images_open_symbols(struct images *im, uint32_t image, const char *path, int fd,
			       int cached, bool *ret_over_limit)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;
	struct images_source *s = &im->sources.v[image];
	int r;

	images_keep_room(im, image);
	do {
		images_source_close(s);
		r = images_open_elf(im, image, path, cached);
		/* No memory is enough for headers over a limit. */
		bool is_over = r == -E2BIG;

		/* Without the file, perf's copy shows whether it had precompiled code too. */
		if ((fd >= 0 || s->elf) && (!r || r == -EBADMSG))
			r = images_open_precompiled(im, key, s, fd < 0 ? cached : fd);
		*ret_over_limit = r == -ENOMEM || (r == -E2BIG && !is_over) ||
				  (!r && s->elf && s->elf->symbols_error == -E2BIG);
	} while (*ret_over_limit && images_make_most_room(im, image));
	return r;
}

static int images_open_file(struct images *im, uint32_t image)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;
	struct images_source *s = &im->sources.v[image];
	const char *path = intern_text(&im->lookup_cache->texts, key->path);
	AUTO_CLOSE int cached = -1;
	bool over_limit = false, was_unread = s->unread;

	if (!images_may_reopen(s)) {
		im->stats.missing += !was_unread;
		s->unread = true;
		images_note_why(im, key, IMAGE_REASON_MEMORY);
		return 0;
	}
	int fd = -1, r = images_file(im, image, &fd);

	if (r == -ENOMEM)
		return r;
	cached = image_file_perf_cache(key, fd);
	if (fd < 0 && cached < 0) {
		im->stats.replaced += r == -ESTALE;
		im->stats.missing += r != -ESTALE;
		s->unread = true;
		images_note_why(im, key, images_reason_not_found(r));
		return 0;
	}
	r = images_open_symbols(im, image, path, fd, cached, &over_limit);
	im->stats.opened += !r && !s->opened;
	s->opened |= !r;
	/* Names that were read are kept; those that are missing may come with more memory. */
	s->unread = over_limit || (r && r != -EBADMSG && r != -ENOTSUP);
	im->stats.replaced += r == -ESTALE;
	im->stats.missing += s->unread && !was_unread && r != -ESTALE;
	images_note_why(im, key,
			over_limit  ? IMAGE_REASON_MEMORY
			: s->unread ? images_reason_unread(r)
				    : images_reason_nameless(path, s));
	return 0;
}

/* Keeps the data to name the image later, if its symbols are elsewhere. */
static int images_note_stripped(struct images *im, uint32_t image)
{
	const struct image *elf = im->sources.v[image].elf;

	if (!elf || elf->has_symtab || elf->debug_place || !elf->build_id.len)
		return 0;
	return lookup_cache_stripped(im->lookup_cache, image, &elf->build_id, elf->segments,
				     elf->nsegments);
}

/* Opens a vdso, if the running kernel is the recorded one. */
static int images_open_vdso(struct images *im, const struct image_key *key, struct images_source *s)
{
	const struct build_id *header = map_record_ids_get(&im->header_ids, key->path);
	struct parse_error err;
	const void *data;
	size_t len;
	int r = header ? 1 : kernel_map_is_running(im->kernel);

	if (r <= 0 || vdso_find(intern_text(&im->lookup_cache->texts, key->path), &data, &len))
		return r < 0 ? r : 0;
	r = image_from_memory(data, len, SYMBOL_VDSO, &s->elf, &err);
	if (r)
		return r == -ENOMEM ? r : 0;
	if (header && memcmp(header, &s->elf->build_id, sizeof(s->elf->build_id))) {
		image_free(s->elf);
		s->elf = NULL;
		im->stats.replaced++;
	}
	return 0;
}

int images_open(struct images *im, uint32_t image)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;
	struct images_source *s = &im->sources.v[image];
	int r = 0;

	if (s->tried)
		return 0;
	if (key->kind == IMAGE_KIND_FILE) {
		r = images_open_file(im, image);
		if (!r)
			r = images_note_stripped(im, image);
		if (!r)
			r = images_hold(im, image);
	} else if (key->kind == IMAGE_KIND_VDSO) {
		r = images_open_vdso(im, key, s);
	}
	/* A source that was refused to be read again may be read later. */
	s->tried = r != -ENOMEM && !s->freed_bytes;
	return r;
}

int images_note_processes(struct images *im)
{
	return jit_sources_note(im->jit, im->lookup_cache);
}

void images_jit_way(const struct images *im, int32_t pid, char *text, size_t len)
{
	const struct lookup_cache_process *process =
		lookup_cache_find_process(im->lookup_cache, pid);
	const char *way = jit_sources_way(im->jit, pid);

	if (!way && process && process->way != LOOKUP_NONE)
		way = intern_text(&im->lookup_cache->texts, process->way);
	snprintf(text, len, "%s", way ? way : "");
}

bool images_has_closed(const struct images *im, uint32_t image)
{
	return jit_sources_has_closed(im->jit, im->lookup_cache->images.v[image].key.pid);
}

bool images_is_captured(const struct images *im, uint32_t image)
{
	return jit_sources_has_capture(im->jit, im->lookup_cache->images.v[image].key.pid);
}
