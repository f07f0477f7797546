/*
 * Values of counters as text: lines, or CSV or JSON as `dotnet-counters collect` writes them.
 * Written as they come, so that a run that is killed leaves a usable file.
 */
#ifndef PROFCPU_COUNTERS_COUNTER_OUTPUT_H
#define PROFCPU_COUNTERS_COUNTER_OUTPUT_H

#include "base/json_writer.h"
#include "dotnet/eventpipe/event_clock.h"
#include "profcpu/counters/counter_value.h"
#include "profcpu/trace/trace_file.h"

enum counter_format {
	COUNTER_LINES, /* "TIME PROVIDER VALUE NAME[TAGS]" */
	COUNTER_CSV,
	COUNTER_JSON,
};

struct counter_output {
	enum counter_format format;
	struct trace_file file;
	struct event_clock clock; /* of the values; set it when the stream has begun */
	struct outbuf out, text;  /* text: of one field */
	struct json_writer document, events;
	uint64_t whole; /* bytes of the file up to the last whole value */
	bool begun;
};

/* The file is not open yet. */
struct counter_output counter_output_new(enum counter_format format);

/*
 * Creates the file, or replaces an old one; "-" is standard output. Puts the head of the format.
 * program: the name of the process. 0; -errno of trace_file_create.
 */
int counter_output_begin(struct counter_output *o, const char *file, const char *program);

void counter_output_value(struct counter_output *o, const struct counter_value *v);

/* Writes what was put. 0; the first error: -ENOMEM, or of a write. */
int counter_output_flush(struct counter_output *o);

/*
 * Ends the document and closes the file. After an error, cuts the file after its last whole value.
 * 0; the first error.
 */
int counter_output_end(struct counter_output *o);

#endif
