/*
 * Layouts of events whose kinds have no description in a stream: those of the runtime itself. Their
 * names and fields are those of the runtime's manifest.
 */
#ifndef DOTNET_EVENTPIPE_EVENT_TABLE_H
#define DOTNET_EVENTPIPE_EVENT_TABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * One event. Later versions append fields, so a layout serves older versions, too: the payload ends
 * earlier. A version that changed fields has a line of its own; a layout is for versions from
 * `version` up to the next line of the same event.
 *
 * fields: "NAME:TYPE" separated by blanks. Types: u8, u16, u32, u64, i32, i64, f32, f64, bool (4
 * bytes), ptr (of the runtime), guid, text (UTF-16, ends with 0), text8 (UTF-8, ends with 0).
 * "[COUNT]TYPE": an array with as many elements as the earlier field COUNT says. "{FIELDS}": an
 * object.
 */
struct event_layout {
	uint16_t id;
	uint8_t version;
	const char *name, *fields;
};

/* Returns the layout of an event, or NULL. */
const struct event_layout *event_layout_find(const char *provider, uint32_t id, uint32_t version);

/* For tests: the i-th layout of all and its provider; NULL: there are no more. */
const struct event_layout *event_layout_at(size_t i, const char **ret_provider);

#endif
