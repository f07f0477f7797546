/*
 * Shared by the parts of unwind: samples (unwind.c), deferred samples (unwind_deferred.c), waits
 * (unwind_offcpu.c).
 */
#ifndef PROFCPU_RECORD_UNWIND_IMPL_H
#define PROFCPU_RECORD_UNWIND_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "profcpu/record/blocked_reader.h"
#include "profcpu/record/code_reader.h"
#include "profcpu/record/rows.h"
#include "profcpu/record/unwind.h"

#define RECORD_UNWIND_LAST_NS (NS_PER_S / 2) /* longest wait for code at the end */

/* A record of the round. */
struct unwind_item {
	uint64_t time_ns;
	const struct perf_event_header *header;
};

/* A deferred sample; its record follows. */
struct unwind_deferred {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t bytes;    /* of the record */
	bool done;
};

struct record_unwind {
	enum keep_stacks keep;
	bool keep_32bit;
	struct copy_size copy;
	bool copy_limited; /* record_unwind_keep_stack_bytes, limited */
	pid_t self;        /* PID of profcpu, whose stacks do not change the size of copies */
	struct unwinder *unwinder;
	struct code_reader *reader; /* NULL: code of processes is not read */
	struct perfdata *records;   /* decoder of records */
	VEC(struct unwind_item) items;
	bool ordered;        /* items are sorted by time so far */
	unsigned char *part; /* start of an incomplete record; in a block */
	size_t part_bytes;
	VEC(unsigned char *) blocks; /* data to be written at the end of the round; reused */
	size_t block, used;          /* block in use, and its used bytes */
	unsigned char *deferred; /* buffer of deferred_max bytes, used from first to end; or NULL */
	size_t deferred_max, first, end, ndeferred;
	struct record_rows *rows;     /* rows of samples.idx and offcpu.idx */
	struct record_offcpu *offcpu; /* borrowed; NULL: switches are not recorded */
	uint32_t switches;            /* index of their event */
	uint64_t switches_id;         /* one of its ids */
	uint32_t wakings;             /* the same for wakings; UINT32_MAX: not recorded */
	uint64_t wakings_id;
	uint32_t waking_pid_offset;
	struct waker_processes *wakers;          /* NULL: all processes are targets */
	uint64_t waker_wait_ns, waker_waited_ns; /* longest wait in a round; wait in this round */
	/* End of the first round after the last end mark; UINT64_MAX: it still runs. */
	uint64_t clear_ns;
	uint64_t switches_cpu_ns;       /* CPU time for records of switches and wakings */
	struct record_blocked *blocked; /* NULL: without switches */
	struct perfdata_writer *writer; /* of the round */
	int error;                      /* first write error; later records are only counted */
	struct record_unwind_stats stats;
};

/* unwind.c */
unsigned char *record_unwind_room(struct record_unwind *u, size_t bytes);
void record_unwind_use_room(struct record_unwind *u, size_t bytes);
void record_unwind_put(struct record_unwind *u, struct perfdata_writer *w, const void *data,
		       size_t bytes);
int record_unwind_take_sample(struct record_unwind *u, struct perfdata_writer *w,
			      const struct perfdata_record *record, bool last);
/* record: the parsed header; NULL: it is damaged. */
int record_unwind_take_other(struct record_unwind *u, struct perfdata_writer *w,
			     const struct perf_event_header *header,
			     const struct perfdata_record *record);

/* unwind_offcpu.c */
int record_unwind_begin_offcpu(struct record_unwind *u, const struct record_unwind_options *o);
int record_unwind_take_offcpu(struct record_unwind *u, const struct perfdata_record *record);
int record_unwind_hand_over_waits(struct record_unwind *u, uint64_t end_ns);
int record_unwind_take_blocked(struct record_unwind *u, bool end);
int record_unwind_take_wakers(struct record_unwind *u, bool now);

/* unwind_deferred.c */
int record_unwind_retry(struct record_unwind *u, struct perfdata_writer *w, bool last);
int record_unwind_defer(struct record_unwind *u, struct perfdata_writer *w,
			const struct perf_event_header *header);
int record_unwind_take_code(struct record_unwind *u, struct perfdata_writer *w);
/* CLOCK_MONOTONIC; UINT64_MAX: no sample is deferred. */
uint64_t record_unwind_oldest_ns(const struct record_unwind *u);
int record_unwind_take_last(struct record_unwind *u, struct perfdata_writer *w);

#endif
