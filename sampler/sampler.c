#include "sampler/sampler.h"

#include "base/cleanup.h"
#include "base/descriptor_budget.h"
#include "container/ask.h"
#include "sampler/sampler_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int copy_options(struct sampler *s, const struct sampler_options *options)
{
	s->options = *options;
	s->options.pids = NULL; /* s->targets has them */
	s->events = calloc(options->nevents, sizeof(*s->events));
	s->opened = calloc(options->nevents, sizeof(*s->opened));
	s->ids = calloc(options->nevents, sizeof(*s->ids));
	if (!s->events || !s->opened || !s->ids)
		return -ENOMEM;
	memcpy(s->events, options->events, options->nevents * sizeof(*s->events));
	s->options.events = s->events;
	s->nids = options->nevents;
	return 0;
}

static void add_note(struct sampler *s, const char *text)
{
	size_t len = strlen(s->setup.note);

	snprintf(s->setup.note + len, sizeof(s->setup.note) - len, "%s%s", len ? "; " : "", text);
}

/* Keeps options within the kernel's limits, because it refuses larger ones. */
static void keep_to_limits(struct sampler *s)
{
	int64_t rate = sampler_sysctl(&s->options.roots, "perf_event_max_sample_rate", 100000);
	int64_t depth = sampler_sysctl(&s->options.roots, "perf_event_max_stack", 127);
	char text[128];

	if (rate > 0 && s->options.freq_hz > (uint64_t)rate) {
		snprintf(text, sizeof(text),
			 "%u Hz exceeds kernel.perf_event_max_sample_rate; %lld Hz is used",
			 s->options.freq_hz, (long long)rate);
		add_note(s, text);
		s->options.freq_hz = (uint32_t)rate;
	}
	if (depth > 0 && depth <= UINT16_MAX && !s->options.max_stack)
		s->options.max_stack = (uint16_t)depth; /* perf.data then has it */
	if (depth > 0 && s->options.max_stack > depth) {
		snprintf(text, sizeof(text),
			 "%u frames exceed kernel.perf_event_max_stack; %lld are recorded",
			 s->options.max_stack, (long long)depth);
		add_note(s, text);
		s->options.max_stack = (uint16_t)depth;
	}
}

/* Adds a process by its id or the id of one of its threads. */
static int add_target(struct sampler *s, pid_t pid, struct sampler_problem *problem)
{
	pid_t tgid;
	int r = targets_tgid(pid, sampler_proc(&s->options), &tgid);

	if (r == -ESRCH)
		return sampler_fail(
			problem, r, "record",
			"process %d: no such process here; `profcpu ps` lists processes", pid);
	if (r == -ETIME)
		return sampler_fail(problem, r, "record",
				    "process %d: it " ASK_SILENT_WHY "; " ASK_SILENT_REMEDY, pid);
	if (r)
		return sampler_fail(problem, r, "record", "process %d: %s", pid, strerror(-r));
	return targets_add(&s->targets, tgid)
		       ? sampler_fail(problem, -ENOMEM, "record", "process %d: out of memory", pid)
		       : 0;
}

static int add_targets(struct sampler *s, const struct sampler_options *options,
		       struct sampler_problem *problem)
{
	int r = targets_new(&s->targets);

	/* The list lacks the command, so its state before the exec is not recorded. */
	if (!r && options->command)
		pidset_add(&s->targets.pids, options->command);
	if (r)
		return sampler_fail(problem, r, "record", "the targets: out of memory");
	for (size_t i = 0; i < options->npids && !r; i++)
		r = add_target(s, options->pids[i], problem);
	if (!r && options->npids && !options->system_wide) {
		r = targets_add_children(&s->targets, sampler_proc(&s->options));
		if (r)
			sampler_fail(problem, r, "record", "children of the targets: %s",
				     strerror(-r));
	}
	return r;
}

/* Counts threads of the targets; may stop once there are `enough`. */
static int count_threads(struct sampler *s, size_t enough, size_t *ret_n)
{
	struct target_threads threads = {0};
	int r = 0;

	for (size_t i = 0; i < s->targets.list.len && r != -ENOMEM && threads.len < enough; i++)
		r = targets_threads(s->targets.list.v[i], sampler_proc(&s->options), &threads);
	*ret_n = threads.len;
	vec_free(&threads);
	return r == -ENOMEM ? r : 0;
}

/*
 * Chooses SAMPLER_THREADS while it needs few descriptors, because it does not disturb other
 * processes. An event of a thread costs it 1.9 us per switch, an event of a CPU nothing. The cost
 * matters above 10,000 switches per second, so off-CPU recording uses SAMPLER_CPUS.
 */
