/*
 * The images of an unwinder: they are opened when a sample needs them, and closed again. Memory and
 * descriptors limit how many are open. Each process gets a share of them: when too many are open,
 * one that holds fewer than others takes the place of an image of the process that holds most. The
 * latter does not get it back, so that images are not opened again and again.
 */
#include "unwind/unwinder_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptor_budget.h"
#include "base/file.h"
#include "base/hash.h"
#include "container/vdso.h"
#include "elf/budget.h"

#include <errno.h>
#include <unistd.h>

#define RESERVED_DESCRIPTORS 64 /* descriptors that images leave for other uses */
#define CLOSE_CHOICES 8         /* images of which the one that was used least recently is closed */

/*
 * While recording, rings wait for images that are opened. They may take OPEN_BURST_NS at once, and
 * a part of the time. As much again is for processes whose images took less than OPEN_SMALL_US in
 * all.
 */
#define OPEN_BURST_NS (NS_PER_S / 2)
#define OPEN_PART 4
#define OPEN_SMALL_US 20000

static void close_code(struct unwinder *u, struct unwind_image *image)
{
	uint32_t *held = image->code ? hashmap_get(&u->held, (uint32_t)image->holder) : NULL;

	if (held && image->holder == u->most_holder)
		u->most_held = 0;
	if (held && !--*held)
		hashmap_remove(&u->held, (uint32_t)image->holder);
	image_code_free(image->code);
	image->code = NULL;
	image->tried = false;
	image->refused = false;
	image->late = false;
}

void unwinder_close_images(struct unwinder *u)
{
	unwinder_drop_libdw(u);
	for (size_t i = 0; i < u->images.len; i++)
		close_code(u, &u->images.v[i]);
	u->images.len = 0;
}

static void note_held(struct unwinder *u, int32_t pid, uint32_t held)
{
	if (held <= u->most_held)
		return;
	u->most_held = held;
	u->most_holder = pid;
}

/*
 * The process that holds most images, if the sampled one has fewer also with one of those. Each
 * frame in a refused image calls this, so it searches only after that process lost an image.
 */
static bool find_holder(struct unwinder *u, int32_t *ret_pid)
{
	const uint32_t *own = hashmap_get(&u->held, (uint32_t)u->thread->pid);

	if (!u->most_held && u->held.len)
		for (size_t i = 0; i < u->held.nslots; i++)
			if (u->held.slots[i].used)
				note_held(u, (int32_t)u->held.slots[i].key, u->held.slots[i].value);
	if (u->most_held <= (own ? *own + 1 : 1))
		return false;
	*ret_pid = u->most_holder;
	return true;
}

/* Closes an image of the process that holds most, for one of the sampled process. */
static bool make_room(struct unwinder *u)
{
	struct unwind_image *oldest = NULL;
	int32_t pid;

	if (!find_holder(u, &pid))
		return false;
	for (size_t i = 0, seen = 0; i < u->images.len && seen < CLOSE_CHOICES; i++) {
		struct unwind_image *image = &u->images.v[u->close_next++ % u->images.len];

		if (!image->code || image->holder != pid)
			continue;
		seen++;
		if (!oldest || image->used_ns < oldest->used_ns)
			oldest = image;
	}
	if (oldest)
		close_code(u, oldest);
	return oldest;
}

const struct image_key *unwinder_key(const struct unwinder *u, uint32_t image)
{
	return &u->tracker->options.lookup_cache->images.v[image].key;
}

const char *unwinder_path(const struct unwinder *u, const struct image_key *key)
{
	return intern_text(&u->tracker->options.lookup_cache->texts, key->path);
}

/* Opens the vdso of the running kernel. */
static int open_vdso(struct unwinder *u, const struct image_key *key, struct unwind_image *image)
{
	const char *name = unwinder_path(u, key);
	const void *data;
	size_t len;

	if (u->options.recorded_elsewhere || strcmp(name, "[vdso]") != 0 ||
	    vdso_find(name, &data, &len))
		return 0;
	return image_code_from_memory(data, len, &image->code);
}

