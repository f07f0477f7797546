/*
 * Frees symbol sources that can be read again, when memory is short: a part of symbols/images.h.
 * The process whose sources take the most loses half of them. So many images of one process cost
 * another one no names. To read them again is work of the process that needs them.
 */
#include "symbols/images_impl.h"

#include "base/cleanup.h"
#include "base/heap.h"
#include "container/memory_left.h"
#include "elf/budget.h"
#include "symbols/r2r_image.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_LOW_PART 4       /* below this part of the memory left at first, sources are freed */
#define ROOM_WORTH_PART 32    /* if they take at least this part of it */
#define ROOM_IMAGE_BYTES 8192 /* of an image, without its tables */
#define ROOM_SHORT_PART 2     /* below this part of the memory left at first, memory is short */
/* Most work that one source counts for. Else the largest ones would always be refused. */
#define ROOM_WORK_MAX (ELF_BUDGET_WORK_MAX / 16)

void images_source_close(struct images_source *s)
{
	cfi_frames_free(s->frames);
	/* Lines of precompiled code borrow its provider. */
	if (s->precompiled) {
		line_source_free(s->lines);
		s->lines = NULL;
		s->lines_tried = false;
	}
	image_free(s->elf);
	if (!s->precompiled_shared)
		symbol_provider_free(s->precompiled);
	free(s->beside);
	vec_free(&s->pieces.symbols);
	vec_free(&s->precompiled_pieces.symbols);
	s->frames_tried &= !s->frames;
	s->frames = NULL;
	s->elf = NULL;
	s->precompiled = NULL;
	s->precompiled_shared = false;
	s->beside = NULL;
	s->tried = false;
}

static uint64_t room_source_bytes(const struct images_source *s)
{
	uint64_t bytes = ROOM_IMAGE_BYTES;

	if (s->elf)
		bytes += s->elf->symbols_taken;
	if (s->precompiled && r2r_image_is(s->precompiled))
		bytes += r2r_image_bytes(s->precompiled);
	return bytes + (s->pieces.symbols.cap + s->precompiled_pieces.symbols.cap) *
			       sizeof(*s->pieces.symbols.v);
}

/* Sets what a source counts for its process. */
static void room_count(struct images *im, struct images_source *s, uint64_t bytes)
{
	uint32_t *kib = hashmap_get(&im->held_kib, (uint32_t)s->held_for);

	*kib += (uint32_t)(bytes >> 10) - (uint32_t)(s->held_bytes >> 10);
	im->held_bytes += bytes - s->held_bytes;
	s->held_bytes = bytes;
}

int images_hold(struct images *im, uint32_t image)
{
	struct images_source *s = &im->sources.v[image];
	uint32_t *kib;

	/* Several images can have the provider of one single-file program. */
	if ((!s->elf && !s->precompiled) || s->bundle == IMAGES_BUNDLE_IS)
		return 0;
	s->held_for = im->lookup_cache->taker;
	int r = hashmap_entry(&im->held_kib, (uint32_t)s->held_for, 0, &kib, NULL);

	if (!r && vec_push(&im->held, image))
		r = -ENOMEM;
	if (!r)
		room_count(im, s, room_source_bytes(s));
	return r;
}

/* Counts all sources again, because they grow while they are used. */
static void room_count_all(struct images *im)
{
	for (size_t i = 0; i < im->held.len; i++) {
		struct images_source *s = &im->sources.v[im->held.v[i]];

		room_count(im, s, room_source_bytes(s));
	}
}

/* Finds the process whose sources take the most, without those of one image. */
static bool room_greediest(struct images *im, uint32_t except, int32_t *ret_pid, uint32_t *ret_kib)
{
	uint32_t most = 0;

	room_count_all(im);
	const struct images_source *kept = &im->sources.v[except];

	for (size_t i = 0; i < im->held.len; i++) {
		const struct images_source *s = &im->sources.v[im->held.v[i]];
		uint32_t kib = *hashmap_get(&im->held_kib, (uint32_t)s->held_for);

		if (s->held_for == kept->held_for)
			kib -= (uint32_t)(kept->held_bytes >> 10);
		if (im->held.v[i] != except && kib > most) {
			most = kib;
			*ret_pid = s->held_for;
		}
	}
	*ret_kib = most;
	return most > 0;
}

static bool room_work(uint64_t bytes)
{
	return elf_budget_work(bytes < ROOM_WORK_MAX ? bytes : ROOM_WORK_MAX);
}

bool images_may_reopen(struct images_source *s)
{
	bool may = !s->freed_bytes || room_work(s->freed_bytes);

	if (may)
		s->freed_bytes = 0;
	return may;
}

/*
 * Whether a source cannot be read again, because its file was deleted or its process ended. A
 * search that does not end may end the next time.
 */
static bool room_is_gone(const struct images *im, uint32_t image)
{
	struct images_source *s = &im->sources.v[image];
	AUTO_CLOSE int fd = -1;
	int r = 0;

	if (s->fd < 0 && !s->gone)
		r = images_find_file(im, &im->lookup_cache->images.v[image].key, s, &fd);
	s->gone |= r && r != -ENOMEM && r != -ETIME;
	return s->fd < 0 && (s->gone || r == -ETIME);
}

/*
 * Frees sources of a process until so many bytes of them are free. gone_too: also those that cannot
 * be read again. Returns whether it freed any.
 */
static bool room_free(struct images *im, uint32_t except, int32_t pid, uint64_t bytes,
		      bool gone_too)
{
	uint64_t held = im->held_bytes;
	size_t n = 0, had = im->held.len;

	for (size_t i = 0; i < had; i++) {
		uint32_t image = im->held.v[i];
		struct images_source *s = &im->sources.v[image];

		if (image == except || s->held_for != pid || held - im->held_bytes >= bytes ||
		    (!gone_too && room_is_gone(im, image))) {
			im->held.v[n++] = image;
			continue;
		}
		s->freed_bytes = s->held_bytes;
		images_source_close(s);
		room_count(im, s, 0);
	}
	im->held.len = n;
	return n < had;
}

/* Whether less than half of the memory or of the budget is left. */
static bool room_is_short(const struct images *im)
{
	return elf_budget_is_low(ELF_BUDGET_SYMBOLS) ||
	       memory_left() < im->memory_first / ROOM_SHORT_PART;
}

bool images_make_room(struct images *im, uint32_t except)
{
	uint64_t trimmed_ns = 0;
	int32_t pid;
	uint32_t kib;

	if (!room_greediest(im, except, &pid, &kib))
		return false;
	uint64_t bytes = (uint64_t)kib << 10 >> 1;

	/* If half is free, only one very large image needs room, so it pays for it. */
	if (!room_is_short(im) && !room_work(bytes))
		return false;
	/* Free sources that cannot be read again only for another process. */
	if (!room_free(im, except, pid, bytes, false) &&
	    (pid == im->lookup_cache->taker || !room_free(im, except, pid, bytes, true)))
		return false;
	heap_trim(&trimmed_ns, HEAP_TRIM_NS);
	return true;
}

bool images_make_most_room(struct images *im, uint32_t except)
{
	bool made = false;

	room_count_all(im);
	uint64_t held = im->held_bytes;

	while (im->held_bytes > held / 2 && images_make_room(im, except))
		made = true;
	return made;
}

void images_keep_room(struct images *im, uint32_t except)
{
	if (!im->memory_first)
		im->memory_first = memory_left();
	while (im->held_bytes > im->memory_first / ROOM_WORTH_PART &&
	       memory_left() < im->memory_first / ROOM_LOW_PART && images_make_room(im, except))
		;
}
