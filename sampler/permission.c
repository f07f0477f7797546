#include "sampler/permission.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOCKED_MAX ((size_t)128 << 20) /* more than all rings need */
#define PARANOID_ADMIN 3         /* lowest value at which Debian's kernels demand CAP_SYS_ADMIN */
#define INIT_USER_NS 0xEFFFFFFDU /* linux/proc_ns.h */

static uint64_t effective_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &header, data))
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

bool sampler_has_cap(int cap)
{
	return effective_caps() >> cap & 1;
}

int64_t sampler_sysctl(const struct sampler_roots *roots, const char *name, int64_t fallback)
{
	char path[PATH_MAX];
	AUTO_FREE char *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/sys/kernel/%s",
		 roots && roots->proc ? roots->proc : "/proc", name);
	if (file_read_at(AT_FDCWD, path, 4096, &text, &len))
		return fallback;
	char *end;
	int64_t value = strtoll(text, &end, 10);

	return end == text ? fallback : value;
}

void permission_probe(const struct sampler_roots *roots, struct permission_facts *ret_facts)
{
	struct stat ns;

	*ret_facts = (struct permission_facts){
		.paranoid = sampler_sysctl(roots, "perf_event_paranoid", PERMISSION_UNKNOWN),
		.caps = effective_caps(),
		.init_user_ns = stat("/proc/self/ns/user", &ns) || ns.st_ino == INIT_USER_NS,
		.has_perfmon = sampler_sysctl(roots, "cap_last_cap", CAP_PERFMON) >= CAP_PERFMON,
	};
	if (ret_facts->paranoid < PARANOID_ADMIN || permission_has(ret_facts, CAP_SYS_ADMIN))
		return;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	AUTO_CLOSE int fd =
		(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	ret_facts->admin_only = fd < 0 && errno == EACCES;
}

int permission_paranoid(enum permission_use use)
{
	static const int values[] = {
		[PERMISSION_USER] = 2,
		[PERMISSION_KERNEL] = 1,
		[PERMISSION_CPU] = 0,
		[PERMISSION_RAW] = -1,
	};

	return values[use];
}

static bool ignores_perfmon(const struct permission_facts *f)
{
	return !f->has_perfmon || f->admin_only;
}

enum permission_lack permission_missing(const struct permission_facts *f, enum permission_use use)
{
	if (f->paranoid != PERMISSION_UNKNOWN && f->paranoid <= permission_paranoid(use))
		return PERMISSION_BLOCKED;
	if (!f->init_user_ns)
		return PERMISSION_USER_NS;
	if (permission_has(f, CAP_SYS_ADMIN))
		return PERMISSION_BLOCKED;
	if (ignores_perfmon(f))
		return PERMISSION_ADMIN;
	return permission_has(f, CAP_PERFMON) ? PERMISSION_BLOCKED : PERMISSION_PERFMON;
}

const char *permission_cap(const struct permission_facts *f)
{
	return ignores_perfmon(f) ? "CAP_SYS_ADMIN" : "CAP_PERFMON";
}

static void blocked_text(const struct permission_facts *f, char *buf, size_t cap)
{
	bool has = permission_has(f, CAP_SYS_ADMIN) || permission_has(f, CAP_PERFMON);

	snprintf(buf, cap,
		 "a seccomp filter or security module blocks perf_event_open, not a missing right; "
		 "allow it in the container's seccomp profile, or add %sCAP_SYS_ADMIN if the "
		 "profile needs it",
		 has ? "" : "CAP_PERFMON or ");
}

void permission_text(const struct permission_facts *f, enum permission_use use, const char *reason,
		     const char *user, char *buf, size_t cap)
{
	enum permission_lack lack = permission_missing(f, use);
	const char *name = permission_cap(f);
	char why[ACCESS_TEXT_BYTES];

	if (lack == PERMISSION_BLOCKED && !reason) {
		blocked_text(f, buf, cap);
		return;
	}
	if (!reason && f->paranoid == PERMISSION_UNKNOWN)
		reason = "kernel.perf_event_paranoid cannot be read";
	snprintf(why, sizeof(why), "kernel.perf_event_paranoid is %lld", (long long)f->paranoid);
	if (lack == PERMISSION_USER_NS)
		snprintf(buf, cap,
			 "%s, and capabilities have no effect in a user namespace; run as the "
			 "host's root%s, or set sysctl kernel.perf_event_paranoid=%d on the host",
			 reason ? reason : why, user, permission_paranoid(use));
	else
		snprintf(buf, cap,
			 "%s, and %s is missing%s; run as root%s, or in a container with "
			 "--cap-add %s, or set sysctl kernel.perf_event_paranoid=%d",
			 reason ? reason : why, name,
			 !f->has_perfmon ? " (CAP_PERFMON needs Linux 5.8)"
			 : f->admin_only ? " (as on Debian and Ubuntu, CAP_PERFMON has no effect "
					   "at 3 or more)"
					 : "",
			 user, name + strlen("CAP_"), permission_paranoid(use));
}

int permission_explain(const struct sampler_roots *roots, enum permission_use use, int error,
		       const char *what, const char *where, struct sampler_problem *problem)
{
	struct permission_facts facts;
	char text[PERMISSION_TEXT_BYTES];

	permission_probe(roots, &facts);
	permission_text(&facts, use, NULL, "", text, sizeof(text));
	return sampler_fail(problem, error, what, "%s: %s: %s", where, strerror(-error), text);
}

void permission_memory_text(const struct permission_facts *f, char *buf, size_t cap)
{
	bool ptrace = permission_has(f, CAP_SYS_PTRACE),
	     override = permission_has(f, CAP_DAC_OVERRIDE);

	/* Root's capabilities hold in all user namespaces below the first. */
	if (ptrace && override)
		snprintf(buf, cap, "%sa security module forbids it, despite CAP_SYS_PTRACE",
			 f->init_user_ns ? "" : "their user namespace or ");
	else
		snprintf(buf, cap, "no permission; add %s%s%s, or run as the target's user",
			 ptrace ? "" : "CAP_SYS_PTRACE", ptrace || override ? "" : " and ",
			 override ? "" : "CAP_DAC_OVERRIDE");
}

bool sampler_locks_freely(const struct sampler_roots *roots)
{
	return sampler_has_cap(CAP_IPC_LOCK) || sampler_sysctl(roots, "perf_event_paranoid", 2) < 0;
}

size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus)
{
	int64_t kb = sampler_sysctl(roots, "perf_event_mlock_kb", 516);
	struct rlimit limit = {0};

	if (sampler_locks_freely(roots))
		return SIZE_MAX;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur > LOCKED_MAX)
		return LOCKED_MAX;
	return (size_t)limit.rlim_cur + (kb > 0 && kb < 1 << 20 ? ((size_t)kb << 10) * ncpus : 0);
}
