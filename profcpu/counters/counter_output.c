#include "profcpu/counters/counter_output.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_TIME_BYTES 64
#define OUTPUT_NUMBER_DIGITS 17
#define OUTPUT_LINES_DEPTH 2         /* each value of the JSON document has a line of its own */
#define OUTPUT_TEXT_BYTES 4096       /* of one text in a line */
#define OUTPUT_JSON_END "\n  ]\n}\n" /* after the last whole value */

struct counter_output counter_output_new(enum counter_format format)
{
	return (struct counter_output){.format = format,
				       .file = TRACE_FILE_NONE,
				       .out = outbuf_to(-1),
				       .text = outbuf_to(-1)};
}

/* Times are local, in the forms that .NET has for them without a culture. */
static const char *output_time(const struct counter_output *o, uint64_t utc_ns, char *text)
{
	time_t s = (time_t)(utc_ns / NS_PER_S);
	struct tm tm;

	if (!localtime_r(&s, &tm))
		memset(&tm, 0, sizeof(tm));
	if (o->format == COUNTER_CSV) {
		strftime(text, OUTPUT_TIME_BYTES, "%m/%d/%Y %H:%M:%S", &tm);
		return text;
	}
	size_t len = strftime(text, OUTPUT_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &tm);
	long minutes = tm.tm_gmtoff / 60;

	if (o->format == COUNTER_JSON)
		snprintf(text + len, OUTPUT_TIME_BYTES - len, ".%07u%c%02ld:%02ld",
			 (unsigned)(utc_ns % NS_PER_S / 100), minutes < 0 ? '-' : '+',
			 labs(minutes) / 60, labs(minutes) % 60);
	return text;
}

static const char *output_value_time(const struct counter_output *o, const struct counter_value *v,
				     char *text)
{
	uint64_t utc_ns;

	if (!event_clock_utc(&o->clock, v->time_ns, &utc_ns))
		utc_ns = clock_realtime_ns();
	return output_time(o, utc_ns, text);
}

int counter_output_begin(struct counter_output *o, const char *file, const char *program)
{
	char text[OUTPUT_TIME_BYTES];
	int r = trace_file_create(&o->file, file);

	if (r)
		return r;
	o->begun = true;
	if (o->format == COUNTER_CSV)
		outbuf_str(&o->out,
			   "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n");
	if (o->format != COUNTER_JSON)
		return 0;
	o->document = json_put_document(&o->out, OUTPUT_LINES_DEPTH);
	json_put_text(&o->document, "TargetProcess", program);
	json_put_text(&o->document, "StartTime", output_time(o, clock_realtime_ns(), text));
	o->events = json_put_array(&o->document, "Events");
	return 0;
}

/* Puts the text of a field, in quotes if it would read as several (RFC 4180). */
/* The output may be a terminal, so control characters become "\x1b" and the like. */
static void output_csv_field(struct counter_output *o, const char *text, size_t len, char end)
{
	struct outbuf shown = outbuf_to(-1);
	bool quoted = false;

	outbuf_printable(&shown, text, len, OUTPUT_TEXT_BYTES);
	for (size_t i = 0; i < shown.len; i++)
		quoted |= strchr(",\"", shown.data[i]) != NULL;
	if (quoted)
		outbuf_char(&o->out, '"');
	for (size_t i = 0; i < shown.len; i++) {
		if (shown.data[i] == '"')
			outbuf_char(&o->out, '"');
		outbuf_char(&o->out, shown.data[i]);
	}
	if (quoted)
		outbuf_char(&o->out, '"');
	outbuf_char(&o->out, end);
	if (shown.error && !o->out.error)
		o->out.error = shown.error;
	(void)outbuf_close(&shown);
}

/* Puts "NAME (UNIT)[TAGS]" into o->text. */
static void output_name(struct counter_output *o, const struct counter_value *v, char separator)
{
	size_t begin;

	o->text.len = 0;
	counter_put_title(&o->text, v);
	begin = o->text.len;
	outbuf_char(&o->text, '[');
	counter_put_all_tags(&o->text, v);
	if (o->text.len == begin + 1)
		o->text.len = begin;
	else
		outbuf_char(&o->text, ']');
	for (size_t i = begin; i < o->text.len; i++)
		if (o->text.data[i] == ',')
			o->text.data[i] = separator;
}

