#include "base/clock.h"

#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return clock_timespec_ns(&ts);
}

uint64_t clock_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int clock_seconds_decimals(uint64_t ns)
{
	int decimals = 6;

	for (uint64_t limit = NS_PER_S / 100; decimals > 1 && ns >= limit; limit *= 10)
		decimals--;
	return decimals;
}

void clock_dir_name(uint64_t realtime_ns, char *buf, size_t cap)
{
	time_t s = (time_t)(realtime_ns / NS_PER_S);
	struct tm tm = {0};

	localtime_r(&s, &tm);
	if (!strftime(buf, cap, "%H-%M-%S_%Y-%m-%d", &tm) && cap)
		buf[0] = 0;
}
