#include "profcpu/jit/ended.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static bool ended_lacks_names(const struct jit_process *p)
{
	return p->words ? p->broken : p->why[0];
}

void jit_ended_add(struct jit_ended_list *list, const struct jit_process *p, bool last)
{
	struct jit_ended e = {
		.pid = p->pid, .since_ns = p->since_ns, .words = p->words, .broken = p->broken};

	memcpy(e.comm, p->comm, sizeof(e.comm));
	memcpy(e.version, p->version, sizeof(e.version));
	list->write_failed |= p->write_failed && !p->over_share;
	e.why = last || list->v.len < JIT_ENDED_MAX ? strdup(p->why) : NULL;
	if (e.why && !vec_push(&list->v, e))
		return;
	free(e.why);
	list->more++;
	list->more_lack += ended_lacks_names(p);
}

static int ended_compare(const void *x, const void *y)
{
	const struct jit_ended *a = x, *b = y;

	return a->pid != b->pid ? (a->pid > b->pid) - (a->pid < b->pid)
				: (a->since_ns > b->since_ns) - (a->since_ns < b->since_ns);
}

void jit_ended_sort(struct jit_ended_list *list)
{
	if (list->v.len)
		qsort(list->v.v, list->v.len, sizeof(*list->v.v), ended_compare);
}

/* Reports one process. Returns whether only the number of such processes matters. */
static bool ended_report(const struct jit_ended *e, enum jit_names names, bool note)
{
	const char *version = e->version[0] ? e->version : "of an unknown version",
		   *comm = e->comm[0] ? e->comm : "?";

	if (e->words && e->broken)
		log_warn("process %d (%s, .NET %s): names come from %s; %s", e->pid, comm, version,
			 e->words, e->why);
	else if (!e->words && e->why[0])
		log_warn("process %d (%s, .NET %s): no names of JIT-compiled code with "
			 "--jit-names=%s: %s",
			 e->pid, comm, version, jit_names_option_word(names), e->why);
	else if (e->words && note)
		log_note("process %d (%s, .NET %s): names come from %s%s%s", e->pid, comm, version,
			 e->words, e->why[0] ? "; " : "", e->why);
	else
		return e->words;
	return false;
}

void jit_ended_report(const struct jit_ended_list *list, enum jit_names names, bool quiet)
{
	size_t noted = 0, more = list->more - list->more_lack;

	for (size_t i = 0; i < list->v.len; i++) {
		const struct jit_ended *e = &list->v.v[i];
		bool note = !quiet && noted < LOG_WARN_SHOWN;

		more += ended_report(e, names, note);
		noted += note && e->words && !e->broken;
	}
	if (list->more_lack)
		log_warn("%zu more .NET processes lack names of JIT-compiled code; record fewer "
			 "processes (-p) to get the reasons",
			 list->more_lack);
	if (more && !quiet)
		log_note("%zu more .NET processes: names were taken too", more);
}

void jit_ended_free(struct jit_ended_list *list)
{
	for (size_t i = 0; i < list->v.len; i++)
		free(list->v.v[i].why);
	vec_free(&list->v);
}
