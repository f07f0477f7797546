#include "profcpu/doctor_probe.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "container/opener.h"
#include "container/process_list.h"
#include "dotnet/coreclr/runtime.h"
#include "sampler/attr.h"
#include "sampler/event.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define DOCTOR_INIT_PID_NS 0xEFFFFFFCU /* linux/proc_ns.h */
#define DOCTOR_INIT_CGROUP_NS 0xEFFFFFFBU
#define DOCTOR_INIT_UTS_NS 0xEFFFFFFEU
#define DOCTOR_INIT_IPC_NS 0xEFFFFFFFU
#define DOCTOR_MOUNTS_MAX ((size_t)16 << 20) /* bytes of mountinfo */
#define DOCTOR_RINGS_MAX 32                  /* of 2 MiB each: the sampler's limit for all rings */
#define DOCTOR_KALLSYMS_BYTES 4096           /* enough to see an address that is not 0 */
#define DOCTOR_PERFMAP_MAX ((uint64_t)64 << 30)
#define DOCTOR_MEMORY_NS (2 * NS_PER_S) /* limit for reading the JIT-compiled code of a process */

static int doctor_try_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = attr_open(attr, pid, cpu);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Opens and closes an event; 0 or -errno. */
static int doctor_try_event(pid_t pid, int cpu, bool kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.exclude_kernel = !kernel,
		.exclude_callchain_kernel = !kernel,
	};

	return doctor_try_open(&attr, pid, cpu);
}

/* The first CPU that is online: CPU 0 may be offline. */
static int doctor_try_cpu(long cpus)
{
	int r = -ENODEV;

	for (int cpu = 0; cpu < cpus && r == -ENODEV; cpu++)
		r = doctor_try_event(-1, cpu, true);
	return r;
}

/* Maps n rings of `bytes` each, all at once, because the limits are on their sum. */
static bool doctor_try_rings(size_t bytes, size_t n)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	size_t len = bytes + (size_t)sysconf(_SC_PAGESIZE), mapped = 0;
	void *maps[DOCTOR_RINGS_MAX];

	for (; mapped < n; mapped++) {
		AUTO_CLOSE int fd =
			(int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

		maps[mapped] = fd < 0 ? MAP_FAILED
				      : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (maps[mapped] == MAP_FAILED)
			break;
	}
	for (size_t i = 0; i < mapped; i++)
		munmap(maps[i], len);
	return mapped == n;
}

static size_t doctor_largest_ring(long cpus)
{
	size_t n = cpus > 0 && cpus < DOCTOR_RINGS_MAX ? (size_t)cpus : DOCTOR_RINGS_MAX;
	size_t bytes = DOCTOR_RING_WANTED, page = (size_t)sysconf(_SC_PAGESIZE);

	while (bytes >= page && !doctor_try_rings(bytes, n))
		bytes /= 2;
	return bytes >= page ? bytes : 0;
}

static bool doctor_kallsyms_shown(void)
{
	AUTO_CLOSE int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char text[DOCTOR_KALLSYMS_BYTES];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = 0;
	/* Read several lines, because some per-CPU symbols really begin at 0. */
	for (const char *line = text; *line;) {
		if (strtoull(line, NULL, 16))
			return true;
		line = strchrnul(line, '\n');
		line += *line == '\n';
	}
	return false;
}

static bool doctor_ns_is(const char *path, unsigned ino)
{
	struct stat st;

	return !stat(path, &st) && st.st_ino == ino;
}

/*
 * "hidepid=N", or the word of newer kernels, in the super options of the mount on /proc (mountinfo,
 * proc(5)).
 */
