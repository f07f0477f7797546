/* Messages to the user. The library parts never print: they hand messages to the sink that profcpu/ has set. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>

enum log_level {
	LOG_ERROR, /* the command fails because of this */
	LOG_WARN, /* something is missing from the result; counted and summed up */
	LOG_NOTE, /* worth one line */
};

/*
 * text is one line without a newline, fit for a terminal (printable_message), valid during the call. repeats: how many
 * more like it were swallowed.
 */
typedef void log_sink_fn(enum log_level level, const char *text, unsigned long repeats);

/* Default: no sink, messages are dropped. */
void log_set_sink(log_sink_fn *sink);

/* One line: what failed, on what, why, what to do. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A warning; those with the same format string after the first LOG_WARN_SHOWN are only counted. */
#define LOG_WARN_SHOWN 3
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Hands the sink one line for each format that had more warnings than were shown, and forgets all counts. */
void log_sum_up(void);

#endif
