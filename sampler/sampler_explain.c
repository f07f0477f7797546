/* Messages for errors of perf_event_open, with remedies. */
#include "container/access.h"
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
#define PARANOID_OWN_USER 2 /* largest value with which users may sample their own processes */

static int explain_denied(const struct sampler *s, int error, const char *name, const char *where,
			  struct sampler_problem *problem)
{
	long paranoid = sampler_sysctl(&s->options.roots, "perf_event_paranoid", 2);
	struct access_denial denial;
	char why[ACCESS_TEXT_BYTES], on[256];

	snprintf(on, sizeof(on), "%s on %s", name, where);
	if (s->setup.mode == SAMPLER_CPUS || sampler_has_cap(CAP_PERFMON) ||
	    sampler_has_cap(CAP_SYS_ADMIN))
		return permission_explain_cpu(&s->options.roots, error, OPEN_WHAT, on, problem);
	/* Users may normally sample their own processes, so report why this one forbids it. */
	if (paranoid <= PARANOID_OWN_USER && s->opening && !access_probe(s->opening, &denial)) {
		access_text(&denial, why, sizeof(why));
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s on %s: %s: %s, and CAP_PERFMON is missing; run as root%s, or in "
			"a container with --cap-add PERFMON",
			name, where, strerror(-error), why,
			denial.reason == ACCESS_OTHER_USER     ? " or its user"
			: denial.reason == ACCESS_CAPABILITIES ? " or with these too"
							       : "");
	}
	return sampler_fail(problem, error, OPEN_WHAT,
			    "%s on %s: %s: kernel.perf_event_paranoid (%ld) forbids it, and "
			    "CAP_PERFMON is missing; run as root, or in a container "
			    "with --cap-add PERFMON, or "
			    "set sysctl kernel.perf_event_paranoid=1",
			    name, where, strerror(-error), paranoid);
}

static int explain_descriptors(const struct sampler *s, int error, const char *name,
			       struct sampler_problem *problem)
{
	struct rlimit limit = {0};

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
		"%s: %s%zu threads on %zu CPUs need more descriptors than the limit of %llu%s; "
		"raise it (ulimit -Hn), or add CAP_PERFMON (--cap-add PERFMON) to need fewer",
		name, s->wanted_threads < SAMPLER_THREAD_FDS ? "" : "at least ", s->wanted_threads,
		s->cpus.len, (unsigned long long)limit.rlim_max,
		s->cpus_denied ? ", and events of whole CPUs need CAP_PERFMON" : "");
}

int sampler_explain(const struct sampler *s, int error, size_t event, const char *where,
		    struct sampler_problem *problem)
{
	const char *name = s->events[event].name;

	switch (-error) {
	case EACCES:
	case EPERM:
		return explain_denied(s, error, name, where, problem);
	case EMFILE:
		return explain_descriptors(s, error, name, problem);
	case ENFILE:
		return sampler_fail(
			problem, error, OPEN_WHAT,
			"%s on %s: the machine has no file descriptors left; raise sysctl "
			"fs.file-max",
			name, where);
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
