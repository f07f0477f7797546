/*
 * The providers of a session, in the words of dotnet-trace: its options --providers, --profile,
 * --clrevents and --clreventlevel.
 */
#ifndef DOTNET_EVENTPIPE_PROVIDER_LIST_H
#define DOTNET_EVENTPIPE_PROVIDER_LIST_H

#include "base/arena.h"
#include "base/vec.h"
#include "dotnet/eventpipe/session.h"

#define PROVIDER_LIST_WHY_BYTES 256

/* A zeroed struct is empty. */
struct provider_list {
	VEC(struct session_provider) v; /* texts are in text */
	struct arena text;
	char why[PROVIDER_LIST_WHY_BYTES]; /* after an error: what is wrong */
};

void provider_list_free(struct provider_list *l);

/*
 * Add providers, and merge those of one name. Names do not depend on upper and lower case.
 *
 * text: "NAME[:KEYWORDS[:LEVEL[:KEY=VALUE;...]]]", separated by commas. KEYWORDS are hexadecimal; 0
 * if left out. LEVEL is a number or a word; "informational" if left out. A value with ; or = or a
 * comma is in quotes. A backslash begins an escape, as \r, \n and \\.
 *
 * 0; -EINVAL; -ENOMEM.
 */
int provider_list_add(struct provider_list *l, const char *text);

/*
 * Add those of a profile of dotnet-trace 10, or the runtime's own events ("gc+exception") of a
 * level. level: NULL or a word as above. Call them after provider_list_add: a provider that is in
 * the list stays as it is.
 */
int provider_list_add_profile(struct provider_list *l, const char *name);
int provider_list_add_runtime(struct provider_list *l, const char *events, const char *level);

/* Whether the provider is in the list. */
bool provider_list_has(const struct provider_list *l, const char *name);

#endif
