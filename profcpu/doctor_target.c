#include "profcpu/doctor_target.h"

#include "container/ask.h"
#include "profcpu/doctor_remedy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "Permission denied: it belongs to user 1000", or the text of another error. */
static const char *doctor_access_found(const struct doctor_target *t, int error, char *buf,
				       size_t cap)
{
	char why[ACCESS_TEXT_BYTES];

	access_text(&t->denial, why, sizeof(why));
	snprintf(buf, cap, "%s%s%s", strerror(-error), doctor_is_denial(error) ? ": " : "",
		 doctor_is_denial(error) ? why : "");
	return buf;
}

static void doctor_report_target_events(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;
	char why[sizeof(((struct doctor_item *)0)->found)];
	bool by_cpus = t->event_user_error && !f->event_cpu_error; /* as recording chooses */
	int e = by_cpus ? 0 : t->event_user_error;

	/* Without the right to whole CPUs, sampling a process needs the right to inspect it. */
	bool denied = permission_missing(&f->rights, PERMISSION_CPU) != PERMISSION_BLOCKED &&
		      !f->event_user_error && doctor_is_denial(t->root_error);

	doctor_add_row(report, e ? DOCTOR_FATAL : DOCTOR_YES, "target samples",
		       "it cannot be sampled", doctor_event_remedy(f, e, PERMISSION_CPU), "%s",
		       e && denied      ? doctor_access_found(t, e, why, sizeof(why))
		       : e              ? strerror(-e)
		       : by_cpus        ? "may be taken, by events of whole CPUs"
		       : t->event_error ? "without kernel frames"
					: "may be taken");
	e = t->root_error;
	doctor_add_row(
		report, doctor_yes_or_no(!e), "target files",
		"its images, perf map and debug files cannot be read; its frames are addresses",
		doctor_access_remedy(f, t->denial.reason), "%s",
		e               ? doctor_access_found(t, e, why, sizeof(why))
		: t->other_root ? "in a root of its own"
				: "in our root");
	e = t->maps_error;
	doctor_add_row(report, doctor_yes_or_no(!e), "target maps",
		       "files that it mapped before the recording are not known; their frames are "
		       "addresses",
		       doctor_access_remedy(f, t->denial.reason), "%s",
		       e ? doctor_access_found(t, e, why, sizeof(why)) : "readable");
}

static const char *doctor_port_word(const struct doctor_target *t)
{
	static const char *const words[] = {
		[DOTNET_PORT_OPEN] = "open",
		[DOTNET_PORT_NONE] = "not there",
		[DOTNET_PORT_DEAD] = "no process listens",
		[DOTNET_PORT_DENIED] = "permission denied",
	};

	return t->port_error ? strerror(-t->port_error) : words[t->port];
}

static bool doctor_port_denied(const struct doctor_target *t)
{
	return t->port_error || t->port == DOTNET_PORT_DENIED;
}

/* The first way of --jit-names that works. */
static void doctor_report_jit_names(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;
	bool denied = doctor_is_denial(t->memory_error);

	if (!t->memory_error)
		doctor_add_row(report, DOCTOR_YES, "target JIT names", NULL, NULL,
			       "in the runtime's memory");
	else if (!doctor_port_denied(t) && t->port == DOTNET_PORT_OPEN)
		doctor_add_row(report, DOCTOR_YES, "target JIT names", NULL, NULL,
			       "through its port, because %s",
			       denied           ? "its memory cannot be read"
			       : t->memory_what ? t->memory_what
						: strerror(-t->memory_error));
	else if (!t->perfmap_error)
		doctor_add_row(report, DOCTOR_YES, "target JIT names", NULL, NULL,
			       "in the perf map that it writes");
	else
		doctor_add_row(
			report, DOCTOR_NO, "target JIT names", "JIT-compiled methods have no names",
			denied                  ? doctor_access_remedy(f, t->denial.reason)
			: doctor_port_denied(t) ? doctor_remedy_dac[f->place]
						: "set DOTNET_EnableDiagnostics=1 (the default)",
			"%s; its port: %s",
			t->memory_what ? t->memory_what : strerror(-t->memory_error),
			doctor_port_word(t));
}