static int doctor_hidepid(void)
{
	static const char *const words[] = {"off", "noaccess", "invisible", "", "ptraceable"};
	AUTO_FREE char *text = NULL;
	size_t len;
	int hidepid = 0;

	if (proc_read(getpid(), 0, "mountinfo", DOCTOR_MOUNTS_MAX, &text, &len))
		return 0;
	for (char *line = text, *end; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = 0;
		const char *option = strstr(line, "hidepid=");

		if (!strstr(line, " /proc ") || !option)
			continue;
		option += strlen("hidepid=");
		for (int i = 0; i < 5; i++)
			if (*option == '0' + i ||
			    (*words[i] && !strncmp(option, words[i], strlen(words[i]))))
				hidepid = i;
	}
	return hidepid;
}

static bool doctor_proc_is_ours(void)
{
	char link[32];
	ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

	if (n <= 0)
		return false;
	link[n] = 0;
	return atoi(link) == getpid();
}

/*
 * Whether we are in a container. Test namespaces, not files that container runtimes leave in a
 * root: such a root may now be a machine's or a chroot. A container has a namespace of its own,
 * even if it shares PIDs and network.
 */
static bool doctor_is_contained(const struct doctor_facts *f)
{
	char own[64], init[64];

	if (!f->init_pid_ns || !f->rights.init_user_ns ||
	    !doctor_ns_is("/proc/self/ns/uts", DOCTOR_INIT_UTS_NS) ||
	    !doctor_ns_is("/proc/self/ns/ipc", DOCTOR_INIT_IPC_NS) ||
	    !doctor_ns_is("/proc/self/ns/cgroup", DOCTOR_INIT_CGROUP_NS))
		return true;
	/*
	 * The first mount namespace has no fixed number, so compare with PID 1, if that is allowed.
	 */
	return !proc_link(getpid(), "ns/mnt", own, sizeof(own)) &&
	       !proc_link(1, "ns/mnt", init, sizeof(init)) && strcmp(own, init) != 0;
}

static enum doctor_place doctor_place(const struct doctor_facts *f)
{
	if (!doctor_is_contained(f))
		return DOCTOR_HOST;
	if (getenv("KUBERNETES_SERVICE_HOST") || !access("/var/run/secrets/kubernetes.io", F_OK))
		return DOCTOR_KUBERNETES;
	if (!access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) || !f->init_pid_ns)
		return DOCTOR_DOCKER;
	return DOCTOR_HOST;
}

/*
 * Read a tracepoint, as recording does (sampler/offcpu/switch_rings.h): tracefs may have open
 * directories with closed files.
 */
static void doctor_probe_tracefs(struct doctor_facts *f)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
		.disabled = 1,
	};
	struct sampler_event event;
	struct statfs fs;

	f->tracefs_mounted = !statfs("/sys/kernel/tracing", &fs) && fs.f_type == TRACEFS_MAGIC;
	f->tracefs_error = sampler_event_parse(NULL, "sched:sched_waking", &event, NULL);
	if (f->tracefs_error)
		return;
	attr.config = event.config;
	f->waking_error = -ENODEV;
	for (int cpu = 0; cpu < f->cpus && f->waking_error == -ENODEV; cpu++)
		f->waking_error = doctor_try_open(&attr, -1, cpu);
}

static void doctor_probe_events(struct doctor_facts *f)
{
	struct sampler_event events[SAMPLER_DEFAULT_MAX];
	size_t n = 0;

	f->event_user_error = doctor_try_event(0, -1, false);
	f->event_kernel_error = doctor_try_event(0, -1, true);
	f->event_cpu_error = doctor_try_cpu(f->cpus);
	f->ring_bytes = doctor_largest_ring(f->cpus);
	sampler_event_default(NULL, events, &n, NULL);
	if (n) {
		f->pmu = strncmp(events[0].name, "cpu-clock", strlen("cpu-clock"));
		snprintf(f->event, sizeof(f->event), "%.63s", events[0].name);
	}
}

static int doctor_probe_processes(struct doctor_facts *f, struct opener *o)
{
	struct process_list list = {0};
	int r = process_list_load(o, false, &list);

	for (size_t i = 0; i < list.len; i++)
		f->dotnet += list.v[i].dotnet.is_dotnet;
	f->processes = list.len;
	f->denied = list.denied;
	process_list_free(&list);
	return r == -ENOMEM ? r : 0;
}

