/*
 * A table of counters on a terminal, drawn again when values come. It never waits for the terminal:
 * while that accepts no output, tables are skipped.
 */
#ifndef PROFCPU_COUNTERS_COUNTER_SCREEN_H
#define PROFCPU_COUNTERS_COUNTER_SCREEN_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "profcpu/counters/counter_value.h"

#define COUNTER_SCREEN_ROWS_MAX 16384 /* counters; further ones are not shown */
#define COUNTER_SCREEN_NOTE_BYTES 256

struct counter_row {
	const char *provider, *title, *tags; /* fit for a terminal */
	double value, change;
	bool has_change, ended;
};

struct counter_screen {
	int fd;
	bool own;         /* fd is ours */
	const char *head; /* borrowed; the first line */
	char note[COUNTER_SCREEN_NOTE_BYTES];
	VEC(struct counter_row) rows;
	VEC(uint32_t) order;   /* of rows */
	struct hashmap by_key; /* hash of the texts to the index of a row */
	struct arena text;
	struct outbuf frame, scratch;
	size_t sent;  /* bytes of frame */
	bool changed; /* since the last frame */
	uint64_t drawn_ns;
	uint64_t hidden; /* values without a row, over the limit */
	int error;
};

/* Begins a table on a terminal (borrowed). -1: none, for tests. */
struct counter_screen counter_screen_to(int fd, const char *head);

void counter_screen_value(struct counter_screen *s, const struct counter_value *v);
void counter_screen_ended(struct counter_screen *s, const struct counter_value *v);

/* Shows a message above the table. */
void counter_screen_note(struct counter_screen *s, const char *text);

/* Draws if something has changed, a few times each second at most. now_ns: CLOCK_MONOTONIC. 0;
 * -errno. */
int counter_screen_draw(struct counter_screen *s, uint64_t now_ns);

/* Draws the last values, and frees all. 0; -errno. */
int counter_screen_close(struct counter_screen *s);

/*
 * Puts the table of a terminal of this size. For tests; counter_screen_draw does the same with the
 * terminal's own size.
 */
void counter_screen_put(struct counter_screen *s, struct outbuf *out, int lines, int columns);

/* Puts a number for people: "12,345.678". */
void counter_put_readable(struct outbuf *out, double x);

#endif
