/* Buffer for records made from /proc, handed to the listeners in blocks. */
#ifndef SAMPLER_SYNTH_BUF_H
#define SAMPLER_SYNTH_BUF_H

#include "sampler/sampler_impl.h"

#define SYNTH_BUF_BYTES ((size_t)256 << 10)

struct synth_buf {
	struct sampler *s; /* NULL: `take` gets the records */
	struct sampler_synthesis from;
	unsigned char *data; /* SYNTH_BUF_BYTES */
	size_t len;
	sampler_synthesized take; /* NULL: the listeners of s get the records */
	void *ctx;
};

/* 0 or -ENOMEM */
int synth_buf_new(struct synth_buf *b, struct sampler *s, const struct sampler_synthesis *from);
void synth_buf_free(struct synth_buf *b);

/*
 * Adds a record: body (fields after the header), text and a sample_id of zeros. The text gets its
 * NUL, is padded to 8 bytes and cut at SYNTH_TEXT_MAX; NULL: none. 0 or the listener's result.
 */
#define SYNTH_TEXT_MAX 4095
int synth_buf_put(struct synth_buf *b, uint32_t type, uint16_t misc, const void *body,
		  size_t body_bytes, const char *text, size_t text_len);

/* Hands on what is left, and ends the round. 0 or the listener's result. */
int synth_buf_flush(struct synth_buf *b);

/* synth_kernel.c: MMAP of the kernel and its modules, where /proc/kallsyms and /proc/modules show
 * addresses. */
int synth_kernel(struct synth_buf *b);

#endif
