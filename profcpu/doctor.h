/*
 * What recording needs here: facts are gathered (doctor_look), then judged (doctor_judge), so that the judgement can be tried on
 * machines that are not at hand.
 */
#ifndef PROFCPU_DOCTOR_H
#define PROFCPU_DOCTOR_H

#include "container/access.h"
#include "container/dotnet.h"
#include "container/proc.h"
#include "container/targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOCTOR_KERNEL_MAJOR 5 /* the oldest kernel that profcpu is made for is 5.4 */
#define DOCTOR_KERNEL_MINOR 4
#define DOCTOR_UNKNOWN INT64_MIN /* a sysctl that cannot be read */
#define DOCTOR_RING_WANTED ((size_t)2 << 20) /* bytes a CPU, as sampler/sampler.h's ring_bytes */

enum doctor_place {
	DOCTOR_HOST,
	DOCTOR_DOCKER, /* or podman: options of their run command */
	DOCTOR_KUBERNETES,
	DOCTOR_PLACES,
};

/* Of the process that -p named. Errors are 0 or -errno. */
struct doctor_target {
	pid_t pid; /* 0: none was named */
	int status_error;
	struct proc_status status;
	int event_error, event_user_error; /* sampling it with kernel frames, and without */
	int root_error, maps_error;
	struct access_denial denial; /* where one of the errors above is a denial */
	bool other_root;
	int dotnet_error;
	struct dotnet_runtime dotnet;
	int memory_error; /* 0: the runtime's own structures tell of its JIT-compiled code; with -EACCES and -EPERM denial says why */
	const char *memory_what; /* what is wrong then, static; may be NULL */
	int perfmap_error;
	uint64_t perfmap_bytes;
	int port_error;
	enum dotnet_port_state port;
	char port_path[DOTNET_PORT_BYTES];
};

struct doctor_facts {
	enum doctor_place place;
	char release[65]; /* of the kernel */
	int event_user_error, event_kernel_error, event_cpu_error; /* own process without and with kernel; a whole CPU */
	size_t ring_bytes; /* the largest ring that may be mapped, up to DOCTOR_RING_WANTED; 0: none */
	int64_t paranoid, mlock_kb, kptr_restrict; /* sysctls; DOCTOR_UNKNOWN */
	bool kallsyms_shown; /* addresses in /proc/kallsyms are not all 0 */
	struct proc_status self;
	uint64_t nofile_hard;
	long cpus;
	bool pmu;
	char event[64]; /* what is sampled by default */
	int tracefs_error; /* of reading what a tracepoint is by */
	bool tracefs_mounted;
	int waking_error; /* where tracefs can be read: of the tracepoint that tells who ends waits, on a whole CPU */
	bool init_user_ns, init_pid_ns;
	bool proc_is_ours; /* /proc shows our PID namespace */
	int hidepid; /* of /proc: 0 to 4 */
	size_t processes, dotnet; /* in sight but ourselves */
	struct targets_denied denied;
	struct doctor_target target;
};

enum doctor_state {
	DOCTOR_YES,
	DOCTOR_NO, /* costs what `effect` says */
	DOCTOR_FATAL, /* nothing can be recorded */
};

struct doctor_item {
	enum doctor_state state;
	const char *name;
	char found[TARGETS_DENIED_BYTES + 64]; /* what there is */
	const char *effect; /* what a "no" costs; NULL for a yes */
	const char *mend; /* how to get it; NULL: there is no way, or none is needed */
};

#define DOCTOR_ITEMS_MAX 40

struct doctor_report {
	struct doctor_item items[DOCTOR_ITEMS_MAX];
	size_t len;
	bool can_record; /* no item is fatal */
	bool can_off_cpu; /* and waits can be recorded too */
};

/* pid: a process to look at, or 0. 0 or -ENOMEM: what cannot be found out is a fact too. */
int doctor_look(pid_t pid, struct doctor_facts *ret_facts);

void doctor_judge(const struct doctor_facts *facts, struct doctor_report *ret_report);

#endif