static void output_csv(struct counter_output *o, const struct counter_value *v)
{
	char time[OUTPUT_TIME_BYTES];

	outbuf_printf(&o->out, "%s,", output_value_time(o, v, time));
	output_csv_field(o, v->provider, strlen(v->provider), ',');
	output_name(o, v, ';');
	output_csv_field(o, o->text.data, o->text.len, ',');
	outbuf_str(&o->out, v->is_rate ? "Rate," : "Metric,");
	counter_put_number(&o->out, v->value);
	outbuf_char(&o->out, '\n');
}

static void output_json(struct counter_output *o, const struct counter_value *v)
{
	struct json_writer w = json_put_object(&o->events, NULL);
	char time[OUTPUT_TIME_BYTES];

	json_put_text(&w, "timestamp", output_value_time(o, v, time));
	json_put_text(&w, "provider", v->provider);
	o->text.len = 0;
	counter_put_title(&o->text, v);
	json_put_chars(&w, "name", o->text.data, o->text.len);
	o->text.len = 0;
	outbuf_char(&o->text, ' '); /* so that it has memory */
	counter_put_tags(&o->text, v);
	json_put_chars(&w, "tags", o->text.data + 1, o->text.len - 1);
	json_put_text(&w, "counterType", v->is_rate ? "Rate" : "Metric");
	json_put_text(&w, "meterTags", v->meter_tags);
	json_put_text(&w, "instrumentTags", v->instrument_tags);
	json_put_f64(&w, "value", v->value, OUTPUT_NUMBER_DIGITS);
	json_put_end(&w);
}

static void output_line(struct counter_output *o, const struct counter_value *v)
{
	char time[OUTPUT_TIME_BYTES];

	outbuf_printf(&o->out, "%s ", output_value_time(o, v, time));
	outbuf_printable(&o->out, v->provider, strlen(v->provider), OUTPUT_TEXT_BYTES);
	outbuf_char(&o->out, ' ');
	counter_put_number(&o->out, v->value);
	outbuf_char(&o->out, ' ');
	output_name(o, v, ',');
	outbuf_printable(&o->out, o->text.data, o->text.len, OUTPUT_TEXT_BYTES);
	outbuf_char(&o->out, '\n');
}

void counter_output_value(struct counter_output *o, const struct counter_value *v)
{
	if (o->text.error)
		return;
	if (o->format == COUNTER_CSV)
		output_csv(o, v);
	else if (o->format == COUNTER_JSON)
		output_json(o, v);
	else
		output_line(o, v);
}

int counter_output_flush(struct counter_output *o)
{
	int r = o->out.error ? o->out.error : o->text.error;

	if (r || !o->begun)
		return r;
	(void)trace_file_take(&o->file, o->out.data, o->out.len);
	o->out.len = 0;
	if (!o->file.error)
		o->whole = o->file.bytes;
	return o->file.error;
}

/* Takes back the part of a value that reached the disk. The end fits into its place. */
static void output_cut(struct counter_output *o)
{
	if (o->file.special || !o->whole || ftruncate(o->file.fd, (off_t)o->whole))
		return;
	if (o->format == COUNTER_JSON)
		(void)file_pwrite_all(o->file.fd, OUTPUT_JSON_END, strlen(OUTPUT_JSON_END),
				      o->whole);
}

int counter_output_end(struct counter_output *o)
{
	int r = counter_output_flush(o);

	if (!r && o->begun && o->format == COUNTER_JSON) {
		json_put_end(&o->events);
		json_put_end(&o->document);
		r = counter_output_flush(o);
	}
	if (r && o->begun)
		output_cut(o);
	int closed = trace_file_close(&o->file);

	outbuf_close(&o->out);
	outbuf_close(&o->text);
	return r ? r : closed;
}
