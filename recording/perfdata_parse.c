/* Reads the fields of a record, and finds its event and its time. */
#include "base/hash.h"
#include "recording/perfdata_impl.h"

#include <errno.h>
#include <string.h>

#define PERFDATA_BRANCH_COUNTERS \
	(1ULL << 19) /* PERF_SAMPLE_BRANCH_COUNTERS, which older headers lack */
#define PERFDATA_BRANCH_WORDS 3

/* Reads the words of a record in place. After a read past the end it has failed for good. */
struct words {
	const uint64_t *p, *end;
	bool failed;
};

static inline const uint64_t *words_take(struct words *w, uint64_t n)
{
	const uint64_t *p = w->p;

	if (n > (uint64_t)(w->end - p)) {
		w->failed = true;
		w->p = w->end;
		return NULL;
	}
	w->p += n;
	return p;
}

static inline uint64_t words_next(struct words *w)
{
	const uint64_t *p = words_take(w, 1);

	return p ? *p : 0;
}

static inline struct words words_of(const struct perfdata_raw *raw, size_t from, size_t trailer)
{
	const uint64_t *p = (const uint64_t *)(const void *)raw->bytes;

	if (raw->size < from + trailer)
		return (struct words){p, p, true};
	return (struct words){p + from / 8, p + (raw->size - trailer) / 8, false};
}

static inline int32_t low32(uint64_t x)
{
	return (int32_t)(uint32_t)x;
}

static inline int32_t high32(uint64_t x)
{
	return (int32_t)(uint32_t)(x >> 32);
}

/* Returns the bytes up to the end of the last whole word, which is where sample_id ends. */
static inline size_t words_end(const struct perfdata_raw *raw)
{
	return raw->size & ~(size_t)7;
}

/* Reads the counters of PERF_SAMPLE_READ; the values of a group go to d->group. */
static void perfdata_parse_read(struct perfdata *d, struct words *w, uint64_t format)
{
	struct perfdata_group *g = &d->group;
	uint64_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);

	g->has_id = format & PERF_FORMAT_ID;
	g->stride = 1 + g->has_id + !!(format & PERF_FORMAT_LOST);
	g->at = 0;
	g->id_word = 1;
	if (format & PERF_FORMAT_GROUP) {
		g->nvalues = words_next(w);
		words_take(w, times);
		if (g->nvalues > PERFDATA_RECORD_BYTES_MAX)
			w->failed = true;
		g->values = words_take(w, g->nvalues * g->stride);
	} else {
		g->nvalues = 1;
		g->stride += times; /* the times are between value and id */
		g->id_word += times;
		g->values = words_take(w, g->stride);
	}
	if (w->failed)
		g->nvalues = 0;
}

static void perfdata_parse_branches(struct words *w, const struct perf_event_attr *attr,
				    struct perfdata_sample *s)
{
	s->nbranches = words_next(w);
	/*
	 * If the kernel has no branch stack, it writes a count of 0 without hw_idx. This was
	 * observed only at the end of samples.
	 */
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX &&
	    (s->nbranches || w->p < w->end))
		words_next(w);
	if (s->nbranches > PERFDATA_RECORD_BYTES_MAX)
		w->failed = true;
	s->branches = words_take(w, s->nbranches * PERFDATA_BRANCH_WORDS);
	if (attr->branch_sample_type & PERFDATA_BRANCH_COUNTERS)
		words_take(w, s->nbranches);
}

static const uint64_t *perfdata_parse_regs(struct words *w, uint64_t mask, uint64_t *ret_abi)
{
	*ret_abi = words_next(w);
	return *ret_abi ? words_take(w, (uint64_t)__builtin_popcountll(mask)) : NULL;
}

static void perfdata_parse_user_stack(struct words *w, struct perfdata_sample *s)
{
	uint64_t size = words_next(w);

	if (!size)
		return;
	if (size % 8)
		w->failed = true;
	s->user_stack = words_take(w, size / 8);
	s->user_stack_bytes = words_next(w);
	if (s->user_stack_bytes > size)
		w->failed = true;
}

static void perfdata_parse_raw(struct words *w, struct perfdata_sample *s)
{
	const uint64_t *head = words_take(w, 1);

	if (!head)
		return;
	s->raw_bytes = (uint32_t)*head;
	s->raw = (const unsigned char *)head + 4;
	words_take(w, (4 + (uint64_t)s->raw_bytes + 7) / 8 - 1);
}

