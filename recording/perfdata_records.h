/*
 * Parses records from rings, before they are in a file, and rewrites samples with another
 * callchain.
 */
#ifndef RECORDING_PERFDATA_RECORDS_H
#define RECORDING_PERFDATA_RECORDS_H

#include "recording/perfdata.h"

/* Makes a perfdata for n events without ids, for this module only. 0, -E2BIG, -ENOMEM. */
int perfdata_records_new(const struct perf_event_attr *attrs, size_t n, struct perfdata **ret_data);

/* Adds an id that records of an event carry. 0, -E2BIG, -ENOMEM. */
int perfdata_records_add_id(struct perfdata *d, size_t event, uint64_t id);

/*
 * Assigns samples with an unknown id to this event. If two recorders have the same software event
 * on a CPU, Linux 6.18 writes the same id into the samples of both. Source: kernel/events/core.c,
 * do_perf_sw_event: all events share one perf_sample_data.
 */
void perfdata_records_assign_unknown_ids(struct perfdata *d, size_t event);

/* Parses a whole record; *ret_record points into it. 0 or -EBADMSG. */
int perfdata_records_parse(struct perfdata *d, const struct perf_event_header *header,
			   struct perfdata_record *ret_record);

/* Returns only the time of a record; 0: none. */
uint64_t perfdata_records_time(struct perfdata *d, const struct perf_event_header *header);

/* Treatment of a sample's registers and stack copy. */
enum perfdata_stack {
	PERFDATA_STACK_OMITTED, /* the event in the file has no such fields */
	PERFDATA_STACK_EMPTY,   /* the fields are there, but empty */
	PERFDATA_STACK_KEPT,
};

/* header.size has 16 bits, and records consist of whole words */
#define PERFDATA_RECORD_BYTES_MAX_OUT 65528

/*
 * Writes the sample with another callchain of n words to out, which has room for
 * PERFDATA_RECORD_BYTES_MAX_OUT. Its event has PERF_SAMPLE_CALLCHAIN, and only fields up to
 * PERF_SAMPLE_STACK_USER. Returns its bytes; 0: too many.
 */
size_t perfdata_records_rewrite(const struct perfdata_record *sample, const uint64_t *callchain,
				size_t n, enum perfdata_stack stack, void *out);

#endif
