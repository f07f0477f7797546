#include "symbols/store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answers answers = {0};
	struct store_notes notes;
	struct parse_error err;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	(void)store_parse(text, size, &answers, &notes, &err);
	answers_free(&answers);
	free(text);
	return 0;
}
