#include "symbols/tracker.h"

#include "base/cleanup.h"
#include "container/memory_left.h"
#include "symbols/map_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

/* Maps and images to visit for each record, at most, to find images that no process maps. */
#define TRACKER_VISITS 16

static size_t tracker_limit(uint64_t part, size_t most)
{
	return part > most ? most : part < TRACKER_BYTES_MIN ? TRACKER_BYTES_MIN : (size_t)part;
}

static void tracker_set_limits(struct tracker *t)
{
	uint64_t part =
		(t->options.bytes ? t->options.bytes : memory_left()) / TRACKER_PART_OF_MEMORY;

	t->maps_bytes = tracker_limit(part, PROCESSES_MAPS_BYTES_MAX);
	t->images_bytes_max = tracker_limit(part, t->options.recording ? TRACKER_MAPPED_BYTES_MAX
								       : TRACKER_IMAGES_BYTES_MAX);
}

int tracker_new(const struct tracker_options *options, struct tracker **ret_tracker)
{
	struct tracker *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->options = *options;
	tracker_set_limits(t);
	r = processes_new(&(struct processes_options){.comm = options->comm,
						      .ctx = options->ctx,
						      .maps_bytes = t->maps_bytes},
			  &t->processes);
	if (r)
		tracker_free(t);
	else
		*ret_tracker = t;
	return r;
}

void tracker_free(struct tracker *t)
{
	if (!t)
		return;
	processes_free(t->processes);
	vec_free(&t->places);
	free(t);
}

/* The image of a record, if the options do not provide it. */
static int tracker_image(struct tracker *t, const struct perfdata_record *record,
			 uint32_t *ret_image, bool *ret_anonymous)
{
	const struct map_record_ids none = {0};
	struct lookup_cache *cache = t->options.lookup_cache;
	struct image_key key;
	int r = map_record_key(record, &cache->texts, &none, t->options.opener, &key,
			       ret_anonymous);

	return r ? r : lookup_cache_image(cache, &key, ret_image);
}

/* Counts the memory of a new image for a family. */
static void tracker_count_image(struct tracker *t, const struct tracker_place *place)
{
	struct families *families = processes_families(t->processes);

	t->images_bytes += place->bytes;
	families->v.v[place->family].image_bytes += place->bytes;
	families_enter(families, place->family);
}

/* Takes back the count of an image that is forgotten. */
static void tracker_uncount_image(struct tracker *t, const struct tracker_place *place)
{
	struct families *families = processes_families(t->processes);

	if (!place->family)
		return;
	t->images_bytes -= place->bytes;
	families->v.v[place->family].image_bytes -= place->bytes;
	families_leave(families, place->family);
}

/* Whether a family may bring no more images. */
static bool tracker_is_full(const struct tracker *t, uint32_t family)
{
	return !family_has_room(processes_families(t->processes)->v.v[family].image_bytes,
				t->images_bytes, t->images_bytes_max);
}

/* Copies the images that get a number into a new cache, and sets their numbers. */
static int tracker_copy_images(const struct lookup_cache *old, uint32_t *numbers,
			       struct lookup_cache *fresh)
{
	int r = 0;

	for (uint32_t i = 0; i < old->images.len && !r; i++) {
		struct image_key key = old->images.v[i].key;

		if (numbers[i] == LOOKUP_NONE)
			continue;
		r = intern_put(&fresh->texts, intern_text(&old->texts, key.path),
			       intern_len(&old->texts, key.path), &key.path);
		if (!r)
			r = lookup_cache_image(fresh, &key, &numbers[i]);
	}
	return r;
}

/* Uses the images of `fresh`, whose numbers are at most as large as before. */
static void tracker_renumber(struct tracker *t, const uint32_t *numbers,
			     const struct lookup_cache *fresh)
{
	struct lookup_cache *cache = t->options.lookup_cache;
	struct process_map *map;

	for (uint32_t at = 0; (map = processes_next_map(t->processes, &at));) {
		map->image = numbers[map->image];
		if (map->under != PROCESS_NO_IMAGE)
			map->under = numbers[map->under];
	}
	for (uint32_t i = 0; i < t->places.len; i++)
		if (numbers[i] != LOOKUP_NONE)
			t->places.v[numbers[i]] = t->places.v[i];
		else
			tracker_uncount_image(t, &t->places.v[i]);
	t->places.len = fresh->images.len;
	lookup_cache_free(cache);
	*cache = *fresh;
	t->renumbered++;
}

