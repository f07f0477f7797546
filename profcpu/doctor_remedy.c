#include "profcpu/doctor_remedy.h"

#include "profcpu/doctor_row.h"

#include <errno.h>
#include <linux/capability.h>

/* Set all capabilities at once, because setcap replaces those that the file had. */
#define SETCAP(cap) "setcap " cap ",cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep PROFCPU"
#define DOCTOR_SETCAP SETCAP("cap_perfmon")
/* Ways to one capability, or without it to a lower perf_event_paranoid. */
#define WAYS(file_cap, cap, paranoid)                                                      \
	{                                                                                  \
		("run it as root (sudo), or: " SETCAP(                                     \
			file_cap) ", or: sysctl kernel.perf_event_paranoid=" paranoid),    \
			("run the container with --cap-add " cap                           \
			 "; or on the host: sysctl kernel.perf_event_paranoid=" paranoid), \
			"securityContext: {capabilities: {add: [" cap "]}}"                \
	}
#define WAYS_OF_USE(paranoid)                                                     \
	{                                                                         \
		[PERMISSION_PERFMON] = WAYS("cap_perfmon", "PERFMON", paranoid),  \
		[PERMISSION_ADMIN] = WAYS("cap_sys_admin", "SYS_ADMIN", paranoid) \
	}

/* The numbers are those of permission_paranoid. */
static doctor_remedy remedy_events[PERMISSION_USES][PERMISSION_LACKS] = {
	[PERMISSION_USER] = WAYS_OF_USE("2"),
	[PERMISSION_KERNEL] = WAYS_OF_USE("1"),
	[PERMISSION_CPU] = WAYS_OF_USE("0"),
	[PERMISSION_RAW] = WAYS_OF_USE("-1"),
};
doctor_remedy doctor_remedy_seccomp = {
	("allow perf_event_open in the seccomp filter or security module that this process runs "
	 "under"),
	("run the container with --security-opt seccomp=unconfined; or with --cap-add SYS_ADMIN, "
	 "with which default profiles allow perf_event_open"),
	("securityContext: {seccompProfile: {type: Unconfined}}, or capabilities: {add: "
	 "[SYS_ADMIN]}"),
};
static doctor_remedy remedy_both = {
	"run it as root (sudo), and allow perf_event_open in the seccomp filter that it runs under",
	("run the container with --cap-add PERFMON --security-opt seccomp=unconfined, or with "
	 "--cap-add SYS_ADMIN"),
	"securityContext: {capabilities: {add: [PERFMON]}, seccompProfile: {type: Unconfined}}",
};
doctor_remedy doctor_remedy_user_ns = {
	"run it as the host's root: capabilities inside a user namespace have no effect here",
	("run the container as the host's root (sudo podman, not rootless): capabilities inside a "
	 "user namespace have no effect here"),
	("hostUsers: true in the pod's spec: capabilities inside a user namespace have no effect "
	 "here"),
};
doctor_remedy doctor_remedy_ptrace = {
	("run it as root (sudo) or as the target's user, or: " DOCTOR_SETCAP),
	"run the container with --cap-add SYS_PTRACE",
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}",
};
static doctor_remedy remedy_ptrace_caps = {
	("run it as root (sudo), or with the capabilities that the target holds, "
	 "or: " DOCTOR_SETCAP),
	("run the container with --cap-add SYS_PTRACE, or with the capabilities that the target "
	 "holds"),
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}, or those that the target holds",
};
static doctor_remedy remedy_ptrace_only = {
	("run it as root (sudo), or: " DOCTOR_SETCAP),
	"run the container with --cap-add SYS_PTRACE",
	"securityContext: {capabilities: {add: [SYS_PTRACE]}}",
};
doctor_remedy doctor_remedy_syslog = {
	("run it as root (sudo), or: " DOCTOR_SETCAP
	 ", or: sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"),
	"run the container with --cap-add SYSLOG",
	"securityContext: {capabilities: {add: [SYSLOG]}}",
};
doctor_remedy doctor_remedy_kptr = {
	"sysctl kernel.kptr_restrict=1",
	"on the host: sysctl kernel.kptr_restrict=1; and run the container with --cap-add SYSLOG",
	("on the node: sysctl kernel.kptr_restrict=1; and securityContext: {capabilities: {add: "
	 "[SYSLOG]}}"),
};
doctor_remedy doctor_remedy_ipc_lock = {
	("run it as root (sudo), or: " DOCTOR_SETCAP
	 ", or: sysctl kernel.perf_event_mlock_kb=8192"),
	"run the container with --cap-add IPC_LOCK",
	"securityContext: {capabilities: {add: [IPC_LOCK]}}",
};
doctor_remedy doctor_remedy_dac = {
	("run it as root (sudo) with CAP_DAC_OVERRIDE, or as the target's user, "
	 "or: " SETCAP("cap_dac_override,cap_perfmon")),
	"run the container with --cap-add DAC_OVERRIDE, or with --user UID of the target",
	"securityContext: {capabilities: {add: [DAC_OVERRIDE]}}, or runAsUser: UID of the target",
};
doctor_remedy doctor_remedy_checkpoint = {
	"run it as root (sudo)",
	"run the container with --cap-add CHECKPOINT_RESTORE, or SYS_ADMIN",
	"securityContext: {capabilities: {add: [CHECKPOINT_RESTORE]}}, or SYS_ADMIN",
};
doctor_remedy doctor_remedy_files = {
	"raise the hard limit: ulimit -Hn 4096",
	"run the container with --ulimit nofile=4096:4096",
	"raise LimitNOFILE of the node's container runtime",
};
doctor_remedy doctor_remedy_user = {
	NULL,
	"run the container with --user 0 (podman gives capabilities to other users too)",
	"securityContext: {runAsUser: 0}",
};
doctor_remedy doctor_remedy_pid_ns = {
	"run it in the target's PID namespace: nsenter -t PID -p -m",
	"run the container with --pid container:TARGET, or --pid host",
	"shareProcessNamespace: true in the pod's spec",
};
static doctor_remedy remedy_no_tracefs = {
	"mount -t tracefs tracefs /sys/kernel/tracing",
	"run the container with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
	"mount the host path /sys/kernel/tracing into the container",
};
/* Give the files a group: mode=755 would open only the directories, not the files in them. */
static doctor_remedy remedy_no_tracefs_user = {
	("as root: mount -t tracefs -o gid=GID,mode=750 tracefs /sys/kernel/tracing, where GID is "
	 "a "
	 "group of this user"),
	"run the container as root (--user 0), with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
	("mount the host path /sys/kernel/tracing into the container, and securityContext: "
	 "{runAsUser: 0}"),
};
static doctor_remedy remedy_tracefs_denied = {
	("run it as root (sudo); or as root: mount -o remount,gid=GID,mode=750 "
	 "/sys/kernel/tracing, where GID is a group of this user"),
	"run the container as root (--user 0), with --cap-add DAC_OVERRIDE if it was dropped",
	("securityContext: {runAsUser: 0}, with capabilities: {add: [DAC_OVERRIDE]} if it was "
	 "dropped"),
};
const char *doctor_cap_remedy(const struct doctor_facts *f, enum permission_use use,
			      enum permission_lack lack)
{
	return remedy_events[use][lack][f->place];
}

