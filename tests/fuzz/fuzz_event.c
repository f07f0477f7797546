/* Names of events from the command line, and lists of CPUs. covers: sampler/event.c
 * sampler/cpulist.c */
#include "sampler/cpulist.h"
#include "sampler/event.h"
#include "tests/fuzz/fuzz_dir.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The kernel's files: two tracepoints, one with an invalid number. */
static const struct sampler_roots *kernel_files(void)
{
	static const struct sampler_roots roots = {.tracefs = fuzz_dir_path,
						   .sysfs = fuzz_dir_path};
	static int made;

	if (!made) {
		made = 1;
		fuzz_dir_put("events/sched/sched_switch/id", "316\n", 4);
		fuzz_dir_put("events/sched/broken/id", "x\n", 2);
	}
	return &roots;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct sampler_roots nowhere = {.tracefs = "/nonexistent",
						     .sysfs = "/nonexistent"};
	const struct sampler_roots *roots = kernel_files();
	char *text = malloc(size + 1);
	struct sampler_problem problem;
	struct sampler_event event;
	int *cpus = NULL;
	size_t n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	(void)sampler_event_parse(&nowhere, text, &event, &problem);
	if (!sampler_event_parse(roots, text, &event, &problem) && strcmp(event.name, text) != 0)
		abort();
	if (size < 64 && !cpulist_parse(text, &cpus, &n))
		free(cpus);
	(void)cpulist_has(text, 3);
	/* The kernel writes such lists too. */
	fuzz_dir_put("devices/system/cpu/online", text, size < 64 ? size : 64);
	(void)cpulist_is_online(roots->sysfs, 3);
	free(text);
	return 0;
}
