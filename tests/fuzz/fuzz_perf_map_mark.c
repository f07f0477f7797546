/* Input: the text of a mark beside a perf map. covers: dotnet/eventpipe/perf_map_mark.c */
#include "dotnet/eventpipe/perf_map_mark.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[PERF_MAP_MARK_MAX], same[PERF_MAP_MARK_MAX];
	struct perf_map_mark mark, again;

	if (perf_map_mark_parse((const char *)data, size, &mark))
		return 0;
	size_t len = perf_map_mark_text(&mark, text, sizeof(text));

	if (mark.ns_pid <= 0 || mark.pid <= 0 || !len || perf_map_mark_parse(text, len, &again) ||
	    perf_map_mark_text(&again, same, sizeof(same)) != len || memcmp(text, same, len))
		abort();
	return 0;
}
