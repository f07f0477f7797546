/*
 * The default events, by the PMUs that sysfs shows. If these cannot be opened, sampler_open.c takes
 * sampler_event_fallback instead.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "sampler/event.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define PMU_FILE_MAX 4096
#define PMU_TYPE_SHIFT 32 /* position of the PMU's type in the config (PERF_PMU_TYPE_SHIFT) */

/* A PMU's file without its newline; false: no such file. */
static bool pmu_file(const struct sampler_roots *roots, const char *pmu, const char *file,
		     char *buf, size_t cap)
{
	char path[PATH_MAX];
	AUTO_FREE char *text = NULL;
	size_t len;
	int n = snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s",
			 roots && roots->sysfs ? roots->sysfs : "/sys", pmu, file);

	if (n < 0 || (size_t)n >= sizeof(path) ||
	    file_read_at(AT_FDCWD, path, PMU_FILE_MAX, &text, &len))
		return false;
	text[strcspn(text, "\n")] = 0;
	if (strlen(text) >= cap)
		return false;
	strcpy(buf, text);
	return true;
}

/* One event for each kind of CPU: Intel's cpu_core and cpu_atom. */
static size_t hybrid_events(const struct sampler_roots *roots, struct sampler_event *events)
{
	static const char *const kinds[] = {"cpu_core", "cpu_atom"};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sampler_event *e = &events[n];
		char type[16];

		*e = (struct sampler_event){
			.type = PERF_TYPE_HARDWARE, .exclude_guest = true, .precise_ip = 3};
		if (!pmu_file(roots, kinds[i], "type", type, sizeof(type)) ||
		    !pmu_file(roots, kinds[i], "cpus", e->cpus, sizeof(e->cpus)))
			continue;
		e->config = strtoull(type, NULL, 10) << PMU_TYPE_SHIFT | PERF_COUNT_HW_CPU_CYCLES;
		snprintf(e->name, sizeof(e->name), "%s/cycles/", kinds[i]);
		n++;
	}
	return n;
}

/* Names of PMUs that count CPU cycles, on x86, Power and s390 ("cpu", "cpum_cf") and on Arm. */
static bool has_cpu_pmu(const struct sampler_roots *roots)
{
	static const char *const names[] = {"cpu", "cpum_cf", "armv8_pmuv3_0", "armv8_pmuv3"};
	char type[16];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (pmu_file(roots, names[i], "type", type, sizeof(type)))
			return true;
	return false;
}

struct sampler_event sampler_event_fallback(void)
{
	return (struct sampler_event){
		.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
}

struct sampler_event sampler_event_none(void)
{
	return (struct sampler_event){.name = "dummy:u",
				      .type = PERF_TYPE_SOFTWARE,
				      .config = PERF_COUNT_SW_DUMMY,
				      .exclude_kernel = true,
				      .exclude_hv = true};
}

void sampler_event_default(const struct sampler_roots *roots, struct sampler_event *ret_events,
			   size_t *ret_n, const char **why)
{
	size_t n = hybrid_events(roots, ret_events);
	const char *text = "the CPUs' PMUs, of two kinds, count cycles";

	if (!n && has_cpu_pmu(roots)) {
		ret_events[n++] = (struct sampler_event){.name = "cycles",
							 .type = PERF_TYPE_HARDWARE,
							 .config = PERF_COUNT_HW_CPU_CYCLES,
							 .exclude_guest = true,
							 .precise_ip = 3};
		text = "the CPU's PMU counts cycles";
	}
	if (!n) {
		ret_events[n++] = sampler_event_fallback();
		text = "there is no PMU that counts cycles, as in most virtual machines";
	}
	*ret_n = n;
	if (why)
		*why = text;
}
