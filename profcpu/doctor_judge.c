#include "profcpu/doctor.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* Linux 5.8 */
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40 /* Linux 5.9 */
#endif

#define DOCTOR_RING_ENOUGH ((size_t)512 << 10)
#define DOCTOR_FILES_FIXED 384 /* descriptors beside those of the rings: roots of containers, outputs */
#define DOCTOR_FILES_PER_CPU 4

/* How to get one thing, by where we run. */
typedef const char *const doctor_mend[DOCTOR_PLACES];

/* All at once: what setcap is told takes the place of what the file had. */
#define DOCTOR_SETCAP "setcap cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep PROFCPU"

static doctor_mend mend_perfmon = {
	("run it as root (sudo), or: " DOCTOR_SETCAP ", or: sysctl kernel.perf_event_paranoid=0"),
	"run the container with --cap-add PERFMON",
	"securityContext: {capabilities: {add: [PERFMON]}}",
};
static doctor_mend mend_own_events = {
	("run it as root (sudo), or: " DOCTOR_SETCAP ", or: sysctl kernel.perf_event_paranoid=1"),
	"run the container with --cap-add PERFMON; or on the host: sysctl kernel.perf_event_paranoid=1",
	"securityContext: {capabilities: {add: [PERFMON]}}",
};
static doctor_mend mend_seccomp = {
	"allow perf_event_open in the seccomp filter or security module that this process runs under",
	("run the container with --security-opt seccomp=unconfined, or with --cap-add SYS_ADMIN, for which default profiles "
	 "let it pass"),
	"securityContext: {seccompProfile: {type: Unconfined}}, or capabilities: {add: [SYS_ADMIN]}",
};
static doctor_mend mend_both = {
	"run it as root (sudo), and allow perf_event_open in the seccomp filter that it runs under",
	"run the container with --cap-add PERFMON --security-opt seccomp=unconfined, or with --cap-add SYS_ADMIN",
	"securityContext: {capabilities: {add: [PERFMON]}, seccompProfile: {type: Unconfined}}",
};
static doctor_mend mend_user_ns = {
	"run it as the host's root: capabilities inside a user namespace do not count for this",
	("run the container as the host's root (sudo podman, not rootless): capabilities inside a user namespace do not count "
	 "for this"),
	"hostUsers: true in the pod's spec: capabilities inside a user namespace do not count for this",
};
static doctor_mend mend_ptrace = {
	("run it as root (sudo) or as the target's user, or: " DOCTOR_SETCAP),
	"run the container with --cap-add SYS_PTRACE",
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}",
};
static doctor_mend mend_ptrace_caps = {
	("run it as root (sudo), or with the capabilities that the target holds, or: " DOCTOR_SETCAP),
	"run the container with --cap-add SYS_PTRACE, or with the capabilities that the target holds",
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}, or those that the target holds",
};
static doctor_mend mend_ptrace_only = {
	("run it as root (sudo), or: " DOCTOR_SETCAP),
	"run the container with --cap-add SYS_PTRACE",
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}",
};
static doctor_mend mend_syslog = {
	("run it as root (sudo), or: " DOCTOR_SETCAP ", or: sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"),
	"run the container with --cap-add SYSLOG",
	"securityContext: {capabilities: {add: [SYSLOG]}}",
};
static doctor_mend mend_kptr = {
	"sysctl kernel.kptr_restrict=1",
	"on the host: sysctl kernel.kptr_restrict=1; and run the container with --cap-add SYSLOG",
	"on the node: sysctl kernel.kptr_restrict=1; and securityContext: {capabilities: {add: [SYSLOG]}}",
};
static doctor_mend mend_ipc_lock = {
	("run it as root (sudo), or: " DOCTOR_SETCAP ", or: sysctl kernel.perf_event_mlock_kb=8192"),
	"run the container with --cap-add IPC_LOCK",
	"securityContext: {capabilities: {add: [IPC_LOCK]}}",
};
static doctor_mend mend_dac = {
	"run it as root (sudo) or as the target's user",
	"run the container with --cap-add DAC_OVERRIDE, or with --user UID of the target",
	"securityContext: {capabilities: {add: [DAC_OVERRIDE]}}, or runAsUser: UID of the target",
};
static doctor_mend mend_checkpoint = {
	"run it as root (sudo)",
	"run the container with --cap-add CHECKPOINT_RESTORE, or SYS_ADMIN",
	"securityContext: {capabilities: {add: [CHECKPOINT_RESTORE]}}, or SYS_ADMIN",
};
static doctor_mend mend_files = {
	"raise the hard limit: ulimit -Hn 4096",
	"run the container with --ulimit nofile=4096:4096",
	"raise LimitNOFILE of the node's container runtime",
};
static doctor_mend mend_user = {
	NULL,
	"run the container with --user 0 (podman gives them to other users too)",
	"securityContext: {runAsUser: 0}",
};
static doctor_mend mend_pid_ns = {
	"run it in the target's PID namespace: nsenter -t PID -p -m",
	"run the container with --pid container:TARGET, or --pid host",
	"shareProcessNamespace: true in the pod's spec",
};
static doctor_mend mend_no_tracefs = {
	"mount -t tracefs tracefs /sys/kernel/tracing",
	"run the container with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
	"mount the host path /sys/kernel/tracing into the container",
};
/* mode=755 would open its directories, not the files in them, which the group may read. */
static doctor_mend mend_no_tracefs_user = {
	"as root: mount -t tracefs -o gid=GID,mode=750 tracefs /sys/kernel/tracing, where GID is a group of this user",
	"run the container as root (--user 0), with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
	"mount the host path /sys/kernel/tracing into the container, and securityContext: {runAsUser: 0}",
};
static doctor_mend mend_tracefs_denied = {
	("run it as root (sudo); or as root: mount -o remount,gid=GID,mode=750 /sys/kernel/tracing, where GID is a group of this user"),
	"run the container as root (--user 0), with --cap-add DAC_OVERRIDE where that was taken from it",
	"securityContext: {runAsUser: 0}, with capabilities: {add: [DAC_OVERRIDE]} where that was taken from it",
};
static doctor_mend mend_waking = {
	("run it as root (sudo), or: " DOCTOR_SETCAP ", or: sysctl kernel.perf_event_paranoid=-1"),
	"run the container with --cap-add PERFMON",
	"securityContext: {capabilities: {add: [PERFMON]}}",
};