static void doctor_report_target_dotnet(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;

	if (t->dotnet_error == -E2BIG || t->dotnet_error == -ETIMEDOUT) {
		doctor_add_row(report, DOCTOR_NO, "target runtime", "it may or may not run .NET",
			       NULL, "it has more maps than profcpu reads: %d MiB in %d s",
			       (int)(PROC_MAPS_MAX >> 20), (int)(DOCTOR_MAPS_NS / NS_PER_S));
		return;
	}
	if (t->dotnet_error) {
		char why[sizeof(((struct doctor_item *)0)->found)];

		doctor_add_row(report, DOCTOR_NO, "target runtime", "it may or may not run .NET",
			       doctor_access_remedy(f, t->denial.reason), "%s",
			       doctor_access_found(t, t->dotnet_error, why, sizeof(why)));
		return;
	}
	doctor_add_row(report, DOCTOR_YES, "target runtime", NULL, NULL, "%s%s",
		       t->dotnet.is_dotnet ? ".NET " : "not .NET",
		       !t->dotnet.is_dotnet   ? ""
		       : t->dotnet.version[0] ? t->dotnet.version
					      : "of unknown version");
	if (t->dotnet.is_dotnet)
		doctor_report_jit_names(f, report);
	/* If its files cannot be read, it is not known whether it has a perf map. */
	if (t->perfmap_error && t->perfmap_error != -ENOENT &&
	    !(doctor_is_denial(t->perfmap_error) && doctor_is_denial(t->root_error)))
		doctor_add_row(report, DOCTOR_NO, "target perf map", "its names are not used",
			       "make it a regular file that the target's user or root owns",
			       "/tmp/perf-%d.map: %s", t->status.ns_pid,
			       strerror(-t->perfmap_error));
	else if (!t->perfmap_error)
		doctor_add_row(report, DOCTOR_YES, "target perf map", NULL, NULL,
			       "/tmp/perf-%d.map, %llu KiB", t->status.ns_pid,
			       (unsigned long long)(t->perfmap_bytes + 1023) >> 10);
	if (t->dotnet.is_dotnet)
		doctor_add_row(
			report,
			doctor_yes_or_no(!doctor_port_denied(t) && t->port == DOTNET_PORT_OPEN),
			"target port",
			"no trace, counters, event profiles (--alloc, ...) and --jit-names rundown",
			doctor_port_denied(t) ? doctor_remedy_dac[f->place]
					      : "set DOTNET_EnableDiagnostics=1 (the default), and "
						"a TMPDIR that profcpu can see",
			"%s: %s", t->port_path, doctor_port_word(t));
}

static void doctor_report_silent(struct doctor_report *report)
{
	doctor_add_row(report, DOCTOR_FATAL, "target answers", "it cannot be recorded",
		       ASK_SILENT_REMEDY, "the process " ASK_SILENT_WHY);
}

void doctor_report_target(const struct doctor_facts *f, struct doctor_report *report)
{
	const struct doctor_target *t = &f->target;

	if (t->status_error == -ETIME) {
		doctor_report_silent(report);
		return;
	}
	if (t->status_error) {
		doctor_add_row(report, DOCTOR_FATAL, "target", "there is nothing to record",
			       f->init_pid_ns ? NULL : doctor_remedy_pid_ns[f->place], "PID %d: %s",
			       t->pid, strerror(-t->status_error));
		return;
	}
	doctor_add_row(report, t->status.state == 'Z' ? DOCTOR_FATAL : DOCTOR_YES, "target",
		       "there is nothing to record", NULL, "PID %d: %s%s, uid %u, %d thread%s",
		       t->pid, t->status.comm, t->status.state == 'Z' ? " has ended" : "",
		       t->status.uid, t->status.threads, t->status.threads == 1 ? "" : "s");
	if (t->status.state == 'Z')
		return;
	/* Other rows would advise rights, which do not help. */
	if (t->event_user_error == -ETIME || t->root_error == -ETIME || t->maps_error == -ETIME ||
	    t->dotnet_error == -ETIME) {
		doctor_report_silent(report);
		return;
	}
	doctor_report_target_events(f, report);
	doctor_report_target_dotnet(f, report);
}
