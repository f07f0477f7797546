#include "symbols/tracker.h"

#include "symbols/map_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

/* processes_unnamed_fn, if names do not matter. */
static int tracker_no_comm(void *ctx, int32_t tid, uint32_t *ret_comm)
{
	(void)ctx;
	(void)tid;
	*ret_comm = 0;
	return 0;
}

int tracker_new(const struct tracker_options *options, struct tracker **ret_tracker)
{
	struct tracker *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->options = *options;
	r = processes_new(&(struct processes_options){.unnamed = options->comm ? options->unnamed
									       : tracker_no_comm,
						      .ctx = options->ctx,
						      .forget_ended = options->forget_ended},
			  &t->processes);
	if (r)
		tracker_free(t);
	else
		*ret_tracker = t;
	return r;
}

void tracker_free(struct tracker *t)
{
	if (!t)
		return;
	processes_free(t->processes);
	vec_free(&t->places);
	free(t);
}

/* The image of a record, if the options do not provide it. */
static int tracker_image(struct tracker *t, const struct perfdata_record *record,
			 uint32_t *ret_image, bool *ret_anonymous)
{
	const struct map_record_ids none = {0};
	struct lookup_cache *cache = t->options.lookup_cache;
	struct image_key key;
	int r = map_record_key(record, &cache->texts, &none, t->options.opener, &key,
			       ret_anonymous);

	return r ? r : lookup_cache_image(cache, &key, ret_image);
}

static int tracker_note_place(struct tracker *t, const struct perfdata_record *record,
			      uint32_t image)
{
	const struct perfdata_mmap *m = &record->mmap;

	while (t->places.len <= image)
		if (vec_push(&t->places, (struct tracker_place){0}))
			return -ENOMEM;
	if (!t->places.v[image].end)
		t->places.v[image] = (struct tracker_place){record->pid, m->addr, m->addr + m->len};
	return 0;
}

static int tracker_map(struct tracker *t, const struct perfdata_record *record)
{
	unsigned int mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct process_map map = {.start = record->mmap.addr,
				  .end = record->mmap.addr + record->mmap.len,
				  .pgoff = record->mmap.pgoff};
	bool anonymous;
	int r;

	if (mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL)
		return 0;
	r = t->options.image ? t->options.image(t->options.ctx, record, &map.image, &anonymous)
			     : tracker_image(t, record, &map.image, &anonymous);
	if (!r)
		r = tracker_note_place(t, record, map.image);
	return r ? r : processes_map(t->processes, record->pid, record->tid, &map, anonymous);
}

static int tracker_comm(struct tracker *t, const struct perfdata_record *record)
{
	uint32_t comm = 0;
	int r = t->options.comm ? t->options.comm(t->options.ctx, record->comm.name, &comm) : 0;

	return r ? r : processes_comm(t->processes, record->pid, record->tid, comm);
}

int tracker_apply(struct tracker *t, const struct perfdata_record *record)
{
	int r = 0;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		r = tracker_map(t, record);
		break;
	case PERF_RECORD_COMM:
		r = tracker_comm(t, record);
		break;
	case PERF_RECORD_FORK:
		r = processes_fork(t->processes, record->pid, record->tid, record->task.ppid,
				   record->task.ptid, !(record->misc & PERF_RECORD_MISC_FORK_EXEC));
		break;
	case PERF_RECORD_EXIT:
		processes_exit(t->processes, record->tid);
		break;
	default:
		break;
	}
	return r == -ENOMEM ? r : 0;
}
