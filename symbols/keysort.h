/* The order of many addresses. */
#ifndef SYMBOLS_KEYSORT_H
#define SYMBOLS_KEYSORT_H

#include <stdint.h>

/*
 * Writes to ret_ids the indices 0 .. n-1 of addrs in the order of their addresses, equal ones in the order of their
 * indices. addrs is used up: what it holds afterwards means nothing. Linear in n. 0 or -ENOMEM.
 */
int keysort(uint64_t *addrs, uint32_t n, uint32_t *ret_ids);

#endif
