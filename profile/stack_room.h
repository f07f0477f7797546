/*
 * Room for the trie of stacks in the memory that is left. The first stacks are whole. When half of
 * the room is taken, new stacks keep only their innermost frames: the less room, the fewer.
 */
#ifndef PROFILE_STACK_ROOM_H
#define PROFILE_STACK_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_ROOM_MAX ((size_t)INT32_MAX)
#define STACK_ROOM_FIRST ((size_t)1 << 15) /* nodes before memory_left is first called */
/* Memory of one node: here, and in the trees that outputs make (flamegraph/tree_profile.c). */
#define STACK_ROOM_BYTES_HERE 16
#define STACK_ROOM_BYTES_LATER 80

struct stack_room {
	uint64_t (*memory_left)(void); /* bytes; NULL: no limit */
	size_t nodes;                  /* that fit; STACK_ROOM_MAX until they were computed */
	size_t max;                    /* nodes at the current level */
	size_t next;                   /* nodes at which memory_left is called again */
};

void stack_room_init(struct stack_room *room, uint64_t (*memory_left)(void));

/* Whether one more node fits. The fast path: call stack_room_grow only at room->max. */
static inline bool stack_room_has(const struct stack_room *room, size_t used)
{
	return used < room->max;
}

/* Whether one more node fits after all, because more memory is left than was known. */
bool stack_room_grow(struct stack_room *room, size_t used);

/*
 * Sets the level; 0: whole stacks. Returns the frames that a stack may have; 0: no such level. The
 * last level has no limit on nodes: its stacks have one frame.
 */
size_t stack_room_level(struct stack_room *room, unsigned level);

#endif
