/* perf's names of events. */
#include "recording/perfdata_impl.h"
#include "recording/perfdata_offcpu.h"

#include <stdio.h>
#include <string.h>

/* Names that perf evlist prints for type and config. A file with EVENT_DESC has its own names. */
static const char *const hardware_names[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static const char *const software_names[] = {
	"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
};

static const char *const cache_names[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					  "iTLB",      "branch",    "node"};
static const char *const cache_ops[] = {"load", "store", "prefetch"};
static const char *const cache_op_plurals[] = {"loads", "stores", "prefetches"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void name_of_table(const char *const *names, size_t n, uint64_t config, const char *unknown,
			  char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", config < n ? names[config] : unknown);
}

/* config is cache, operation << 8, result << 16. */
static void name_of_cache(uint64_t config, char *buf, size_t cap)
{
	uint64_t cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;

	if (cache >= COUNT(cache_names) || op >= COUNT(cache_ops) || result > 1)
		snprintf(buf, cap, "invalid-cache");
	else if (result)
		snprintf(buf, cap, "%s-%s-misses", cache_names[cache], cache_ops[op]);
	else
		snprintf(buf, cap, "%s-%s", cache_names[cache], cache_op_plurals[op]);
}

static void name_of_breakpoint(const struct perf_event_attr *attr, char *buf, size_t cap)
{
	/* HW_BREAKPOINT_R, _W, _X of linux/hw_breakpoint.h */
	snprintf(buf, cap, "mem:0x%llx:%s%s%s", (unsigned long long)attr->bp_addr,
		 attr->bp_type & 1 ? "r" : "", attr->bp_type & 2 ? "w" : "",
		 attr->bp_type & 4 ? "x" : "");
}

/*
 * Appends modifiers (":u", ":kpp", ...) if the event does not count all of kernel, user,
 * hypervisor, host and guest.
 */
static void add_modifiers(const struct perf_event_attr *attr, char *buf, size_t cap)
{
	bool levels = attr->exclude_kernel || attr->exclude_user || attr->exclude_hv;
	bool guest_default = levels || attr->precise_ip;
	bool event_rings = attr->exclude_host || attr->exclude_guest == guest_default;
	size_t len = strlen(buf);
	char mod[16];

	snprintf(mod, sizeof(mod), "%s%s%s%.*s%s%s", levels && !attr->exclude_kernel ? "k" : "",
		 levels && !attr->exclude_user ? "u" : "", levels && !attr->exclude_hv ? "h" : "",
		 (int)attr->precise_ip, "ppp", event_rings && !attr->exclude_host ? "H" : "",
		 event_rings && !attr->exclude_guest ? "G" : "");
	if (mod[0] && len < cap)
		snprintf(buf + len, cap - len, ":%s", mod);
}

void perfdata_default_name(const struct perf_event_attr *attr, char *buf, size_t cap)
{
	const char *ours = perfdata_offcpu_name(perfdata_offcpu_kind(attr));
	uint64_t config = attr->config;

	if (ours) {
		snprintf(buf, cap, "%s", ours);
		return;
	}
	switch (attr->type) {
	/* config's upper half is the PMU, on machines with several kinds of CPU */
	case PERF_TYPE_HARDWARE:
		name_of_table(hardware_names, COUNT(hardware_names), config & 0xffffffff,
			      "unknown-hardware", buf, cap);
		break;
	case PERF_TYPE_SOFTWARE:
		name_of_table(software_names, COUNT(software_names), config, "unknown-software",
			      buf, cap);
		break;
	case PERF_TYPE_HW_CACHE:
		name_of_cache(config & 0xffffffff, buf, cap);
		break;
	case PERF_TYPE_BREAKPOINT:
		name_of_breakpoint(attr, buf, cap);
		break;
	case PERF_TYPE_RAW:
		snprintf(buf, cap, "raw 0x%llx", (unsigned long long)config);
		break;
	case PERF_TYPE_TRACEPOINT:
		snprintf(buf, cap, "unknown tracepoint");
		return;
	default:
		snprintf(buf, cap, "unknown attr type: %u", attr->type);
		return;
	}
	add_modifiers(attr, buf, cap);
}
