/* Events by their perf names: software, hardware, hardware cache, raw and tracepoint events, with
 * modifiers. */
#ifndef SAMPLER_EVENT_H
#define SAMPLER_EVENT_H

#include "sampler/problem.h"
#include "sampler/roots.h"

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

/*
 * Parses an event name: "cycles", "cpu-clock:u", "sched:sched_switch", "L1-dcache-load-misses",
 * "r01c0", "cycles:ppp". roots may be NULL.
 *
 * Modifiers: u k h (only these levels), p (precise, up to three), G H (guest, host), D (pinned).
 *
 * 0; -ENOENT: no such name, the problem lists the known ones. -EINVAL: not a name, or a wrong
 * modifier. -E2BIG. -EACCES: the id of the tracepoint is not readable.
 */
int sampler_event_parse(const struct sampler_roots *roots, const char *text,
			struct sampler_event *ret_event, struct sampler_problem *problem);

/* The event for machines whose hardware events cannot be opened: cpu-clock. */
struct sampler_event sampler_event_fallback(void);

/* No samples, but records of names, maps and forks. Needs no right to record the kernel. */
struct sampler_event sampler_event_none(void);

/*
 * The default events: hardware cycles if sysfs shows a CPU PMU, else cpu-clock. CPUs of two kinds
 * get one event per kind. Events have the highest precision; opening lowers it if needed. *ret_n is
 * at most SAMPLER_DEFAULT_MAX. why, which may be NULL, gets a static text with the reason.
 */
#define SAMPLER_DEFAULT_MAX 4
void sampler_event_default(const struct sampler_roots *roots, struct sampler_event *ret_events,
			   size_t *ret_n, const char **why);

#endif
