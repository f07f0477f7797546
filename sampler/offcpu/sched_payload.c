#include "sampler/offcpu/sched_payload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_NMI 0x40

struct entry {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
};
_Static_assert(sizeof(struct entry) == 8, "layout of struct trace_entry");

int sched_payload_field(const char *format, const char *name, uint32_t *ret_offset)
{
	size_t len = strlen(name);

	for (const char *at = format; (at = strstr(at, name)); at += len) {
		uint32_t offset, size;

		if (at == format || at[-1] != ' ' || at[len] != ';')
			continue;
		if (sscanf(at + len + 1, " offset:%u; size:%u;", &offset, &size) != 2 ||
		    size != 4 || offset > SCHED_PAYLOAD_OFFSET_MAX)
			return -EBADMSG;
		*ret_offset = offset;
		return 0;
	}
	return -EBADMSG;
}

int sched_payload_waking(const void *raw, size_t bytes, uint32_t pid_offset,
			 struct sched_waking *ret_waking)
{
	struct entry entry;
	int32_t pid;

	if (bytes < sizeof(entry) || bytes < sizeof(pid) || pid_offset > bytes - sizeof(pid))
		return -EBADMSG;
	memcpy(&entry, raw, sizeof(entry));
	memcpy(&pid, (const char *)raw + pid_offset, sizeof(pid));
	*ret_waking = (struct sched_waking){.pid = pid,
					    .by = entry.pid,
					    .hardirq = entry.flags & (FLAG_HARDIRQ | FLAG_NMI),
					    .softirq = entry.flags & FLAG_SOFTIRQ};
	return 0;
}

int sched_payload_current(const void *raw, size_t bytes, int32_t *ret_pid)
{
	struct entry entry;

	if (bytes < sizeof(entry))
		return -EBADMSG;
	memcpy(&entry, raw, sizeof(entry));
	*ret_pid = entry.pid;
	return 0;
}
