/* What the files of the symbolizer share. */
#ifndef SYMBOLS_SYMBOLIZER_IMPL_H
#define SYMBOLS_SYMBOLIZER_IMPL_H

#include "symbols/answers.h"
#include "symbols/callchains.h"
#include "symbols/frames.h"
#include "symbols/images.h"
#include "symbols/kernel_map.h"
#include "symbols/processes.h"
#include "symbols/store.h"
#include "symbols/stripped.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>
#include <stdint.h>

struct symbolizer {
	struct profile *profile;
	struct symbolizer_options options;
	struct processes *processes;
	struct answers answers;
	struct images *images;
	struct stripped *stripped; /* NULL: what the store knows is not bettered */
	struct kernel_map kernel;
	struct frames frames;
	uint32_t kernel_image; /* in answers */
	uint32_t unknown_module; /* profile text "[unknown]" */
	struct callchains callchains;
	bool other_pid_ns_seen; /* the recording was made inside a PID namespace */
	bool has_store; /* names were kept, and could be read */
	bool unkept; /* of JIT-compiled code the store has not all answers: it is asked again for other times */
	bool from_store; /* of all images that were asked for: nothing is looked up on this machine */
	bool improved; /* an answer of the store was replaced by a better one */
	bool new_lines;
	bool timed; /* an answer since the frame was begun holds at some times only */
	struct store_notes notes; /* with has_store */
};

/* callchains_frame_fn: makes the frame of an address. */
int symbolizer_frame(void *ctx, const struct callchain_place *question, struct callchain_frame *ret_frame);

/* Whether this machine may be asked about an image of answers. */
bool symbolizer_may_look(const struct symbolizer *s, uint32_t image);

/* processes_unnamed_fn: perf's ":TID"; tid 0 is the idle task. */
int symbolizer_unnamed(void *ctx, int32_t tid, uint32_t *ret_comm);

#endif