static int find_file_at(struct unwinder *u, const struct image_key *key,
			const struct tracker_place *place, int *ret_fd)
{
	const struct image_file_place at = {.opener = u->options.opener,
					    .pid = place->pid,
					    .start = place->start,
					    .end = place->end,
					    .only_rules = true};

	return image_file_find(&at, key, unwinder_path(u, key), ret_fd);
}

/* Opens the file of an image in its first process, else the sampled one; else perf's copy. */
static int find_file(struct unwinder *u, uint32_t number, const struct process_map *map,
		     int *ret_fd)
{
	struct unwind_image *image = &u->images.v[number];
	const struct image_key *key = unwinder_key(u, number);
	const struct tracker_place sampled = {
		.pid = u->thread->pid, .start = map->start, .end = map->end};
	int cached, r;

	if (!image->place.end)
		image->place = u->tracker->places.v[number];
	r = u->options.open_file ? u->options.open_file(u->options.ctx, number, ret_fd)
				 : find_file_at(u, key, &image->place, ret_fd);
	if (!r || r == -ENOMEM)
		return r;
	if (u->options.opener && sampled.pid != image->place.pid) {
		r = find_file_at(u, key, &sampled, ret_fd);
		if (!r)
			image->place = sampled;
	}
	if (!r || r == -ENOMEM || r == -EMFILE || (cached = image_file_perf_cache(key, -1)) < 0)
		return r;
	*ret_fd = cached;
	return 0;
}

int unwinder_open_file(struct unwinder *u, uint32_t number, const struct process_map *map,
		       int *ret_fd)
{
	int fd = -1, tries = 2, r;

	/*
	 * Each image in use keeps one or two descriptors open. Leave some for the end of the
	 * recording.
	 */
	do {
		r = find_file(u, number, map, &fd);
		if (!r && descriptor_budget_above(fd) < RESERVED_DESCRIPTORS) {
			close(fd);
			r = -EMFILE;
		}
	} while (r == -EMFILE && --tries && make_room(u));
	if (!r)
		*ret_fd = fd;
	return r;
}

void unwinder_count_image(struct unwinder *u, struct unwind_image *image, bool missing,
			  enum recording_limit limit)
{
	image->limit = (uint8_t)limit;
	u->has_limited |= limit < LIMITS;
	u->stats.images += !image->counted;
	u->stats.images_missing += missing && !image->missing;
	image->counted = true;
	image->missing |= missing;
}

static int open_file(struct unwinder *u, uint32_t number, const struct process_map *map)
{
	int fd = -1, r = unwinder_open_file(u, number, map, &fd);

	if (!r && (r = image_code_open(fd, &u->images.v[number].code)))
		close(fd);
	return r;
}

/* Counts an open image as one of the sampled process. Returns 0; -ENOMEM, which closes it. */
static int hold(struct unwinder *u, struct unwind_image *image)
{
	uint32_t *held;
	int r = hashmap_entry(&u->held, (uint32_t)u->thread->pid, 0, &held, NULL);

	if (r) {
		image_code_free(TAKE_PTR(image->code));
		return r;
	}
	image->holder = u->thread->pid;
	++*held;
	if (u->most_held)
		note_held(u, image->holder, *held);
	return 0;
}

/* The time that images of the sampled process have taken. */
static uint32_t *opening_us(struct unwinder *u)
{
	return &u->opening.us[hash_u64((uint32_t)u->thread->pid) % UNWINDER_PLACES];
}

/* Whether there is time to open an image for the sampled process. */
static bool has_time_to_open(struct unwinder *u)
{
	if (!u->own_tracker)
		return true;
	uint64_t debt_ns = time_budget_debt(&u->opening.all, u->time_ns, OPEN_PART);

	return debt_ns < OPEN_BURST_NS ||
	       (debt_ns < 2 * OPEN_BURST_NS && *opening_us(u) < OPEN_SMALL_US);
}

static void note_opening(struct unwinder *u, uint64_t took_ns)
{
	u->opening.all.debt_ns += took_ns;
	*opening_us(u) += (uint32_t)(took_ns / 1000);
}