/* One row; what it costs and how to mend it are kept for a "no" only. */
static void __attribute__((format(printf, 6, 7))) doctor_say(struct doctor_report *report, enum doctor_state state,
							       const char *name, const char *effect, const char *mend,
							       const char *format, ...)
{
	va_list args;

	if (report->len == DOCTOR_ITEMS_MAX)
		return;
	struct doctor_item *item = &report->items[report->len++];

	*item = (struct doctor_item){.state = state, .name = name};
	va_start(args, format);
	vsnprintf(item->found, sizeof(item->found), format, args);
	va_end(args);
	if (state != DOCTOR_YES) {
		item->effect = effect;
		item->mend = mend;
	}
	if (state == DOCTOR_FATAL)
		report->can_record = false;
}

static enum doctor_state doctor_or_no(bool good)
{
	return good ? DOCTOR_YES : DOCTOR_NO;
}

static bool doctor_cap(const struct doctor_facts *f, int cap)
{
	return f->self.cap_effective >> cap & 1;
}

static bool doctor_perfmon(const struct doctor_facts *f)
{
	return doctor_cap(f, CAP_PERFMON) || doctor_cap(f, CAP_SYS_ADMIN);
}

/* "perf_event_paranoid is 2", or nothing where that is not known. */
static const char *doctor_paranoid(const struct doctor_facts *f, char *buf, size_t cap)
{
	buf[0] = 0;
	if (f->paranoid != DOCTOR_UNKNOWN)
		snprintf(buf, cap, "; perf_event_paranoid is %lld", (long long)f->paranoid);
	return buf;
}

