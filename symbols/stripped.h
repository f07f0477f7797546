/*
 * Better names for a recording that has its answers: of images without symbols of their own, by their debug files, where these are
 * on this machine by now. They are found by build id, so that nothing else of the images need be here.
 */
#ifndef SYMBOLS_STRIPPED_H
#define SYMBOLS_STRIPPED_H

#include "symbols/answers.h"

struct stripped;

/* answers is borrowed. 0 or -ENOMEM. */
int stripped_new(struct answers *answers, struct stripped **ret_stripped);
void stripped_free(struct stripped *s);

/*
 * A better answer than *symbol, which answers has for an address of an image, put there in its place. 1: *symbol is it;
 * 0: there is none. -ENOMEM, -E2BIG.
 */
int stripped_improve(struct stripped *s, uint32_t image, uint64_t addr, uint32_t *symbol);

#endif
