/*
 * Event profiles: the events of a runtime by stack. A frame above each stack says what the event is
 * about: the type, the thread that held the lock, the collection, or the compiled method. They are
 * groups of events of their own, which have no samples in the profile. So no other output shows
 * them. Those of MANAGED_CAUSES are the waits of the recording, each with its cause; those of
 * MANAGED_RUNTIME the CPU samples of the runtime's own work.
 */
#ifndef PROFCPU_MANAGED_PROFILES_H
#define PROFCPU_MANAGED_PROFILES_H

#include "profcpu/managed/causes.h"
#include "profcpu/managed/events.h"
#include "profcpu/managed/trace_place.h"
#include "profcpu/managed/unnamed.h"
#include "profile/profile.h"

struct managed_options {
	int trace_fd;    /* borrowed */
	unsigned wanted; /* bits of enum managed_kind */
	struct trace_place_options place;
	uint64_t max_bytes; /* of the events */
	bool unlisted;      /* the runtime could not send single events */
	bool raw_names;     /* names of types and methods as the runtime spells them */
};

/* Events with one name. */
struct managed_sum {
	uint32_t name; /* text of the profile */
	uint64_t weight, events;
};

/* The largest first. */
struct managed_sums {
	VEC(struct managed_sum) list;
};

struct managed_profile {
	bool wanted;
	uint32_t event;              /* of the profile; PROFILE_NONE: it has no events */
	VEC(struct profile_group) v; /* by thread and stack */
	uint64_t events, weight;
	uint64_t unpaired;
	VEC(uint64_t) weights;      /* of kinds that are times: sorted */
	struct managed_sums labels; /* what the events are about */
	struct managed_sums places; /* methods of the program that caused them */
};

struct managed_totals {
	uint64_t seen;      /* events of any kind in the trace */
	uint64_t window_ns; /* of the trace */
	uint64_t lost, left_out;
	uint64_t estimated_ns; /* of the waits that are not idle: no event explains them */
	/* Samples on CPUs of the process, and those of its threads that write the trace. */
	uint64_t cpu_weight, writer_weight;
	uint32_t cpu_event;         /* of the runtime's work; PROFILE_NONE: none */
	bool unlisted;              /* struct managed_options */
	bool exact_samples, is_cut; /* struct managed_events */
};

struct managed_profiles;

/* 0; errors of managed_events_read, with *err. After -EBADMSG, -E2BIG there are none to use. */
int managed_profiles_new(struct profile *profile, const struct managed_options *options,
			 struct managed_profiles **ret_profiles, struct parse_error *err);
void managed_profiles_free(struct managed_profiles *m);

/* Its stacks, for the import. Valid as long as m. */
struct unnamed_source managed_profiles_source(struct managed_profiles *m);

/*
 * Takes a wait, for its cause, when its stack has names. Ignores those of other processes. Sets
 * wait->tid. 0; -ENOMEM.
 */
int managed_profiles_take_wait(struct managed_profiles *m, struct cause_wait *wait);

/* Takes a sample on a CPU, if it is of the runtime's own work. 0; -ENOMEM. */
int managed_profiles_take_cpu(struct managed_profiles *m, const struct profile_sample *sample);

/* Sums up. Call it once, after all samples are in the profile. 0, -ENOMEM, -E2BIG. */
int managed_profiles_finish(struct managed_profiles *m);

pid_t managed_profiles_pid(const struct managed_profiles *m);
const struct managed_profile *managed_profile_of(const struct managed_profiles *m,
						 enum managed_kind kind);
/* The unit of a kind's weights: "ns", "bytes", ..., or the event of the CPU samples. */
const char *managed_unit(const struct managed_profiles *m, enum managed_kind kind);
const struct managed_totals *managed_totals(const struct managed_profiles *m);

#endif
