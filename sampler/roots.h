/* Directories of kernel files, which tests replace. */
#ifndef SAMPLER_ROOTS_H
#define SAMPLER_ROOTS_H

/* NULL members mean the usual directories. */
struct sampler_roots {
	const char *sysfs;   /* "/sys" */
	const char *tracefs; /* "/sys/kernel/tracing", else "/sys/kernel/debug/tracing" */
	const char *proc;    /* "/proc" */
};

#endif
