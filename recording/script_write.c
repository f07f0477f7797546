#include "recording/script_write.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "profile/script_line.h"

#include <errno.h>
#include <string.h>

/* A text that is made once and written many times. at is NULL until then. */
struct script_piece {
	const char *at;
	size_t len;
};

struct script_writer {
	struct profile *profile;
	struct outbuf *out;
	struct outbuf scratch;
	struct arena text;
	struct script_piece *frames, *threads; /* by id */
	bool has_stacks;
};

static int script_keep(struct script_writer *w, struct script_piece *ret_piece)
{
	char *copy;

	if (w->scratch.error)
		return w->scratch.error;
	copy = arena_alloc_text(&w->text, w->scratch.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, w->scratch.data, w->scratch.len);
	*ret_piece = (struct script_piece){copy, w->scratch.len};
	return 0;
}

static int script_write_frame(struct script_writer *w, uint32_t frame)
{
	struct script_piece *piece = &w->frames[frame];

	if (profile_frame_of(w->profile, frame)->is_mark)
		return 0;
	if (!piece->at) {
		w->scratch.len = 0;
		script_line_put_frame(&w->scratch, w->profile, profile_frame_of(w->profile, frame));
		int r = script_keep(w, piece);

		if (r)
			return r;
	}
	outbuf_put(w->out, piece->at, piece->len);
	return 0;
}

static int script_write_thread(struct script_writer *w, uint32_t thread)
{
	struct script_piece *piece = &w->threads[thread];

	if (!piece->at) {
		w->scratch.len = 0;
		script_line_put_thread(&w->scratch, w->profile,
				       profile_thread_of(w->profile, thread));
		int r = script_keep(w, piece);

		if (r)
			return r;
	}
	outbuf_put(w->out, piece->at, piece->len);
	return 0;
}

/* Writes at least `digits` decimal digits, padded with zeros. */
static void script_write_padded(struct outbuf *out, uint64_t x, int digits)
{
	uint64_t bound = 1;

	for (int i = 1; i < digits; i++)
		bound *= 10;
	for (; x < bound && bound > 1; bound /= 10)
		outbuf_char(out, '0');
	outbuf_u64(out, x);
}

static int script_write_header(struct script_writer *w, const struct profile_sample *sample)
{
	const struct profile_event *event = profile_event_of(w->profile, sample->event);
	struct outbuf *out = w->out;
	int r = script_write_thread(w, sample->thread);

	if (r)
		return r;
	if (sample->cpu >= 0) {
		outbuf_char(out, '[');
		script_write_padded(out, (uint64_t)sample->cpu, 3);
		outbuf_put(out, "] ", 2);
	}
	if (!event->timeless) {
		outbuf_u64(out, sample->time_ns / 1000000000);
		outbuf_char(out, '.');
		script_write_padded(out, sample->time_ns % 1000000000 / 1000, 6);
		outbuf_char(out, ':');
	}
	script_line_put_event(out, w->profile, event, sample->weight);
	return 0;
}

/*
 * Writes a sample without a stack as perf does: header and frame in one line that begins with white
 * space.
 */
static int script_write_stackless(struct script_writer *w, const struct profile_sample *sample)
{
	int r;

	outbuf_put(w->out, "     ", 5);
	r = script_write_header(w, sample);
	if (!r && sample->stack != PROFILE_STACK_EMPTY)
		r = script_write_frame(w, profile_stack_frame(w->profile, sample->stack));
	else if (!r)
		outbuf_char(w->out, '\n');
	return r ? r : w->out->error;
}

static int script_write_sample(void *ctx, const struct profile_sample *sample)
{
	struct script_writer *w = ctx;
	struct outbuf *out = w->out;
	int r;

	if (profile_event_of(w->profile, sample->event)->off_cpu)
		return 0;
	if (w->has_stacks && profile_event_of(w->profile, sample->event)->stackless)
		return script_write_stackless(w, sample);
	r = script_write_header(w, sample);
	if (r)
		return r;
	outbuf_char(out, '\n');
	for (uint32_t s = sample->stack; s != PROFILE_STACK_EMPTY;
	     s = profile_stack_parent(w->profile, s)) {
		r = script_write_frame(w, profile_stack_frame(w->profile, s));
		if (r)
			return r;
	}
	outbuf_char(out, '\n');
	return out->error;
}

int script_text_write(struct profile *profile, struct outbuf *out)
{
	AUTO_FREE struct script_piece *frames =
		calloc(profile_nframes(profile) + 1, sizeof(*frames));
	AUTO_FREE struct script_piece *threads =
		calloc(profile_nthreads(profile) + 1, sizeof(*threads));
	struct script_writer w = {.profile = profile,
				  .out = out,
				  .scratch = outbuf_to(-1),
				  .frames = frames,
				  .threads = threads};

	w.has_stacks = profile_has_stacks(profile);
	int r = frames && threads ? profile_each_sample(profile, script_write_sample, &w) : -ENOMEM;

	arena_free(&w.text);
	outbuf_close(&w.scratch);
	return r;
}
