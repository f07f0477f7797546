/* Turns the kernel's error numbers into what the user can do. */
#include "base/cleanup.h"
#include "base/file.h"
#include "container/access.h"
#include "sampler/internal.h"

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
#define PARANOID_OWN_USER 2 /* up to here everybody may sample what runs as him */

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

bool sampler_has_cap(int cap)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[cap / 32].effective >> (cap % 32) & 1;
}

long sampler_sysctl(const struct sampler_roots *roots, const char *name, long fallback)
{
	char path[PATH_MAX];
	AUTO_FREE char *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/sys/kernel/%s", roots->proc ? roots->proc : "/proc", name);
	if (file_read_at(AT_FDCWD, path, 4096, &text, &len))
		return fallback;
	char *end;
	long value = strtol(text, &end, 10);

	return end == text ? fallback : value;
}

int sampler_explain_cpu(const struct sampler_roots *roots, int error, const char *what, const char *where, struct sampler_problem *problem)
{
	if (sampler_has_cap(CAP_PERFMON) || sampler_has_cap(CAP_SYS_ADMIN))
		return sampler_fail(problem, error, what,
				    "%s: %s although the capability is there: a seccomp filter or security module blocks "
				    "perf_event_open; allow it in the container's seccomp profile, or add CAP_SYS_ADMIN where "
				    "the profile asks for that",
				    where, strerror(-error));
	return sampler_fail(problem, error, what,
			    "%s: %s: kernel.perf_event_paranoid is %ld and CAP_PERFMON is missing; run as root, "
			    "or in a container with --cap-add PERFMON, or set sysctl kernel.perf_event_paranoid=0",
			    where, strerror(-error), sampler_sysctl(roots, "perf_event_paranoid", 2));
}

static int explain_denied(const struct sampler *s, int error, const char *name, const char *where,
			  struct sampler_problem *problem)
{
	long paranoid = sampler_sysctl(&s->options.roots, "perf_event_paranoid", 2);
	struct access_denial denial;
	char why[ACCESS_TEXT_BYTES], on[256];

	snprintf(on, sizeof(on), "%s on %s", name, where);
	if (s->setup.mode == SAMPLER_CPUS || sampler_has_cap(CAP_PERFMON) || sampler_has_cap(CAP_SYS_ADMIN))
		return sampler_explain_cpu(&s->options.roots, error, OPEN_WHAT, on, problem);
	/* What everybody may do to himself, this process does not let us do. */
	if (paranoid <= PARANOID_OWN_USER && s->opening && !access_look(s->opening, &denial)) {
		access_text(&denial, why, sizeof(why));
		return sampler_fail(problem, error, OPEN_WHAT,
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
			"%s: %zu events on %zu CPUs take more descriptors than the limit of "
			"%llu; raise it (ulimit -Hn)",
			name, s->options.nevents, s->cpus.len, (unsigned long long)limit.rlim_max);
	return sampler_fail(
		problem, error, OPEN_WHAT,
		"%s: %s%zu threads on %zu CPUs take more descriptors than the limit of %llu%s; "
		"raise it (ulimit -Hn), or give CAP_PERFMON (--cap-add PERFMON), with which few "
		"are needed",
		name, s->wanted_threads < SAMPLER_THREAD_FDS ? "" : "at least ", s->wanted_threads,
		s->cpus.len, (unsigned long long)limit.rlim_max,
		s->cpus_denied ? ", and events for whole CPUs are not permitted" : "");
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
			"%s on %s: the machine has no descriptors left; see sysctl fs.file-max",
			name, where);
	case ESRCH:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: it is not there or has ended", name, where);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: this machine's CPU or kernel does not support it "
				    "(virtual machines mostly have "
				    "no hardware events); cpu-clock works everywhere",
				    name, where);
	case EINVAL:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: the kernel refuses this kind of sampling for it; "
				    "try it without modifiers, or "
				    "with a period instead of a frequency, or cpu-clock",
				    name, where);
	case ENOSYS:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s: the kernel has no perf_event_open", name);
	case EBUSY:
		return sampler_fail(problem, error, OPEN_WHAT,
				    "%s on %s: the hardware counters are taken by someone else",
				    name, where);
	default:
		return sampler_fail(problem, error, OPEN_WHAT, "%s on %s: %s", name, where,
				    strerror(-error));
	}
}
