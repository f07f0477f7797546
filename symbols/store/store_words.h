/* The words of symbols/names for kinds of images and for reasons (symbols/store/store.h). */
#ifndef SYMBOLS_STORE_STORE_WORDS_H
#define SYMBOLS_STORE_STORE_WORDS_H

#include "symbols/store/lookup_cache.h"

/* "file", "jit" and so on. Static. */
const char *store_word_kind(enum image_kind kind);

/* The kind with this name; IMAGE_KINDS: none. field may be NULL. */
enum image_kind store_word_kind_of(const char *field);

/* The same for the reason of an image; IMAGE_REASONS: a word of a later version. */
const char *store_word_reason(enum image_reason why);
enum image_reason store_word_reason_of(const char *field);

#endif