const char *doctor_event_remedy(const struct doctor_facts *f, int error, enum permission_use use)
{
	if (error == -ENOSYS && f->self.seccomp != 2)
		return "a kernel with CONFIG_PERF_EVENTS";
	if (error == -ENOSYS)
		return doctor_remedy_seccomp[f->place];
	if (!doctor_is_denial(error))
		return NULL;
	/* Default filters allow the call with the capability. */
	if (f->event_user_error &&
	    permission_missing(&f->rights, PERMISSION_USER) == PERMISSION_BLOCKED)
		return doctor_has_cap(f, CAP_PERFMON) || doctor_has_cap(f, CAP_SYS_ADMIN)
			       ? doctor_remedy_seccomp[f->place]
			       : remedy_both[f->place];
	enum permission_lack lack = permission_missing(&f->rights, use);

	return lack == PERMISSION_BLOCKED   ? doctor_remedy_seccomp[f->place]
	       : lack == PERMISSION_USER_NS ? doctor_remedy_user_ns[f->place]
					    : doctor_cap_remedy(f, use, lack);
}

const char *doctor_access_remedy(const struct doctor_facts *f, enum access_reason reason)
{
	switch (reason) {
	case ACCESS_OTHER_USER:
		return doctor_remedy_ptrace[f->place];
	case ACCESS_NOT_DUMPABLE:
		return remedy_ptrace_only[f->place];
	case ACCESS_CAPABILITIES:
		return remedy_ptrace_caps[f->place];
	case ACCESS_ELSEWHERE:
	case ACCESS_REASONS:
		break;
	}
	return f->rights.init_user_ns ? NULL : doctor_remedy_user_ns[f->place];
}

const char *doctor_tracefs_remedy(const struct doctor_facts *f)
{
	if (!f->tracefs_mounted)
		return f->place != DOCTOR_HOST || doctor_has_cap(f, CAP_SYS_ADMIN)
			       ? remedy_no_tracefs[f->place]
			       : remedy_no_tracefs_user[f->place];
	if (f->tracefs_error != -EACCES && f->tracefs_error != -EPERM)
		return NULL;
	return f->rights.init_user_ns ? remedy_tracefs_denied[f->place]
				      : doctor_remedy_user_ns[f->place];
}