/* Why perf_event_open was refused decides what helps. */
static const char *doctor_event_mend(const struct doctor_facts *f, int error, doctor_mend without_cap)
{
	if (error == -ENOSYS && f->self.seccomp != 2)
		return "a kernel with CONFIG_PERF_EVENTS";
	if (error != -EACCES && error != -EPERM && error != -ENOSYS)
		return NULL;
	if (error == -ENOSYS)
		return mend_seccomp[f->place];
	/* Up to 2 everybody may sample himself, so it is a filter that is in the way; it often opens with the capability. */
	if (!doctor_perfmon(f) && f->self.seccomp == 2 && f->event_user_error && f->paranoid != DOCTOR_UNKNOWN &&
	    f->paranoid <= 2)
		return mend_both[f->place];
	if (!doctor_perfmon(f))
		return without_cap[f->place];
	return f->init_user_ns ? mend_seccomp[f->place] : mend_user_ns[f->place];
}

/* What lets us look into a process, by what keeps us from it. */
static const char *doctor_access_mend(const struct doctor_facts *f, enum access_reason reason)
{
	switch (reason) {
	case ACCESS_OTHER_USER:
		return mend_ptrace[f->place];
	case ACCESS_NOT_DUMPABLE:
		return mend_ptrace_only[f->place];
	case ACCESS_CAPABILITIES:
		return mend_ptrace_caps[f->place];
	case ACCESS_ELSEWHERE:
	case ACCESS_REASONS:
		break;
	}
	return f->init_user_ns ? NULL : mend_user_ns[f->place];
}

static bool doctor_is_denial(int error)
{
	return error == -EACCES || error == -EPERM;
}

/* "Permission denied: it belongs to user 1000", or what else the error is. */
static const char *doctor_access_found(const struct doctor_target *t, int error, char *buf, size_t cap)
{
	char why[ACCESS_TEXT_BYTES];

	access_text(&t->denial, why, sizeof(why));
	snprintf(buf, cap, "%s%s%s", strerror(-error), doctor_is_denial(error) ? ": " : "", doctor_is_denial(error) ? why : "");
	return buf;
}

static void doctor_judge_kernel(const struct doctor_facts *f, struct doctor_report *report)
{
	int major = 0, minor = 0;

	sscanf(f->release, "%d.%d", &major, &minor);
	doctor_say(report,
		   doctor_or_no(major > DOCTOR_KERNEL_MAJOR ||
				(major == DOCTOR_KERNEL_MAJOR && minor >= DOCTOR_KERNEL_MINOR)),
		   "kernel", "nobody has tried it; records of newer kernels may be missing", "Linux 5.4 or newer", "Linux %s",
		   f->release);
	if (!f->proc_is_ours)
		doctor_say(report, DOCTOR_FATAL, "/proc", "processes cannot be told from their numbers",
			   "mount -t proc proc /proc", "not there, or of another PID namespace");
}

static void doctor_judge_events(const struct doctor_facts *f, struct doctor_report *report)
{
	char paranoid[64];
	int e = f->event_user_error;

	doctor_paranoid(f, paranoid, sizeof(paranoid));
	doctor_say(report, e ? DOCTOR_FATAL : DOCTOR_YES, "perf_event_open", "nothing can be sampled",
		   doctor_event_mend(f, e, mend_own_events), "%s%s", e ? strerror(-e) : "works", e ? paranoid : "");
	if (e)
		return;
	e = f->event_kernel_error;
	doctor_say(report, doctor_or_no(!e), "kernel frames", "stacks end where they enter the kernel",
		   doctor_event_mend(f, e, mend_own_events), "%s%s", e ? strerror(-e) : "may be sampled", e ? paranoid : "");
	e = f->event_cpu_error;
	doctor_say(report, doctor_or_no(!e), "whole CPUs", "no -a, and no target with more threads than descriptors",
		   doctor_event_mend(f, e, mend_perfmon), "%s%s", e ? strerror(-e) : "may be sampled", e ? paranoid : "");
	doctor_say(report, doctor_or_no(f->pmu), "hardware counters",
		   "cpu-clock is used: code that runs with interrupts off shows where it switches them on", NULL, "%s",
		   f->pmu ? f->event : "no PMU, as in most virtual machines");
}

