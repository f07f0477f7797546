#include "profcpu/managed/events_impl.h"

#include "base/outbuf.h"
#include "base/reader.h"
#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/method_name.h"
#include "dotnet/eventpipe/nettrace_read.h"
#include "dotnet/eventpipe/session.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* AllocationSampled takes each byte with this probability. Source: SamplingDistributionMean of
 * dotnet/runtime. */
#define EVENTS_SAMPLED_PART (1.0 / 102400)
/* Reasons of suspensions for collections; others are for instance the sampler's. */
#define EVENTS_REASON_GC 1
#define EVENTS_REASON_GC_PREPARE 6
/* Reasons to add a thread to the pool: work items waited, or its threads block for tasks. Source:
 * ThreadAdjustmentReasonMap of dotnet/runtime. */
#define EVENTS_REASON_STARVATION 6
#define EVENTS_REASON_BLOCKING 8
/* GCGlobalHeapHistory before its times. Source: ClrEtwAll.man of dotnet/runtime. */
#define EVENTS_HISTORY_BYTES 50

struct events_reader {
	struct managed_events *e;
	struct managed_raws raws;
	unsigned wanted;
	uint64_t max_bytes;
	struct outbuf text, name;
};

static int take_head(void *ctx, const struct nettrace_trace *head)
{
	struct events_reader *r = ctx;

	r->e->head = *head;
	return 0;
}

static uint64_t number_of(const struct events_reader *r, const struct nettrace_event *event,
			  const char *field)
{
	struct event_value v;

	return event_payload_find(event, r->e->head.pointer_bytes, field, &v) ? 0 : v.number;
}

/* Appends a text of an event. */
static void put_text(const struct events_reader *r, const struct nettrace_event *event,
		     const char *field, struct outbuf *out)
{
	struct event_value v;

	if (!event_payload_find(event, r->e->head.pointer_bytes, field, &v) &&
	    v.type == EVENT_TEXT16)
		outbuf_utf16(out, v.bytes, v.len);
}

static int keep_text(struct events_reader *r, uint32_t *ret_label)
{
	return r->text.error
		       ? r->text.error
		       : intern_put(&r->e->texts, r->text.len ? r->text.data : "",
				    r->text.len < INTERN_TEXT_MAX ? r->text.len : 0, ret_label);
}

static int take_type(struct events_reader *r, const struct nettrace_event *event, const char *field,
		     struct managed_raw *raw)
{
	r->text.len = 0;
	put_text(r, event, field, &r->text);
	return keep_text(r, &raw->event.label);
}

/* The method in the runtime's spelling, whose module is not needed: "void [?] Type::Method(int32)".
 */
static int take_method(struct events_reader *r, const struct nettrace_event *event,
		       struct managed_raw *raw)
{
	r->text.len = r->name.len = 0;
	outbuf_str(&r->name, "[?] ");
	put_text(r, event, "MethodNamespace", &r->name);
	outbuf_str(&r->name, "::");
	put_text(r, event, "MethodName", &r->name);
	size_t name = r->name.len;

	put_text(r, event, "MethodSignature", &r->name);
	if (r->name.error)
		return r->name.error;
	(void)method_name_signature(r->name.data + name, r->name.len - name, r->name.data, name,
				    &r->text);
	return keep_text(r, &raw->event.label);
}

/* An object of `size` bytes is sampled with the probability that one of its bytes is. */
static uint64_t sampled_weight(uint64_t size)
{
	double known = -expm1((double)size * log1p(-EVENTS_SAMPLED_PART));
	double weight = known > 0 ? (double)size / known : 0;

	return weight < 0x1p62 ? (uint64_t)llround(weight) : UINT64_C(1) << 62;
}

static int take_allocation(struct events_reader *r, const struct nettrace_event *event,
			   struct managed_raw *raw)
{
	raw->event.kind = MANAGED_ALLOC;
	if (raw->id == MANAGED_ID_ALLOCATION_SAMPLED) {
		r->e->exact_samples = true;
		raw->event.weight = sampled_weight(number_of(r, event, "ObjectSize"));
	} else {
		raw->event.weight = number_of(r, event, "AllocationAmount64");
		if (!raw->event.weight)
			raw->event.weight = number_of(r, event, "AllocationAmount");
	}
	return take_type(r, event, "TypeName", raw);
}

static int take_contention(struct events_reader *r, const struct nettrace_event *event,
			   struct managed_raw *raw)
{
	struct event_value v;

