#include "dotnet/eventpipe/event_clock.h"

#include "base/clock.h"

#include <time.h>

#define CLOCK_SECONDS_MAX 9000000000ULL /* since 1970; later times are wrong */

struct event_clock event_clock_of(const struct nettrace_trace *t)
{
	struct event_clock c = {0};
	struct tm tm = {.tm_year = t->utc[0] - 1900,
			.tm_mon = t->utc[1] - 1,
			.tm_mday = t->utc[3],
			.tm_hour = t->utc[4],
			.tm_min = t->utc[5],
			.tm_sec = t->utc[6]};
	int64_t seconds = (int64_t)timegm(&tm);

	c.sync_ns = (uint64_t)((unsigned __int128)t->sync_ticks * NS_PER_S / t->ticks_per_second);
	c.has_utc = seconds >= 0 && seconds < (int64_t)CLOCK_SECONDS_MAX;
	if (c.has_utc)
		c.sync_utc_ns = (uint64_t)seconds * NS_PER_S + t->utc[7] * (NS_PER_S / 1000);
	return c;
}

bool event_clock_utc(const struct event_clock *c, uint64_t time_ns, uint64_t *ret_utc_ns)
{
	uint64_t ns = c->sync_utc_ns + (time_ns - c->sync_ns);

	if (!c->has_utc || ns / NS_PER_S >= CLOCK_SECONDS_MAX)
		return false;
	*ret_utc_ns = ns;
	return true;
}
