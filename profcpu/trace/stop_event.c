#include "profcpu/trace/stop_event.h"

#include "base/outbuf.h"
#include "dotnet/eventpipe/event_payload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int stop_event_fields(struct stop_event *s, const char *text)
{
	stop_event_free(s);
	s->text = strdup(text);
	if (!s->text)
		return -ENOMEM;
	for (char *part = s->text, *next; part; part = next) {
		next = strchr(part, ',');
		if (next)
			*next++ = 0;
		char *value = strchr(part, ':');

		if (!value || value == part)
			return -EINVAL;
		*value++ = 0;
		if (vec_push(&s->fields, ((struct stop_field){part, value})))
			return -ENOMEM;
	}
	return 0;
}

void stop_event_free(struct stop_event *s)
{
	vec_free(&s->fields);
	free(s->text);
	s->text = NULL;
}

static bool stop_is_kind(const struct stop_event *s, const struct nettrace_kind *kind)
{
	return s->provider && !strcasecmp(s->provider, kind->provider) &&
	       (!s->event || nettrace_kind_is(kind, s->event));
}

/* Whether a value reads as this text: numbers in decimal, texts as they are. */
static bool stop_is_value(const struct event_value *v, const char *text)
{
	struct outbuf out = outbuf_to(-1);
	char *end;

	if (v->type == EVENT_F32 || v->type == EVENT_F64) {
		double wanted = strtod(text, &end);

		return *text && !*end &&
		       (v->type == EVENT_F64 ? wanted == v->real : (float)wanted == (float)v->real);
	}
	switch (v->type) {
	case EVENT_TEXT16:
		outbuf_utf16(&out, v->bytes, v->len);
		break;
	case EVENT_TEXT8:
		outbuf_put(&out, v->bytes, v->len);
		break;
	case EVENT_BOOL8:
	case EVENT_BOOL32:
		outbuf_str(&out, v->number ? "true" : "false");
		break;
	case EVENT_I8:
	case EVENT_I16:
	case EVENT_I32:
	case EVENT_I64:
	case EVENT_VARINT:
		outbuf_printf(&out, "%lld", (long long)v->number);
		break;
	default:
		outbuf_u64(&out, v->number);
	}
	bool equal = !out.error && out.len == strlen(text) && !strncasecmp(out.data, text, out.len);

	outbuf_close(&out);
	return equal;
}

bool stop_event_matches(struct stop_event *s, const struct nettrace_event *event,
			uint32_t pointer_bytes)
{
	if (!stop_is_kind(s, event->kind))
		return false;
	for (size_t i = 0; i < s->fields.len; i++) {
		struct event_value value;

		if (event_payload_find(event, pointer_bytes, s->fields.v[i].name, &value)) {
			s->field_missing = true;
			return false;
		}
		if (!stop_is_value(&value, s->fields.v[i].value))
			return false;
	}
	return true;
}