static int choose_mode(struct sampler *s, struct sampler_problem *problem)
{
	size_t limit = s->fd_limit = descriptor_budget_raise();

	s->setup.mode = s->options.system_wide ? SAMPLER_CPUS : SAMPLER_THREADS;
	if (s->options.mode != SAMPLER_AUTO)
		s->setup.mode = s->options.mode;
	if (s->options.system_wide || s->options.command)
		return 0;
	if (count_threads(s, s->options.mode == SAMPLER_AUTO ? SAMPLER_THREAD_FDS : SIZE_MAX,
			  &s->wanted_threads))
		return sampler_fail(problem, -ENOMEM, "record",
				    "the threads of the targets: out of memory");
	size_t each = s->wanted_threads * s->cpus.len, need = each * s->options.nevents;

	/* Until sampler_start each thread and CPU has an event-only event too. */
	if (s->options.mode == SAMPLER_AUTO &&
	    (need > SAMPLER_THREAD_FDS || need + each + s->cpus.len + SAMPLER_FD_RESERVE > limit))
		s->setup.mode = SAMPLER_CPUS;
	return 0;
}

static int make_poll_fd(struct sampler *s)
{
	s->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->poll_fd < 0)
		return -errno;
	for (size_t i = 0; i < sampler_nrings(s); i++) {
		struct epoll_event e = {.events = EPOLLIN | EPOLLET};

		if (epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, sampler_ring(s, i)->fd, &e))
			return -errno;
	}
	return 0;
}

void sampler_show_ids(struct sampler *s)
{
	for (size_t i = 0; i < s->options.nevents; i++) {
		s->opened[i].ids = s->ids[i].v;
		s->opened[i].nids = s->ids[i].len;
	}
}

static void name_events(struct sampler *s)
{
	for (size_t i = 0; i < s->options.nevents; i++) {
		struct sampler_event *e = &s->events[i];
		size_t len = strlen(e->name);

		/* Like perf, append ":u" if the kernel is excluded. */
		if (s->setup.kernel_excluded && !e->exclude_kernel && len + 3 < sizeof(e->name))
			strcpy(e->name + len,
			       strchr(e->name, ':') && e->type != PERF_TYPE_TRACEPOINT ? "u"
										       : ":u");
		s->opened[i].name = e->name;
	}
	sampler_show_ids(s);
}

/* One note for all that lacks the same right. */
static void note_denied(struct sampler *s)
{
	char text[SAMPLER_DETAIL_BYTES + PERMISSION_TEXT_BYTES], why[PERMISSION_TEXT_BYTES],
		threads[96] = "";

	if (!s->setup.kernel_excluded && !s->cpus_denied && !s->denied)
		return;
	if (s->denied)
		snprintf(threads, sizeof(threads), "%zu thread%s of other users not sampled",
			 s->denied, s->denied == 1 ? " is" : "s are");
	permission_text(&s->permission,
			s->cpus_denied || s->denied ? PERMISSION_CPU : PERMISSION_KERNEL, NULL, "",
			why, sizeof(why));
	snprintf(text, sizeof(text), "%s%s%s%s%s: %s",
		 s->setup.kernel_excluded ? "kernel frames are not recorded" : "",
		 s->setup.kernel_excluded && s->cpus_denied ? ", " : "",
		 s->cpus_denied ? "each thread has an event per CPU" : "",
		 *threads && (s->setup.kernel_excluded || s->cpus_denied) ? ", " : "", threads,
		 why);
	add_note(s, text);
}

static void describe_setup(struct sampler *s)
{
	s->setup.descriptors = s->fds.len + sampler_nrings(s);
	s->setup.processes = s->targets.list.len;
	s->setup.filtered = s->setup.mode == SAMPLER_CPUS && !s->options.system_wide;
	if (s->setup.fell_back)
		add_note(s, "hardware cycles cannot be sampled here; cpu-clock is used");
	note_denied(s);
}

static int begin_namespaces(struct sampler *s)
{
	struct stat st;

	s->mount_ns = stat("/proc/self/ns/mnt", &st) ? 0 : st.st_ino;
	return pidset_new(&s->elsewhere);
}

/* Notes that the command has events before its exec. */
static int attach_command(struct sampler *s)
{
	int r = s->attached.words ? 0 : pidset_new(&s->attached);

	if (r)
		return r;
	pidset_add(&s->attached, s->options.command);
	s->awaiting_exec = s->opened[0].attr.enable_on_exec;
	return 0;
}

static int open_all(struct sampler *s, const struct sampler_options *options,
		    struct sampler_problem *problem)
{
	permission_probe(&options->roots, &s->permission);
	int r = attr_probe(&s->features);

