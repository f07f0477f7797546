/* Why a recording could not be started or go on, in words that profcpu/ prints. */
#ifndef SAMPLER_PROBLEM_H
#define SAMPLER_PROBLEM_H

#define SAMPLER_DETAIL_BYTES 512

/*
 * code: the negative errno that the function returned. what: a static phrase that follows "cannot",
 * such as "open the event". detail: on what, why, and what the user can do; one line without a full
 * stop or newline. Untouched on success.
 */
struct sampler_problem {
	int code;
	const char *what;
	char detail[SAMPLER_DETAIL_BYTES];
};

/* Fills *problem (which may be NULL) and gives code back. */
int sampler_fail(struct sampler_problem *problem, int code, const char *what, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

#endif
