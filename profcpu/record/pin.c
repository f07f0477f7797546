#include "profcpu/record/pin.h"

#include "base/clock.h"
#include "container/proc.h"

int record_pin_new(struct record_pin *p, struct opener *opener, bool patient)
{
	*p = (struct record_pin){.opener = opener, .patient = patient};
	return pidset_new(&p->alive);
}

void record_pin_free(struct record_pin *p)
{
	pidset_free(&p->alive);
}

static void defer(struct record_pin *p, pid_t pid)
{
	if (p->count == RECORD_PIN_PENDING || !pidset_add(&p->alive, pid))
		return;
	p->pending[(p->first + p->count++) % RECORD_PIN_PENDING] =
		(struct record_pin_pending){pid, clock_monotonic_ns()};
}

/* An error of opener_pin means that the process has ended, so it is ignored. */
void record_pin_news(struct record_pin *p, pid_t pid, enum sampler_news news, bool always)
{
	if (!p->opener)
		return;
	if (news == SAMPLER_PROCESS_NEW)
		opener_note_new(p->opener, pid);
	if (news == SAMPLER_PROCESS_ENDED)
		pidset_remove(&p->alive, pid);
	else if (always)
		(void)opener_pin(p->opener, pid);
	else if (p->patient && news == SAMPLER_PROCESS_NEW)
		defer(p, pid);
	else if (p->pinned++ < RECORD_PIN_A_ROUND)
		(void)opener_pin(p->opener, pid);
}

void record_pin_round(struct record_pin *p)
{
	uint64_t now = p->count ? clock_monotonic_ns() : 0;

	p->pinned = 0;
	while (p->count && now - p->pending[p->first].since_ns >= RECORD_PIN_AFTER_NS) {
		pid_t pid = p->pending[p->first].pid;

		p->first = (p->first + 1) % RECORD_PIN_PENDING;
		p->count--;
		if (pidset_remove(&p->alive, pid))
			(void)opener_pin(p->opener, pid);
	}
}

static int pin_one(void *ctx, pid_t pid)
{
	(void)opener_pin(ctx, pid);
	return 0;
}

void record_pin_all(struct record_pin *p)
{
	if (p->opener)
		(void)proc_each_pid(pin_one, p->opener);
}
