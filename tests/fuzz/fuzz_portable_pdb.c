/* Input: a portable PDB. */
#include "dotnet/portable_pdb.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *copy = malloc(size + 1);
	struct parse_error err;
	struct portable_pdb *pdb;
	const char *file;
	uint32_t line;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	if (portable_pdb_open(copy, size, &pdb, &err)) {
		free(copy);
		return 0;
	}
	for (uint32_t rid = 0; rid < 40; rid++)
		for (uint32_t il = 0; il < 0x4000; il = il * 4 + 1)
			if (!portable_pdb_line(pdb, rid, il, &file, &line) &&
			    (strpbrk(file, "/\\") || !line))
				abort();
	portable_pdb_free(pdb);
	return 0;
}
