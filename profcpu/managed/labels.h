/* Names of what events are about, as pictures show them. */
#ifndef PROFCPU_MANAGED_LABELS_H
#define PROFCPU_MANAGED_LABELS_H

#include "base/outbuf.h"
#include "profcpu/managed/events.h"
#include "profile/profile.h"

#define MANAGED_OWNER_UNKNOWN "[lock owner unknown]"

/*
 * Appends it, except for contention: the type; "[gen 2, induced, blocking]"; the method.
 *
 * texts: of the events. raw: types and methods as the runtime spells them. out->error is set as
 * usual.
 */
void managed_label(const struct intern *texts, const struct managed_event *e, bool raw,
		   struct outbuf *out);

/* Appends the owner of a lock: "[locked by NAME-TID]". thread: PROFILE_NONE: not known. */
void managed_label_owner(const struct profile *profile, uint32_t thread, struct outbuf *out);

/* Appends a type with its namespace: "System.Collections.Generic.List<int32>[]". */
void managed_label_type(const char *name, size_t len, struct outbuf *out);

#endif
