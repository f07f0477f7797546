/* Sorts texts as parts of lines in which ';' joins them. */
#ifndef FLAMEGRAPH_TEXT_ORDER_H
#define FLAMEGRAPH_TEXT_ORDER_H

#include "base/intern.h"

#include <stdbool.h>

/*
 * Each text has two places: one if the line ends after it, one if a ';' follows. Lines sorted by
 * these places are sorted by bytes, if no text has a ';'.
 */
struct text_order {
	uint32_t *place; /* [2 * text + (1: a ';' follows)] -> place */
	uint32_t *at;    /* place -> 2 * text + (1: a ';' follows) */
};

/* Sorts all texts of the table. Returns 0 or -ENOMEM. */
int text_order_make(const struct intern *texts, struct text_order *ret_order);
void text_order_free(struct text_order *o);

#endif
