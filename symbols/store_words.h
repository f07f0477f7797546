/* The words of symbols/store.h. */
#ifndef SYMBOLS_STORE_WORDS_H
#define SYMBOLS_STORE_WORDS_H

#include "symbols/answers.h"

/* "file", "jit" and so on. Static. */
const char *store_word_kind(enum answers_kind kind);

/* The kind with this name; ANSWERS_KINDS: there is none. field may be NULL. */
enum answers_kind store_word_kind_of(const char *field);

/* The same of why an image's source gives no names; ANSWERS_WHYS: one of a later version. */
const char *store_word_why(enum answers_why why);
enum answers_why store_word_why_of(const char *field);

#endif
