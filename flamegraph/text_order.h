/* The order of texts as parts of lines that join them by ';'. */
#ifndef FLAMEGRAPH_TEXT_ORDER_H
#define FLAMEGRAPH_TEXT_ORDER_H

#include "base/intern.h"

#include <stdbool.h>

/*
 * Each text has two places: one where the line ends behind it, one where a ';' follows. Sorting by them sorts the lines by
 * bytes, as long as no text holds a ';'.
 */
struct text_order {
	uint32_t *place; /* [2 * text + (1: a ';' follows)] -> place */
	uint32_t *at; /* place -> 2 * text + .. */
};

/* Of all texts of the table. 0 or -ENOMEM. */
int text_order_make(const struct intern *texts, struct text_order *ret_order);
void text_order_free(struct text_order *o);

#endif
