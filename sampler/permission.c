#include "sampler/permission.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKED_MAX ((size_t)128 << 20) /* more than all rings need */

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

int permission_explain_cpu(const struct sampler_roots *roots, int error, const char *what,
			   const char *where, struct sampler_problem *problem)
{
	if (sampler_has_cap(CAP_PERFMON) || sampler_has_cap(CAP_SYS_ADMIN))
		return sampler_fail(
			problem, error, what,
			"%s: %s despite CAP_PERFMON: a seccomp filter or security module "
			"blocks perf_event_open; allow it in the container's seccomp "
			"profile, or add CAP_SYS_ADMIN if the profile needs it",
			where, strerror(-error));
	return sampler_fail(problem, error, what,
			    "%s: %s: kernel.perf_event_paranoid is %ld and CAP_PERFMON is missing; "
			    "run as root, or in a container with --cap-add PERFMON, or set sysctl "
			    "kernel.perf_event_paranoid=0",
			    where, strerror(-error),
			    sampler_sysctl(roots, "perf_event_paranoid", 2));
}

bool sampler_locks_freely(void)
{
	return sampler_has_cap(CAP_IPC_LOCK);
}

size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus)
{
	long kb = sampler_sysctl(roots, "perf_event_mlock_kb", 516);
	struct rlimit limit = {0};

	if (sampler_locks_freely())
		return SIZE_MAX;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur > LOCKED_MAX)
		return LOCKED_MAX;
	return (size_t)limit.rlim_cur + (kb > 0 && kb < 1 << 20 ? ((size_t)kb << 10) * ncpus : 0);
}
