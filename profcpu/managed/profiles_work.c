/* The profile of the CPU that the runtime's own work takes: methods compiled, and phases of the GC.
 */
#include "profcpu/managed/labels.h"
#include "profcpu/managed/profiles_impl.h"

#include <string.h>

/* Frames above a method, of the deepest stack that gets its label below them. */
#define WORK_ABOVE_MAX 256

int managed_profiles_take_cpu(struct managed_profiles *m, const struct profile_sample *sample)
{
	const struct profile_thread *t = profile_thread_of(m->profile, sample->thread);

	if (!m->work || t->pid != m->place.pid)
		return 0;
	m->totals.cpu_event = sample->event;
	const struct work_sample s = {.tid = t->tid,
				      .time_ns = sample->time_ns,
				      .weight = sample->weight,
				      .thread = sample->thread,
				      .stack = sample->stack};

	return work_take(m->work, m->profile, &s);
}

/* Names the work, as reports do. */
static void put_word(struct managed_profiles *m, const struct work_sum *sum, struct outbuf *out)
{
	if (!sum->compiles) {
		outbuf_printf(out, "GC: %s", managed_phase_word((enum managed_phase)sum->event));
		return;
	}
	outbuf_str(out, "JIT: ");
	if (sum->event < m->events.v.len &&
	    intern_len(&m->events.texts, m->events.v.v[sum->event].label))
		managed_label(&m->events.texts, &m->events.v.v[sum->event], m->raw_names, out);
	else
		outbuf_str(out, "method unknown");
}

/*
 * Puts a frame between the innermost method of a stack and the runtime's code above it, so that one
 * frame of a picture has all code that works for it.
 */
static int put_below(struct managed_profiles *m, uint32_t stack, uint32_t frame,
		     uint32_t *ret_stack)
{
	uint32_t above[WORK_ABOVE_MAX], n = 0, callers = stack;
	int r;

	while (callers != PROFILE_STACK_EMPTY && n < WORK_ABOVE_MAX &&
	       managed_frame_at(m, callers)->kind != FRAME_MANAGED) {
		above[n++] = profile_stack_frame(m->profile, callers);
		callers = profile_stack_parent(m->profile, callers);
	}
	r = managed_put_above(m, callers, frame, ret_stack);
	while (n && !r)
		r = managed_put_above(m, *ret_stack, above[--n], ret_stack);
	return r;
}

/* Adds the work, and of compilations also the method. */
static int add_sums(struct managed_profiles *m, struct managed_profile *p,
		    const struct work_sum *sum, const struct outbuf *word)
{
	const char *label = sum->compiles ? "JIT" : word->data;
	uint32_t name;
	int r = profile_text(m->profile, label, strlen(label), &name);

	if (!r)
		r = managed_add_sum(m, &p->labels, MANAGED_RUNTIME, name, sum->weight,
				    sum->samples);
	if (r || !sum->compiles)
		return r;
	r = profile_text(m->profile, word->data, word->len, &name);
	return r ? r
		 : managed_add_sum(m, &p->places, MANAGED_KINDS + MANAGED_RUNTIME, name,
				   sum->weight, sum->samples);
}

static int add_work(void *ctx, const struct work_sum *sum)
{
	struct managed_profiles *m = ctx;
	struct managed_profile *p = &m->kinds[MANAGED_RUNTIME];
	struct outbuf word = outbuf_to(-1), label = outbuf_to(-1);
	uint32_t frame, stack;
	int r = managed_begin_kind(m, MANAGED_RUNTIME);

	put_word(m, sum, &word);
	outbuf_char(&word, 0);
	word.len -= !word.error;
	if (!r)
		r = word.error ? word.error : add_sums(m, p, sum, &word);
	if (!r)
		outbuf_printf(&label, "[%s]", word.data);
	outbuf_close(&word);
	if (r) {
		outbuf_close(&label);
		return r;
	}
	r = managed_text_frame(m, &label, &frame);
	if (!r)
		r = put_below(m, sum->stack, frame, &stack);
	if (!r)
		r = managed_add_group(m, p, sum->thread, stack, sum->weight, sum->samples);
	p->events += sum->samples;
	p->weight = managed_add(p->weight, sum->weight);
	return r;
}

int managed_finish_work(struct managed_profiles *m)
{
	return work_each(m->work, add_work, m);
}
