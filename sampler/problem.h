/* The reason why a recording failed, in words that profcpu/ prints. */
#ifndef SAMPLER_PROBLEM_H
#define SAMPLER_PROBLEM_H

#define SAMPLER_DETAIL_BYTES 512

/*
 * The code is the negative errno that the function returned. The phrase `what` follows "cannot",
 * such as "open the event". The detail has object, reason and remedy in one line, without a full
 * stop or newline. Untouched on success.
 */
struct sampler_problem {
	int code;
	const char *what;
	char detail[SAMPLER_DETAIL_BYTES];
};

/* Fills *problem, which may be NULL, and returns code. */
int sampler_fail(struct sampler_problem *problem, int code, const char *what, const char *format,
		 ...) __attribute__((format(printf, 4, 5)));

#endif
