#include "base/log.h"

#include "base/printable.h"

#include <stdio.h>

#define LOG_TEXT_BYTES 2048
#define LOG_FORMATS_MAX 64

static log_sink_fn *log_sink;

/* Warnings with the same format string are one kind. The string's address is its identity. */
static struct log_kind {
	const char *format;
	unsigned long count;
	char first[256];
} log_kinds[LOG_FORMATS_MAX];

void log_set_sink(log_sink_fn *sink)
{
	log_sink = sink;
}

/* Formats one printable line of less than cap bytes. */
static void __attribute__((format(printf, 3, 0)))
log_format(char *text, size_t cap, const char *format, va_list args)
{
	char raw[LOG_TEXT_BYTES];
	int n = vsnprintf(raw, sizeof(raw), format, args);
	size_t len = n < 0 ? 0 : (size_t)n;
	bool cut;

	if (len >= sizeof(raw))
		len = sizeof(raw) - 1;
	text[printable_copy(raw, len, cap - 1, text, &cut)] = 0;
}

static void __attribute__((format(printf, 2, 0)))
log_send(enum log_level level, const char *format, va_list args)
{
	char text[LOG_TEXT_BYTES];

	if (!log_sink)
		return;
	log_format(text, sizeof(text), format, args);
	log_sink(level, text, 0);
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_send(LOG_ERROR, format, args);
	va_end(args);
}

void log_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	log_send(LOG_NOTE, format, args);
	va_end(args);
}

static struct log_kind *log_kind_of(const char *format)
{
	for (int i = 0; i < LOG_FORMATS_MAX; i++) {
		if (!log_kinds[i].format)
			log_kinds[i].format = format;
		if (log_kinds[i].format == format)
			return &log_kinds[i];
	}
	return NULL;
}

void log_warn(const char *format, ...)
{
	struct log_kind *kind = log_kind_of(format);
	va_list args;

	if (kind && ++kind->count > LOG_WARN_SHOWN)
		return;
	va_start(args, format);
	if (kind && kind->count == 1) {
		va_list again;

		va_copy(again, args);
		log_format(kind->first, sizeof(kind->first), format, again);
		va_end(again);
	}
	log_send(LOG_WARN, format, args);
	va_end(args);
}

void log_summarize(void)
{
	for (int i = 0; i < LOG_FORMATS_MAX && log_kinds[i].format; i++) {
		if (log_kinds[i].count > LOG_WARN_SHOWN && log_sink)
			log_sink(LOG_WARN, log_kinds[i].first, log_kinds[i].count - LOG_WARN_SHOWN);
		log_kinds[i] = (struct log_kind){0};
	}
}
