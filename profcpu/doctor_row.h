/* Rows of the report of `profcpu doctor`, and tests on facts that several rows need. */
#ifndef PROFCPU_DOCTOR_ROW_H
#define PROFCPU_DOCTOR_ROW_H

#include "profcpu/doctor_probe.h"

enum doctor_state {
	DOCTOR_YES,
	DOCTOR_NO,    /* costs what `effect` says */
	DOCTOR_FATAL, /* nothing can be recorded */
};

struct doctor_item {
	enum doctor_state state;
	const char *name;
	char found[PROCESS_LIST_DENIED_BYTES + 64]; /* what the probe found */
	const char *effect;                         /* what a "no" costs; NULL for a yes */
	const char *remedy;                         /* NULL: none exists, or none is needed */
};

#define DOCTOR_ITEMS_MAX 40

struct doctor_report {
	struct doctor_item items[DOCTOR_ITEMS_MAX];
	size_t len;
	bool can_record;  /* no item is fatal */
	bool can_off_cpu; /* --off-cpu works too */
};

/*
 * Adds a row; format gives the text of `found`. effect and remedy are borrowed, static strings,
 * kept only if state is not DOCTOR_YES. DOCTOR_FATAL clears can_record. Beyond DOCTOR_ITEMS_MAX it
 * does nothing.
 */
void __attribute__((format(printf, 6, 7)))
doctor_add_row(struct doctor_report *report, enum doctor_state state, const char *name,
	       const char *effect, const char *remedy, const char *format, ...);

/* DOCTOR_YES or DOCTOR_NO. */
enum doctor_state doctor_yes_or_no(bool good);

/* Whether our effective capabilities have cap. */
bool doctor_has_cap(const struct doctor_facts *f, int cap);

/* Whether error means that access was denied. */
bool doctor_is_denial(int error);

#endif