static void doctor_judge_rings(const struct doctor_facts *f, struct doctor_report *report)
{
	uint64_t files = DOCTOR_FILES_FIXED + DOCTOR_FILES_PER_CPU * (uint64_t)f->cpus;

	if (!f->event_user_error)
		doctor_say(report, doctor_or_no(f->ring_bytes >= DOCTOR_RING_ENOUGH), "ring buffers",
			   "samples may be lost at high frequencies", mend_ipc_lock[f->place],
			   "%zu KiB a CPU; perf_event_mlock_kb is %lld", f->ring_bytes >> 10,
			   (long long)(f->mlock_kb == DOCTOR_UNKNOWN ? 0 : f->mlock_kb));
	doctor_say(report, doctor_or_no(f->nofile_hard >= files), "open files",
		   "processes with many threads, or in many containers, are recorded in part", mend_files[f->place],
		   "limit %llu, %llu wanted for %ld CPUs", (unsigned long long)f->nofile_hard, (unsigned long long)files,
		   f->cpus);
}

/* At 0 the kernel shows addresses to all where everybody may sample it (kernel/kallsyms.c, kallsyms_for_perf), else as at 1. */
static const char *doctor_kallsyms_paranoid(const struct doctor_facts *f)
{
	return f->paranoid != DOCTOR_UNKNOWN && f->paranoid > 1 ? ", which counts only with perf_event_paranoid 1 or less, or with CAP_SYSLOG" : "";
}

static void doctor_judge_kallsyms(const struct doctor_facts *f, struct doctor_report *report)
{
	const char *mend = f->kptr_restrict >= 2   ? mend_kptr[f->place]
			   : !f->init_user_ns      ? mend_user_ns[f->place]
						    : mend_syslog[f->place];

	if (f->kptr_restrict == DOCTOR_UNKNOWN)
		doctor_say(report, doctor_or_no(f->kallsyms_shown), "kernel names", "kernel frames are addresses", mend,
			   f->kallsyms_shown ? "in /proc/kallsyms" : "/proc/kallsyms is hidden");
	else
		doctor_say(report, doctor_or_no(f->kallsyms_shown), "kernel names", "kernel frames are addresses", mend,
			   "%s; kptr_restrict is %lld%s", f->kallsyms_shown ? "in /proc/kallsyms" : "/proc/kallsyms is hidden",
			   (long long)f->kptr_restrict, f->kallsyms_shown || f->kptr_restrict ? "" : doctor_kallsyms_paranoid(f));
}

static const char *doctor_tracefs_mend(const struct doctor_facts *f)
{
	if (!f->tracefs_mounted)
		return f->place != DOCTOR_HOST || doctor_cap(f, CAP_SYS_ADMIN) ? mend_no_tracefs[f->place] : mend_no_tracefs_user[f->place];
	if (f->tracefs_error != -EACCES && f->tracefs_error != -EPERM)
		return NULL;
	return f->init_user_ns ? mend_tracefs_denied[f->place] : mend_user_ns[f->place];
}

static const char *doctor_tracefs_found(const struct doctor_facts *f)
{
	return !f->tracefs_error ? "readable in tracefs" : f->tracefs_mounted ? strerror(-f->tracefs_error) : "tracefs is not mounted";
}

