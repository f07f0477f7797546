#include "recording/perfdata_records.h"

#include "recording/perfdata_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int perfdata_records_new(const struct perf_event_attr *attrs, size_t n, struct perfdata **ret_data)
{
	struct perfdata *d = calloc(1, sizeof(*d));
	int r = d ? 0 : -ENOMEM;

	if (r)
		return r;
	d->in.fd = -1;
	d->meta_left = PERFDATA_META_BYTES_MAX;
	for (size_t i = 0; i < n && !r; i++)
		r = perfdata_add_event(d, &attrs[i], NULL, 0);
	if (r) {
		perfdata_close(d);
		return r;
	}
	perfdata_events_changed(d);
	*ret_data = d;
	return 0;
}

int perfdata_records_add_id(struct perfdata *d, size_t event, uint64_t id)
{
	if (d->nids >= PERFDATA_IDS_MAX)
		return -E2BIG;
	d->nids++;
	memset(d->id_cache, 0, sizeof(d->id_cache));
	return hashmap_put(&d->ids, id, (uint32_t)event);
}

void perfdata_records_assign_unknown_ids(struct perfdata *d, size_t event)
{
	d->unknown_id_event = (uint32_t)event + 1;
}

static struct perfdata_raw raw_of(const struct perf_event_header *header)
{
	return (struct perfdata_raw){.bytes = (const unsigned char *)header,
				     .size = header->size,
				     .type = header->type,
				     .misc = header->misc};
}

int perfdata_records_parse(struct perfdata *d, const struct perf_event_header *header,
			   struct perfdata_record *ret_record)
{
	struct perfdata_raw raw = raw_of(header);
	int64_t event = perfdata_event_of(d, &raw);

	return event < 0 ? -EBADMSG : perfdata_parse(d, &raw, (uint32_t)event, ret_record);
}

uint64_t perfdata_records_time(struct perfdata *d, const struct perf_event_header *header)
{
	struct perfdata_raw raw = raw_of(header);
	int64_t event = perfdata_event_of(d, &raw);
	uint64_t time_ns;

	return event >= 0 && perfdata_time_of(d, &raw, (uint32_t)event, &time_ns) ? time_ns : 0;
}

static size_t put(unsigned char *out, size_t at, const void *data, size_t bytes)
{
	memcpy(out + at, data, bytes);
	return at + bytes;
}

/* Returns the bytes between two places in a record. */
static size_t between(const void *from, const void *to)
{
	return (size_t)((const unsigned char *)to - (const unsigned char *)from);
}

size_t perfdata_records_rewrite(const struct perfdata_record *sample, const uint64_t *callchain,
				size_t n, enum perfdata_stack stack, void *out)
{
	const struct perfdata_sample *s = &sample->sample;
	const struct perf_event_header *h = sample->header;
	const unsigned char *chain = (const unsigned char *)s->callchain,
			    *rest = chain + s->ncallchain * 8;
	size_t head = between(h, chain) - 8, tail = (const unsigned char *)h + h->size - rest;
	size_t raw = s->raw ? (4 + (size_t)s->raw_bytes + 7) & ~(size_t)7 : 0, at;
	struct perf_event_header header = *h;
	uint64_t words = n, none[2] = {0, 0};

	if (stack != PERFDATA_STACK_KEPT)
		tail = raw;
	if (n > PERFDATA_RECORD_BYTES_MAX_OUT / 8 ||
	    head + 8 + n * 8 + tail + sizeof(none) > PERFDATA_RECORD_BYTES_MAX_OUT)
		return 0;
	at = put(out, 0, h, head);
	at = put(out, at, &words, 8);
	if (n)
		at = put(out, at, callchain, n * 8);
	at = put(out, at, rest, tail);
	if (stack == PERFDATA_STACK_EMPTY)
		at = put(out, at, none, sizeof(none));
	header.size = (uint16_t)at;
	memcpy(out, &header, sizeof(header));
	return at;
}
