/*
 * Stacks of threads that are blocked when recording begins, or whose switch out was not recorded. A
 * thread of its own reads them from outside (sampler/offcpu/blocked.h), because a target's memory
 * may take long or never be readable. They are unwound between rounds. Only two registers are
 * known, so a caller that needs another register is found by scanning the stack.
 */
#ifndef PROFCPU_RECORD_BLOCKED_READER_H
#define PROFCPU_RECORD_BLOCKED_READER_H

#include "sampler/offcpu/blocked.h"
#include "unwind/unwinder.h"

#define RECORD_BLOCKED_THREADS_MAX 65536       /* threads to read */
#define RECORD_BLOCKED_BYTES ((size_t)8 << 20) /* of stacks not unwound yet */
/* First copy of a stack; the whole stack follows if these bytes do not reach its end. */
#define RECORD_BLOCKED_FIRST_BYTES 16384
#define RECORD_BLOCKED_CODE_NS 2000000000ULL /* longest wait for unknown code */
#define RECORD_BLOCKED_IDLE_TIMES 9 /* pause after reading, in multiples of the time spent */
/* Time for the thread to end before it is abandoned. */
#define RECORD_BLOCKED_END_NS 2000000000ULL

struct record_blocked;

/*
 * Starts the thread; signals that the caller blocks stay blocked in it. proc NULL: "/proc";
 * borrowed. 0 or -errno.
 */
int record_blocked_new(const char *proc, struct record_blocked **ret_blocked);
void record_blocked_free(struct record_blocked *w);

/*
 * Requests the stack of a thread, if it is in a wait whose stack is not known yet. The request
 * takes effect at the next record_blocked_take. Over the limit it is dropped. 0 or -ENOMEM.
 */
int record_blocked_request(struct record_blocked *w, int32_t pid, int32_t tid);

/* Reads requested stacks now instead of after the next record_blocked_take. */
void record_blocked_read_now(struct record_blocked *w);

/* Forgets a thread that has ended or executed another program; its id may be reused. */
void record_blocked_forget(struct record_blocked *w, int32_t tid);

/*
 * Takes the stack of a thread in the wait with this count. It may come twice: first without the
 * callers behind unknown code. A non-zero result (-errno) ends the call and is returned by it.
 */
struct record_blocked_sink {
	void *ctx;
	int (*stack)(void *ctx, int32_t tid, uint64_t count, const struct blocked_stack *found,
		     const struct unwound *unwound);
};

/*
 * Unwinds the stacks read so far and passes them to the sink. last: the recording ends, so nothing
 * waits for code and no request follows. 0, -ENOMEM, or the sink's.
 */
int record_blocked_take(struct record_blocked *w, struct unwinder *unwinder,
			const struct record_blocked_sink *sink, bool last);

/* Whether stacks are still to be read or unwound. */
bool record_blocked_has_work(struct record_blocked *w);

/*
 * Makes the thread read without pauses, because the recording is over. Waits for the next stacks,
 * at most until until_ns (CLOCK_MONOTONIC). Returns early if nothing is left or fits. Returns
 * whether record_blocked_take has work.
 */
bool record_blocked_wait(struct record_blocked *w, uint64_t until_ns);

struct record_blocked_stats {
	uint64_t requested, read; /* threads; running threads are not read */
	uint64_t again;           /* not read: the stack of the wait is known */
	uint64_t refused;         /* not read: no permission for their memory */
	uint64_t dropped;         /* not read: over the limit, or not read before the end */
	uint64_t cpu_ns;          /* CPU time of the reading */
};
struct record_blocked_stats record_blocked_stats(struct record_blocked *w);

#endif
