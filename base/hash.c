#include "base/hash.h"

#include <sys/auxv.h>

uint64_t hash_secret[2] = {0x9e3779b97f4a7c15ULL, 0xd6e8feb86659fd93ULL};

/* Runs before main. The kernel gives each process 16 random bytes (AT_RANDOM). */
__attribute__((constructor)) static void hash_take_secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t words[2];

	if (!random)
		return;
	memcpy(words, random, sizeof(words));
	hash_secret[0] ^= words[0];
	hash_secret[1] ^= words[1];
}
