#include "profcpu/counters/counter_event.h"

#include "dotnet/eventpipe/event_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNTER_NUMBER_BYTES 64 /* more than a number in text has */

static const struct {
	const char *name;
	enum counter_event_type type;
} event_names[] = {
	{"BeginInstrumentReporting", COUNTER_EVENT_BEGIN},
	{"CounterRateValuePublished", COUNTER_EVENT_RATE},
	{"UpDownCounterRateValuePublished", COUNTER_EVENT_UP_DOWN},
	{"GaugeValuePublished", COUNTER_EVENT_GAUGE},
	{"HistogramValuePublished", COUNTER_EVENT_HISTOGRAM},
	{"InitialInstrumentEnumerationComplete", COUNTER_EVENT_ALL_BEGUN},
	{"TimeSeriesLimitReached", COUNTER_EVENT_SERIES_LIMIT},
	{"HistogramLimitReached", COUNTER_EVENT_HISTOGRAM_LIMIT},
	{"Error", COUNTER_EVENT_ERROR},
	{"ObservableInstrumentCallbackError", COUNTER_EVENT_CALLBACK_ERROR},
	{"MultipleSessionsNotSupportedError", COUNTER_EVENT_OTHER_SESSION},
	{"MultipleSessionsConfiguredIncorrectlyError", COUNTER_EVENT_OTHER_LIMITS},
};

static const struct {
	const char *name;
	enum counter_text text;
} field_texts[] = {
	{"sessionId", COUNTER_SESSION},
	{"runningSessionId", COUNTER_SESSION},
	{"clientId", COUNTER_SESSION},
	{"meterName", COUNTER_PROVIDER},
	{"instrumentName", COUNTER_NAME},
	{"Name", COUNTER_NAME},
	{"DisplayName", COUNTER_DISPLAY},
	{"unit", COUNTER_UNIT},
	{"DisplayUnits", COUNTER_UNIT},
	{"tags", COUNTER_TAGS},
	{"Metadata", COUNTER_TAGS},
	{"meterTags", COUNTER_METER_TAGS},
	{"instrumentTags", COUNTER_INSTRUMENT_TAGS},
	{"rate", COUNTER_RATE},
	{"value", COUNTER_VALUE},
	{"lastValue", COUNTER_VALUE},
	{"quantiles", COUNTER_QUANTILES},
	{"CounterType", COUNTER_KIND},
	{"Series", COUNTER_SERIES},
	{"errorMessage", COUNTER_MESSAGE},
	{"errorString", COUNTER_MESSAGE},
	{"expectedMaxHistograms", COUNTER_MAX_HISTOGRAMS},
	{"expectedMaxTimeSeries", COUNTER_MAX_SERIES},
	{"expectedRefreshInterval", COUNTER_INTERVAL},
};

static void event_take_text(struct counter_event *e, enum counter_text text,
			    const struct event_value *value)
{
	e->at[text] = e->buf.len;
	outbuf_utf16(&e->buf, value->bytes, value->len);
	outbuf_char(&e->buf, 0);
}

static void event_take(void *ctx, const char *name, const struct event_value *value)
{
	struct counter_event *e = ctx;

	if (value->type == EVENT_F64 && (!strcmp(name, "Mean") || !strcmp(name, "Increment"))) {
		e->has_value = true;
		e->value = value->real;
	}
	if (value->type == EVENT_I32 && !strcmp(name, "instrumentId")) {
		e->has_id = true;
		e->id = (uint32_t)value->number;
	}
	if (value->type != EVENT_TEXT16)
		return;
	for (size_t i = 0; i < sizeof(field_texts) / sizeof(field_texts[0]); i++)
		if (!strcmp(field_texts[i].name, name)) {
			event_take_text(e, field_texts[i].text, value);
			return;
		}
}

/* Reads a number as .NET writes it: not in hexadecimal, and without white space. */
static bool event_number(const char *text, size_t len, double *ret_number)
{
	char copy[COUNTER_NUMBER_BYTES], *end;

	if (!len || len >= sizeof(copy) || memchr(text, 'x', len) || memchr(text, 'X', len) ||
	    *text <= ' ')
		return false;
	memcpy(copy, text, len);
	copy[len] = 0;
	double number = strtod(copy, &end);

	if (end != copy + len)
		return false;
	*ret_number = number;
	return true;
}

static enum counter_event_type event_type(const struct nettrace_event *event)
{
	const struct nettrace_kind *kind = event->kind;

	if (!strcmp(kind->name, "EventCounters"))
		return COUNTER_EVENT_MEAN; /* or a sum */
	if (strcmp(kind->provider, COUNTER_METRICS_PROVIDER) != 0)
		return COUNTER_EVENT_OTHER;
	for (size_t i = 0; i < sizeof(event_names) / sizeof(event_names[0]); i++)
		if (!strcmp(kind->name, event_names[i].name))
			return event_names[i].type;
	return COUNTER_EVENT_OTHER;
}

/* "Interval=1000" */
static uint64_t event_interval(const char *series)
{
	static const char before[] = "Interval=";
	const char *number = series + strlen(before);

	return !strncmp(series, before, strlen(before)) && *number >= '0' && *number <= '9'
		       ? strtoull(number, NULL, 10)
		       : 0;
}

int counter_event_parse(struct counter_event *e, const struct nettrace_event *event,
			uint32_t pointer_bytes)
{
	struct outbuf buf = e->buf.cap ? e->buf : outbuf_to(-1);

	buf.len = 0;
	buf.error = 0;
	*e = (struct counter_event){.type = event_type(event), .buf = buf};
	if (e->type == COUNTER_EVENT_OTHER)
		return 0;
	outbuf_char(&e->buf, 0); /* the text of fields that are missing */
	int r = event_payload_each(event, pointer_bytes, event_take, e);

	if (e->buf.error)
		r = e->buf.error;
	if (r) {
		e->type = COUNTER_EVENT_OTHER;
		return r;
	}
	for (size_t i = 0; i < COUNTER_TEXTS; i++)
		e->text[i] = e->buf.data + e->at[i];
	if (e->type == COUNTER_EVENT_MEAN) {
		e->text[COUNTER_PROVIDER] = event->kind->provider;
		e->interval_ms = event_interval(e->text[COUNTER_SERIES]);
		if (!strcmp(e->text[COUNTER_KIND], "Sum"))
			e->type = COUNTER_EVENT_SUM;
		return 0;
	}
	const char *rate = e->text[COUNTER_RATE], *value = e->text[COUNTER_VALUE];

	e->has_rate = event_number(rate, strlen(rate), &e->rate);
	e->has_value = event_number(value, strlen(value), &e->value);
	return 0;
}

bool counter_event_quantile(const char **list, double *ret_quantile, double *ret_value)
{
	while (**list) {
		const char *at = *list;
		size_t len = strcspn(at, ";");
		const char *equals = memchr(at, '=', len);
		double quantile, value;

		*list += len + (at[len] == ';');
		if (!equals || !event_number(at, (size_t)(equals - at), &quantile) ||
		    !event_number(equals + 1, (size_t)(at + len - equals - 1), &value))
			continue;
		*ret_quantile = quantile;
		*ret_value = value;
		return true;
	}
	return false;
}

void counter_event_free(struct counter_event *e)
{
	outbuf_close(&e->buf);
	*e = (struct counter_event){0};
}
