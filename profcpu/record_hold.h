/* Which processes the opener holds while recording, so that the files of ended ones can be named
 * later. */
#ifndef PROFCPU_RECORD_HOLD_H
#define PROFCPU_RECORD_HOLD_H

#include "container/opener.h"
#include "sampler/pidset.h"
#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_HOLD_PENDING 1024
#define RECORD_HOLD_A_ROUND 100 /* processes held at once each time the rings are read */
#define RECORD_HOLD_AFTER_NS 1000000000ULL

/*
 * On a busy machine most new processes end at once and share our root: holding each of them would
 * cost more than sampling it. Recording the machine, those with a mount namespace of their own are
 * held at once, others when they have lived for a second.
 */
struct record_hold {
	struct opener *opener; /* borrowed; NULL: nothing is held */
	bool patient;          /* as above; false: all are held at once */
	unsigned held;         /* in this round */
	struct pidset waiting; /* those of pending that have not ended */
	struct record_hold_pending {
		pid_t pid;
		uint64_t since_ns;
	} pending[RECORD_HOLD_PENDING]; /* a ring in order of time */
	size_t first, count;
};

/* 0 or -ENOMEM. */
int record_hold_new(struct record_hold *h, struct opener *opener, bool patient);
void record_hold_free(struct record_hold *h); /* a zeroed one is fine */

/* What the sampler tells of a process; always: hold it at once. */
void record_hold_news(struct record_hold *h, pid_t pid, enum sampler_news news, bool always);

/* The rings were read: holds those whose time has come. */
void record_hold_round(struct record_hold *h);

/* All processes that there are. */
void record_hold_all(struct record_hold *h);

#endif
