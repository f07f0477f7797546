#include "profcpu/counters/counter_list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LIST_EVENTS_PREFIX "EventCounters\\"

void counter_list_free(struct counter_list *l)
{
	for (size_t i = 0; i < l->v.len; i++)
		vec_free(&l->v.v[i].names);
	vec_free(&l->v);
	arena_free(&l->text);
}

static int __attribute__((format(printf, 2, 3)))
list_refuse(struct counter_list *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->why, sizeof(l->why), format, args);
	va_end(args);
	return -EINVAL;
}

static int list_no_memory(struct counter_list *l)
{
	snprintf(l->why, sizeof(l->why), "out of memory");
	return -ENOMEM;
}

/* Returns a copy without blanks at both ends; NULL: out of memory. */
static char *list_trimmed(struct counter_list *l, const char *text, size_t len)
{
	while (len && *text == ' ') {
		text++;
		len--;
	}
	while (len && text[len - 1] == ' ')
		len--;
	return arena_strndup(&l->text, text, len);
}

/* Adds names separated by commas to a group; empty ones do not count. */
static int list_add_names(struct counter_list *l, struct counter_group *g, const char *text,
			  size_t len)
{
	while (len) {
		const char *comma = memchr(text, ',', len);
		size_t n = comma ? (size_t)(comma - text) : len;
		struct counter_name name = {.name = list_trimmed(l, text, n)};

		if (!name.name)
			return list_no_memory(l);
		bool known = !*name.name;

		for (size_t i = 0; i < g->names.len; i++)
			known |= !strcmp(g->names.v[i].name, name.name);
		if (!known && vec_push(&g->names, name))
			return list_no_memory(l);
		n += comma != NULL;
		text += n;
		len -= n;
	}
	return 0;
}

static int list_merge(struct counter_list *l, struct counter_group *known,
		      const struct counter_group *g)
{
	if (known->events_only != g->events_only)
		return list_refuse(l, "%.80s stands with and without " LIST_EVENTS_PREFIX,
				   g->provider);
	if (!g->names.len)
		vec_free(&known->names);
	for (size_t i = 0; known->names.len && i < g->names.len; i++) {
		const char *name = g->names.v[i].name;

		if (list_add_names(l, known, name, strlen(name)))
			return -ENOMEM;
	}
	return 0;
}

/* The arguments of a session cannot hold a quote. A backslash would separate an instrument. */
static int list_check_provider(struct counter_list *l, const char *provider)
{
	if (!*provider)
		return list_refuse(l, "the name of a provider is missing");
	if (strpbrk(provider, "\"\\"))
		return list_refuse(l, "'%.80s': a provider has no quote and no backslash",
				   provider);
	return 0;
}

/* Adds "PROVIDER" or "PROVIDER[NAMES]". */
static int list_add_one(struct counter_list *l, const char *text, size_t len)
{
	const char *open = memchr(text, '[', len), *names = open ? open + 1 : NULL;
	size_t prefix = strlen(LIST_EVENTS_PREFIX);
	struct counter_group g = {0};

	while (len && *text == ' ') {
		text++;
		len--;
	}
	while (len && text[len - 1] == ' ')
		len--;
	if (open && text[len - 1] != ']')
		return list_refuse(l, "'%.*s' has text after ]", len > 80 ? 80 : (int)len, text);
	if (len >= prefix && !strncmp(text, LIST_EVENTS_PREFIX, prefix)) {
		g.events_only = true;
		text += prefix;
		len -= prefix;
	}
	g.provider = list_trimmed(l, text, open ? (size_t)(open - text) : len);
	if (!g.provider)
		return list_no_memory(l);
	int r = list_check_provider(l, g.provider);

	if (!r && names)
		r = list_add_names(l, &g, names, (size_t)(text + len - 1 - names));
	for (size_t i = 0; i < l->v.len && !r; i++)
		if (!strcasecmp(l->v.v[i].provider, g.provider)) {
			r = list_merge(l, &l->v.v[i], &g);
			vec_free(&g.names);
			return r;
		}
	if (!r && vec_push(&l->v, g))
		r = list_no_memory(l);
	if (r)
		vec_free(&g.names);
	return r;
}

int counter_list_add(struct counter_list *l, const char *text)
{
	const char *start = text;
	bool in_names = false;

	for (const char *p = text;; p++) {
		if (*p == '[' && in_names)
			return list_refuse(l, "'%.80s' has [ twice", start);
		if (*p == '[' || *p == ']')
			in_names = *p == '[';
		if (!*p && in_names)
			return list_refuse(l, "'%.80s' lacks a ]", start);
		if (*p && (*p != ',' || in_names))
			continue;
		int r = list_add_one(l, start, (size_t)(p - start));

		if (r || !*p)
			return r;
		start = p + 1;
	}
}

struct counter_group *counter_list_find(const struct counter_list *l, const char *provider,
					const char *name)
{
	for (size_t i = 0; i < l->v.len; i++) {
		struct counter_group *g = &l->v.v[i];

		if (strcasecmp(g->provider, provider) != 0)
			continue;
		for (size_t k = 0; k < g->names.len; k++)
			if (!strcmp(g->names.v[k].name, name))
				return g;
		return g->names.len ? NULL : g;
	}
	return NULL;
}

void counter_group_mark(struct counter_group *g, const char *name)
{
	g->seen = true;
	for (size_t k = 0; k < g->names.len; k++)
		if (!strcmp(g->names.v[k].name, name))
			g->names.v[k].seen = true;
}
