/* covers: recording/recording.c */
/* manifest.json of a recording from elsewhere. */
#include "recording/recording.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording_manifest m;
	struct parse_error err;

	if (!recording_manifest_parse((const char *)data, size, &m, &err))
		recording_manifest_free(&m);
	return 0;
}
