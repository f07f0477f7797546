/* Messages for errors of perf_event_open, with remedies. */
#include "base/cleanup.h"
#include "container/access.h"
#include "container/ask.h"
#include "sampler/sampler_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_WHAT "open the event"

/* Whether the target denies an event that this process may open on itself. */
static bool target_denies(const struct sampler *s, struct access_denial *ret_denial)
{
	const struct perf_event_attr attr = attr_ring_owner();

	if (!s->opening)
		return false;
	AUTO_CLOSE int fd = attr_open(&attr, s->opening, -1);

	return (fd == -EACCES || fd == -EPERM) && !access_probe(s->opening, ret_denial);
}

/* The first use that was wanted and is not permitted. */
static enum permission_use denied_use(const struct sampler *s, size_t event)
{
	/* Without rings, even the first event was denied, which needs only this right. */
	if (!s->setup.cpus &&
	    permission_missing(&s->permission, PERMISSION_USER) == PERMISSION_BLOCKED)
		return PERMISSION_USER;
	if (s->options.system_wide || s->setup.mode == SAMPLER_CPUS)
		return PERMISSION_CPU;
	return s->events[event].exclude_kernel ? PERMISSION_USER : PERMISSION_KERNEL;
}

static int explain_denied(const struct sampler *s, int error, size_t event, const char *where,
			  struct sampler_problem *problem)
{
	enum permission_use use = denied_use(s, event);
	struct access_denial denial;
	char why[ACCESS_TEXT_BYTES], text[PERMISSION_TEXT_BYTES];
	bool target = s->setup.mode == SAMPLER_THREADS && target_denies(s, &denial);

	if (target)
		access_text(&denial, why, sizeof(why));
	permission_text(&s->permission, target ? PERMISSION_CPU : use, target ? why : NULL,
			!target                                ? ""
			: denial.reason == ACCESS_OTHER_USER   ? " or its user"
			: denial.reason == ACCESS_CAPABILITIES ? " or with these too"
							       : "",
			text, sizeof(text));
	return sampler_fail(problem, error, OPEN_WHAT, "%s on %s: %s: %s", s->events[event].name,
			    where, strerror(-error), text);
}

static int explain_descriptors(const struct sampler *s, int error, const char *name,
			       struct sampler_problem *problem)
{
	struct rlimit limit = {0};
	char why[PERMISSION_TEXT_BYTES] = "";

	if (s->cpus_denied)
		permission_text(&s->permission, PERMISSION_CPU, NULL, "", why, sizeof(why));
	getrlimit(RLIMIT_NOFILE, &limit);
	if (s->setup.mode == SAMPLER_CPUS)
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s: %zu event%s on %zu CPUs need more descriptors than the limit of "
			"%llu; raise it (ulimit -Hn)",
			name, s->options.nevents, s->options.nevents == 1 ? "" : "s", s->cpus.len,
			(unsigned long long)limit.rlim_max);
	return sampler_fail(
		problem, error, OPEN_WHAT,
		"%s: %s%zu threads on %zu CPUs need more descriptors than the limit of %llu; "
		"raise it (ulimit -Hn)%s%s",
		name, s->wanted_threads < SAMPLER_THREAD_FDS ? "" : "at least ", s->wanted_threads,
		s->cpus.len, (unsigned long long)limit.rlim_max,
		*why ? "; events of whole CPUs need fewer, but " : "", why);
}

int sampler_explain(const struct sampler *s, int error, size_t event, const char *where,
		    struct sampler_problem *problem)
{
	const char *name = s->events[event].name;

	switch (-error) {
	case EACCES:
	case EPERM:
		return explain_denied(s, error, event, where, problem);
	case EMFILE:
		return explain_descriptors(s, error, name, problem);
	case ENFILE:
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s on %s: the machine has no file descriptors left; raise sysctl "
			"fs.file-max",
			name, where);
	case ETIME:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: it " ASK_SILENT_WHY "; " ASK_SILENT_REMEDY, name,
				    where);
	case ESRCH:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: not found, or it has ended", name, where);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: the CPU or kernel does not support this event (most "
				    "virtual machines have no hardware events); use cpu-clock",
				    name, where);
	case EINVAL:
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s on %s: the kernel cannot sample this event like this; remove "
			"modifiers, use a period instead of a frequency, or use cpu-clock",
			name, where);
	case ENOSYS:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s: the kernel has no perf_event_open; use a kernel with "
				    "CONFIG_PERF_EVENTS",
				    name);
	case EBUSY:
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s on %s: another program uses the hardware counters; stop it, or "
			"use cpu-clock",
			name, where);
	default:
		return sampler_fail(problem, error, OPEN_WHAT, "%s on %s: %s", name, where,
				    strerror(-error));
	}
}
