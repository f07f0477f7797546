#include "sampler/attr.h"

#include "base/arch.h"
#include "base/cleanup.h"
#include "container/ask.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct attr_opening {
	struct perf_event_attr attr;
	pid_t pid;
	int cpu, group_fd, fd;
};

static int attr_open_now(void *opening)
{
	struct attr_opening *o = opening;
	long fd = syscall(SYS_perf_event_open, &o->attr, o->pid, o->cpu, o->group_fd,
			  PERF_FLAG_FD_CLOEXEC);

	o->fd = (int)fd;
	return fd < 0 ? -errno : 0;
}

static void attr_drop(void *opening)
{
	cleanup_close(&((struct attr_opening *)opening)->fd);
}

int attr_open_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd)
{
	struct attr_opening o = {*attr, pid, cpu, group_fd, -1};
	/* The kernel waits for a process that is in execve. 0 is the calling thread. */
	int r = pid > 0 ? ask(pid, attr_open_now, attr_drop, &o, sizeof(o)) : attr_open_now(&o);

	return r ? r : o.fd;
}

int attr_open(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return attr_open_in_group(attr, pid, cpu, -1);
}

static struct perf_event_attr attr_dummy(void)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

struct perf_event_attr attr_ring_owner(void)
{
	struct perf_event_attr attr = attr_dummy();

	attr.watermark = 1; /* with wakeup_watermark 0: half of the ring */
	return attr;
}

static int attr_try(const struct perf_event_attr *attr)
{
	int fd = attr_open(attr, 0, -1);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int attr_probe(struct attr_features *ret_features)
{
	struct perf_event_attr attr = attr_dummy();
	struct attr_features features = {0};
	int r = attr_try(&attr);

	if (r)
		return r;
	attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	features.format_lost = !attr_try(&attr);
	attr.read_format = 0;
	attr.mmap = attr.mmap2 = attr.build_id = 1;
	features.build_id = !attr_try(&attr);
	attr.build_id = 0;
	attr.namespaces = 1;
	features.namespaces = !attr_try(&attr);
	*ret_features = features;
	return 0;
}

void attr_set_side_band(struct perf_event_attr *attr, const struct attr_features *features)
{
	attr->mmap = attr->mmap2 = features != NULL;
	attr->comm = attr->comm_exec = features != NULL;
	attr->task = features != NULL;
	attr->ksymbol = features != NULL;
	attr->namespaces = features && features->namespaces;
	attr->build_id = features && features->build_id;
}

struct perf_event_attr attr_event_only(const struct perf_event_attr *sampling,
				       const struct attr_features *features)
{
	struct perf_event_attr attr = attr_ring_owner();

	/* Records other than samples do not have these fields. */
	attr.sample_type = sampling->sample_type & ~(uint64_t)ATTR_SAMPLE_STACK;
	attr.read_format = sampling->read_format;
	attr.sample_id_all = 1;
	attr.disabled = sampling->disabled;
	attr.enable_on_exec = sampling->enable_on_exec;
	attr_set_side_band(&attr, features);
	return attr;
}

struct perf_event_attr attr_of(const struct sampler_options *options,
			       const struct sampler_event *event,
			       const struct attr_features *features, bool first)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.config1 = event->config1,
		.sample_type = ATTR_SAMPLE_TYPE,
		.read_format = PERF_FORMAT_ID | (features->format_lost ? PERF_FORMAT_LOST : 0),
		.inherit = 1,
		.pinned = event->pinned,
		.exclude_user = event->exclude_user,
		.exclude_kernel = event->exclude_kernel,
		.exclude_hv = event->exclude_hv,
		.exclude_host = event->exclude_host,
		.exclude_guest = event->exclude_guest,
		.precise_ip = event->precise_ip & 3u,
		.sample_id_all = 1,
		.exclude_callchain_kernel = options->no_kernel_stacks,
		.exclude_callchain_user = options->no_user_stacks,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.sample_max_stack = options->max_stack,
	};

	if (options->nevents > 1 || options->identified)
		attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
	if (options->stack_bytes) {
		attr.sample_type |= ATTR_SAMPLE_STACK;
		attr.sample_regs_user = ARCH_PERF_REGS;
		attr.sample_stack_user = options->stack_bytes;
	}
	attr.freq = options->freq_hz > 0 && event->type != PERF_TYPE_TRACEPOINT;
	attr.sample_period = attr.freq ? options->freq_hz : options->period ? options->period : 1;
	attr.disabled = attr.enable_on_exec = options->command != 0 && !options->system_wide;
	attr_set_side_band(&attr, first ? features : NULL);
	return attr;
}