/* The time off the CPU. */
static void doctor_judge_off_cpu(const struct doctor_facts *f, struct doctor_report *report)
{
	char paranoid[64];
	int e = f->event_user_error ? f->event_user_error : f->event_cpu_error;
	bool good = !f->tracefs_error && !f->waking_error;

	doctor_paranoid(f, paranoid, sizeof(paranoid));
	report->can_off_cpu = !e;
	doctor_say(report, doctor_or_no(!f->tracefs_error), "tracepoints", "no -e sched:... and other tracepoints by name",
		   doctor_tracefs_mend(f), "%s", doctor_tracefs_found(f));
	doctor_say(report, doctor_or_no(!e), "off-CPU", "no --off-cpu, which records switches of whole CPUs", doctor_event_mend(f, e, mend_perfmon),
		   "%s%s", e ? strerror(-e) : "switches may be recorded", e ? paranoid : "");
	doctor_say(report, doctor_or_no(good), "off-CPU wakers", "--off-cpu does not tell who ended waits, and makes no wakeup.*",
		   f->tracefs_error ? doctor_tracefs_mend(f) : doctor_event_mend(f, f->waking_error, mend_waking), "%s%s",
		   good		     ? "wakings may be recorded" :
		   f->tracefs_error ? doctor_tracefs_found(f) :
				      strerror(-f->waking_error),
		   f->waking_error ? paranoid : "");
}

/* What each capability is good for; also those that something else makes up for are named. */
static void doctor_judge_caps(const struct doctor_facts *f, struct doctor_report *report)
{
	bool admin = doctor_cap(f, CAP_SYS_ADMIN);
	const struct {
		int cap;
		const char *name, *effect, *mend;
		bool instead; /* what else gives the same */
	} caps[] = {
		{CAP_PERFMON, "CAP_PERFMON", "only what perf_event_paranoid leaves open may be sampled", mend_perfmon[f->place],
		 admin},
		{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "files and maps only of processes of this user that hold no capability which we lack",
		 mend_ptrace[f->place], false},
		{CAP_SYSLOG, "CAP_SYSLOG", "kernel names only where sysctls leave them open", mend_syslog[f->place],
		 f->kallsyms_shown},
		{CAP_IPC_LOCK, "CAP_IPC_LOCK", "rings only as large as perf_event_mlock_kb", mend_ipc_lock[f->place],
		 f->ring_bytes >= DOCTOR_RING_WANTED},
		{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "diagnostic ports only of processes of this user", mend_dac[f->place],
		 false},
		{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "images that were deleted or replaced have no names",
		 mend_checkpoint[f->place], admin},
		{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "the same, by its older name", mend_perfmon[f->place],
		 doctor_cap(f, CAP_PERFMON) && doctor_cap(f, CAP_CHECKPOINT_RESTORE)},
	};

	if (f->place != DOCTOR_HOST && f->self.uid && !f->self.cap_effective)
		doctor_say(report, DOCTOR_NO, "user", "capabilities that a container is given reach root only",
			   mend_user[f->place], "uid %u, without any capability", f->self.uid);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		bool has = doctor_cap(f, caps[i].cap);

		/* Not worth a row of its own where the narrower ones were asked for above. */
		if (caps[i].cap == CAP_SYS_ADMIN && !has)
			continue;
		doctor_say(report, doctor_or_no(has || caps[i].instead), caps[i].name, caps[i].effect, caps[i].mend, "%s%s",
			   has ? "effective" : caps[i].instead ? "not there, not needed" : "not there",
			   has && !f->init_user_ns ? ", in a user namespace" : "");
	}
}

