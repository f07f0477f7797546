/* What the parts of the sampler share: opening (sampler.c, open.c), draining (drain.c), /proc
 * (synthesize.c). */
#ifndef SAMPLER_INTERNAL_H
#define SAMPLER_INTERNAL_H

#include "base/vec.h"
#include "sampler/attr.h"
#include "sampler/cpulist.h"
#include "sampler/pidset.h"
#include "sampler/ring.h"
#include "sampler/sampler.h"
#include "sampler/targets.h"

#define SAMPLER_CPUS_MAX 8192
#define SAMPLER_FD_RESERVE 64 /* descriptors left for everything else */

struct sampler_event_ids {
	uint64_t *v;
	size_t len, cap;
};

struct sampler_fd {
	int fd, cpu;
	pid_t tid; /* -1: all of the CPU */
	uint16_t event;
	bool side; /* samples nothing */
	uint64_t id;
};

struct sampler_fds {
	struct sampler_fd *v;
	size_t len, cap;
};

/* PERF_RECORD_FORK and EXIT. */
struct sampler_task {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time_ns;
};

struct sampler_cpus {
	int *v;
	size_t len, cap;
};

struct sampler {
	struct sampler_options options; /* pids and events point to our copies below */
	struct sampler_event *events;
	struct sampler_opened *opened;
	struct sampler_event_ids *ids; /* of each event */
	size_t nids;                   /* elements of ids: options.nevents at first */
	struct attr_features features;
	struct sampler_setup setup;
	struct sampler_stats stats;
	struct targets targets;
	struct pidset attached;  /* threads that have events, opened or inherited, as far as records tell; SAMPLER_THREADS only */
	VEC(int) cpus;           /* those with a ring */
	struct ring *rings;      /* one for each of cpus */
	struct ring *sides;      /* the same, for what is no sample; NULL: rings have all */
	bool no_sides;           /* it was tried in vain */
	size_t fd_limit;         /* RLIMIT_NOFILE, as far as it could be raised */
	bool identified;         /* records carry the id of their event */
	bool stopping;
	bool awaiting_exec; /* the command has not executed its program yet */
	bool renewing; /* events are opened beside older ones: switched off, and none for what is beside the samples */
	struct sampler_fds fds; /* all events but the rings' owners */
	struct sampler_cpus missed, added; /* CPUs that came online and are not sampled, or are */
	struct cpulist_online online; /* as last seen by sampler_follow_cpus, */
	uint64_t looked_ns;           /* and when */
	struct pidset elsewhere; /* processes in another mount namespace than ours, as NAMESPACES
				    records say */
	uint64_t mount_ns;       /* ours, 0: not known */
	struct pidset executing; /* processes between an exec and the first mapping of its program;
				    SAMPLER_THREADS only */
	VEC(pid_t) ended;        /* threads that ended in this round: their FORK may be in a ring that is read later */
	size_t wanted_threads;   /* of the targets when opening began */
	size_t denied;           /* threads of other users, left out */
	bool cpus_denied;        /* CPU-wide events are not permitted */
	pid_t opening;           /* whose threads get events now; 0: none's */
	int poll_fd;
	struct sampler_listener listeners[SAMPLER_LISTENERS_MAX];
	size_t nlisteners;
};

/* open.c: opens the events for the targets in s->setup.mode, changing what must be changed. */
int sampler_open_events(struct sampler *s, struct sampler_problem *problem);

/* rings.c: opens rings for all CPUs that are online. */
int sampler_open_rings(struct sampler *s, struct sampler_problem *problem);

/* rings.c: the same for one CPU more, with its ring beside it where the others have one. 0 (also where it is not online any
 * more) or -errno. */
int sampler_add_ring(struct sampler *s, int cpu);

/* rings.c: a ring beside each, if memory may be locked for all of them. */
void sampler_open_sides(struct sampler *s);
void sampler_close_sides(struct sampler *s);

/* All rings, those beside them behind. */
static inline size_t sampler_nrings(const struct sampler *s)
{
	return s->sides ? 2 * s->cpus.len : s->cpus.len;
}

static inline struct ring *sampler_ring(const struct sampler *s, size_t i)
{
	return i < s->cpus.len ? &s->rings[i] : &s->sides[i - s->cpus.len];
}

/* open.c: the events of a thread (-1: of all that runs there) on the CPU of this ring. 0 or -errno. */
int sampler_open_on_cpu(struct sampler *s, pid_t tid, size_t cpu_index);

/* sampler.c: closes the events on a CPU, with what the kernel counted as lost. */
void sampler_close_on_cpu(struct sampler *s, int cpu);

/* sampler.c: adds what the kernel counted as lost for this event, whose descriptor is then closed or not asked again. */
void sampler_read_lost(struct sampler *s, int fd);

/* sampler.c: after ids were added. */
void sampler_show_ids(struct sampler *s);

/* hotplug.c: a new id to the listeners. 0 or a listener's -errno. */
int sampler_tell_id(struct sampler *s, size_t event, uint64_t id);

/* drain.c: calls fn for each record, from where a ring was scanned before to its present head; of a record only the first RING_START
 * bytes are to be looked at. 0 or fn's error. */
int sampler_scan(struct sampler *s, int (*fn)(void *ctx, const struct perf_event_header *h), void *ctx);

/* The same record if it is a whole FORK, else NULL. */
static inline const struct sampler_task *sampler_fork_of(const struct perf_event_header *h)
{
	return h->type == PERF_RECORD_FORK && h->size >= sizeof(struct sampler_task) ? (const void *)h : NULL;
}

/* Whether the record says that this process executed a program. */
bool sampler_is_exec(const struct perf_event_header *h, pid_t pid);

/* drain.c: marks threads whose FORK is in the rings as attached and adds new processes to the
 * targets. 0 or -ENOMEM. */
int sampler_peek_forks(struct sampler *s);

/* drain.c: records made here, and the end of a round, to the listeners. 0 or a listener's -errno.
 */
int sampler_tell_synthesized(struct sampler *s, const void *data, size_t len);
int sampler_tell_round(struct sampler *s);

/* explain.c: what failed on what, why, what to do. where: "CPU 1", "process 12". */
int sampler_explain(const struct sampler *s, int error, size_t event, const char *where,
		    struct sampler_problem *problem);
/* The same of an event on a whole CPU that was denied; `where`: "on CPU 3". */
int sampler_explain_cpu(const struct sampler_roots *roots, int error, const char *what, const char *where, struct sampler_problem *problem);

bool sampler_has_cap(int cap);

/* rings.c: bytes of rings that we may have: SIZE_MAX; without CAP_IPC_LOCK what is ours and what others of this user have: so much for each CPU, and what
 * RLIMIT_MEMLOCK allows beyond (kernel/events/core.c, perf_mmap). */
size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus);
long sampler_sysctl(const struct sampler_roots *roots, const char *name, long fallback);

static inline const char *sampler_proc(const struct sampler_options *options)
{
	return options->roots.proc ? options->roots.proc : "/proc";
}

#endif
