#include "profile/stack_room.h"

#define STACK_ROOM_PARTS 8

static const struct {
	size_t frames;
	unsigned parts; /* of the room that stacks of this level may fill */
} levels[] = {{SIZE_MAX, 4}, {64, 6}, {16, 7}, {1, STACK_ROOM_PARTS}};

#define STACK_ROOM_LEVELS (sizeof(levels) / sizeof(levels[0]))

void stack_room_init(struct stack_room *room, uint64_t (*memory_left)(void))
{
	*room = (struct stack_room){.memory_left = memory_left,
				    .nodes = STACK_ROOM_MAX,
				    .next = memory_left ? STACK_ROOM_FIRST : STACK_ROOM_MAX};
	(void)stack_room_level(room, 0);
}

size_t stack_room_level(struct stack_room *room, unsigned level)
{
	if (level >= STACK_ROOM_LEVELS)
		return 0;
	room->max = levels[level].parts == STACK_ROOM_PARTS || room->nodes == STACK_ROOM_MAX
			    ? STACK_ROOM_MAX
			    : room->nodes / STACK_ROOM_PARTS * levels[level].parts;
	if (!level && room->max > room->next)
		room->max = room->next;
	return levels[level].frames;
}

/* Half of the memory stays for the rest of the program. */
static size_t stack_room_fits(uint64_t bytes, size_t used)
{
	uint64_t needed = (uint64_t)used * STACK_ROOM_BYTES_LATER;

	bytes /= 2;
	bytes = bytes > needed ? bytes - needed : 0;
	bytes /= STACK_ROOM_BYTES_HERE + STACK_ROOM_BYTES_LATER;
	return bytes < STACK_ROOM_MAX - used ? used + (size_t)bytes : STACK_ROOM_MAX;
}

bool stack_room_grow(struct stack_room *room, size_t used)
{
	if (used < room->next || used >= STACK_ROOM_MAX)
		return false;
	room->nodes = stack_room_fits(room->memory_left(), used);
	room->next = used < STACK_ROOM_MAX / 2 ? used * 2 : STACK_ROOM_MAX;
	(void)stack_room_level(room, 0);
	return stack_room_has(room, used);
}