/* Parses the part of a sample after the callchain. */
static void perfdata_parse_sample_rest(struct words *w, const struct perf_event_attr *attr,
				       struct perfdata_sample *s)
{
	uint64_t type = attr->sample_type, abi;

	if (type & PERF_SAMPLE_RAW)
		perfdata_parse_raw(w, s);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		perfdata_parse_branches(w, attr, s);
	if (type & PERF_SAMPLE_REGS_USER)
		s->user_regs = perfdata_parse_regs(w, attr->sample_regs_user, &s->user_abi);
	if (type & PERF_SAMPLE_STACK_USER)
		perfdata_parse_user_stack(w, s);
	if (type & PERF_SAMPLE_WEIGHT)
		s->weight = words_next(w);
	else if (type & PERF_SAMPLE_WEIGHT_STRUCT)
		s->weight = (uint32_t)words_next(w);
	if (type & PERF_SAMPLE_DATA_SRC)
		words_next(w);
	if (type & PERF_SAMPLE_TRANSACTION)
		s->transaction = words_next(w);
	if (type & PERF_SAMPLE_REGS_INTR)
		perfdata_parse_regs(w, attr->sample_regs_intr, &abi);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		s->phys_addr = words_next(w);
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = words_next(w);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		words_next(w);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		words_next(w);
	if (type & PERF_SAMPLE_AUX) {
		uint64_t size = words_next(w);

		words_take(w, size / 8 + !!(size % 8));
	}
}

static int perfdata_parse_sample(struct perfdata *d, const struct perfdata_raw *raw,
				 const struct perf_event_attr *attr, struct perfdata_record *r)
{
	struct words w = words_of(raw, sizeof(struct perf_event_header), 0);
	struct perfdata_sample *s = &r->sample;
	uint64_t type = attr->sample_type, x;

	*s = (struct perfdata_sample){.period = attr->sample_period};
	if (type & PERF_SAMPLE_IDENTIFIER)
		s->id = words_next(&w);
	if (type & PERF_SAMPLE_IP)
		s->ip = words_next(&w);
	if (type & PERF_SAMPLE_TID) {
		x = words_next(&w);
		r->pid = low32(x);
		r->tid = high32(x);
	}
	if (type & PERF_SAMPLE_TIME)
		r->time_ns = words_next(&w);
	if (type & PERF_SAMPLE_ADDR)
		s->addr = words_next(&w);
	if (type & PERF_SAMPLE_ID)
		s->id = words_next(&w);
	if (type & PERF_SAMPLE_STREAM_ID)
		words_next(&w);
	if (type & PERF_SAMPLE_CPU)
		r->cpu = low32(words_next(&w));
	if (type & PERF_SAMPLE_PERIOD)
		s->period = words_next(&w);
	if (type & PERF_SAMPLE_READ)
		perfdata_parse_read(d, &w, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN) {
		x = words_next(&w);
		if (x > PERFDATA_CALLCHAIN_MAX)
			w.failed = true;
		s->ncallchain = x;
		s->callchain = words_take(&w, x);
	}
	if (type & ~(uint64_t)(PERF_SAMPLE_IDENTIFIER | (PERF_SAMPLE_RAW - 1)))
		perfdata_parse_sample_rest(&w, attr, s);
	if (!w.failed)
		return 0;
	d->group.nvalues = 0;
	return -EBADMSG;
}

/* Parses sample_id, at the end of all records except samples. */
static void perfdata_parse_trailer(const struct perfdata_raw *raw, uint64_t type, size_t trailer,
				   struct perfdata_record *r)
{
	struct words w = words_of(raw, words_end(raw) - trailer, 0);
	uint64_t x;

	if (type & PERF_SAMPLE_TID) {
		x = words_next(&w);
		r->pid = low32(x);
		r->tid = high32(x);
	}
	if (type & PERF_SAMPLE_TIME)
		r->time_ns = words_next(&w);
	if (type & PERF_SAMPLE_ID)
		words_next(&w);
	if (type & PERF_SAMPLE_STREAM_ID)
		words_next(&w);
	if (type & PERF_SAMPLE_CPU)
		r->cpu = low32(words_next(&w));
}

/* Returns the rest of the words as text, which must end within them; NULL: it does not. */
static const char *words_text(const struct words *w)
{
	const char *s = (const char *)w->p;
	size_t room = (size_t)(w->end - w->p) * 8;

	return !w->failed && room && memchr(s, 0, room) ? s : NULL;
}

