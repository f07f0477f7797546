/*
 * CoreCLR's nibble maps, which say where code starts in a code heap. A map has 4 bits for each 32
 * bytes of code, in words of 8 nibbles, the first one highest. Nibble 0: no code starts; nibble 1 +
 * n: code starts at offset 4 * n. If the last nibble exceeds 8, the word is a pointer to code that
 * covers all its 256 bytes. Format: dotnet/runtime, docs/design/datacontracts/ExecutionManager.md.
 */
#ifndef DOTNET_CORECLR_NIBBLE_MAP_H
#define DOTNET_CORECLR_NIBBLE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define CLR_NIBBLE_MAP_WORD_CODE_BYTES 256 /* code that one word describes */
#define CLR_NIBBLE_MAP_STARTS_MAX 8        /* starts in one word */

/*
 * Decodes a word: the addresses where code starts, ascending. base: address of the first code that
 * the word describes. Returns their number.
 */
int clr_nibble_map_starts(uint32_t word, uint64_t base, uint64_t starts[CLR_NIBBLE_MAP_STARTS_MAX]);

/*
 * Finds the next start after `start` in at most words_max words. base: address of the first code
 * that the n words describe; start is at or after it. Returns end if it finds none before end.
 */
uint64_t clr_nibble_map_next(const uint32_t *words, size_t n, uint64_t base, uint64_t start,
			     uint64_t end, size_t words_max);

/* Clears the nibble of a start. Leaves it if it belongs to another start in the same 32 bytes. */
void clr_nibble_map_clear(uint32_t *words, size_t n, uint64_t base, uint64_t start);

#endif
