#include "profcpu/doctor_report.h"

#include "profcpu/doctor_remedy.h"
#include "profcpu/doctor_target.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40 /* Linux 5.9 */
#endif

#define DOCTOR_RING_ENOUGH ((size_t)512 << 10) /* bytes */
/* descriptors beside those of the rings: roots of containers, outputs */
#define DOCTOR_FILES_FIXED 384
#define DOCTOR_FILES_PER_CPU 4

/* "; perf_event_paranoid is 2", or "" if it is not known. */
static const char *doctor_paranoid(const struct doctor_facts *f, char *buf, size_t cap)
{
	buf[0] = 0;
	if (f->rights.paranoid != DOCTOR_UNKNOWN)
		snprintf(buf, cap, "; perf_event_paranoid is %lld", (long long)f->rights.paranoid);
	return buf;
}

static void doctor_report_kernel(const struct doctor_facts *f, struct doctor_report *report)
{
	int major = 0, minor = 0;

	sscanf(f->release, "%d.%d", &major, &minor);
	doctor_add_row(
		report,
		doctor_yes_or_no(major > DOCTOR_KERNEL_MAJOR ||
				 (major == DOCTOR_KERNEL_MAJOR && minor >= DOCTOR_KERNEL_MINOR)),
		"kernel", "untested; records that newer kernels write may be missing",
		"Linux 5.4 or newer", "Linux %s", f->release);
	if (!f->proc_is_ours)
		doctor_add_row(report, DOCTOR_FATAL, "/proc",
			       "processes cannot be found by their PIDs",
			       "mount -t proc proc /proc", "missing, or of another PID namespace");
}

static void doctor_report_events(const struct doctor_facts *f, struct doctor_report *report)
{
	char paranoid[64];
	int e = f->event_user_error;

	doctor_paranoid(f, paranoid, sizeof(paranoid));
	doctor_add_row(report, e ? DOCTOR_FATAL : DOCTOR_YES, "perf_event_open",
		       "nothing can be sampled", doctor_event_remedy(f, e, PERMISSION_KERNEL),
		       "%s%s", e ? strerror(-e) : "works", e ? paranoid : "");
	if (e)
		return;
	e = f->event_kernel_error;
	doctor_add_row(report, doctor_yes_or_no(!e), "kernel frames",
		       "stacks end where they enter the kernel",
		       doctor_event_remedy(f, e, PERMISSION_KERNEL), "%s%s",
		       e ? strerror(-e) : "can be sampled", e ? paranoid : "");
	e = f->event_cpu_error;
	doctor_add_row(report, doctor_yes_or_no(!e), "whole CPUs",
		       "no -a, and no target with more threads than the limit of open files",
		       doctor_event_remedy(f, e, PERMISSION_CPU), "%s%s",
		       e ? strerror(-e) : "can be sampled", e ? paranoid : "");
	doctor_add_row(
		report, doctor_yes_or_no(f->pmu), "hardware counters",
		"cpu-clock is used; code that runs with interrupts off shows where it enables them",
		NULL, "%s", f->pmu ? f->event : "no PMU, as in most virtual machines");
}

static void doctor_report_rings(const struct doctor_facts *f, struct doctor_report *report)
{
	uint64_t files = DOCTOR_FILES_FIXED + DOCTOR_FILES_PER_CPU * (uint64_t)f->cpus;

	if (!f->event_user_error)
		doctor_add_row(report, doctor_yes_or_no(f->ring_bytes >= DOCTOR_RING_ENOUGH),
			       "ring buffers", "high frequencies may lose samples",
			       doctor_remedy_ipc_lock[f->place],
			       "%zu KiB a CPU; perf_event_mlock_kb is %lld", f->ring_bytes >> 10,
			       (long long)(f->mlock_kb == DOCTOR_UNKNOWN ? 0 : f->mlock_kb));
	doctor_add_row(report, doctor_yes_or_no(f->nofile_hard >= files), "open files",
		       "with many threads or containers, only a part is recorded",
		       doctor_remedy_files[f->place], "limit %llu, %llu wanted for %ld CPUs",
		       (unsigned long long)f->nofile_hard, (unsigned long long)files, f->cpus);
}

/*
 * With kptr_restrict 0, the kernel shows addresses to everybody only if everybody may sample it
 * (kernel/kallsyms.c, kallsyms_for_perf). Else 0 works like 1.
 */
