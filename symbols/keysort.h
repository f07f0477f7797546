/* Sorting many addresses, each with a number that says whose it is. */
#ifndef SYMBOLS_KEYSORT_H
#define SYMBOLS_KEYSORT_H

#include <stddef.h>
#include <stdint.h>

struct keysort_key {
	uint64_t addr;
	uint32_t id;
	uint32_t pad;
};

/* Sorts by addr, keeping the order of equal ones; linear in n, one pass where it is sorted already. 0 or -ENOMEM. */
int keysort(struct keysort_key *keys, size_t n);

#endif
