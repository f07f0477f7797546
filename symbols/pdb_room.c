#include "symbols/pdb_room.h"

#include <stdio.h>

bool pdb_room_take(struct pdb_room *room, uint64_t bytes)
{
	if (!room)
		return true;
	if (bytes > room->of->left || room->of->left - bytes < room->taken + bytes)
		return false;
	room->of->left -= bytes;
	room->taken += bytes;
	return true;
}

void pdb_room_give_back(struct pdb_room *room, uint64_t bytes)
{
	if (!room)
		return;
	room->of->left += bytes;
	room->taken -= bytes;
}

void pdb_room_refused(struct pdb_room *room, const char *name)
{
	if (room && !room->of->refused++)
		snprintf(room->of->first, sizeof(room->of->first), "%s", name);
}
