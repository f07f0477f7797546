/* Events by their perf names: software, hardware, hardware cache, raw and tracepoint events, with
 * modifiers. */
#ifndef SAMPLER_EVENT_H
#define SAMPLER_EVENT_H

#include "sampler/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLER_EVENT_NAME_MAX 128 /* bytes of a name with its NUL */
#define SAMPLER_EVENTS_MAX 64      /* events of one recording */

struct sampler_event {
	char name[SAMPLER_EVENT_NAME_MAX]; /* as the user wrote it, modifiers included */
	uint32_t type;                     /* PERF_TYPE_* or that of a PMU in sysfs */
	uint64_t config, config1;
	bool exclude_user, exclude_kernel, exclude_hv;
	bool exclude_guest, exclude_host;
	bool pinned;
	uint8_t precise_ip;
	char cpus[64]; /* list of the CPUs that have it, as sysfs writes it ("0-15"); empty: all */
};

/* Where the kernel's files are; NULL members mean the usual places. For tests. */
struct sampler_roots {
	const char *sysfs;   /* "/sys" */
	const char *tracefs; /* "/sys/kernel/tracing", else "/sys/kernel/debug/tracing" */
	const char *proc;    /* "/proc" */
};

/*
 * Reads one name: "cycles", "cpu-clock:u", "sched:sched_switch", "L1-dcache-load-misses", "r01c0",
 * "cycles:ppp". Modifiers: u k h (only these levels), p (precise, up to three), G H (guest, host),
 * D (pinned). roots may be NULL. 0; -ENOENT (no such name; the problem says which there are);
 * -EINVAL (not a name, or a wrong modifier); -E2BIG; -EACCES (the tracepoint's id is not readable).
 */
int sampler_event_parse(const struct sampler_roots *roots, const char *text,
			struct sampler_event *ret_event, struct sampler_problem *problem);

/*
 * What to sample when nobody said: hardware cycles where sysfs has a PMU of CPUs (on CPUs of two
 * kinds one event for each kind; as precise as can be, which opening lowers where it is not
 * possible), else cpu-clock. *ret_n of at most SAMPLER_DEFAULT_MAX events; why (may be NULL) is a
 * static text such as "no PMU in /sys/bus/event_source/devices".
 */
#define SAMPLER_DEFAULT_MAX 4
void sampler_event_default(const struct sampler_roots *roots, struct sampler_event *ret_events,
			   size_t *ret_n, const char **why);

#endif
