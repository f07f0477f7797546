/* Descriptors that a recording needs beside those of its events. */
#ifndef PROFCPU_RECORD_SPARE_H
#define PROFCPU_RECORD_SPARE_H

#include <stddef.h>

/* How many of so many descriptors can still be opened. */
size_t record_spare_count(size_t wanted);

/* Whether so many descriptors can still be opened. 0; -EMFILE, said by log_error with the limit
 * that would do. */
int record_spare_check(size_t wanted);

#endif
