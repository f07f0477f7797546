#include "sampler/synth_buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int synth_buf_new(struct synth_buf *b, struct sampler *s, const struct sampler_synthesis *from)
{
	*b = (struct synth_buf){.s = s, .from = *from, .data = malloc(SYNTH_BUF_BYTES)};
	return b->data ? 0 : -ENOMEM;
}

void synth_buf_free(struct synth_buf *b)
{
	free(b->data);
	*b = (struct synth_buf){0};
}

int synth_buf_flush(struct synth_buf *b)
{
	int r = b->take ? b->take(b->ctx, b->data, b->len)
			: sampler_send_synthesized(b->s, b->data, b->len);

	b->len = 0;
	int round = r < 0 || b->take ? 0 : sampler_send_round(b->s);

	return round ? round : r;
}

int synth_buf_put(struct synth_buf *b, uint32_t type, uint16_t misc, const void *body,
		  size_t body_bytes, const char *text, size_t text_len)
{
	if (text_len > SYNTH_TEXT_MAX)
		text_len = SYNTH_TEXT_MAX;
	size_t text_bytes = text ? (text_len + 8) & ~(size_t)7 : 0;
	size_t size = sizeof(struct perf_event_header) + body_bytes + text_bytes +
		      sizeof(struct attr_sample_id) + (b->from.identified ? sizeof(uint64_t) : 0);
	struct perf_event_header header = {.type = type, .misc = misc, .size = (uint16_t)size};

	if (b->len + size > SYNTH_BUF_BYTES) {
		int r = synth_buf_flush(b);

		if (r)
			return r;
	}
	unsigned char *p = b->data + b->len;

	memset(p, 0, size);
	memcpy(p, &header, sizeof(header));
	memcpy(p + sizeof(header), body, body_bytes);
	if (text)
		memcpy(p + sizeof(header) + body_bytes, text, text_len);
	b->len += size;
	return 0;
}
