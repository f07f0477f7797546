#include "profcpu/record/detached.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "container/proc.h"
#include "sampler/permission.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void record_detached_add(struct record_detached *d, pid_t pid, const char *command)
{
	AUTO_FREE char *comm = NULL;
	size_t len;

	if (d->count++)
		return;
	if (command) {
		snprintf(d->first, sizeof(d->first), "the command %s", command);
		return;
	}
	if (!proc_read(pid, 0, "comm", PROC_FILE_MAX, &comm, &len))
		comm[strcspn(comm, "\n")] = 0;
	snprintf(d->first, sizeof(d->first), comm ? "process %d (%s)" : "process %d", pid, comm);
}

void record_detached_report(const struct record_detached *d)
{
	struct permission_facts rights;
	char more[48] = "";

	if (!d->count)
		return;
	permission_probe(NULL, &rights);
	bool may = permission_missing(&rights, PERMISSION_CPU) == PERMISSION_BLOCKED;

	if (d->count > 1)
		snprintf(more, sizeof(more), " and %zu more", d->count - 1);
	/* Root itself may execute such programs: they gain no rights by that. */
	log_warn("%s%s: no longer sampled: executed a program that is set-uid, has file "
		 "capabilities or is not readable; %srecord the whole machine (-a)%s%s",
		 d->first, more, geteuid() ? "run profcpu as root, or " : "", may ? "" : " with ",
		 may ? "" : permission_cap(&rights));
}
