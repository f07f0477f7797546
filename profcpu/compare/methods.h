/* The sums of a comparison by method. */
#ifndef PROFCPU_COMPARE_METHODS_H
#define PROFCPU_COMPARE_METHODS_H

#include "base/vec.h"
#include "profcpu/compare/compare.h"

struct compare_method {
	uint32_t name;                 /* text of the profile */
	uint64_t total[COMPARE_PARTS]; /* with the methods and functions that it calls */
	uint64_t self[COMPARE_PARTS];  /* it is the innermost method */
	size_t last;                   /* private */
};

struct compare_methods {
	VEC(struct compare_method) v; /* the most important first */
	uint64_t all[COMPARE_PARTS];
};

/* Makes the sums. The caller frees them. 0, -ENOMEM. */
int compare_methods_make(const struct compare *c, const struct profile *profile,
			 struct compare_methods *ret_methods);
void compare_methods_free(struct compare_methods *m);

/* The number of samples in any state. */
uint64_t compare_claims(const uint64_t parts[COMPARE_PARTS]);

/* Shares of a method, 0 to 1. */
struct compare_shares {
	double cpu;             /* of the time on CPUs */
	double claimed;         /* of all samples of the runtime's sampler */
	double claimed_running; /* of its samples of running threads */
};

struct compare_shares compare_shares(const struct compare_methods *m,
				     const uint64_t parts[COMPARE_PARTS]);

#endif
