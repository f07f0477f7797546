/*
 * Holds folded waits (microseconds) against what tests/helpers/waits measured:
 *   waits_check time PERCENT ANSWER FOLDED [WAKEUPS]    each function's time, of its own, or a tenth of a millisecond
 *   waits_check share POINTS ANSWER FOLDED [WAKEUPS]    each function's part of the time of all these functions, of 100
 * With WAKEUPS (the sleeper's stack, "--", the waker's, and more of both) at least 99 % of each blocked function's time is there, below
 * its waker: of "-" that is an interrupt. Prints a table; 1 where something is further off.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWERS_MAX 16
#define NAME_MAX_BYTES 64

struct answer {
	char function[NAME_MAX_BYTES], waker[NAME_MAX_BYTES], state[NAME_MAX_BYTES];
	uint64_t count, us;
	double got_us, wakeup_us, right_us;
};

#define DELIMITER ";--;"
#define INTERRUPT "[interrupt]"
#define NOISE_US 100 /* microseconds that a clock read before and after may be off, in all */

/* A frame of that name, with or without an offset, before `end`; NULL: anywhere. */
static bool has_frame(const char *stack, const char *end, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = stack; (p = strstr(p, name)) && (!end || p < end); p += len)
		if ((p == stack || p[-1] == ';') && (p[len] == ';' || p[len] == ' ' || p[len] == '+'))
			return true;
	return false;
}

/* Whether the waker is the right one: `stack` begins behind the sleeper's. */
static bool is_woken(const struct answer *a, const char *stack)
{
	const char *end = strstr(stack, DELIMITER);
	bool interrupt = has_frame(stack, end, INTERRUPT);

	return strcmp(a->waker, "-") ? !interrupt && has_frame(stack, end, a->waker) : interrupt;
}

static size_t read_answers(const char *path, struct answer *answers)
{
	FILE *f = fopen(path, "r");
	char line[512];
	size_t n = 0;

	if (!f)
		return 0;
	while (n < ANSWERS_MAX && fgets(line, sizeof(line), f)) {
		struct answer *a = &answers[n];

		*a = (struct answer){0};
		n += sscanf(line, "%63s %63s %63s %" SCNu64 " %" SCNu64, a->function, a->waker, a->state, &a->count, &a->us) == 5;
	}
	fclose(f);
	return n;
}

static bool read_folded(const char *path, struct answer *answers, size_t n, bool wakeups)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;

	if (!f) {
		perror(path);
		return false;
	}
	while (getline(&line, &cap, f) > 0) {
		char *number = strrchr(line, ' ');

		if (!number)
			continue;
		for (size_t i = 0; i < n; i++) {
			const char *waker = wakeups ? strstr(line, DELIMITER) : NULL;
			struct answer *a = &answers[i];
			double us = strtod(number, NULL);

			if (!has_frame(line, waker, a->function))
				continue;
			*(wakeups ? &a->wakeup_us : &a->got_us) += us;
			/* Of the last ';' of one the first of the other is part. */
			if (waker && is_woken(a, waker + strlen(DELIMITER) - 1))
				a->right_us += us;
		}
	}
	free(line);
	fclose(f);
	return true;
}

int main(int argc, char **argv)
{
	struct answer answers[ANSWERS_MAX];
	bool share = argc > 1 && !strcmp(argv[1], "share"), good = true;
	double all = 0, got = 0;
	size_t n = argc > 4 ? read_answers(argv[3], answers) : 0;

	if (!n || (!share && strcmp(argv[1], "time"))) {
		fprintf(stderr, "waits_check time|share LIMIT ANSWER FOLDED [WAKEUPS]\n");
		return 2;
	}
	if (!read_folded(argv[4], answers, n, false) || (argc > 5 && !read_folded(argv[5], answers, n, true)))
		return 2;
	for (size_t i = 0; i < n; i++) {
		all += (double)answers[i].us;
		got += answers[i].got_us;
	}
	for (size_t i = 0; i < n; i++) {
		const struct answer *a = &answers[i];
		double real = (double)a->us, off;

		off = share ? 100 * (a->got_us / (got > 0 ? got : 1) - real / all) : 100 * (a->got_us / (real > 0 ? real : 1) - 1);
		bool woken = argc > 5 && !strcmp(a->state, "blocked");
		/* The rest of its time it was only runnable. */
		bool wrong = (fabs(off) > strtod(argv[2], NULL) && (share || fabs(a->got_us - real) > NOISE_US)) ||
			     (woken && (a->right_us < 0.99 * a->wakeup_us || a->wakeup_us < 0.9 * a->got_us));

		printf("%-12s %12.0f us are %12.0f us, %+7.2f %s", a->function, a->got_us, real, off, share ? "points" : "%");
		if (woken)
			printf(", %.2f %% blocked, of it below %s %.2f %%", 100 * a->wakeup_us / (a->got_us > 0 ? a->got_us : 1),
			       strcmp(a->waker, "-") ? a->waker : INTERRUPT, a->wakeup_us > 0 ? 100 * a->right_us / a->wakeup_us : 0);
		puts(wrong ? "  WRONG" : "");
		good = good && !wrong;
	}
	return good ? 0 : 1;
}