static const char *doctor_kallsyms_paranoid(const struct doctor_facts *f)
{
	return f->rights.paranoid != DOCTOR_UNKNOWN && f->rights.paranoid > 1
		       ? ", which has an effect only with perf_event_paranoid 1 or less, or with "
			 "CAP_SYSLOG"
		       : "";
}

static void doctor_report_kallsyms(const struct doctor_facts *f, struct doctor_report *report)
{
	const char *remedy = f->kptr_restrict >= 2     ? doctor_remedy_kptr[f->place]
			     : !f->rights.init_user_ns ? doctor_remedy_user_ns[f->place]
						       : doctor_remedy_syslog[f->place];

	if (f->kptr_restrict == DOCTOR_UNKNOWN)
		doctor_add_row(report, doctor_yes_or_no(f->kallsyms_shown), "kernel names",
			       "kernel frames are addresses", remedy,
			       f->kallsyms_shown ? "in /proc/kallsyms"
						 : "/proc/kallsyms is hidden");
	else
		doctor_add_row(report, doctor_yes_or_no(f->kallsyms_shown), "kernel names",
			       "kernel frames are addresses", remedy, "%s; kptr_restrict is %lld%s",
			       f->kallsyms_shown ? "in /proc/kallsyms" : "/proc/kallsyms is hidden",
			       (long long)f->kptr_restrict,
			       f->kallsyms_shown || f->kptr_restrict ? ""
								     : doctor_kallsyms_paranoid(f));
}

static const char *doctor_tracefs_found(const struct doctor_facts *f)
{
	return !f->tracefs_error    ? "readable in tracefs"
	       : f->tracefs_mounted ? strerror(-f->tracefs_error)
				    : "tracefs is not mounted";
}

static void doctor_report_off_cpu(const struct doctor_facts *f, struct doctor_report *report)
{
	char paranoid[64];
	int e = f->event_user_error ? f->event_user_error : f->event_cpu_error;
	bool good = !f->tracefs_error && !f->waking_error;

	doctor_paranoid(f, paranoid, sizeof(paranoid));
	report->can_off_cpu = !e;
	doctor_add_row(report, doctor_yes_or_no(!f->tracefs_error), "tracepoints",
		       "no -e sched:... and other tracepoints by name", doctor_tracefs_remedy(f),
		       "%s", doctor_tracefs_found(f));
	doctor_add_row(report, doctor_yes_or_no(!e), "off-CPU",
		       "no --off-cpu, because it records switches of whole CPUs",
		       doctor_event_remedy(f, e, PERMISSION_CPU), "%s%s",
		       e ? strerror(-e) : "switches can be recorded", e ? paranoid : "");
	doctor_add_row(report, doctor_yes_or_no(good), "off-CPU wakers",
		       "--off-cpu records no wakers and makes no wakeup.*",
		       f->tracefs_error ? doctor_tracefs_remedy(f)
					: doctor_event_remedy(f, f->waking_error, PERMISSION_RAW),
		       "%s%s",
		       good               ? "wakeups can be recorded"
		       : f->tracefs_error ? doctor_tracefs_found(f)
					  : strerror(-f->waking_error),
		       f->waking_error ? paranoid : "");
}

