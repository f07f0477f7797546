/* The profile of waits by their causes. */
#include "profcpu/managed/labels.h"
#include "profcpu/managed/profiles_impl.h"

#include <string.h>

int managed_profiles_take_wait(struct managed_profiles *m, struct cause_wait *wait)
{
	const struct profile_thread *t = profile_thread_of(m->profile, wait->thread);

	if (!m->causes || t->pid != m->place.pid)
		return 0;
	wait->tid = t->tid;
	return causes_take(m->causes, wait);
}

/* The frame above a wait: its cause, or the owner of the lock. */
static int cause_frame(struct managed_profiles *m, const struct cause_sum *sum, uint32_t *ret_frame)
{
	const char *label = cause_label(sum->cause);
	struct outbuf text = outbuf_to(-1);

	if (sum->cause == CAUSE_LOCK)
		managed_label_owner(m->profile,
				    sum->event < m->named.len ? m->named.v[sum->event].owner
							      : PROFILE_NONE,
				    &text);
	else
		outbuf_str(&text, label);
	return managed_text_frame(m, &text, ret_frame);
}

/* Adds a cause and the method of the program that waits. */
static int add_cause_sums(struct managed_profiles *m, struct managed_profile *p,
			  const struct cause_sum *sum)
{
	const char *word = cause_word(sum->cause);
	uint32_t place = managed_place_of(m, sum->stack), name;
	struct outbuf text = outbuf_to(-1);
	int r = profile_text(m->profile, word, strlen(word), &name);

	if (!r)
		r = managed_add_sum(m, &p->labels, MANAGED_CAUSES, name, sum->ns, sum->waits);
	if (r || place == PROFILE_NONE || sum->cause == CAUSE_IDLE || sum->cause == CAUSE_CPU)
		return r;
	outbuf_printf(&text, "%s in %s", word, profile_text_of(m->profile, place, NULL));
	r = text.error ? text.error : profile_text(m->profile, text.data, text.len, &name);
	outbuf_close(&text);
	return r ? r
		 : managed_add_sum(m, &p->places, MANAGED_KINDS + MANAGED_CAUSES, name, sum->ns,
				   sum->waits);
}

static int add_cause(void *ctx, const struct cause_sum *sum)
{
	struct managed_profiles *m = ctx;
	struct managed_profile *p = &m->kinds[MANAGED_CAUSES];
	uint32_t stack = sum->stack, frame;
	int r = managed_begin_kind(m, MANAGED_CAUSES);

	if (!r && sum->cause != CAUSE_NO_STACK)
		r = cause_frame(m, sum, &frame);
	if (!r && sum->cause != CAUSE_NO_STACK)
		r = managed_put_above(m, sum->stack, frame, &stack);
	if (!r)
		r = managed_add_group(m, p, sum->thread, stack, sum->ns, sum->waits);
	if (!r)
		r = add_cause_sums(m, p, sum);
	/* No event is needed to see that a thread is idle. */
	if (sum->is_estimated && sum->cause != CAUSE_IDLE)
		m->totals.estimated_ns = managed_add(m->totals.estimated_ns, sum->ns);
	p->events += sum->waits;
	p->weight = managed_add(p->weight, sum->ns);
	return r;
}

int managed_finish_causes(struct managed_profiles *m)
{
	return causes_finish(m->causes, m->profile, add_cause, m);
}
