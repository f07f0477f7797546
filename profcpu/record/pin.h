/* Pins processes in the opener while recording, so that files of ended ones can be read. */
#ifndef PROFCPU_RECORD_PIN_H
#define PROFCPU_RECORD_PIN_H

#include "base/pidset.h"
#include "container/opener.h"
#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_PIN_PENDING 1024
#define RECORD_PIN_A_ROUND 100 /* processes pinned at once per round */
#define RECORD_PIN_AFTER_NS 1000000000ULL

/*
 * On a busy machine most new processes end at once and share our root. Pinning each would cost more
 * than sampling it. When the whole machine is recorded, processes with another mount namespace are
 * pinned at once, others after one second.
 */
struct record_pin {
	struct opener *opener; /* borrowed; NULL: nothing is pinned */
	bool patient;          /* as above; false: all are pinned at once */
	unsigned pinned;       /* processes pinned at once in this round */
	struct pidset alive;   /* pending processes that have not ended */
	struct record_pin_pending {
		pid_t pid;
		uint64_t since_ns;
	} pending[RECORD_PIN_PENDING]; /* a ring in order of time */
	size_t first, count;
};

/* 0 or -ENOMEM. */
int record_pin_new(struct record_pin *p, struct opener *opener, bool patient);
void record_pin_free(struct record_pin *p); /* a zeroed one is fine */

/* Takes news of a process; always: pins it at once. */
void record_pin_news(struct record_pin *p, pid_t pid, enum sampler_news news, bool always);

/* Ends a round: pins processes that are old enough. */
void record_pin_round(struct record_pin *p);

/* Pins all existing processes. */
void record_pin_all(struct record_pin *p);

#endif