static void doctor_judge_sight(const struct doctor_facts *f, struct doctor_report *report)
{
	static const char *const seccomp[] = {"none", "strict", "a filter"};
	char denied[TARGETS_DENIED_BYTES];

	if (f->self.seccomp > 0 && f->self.seccomp < 3)
		doctor_say(report, doctor_or_no(f->event_user_error != -EPERM && f->event_user_error != -ENOSYS), "seccomp",
			   "perf_event_open may be blocked by it", mend_seccomp[f->place], "%s%s", seccomp[f->self.seccomp],
			   f->event_user_error ? "" : ", perf_event_open passes");
	doctor_say(report, doctor_or_no(f->init_pid_ns || f->dotnet || (f->target.pid && !f->target.status_error)), "PID namespace", "targets outside of it cannot be seen",
		   mend_pid_ns[f->place], "%s: %zu other process%s in sight, %zu of them .NET",
		   f->init_pid_ns ? "the machine's" : "a container's", f->processes, f->processes == 1 ? "" : "es", f->dotnet);
	targets_denied_text(&f->denied, denied, sizeof(denied));
	if (f->denied.count)
		doctor_say(report, DOCTOR_NO, "processes", "whether they are .NET, and their files, cannot be told",
			   doctor_access_mend(f, targets_want_ptrace(&f->denied) ? ACCESS_NOT_DUMPABLE : ACCESS_ELSEWHERE),
			   "%zu may not be looked into: %s", f->denied.count, denied);
	if (f->hidepid > 0)
		doctor_say(report, doctor_or_no(doctor_cap(f, CAP_SYS_PTRACE)), "/proc hidepid",
			   "processes of other users are hidden", "mount -o remount,hidepid=0 /proc", "%d", f->hidepid);
}

static void doctor_judge_target_events(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;
	char why[sizeof(((struct doctor_item *)0)->found)];
	int e = t->event_user_error;

	/* Sampling asks for the same right as looking into it, where not for that to sample anybody. */
	bool barred = !doctor_perfmon(f) && !f->event_user_error && doctor_is_denial(t->root_error);

	doctor_say(report, e ? DOCTOR_FATAL : DOCTOR_YES, "target samples", "it cannot be sampled",
		   doctor_event_mend(f, e, mend_perfmon), "%s",
		   e && barred	    ? doctor_access_found(t, e, why, sizeof(why))
		   : e		    ? strerror(-e)
		   : t->event_error ? "without kernel frames"
				    : "may be taken");
	e = t->root_error;
	doctor_say(report, doctor_or_no(!e), "target files", "its images, perf map and debug files cannot be read: addresses "
		   "instead of names", doctor_access_mend(f, t->denial.reason), "%s",
		   e ? doctor_access_found(t, e, why, sizeof(why)) : t->other_root ? "in a root of its own" : "in our root");
	e = t->maps_error;
	doctor_say(report, doctor_or_no(!e), "target maps", "what it mapped before the recording is not known: addresses "
		   "instead of names", doctor_access_mend(f, t->denial.reason), "%s",
		   e ? doctor_access_found(t, e, why, sizeof(why)) : "readable");
}

static const char *doctor_port_word(const struct doctor_target *t)
{
	static const char *const words[] = {
		[DOTNET_PORT_OPEN] = "open",
		[DOTNET_PORT_NONE] = "not there",
		[DOTNET_PORT_DEAD] = "nobody listens",
		[DOTNET_PORT_DENIED] = "permission denied",
	};

	return t->port_error ? strerror(-t->port_error) : words[t->port];
}

static bool doctor_port_denied(const struct doctor_target *t)
{
	return t->port_error || t->port == DOTNET_PORT_DENIED;
}

/* By which of the ways of --jit-names methods would get their names. */
static void doctor_judge_jit_names(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;
	bool denied = doctor_is_denial(t->memory_error);

	if (!t->memory_error)
		doctor_say(report, DOCTOR_YES, "target JIT names", NULL, NULL, "in the runtime's memory");
	else if (!doctor_port_denied(t) && t->port == DOTNET_PORT_OPEN)
		doctor_say(report, DOCTOR_YES, "target JIT names", NULL, NULL, "through its port, as %s",
			   denied	      ? "its memory may not be read"
			   : t->memory_what ? t->memory_what
					      : strerror(-t->memory_error));
	else if (!t->perfmap_error)
		doctor_say(report, DOCTOR_YES, "target JIT names", NULL, NULL, "in the perf map that it writes");
	else
		doctor_say(report, DOCTOR_NO, "target JIT names", "JIT-compiled methods have no names",
			   denied		     ? doctor_access_mend(f, t->denial.reason)
			   : doctor_port_denied(t) ? mend_dac[f->place]
						     : "DOTNET_EnableDiagnostics=1 (the default)",
			   "%s; its port: %s", t->memory_what ? t->memory_what : strerror(-t->memory_error), doctor_port_word(t));
}

