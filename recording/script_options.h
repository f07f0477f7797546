/* Options for reading the text of `perf script`. */
#ifndef RECORDING_SCRIPT_OPTIONS_H
#define RECORDING_SCRIPT_OPTIONS_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* A zeroed struct holds the defaults. */
struct script_text_options {
	/* A source line follows each frame's line (perf script -F +srcline). */
	bool srcline;
	const char *event_filter; /* the event to fold; NULL or "": the first */
	/*
	 * Appends the full form of a JIT-compiled method's name to out. The name is as in the perf
	 * map. NULL: keep perf's name.
	 */
	void (*full_name)(const char *name, size_t len, struct outbuf *out);
};

#endif
