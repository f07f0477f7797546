#include "profile/text_room.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* How often texts are written. */
struct text_room {
	const struct profile *profile;
	uint64_t frames; /* and headers of samples */
	uint64_t bytes;
	uint64_t by_len[PROFILE_TEXT_MAX + 1];
};

static uint32_t text_room_len(const struct profile *p, uint32_t text)
{
	uint32_t len = 0;

	if (text != PROFILE_NONE)
		(void)profile_text_of(p, text, &len);
	return len;
}

/* The longer form counts, because outputs differ in the form that they show. */
static uint32_t text_room_name_len(const struct profile *p, const struct profile_frame *f)
{
	uint32_t name = text_room_len(p, f->name), perf_name = text_room_len(p, f->perf_name);

	return name > perf_name ? name : perf_name;
}

static void text_room_count(struct text_room *room, uint32_t len, uint64_t times)
{
	room->by_len[len] += times;
	room->bytes += times * len;
}

static void text_room_count_frame(struct text_room *room, const struct profile_frame *f,
				  uint64_t times)
{
	room->frames += times;
	text_room_count(room, text_room_name_len(room->profile, f), times);
	text_room_count(room, text_room_len(room->profile, f->module), times);
	text_room_count(room, text_room_len(room->profile, f->srcline), times);
}

int text_room_fit(struct profile *p)
{
	if (profile_longest_text(p) <= TEXT_ROOM_SHORT)
		return 0;
	AUTO_FREE struct text_room *room = calloc(1, sizeof(*room));
	AUTO_FREE uint64_t *times = calloc(profile_nstacks(p), sizeof(*times));
	size_t ngroups;
	const struct profile_group *groups = profile_groups(p, &ngroups);

	if (!room || !times)
		return -ENOMEM;
	room->profile = p;
	for (size_t i = 0; i < ngroups; i++) {
		const struct profile_group *g = &groups[i];

		times[g->stack] += g->samples;
		room->frames += g->samples;
		text_room_count(room, text_room_len(p, profile_thread_of(p, g->thread)->comm),
				g->samples);
		text_room_count(room, text_room_len(p, profile_event_of(p, g->event)->name),
				g->samples);
	}
	/* Callers have lower ids. */
	for (uint32_t i = profile_nstacks(p) - 1; i > PROFILE_STACK_EMPTY; i--) {
		times[profile_stack_parent(p, i)] += times[i];
		text_room_count_frame(room, profile_frame_of(p, profile_stack_frame(p, i)),
				      times[i]);
	}
	uint64_t limit = TEXT_ROOM_FIRST + room->frames * TEXT_ROOM_FRAME, longer = 0;
	uint32_t max = PROFILE_TEXT_MAX;

	for (; room->bytes > limit && max > TEXT_ROOM_SHORT; max--) {
		longer += room->by_len[max];
		room->bytes -= longer;
	}
	if (max < PROFILE_TEXT_MAX)
		profile_cut_texts(p, max);
	return 0;
}
