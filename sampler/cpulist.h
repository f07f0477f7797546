/* Lists of CPUs as sysfs writes them: "0-3,8,10-11". */
#ifndef SAMPLER_CPULIST_H
#define SAMPLER_CPULIST_H

#include <stdbool.h>
#include <stddef.h>

#define CPULIST_CPU_MAX 8191 /* the kernel's largest NR_CPUS, less one */

/* The CPUs of a list in order; the caller frees *ret_cpus. 0; -EBADMSG; -ENOMEM. */
int cpulist_parse(const char *text, int **ret_cpus, size_t *ret_n);

/* Whether the list has the CPU; a text that is no list has none. */
bool cpulist_has(const char *text, int cpu);

/* The CPUs online now, by sysfs (NULL: "/sys"), by sysconf where it is not readable. Errors of cpulist_parse. */
int cpulist_online(const char *sysfs, int **ret_cpus, size_t *ret_n);
bool cpulist_is_online(const char *sysfs, int cpu);

/* What sysfs said last. Zeroed at first; the owner closes it. */
struct cpulist_online {
	bool opened;
	int fd;
	char text[1024];
};

/*
 * 1: the CPUs online are others than at the last call, or it is the first; the caller frees *ret_cpus. 0: they are the
 * same. Errors of cpulist_parse; -errno: sysfs is not readable.
 */
int cpulist_changed(struct cpulist_online *last, const char *sysfs, int **ret_cpus, size_t *ret_n);
void cpulist_online_close(struct cpulist_online *last);

#endif
