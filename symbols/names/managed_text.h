/* Pieces of text for the parsers of managed names, and their brackets. */
#ifndef SYMBOLS_NAMES_MANAGED_TEXT_H
#define SYMBOLS_NAMES_MANAGED_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Text that is read from p towards end. */
struct managed_text {
	const char *p, *end;
};

/* A part of a text, borrowed. */
struct managed_span {
	const char *p;
	size_t n;
};

static inline struct managed_span managed_span_of(const char *p, const char *end)
{
	return (struct managed_span){p, (size_t)(end - p)};
}

static inline bool managed_text_opens(char c)
{
	return c == '<' || c == '[' || c == '(';
}

static inline bool managed_text_closes(char c)
{
	return c == '>' || c == ']' || c == ')';
}

/*
 * The place after the bracket that closes the one at p, or end. Counts <>, [] and (), except after
 * the backslashes of reflection.
 */
const char *managed_text_skip_brackets(const char *p, const char *end);

#endif
