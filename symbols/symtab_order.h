/* From the entries of a symbol table, as added, to what each answers for, by perf's rules. */
#ifndef SYMBOLS_SYMTAB_ORDER_H
#define SYMBOLS_SYMTAB_ORDER_H

#include "symbols/symtab.h"

/* Fills the pieces and the ends of the entries. For symtab_finish. 0 or -ENOMEM. */
int symtab_order(struct symtab *t, uint64_t limit);

#endif
