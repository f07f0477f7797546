/*
 * Compares folded waits (microseconds) with the measurements of tests/helpers/waits:
 *
 *   waits_check time PERCENT MEASURED FOLDED [WAKEUPS [US]]
 *       each function's time, within PERCENT of it or a tenth of a millisecond
 *   waits_check share POINTS MEASURED FOLDED [WAKEUPS]
 *       each function's percentage of the time of all these functions, within POINTS
 *
 * WAKEUPS: folded stacks of the sleeper, "--", the waker, and so on. With it, each blocked
 * function's time without its runnable part is checked with the same limit. At least 99 % of it
 * must be below its waker; for "-" that is an interrupt. US: microseconds without a known waker,
 * which may be missing. Prints a table; exit status 1 if a limit is exceeded.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEASURED_MAX 16
#define NAME_MAX_BYTES 64

struct measured {
	char function[NAME_MAX_BYTES], waker[NAME_MAX_BYTES], state[NAME_MAX_BYTES];
	uint64_t count, us, runnable_us;
	double got_us, wakeup_us, right_us;
};

#define DELIMITER ";--;"
#define INTERRUPT "[interrupt]"
#define NOISE_US 100 /* possible error of two clock readings, in microseconds, in total */

/* A frame of that name, with or without an offset, before `end`; NULL: up to the end. */
static bool has_frame(const char *stack, const char *end, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = stack; (p = strstr(p, name)) && (!end || p < end); p += len)
		if ((p == stack || p[-1] == ';') &&
		    (p[len] == ';' || p[len] == ' ' || p[len] == '+'))
			return true;
	return false;
}

/* Whether the waker is right: `stack` begins after the sleeper's stack. */
static bool is_woken(const struct measured *a, const char *stack)
{
	const char *end = strstr(stack, DELIMITER);
	bool interrupt = has_frame(stack, end, INTERRUPT);

	return strcmp(a->waker, "-") ? !interrupt && has_frame(stack, end, a->waker) : interrupt;
}

static size_t read_measured(const char *path, struct measured *measured)
{
	FILE *f = fopen(path, "r");
	char line[512];
	size_t n = 0;

	if (!f)
		return 0;
	while (n < MEASURED_MAX && fgets(line, sizeof(line), f)) {
		struct measured *a = &measured[n];

		*a = (struct measured){0};
		n += sscanf(line, "%63s %63s %63s %" SCNu64 " %" SCNu64 " %" SCNu64, a->function,
			    a->waker, a->state, &a->count, &a->us, &a->runnable_us) == 6;
	}
	fclose(f);
	return n;
}

static bool read_folded(const char *path, struct measured *measured, size_t n, bool wakeups)
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
			struct measured *a = &measured[i];
			double us = strtod(number, NULL);

			if (!has_frame(line, waker, a->function))
				continue;
			*(wakeups ? &a->wakeup_us : &a->got_us) += us;
			/* The last ";" of the delimiter begins the waker's stack. */
			if (waker && is_woken(a, waker + strlen(DELIMITER) - 1))
				a->right_us += us;
		}
	}
	free(line);
	fclose(f);
	return true;
}

static double percent_off(double got, double real)
{
	return 100 * (got / (real > 0 ? real : 1) - 1);
}

int main(int argc, char **argv)
{
	struct measured measured[MEASURED_MAX];
	bool share = argc > 1 && !strcmp(argv[1], "share"), good = true;
	double all = 0, got = 0, unwoken_us = argc > 6 ? strtod(argv[6], NULL) : 0;
	size_t n = argc > 4 ? read_measured(argv[3], measured) : 0;

	if (!n || (!share && strcmp(argv[1], "time"))) {
		fprintf(stderr, "waits_check time|share LIMIT MEASURED FOLDED [WAKEUPS [US]]\n");
		return 2;
	}
	if (!read_folded(argv[4], measured, n, false) ||
	    (argc > 5 && !read_folded(argv[5], measured, n, true)))
		return 2;
	for (size_t i = 0; i < n; i++) {
		all += (double)measured[i].us;
		got += measured[i].got_us;
	}
	for (size_t i = 0; i < n; i++) {
		const struct measured *a = &measured[i];
		double real = (double)a->us, blocked = real - (double)a->runnable_us,
		       limit = strtod(argv[2], NULL), off;
		bool woken = argc > 5 && !strcmp(a->state, "blocked");

		off = share ? 100 * (a->got_us / (got > 0 ? got : 1) - real / all)
			    : percent_off(a->got_us, real);
		bool wrong = fabs(off) > limit && (share || fabs(a->got_us - real) > NOISE_US);

		if (woken)
			wrong = wrong || a->right_us < 0.99 * a->wakeup_us ||
				a->wakeup_us > blocked * (1 + limit / 100) + NOISE_US ||
				a->wakeup_us + unwoken_us < blocked * (1 - limit / 100) - NOISE_US;
		printf("%-12s profile %12.0f us, measured %12.0f us, %+7.2f %s", a->function,
		       a->got_us, real, off, share ? "points" : "%");
		if (woken)
			printf(", blocked: profile %.0f us, measured %.0f us, %+.2f %%, below %s "
			       "%.2f %%",
			       a->wakeup_us, blocked, percent_off(a->wakeup_us, blocked),
			       strcmp(a->waker, "-") ? a->waker : INTERRUPT,
			       a->wakeup_us > 0 ? 100 * a->right_us / a->wakeup_us : 0);
		puts(wrong ? "  WRONG" : "");
		good = good && !wrong;
	}
	return good ? 0 : 1;
}