/* Forgets images that no process maps, or only ended ones. */
static int tracker_forget_images(struct tracker *t)
{
	struct lookup_cache fresh = {0}, *cache = t->options.lookup_cache;
	AUTO_FREE uint32_t *numbers = calloc(cache->images.len, sizeof(*numbers));
	const struct process_map *map;
	int r;

	if (!numbers)
		return -ENOMEM;
	t->records = 0;
	t->visits = cache->images.len;
	processes_forget_ended(t->processes);
	for (size_t i = 0; i < cache->images.len; i++)
		numbers[i] = LOOKUP_NONE;
	for (uint32_t at = 0; (map = processes_next_map(t->processes, &at));) {
		t->visits++;
		numbers[map->image] = 0;
		if (map->under != PROCESS_NO_IMAGE)
			numbers[map->under] = 0;
	}
	r = tracker_copy_images(cache, numbers, &fresh);
	if (r)
		lookup_cache_free(&fresh);
	else
		tracker_renumber(t, numbers, &fresh);
	return r;
}

/*
 * Makes room for the image of a record of a family, which may be new. Returns 0, -E2BIG or -ENOMEM.
 */
static int tracker_make_room(struct tracker *t, uint32_t family,
			     const struct perfdata_record *record)
{
	struct lookup_cache *cache = t->options.lookup_cache;
	const char *name = record->mmap.filename;
	uint32_t path;
	int r = 0;

	t->records++;
	cache->full = tracker_is_full(t, family);
	if (!cache->full)
		return 0;
	if (t->options.recording && t->records >= t->visits / TRACKER_VISITS) {
		r = tracker_forget_images(t);
		cache->full = tracker_is_full(t, family);
	}
	/* An image that is not added needs no text. */
	return r                                                                      ? r
	       : cache->full && intern_find(&cache->texts, name, strlen(name), &path) ? -E2BIG
										      : 0;
}

static int tracker_note_place(struct tracker *t, const struct perfdata_record *record,
			      uint32_t family, uint32_t image)
{
	const struct perfdata_mmap *m = &record->mmap;
	bool fresh = t->places.len <= image;
	struct tracker_place *place;

	while (t->places.len <= image)
		if (vec_push(&t->places, (struct tracker_place){0}))
			return -ENOMEM;
	place = &t->places.v[image];
	if (!place->end) {
		place->pid = record->pid;
		place->start = m->addr;
		place->end = m->addr + m->len;
	}
	if (fresh) {
		place->family = family;
		place->bytes = (uint32_t)(TRACKER_IMAGE_BYTES + strlen(m->filename));
		tracker_count_image(t, place);
	}
	return 0;
}

/* Gets the image of a record, for a family, and notes its place. Returns 0, -E2BIG or -ENOMEM. */
static int tracker_map_image(struct tracker *t, const struct perfdata_record *record,
			     uint32_t family, uint32_t *ret_image, bool *ret_anonymous)
{
	int r = tracker_make_room(t, family, record);

	if (!r)
		r = t->options.image
			    ? t->options.image(t->options.ctx, record, ret_image, ret_anonymous)
			    : tracker_image(t, record, ret_image, ret_anonymous);
	return r ? r : tracker_note_place(t, record, family, *ret_image);
}

static int tracker_map(struct tracker *t, const struct perfdata_record *record)
{
	unsigned int mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct process_map map = {.start = record->mmap.addr,
				  .end = record->mmap.addr + record->mmap.len,
				  .pgoff = record->mmap.pgoff,
				  .image = PROCESS_NO_IMAGE};
	struct families *families = processes_families(t->processes);
	uint32_t family;
	bool anonymous;
	int r;

	if (mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL)
		return 0;
	/* Processes of other PID namespaces; their maps would be mixed, and no EXIT ends them. */
	if (!record->pid && t->options.recording)
		return 0;
	r = processes_family(t->processes, record->pid, record->tid, &family);
	if (r)
		return r;
	/* To make room may forget its processes. */
	families_enter(families, family);
	r = tracker_map_image(t, record, family, &map.image, &anonymous);
	families_leave(families, family);
	if (r == -E2BIG)
		return processes_lose_map(t->processes, record->pid, record->tid, &map);
	return r ? r : processes_map(t->processes, record->pid, record->tid, &map, anonymous);
}

struct tracker_dropped tracker_dropped(const struct tracker *t)
{
	const struct families *families = processes_families(t->processes);

	return (struct tracker_dropped){
		.maps = families->dropped,
		.most_pid = families->most_pid,
		.maps_bytes = t->maps_bytes,
		.images_bytes = t->images_bytes_max,
	};
}

int tracker_apply(struct tracker *t, const struct perfdata_record *record)
{
	int r = 0;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		r = tracker_map(t, record);
		break;
	case PERF_RECORD_COMM:
		r = processes_comm(t->processes, record->pid, record->tid, record->comm.name);
		break;
	case PERF_RECORD_FORK:
		r = processes_fork(t->processes, record->pid, record->tid, record->task.ppid,
				   record->task.ptid, !(record->misc & PERF_RECORD_MISC_FORK_EXEC));
		break;
	case PERF_RECORD_EXIT:
		processes_exit(t->processes, record->tid);
		break;
	default:
		break;
	}
	return r == -ENOMEM ? r : 0;
}
