/*
 * Permissions of this process: capabilities, sysctls and memory for rings. The rule of what
 * perf_event_open lacks is here, for all messages and for `profcpu doctor`. sampler_explain.c has
 * the advice after other errors.
 */
#ifndef SAMPLER_PERMISSION_H
#define SAMPLER_PERMISSION_H

#include "sampler/problem.h"
#include "sampler/roots.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* Linux 5.8 */
#endif

#define PERMISSION_UNKNOWN INT64_MIN /* a sysctl that cannot be read */
#define PERMISSION_TEXT_BYTES 384

struct permission_facts {
	int64_t paranoid;  /* kernel.perf_event_paranoid, or PERMISSION_UNKNOWN */
	uint64_t caps;     /* effective capabilities, one bit each */
	bool init_user_ns; /* in another user namespace capabilities have no effect */
	bool has_perfmon;  /* the kernel knows CAP_PERFMON */
	bool admin_only;   /* it denies even own processes without CAP_SYS_ADMIN */
};

/* Uses of perf_event_open, in the order of their demands. */
enum permission_use {
	PERMISSION_USER,   /* own processes, without kernel frames */
	PERMISSION_KERNEL, /* own processes, with kernel frames */
	PERMISSION_CPU,    /* whole CPUs, and so any process */
	PERMISSION_RAW,    /* data of tracepoints: wakers */
	PERMISSION_USES,
};

enum permission_lack {
	PERMISSION_BLOCKED, /* rights suffice: a seccomp filter or a security module denies */
	PERMISSION_PERFMON, /* CAP_PERFMON, or CAP_SYS_ADMIN */
	PERMISSION_ADMIN,   /* CAP_SYS_ADMIN, because the kernel ignores CAP_PERFMON */
	PERMISSION_USER_NS, /* capabilities in the initial user namespace */
	PERMISSION_LACKS,
};

void permission_probe(const struct sampler_roots *roots, struct permission_facts *ret_facts);

static inline bool permission_has(const struct permission_facts *f, int cap)
{
	return f->caps >> cap & 1;
}

/* The largest kernel.perf_event_paranoid that permits the use to all users. */
int permission_paranoid(enum permission_use use);

/*
 * The right that a use lacks after perf_event_open returned -EACCES or -EPERM. Sources:
 * linux/perf_event.h (perf_allow_*); kernels of Debian and Ubuntu, perf_paranoid_any: from
 * perf_event_paranoid 3 or 4 on, they demand CAP_SYS_ADMIN for everything.
 */
enum permission_lack permission_missing(const struct permission_facts *f, enum permission_use use);

/* "CAP_PERFMON", or "CAP_SYS_ADMIN" if the kernel ignores the former. */
const char *permission_cap(const struct permission_facts *f);

/*
 * Writes the reason of a denial and its remedy, "REASON; REMEDY". reason: why the target denies it,
 * or NULL. user: another remedy, as " or its user", or "".
 */
void permission_text(const struct permission_facts *f, enum permission_use use, const char *reason,
		     const char *user, char *buf, size_t cap);

/* Explains a denied event; `where`: "on CPU 3". Returns error. */
int permission_explain(const struct sampler_roots *roots, enum permission_use use, int error,
		       const char *what, const char *where, struct sampler_problem *problem);

/* Writes why the memory of a process may not be read, and the remedy if a capability is missing. */
void permission_memory_text(const struct permission_facts *f, char *buf, size_t cap);

bool sampler_has_cap(int cap);

/* The number in /proc/sys/kernel/NAME; fallback if it is not readable. */
int64_t sampler_sysctl(const struct sampler_roots *roots, const char *name, int64_t fallback);

/* Whether rings may lock any amount of memory: with CAP_IPC_LOCK, or perf_event_paranoid -1. */
bool sampler_locks_freely(const struct sampler_roots *roots);

/*
 * Bytes that rings may lock, those of other processes of this user included. SIZE_MAX: any.
 * Otherwise a share per CPU plus RLIMIT_MEMLOCK (kernel/events/core.c, perf_mmap).
 */
size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus);

#endif
