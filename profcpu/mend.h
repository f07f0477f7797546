/* What the user can do about an error of the system. */
#ifndef PROFCPU_MEND_H
#define PROFCPU_MEND_H

#include <stdbool.h>

/* To be put behind a message: "; make room or ..." for a -errno, "" where nothing is known to help. Static. */
const char *mend_of(int error);

bool mend_is_room(int error); /* there is no room, or no more of it for this user */

/* The same of writing to stdout. */
const char *mend_of_stdout(int error);

#endif