/* Opens an image for the sampled process. Returns 0, also without code; -ENOMEM. */
static int open_code(struct unwinder *u, uint32_t number, const struct process_map *map)
{
	const struct image_key *key = unwinder_key(u, number);
	struct unwind_image *image = &u->images.v[number];
	uint64_t begin_ns = clock_monotonic_ns();
	int r = 0;

	image->late = !has_time_to_open(u);
	bool full = image->late ||
		    (elf_budget_left(ELF_BUDGET_IMAGES) < IMAGE_CODE_BYTES && !make_room(u));

	if (!full)
		r = key->kind == IMAGE_KIND_FILE ? open_file(u, number, map)
						 : open_vdso(u, key, image);
	if (image->code)
		r = hold(u, image);
	image->refused = (full && !image->late) || r == -EMFILE;
	note_opening(u, clock_monotonic_ns() - begin_ns);
	if (key->kind == IMAGE_KIND_FILE || full)
		unwinder_count_image(u, image, !image->code && !full,
				     full           ? LIMIT_FILE_SIZE
				     : r == -EMFILE ? LIMIT_OPEN_FILES
						    : LIMITS);
	return r == -ENOMEM ? r : 0;
}

struct unwind_image *unwinder_image(struct unwinder *u, uint32_t number)
{
	while (u->images.len <= number)
		if (vec_push(&u->images, (struct unwind_image){.limit = LIMITS}))
			return NULL;
	return &u->images.v[number];
}

/* The time from then to now; 0 if then is later, because samples of two CPUs may be out of order.
 */
static uint64_t passed_ns(uint64_t now_ns, uint64_t then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/*
 * Rules, and bytes of files, are made or read again when they are needed. The caches have copies of
 * rules.
 */
static void forget_over_budget(struct unwinder *u)
{
	bool rules = elf_budget_is_low(ELF_BUDGET_RULES);

	for (size_t i = 0; i < u->images.len && (rules || !elf_budget_left(ELF_BUDGET_PAGES)); i++)
		image_code_forget(u->images.v[i].code, rules);
}

void unwinder_sweep_images(struct unwinder *u)
{
	/* Images that samples still need are opened again by their new numbers. */
	if (u->renumbered != u->tracker->renumbered)
		unwinder_close_images(u);
	u->renumbered = u->tracker->renumbered;
	forget_over_budget(u);
	/* Count samples too, so that the cost for each stays constant. */
	if (u->unswept++ < u->images.len ||
	    passed_ns(u->time_ns, u->swept_ns) < UNWINDER_IMAGE_IDLE_NS / 4)
		return;
	for (size_t i = 0; i < u->images.len; i++) {
		struct unwind_image *image = &u->images.v[i];

		if (passed_ns(u->time_ns, image->used_ns) < UNWINDER_IMAGE_IDLE_NS)
			continue;
		close_code(u, image);
	}
	u->swept_ns = u->time_ns;
	u->unswept = 0;
}

int unwinder_code_of(struct unwinder *u, uint32_t number, const struct process_map *map,
		     struct image_code **ret_code)
{
	const struct image_key *key = unwinder_key(u, number);
	struct unwind_image *image = unwinder_image(u, number);
	int32_t pid;
	int r = 0;

	if (!image)
		return -ENOMEM;
	if ((image->refused && find_holder(u, &pid)) || (image->late && has_time_to_open(u)))
		image->tried = false; /* this process may have it */
	if (!image->tried)            /* one stack can lead into many images */
		forget_over_budget(u);
	if (!image->tried && (key->kind == IMAGE_KIND_FILE || key->kind == IMAGE_KIND_VDSO))
		r = open_code(u, number, map);
	if (r == -ENOMEM)
		return r;
	if (!image->tried && image->code && image_code_has_hijack_stub(image->code) && !u->returns)
		r = return_cache_new(&u->returns);
	image->tried = true;
	image->used_ns = u->time_ns;
	*ret_code = image->code;
	return r;
}
