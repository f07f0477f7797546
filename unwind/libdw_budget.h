/*
 * Limits how much an image may cost libdw. Files may be hostile: their call frame information can
 * crash libdw or keep it busy. Such an image is refused for the rest of the run, so that it costs
 * the stacks of other programs nothing. Each walk has an allowance. Time beyond it is a debt of the
 * image that took most of it.
 *
 * Good rules take less than 1 us a frame, and the first walk in an address space 10 to 20 ms for
 * each MiB of them. So the time of all walks grows with the samples and their frames. All hostile
 * images together can add LIBDW_BUDGET_TOTAL_NS, and then LIBDW_BUDGET_REST_NS each, in walks that
 * end early. After LIBDW_BUDGET_REFUSED_NS of images that became refused, libdw is not used any
 * more. One thread uses this.
 */
#ifndef UNWIND_LIBDW_BUDGET_H
#define UNWIND_LIBDW_BUDGET_H

#include "base/clock.h"
#include "base/hashmap.h"

#include <stdbool.h>

#define LIBDW_BUDGET_WALK_NS (5 * NS_PER_MS) /* allowance of a walk */
#define LIBDW_BUDGET_FRAME_NS 5000u          /* and of each frame */
/* Debts of an image, for each of its bytes, and of all images. */
#define LIBDW_BUDGET_IMAGE_NS (2 * NS_PER_S)
#define LIBDW_BUDGET_BYTE_NS 200u
#define LIBDW_BUDGET_TOTAL_NS (30 * NS_PER_S)
#define LIBDW_BUDGET_REST_NS (200 * NS_PER_MS) /* of an image, once the total is spent */
#define LIBDW_BUDGET_REFUSED_NS (2 * LIBDW_BUDGET_TOTAL_NS)
#define LIBDW_BUDGET_FAILURES_MAX 16 /* in a row that no image caused */

/* Zeroed: no debts. */
struct libdw_budget {
	struct hashmap debts; /* us, by image; UINT32_MAX: refused */
	uint64_t total_ns;
	uint64_t refused_ns; /* of it: of failures, and of images that became refused */
	uint64_t failures;   /* that no image caused, in a row */
};

void libdw_budget_free(struct libdw_budget *b);

/* Whether an image is refused. image: a hash that stays the same for all of the run. */
bool libdw_budget_refuses(const struct libdw_budget *b, uint64_t image);

struct libdw_charge {
	uint64_t image;  /* as in libdw_budget_refuses */
	uint64_t bytes;  /* of its call frame information */
	uint64_t cpu_ns; /* of the walk, or of reading the image */
	uint64_t frames; /* of the walk */
};

/*
 * Charges an image. *ret_refused: it became refused by this call. Returns 0 or -ENOMEM, likewise
 * libdw_budget_fail.
 */
int libdw_budget_charge(struct libdw_budget *b, const struct libdw_charge *charge,
			bool *ret_refused);

/* Refuses an image whose rules ended libdw, after some time. */
int libdw_budget_fail(struct libdw_budget *b, uint64_t image, uint64_t ns, bool *ret_refused);

/* Counts a failure that no image caused, after some time. */
void libdw_budget_fail_alone(struct libdw_budget *b, uint64_t ns);

/* Whether a walk must end early, because the total is spent. */
bool libdw_budget_is_spent(const struct libdw_budget *b);

/* Whether libdw may be tried: not too many failures in a row, nor too much time of refused images.
 */
bool libdw_budget_lasts(const struct libdw_budget *b);

#endif
