/*
 * Holes of files that a target can write. A target can keep the lock of its file, for instance by
 * write() from memory whose server is silent. Then lseek(), which finds holes, waits for ever. So
 * files that have all their blocks need no lseek(), and container/ask calls it for others.
 */
#ifndef CONTAINER_HOLES_H
#define CONTAINER_HOLES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * As file_data_bytes. 0: no answer in time. Compression by a file system does not count as holes if
 * it can tell holes.
 */
uint64_t holes_data_bytes(int fd, uint64_t bytes);

/*
 * Returns whether more than half of a file of at least 1 MiB is holes, or there is no answer in
 * time. Reading it would cost us memory, while it cost its maker nothing.
 */
bool holes_is_sparse(int fd);

/*
 * Returns the place of the next byte outside of holes, from `at` on; INT64_MAX: there is none;
 * UINT64_MAX: there is no answer in time.
 */
uint64_t holes_next_data(int fd, uint64_t at);

#endif
