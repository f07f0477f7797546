/*
 * The methods of a running .NET process out of the runtime's events: all that is compiled now (a rundown), and what is compiled or freed while
 * one listens. .NET 5 and later; that of 5 to 7 is known by their sources and by streams made by tests only. Nothing is written to the
 * target's files; its requests go on while it tells, except that compiling waits for the list to be copied.
 */
#ifndef EVENTPIPE_RUNDOWN_H
#define EVENTPIPE_RUNDOWN_H

#include "eventpipe/session.h"

#define RUNDOWN_MODULES_MAX 100000
#define RUNDOWN_MODULES_BYTES_MAX ((size_t)64 << 20) /* of their paths and names; what is above is not known */
#define RUNDOWN_PENDING_MAX ((size_t)1 << 20) /* methods whose module is not told yet, */
#define RUNDOWN_PENDING_BYTES_MAX ((size_t)256 << 20) /* and their texts; a million have about 200 bytes each */
#define RUNDOWN_TEXT_MAX ((size_t)32 << 10) /* UTF-16 units of a name or signature */

struct rundown_module {
	uint64_t id;
	const char *assembly; /* simple name; "" where the runtime did not tell */
	const char *il_path; /* in the target's root; empty: made in memory */
	const char *pdb_path; /* as the compiler named it; may be empty */
	uint32_t flags, pdb_age;
	unsigned char pdb_guid[16];
};

/* A number for a module: the runtime's id alone becomes another's when a collectible assembly is unloaded. */
uint64_t rundown_module_key(const struct rundown_module *module);

struct rundown_method {
	uint64_t start;
	uint32_t bytes;
	uint32_t flags; /* METHOD_* in method_name.h, the tier, in bits 28 to 31 the extent (1: cold part) */
	uint32_t token;
	uint64_t id, code_id; /* the runtime's MethodDesc, and which of its bodies; as in rundown_il_map */
	uint64_t time_ns; /* loaded: it came to be then; else it was there then */
	bool loaded;
	const struct rundown_module *module; /* NULL: not told */
	const char *name; /* raw grammar with the tier, NUL-terminated; valid during the call */
	size_t len;
};

/* Native offsets and the IL offsets that they come from, as the runtime has them: -1 no mapping, -2 prolog, -3 epilog. */
struct rundown_il_map {
	uint64_t method_id, code_id;
	size_t count;
	const unsigned char *il, *native; /* count little-endian u32 each, not aligned */
};

/* What is not 0 ends the reading and is given back. */
struct rundown_listener {
	int (*method)(void *ctx, const struct rundown_method *method);
	int (*gone)(void *ctx, uint64_t start, uint64_t time_ns); /* NULL: of no interest */
	int (*il_map)(void *ctx, const struct rundown_il_map *map); /* NULL: of no interest; comes before or after its method */
	/*
	 * Writes "[instance ]RETURN NAME(ARGS)" from the metadata of a module, which is exact. NULL, or not 0: it is made of the event's
	 * own text.
	 */
	int (*signature)(void *ctx, const struct rundown_module *module, uint32_t token, const char *name, size_t len,
			 struct outbuf *out);
	void *ctx;
};

struct rundown_stats {
	uint64_t methods, precompiled, gone, il_maps;
	uint64_t inexact; /* signatures that were made of the event's text */
	uint64_t no_module; /* methods without an assembly's name, though not dynamic ones */
	uint64_t bad; /* events that were damaged */
	struct nettrace_stats stream;
};

struct rundown;

/* One for a process, for all of its sessions. listener is copied. 0, -ENOMEM. */
int rundown_new(struct opener *o, pid_t pid, const struct rundown_listener *listener, struct rundown **ret_rundown);
void rundown_free(struct rundown *r);

/* All that is compiled now. il_maps: with the maps, which are many (before .NET 9 they always come, if listened to). 0; errors of
 * session_begin and session_stop. */
int rundown_snapshot(struct rundown *r, bool il_maps, uint64_t deadline_ns, struct port_error *err);

/*
 * Listens to methods that are compiled or freed from now on, il_maps: with their maps. A snapshot should be taken after it, which tells the modules that are
 * there. -EBUSY: it listens already.
 */
int rundown_live_begin(struct rundown *r, bool il_maps, uint64_t deadline_ns, struct port_error *err);
int rundown_live_fd(const struct rundown *r); /* for poll; -1: it does not listen */
int rundown_live_read(struct rundown *r, struct port_error *err); /* errors of session_read; -ENODATA: the target ended */
bool rundown_live_has_more(const struct rundown *r); /* the last read did not take all there was: read on soon, or the runtime drops some */
int rundown_live_end(struct rundown *r, uint64_t deadline_ns, struct port_error *err); /* also tells what waits for its module */

struct rundown_stats rundown_stats(const struct rundown *r);

/* For tests: takes an event as the sessions do, and tells what waits for its module. */
int rundown_take(struct rundown *r, const struct nettrace_event *event);
int rundown_flush(struct rundown *r);

#endif
