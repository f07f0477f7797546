/* Names of events from the command line, and lists of CPUs. */
#include "sampler/cpulist.h"
#include "sampler/event.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sampler_roots roots = {.tracefs = "/nonexistent",
						   .sysfs = "/nonexistent"};
	char *text = malloc(size + 1);
	struct sampler_problem problem;
	struct sampler_event event;
	int *cpus = NULL;
	size_t n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	(void)sampler_event_parse(&roots, text, &event, &problem);
	if (size < 64 && !cpulist_parse(text, &cpus, &n))
		free(cpus);
	(void)cpulist_has(text, 3);
	free(text);
	return 0;
}