	raw->event.kind = MANAGED_CONTENTION;
	if (raw->id == MANAGED_ID_CONTENTION_START)
		raw->event.label = (uint32_t)number_of(r, event, "LockOwnerThreadID");
	else if (!event_payload_find(event, r->e->head.pointer_bytes, "DurationNs", &v) &&
		 v.real >= 1 && v.real < 0x1p62)
		raw->event.weight = (uint64_t)v.real;
	return 0;
}

static int take_collection(struct events_reader *r, const struct nettrace_event *event,
			   struct managed_raw *raw)
{
	raw->event.kind = MANAGED_GC;
	raw->key = number_of(r, event, "Count");
	if (raw->id == MANAGED_ID_GC_START)
		raw->event.label = managed_collection_label((struct managed_collection){
			.generation = (uint32_t)number_of(r, event, "Depth"),
			.reason = (uint32_t)number_of(r, event, "Reason"),
			.type = (uint32_t)number_of(r, event, "Type")});
	if (raw->id == MANAGED_ID_SUSPEND_BEGIN) {
		uint64_t reason = number_of(r, event, "Reason");

		/* Threads that stop for another reason have no pause of the GC. */
		raw->event.weight =
			reason == EVENTS_REASON_GC || reason == EVENTS_REASON_GC_PREPARE;
	}
	return 0;
}

static int take_compilation(struct events_reader *r, const struct nettrace_event *event,
			    struct managed_raw *raw)
{
	raw->event.kind = MANAGED_JIT;
	raw->key = number_of(r, event, "MethodID");
	if (raw->id == MANAGED_ID_METHOD_LOAD)
		raw->event.addr = number_of(r, event, "MethodStartAddress");
	return raw->id == MANAGED_ID_JITTING_STARTED ? take_method(r, event, raw) : 0;
}

static int take_exception(struct events_reader *r, const struct nettrace_event *event,
			  struct managed_raw *raw)
{
	raw->event.kind = MANAGED_EXCEPTIONS;
	raw->event.weight = 1;
	return take_type(r, event, "ExceptionType", raw);
}

/* The pool changed its number of threads. */
static int take_adjustment(struct events_reader *r, const struct nettrace_event *event,
			   struct managed_raw *raw)
{
	uint64_t reason = number_of(r, event, "Reason");

	raw->event.kind = MANAGED_CAUSES;
	raw->event.weight = reason == EVENTS_REASON_STARVATION || reason == EVENTS_REASON_BLOCKING;
	return 0;
}

/* Phases of a background collection. */
static int take_background(struct events_reader *r, const struct nettrace_event *event,
			   struct managed_raw *raw)
{
	(void)r;
	(void)event;
	raw->event.kind = MANAGED_RUNTIME;
	raw->event.label = raw->id == MANAGED_ID_BACKGROUND_BEGIN ? MANAGED_PHASE_BACKGROUND_MARK
								  : MANAGED_PHASE_BACKGROUND_SWEEP;
	return 0;
}

/* How long the phases of a collection took. The times are behind the fields. */
static int take_history(struct events_reader *r, const struct nettrace_event *event,
			struct managed_raw *raw)
{
	struct reader payload = reader_of(event->blob.payload, event->blob.payload_len);
	struct managed_history history = {.n = (uint32_t)number_of(r, event, "Count")};

	raw->event.kind = MANAGED_RUNTIME;
	raw->key = r->raws.histories.len;
	if (history.n > MANAGED_HISTORY_COMPACTING)
		history.n = 0;
	(void)reader_bytes(&payload, EVENTS_HISTORY_BYTES);
	for (uint32_t i = 0; i < history.n; i++)
		history.us[i] = reader_u32(&payload);
	if (payload.failed)
		history.n = 0;
	return vec_push(&r->raws.histories, history);
}

