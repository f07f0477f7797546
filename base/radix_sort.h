/* Radix sort of many addresses. */
#ifndef BASE_RADIX_SORT_H
#define BASE_RADIX_SORT_H

#include <stdint.h>

/*
 * Sorts the indices 0 to n-1 of addrs by address into ret_ids; equal addresses stay in the order of
 * their indices. Linear in n. Destroys the contents of addrs. 0 or -ENOMEM.
 */
int radix_sort(uint64_t *addrs, uint32_t n, uint32_t *ret_ids);

#endif
