/* Writes features that describe this machine and recording, in the layouts of perf's header.c. */
#include "recording/perfdata_writer_impl.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define TEXT_ALIGN 64     /* perf pads texts to this size */
#define CPUINFO_HEAD 8192 /* bytes with the first CPU's entry */

static void put_u32(struct outbuf *out, uint32_t x)
{
	outbuf_put(out, &x, sizeof(x));
}

static void put_u64(struct outbuf *out, uint64_t x)
{
	outbuf_put(out, &x, sizeof(x));
}

static void put_text(struct outbuf *out, const char *text)
{
	static const char zeros[TEXT_ALIGN];
	size_t len = strlen(text), padded = (len + TEXT_ALIGN) & ~(size_t)(TEXT_ALIGN - 1);

	put_u32(out, (uint32_t)padded);
	outbuf_put(out, text, len);
	outbuf_put(out, zeros, padded - len);
}

struct feature_out {
	struct outbuf *out;
	struct perfdata_features *f;
	uint64_t base, start;
};

static void begin(struct feature_out *o)
{
	static const char zeros[8];

	outbuf_put(o->out, zeros, -o->out->len & 7);
	o->start = o->out->len;
}

static void end(struct feature_out *o, unsigned feature)
{
	perfdata_feature_set(o->f, feature, o->base + o->start, o->out->len - o->start);
}

static void text_feature(struct feature_out *o, unsigned feature, const char *text)
{
	if (!text || !*text)
		return;
	begin(o);
	put_text(o->out, text);
	end(o, feature);
}

/* Finds the value after "NAME<blanks>: " in cpuinfo's first entry; empty if it is missing. */
static void cpuinfo_value(const char *text, const char *name, char *buf, size_t cap)
{
	size_t len = strlen(name);

	*buf = 0;
	for (const char *line = text; line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *p = line + len;

		if (strncmp(line, name, len))
			continue;
		p += strspn(p, " \t");
		if (*p != ':')
			continue;
		p += strspn(p, ": \t");
		snprintf(buf, cap, "%.*s", (int)strcspn(p, "\n"), p);
		return;
	}
}

static void cpu_features(struct feature_out *o)
{
	char text[CPUINFO_HEAD], model[128], vendor[64], family[16], number[16], stepping[16],
		id[160];
	AUTO_CLOSE int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = 0;
	cpuinfo_value(text, "model name", model, sizeof(model));
	text_feature(o, PERFDATA_CPUDESC, model);
	cpuinfo_value(text, "vendor_id", vendor, sizeof(vendor));
	cpuinfo_value(text, "cpu family", family, sizeof(family));
	cpuinfo_value(text, "model", number, sizeof(number));
	cpuinfo_value(text, "stepping", stepping, sizeof(stepping));
	if (!*vendor || !*family || !*number || !*stepping)
		return;
	snprintf(id, sizeof(id), "%s,%s,%s,%s", vendor, family, number, stepping);
	text_feature(o, PERFDATA_CPUID, id);
}

static void machine_features(struct feature_out *o)
{
	struct utsname uts;
	long available = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (!uname(&uts)) {
		text_feature(o, PERFDATA_HOSTNAME, uts.nodename);
		text_feature(o, PERFDATA_OSRELEASE, uts.release);
		text_feature(o, PERFDATA_ARCH, uts.machine);
	}
	if (available > 0 && online > 0) {
		begin(o);
		put_u32(o->out, (uint32_t)available);
		put_u32(o->out, (uint32_t)online);
		end(o, PERFDATA_NRCPUS);
	}
	cpu_features(o);
	if (pages > 0 && page > 0) {
		begin(o);
		put_u64(o->out, (uint64_t)pages * ((uint64_t)page / 1024)); /* in KiB, like perf */
		end(o, PERFDATA_TOTAL_MEM);
	}
}

static void cmdline_feature(struct feature_out *o, const char *const *words)
{
	uint32_t n = 0;

	if (!words)
		return;
	while (words[n])
		n++;
	begin(o);
	put_u32(o->out, n);
	for (uint32_t i = 0; i < n; i++)
		put_text(o->out, words[i]);
	end(o, PERFDATA_CMDLINE);
}

static void event_feature(struct feature_out *o, const struct perfdata_writer_event *events,
			  size_t nevents)
{
	begin(o);
	put_u32(o->out, (uint32_t)nevents);
	put_u32(o->out, sizeof(events[0].attr));
	for (size_t i = 0; i < nevents; i++) {
		outbuf_put(o->out, &events[i].attr, sizeof(events[i].attr));
		put_u32(o->out, (uint32_t)events[i].nids);
		put_text(o->out, events[i].name);
		outbuf_put(o->out, events[i].ids, events[i].nids * sizeof(events[i].ids[0]));
	}
	end(o, PERFDATA_EVENT_DESC);
}

static void clock_features(struct feature_out *o, const struct perfdata_writer_info *info)
{
	struct timespec resolution;

	if (!clock_getres(CLOCK_MONOTONIC, &resolution)) {
		begin(o);
		put_u64(o->out,
			(uint64_t)resolution.tv_sec * 1000000000u + (uint64_t)resolution.tv_nsec);
		end(o, PERFDATA_CLOCKID);
	}
	begin(o);
	put_u32(o->out, 1); /* version */
	put_u32(o->out, CLOCK_MONOTONIC);
	put_u64(o->out, info->start_realtime_ns);
	put_u64(o->out, info->start_monotonic_ns);
	end(o, PERFDATA_CLOCK_DATA);
}

void perfdata_write_features(struct outbuf *out, uint64_t base,
			     const struct perfdata_writer_event *events, size_t nevents,
			     const struct perfdata_writer_info *info, struct perfdata_features *f)
{
	struct feature_out o = {.out = out, .f = f, .base = base};

	if (info->tracing_data) {
		begin(&o);
		outbuf_put(out, info->tracing_data, info->tracing_bytes);
		end(&o, PERFDATA_TRACING_DATA);
	}
	machine_features(&o);
	text_feature(&o, PERFDATA_VERSION, info->version);
	cmdline_feature(&o, info->cmdline);
	event_feature(&o, events, nevents);
	clock_features(&o, info);
	begin(&o);
}
