/*
 * Facts for `profcpu doctor`: what this machine, this process and a target allow. Gathering them
 * (doctor_probe) is apart from the report on them (doctor_report.h), so tests can report on any
 * machine.
 */
#ifndef PROFCPU_DOCTOR_PROBE_H
#define PROFCPU_DOCTOR_PROBE_H

#include "base/clock.h"
#include "container/access.h"
#include "container/dotnet_process.h"
#include "container/proc.h"
#include "container/process_list.h"
#include "sampler/permission.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOCTOR_UNKNOWN PERMISSION_UNKNOWN    /* a sysctl that cannot be read */
#define DOCTOR_RING_WANTED ((size_t)2 << 20) /* bytes for each CPU; ring_bytes of sampler.h */
#define DOCTOR_MAPS_NS (2 * NS_PER_S)        /* limit for reading a target's memory maps */

enum doctor_place {
	DOCTOR_HOST,
	DOCTOR_DOCKER, /* or podman: remedies are options of their run command */
	DOCTOR_KUBERNETES,
	DOCTOR_PLACES,
};

/* Facts about the process of -p. Errors are 0 or -errno. */
struct doctor_target {
	pid_t pid; /* 0: none was given */
	int status_error;
	struct proc_status status;
	int event_error, event_user_error; /* sampling it with kernel frames, and without */
	int root_error, maps_error;
	struct access_denial denial; /* reason, if one of these errors is a denial */
	bool other_root;
	int dotnet_error;
	struct dotnet_runtime dotnet;
	/*
	 * Reading names of JIT-compiled code from the runtime's memory. denial has the reason for
	 * -EACCES and -EPERM.
	 */
	int memory_error;
	const char *memory_what; /* the problem with that memory; static; may be NULL */
	int perfmap_error;
	uint64_t perfmap_bytes;
	int port_error; /* of its diagnostic port */
	enum dotnet_port_state port;
	char port_path[DOTNET_PORT_BYTES];
};

struct doctor_facts {
	enum doctor_place place;
	char release[65]; /* of the kernel */
	/*
	 * Opening an event on our own process without and with kernel frames, and on a whole CPU.
	 */
	int event_user_error, event_kernel_error, event_cpu_error;
	size_t ring_bytes; /* largest ring that can be mapped, up to DOCTOR_RING_WANTED; 0: none */
	struct permission_facts rights;
	int64_t mlock_kb, kptr_restrict; /* sysctls; DOCTOR_UNKNOWN */
	bool kallsyms_shown;             /* addresses in /proc/kallsyms are not all 0 */
	struct proc_status self;
	uint64_t nofile_hard;
	long cpus;
	bool pmu;
	char event[64];    /* the default event */
	int tracefs_error; /* of reading the id of a tracepoint */
	bool tracefs_mounted;
	/* Opening the tracepoint of wakers on a whole CPU; only if tracefs_error is 0. */
	int waking_error;
	bool init_pid_ns;
	bool proc_is_ours;        /* /proc shows our PID namespace */
	int hidepid;              /* mount option of /proc: 0 to 4 */
	size_t processes, dotnet; /* in sight, without ourselves */
	struct process_list_denied denied;
	struct doctor_target target;
};

/* Gathers the facts. pid: a process to check too, or 0. 0 or -ENOMEM; other errors are facts. */
int doctor_probe(pid_t pid, struct doctor_facts *ret_facts);

#endif
