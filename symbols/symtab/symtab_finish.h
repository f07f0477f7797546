/* The last step in building a symbol table: assigns each address to one entry by perf's rules. */
#ifndef SYMBOLS_SYMTAB_SYMTAB_FINISH_H
#define SYMBOLS_SYMTAB_SYMTAB_FINISH_H

#include "symbols/symtab/symtab.h"

/*
 * Sorts the symbols, chooses one at each address, and sets unknown ends. limit: the end of a last
 * symbol without size; 0: the end of the page after its start. Must be called once, before find.
 * Returns 0 or -ENOMEM.
 */
int symtab_finish(struct symtab *t, uint64_t limit);

#endif