static void doctor_judge_target_dotnet(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;

	if (t->dotnet_error) {
		char why[sizeof(((struct doctor_item *)0)->found)];

		doctor_say(report, DOCTOR_NO, "target runtime", "whether it is .NET cannot be told",
			   doctor_access_mend(f, t->denial.reason), "%s", doctor_access_found(t, t->dotnet_error, why, sizeof(why)));
		return;
	}
	doctor_say(report, DOCTOR_YES, "target runtime", NULL, NULL, "%s%s", t->dotnet.is_dotnet ? ".NET " : "not .NET",
		   !t->dotnet.is_dotnet ? "" : t->dotnet.version[0] ? t->dotnet.version : "of unknown version");
	if (t->dotnet.is_dotnet)
		doctor_judge_jit_names(f, report);
	/* Where its files may not be looked at nobody knows whether it has one. */
	if (t->perfmap_error && t->perfmap_error != -ENOENT && !(doctor_is_denial(t->perfmap_error) && doctor_is_denial(t->root_error)))
		doctor_say(report, DOCTOR_NO, "target perf map", "its names are not used",
			   "let the target's user or root own it, as a regular file", "/tmp/perf-%d.map: %s", t->status.ns_pid,
			   strerror(-t->perfmap_error));
	else if (!t->perfmap_error)
		doctor_say(report, DOCTOR_YES, "target perf map", NULL, NULL, "/tmp/perf-%d.map, %llu KiB", t->status.ns_pid,
			   (unsigned long long)(t->perfmap_bytes + 1023) >> 10);
	if (t->dotnet.is_dotnet)
		doctor_say(report, doctor_or_no(!doctor_port_denied(t) && t->port == DOTNET_PORT_OPEN), "target port",
			   "the runtime cannot be asked",
			   doctor_port_denied(t) ? mend_dac[f->place] :
						   "DOTNET_EnableDiagnostics=1 (the default), and TMPDIR as we see it",
			   "%s: %s", t->port_path, doctor_port_word(t));
}

static void doctor_judge_target(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;

	if (t->status_error) {
		doctor_say(report, DOCTOR_FATAL, "target", "there is nothing to record",
			   f->init_pid_ns ? NULL : mend_pid_ns[f->place], "PID %d: %s", t->pid, strerror(-t->status_error));
		return;
	}
	doctor_say(report, t->status.state == 'Z' ? DOCTOR_FATAL : DOCTOR_YES, "target", "there is nothing to record", NULL,
		   "PID %d: %s%s, uid %u, %d thread%s", t->pid, t->status.comm, t->status.state == 'Z' ? " has ended" : "",
		   t->status.uid, t->status.threads, t->status.threads == 1 ? "" : "s");
	if (t->status.state == 'Z')
		return;
	doctor_judge_target_events(f, report);
	doctor_judge_target_dotnet(f, report);
}

void doctor_judge(const struct doctor_facts *f, struct doctor_report *ret_report)
{
	*ret_report = (struct doctor_report){.can_record = true};
	doctor_judge_kernel(f, ret_report);
	doctor_judge_events(f, ret_report);
	doctor_judge_rings(f, ret_report);
	doctor_judge_kallsyms(f, ret_report);
	doctor_judge_off_cpu(f, ret_report);
	doctor_judge_caps(f, ret_report);
	doctor_judge_sight(f, ret_report);
	if (f->target.pid)
		doctor_judge_target(f, ret_report);
}
