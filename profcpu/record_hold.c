#include "profcpu/record_hold.h"

#include "base/clock.h"
#include "container/proc.h"

int record_hold_new(struct record_hold *h, struct opener *opener, bool patient)
{
	*h = (struct record_hold){.opener = opener, .patient = patient};
	return pidset_new(&h->waiting);
}

void record_hold_free(struct record_hold *h)
{
	pidset_free(&h->waiting);
}

static void put_off(struct record_hold *h, pid_t pid)
{
	if (h->count == RECORD_HOLD_PENDING || !pidset_add(&h->waiting, pid))
		return;
	h->pending[(h->first + h->count++) % RECORD_HOLD_PENDING] =
		(struct record_hold_pending){pid, clock_monotonic_ns()};
}

/* One that has ended already is left: the opener says so, and there is nothing to be done. */
void record_hold_news(struct record_hold *h, pid_t pid, enum sampler_news news, bool always)
{
	if (!h->opener)
		return;
	if (news == SAMPLER_PROCESS_ENDED)
		pidset_remove(&h->waiting, pid);
	else if (always)
		(void)opener_hold(h->opener, pid);
	else if (h->patient && news == SAMPLER_PROCESS_NEW)
		put_off(h, pid);
	else if (h->held++ < RECORD_HOLD_A_ROUND)
		(void)opener_hold(h->opener, pid);
}

void record_hold_round(struct record_hold *h)
{
	uint64_t now = h->count ? clock_monotonic_ns() : 0;

	h->held = 0;
	while (h->count && now - h->pending[h->first].since_ns >= RECORD_HOLD_AFTER_NS) {
		pid_t pid = h->pending[h->first].pid;

		h->first = (h->first + 1) % RECORD_HOLD_PENDING;
		h->count--;
		if (pidset_remove(&h->waiting, pid))
			(void)opener_hold(h->opener, pid);
	}
}

static int hold_one(void *ctx, pid_t pid)
{
	(void)opener_hold(ctx, pid);
	return 0;
}

void record_hold_all(struct record_hold *h)
{
	if (h->opener)
		(void)proc_each_pid(hold_one, h->opener);
}