static const struct events_taker {
	uint16_t id;
	uint8_t kind;
	int (*take)(struct events_reader *r, const struct nettrace_event *event,
		    struct managed_raw *raw);
} takers[] = {
	{MANAGED_ID_ALLOCATION_SAMPLED, MANAGED_ALLOC, take_allocation},
	{MANAGED_ID_ALLOCATION_TICK, MANAGED_ALLOC, take_allocation},
	{MANAGED_ID_EXCEPTION_THROWN, MANAGED_EXCEPTIONS, take_exception},
	{MANAGED_ID_CONTENTION_START, MANAGED_CONTENTION, take_contention},
	{MANAGED_ID_CONTENTION_STOP, MANAGED_CONTENTION, take_contention},
	{MANAGED_ID_GC_START, MANAGED_GC, take_collection},
	{MANAGED_ID_GC_END, MANAGED_GC, take_collection},
	{MANAGED_ID_RESTART_END, MANAGED_GC, take_collection},
	{MANAGED_ID_SUSPEND_BEGIN, MANAGED_GC, take_collection},
	{MANAGED_ID_GC_TRIGGERED, MANAGED_GC, take_collection},
	{MANAGED_ID_METHOD_LOAD, MANAGED_JIT, take_compilation},
	{MANAGED_ID_JITTING_STARTED, MANAGED_JIT, take_compilation},
	{MANAGED_ID_POOL_ADJUSTED, MANAGED_CAUSES, take_adjustment},
	{MANAGED_ID_GC_HISTORY, MANAGED_RUNTIME, take_history},
	{MANAGED_ID_BACKGROUND_BEGIN, MANAGED_RUNTIME, take_background},
	{MANAGED_ID_BACKGROUND_SWEEP, MANAGED_RUNTIME, take_background},
	{MANAGED_ID_BACKGROUND_END, MANAGED_RUNTIME, take_background},
};

/* enum managed_event_id of an event; 0: none of them. */
static uint16_t id_of(const struct nettrace_kind *kind)
{
	if (!strcmp(kind->provider, PROVIDER_RUNTIME))
		return kind->event_id < MANAGED_ID_PRIVATE ? (uint16_t)kind->event_id : 0;
	return !strcmp(kind->provider, PROVIDER_PRIVATE) && kind->event_id < MANAGED_ID_PRIVATE
		       ? (uint16_t)(MANAGED_ID_PRIVATE | kind->event_id)
		       : 0;
}

static const struct events_taker *taker_of(const struct events_reader *r, uint16_t id)
{
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (takers[i].id == id)
			return r->wanted & 1u << takers[i].kind ? &takers[i] : NULL;
	return NULL;
}

static bool is_full(const struct events_reader *r)
{
	const struct managed_events *e = r->e;

	/* The joined events take as much again, at most. */
	return 2 * (vec_bytes(&r->raws.v) + vec_bytes(&r->raws.histories)) +
		       e->stacks.text.total_bytes + e->texts.text.total_bytes +
		       (e->stacks.cap + e->texts.cap) * sizeof(*e->stacks.entries) >
	       r->max_bytes;
}

static int take_event(void *ctx, const struct nettrace_event *event)
{
	struct events_reader *r = ctx;
	struct managed_raw raw = {.event = {.time_ns = event->time_ns,
					    .tid = (uint32_t)event->thread,
					    .label = MANAGED_NO_LABEL},
				  .order = (uint32_t)r->raws.v.len,
				  .id = id_of(event->kind)};

	/* Names of methods, which we have added to the trace. */
	if (!strcmp(event->kind->provider, PROVIDER_RUNDOWN))
		return 0;
	r->e->seen++;
	if (event->time_ns > r->e->last_ns)
		r->e->last_ns = event->time_ns;
	const struct events_taker *taker = taker_of(r, raw.id);

	if (!taker)
		return 0;
	if (is_full(r) || r->raws.v.len == UINT32_MAX) {
		r->e->left_out++;
		return 0;
	}
	int e = intern_put(
		&r->e->stacks, event->stack ? (const char *)event->stack : "",
		event->stack && event->stack_bytes <= INTERN_TEXT_MAX ? event->stack_bytes : 0,
		&raw.event.stack);

	if (!e)
		e = taker->take(r, event, &raw);
	return e ? e : vec_push(&r->raws.v, raw);
}

int managed_events_read(int fd, unsigned wanted, uint64_t max_bytes,
			struct managed_events *ret_events, struct parse_error *err)
{
	struct events_reader r = {.e = ret_events,
				  .wanted = managed_kinds_read(wanted),
				  .max_bytes = max_bytes,
				  .text = outbuf_to(-1),
				  .name = outbuf_to(-1)};
	const struct nettrace_listener listener = {
		.trace = take_head, .event = take_event, .ctx = &r};
	struct nettrace_stats stats = {0};

	*ret_events = (struct managed_events){0};
	int e = nettrace_read(fd, &listener, &stats, &ret_events->is_cut, err);

	ret_events->lost = stats.lost;
	if (!e || e == -EBADMSG || e == -E2BIG) {
		int paired = managed_events_pair(ret_events, &r.raws);

		e = e ? e : paired;
	}
	vec_free(&r.raws.v);
	vec_free(&r.raws.histories);
	outbuf_close(&r.text);
	outbuf_close(&r.name);
	return e;
}

void managed_events_free(struct managed_events *e)
{
	vec_free(&e->v);
	intern_free(&e->stacks);
	intern_free(&e->texts);
}
