#include "symbols/live_images.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/memory_left.h"
#include "container/proc.h"
#include "elf/budget.h"
#include "symbols/images.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>

struct live_map {
	uint64_t start, end, pgoff;
	uint32_t image;
};

struct live_images {
	pid_t pid;
	struct lookup_cache cache;
	struct kernel_map kernel;
	struct images *images;
	VEC(struct live_map) maps; /* executable ones of files, in the order of addresses */
};

int live_images_new(struct opener *opener, pid_t pid, struct live_images **ret_images)
{
	struct live_images *l = calloc(1, sizeof(*l));
	const struct images_options options = {.jit = {.capture_dir_fd = -1, .live = true},
					       .no_bounds = true};

	if (!l)
		return -ENOMEM;
	l->pid = pid;
	l->cache.taker = pid;
	/* One process may take half of it. */
	l->cache.names.limit = 2 * (uint64_t)memory_left_eighth(0, SIZE_MAX) + 1;
	int r = images_new(&l->cache, &l->kernel, opener, &options, &l->images);

	if (r)
		live_images_free(l);
	else
		*ret_images = l;
	return r;
}

void live_images_free(struct live_images *l)
{
	if (!l)
		return;
	images_free(l->images);
	lookup_cache_free(&l->cache);
	kernel_map_free(&l->kernel);
	vec_free(&l->maps);
	free(l);
}

/* Adds a map, if it has code of a file. 0 or -ENOMEM. */
static int live_add_map(struct live_images *l, const struct proc_map *m)
{
	const struct perfdata_record record = {
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.time_ns = clock_monotonic_ns(),
		.pid = l->pid,
		.tid = l->pid,
		.mmap = {.addr = m->start,
			 .len = m->end - m->start,
			 .pgoff = m->pgoff,
			 .prot = m->prot,
			 .flags = m->flags,
			 .maj = m->maj,
			 .min = m->min,
			 .ino = m->ino,
			 .filename = m->path},
	};
	struct live_map map = {.start = m->start, .end = m->end, .pgoff = m->pgoff};
	bool anonymous;

	if (!(m->prot & PROT_EXEC) || m->path[0] != '/')
		return 0;
	int r = images_add_record(l->images, &record, &map.image, &anonymous);

	if (!r && l->cache.images.v[map.image].key.kind == IMAGE_KIND_FILE)
		r = vec_push(&l->maps, map);
	return r == -E2BIG ? 0 : r;
}

int live_images_read_maps(struct live_images *l)
{
	AUTO_FREE char *text = NULL;
	struct proc_map map;
	int r = proc_read_maps(l->pid, &text);

	if (r || !*text)
		return r ? r : -ESRCH;
	l->maps.len = 0;
	for (char *cursor = text; !r && proc_map_next(&cursor, &map) > 0;)
		r = live_add_map(l, &map);
	return r;
}

static const struct live_map *live_find_map(const struct live_images *l, uint64_t addr)
{
	size_t low = 0, high = l->maps.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->maps.v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < l->maps.v[low - 1].end ? &l->maps.v[low - 1] : NULL;
}

int live_images_find(struct live_images *l, uint64_t addr, struct live_symbol *ret_symbol)
{
	const struct live_map *map = live_find_map(l, addr);
	uint32_t symbol;
	bool timed;

	if (!map)
		return -ENOENT;
	elf_budget_work_for(l->pid);
	int r = images_lookup(l->images, map->image, addr - map->start + map->pgoff,
			      clock_monotonic_ns(), &symbol, &timed);

	if (r || symbol == LOOKUP_NONE)
		return r == -ENOMEM ? r : -ENOENT;
	const struct lookup_cache_symbol *s = &l->cache.symbols.v[symbol];
	const struct lookup_cache_image *image = &l->cache.images.v[map->image];

	*ret_symbol = (struct live_symbol){
		.start = s->start - map->pgoff + map->start,
		.end = s->end - map->pgoff + map->start,
		.name = intern_text(&l->cache.texts, s->name),
		.name_len = intern_len(&l->cache.texts, s->name),
		.source = s->source,
		.path = intern_text(&l->cache.texts, image->key.path),
	};
	return 0;
}
