/*
 * Better names for a stored recording: for images without symbols of their own, from debug files
 * that came to this machine later. Debug files are found by build id, so the images themselves are
 * not needed.
 */
#ifndef SYMBOLS_STRIPPED_H
#define SYMBOLS_STRIPPED_H

#include "symbols/store/lookup_cache.h"

#include <stdbool.h>

struct stripped;

/*
 * lookup_cache is borrowed. If root runs profcpu, everybody must be able to read a debug file. 0 or
 * -ENOMEM.
 */
int stripped_new(struct lookup_cache *lookup_cache, struct stripped **ret_stripped);
void stripped_free(struct stripped *s);

/*
 * Replaces *symbol, which lookup_cache has for an address of an image, by a better one, also in
 * lookup_cache. 1: it was replaced; 0: there is no better one; -ENOMEM, -E2BIG.
 */
int stripped_improve_symbol(struct stripped *s, uint32_t image, uint64_t addr, uint32_t *symbol);

#endif
