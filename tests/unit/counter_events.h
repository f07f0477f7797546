/* Events that carry counters, with the fields that runtimes describe. */
#ifndef TESTS_UNIT_COUNTER_EVENTS_H
#define TESTS_UNIT_COUNTER_EVENTS_H

#include "dotnet/eventpipe/ipc.h"
#include "profcpu/counters/counter_event.h"

#include <stdlib.h>
#include <string.h>

#define CE_VALUE                                                                              \
	"sessionId:text meterName:text meterVersion:text instrumentName:text unit:text tags:" \
	"text "

enum ce_kind {
	CE_MEAN,
	CE_SUM,
	CE_BEGIN,
	CE_RATE,
	CE_UP_DOWN,
	CE_GAUGE,
	CE_HISTOGRAM,
	CE_ALL_BEGUN,
	CE_SERIES_LIMIT,
	CE_HISTOGRAM_LIMIT,
	CE_ERROR,
	CE_CALLBACK_ERROR,
	CE_OTHER_SESSION,
	CE_OTHER_LIMITS,
	CE_RATE_NET7, /* without a total and an id */
	CE_OTHER,
	CE_KINDS,
};

static const struct {
	const char *provider, *name, *layout;
} ce_kinds[CE_KINDS] = {
	[CE_MEAN] = {"Known-Events", "EventCounters",
		     "o:{Payload:{Name:text DisplayName:text Mean:f64 StandardDeviation:f64 "
		     "Count:i32 Min:f64 Max:f64 IntervalSec:f32 Series:text CounterType:text "
		     "Metadata:text DisplayUnits:text}}"},
	[CE_SUM] = {"Known-Events", "EventCounters",
		    "o:{Payload:{Name:text DisplayName:text DisplayRateTimeScale:text "
		    "Increment:f64 IntervalSec:f32 Metadata:text Series:text CounterType:text "
		    "DisplayUnits:text}}"},
	[CE_BEGIN] = {COUNTER_METRICS_PROVIDER, "BeginInstrumentReporting",
		      "sessionId:text meterName:text meterVersion:text instrumentName:text "
		      "instrumentType:text unit:text description:text instrumentTags:text "
		      "meterTags:text meterScopeHash:text instrumentId:i32 "
		      "telemetrySchemaUrl:text"},
	[CE_RATE] = {COUNTER_METRICS_PROVIDER, "CounterRateValuePublished",
		     CE_VALUE "rate:text value:text instrumentId:i32"},
	[CE_UP_DOWN] = {COUNTER_METRICS_PROVIDER, "UpDownCounterRateValuePublished",
			CE_VALUE "rate:text value:text instrumentId:i32"},
	[CE_GAUGE] = {COUNTER_METRICS_PROVIDER, "GaugeValuePublished",
		      CE_VALUE "lastValue:text instrumentId:i32"},
	[CE_HISTOGRAM] = {COUNTER_METRICS_PROVIDER, "HistogramValuePublished",
			  CE_VALUE "quantiles:text count:i32 sum:f64 instrumentId:i32"},
	[CE_ALL_BEGUN] = {COUNTER_METRICS_PROVIDER, "InitialInstrumentEnumerationComplete",
			  "sessionId:text"},
	[CE_SERIES_LIMIT] = {COUNTER_METRICS_PROVIDER, "TimeSeriesLimitReached", "sessionId:text"},
	[CE_HISTOGRAM_LIMIT] = {COUNTER_METRICS_PROVIDER, "HistogramLimitReached",
				"sessionId:text"},
	[CE_ERROR] = {COUNTER_METRICS_PROVIDER, "Error", "sessionId:text errorMessage:text"},
	[CE_CALLBACK_ERROR] = {COUNTER_METRICS_PROVIDER, "ObservableInstrumentCallbackError",
			       "sessionId:text errorMessage:text"},
	[CE_OTHER_SESSION] = {COUNTER_METRICS_PROVIDER, "MultipleSessionsNotSupportedError",
			      "runningSessionId:text"},
	[CE_OTHER_LIMITS] = {COUNTER_METRICS_PROVIDER, "MultipleSessionsConfiguredIncorrectlyError",
			     "clientId:text expectedMaxHistograms:text actualMaxHistograms:text "
			     "expectedMaxTimeSeries:text actualMaxTimeSeries:text "
			     "expectedRefreshInterval:text actualRefreshInterval:text"},
	[CE_RATE_NET7] = {COUNTER_METRICS_PROVIDER, "CounterRateValuePublished",
			  CE_VALUE "rate:text"},
	[CE_OTHER] = {"Known-Events", "Tick", "Name:text"},
};

/* A kind with its fields. Free it by ce_free. */
struct ce_description {
	struct nettrace_kind kind;
	struct event_fields fields;
	struct outbuf text;
};

static inline void ce_describe(struct ce_description *d, enum ce_kind k)
{
	d->text = outbuf_to(-1);
	d->fields = (struct event_fields){.text = &d->text};
	if (event_fields_of_layout(&d->fields, ce_kinds[k].layout))
		abort();
	event_fields_place(&d->fields, d->text.data);
	d->kind = (struct nettrace_kind){.provider = ce_kinds[k].provider,
					 .name = ce_kinds[k].name,
					 .fields = d->fields.v.v,
					 .nfields = d->fields.v.len};
}

static inline void ce_free(struct ce_description *d)
{
	event_fields_free(&d->fields);
	outbuf_close(&d->text);
}

/* Puts one value of a payload: texts are ASCII. */
static inline void ce_text(struct outbuf *out, const char *text)
{
	for (; *text; text++) {
		ipc_put_u8(out, (uint8_t)*text);
		ipc_put_u8(out, 0);
	}
	ipc_put_u8(out, 0);
	ipc_put_u8(out, 0);
}

static inline void ce_f64(struct outbuf *out, double x)
{
	outbuf_put(out, &x, sizeof(x));
}

#endif
