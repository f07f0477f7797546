/*
 * Clocks. Samples and intervals are in ns of CLOCK_MONOTONIC, which jitdump and EventPipe also use.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000ULL
#define NS_PER_MS 1000000ULL

/* Converts a time of a file or a clock to ns. */
static inline uint64_t clock_timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);
uint64_t clock_thread_ns(void);   /* CPU time of the calling thread */
uint64_t clock_process_ns(void);  /* CPU time of all threads of this process */
uint64_t clock_boottime_ns(void); /* time since boot, suspended time included */

static inline double clock_seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* Decimals of a time in seconds: four digits in all, but at least one and at most six. */
int clock_seconds_decimals(uint64_t ns);

/* Two arguments for "%.*f s". */
#define CLOCK_SECONDS(ns) clock_seconds_decimals(ns), clock_seconds(ns)

/* Writes "HH-MM-SS_YYYY-MM-DD" in local time into buf, which has at least 20 bytes. */
void clock_dir_name(uint64_t realtime_ns, char *buf, size_t cap);

#endif
