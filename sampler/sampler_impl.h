/*
 * Shared by the parts of sampler:
 *   sampler.c             targets, limits, setup; what sampler.h offers
 *   sampler_open.c        events of threads and CPUs
 *   sampler_start.c       from opened to sampling
 *   sampler_renew.c       the same events with other attributes
 *   sampler_rings.c       one ring for each CPU
 *   sampler_drain.c       records from the rings to the listeners
 *   sampler_hotplug.c     CPUs that come and go
 *   sampler_synthesize.c  records about what ran before, from /proc
 *   sampler_explain.c     advice after a failure
 */
#ifndef SAMPLER_SAMPLER_IMPL_H
#define SAMPLER_SAMPLER_IMPL_H

#include "base/pidset.h"
#include "base/vec.h"
#include "sampler/attr.h"
#include "sampler/cpulist.h"
#include "sampler/permission.h"
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
	bool event_only; /* samples nothing */
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

/* Records taken from a ring before the first drain, as a ring in our memory. */
struct sampler_early {
	struct perf_event_mmap_page page;
	struct ring ring;
};

struct sampler_cpus {
	int *v;
	size_t len, cap;
};

struct sampler {
	struct sampler_options options; /* pids and events point to our copies below */
	struct sampler_event *events;
	struct sampler_opened *opened;
	struct sampler_event_ids *ids; /* ids of each event */
	size_t nids;                   /* elements of ids: options.nevents at first */
	struct attr_features features;
	struct permission_facts permission;
	struct sampler_setup setup;
	struct sampler_stats stats;
	struct targets targets;
	/* Threads with events, opened or inherited; SAMPLER_THREADS only. */
	struct pidset attached;
	VEC(int) cpus;               /* CPUs with a ring */
	struct ring *rings;          /* one per CPU of cpus */
	struct ring *event_rings;    /* event-only rings; NULL: rings take all records */
	struct sampler_early *early; /* one per ring of sampler_ring; NULL: none */
	size_t early_bytes;          /* of their memory */
	size_t early_max;            /* most of them; 0: not known yet */
	bool no_event_rings;         /* opening event-only rings failed */
	size_t fd_limit;             /* RLIMIT_NOFILE after raising */
	bool identified;             /* records carry the id of their event */
	uint64_t others;             /* records of names, maps and forks that were walked */
	uint64_t started_ns;         /* sampling events are enabled since; 0: not yet */
	bool stopping;
	bool awaiting_exec; /* the command has not called exec yet */
	/* New events are opened disabled beside the old ones, without event-only ones. */
	bool renewing;
	struct sampler_fds fds;            /* all events except the owners of rings */
	struct sampler_cpus missed, added; /* new CPUs: not sampled, sampled */
	struct cpulist_online online;      /* last list of sampler_follow_cpus, */
	uint64_t polled_ns;                /* and its time */
	struct pidset elsewhere; /* processes in another mount namespace, by NAMESPACES records */
	uint64_t mount_ns;       /* our mount namespace; 0: unknown */
	/* Processes between an exec and its first mapping; SAMPLER_THREADS only. */
	struct pidset executing;
	/* Threads that ended in this round; their FORK may be in a ring that is read later. */
	VEC(pid_t) ended;
	VEC(struct sampler_task) forks; /* of this round, with a filter */
	size_t wanted_threads;          /* threads of the targets when opening began */
	size_t denied;                  /* threads of other users, not sampled */
	bool cpus_denied;               /* CPU-wide events are not permitted */
	pid_t opening;                  /* process whose threads get events now; 0: none */
	int poll_fd;
	struct sampler_listener listeners[SAMPLER_LISTENERS_MAX];
	size_t nlisteners;
};

/* sampler_open.c: opens the events of the targets in s->setup.mode, or with reduced features. */
int sampler_open_events(struct sampler *s, struct sampler_problem *problem);

/* sampler_start.c: takes the records out of rings that are half full, before the first drain. 0 or
 * -ENOMEM. */
int sampler_take_early(struct sampler *s);
void sampler_free_early(struct sampler *s);

/* sampler_rings.c: opens rings for all CPUs that are online. */
int sampler_open_rings(struct sampler *s, struct sampler_problem *problem);

/* sampler_rings.c: the same for one more CPU, with its event-only ring if others have one. 0, also
 * if it went offline, or -errno. */
int sampler_add_ring(struct sampler *s, int cpu);

/* sampler_rings.c: opens event-only rings, if all may be locked. */
void sampler_open_event_rings(struct sampler *s);
void sampler_close_event_rings(struct sampler *s);

/* All rings; event-only rings come last. */
static inline size_t sampler_nrings(const struct sampler *s)
{
	return s->event_rings ? 2 * s->cpus.len : s->cpus.len;
}

static inline struct ring *sampler_ring(const struct sampler *s, size_t i)
{
	return i < s->cpus.len ? &s->rings[i] : &s->event_rings[i - s->cpus.len];
}

/* sampler_open.c: opens the events of a thread (-1: all threads) on the CPU of this ring. 0 or
 * -errno. */
int sampler_open_on_cpu(struct sampler *s, pid_t tid, size_t cpu_index);

/* sampler.c: closes the events on a CPU and adds their lost samples. */
void sampler_close_on_cpu(struct sampler *s, int cpu);

/* sampler.c: adds the lost samples of an event before its last close. */
void sampler_read_lost(struct sampler *s, const struct sampler_fd *fd);

/* sampler.c: updates s->opened after ids were added. */
void sampler_show_ids(struct sampler *s);

/* sampler_hotplug.c: hands a new id to the listeners. 0 or a listener's -errno. */
int sampler_announce_id(struct sampler *s, size_t event, uint64_t id);

/* sampler_drain.c: calls fn for each record since the last scan. Only the first RING_START bytes of
 * a record are valid. 0 or fn's error. */
int sampler_scan(struct sampler *s, int (*fn)(void *ctx, const struct perf_event_header *h),
		 void *ctx);

/* The record if it is a whole FORK, else NULL. */
static inline const struct sampler_task *sampler_fork_of(const struct perf_event_header *h)
{
	return h->type == PERF_RECORD_FORK && h->size >= sizeof(struct sampler_task)
		       ? (const void *)h
		       : NULL;
}

/* Whether the record is an exec of this process. */
bool sampler_is_exec(const struct perf_event_header *h, pid_t pid);

/* sampler_drain.c: marks threads by FORK records in the rings as attached, and adds new processes
 * to the targets. 0 or -ENOMEM. */
int sampler_peek_forks(struct sampler *s);

/* sampler_drain.c: hand synthesized records, and the end of a round, to the listeners. 0 or a
 * listener's -errno. */
int sampler_send_synthesized(struct sampler *s, const void *data, size_t len);
int sampler_send_round(struct sampler *s);

/* sampler_explain.c: describes the failure and its remedy. where: "CPU 1", "process 12". */
int sampler_explain(const struct sampler *s, int error, size_t event, const char *where,
		    struct sampler_problem *problem);
static inline const char *sampler_proc(const struct sampler_options *options)
{
	return options->roots.proc ? options->roots.proc : "/proc";
}

#endif
