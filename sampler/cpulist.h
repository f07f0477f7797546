/* Lists of CPUs as sysfs writes them: "0-3,8,10-11". */
#ifndef SAMPLER_CPULIST_H
#define SAMPLER_CPULIST_H

#include <stdbool.h>
#include <stddef.h>

#define CPULIST_CPU_MAX 8191 /* largest CPU number: the kernel's largest NR_CPUS minus 1 */

/* The CPUs of a list in order; the caller frees *ret_cpus. 0; -EBADMSG; -ENOMEM. */
int cpulist_parse(const char *text, int **ret_cpus, size_t *ret_n);

/* Whether the list has the CPU. An invalid list ends at its first error. */
bool cpulist_has(const char *text, int cpu);

/*
 * Lists the CPUs that are online now, from sysfs (NULL: "/sys"), or from sysconf if sysfs is not
 * readable. Errors of cpulist_parse.
 */
int cpulist_online(const char *sysfs, int **ret_cpus, size_t *ret_n);
bool cpulist_is_online(const char *sysfs, int cpu);

/* Last list read from sysfs. Starts zeroed; the owner closes it. */
struct cpulist_online {
	bool opened;
	int fd;
	char text[1024];
};

/*
 * Lists the CPUs online if they changed. 1: they changed since the last call, or this is the first
 * call; the caller frees *ret_cpus. 0: unchanged. Errors of cpulist_parse; -errno: sysfs is not
 * readable.
 */
int cpulist_changed(struct cpulist_online *last, const char *sysfs, int **ret_cpus, size_t *ret_n);
void cpulist_online_close(struct cpulist_online *last);

#endif