	if (r)
		return sampler_explain(s, r, 0, "this process", problem);
	keep_to_limits(s);
	r = begin_namespaces(s);
	if (r)
		return sampler_fail(problem, r, "record", "the targets: out of memory");
	r = add_targets(s, options, problem);
	if (!r)
		r = sampler_open_rings(s, problem);
	if (!r)
		r = choose_mode(s, problem);
	if (!r)
		r = sampler_open_events(s, problem);
	if (r)
		return r;
	r = make_poll_fd(s);
	if (r)
		return sampler_fail(problem, r, "poll", "the ring buffers: %s", strerror(-r));
	/* Events of whole CPUs survive any exec. */
	r = s->setup.mode == SAMPLER_THREADS ? pidset_new(&s->executing) : 0;
	if (!r && s->setup.mode == SAMPLER_THREADS && s->options.command)
		r = attach_command(s);
	if (r)
		return sampler_fail(problem, r, "record", "the targets: out of memory");
	name_events(s);
	describe_setup(s);
	return 0;
}

int sampler_open(const struct sampler_options *options, struct sampler **ret_sampler,
		 struct sampler_problem *problem)
{
	if (!options->nevents || options->nevents > SAMPLER_EVENTS_MAX ||
	    options->npids > SAMPLER_PIDS_MAX)
		return sampler_fail(problem, -E2BIG, "record",
				    "the targets: the limits are 1 to %d events and %d processes",
				    SAMPLER_EVENTS_MAX, SAMPLER_PIDS_MAX);
	if (options->stack_bytes > SAMPLER_STACK_BYTES_MAX || options->stack_bytes % 8)
		return sampler_fail(
			problem, -EINVAL, "record",
			"%u bytes of each stack: the size must be a multiple of 8, up to %d",
			options->stack_bytes, SAMPLER_STACK_BYTES_MAX);
	struct sampler *s = calloc(1, sizeof(*s));

	if (!s)
		return sampler_fail(problem, -ENOMEM, "record", "the targets: out of memory");
	s->poll_fd = -1;
	int r = copy_options(s, options);

	if (r)
		sampler_fail(problem, r, "record", "the targets: out of memory");
	else
		r = open_all(s, options, problem);
	if (r)
		sampler_close(s);
	else
		*ret_sampler = s;
	return r;
}

int sampler_listen(struct sampler *s, const struct sampler_listener *listener)
{
	if (s->nlisteners == SAMPLER_LISTENERS_MAX)
		return -E2BIG;
	s->listeners[s->nlisteners++] = *listener;
	return 0;
}

int sampler_poll_fd(const struct sampler *s)
{
	return s->poll_fd;
}

/* Layout of read(2): value, id, lost (PERF_FORMAT_ID | PERF_FORMAT_LOST). Inherited events are
 * included. */
void sampler_read_lost(struct sampler *s, const struct sampler_fd *fd)
{
	uint64_t values[3];

	if (s->features.format_lost && !fd->event_only &&
	    read(fd->fd, values, sizeof(values)) == (ssize_t)sizeof(values))
		s->stats.lost_samples += values[2];
}

void sampler_close_on_cpu(struct sampler *s, int cpu)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->fds.len; i++) {
		struct sampler_fd fd = s->fds.v[i];

		if (fd.cpu != cpu) {
			s->fds.v[kept++] = fd;
			continue;
		}
		sampler_read_lost(s, &fd);
		close(fd.fd);
	}
	s->fds.len = kept;
}

int sampler_stop(struct sampler *s)
{
	for (size_t i = 0; i < s->fds.len; i++)
		(void)ioctl(s->fds.v[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	s->stopping = true;
	int r = sampler_drain(s);

	for (size_t i = 0; i < s->fds.len; i++)
		sampler_read_lost(s, &s->fds.v[i]);
	/* If samples share the ring with other records, this count has both. */
	if (!s->event_rings && s->stats.lost_others)
		s->stats.lost_samples = s->stats.lost_records;
	return r;
}

const pid_t *sampler_targets(const struct sampler *s, size_t *ret_n)
{
	*ret_n = s->targets.list.len;
	return s->targets.list.v;
}

const struct sampler_opened *sampler_opened(const struct sampler *s, size_t *ret_n)
{
	*ret_n = s->options.nevents;
	return s->opened;
}

const struct sampler_setup *sampler_setup(const struct sampler *s)
{
	return &s->setup;
}

const struct sampler_stats *sampler_stats(const struct sampler *s)
{
	return &s->stats;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->fds.len; i++)
		close(s->fds.v[i].fd);
	sampler_free_early(s);
	sampler_close_event_rings(s);
	for (size_t i = 0; i < s->cpus.len; i++)
		ring_unmap(&s->rings[i]);
	for (size_t i = 0; i < s->nids; i++)
		vec_free(&s->ids[i]);
	if (s->poll_fd >= 0)
		close(s->poll_fd);
	vec_free(&s->fds);
	vec_free(&s->ended);
	vec_free(&s->forks);
	vec_free(&s->missed);
	vec_free(&s->added);
	cpulist_online_close(&s->online);
	vec_free(&s->cpus);
	pidset_free(&s->attached);
	pidset_free(&s->elsewhere);
	pidset_free(&s->executing);
	targets_free(&s->targets);
	free(s->rings);
	free(s->ids);
	free(s->opened);
	free(s->events);
	free(s);
}
