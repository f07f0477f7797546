/* Samples that wait for code which the unwinder does not know yet. */
#include "profcpu/record/unwind_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "recording/perfdata_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFERRED_KEPT_BYTES ((size_t)1 << 20) /* a buffer used so far is used again */

static struct unwind_deferred *deferred_at(const struct record_unwind *u, size_t at)
{
	return (struct unwind_deferred *)(void *)(u->deferred + at);
}

static size_t deferred_bytes(const struct unwind_deferred *deferred)
{
	return sizeof(*deferred) + deferred->bytes;
}

uint64_t record_unwind_oldest_ns(const struct record_unwind *u)
{
	return u->ndeferred ? deferred_at(u, u->first)->since_ns : UINT64_MAX;
}

/* Tries deferred samples again. last, or a long deferral: unwinds with the known code. */
int record_unwind_retry(struct record_unwind *u, struct perfdata_writer *w, bool last)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t at = u->first; at < u->end && !r; at += deferred_bytes(deferred_at(u, at))) {
		struct unwind_deferred *deferred = deferred_at(u, at);
		bool give_up = last || now_ns - deferred->since_ns > RECORD_UNWIND_DEFERRED_NS;

		if (deferred->done)
			continue;
		struct perfdata_record record;

		/* It was parsed before. */
		r = perfdata_records_parse(u->records, (const void *)(deferred + 1), &record);
		r = r ? 0 : record_unwind_take_sample(u, w, &record, give_up);
		if (r == -EAGAIN) {
			r = 0;
			continue;
		}
		u->stats.unwound_early += give_up;
		deferred->done = true;
		u->ndeferred--;
	}
	while (u->first < u->end && deferred_at(u, u->first)->done)
		u->first += deferred_bytes(deferred_at(u, u->first));
	if (u->first < u->end)
		return r;
	/* Such a burst is rare, so a long recording must not keep its memory. */
	if (u->end > DEFERRED_KEPT_BYTES)
		free(TAKE_PTR(u->deferred));
	u->first = u->end = 0;
	return r;
}

/* Defers a sample. If there is no room, unwinds all deferred samples now. */
int record_unwind_defer(struct record_unwind *u, struct perfdata_writer *w,
			const struct perf_event_header *header)
{
	struct unwind_deferred deferred = {.since_ns = clock_monotonic_ns(), .bytes = header->size};
	struct perfdata_record record;
	int r = 0;

	if (u->end + deferred_bytes(&deferred) > u->deferred_max) {
		u->stats.limits.cost[LIMIT_DEFERRED] += u->ndeferred;
		r = record_unwind_retry(u, w, true);
	}
	if (r)
		return r;
	if (!u->deferred && !(u->deferred = malloc(u->deferred_max)))
		return perfdata_records_parse(u->records, header, &record)
			       ? 0
			       : record_unwind_take_sample(u, w, &record, true);
	memcpy(u->deferred + u->end, &deferred, sizeof(deferred));
	memcpy(u->deferred + u->end + sizeof(deferred), header, header->size);
	u->end += deferred_bytes(&deferred);
	u->ndeferred++;
	u->stats.waited++;
	return 0;
}

/* Takes code that was read, and retries deferred samples. */
int record_unwind_take_code(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t now_ns = clock_monotonic_ns();
	int n = u->reader ? code_reader_take(u->reader, u->unwinder) : 0;

	if (n < 0 || !u->ndeferred)
		return n < 0 ? n : 0;
	return n || now_ns - deferred_at(u, u->first)->since_ns > RECORD_UNWIND_DEFERRED_NS
		       ? record_unwind_retry(u, w, false)
		       : 0;
}

/* Waits a moment for requested code, because it cannot be read later. */
int record_unwind_take_last(struct record_unwind *u, struct perfdata_writer *w)
{
	uint64_t until_ns = clock_monotonic_ns() + RECORD_UNWIND_LAST_NS;
	int r = 0, n = 1;

	while (u->reader && u->ndeferred && !r && n > 0 && clock_monotonic_ns() < until_ns) {
		code_reader_wait(u->reader, until_ns);
		n = code_reader_take(u->reader, u->unwinder);
		if (n > 0)
			r = record_unwind_retry(u, w, false);
	}
	if (!r && n < 0)
		r = n;
	return r ? r : record_unwind_retry(u, w, true);
}
