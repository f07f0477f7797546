#include "profcpu/compare/claims.h"

#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/nettrace_read.h"
#include "dotnet/eventpipe/session.h"
#include "profcpu/managed/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLAIMS_REASON_OTHER 0 /* of a suspension: not for a collection */

struct claims_reader {
	struct claims *s;
	uint64_t max_bytes;
	/* The last suspension, which is the sampler's if samples of its thread follow. */
	struct timeline_span suspension;
	uint64_t suspender;
	bool suspended, is_round; /* is_round: it is the last one of rounds */
};

static int take_head(void *ctx, const struct nettrace_trace *head)
{
	struct claims_reader *r = ctx;

	r->s->head = *head;
	return 0;
}

static int take_sample(struct claims_reader *r, const struct nettrace_event *event)
{
	struct claims *s = r->s;
	struct event_value type = {0};
	struct claims_one one = {.time_ns = event->time_ns,
				 .round = CLAIMS_NO_ROUND,
				 .tid = (uint32_t)event->thread};

	if (vec_bytes(&s->v) + s->stacks.text.total_bytes +
		    s->stacks.cap * sizeof(*s->stacks.entries) >
	    r->max_bytes) {
		s->left_out++;
		return 0;
	}
	if (r->suspended && r->suspender == event->capture_thread) {
		if (!r->is_round && vec_push(&s->rounds, r->suspension))
			return -ENOMEM;
		r->is_round = true;
		one.round = (uint32_t)(s->rounds.len - 1);
	}
	s->sampler = event->capture_thread;
	(void)event_payload_find(event, s->head.pointer_bytes, "Type", &type);
	one.outside = type.number == CLAIMS_EXTERNAL;
	int e = intern_put(&s->stacks, event->stack ? (const char *)event->stack : "",
			   event->stack ? event->stack_bytes : 0, &one.stack);

	return e ? e : vec_push(&s->v, one);
}

static void take_suspension(struct claims_reader *r, const struct nettrace_event *event)
{
	struct event_value reason;

	if (event->kind->event_id == MANAGED_ID_SUSPEND_BEGIN) {
		r->suspended =
			!event_payload_find(event, r->s->head.pointer_bytes, "Reason", &reason) &&
			reason.number == CLAIMS_REASON_OTHER;
		r->suspension = (struct timeline_span){.begin_ns = event->time_ns};
		r->suspender = event->capture_thread;
		r->is_round = false;
	} else if (event->kind->event_id == MANAGED_ID_RESTART_END && r->suspended &&
		   r->suspender == event->capture_thread) {
		if (r->is_round)
			r->s->rounds.v[r->s->rounds.len - 1].end_ns = event->time_ns;
		r->suspended = false;
	}
}

static int take_event(void *ctx, const struct nettrace_event *event)
{
	struct claims_reader *r = ctx;

	if (!strcmp(event->kind->provider, PROVIDER_SAMPLER))
		return take_sample(r, event);
	if (!strcmp(event->kind->provider, PROVIDER_RUNTIME))
		take_suspension(r, event);
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct claims_one *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int claims_read(int fd, uint64_t max_bytes, struct claims *ret_samples, struct parse_error *err)
{
	struct claims_reader r = {.s = ret_samples, .max_bytes = max_bytes};
	const struct nettrace_listener listener = {
		.trace = take_head, .event = take_event, .ctx = &r};
	struct nettrace_stats stats = {0};

	*ret_samples = (struct claims){0};
	int e = nettrace_read(fd, &listener, &stats, &ret_samples->is_cut, err);

	ret_samples->lost = stats.lost;
	if (ret_samples->v.len)
		qsort(ret_samples->v.v, ret_samples->v.len, sizeof(*ret_samples->v.v), by_time);
	return e;
}

bool claims_is_poll(const char *name)
{
	return strstr(name, "System.Threading.Thread::PollGC(") ||
	       strstr(name, "System.Threading.Thread::<PollGC>g__PollGC");
}

void claims_free(struct claims *s)
{
	vec_free(&s->v);
	vec_free(&s->rounds);
	intern_free(&s->stacks);
}