/*
 * Returns whether the 24 bytes of a map hold a build id instead of device and inode. The flag alone
 * is not sufficient: the kernel (6.18) sets it for every listener if any listener, even of another
 * program, requests build ids. Listeners that did not request them then get the inode with the
 * flag. If no event requested build ids, only a tool can have written one: 16 or 20 bytes.
 */
static bool perfdata_map_has_build_id(const struct perfdata *d, uint16_t misc,
				      const unsigned char *id)
{
	if (!(misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
		return false;
	if (d->asks_build_ids)
		return true;
	return (id[0] == 16 || id[0] == PERFDATA_BUILD_ID_MAX) && !id[1] && !id[2] && !id[3];
}

static int perfdata_parse_mmap(const struct perfdata *d, struct words *w, bool two,
			       struct perfdata_record *r)
{
	struct perfdata_mmap *m = &r->mmap;
	uint64_t x = words_next(w);

	r->pid = low32(x);
	r->tid = high32(x);
	*m = (struct perfdata_mmap){0};
	m->addr = words_next(w);
	m->len = words_next(w);
	m->pgoff = words_next(w);
	if (two) {
		const unsigned char *id = (const unsigned char *)words_take(w, 3);

		if (!id)
			return -EBADMSG;
		if (perfdata_map_has_build_id(d, r->misc, id)) {
			m->build_id.len =
				id[0] < PERFDATA_BUILD_ID_MAX ? id[0] : PERFDATA_BUILD_ID_MAX;
			memcpy(m->build_id.bytes, id + 4, m->build_id.len);
		} else {
			memcpy(&m->maj, id, 4);
			memcpy(&m->min, id + 4, 4);
			memcpy(&m->ino, id + 8, 8);
			memcpy(&m->ino_generation, id + 16, 8);
		}
		x = words_next(w);
		m->prot = (uint32_t)x;
		m->flags = (uint32_t)(x >> 32);
	}
	m->filename = words_text(w);
	return m->filename ? 0 : -EBADMSG;
}

static int perfdata_parse_task(struct words *w, struct perfdata_record *r)
{
	uint64_t pids = words_next(w), tids = words_next(w), time_ns = words_next(w);

	r->pid = low32(pids);
	r->task.ppid = high32(pids);
	r->tid = low32(tids);
	r->task.ptid = high32(tids);
	if (!r->time_ns)
		r->time_ns = time_ns;
	return w->failed ? -EBADMSG : 0;
}

static int perfdata_parse_ksymbol(struct words *w, struct perfdata_record *r)
{
	uint64_t x;

	r->ksymbol.addr = words_next(w);
	x = words_next(w);
	r->ksymbol.len = (uint32_t)x;
	r->ksymbol.ksym_type = (uint16_t)(x >> 32);
	r->ksymbol.flags = (uint16_t)(x >> 48);
	r->ksymbol.name = words_text(w);
	return r->ksymbol.name ? 0 : -EBADMSG;
}

static int perfdata_parse_other(const struct perfdata *d, struct words *w,
				struct perfdata_record *r)
{
	uint64_t x;

	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return perfdata_parse_mmap(d, w, r->type == PERF_RECORD_MMAP2, r);
	case PERF_RECORD_COMM:
		x = words_next(w);
		r->pid = low32(x);
		r->tid = high32(x);
		r->comm.exec = r->misc & PERF_RECORD_MISC_COMM_EXEC;
		r->comm.name = words_text(w);
		return r->comm.name ? 0 : -EBADMSG;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return perfdata_parse_task(w, r);
	case PERF_RECORD_LOST:
		words_next(w);
		r->lost.lost = words_next(w);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		r->lost.lost = words_next(w);
		break;
	case PERF_RECORD_KSYMBOL:
		return perfdata_parse_ksymbol(w, r);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		x = words_next(w);
		if (!r->time_ns)
			r->time_ns = x;
		r->throttle.id = words_next(w);
		r->throttle.stream_id = words_next(w);
		break;
	default: /* returned as it is */
		break;
	}
	return w->failed ? -EBADMSG : 0;
}

int perfdata_parse(struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		   struct perfdata_record *r)
{
	const struct perf_event_attr *attr = &d->events.v[event].attr;
	size_t trailer = raw->type == PERF_RECORD_SAMPLE ? 0 : d->layouts.v[event].trailer_bytes;

	r->type = raw->type;
	r->misc = raw->misc;
	r->again = false;
	r->event = event;
	r->time_ns = 0;
	r->pid = r->tid = r->cpu = -1;
	r->file_off = raw->file_off;
	r->header = (const struct perf_event_header *)(const void *)raw->bytes;
	if (raw->type == PERF_RECORD_SAMPLE)
		return perfdata_parse_sample(d, raw, attr, r);

	struct words w = words_of(raw, sizeof(struct perf_event_header), trailer);

	if (w.failed)
		return -EBADMSG;
	if (trailer)
		perfdata_parse_trailer(raw, attr->sample_type, trailer, r);
	return perfdata_parse_other(d, &w, r);
}

/*
 * Returns how much a counter moved since its last value. A counter that could not be stored counts
 * whole.
 */
static uint64_t perfdata_count_delta(struct perfdata *d, uint64_t id, uint64_t value)
{
	const struct perf_event_attr *attr = &d->events.v[d->record.event].attr;
	uint64_t key = attr->inherit ? hash_mix(id, (uint64_t)(uint32_t)d->record.tid) : id;
	uint32_t *place;
	int fresh = 0;

	if (d->counts.len >= PERFDATA_COUNTS_MAX) {
		hashmap_free(&d->count_of);
		d->counts.len = 0;
	}
	if (vec_reserve(&d->counts, 1) ||
	    hashmap_entry(&d->count_of, key, (uint32_t)d->counts.len, &place, &fresh))
		return value;
	if (fresh)
		d->counts.v[d->counts.len++] = 0;
	uint64_t delta = value - d->counts.v[*place];

	d->counts.v[*place] = value;
	return delta;
}

bool perfdata_group_next(struct perfdata *d)
{
	struct perfdata_group *g = &d->group;
	struct perfdata_record *r = &d->record;

	while (g->at < g->nvalues) {
		const uint64_t *v = g->values + g->at++ * g->stride;
		uint64_t id = g->has_id ? v[g->id_word] : r->sample.id;
		const uint32_t *event = hashmap_get(&d->ids, id);

		if (event)
			r->event = *event;
		else if (d->events.len > 1)
			continue;
		r->sample.id = id;
		r->sample.period = perfdata_count_delta(d, id, *v);
		if (r->sample.period)
			return true;
	}
	g->nvalues = 0;
	return false;
}

int64_t perfdata_event_of(struct perfdata *d, const struct perfdata_raw *raw)
{
	uint64_t id;

	if (d->events.len == 1)
		return 0;
	if (raw->type == PERF_RECORD_SAMPLE) {
		if (!d->id_off)
			return 0;
		if (raw->size < d->id_off + 8u)
			return -1;
		memcpy(&id, raw->bytes + d->id_off, sizeof(id));
	} else {
		if (!d->id_back)
			return 0;
		if (raw->size < sizeof(struct perf_event_header) + d->id_back)
			return -1;
		memcpy(&id, raw->bytes + words_end(raw) - d->id_back, sizeof(id));
	}
	if (!id)
		return 0; /* perf makes this record in the shape of the first event */
	size_t slot = id % PERFDATA_ID_CACHE;

	if (d->id_cache[slot].used && d->id_cache[slot].id == id)
		return d->id_cache[slot].event;
	const uint32_t *event = hashmap_get(&d->ids, id);

	if (!event)
		return raw->type == PERF_RECORD_SAMPLE ? (int64_t)d->unknown_id_event - 1 : -1;
	d->id_cache[slot].id = id;
	d->id_cache[slot].event = *event;
	d->id_cache[slot].used = 1;
	return *event;
}

bool perfdata_time_of(const struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		      uint64_t *ret_time_ns)
{
	const struct perfdata_layout *l = &d->layouts.v[event];
	uint64_t time_ns = 0;

	if (raw->type == PERF_RECORD_SAMPLE) {
		if (l->time_off) {
			if (raw->size < l->time_off + 8u)
				return false;
			memcpy(&time_ns, raw->bytes + l->time_off, sizeof(time_ns));
		}
	} else {
		if (raw->size < sizeof(struct perf_event_header) + l->trailer_bytes)
			return false;
		if (l->trailer_time)
			memcpy(&time_ns, raw->bytes + words_end(raw) - l->trailer_time,
			       sizeof(time_ns));
	}
	*ret_time_ns = time_ns == UINT64_MAX ? 0 : time_ns;
	return true;
}