/* Whether names of JIT-compiled code can be read from the runtime's memory. */
static void doctor_probe_memory(struct doctor_target *t)
{
	struct clr_jit_code *jit = NULL;
	struct parse_error err = {0};

	t->memory_error =
		t->dotnet.is_dotnet
			? clr_runtime_open(t->pid, clock_monotonic_ns() + DOCTOR_MEMORY_NS, &jit,
					   &err)
			: -ENOENT;
	t->memory_what = err.what;
	clr_jit_code_free(jit);
}

static int doctor_stop_reading(void *ctx, char *lines, size_t len)
{
	(void)ctx;
	(void)lines;
	return len > 0;
}

/* Whether the list of memory maps is readable. 0 or -errno. */
static int doctor_probe_maps(pid_t pid, const struct proc_maps_limit *limit)
{
	int r = proc_scan_maps(pid, limit, doctor_stop_reading, NULL);

	return r > 0 ? 0 : r;
}

static void doctor_probe_target(struct doctor_target *t, struct opener *o)
{
	struct opener_process pinned;
	AUTO_CLOSE int map_fd = -1;
	struct stat st;
	const struct proc_maps_limit limit = {PROC_MAPS_MAX, clock_monotonic_ns() + DOCTOR_MAPS_NS};

	t->status_error = proc_status(t->pid, &t->status);
	if (t->status_error)
		return;
	t->event_user_error = doctor_try_event(t->pid, -1, false);
	t->event_error = doctor_try_event(t->pid, -1, true);
	t->root_error = opener_pin(o, t->pid);
	t->other_root = !opener_process(o, t->pid, &pinned) && pinned.other_root;
	t->maps_error = doctor_probe_maps(t->pid, &limit);
	t->denial.reason = ACCESS_ELSEWHERE;
	(void)access_probe(t->pid, &t->denial); /* fails if the process has ended meanwhile */
	t->dotnet_error = dotnet_probe(o, t->pid, &limit, &t->dotnet);
	doctor_probe_memory(t);
	t->perfmap_error = opener_perfmap(o, t->pid, DOCTOR_PERFMAP_MAX, &map_fd);
	if (!t->perfmap_error && !fstat(map_fd, &st))
		t->perfmap_bytes = (uint64_t)st.st_size;
	t->port_error = dotnet_port(o, t->pid, &t->port, t->port_path, sizeof(t->port_path));
}

int doctor_probe(pid_t pid, struct doctor_facts *ret_facts)
{
	struct doctor_facts f = {.target.pid = pid, .cpus = sysconf(_SC_NPROCESSORS_CONF)};
	struct rlimit nofile = {0};
	struct opener *o = NULL;
	struct utsname u;
	int r = opener_new(&o);

	if (r)
		return r;
	if (!uname(&u))
		snprintf(f.release, sizeof(f.release), "%s", u.release);
	proc_status(getpid(), &f.self);
	getrlimit(RLIMIT_NOFILE, &nofile);
	f.nofile_hard = nofile.rlim_max;
	permission_probe(NULL, &f.rights);
	f.mlock_kb = sampler_sysctl(NULL, "perf_event_mlock_kb", DOCTOR_UNKNOWN);
	f.kptr_restrict = sampler_sysctl(NULL, "kptr_restrict", DOCTOR_UNKNOWN);
	f.kallsyms_shown = doctor_kallsyms_shown();
	f.init_pid_ns = doctor_ns_is("/proc/self/ns/pid", DOCTOR_INIT_PID_NS);
	f.proc_is_ours = doctor_proc_is_ours();
	f.hidepid = doctor_hidepid();
	doctor_probe_tracefs(&f);
	f.place = doctor_place(&f);
	doctor_probe_events(&f);
	r = doctor_probe_processes(&f, o);
	if (pid)
		doctor_probe_target(&f.target, o);
	opener_free(o);
	*ret_facts = f;
	return r;
}
