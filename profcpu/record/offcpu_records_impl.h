/*
 * Shared by the parts of offcpu_records: threads and stacks (offcpu_records.c), waits
 * (offcpu_records_waits.c), polls of schedstat (offcpu_records_poll.c), losses
 * (offcpu_records_lost.c).
 */
#ifndef PROFCPU_RECORD_OFFCPU_RECORDS_IMPL_H
#define PROFCPU_RECORD_OFFCPU_RECORDS_IMPL_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "profcpu/record/offcpu_records.h"
#include "sampler/offcpu/schedstat.h"

/* A thread whose waits are not all written. */
struct offcpu_task {
	int32_t pid, tid, cpu; /* cpu: where it was seen last */
	int32_t first_pid;     /* id in the first PID namespace, as learnt; 0: none */
	uint32_t stack;        /* of the coming switch out */
	bool ended;
	bool switched;              /* in record_offcpu.switched */
	uint64_t run_ns, polled_ns; /* schedstat at the last poll; 0: not polled */
	uint64_t count;             /* of schedstat, when the thread was first seen in this wait */
	uint64_t wait_ns;           /* the time of that */
	uint64_t request_ns;        /* time in the wait after which its stack is requested */
	uint64_t moved_ns;          /* time of the latest switch told by record_offcpu_moved */
	bool moved_out, moved;      /* it was a switch out; the task is in record_offcpu.moved */
	uint64_t rate;          /* ns run per second, between the last two polls; part of rates */
	uint32_t before, after; /* neighbours among the tasks of the process; index + 1, 0: none */
};

/* A thread whose wait began in the last window. */
struct offcpu_waiting {
	int32_t tid;
	uint64_t count; /* of schedstat, until it gets a CPU */
};

/* Head of an interned stack; the callchain follows. */
struct stack_head {
	uint16_t first_spliced, first_guess;
	uint8_t grade, end;
	uint8_t is_waker, flags; /* flags: of a waker, enum offcpu_idx_flags */
	int32_t pid, tid;        /* of a waker; else 0 */
};
#define STACK_HEAD_WORDS 2
_Static_assert(sizeof(struct stack_head) == 8 * STACK_HEAD_WORDS, "words follow");

/* Times of a CPU's switch ring; 0: none. */
struct ring_times {
	uint64_t read_ns; /* time of the last record read */
	uint64_t full_ns; /* time when it was found full */
};

#define CPUS_MAX 8192
#define REQUEST_BACKOFF 8
#define INTERRUPT (-1) /* waker id of an interrupt */

struct record_offcpu {
	struct record_offcpu_options options;
	struct record_offcpu_writer writer;
	struct offcpu *offcpu;          /* NULL: the recording has not begun */
	struct schedstat_reader *stats; /* NULL: the kernel has no schedstat */
	struct hashmap tids;            /* tid to index of tasks */
	struct hashmap pids;            /* pid to index of its first task */
	VEC(struct offcpu_task) tasks;
	size_t threads_max;
	VEC(uint32_t) free;     /* of tasks */
	VEC(uint32_t) switched; /* tasks that got a CPU since their last poll */
	VEC(uint32_t) moved;    /* tasks with a switch in the last window */
	bool moved_refused;     /* no memory for one */
	VEC(struct offcpu_waiting) waiting;
	size_t next_poll;     /* next task to poll, round robin */
	size_t due;           /* number of tasks that later rounds must poll */
	uint64_t rates;       /* sum over all tasks */
	struct intern stacks; /* struct stack_head and words */
	size_t stacks_bytes;
	VEC(uint64_t) waker_offs;          /* offset of the sample of each stack; 0: no waker */
	struct hashmap first_pids;         /* pids of the first PID namespace to ours */
	VEC(uint64_t) words;               /* scratch stack */
	VEC(struct ring_times) ring_times; /* by CPU */
	bool full;                         /* some full_ns is set */
	bool throttling;                   /* polls come at marks, not in rounds */
	bool read_now;                     /* a requested stack must be read at once */
	uint64_t others;                   /* samples in the context of other threads */
	struct record_offcpu_result result;
};

/* offcpu_records.c */
struct offcpu_task *record_offcpu_task(const struct record_offcpu *o, int32_t tid);
int record_offcpu_remove(struct record_offcpu *o, const struct offcpu_task *task);

/* offcpu_records_waits.c */
int record_offcpu_take_interval(void *ctx, const struct offcpu_interval *interval);
int record_offcpu_take_thread(void *ctx, pid_t tid, const struct offcpu_totals *t);
int record_offcpu_take_unknown(void *ctx, pid_t tid, uint64_t from_ns, uint64_t to_ns);
int record_offcpu_take_unseen(void *ctx, pid_t tid);

/* offcpu_records_poll.c */
void record_offcpu_set_rate(struct record_offcpu *o, struct offcpu_task *task, double rate);
int record_offcpu_poll_one(struct record_offcpu *o, struct offcpu_task *task, uint64_t time_ns);
int record_offcpu_poll_next(struct record_offcpu *o, uint64_t time_ns, size_t most);
int record_offcpu_poll_switched(struct record_offcpu *o);

/* offcpu_records_lost.c */
int record_offcpu_take_full(struct record_offcpu *o, uint64_t end_ns);

#endif
