/* Remedies for errors of the system, to append to messages. */
#ifndef BASE_REMEDY_H
#define BASE_REMEDY_H

#include <stdbool.h>

/*
 * Returns the remedy for a -errno, to append to a message: "; make room or ...". "" if none is
 * known. Static text.
 */
const char *remedy_for(int error);

/* Returns whether the disk is full, or the user's quota is used up. */
bool remedy_is_disk_full(int error);

/* Like remedy_for, for writing to stdout. */
const char *remedy_for_stdout(int error);

#endif
