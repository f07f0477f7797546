/*
 * Makes text from outside fit for a terminal, so that it cannot control the terminal or fill it.
 */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the length of the valid UTF-8 sequence at p (1 to 4), or 0 if it is invalid. left: bytes
 * from p to the end, at least 1. Source: RFC 3629, section 4.
 */
size_t utf8_len(const unsigned char *p, size_t left);

/* Returns the character of a valid sequence of n bytes. */
uint32_t utf8_char(const unsigned char *p, size_t n);

/*
 * Whether a character controls a terminal, or is invisible so that different texts look alike.
 * These are C0, DEL, C1, ends of lines and paragraphs, marks of the direction of writing, fillers,
 * marks without width, and noncharacters. U+200C and U+200D are not, because words of some
 * languages need them. Sources: ECMA-48; Unicode Standard Annex 9, table 4; Unicode Standard,
 * section 23.7; Default_Ignorable_Code_Point of the Unicode Character Database. U+2800 and the
 * format controls of hieroglyphs are also invisible.
 */
bool printable_is_hidden(uint32_t x);

/*
 * Whether x selects the form of the character before it: of an emoji or a Mongolian letter. One
 * selector is kept; others are lost. Source: emoji-variation-sequences.txt of the Unicode Character
 * Database. Symbols from U+25FB to U+27BF, and from U+1F000 on, all count as emoji.
 */
bool printable_is_selector(uint32_t before, uint32_t x);

/*
 * Whether text is valid UTF-8 without hidden characters except tabs and selectors, so that
 * printable_copy keeps it.
 */
bool printable_is(const char *text, size_t len);

#define PRINTABLE_CUT "..."

/*
 * Copies len bytes of text to `to`, without a NUL, and returns the number of written bytes: at most
 * max, which is at least strlen(PRINTABLE_CUT). Each byte of hidden characters except
 * tabs and selectors, and of invalid UTF-8, becomes "\x1b". A text that does not fit is cut and
 * ends in PRINTABLE_CUT; *ret_cut says so. The areas do not overlap.
 */
size_t printable_copy(const char *text, size_t len, size_t max, char *to, bool *ret_cut);

/*
 * The same, except that a cut text ends in PRINTABLE_CUT and PRINTABLE_DIGITS digits. They are
 * hash_stable of the whole text, so different texts stay different. max is at least the length of
 * this end.
 */
#define PRINTABLE_DIGITS 8
size_t printable_copy_distinct(const char *text, size_t len, size_t max, char *to, bool *ret_cut);

/*
 * For tables, in which one byte is one column: replaces everything except printable ASCII by '?',
 * in place.
 */
void printable_ascii(char *text);

#endif
