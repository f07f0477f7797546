/*
 * Messages to the user. Libraries never print: they pass messages to the sink that profcpu/main.c
 * sets.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdarg.h>

enum log_level {
	LOG_ERROR, /* the command fails for this reason */
	LOG_WARN,  /* the result is incomplete; counted and summed up */
	LOG_NOTE,  /* information in one line */
};

/*
 * Receives one message. text: one line without a newline, made fit for a terminal by
 * printable_copy; valid during the call. repeats: the number of similar messages that were not
 * shown.
 */
typedef void log_sink_fn(enum log_level level, const char *text, unsigned long repeats);

/* Sets the sink. Until then, messages are dropped. */
void log_set_sink(log_sink_fn *sink);

/* Send one line, `OBJECT: PROBLEM; REMEDY`. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Sends a warning. After LOG_WARN_SHOWN warnings with the same format string, further ones are only
 * counted.
 */
#define LOG_WARN_SHOWN 3
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sends one line for each format with warnings that were only counted, and resets all counts. */
void log_summarize(void);

#endif
