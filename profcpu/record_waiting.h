/*
 * While recording: the stacks of threads that wait already when it begins, or since a time in which switches were not recorded: of these no
 * switch out tells. They are read from outside (sampler/waiting.h) by a thread of its own, as a target's memory can answer late or never, and
 * unwound between rounds. Of a stack's registers only two are known, so that where a caller's frame hangs on another one it is looked for.
 */
#ifndef PROFCPU_RECORD_WAITING_H
#define PROFCPU_RECORD_WAITING_H

#include "profcpu/record_offcpu.h"
#include "unwind/unwinder.h"

#define RECORD_WAITING_THREADS_MAX 65536 /* that wait to be read */
#define RECORD_WAITING_BYTES ((size_t)8 << 20) /* of stacks that are not unwound yet */
#define RECORD_WAITING_FIRST_BYTES 16384 /* of a stack; all, where these do not reach its end */
#define RECORD_WAITING_CODE_NS 2000000000ULL /* that one waits for code which is not known */
#define RECORD_WAITING_IDLE_TIMES 9 /* as long as it reads the thread does nothing */
#define RECORD_WAITING_END_NS 2000000000ULL /* the thread has to end in this time, or is left behind */

struct record_waiting;

/* Starts the thread; signals that the caller has blocked stay blocked in it. proc: NULL: "/proc"; borrowed. 0 or -errno. */
int record_waiting_new(const char *proc, struct record_waiting **ret_waiting);
void record_waiting_free(struct record_waiting *w);

/* The stack of this thread is wanted, if it waits, and not in a wait that was answered for already; from the next record_waiting_take on. Over the limit
 * it is not read. 0 or -ENOMEM. */
int record_waiting_ask(struct record_waiting *w, int32_t pid, int32_t tid);

/* What was asked for is read now, not from the next record_waiting_take on. */
void record_waiting_now(struct record_waiting *w);

/* This thread has ended, or is of another program now: what is remembered of it is none of the next with that id. */
void record_waiting_forget(struct record_waiting *w, int32_t tid);

/* Unwinds what was read, and tells it. last: it is the end, nothing waits for code any longer, and nothing more is asked. 0 or -ENOMEM. */
int record_waiting_take(struct record_waiting *w, struct unwinder *unwinder, struct record_offcpu *offcpu, bool last);

/* Whether the stacks of some could be better in a moment, or be there at all. */
bool record_waiting_hopes(struct record_waiting *w);

/* The recording is over: from now on the thread does not rest. Until some were read, or nothing is to be read or has room, at most to until_ns
 * (CLOCK_MONOTONIC). Whether there is something for record_waiting_take. */
bool record_waiting_hurry(struct record_waiting *w, uint64_t until_ns);

struct record_waiting_stats {
	uint64_t asked, read; /* threads; those that did not wait are not read, */
	uint64_t again; /* nor those that were in a wait that was answered for */
	uint64_t refused; /* their memory may not be read */
	uint64_t dropped; /* over the limit, or not answered so far: at the end they were not read */
	uint64_t cpu_ns; /* that the reading took */
};
struct record_waiting_stats record_waiting_stats(struct record_waiting *w);

#endif
