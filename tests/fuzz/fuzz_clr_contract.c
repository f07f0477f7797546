/* Input: the text of a contract descriptor. covers: dotnet/coreclr/contract.c */
#include "dotnet/coreclr/contract.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t pointers[24];
	struct clr_contract contract;
	struct parse_error err = {0};

	for (size_t i = 0; i < 24; i++)
		pointers[i] = 0x1000 + i;
	int r = clr_contract_parse((const char *)data, size, pointers, 24, &contract, &err);

	if (r && (!err.what || err.code != r || err.offset > size))
		abort();
	for (int i = 0; !r && i < CLR_OPTIONAL; i++)
		if (contract.at[i] > 65536)
			abort();
	return 0;
}
