#include "sampler/event.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "sampler/permission.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define EVENT_WHAT "use the event"
#define EVENT_SMALL_FILE 4096

struct event_word {
	const char *name;
	uint32_t type;
	uint64_t config;
};

static const struct event_word event_words[] = {
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
	{"cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
	{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
	{"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
};

/* perf_event_open(2), PERF_TYPE_HW_CACHE: the config is cache | operation << 8 | result << 16. */
static const struct event_word event_caches[] = {
	{"L1-dcache", 0, PERF_COUNT_HW_CACHE_L1D}, {"L1-icache", 0, PERF_COUNT_HW_CACHE_L1I},
	{"LLC", 0, PERF_COUNT_HW_CACHE_LL},        {"dTLB", 0, PERF_COUNT_HW_CACHE_DTLB},
	{"iTLB", 0, PERF_COUNT_HW_CACHE_ITLB},     {"branch", 0, PERF_COUNT_HW_CACHE_BPU},
	{"node", 0, PERF_COUNT_HW_CACHE_NODE},
};

#define CACHE_OP(op, result) ((uint64_t)(op) << 8 | (uint64_t)(result) << 16)

static const struct event_word event_cache_ops[] = {
	{"-loads", 0, CACHE_OP(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
	{"-load-misses", 0, CACHE_OP(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
	{"-stores", 0, CACHE_OP(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
	{"-store-misses", 0,
	 CACHE_OP(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS)},
	{"-prefetches", 0,
	 CACHE_OP(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
	{"-prefetch-misses", 0,
	 CACHE_OP(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS)},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int word_event(const char *name, struct sampler_event *event)
{
	for (size_t i = 0; i < COUNT(event_words); i++) {
		if (strcmp(event_words[i].name, name))
			continue;
		event->type = event_words[i].type;
		event->config = event_words[i].config;
		return 0;
	}
	return -ENOENT;
}

static int cache_event(const char *name, struct sampler_event *event)
{
	for (size_t i = 0; i < COUNT(event_caches); i++) {
		size_t len = strlen(event_caches[i].name);

		if (strncmp(event_caches[i].name, name, len))
			continue;
		for (size_t j = 0; j < COUNT(event_cache_ops); j++) {
			if (strcmp(event_cache_ops[j].name, name + len))
				continue;
			event->type = PERF_TYPE_HW_CACHE;
			event->config = event_caches[i].config | event_cache_ops[j].config;
			return 0;
		}
	}
	return -ENOENT;
}

/* Parses a raw event code of the CPU's PMU, such as "r1a8". */
static int raw_event(const char *name, struct sampler_event *event)
{
	size_t len = strlen(name);

	if (name[0] != 'r' || len < 2 || len > 17 ||
	    strspn(name + 1, "0123456789abcdefABCDEF") != len - 1)
		return -ENOENT;
	event->type = PERF_TYPE_RAW;
	event->config = strtoull(name + 1, NULL, 16);
	return 0;
}

/* Reads a small sysfs or tracefs file that holds one unsigned number. */
static int read_number(const char *path, uint64_t *ret_value)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = file_read_at(AT_FDCWD, path, EVENT_SMALL_FILE, &text, &len);

	if (r)
		return r;
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (end == text)
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

static int tracepoint_id(const char *root, const char *system, const char *name, uint64_t *ret_id)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/events/%s/%s/id", root, system, name);

	return n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : read_number(path, ret_id);
}

static int tracepoint_event(const struct sampler_roots *roots, const char *system, const char *name,
			    struct sampler_event *event, struct sampler_problem *problem)
{
	const char *root = roots && roots->tracefs ? roots->tracefs : "/sys/kernel/tracing";
	char probe[PATH_MAX];
	int r = tracepoint_id(root, system, name, &event->config);

	/* Keep the error of tracefs: debugfs is closed to most users. */
	if (r == -ENOENT && !(roots && roots->tracefs) &&
	    !tracepoint_id("/sys/kernel/debug/tracing", system, name, &event->config))
		r = 0;
	event->type = PERF_TYPE_TRACEPOINT;
	if (!r)
		return 0;
	if (r == -EACCES || r == -EPERM)
		return sampler_fail(
			problem, -EACCES, EVENT_WHAT,
			"%s:%s: no permission to read %s/events; run as root, or as root: mount -o "
			"remount,gid=GID,mode=750 %s, where GID is a group of this user",
			system, name, root, root);
	snprintf(probe, sizeof(probe), "%s/events", root);
	if (access(probe, F_OK))
		return sampler_fail(problem, -ENOENT, EVENT_WHAT,
				    "%s:%s: tracefs is not mounted; mount -t tracefs tracefs "
				    "/sys/kernel/tracing%s",
				    system, name,
				    sampler_has_cap(CAP_SYS_ADMIN) ? "" : ", as root");
	return sampler_fail(problem, r, EVENT_WHAT,
			    "%s:%s: no such tracepoint; choose one from %s/available_events",
			    system, name, root);
}

static bool level_modifiers(const char *text, struct sampler_event *event)
{
	bool user = strchr(text, 'u'), kernel = strchr(text, 'k'), hv = strchr(text, 'h');
	bool guest = strchr(text, 'G'), host = strchr(text, 'H');

	for (const char *p = text; *p; p++) {
		if (!strchr("ukhpGHD", *p))
			return false;
		if (*p == 'p' && ++event->precise_ip > 3)
			return false;
	}
	if (user || kernel || hv) {
		event->exclude_user = !user;
		event->exclude_kernel = !kernel;
		event->exclude_hv = !hv;
	}
	if (guest || host) {
		event->exclude_guest = !guest;
		event->exclude_host = !host;
	}
	event->pinned = strchr(text, 'D');
	return true;
}

/* Whether a name or its modifiers are safe as part of a path: [A-Za-z0-9_.-]. */
static bool plain_name(const char *text)
{
	return *text && *text != '.' &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       strlen(text);
}

static int parse_parts(const struct sampler_roots *roots, char *first, char *second, char *third,
		       struct sampler_event *event, struct sampler_problem *problem)
{
	const char *modifiers = "";
	int r;

	if (!plain_name(first) || (second && *second && !plain_name(second)) ||
	    (third && *third && !plain_name(third)))
		return sampler_fail(
			problem, -EINVAL, EVENT_WHAT,
			"'%s': not the name of an event; use letters, digits, '_', '.' and '-'",
			event->name);
	r = word_event(first, event);
	if (r)
		r = cache_event(first, event);
	if (r)
		r = raw_event(first, event);
	if (!r && third)
		return sampler_fail(problem, -EINVAL, EVENT_WHAT,
				    "'%s': too many colons; use NAME:MODIFIERS", event->name);
	if (!r) {
		modifiers = second ? second : "";
	} else if (second && *second) {
		r = tracepoint_event(roots, first, second, event, problem);
		modifiers = third ? third : "";
		if (r)
			return r;
	}
	if (r)
		return sampler_fail(
			problem, -ENOENT, EVENT_WHAT,
			"'%s': no such event; choose cpu-clock, task-clock, page-faults, "
			"context-switches, cpu-migrations, cycles, instructions, "
			"cache-misses, branch-misses, a tracepoint as system:name, or "
			"another event of these kinds from `perf list`",
			event->name);
	if (!level_modifiers(modifiers, event))
		return sampler_fail(
			problem, -EINVAL, EVENT_WHAT,
			"'%s': wrong modifier; use u (user), k (kernel), h (hypervisor), "
			"p to ppp (precise), G (guest), H (host) or D (pinned)",
			event->name);
	return 0;
}

int sampler_event_parse(const struct sampler_roots *roots, const char *text,
			struct sampler_event *ret_event, struct sampler_problem *problem)
{
	struct sampler_event event = {0};
	char copy[SAMPLER_EVENT_NAME_MAX];
	size_t len = strlen(text);

	if (len >= sizeof(copy))
		return sampler_fail(problem, -E2BIG, EVENT_WHAT,
				    "'%.20s...': the name is longer than %zu bytes", text,
				    sizeof(copy) - 1);
	memcpy(copy, text, len + 1);
	memcpy(event.name, text, len + 1);
	char *second = strchr(copy, ':'), *third = NULL;

	if (second) {
		*second++ = 0;
		third = strchr(second, ':');
		if (third)
			*third++ = 0;
	}
	int r = parse_parts(roots, copy, second, third, &event, problem);

	if (r)
		return r;
	*ret_event = event;
	return 0;
}
