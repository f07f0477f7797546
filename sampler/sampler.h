/*
 * Samples processes or the whole machine through perf_event_open, with one ring per CPU. Raw
 * records go in chunks to listeners, such as the writer of perf.data. One thread uses a sampler.
 *
 * A sample has IP, TID, TIME, CPU, PERIOD and CALLCHAIN. With several events it also has
 * IDENTIFIER; with copied stacks, REGS_USER and STACK_USER. All other records end with a sample_id
 * of the same fields. Times are CLOCK_MONOTONIC. Formats: include/uapi/linux/perf_event.h.
 *
 * Events are opened in one of two modes:
 * - SAMPLER_THREADS: one event per thread and CPU, inherited by new threads and children. It is
 * used while it needs few descriptors.
 * - SAMPLER_CPUS: one event per CPU. Records of other processes are dropped here. If enough memory
 *   may be locked, each CPU gets an event-only ring for records other than samples. News of
 *   processes are then found without a walk over the samples.
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include "sampler/options.h"
#include "sampler/problem.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler;

#define SAMPLER_THREAD_FDS 512 /* descriptors that SAMPLER_THREADS may need at most */

enum sampler_news {
	/* Forked, or executed a program; its mount namespace is ours or unknown. */
	SAMPLER_PROCESS_NEW,
	/* The same, in another mount namespace than ours. */
	SAMPLER_PROCESS_ELSEWHERE,
	SAMPLER_PROCESS_ENDED,
	/*
	 * Continues without sampling, SAMPLER_THREADS only. It executed a program with other rights
	 * or one that it may not read, so the kernel removed the events of its thread (Linux
	 * fs/exec.c, begin_new_exec).
	 */
	SAMPLER_PROCESS_DETACHED,
};

/*
 * Callbacks for records. Each may be NULL. A non-zero result (-errno) ends the drain and is
 * returned by it.
 *
 * records: whole records, 8-byte aligned, len > 0. A record that crosses the end of a ring may be
 * continued by the next call. The data are valid until the next `round` returns. cpu is -1 for
 * records made from /proc. A positive result then asks for no more of them.
 * round: every ring was read once. Records of later rounds are not older than those of the round
 * before (perf's FINISHED_ROUND).
 * process: news of a target process, taken from the records. The process may have ended since. NEW
 * may come several times for one process.
 * event_id: records of the event may carry this new id from now on, because a CPU came online.
 * -E2BIG: no room for the id; the CPU is then not sampled.
 */
struct sampler_listener {
	void *ctx;
	int (*records)(void *ctx, int cpu, const void *data, size_t len);
	int (*round)(void *ctx);
	int (*process)(void *ctx, pid_t pid, enum sampler_news news);
	int (*event_id)(void *ctx, size_t event, uint64_t id);
};

#define SAMPLER_LISTENERS_MAX 4

struct sampler_stats {
	uint64_t bytes; /* handed to listeners */
	/* Records and samples that were walked: all with sampler_options.count. */
	uint64_t records, samples;
	uint64_t dropped;      /* records of other processes, SAMPLER_CPUS */
	uint64_t lost_records; /* sum of PERF_RECORD_LOST: rings were full of samples */
	uint64_t lost_others;  /* the same: full of other records */
	uint64_t lost_samples; /* as the kernel counts, 6.0 and later, after sampler_stop */
	uint64_t throttled;    /* PERF_RECORD_THROTTLE among the records walked */
	uint64_t damaged;      /* walked rings with invalid content, skipped to their head */
	/* CLOCK_MONOTONIC, exact to a round; 0: no sample */
	uint64_t first_sample_ns, last_sample_ns;
	uint64_t rounds;
	/* Processes that ran before, and whose threads or maps could not be read: open files. */
	uint64_t unread;
	/* Processes that ran before and had more mappings than SYNTH_MAPS_BYTES_MAX holds. */
	uint64_t cut_maps;
	/* CPUs that came online later: sampled since then, or not sampled. */
	uint64_t cpus_added, cpus_missed;
	int cpu_added, cpu_missed; /* the first of each */
};

/* How the events were opened. */
struct sampler_setup {
	enum sampler_mode mode; /* SAMPLER_THREADS or SAMPLER_CPUS */
	bool kernel_excluded;   /* user space only, for lack of permission */
	bool fell_back;         /* the chosen events failed to open; cpu-clock is used */
	bool filtered;          /* SAMPLER_CPUS and not system_wide */
	size_t descriptors, threads, processes, cpus;
	size_t ring_bytes;               /* of each CPU */
	bool small_rings;                /* made smaller, because little memory is left */
	char note[SAMPLER_DETAIL_BYTES]; /* reduced features and their remedy; empty: none */
};

