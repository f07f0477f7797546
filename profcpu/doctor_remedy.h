/*
 * Remedies of `profcpu doctor`: commands on a host, else options of docker or fields of a pod. All
 * results are static strings; NULL: no remedy is known.
 */
#ifndef PROFCPU_DOCTOR_REMEDY_H
#define PROFCPU_DOCTOR_REMEDY_H

#include "profcpu/doctor_probe.h"

/* Remedies of one problem, by the place where profcpu runs. */
typedef const char *const doctor_remedy[DOCTOR_PLACES];

extern doctor_remedy doctor_remedy_seccomp;    /* a filter that blocks perf_event_open */
extern doctor_remedy doctor_remedy_user_ns;    /* capabilities count only in a user namespace */
extern doctor_remedy doctor_remedy_ptrace;     /* CAP_SYS_PTRACE, or the target's user */
extern doctor_remedy doctor_remedy_syslog;     /* CAP_SYSLOG */
extern doctor_remedy doctor_remedy_kptr;       /* kptr_restrict of 2 */
extern doctor_remedy doctor_remedy_ipc_lock;   /* CAP_IPC_LOCK */
extern doctor_remedy doctor_remedy_dac;        /* CAP_DAC_OVERRIDE, or the target's user */
extern doctor_remedy doctor_remedy_checkpoint; /* CAP_CHECKPOINT_RESTORE */
extern doctor_remedy doctor_remedy_files;      /* more open files */
extern doctor_remedy doctor_remedy_user;       /* a container that does not run as root */
extern doctor_remedy doctor_remedy_pid_ns;     /* the target's PID namespace */

/* The way to a right that perf_event_open lacks: lack is PERMISSION_PERFMON or PERMISSION_ADMIN. */
const char *doctor_cap_remedy(const struct doctor_facts *f, enum permission_use use,
			      enum permission_lack lack);

/* Remedy for perf_event_open failing with error for a use. */
const char *doctor_event_remedy(const struct doctor_facts *f, int error, enum permission_use use);

/* Remedy for a process that we may not inspect for this reason. */
const char *doctor_access_remedy(const struct doctor_facts *f, enum access_reason reason);

/* Remedy for f->tracefs_error. */
const char *doctor_tracefs_remedy(const struct doctor_facts *f);

#endif