/* List each capability, also one that is not needed because something else gives the same. */
static void doctor_report_caps(const struct doctor_facts *f, struct doctor_report *report)
{
	bool admin = doctor_has_cap(f, CAP_SYS_ADMIN);
	bool all_may = f->rights.paranoid != DOCTOR_UNKNOWN &&
		       f->rights.paranoid <= permission_paranoid(PERMISSION_RAW);
	bool cpus = f->rights.paranoid != DOCTOR_UNKNOWN &&
		    f->rights.paranoid <= permission_paranoid(PERMISSION_CPU);
	const char *more =
		doctor_cap_remedy(f, cpus ? PERMISSION_RAW : PERMISSION_CPU,
				  f->rights.admin_only ? PERMISSION_ADMIN : PERMISSION_PERFMON);
	const struct {
		int cap;
		const char *name, *effect, *remedy;
		bool not_needed; /* something else gives the same */
	} caps[] = {
		{CAP_PERFMON, "CAP_PERFMON", "only what perf_event_paranoid allows can be sampled",
		 more, admin || all_may},
		{CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
		 "files and maps only of this user's processes, if they have no capability that "
		 "profcpu lacks",
		 doctor_remedy_ptrace[f->place], false},
		{CAP_SYSLOG, "CAP_SYSLOG", "kernel names only if sysctls allow them",
		 doctor_remedy_syslog[f->place], f->kallsyms_shown},
		{CAP_IPC_LOCK, "CAP_IPC_LOCK", "rings no larger than perf_event_mlock_kb",
		 doctor_remedy_ipc_lock[f->place], f->ring_bytes >= DOCTOR_RING_WANTED},
		{CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE",
		 "diagnostic ports only of this user's processes, and no stacks of other users' "
		 "blocked threads",
		 doctor_remedy_dac[f->place], false},
		{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE",
		 "images that were deleted or replaced have no names",
		 doctor_remedy_checkpoint[f->place], admin},
		{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "as CAP_PERFMON and CAP_CHECKPOINT_RESTORE", more,
		 doctor_has_cap(f, CAP_PERFMON) && doctor_has_cap(f, CAP_CHECKPOINT_RESTORE)},
	};

	if (f->place != DOCTOR_HOST && f->self.uid && !f->self.cap_effective)
		doctor_add_row(report, DOCTOR_NO, "user",
			       "only root gets the capabilities of a container",
			       doctor_remedy_user[f->place], "uid %u, without any capability",
			       f->self.uid);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
		bool has = doctor_has_cap(f, caps[i].cap);
		bool ignored = has && caps[i].cap == CAP_PERFMON && f->rights.admin_only;

		/* If it is missing, the narrower capabilities above say enough. */
		if (caps[i].cap == CAP_SYS_ADMIN && !has)
			continue;
		doctor_add_row(report, doctor_yes_or_no((has && !ignored) || caps[i].not_needed),
			       caps[i].name, caps[i].effect, caps[i].remedy, "%s%s",
			       has                  ? "effective"
			       : caps[i].not_needed ? "not there, not needed"
						    : "not there",
			       ignored ? ", without effect at this perf_event_paranoid"
			       : has && !f->rights.init_user_ns ? ", in a user namespace"
								: "");
	}
}

static void doctor_report_sight(const struct doctor_facts *f, struct doctor_report *report)
{
	static const char *const seccomp[] = {"none", "strict", "a filter"};
	char denied[PROCESS_LIST_DENIED_BYTES];

	if (f->self.seccomp > 0 && f->self.seccomp < 3)
		doctor_add_row(report,
			       doctor_yes_or_no(f->event_user_error != -EPERM &&
						f->event_user_error != -ENOSYS),
			       "seccomp", "it may block perf_event_open",
			       doctor_remedy_seccomp[f->place], "%s%s", seccomp[f->self.seccomp],
			       f->event_user_error ? "" : ", perf_event_open passes");
	doctor_add_row(report,
		       doctor_yes_or_no(f->init_pid_ns || f->dotnet ||
					(f->target.pid && !f->target.status_error)),
		       "PID namespace", "targets outside it cannot be seen",
		       doctor_remedy_pid_ns[f->place],
		       "%s: %zu other process%s in sight, %zu of them .NET",
		       f->init_pid_ns ? "the machine's" : "a container's", f->processes,
		       f->processes == 1 ? "" : "es", f->dotnet);
	process_list_denied_text(&f->denied, denied, sizeof(denied));
	if (f->denied.count)
		doctor_add_row(report, DOCTOR_NO, "processes",
			       "they may or may not run .NET, and their files cannot be read",
			       doctor_access_remedy(f, process_list_need_ptrace(&f->denied)
							       ? ACCESS_NOT_DUMPABLE
							       : ACCESS_ELSEWHERE),
			       "%zu cannot be inspected: %s", f->denied.count, denied);
	if (f->hidepid > 0)
		doctor_add_row(report, doctor_yes_or_no(doctor_has_cap(f, CAP_SYS_PTRACE)),
			       "/proc hidepid", "processes of other users are hidden",
			       "mount -o remount,hidepid=0 /proc", "%d", f->hidepid);
}

void doctor_report_facts(const struct doctor_facts *f, struct doctor_report *ret_report)
{
	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->can_record = true;
	doctor_report_kernel(f, ret_report);
	doctor_report_events(f, ret_report);
	doctor_report_rings(f, ret_report);
	doctor_report_kallsyms(f, ret_report);
	doctor_report_off_cpu(f, ret_report);
	doctor_report_caps(f, ret_report);
	doctor_report_sight(f, ret_report);
	if (f->target.pid)
		doctor_report_target(f, ret_report);
}
