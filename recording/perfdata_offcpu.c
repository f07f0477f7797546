#include "recording/perfdata_offcpu.h"

#include <string.h>

/* A sample without its callchain. Source of the order: include/uapi/linux/perf_event.h. */
#define FIELDS                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	int32_t pid, tid;
	uint64_t time_ns;
	int32_t cpu;
	uint32_t res;
	uint64_t period, ncallchain;
};
_Static_assert(sizeof(struct sample) == PERFDATA_OFFCPU_BYTES, "layout of a sample");

/* "off-cpu"; the lowest byte holds the kind. */
#define MARK UINT64_C(0x7570632d66666f00)

struct perf_event_attr perfdata_offcpu_attr(const struct perf_event_attr *beside,
					    enum perfdata_offcpu_kind kind)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.config1 = MARK | kind,
		.sample_period = 1,
		.sample_type = FIELDS,
		.read_format = beside->read_format,
		.sample_id_all = 1,
		.use_clockid = beside->use_clockid,
		.clockid = beside->clockid,
	};
}

enum perfdata_offcpu_kind perfdata_offcpu_kind(const struct perf_event_attr *attr)
{
	uint64_t kind = attr->config1 ^ MARK;

	if (attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_BPF_OUTPUT ||
	    kind > PERFDATA_OFFCPU_WAKER)
		return PERFDATA_OFFCPU_NONE;
	return (enum perfdata_offcpu_kind)kind;
}

const char *perfdata_offcpu_name(enum perfdata_offcpu_kind kind)
{
	static const char *const names[] = {NULL, PERFDATA_OFFCPU_NAME, PERFDATA_WAKER_NAME};

	return names[kind];
}

size_t perfdata_offcpu_write(const struct perfdata_offcpu *s, void *out)
{
	size_t bytes = sizeof(struct sample) + s->ncallchain * 8;
	struct sample sample = {
		.header = {.type = PERF_RECORD_SAMPLE,
			   .misc = PERF_RECORD_MISC_USER,
			   .size = (uint16_t)bytes},
		.id = s->id,
		.pid = s->pid,
		.tid = s->tid,
		.time_ns = s->time_ns,
		.cpu = s->cpu,
		.period = s->off_ns,
		.ncallchain = s->ncallchain,
	};

	if (s->ncallchain > UINT16_MAX / 8 || bytes > UINT16_MAX)
		return 0;
	if (s->ncallchain && s->callchain[0] == PERF_CONTEXT_KERNEL)
		sample.header.misc = PERF_RECORD_MISC_KERNEL;
	if (s->ncallchain > 1)
		sample.ip = s->callchain[1];
	memcpy(out, &sample, sizeof(sample));
	if (s->ncallchain)
		memcpy((char *)out + sizeof(sample), s->callchain, s->ncallchain * 8);
	return bytes;
}