/* One event with the ids that its records carry. Lives as long as the sampler. */
struct sampler_opened {
	struct perf_event_attr attr; /* as the kernel accepted it */
	const char *name;            /* as perf writes it; ":u" if the kernel was excluded */
	const uint64_t *ids;
	size_t nids;
};

/*
 * Opens events and rings. Records other than samples run from then on; samples begin with
 * sampler_start. Raises the soft RLIMIT_NOFILE to the hard one. 0, or -errno with *problem: -ESRCH
 * (no such process), -EACCES, -EPERM, -EMFILE, -ENOENT (unsupported event), -EINVAL (event or
 * stack_bytes), -ENOMEM, -ENOSYS.
 */
int sampler_open(const struct sampler_options *options, struct sampler **ret_sampler,
		 struct sampler_problem *problem);

/*
 * Begins sampling; for a command in SAMPLER_THREADS, lets its exec begin it. Returns a time
 * (CLOCK_MONOTONIC) that is not later than any sample. If descriptors were short, sampling began in
 * sampler_open.
 */
uint64_t sampler_start(struct sampler *s);

/* Adds a listener (copied). 0 or -E2BIG. */
int sampler_listen(struct sampler *s, const struct sampler_listener *listener);

/*
 * Hands the state of running processes to the listeners, as one round with times 0. It has MMAP of
 * the kernel and its modules, then FORK, COMM and executable MMAP2 of the targets. Call it before
 * the first drain. Rings that fill meanwhile are emptied into memory, up to SAMPLER_EARLY_MAX and
 * to an eighth of the memory left; the first drain hands over those records. If a listener wants no
 * more, they are dropped. 0 or -errno.
 */
#define SAMPLER_EARLY_MAX ((size_t)64 << 20)
int sampler_synthesize(struct sampler *s);

/* Takes synthesized records. 0 or -errno. */
typedef int (*sampler_synthesized)(void *ctx, const void *data, size_t len);

/* The state of processes is read from here, in this form. */
struct sampler_synthesis {
	const char *proc; /* path of /proc; of struct sampler_options */
	bool identified;  /* records end with the id of their event */
};
struct sampler_synthesis sampler_synthesis(const struct sampler *s);

/*
 * Hands the state of one process, target or not, to `take` instead of the listeners. An ended
 * process has no records. May run in any thread, also after sampler_free. 0, -ENOMEM, or take's
 * -errno.
 */
int sampler_synthesize_process(const struct sampler_synthesis *from, pid_t pid,
			       sampler_synthesized take, void *ctx);

/*
 * A descriptor to poll for POLLIN: a ring is half full, or a quarter full with copied stacks. Drain
 * once before the first poll, and again after adding it to another epoll. epoll reports a ring that
 * is already full only once. Drain at least every SAMPLER_DRAIN_MS in any case.
 */
#define SAMPLER_DRAIN_MS 900
int sampler_poll_fd(const struct sampler *s);

/* Hands all records in the rings to the listeners. 0 or the listener's -errno. */
int sampler_drain(struct sampler *s);

/*
 * Follows CPUs that go offline and come online. Checks at most every SAMPLER_CPU_CHECK_MS; call it
 * between drains. SAMPLER_CPUS: samples CPUs that are new or back, because the kernel ends the
 * events of a CPU that goes offline. A CPU that is back at the next check is not noticed; a suspend
 * is such a case. SAMPLER_THREADS: events stay, but new CPUs get none. 0, or the listener's -errno.
 */
#define SAMPLER_CPU_CHECK_MS 2000
int sampler_follow_cpus(struct sampler *s);

/*
 * Changes the size of copied stacks while recording. Old and new size are not 0, because samples
 * with and without copies differ in layout. Call it between drains.
 *
 * It opens new events, enables them and closes the old ones, about 40 us per thread. Rings stay.
 * Samples may come twice meanwhile, and none is missing. Processes may be announced again. If
 * descriptors are short, it works CPU by CPU. Listeners get the new ids, and sampler_opened has
 * only these.
 *
 * 0; -EINVAL (size), -EMFILE, -ENOMEM, -ESRCH (no thread is left), the listener's -errno, or an
 * error of opening. After an error the old size holds; CPU by CPU, some CPUs may have the new one.
 */
int sampler_set_stack_bytes(struct sampler *s, uint32_t stack_bytes);

/* Ends sampling and drains a last time. 0 or the listener's -errno. */
int sampler_stop(struct sampler *s);

/*
 * The target processes: the chosen ones, and their descendants that ran when events were opened.
 * Empty with system_wide. Valid until the next sampler_drain.
 */
const pid_t *sampler_targets(const struct sampler *s, size_t *ret_n);
const struct sampler_opened *sampler_opened(const struct sampler *s, size_t *ret_n);
const struct sampler_setup *sampler_setup(const struct sampler *s);
const struct sampler_stats *sampler_stats(const struct sampler *s);

/* Closes everything. NULL is fine. */
void sampler_close(struct sampler *s);

#endif
