#include "profcpu/options.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_DURATION_MAX_S (366.0 * 24 * 3600)

int options_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	char *end;

	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || errno || value < min || value > max) {
		log_error("%s takes a whole number from %llu to %llu, not '%s'", option, (unsigned long long)min,
			  (unsigned long long)max, text);
		return -EINVAL;
	}
	*ret_value = value;
	return 0;
}

int options_duration(const char *option, const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		double s;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++) {
		double s = value * units[i].s;

		if (strcmp(end, units[i].suffix) || !isfinite(s) || s < 0.001 || s > OPTIONS_DURATION_MAX_S)
			continue;
		*ret_ns = (uint64_t)(s * (double)NS_PER_S);
		return 0;
	}
	log_error("%s takes a time such as 10, 0.5, 500ms or 2m, not '%s'", option, text);
	return -EINVAL;
}

int options_pids(const char *option, const char *text, struct options_pids *pids)
{
	const char *at = text;

	for (;;) {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || pid < 1 || pid > INT32_MAX || (*end && *end != ',')) {
			log_error("%s takes process ids separated by commas, not '%s'", option, text);
			return -EINVAL;
		}
		if (vec_push(&pids->list, (pid_t)pid)) {
			log_error("out of memory");
			return -ENOMEM;
		}
		if (!*end)
			return 0;
		at = end + 1;
	}
}
