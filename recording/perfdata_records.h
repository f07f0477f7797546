/* Records that are not in a file yet, as they come out of rings: taken apart one by one, and samples made anew with another callchain. */
#ifndef RECORDING_PERFDATA_RECORDS_H
#define RECORDING_PERFDATA_RECORDS_H

#include "recording/perfdata.h"

/* A perfdata for perfdata_records_take alone, of n events without ids. 0, -E2BIG, -ENOMEM. */
int perfdata_records_new(const struct perf_event_attr *attrs, size_t n, struct perfdata **ret_data);

/* Records of an event carry this id. 0, -E2BIG, -ENOMEM. */
int perfdata_records_add_id(struct perfdata *d, size_t event, uint64_t id);

/*
 * Samples with an id that is nobody's are of this event. Where two recorders have the same software event of a CPU, Linux 6.18 gives the
 * samples of both the id of one of them (kernel/events/core.c, do_perf_sw_event: all events share one perf_sample_data).
 */
void perfdata_records_strangers(struct perfdata *d, size_t event);

/* Takes a whole record apart; *ret_record points into it. 0 or -EBADMSG. */
int perfdata_records_take(struct perfdata *d, const struct perf_event_header *header, struct perfdata_record *ret_record);

/* Its time alone; 0: it has none. */
uint64_t perfdata_records_time(struct perfdata *d, const struct perf_event_header *header);

/* What becomes of a sample's registers and its copy of the stack. */
enum perfdata_stack {
	PERFDATA_STACK_LEFT_OUT, /* the event has none in the file */
	PERFDATA_STACK_EMPTY, /* it has, this sample has not */
	PERFDATA_STACK_KEPT,
};

#define PERFDATA_RECORD_BYTES_MAX_OUT 65528 /* header.size has 16 bits, and records whole words */

/*
 * The sample with another callchain of n words, into out, which has room for PERFDATA_RECORD_BYTES_MAX_OUT. Its event has only fields up to
 * PERF_SAMPLE_STACK_USER, PERF_SAMPLE_CALLCHAIN among them. Gives its bytes; 0: they would be too many.
 */
size_t perfdata_records_rewrite(const struct perfdata_record *sample, const uint64_t *callchain, size_t n,
				enum perfdata_stack stack, void *out);

#endif
