/*
 * Methods of a running .NET process from the runtime's events: all methods compiled now (a
 * rundown), and later compilations and frees (live). For .NET 5 and later. For .NET 5 to 7 it
 * relies on their sources and on synthetic streams. Writes nothing to the target's files. The
 * target keeps running, except that compilation waits while the runtime copies its list.
 */
#ifndef DOTNET_EVENTPIPE_RUNDOWN_H
#define DOTNET_EVENTPIPE_RUNDOWN_H

#include "dotnet/eventpipe/session.h"

#define RUNDOWN_MODULES_MAX 100000
/* Bytes of their paths and names. Modules beyond the limit are unknown. */
#define RUNDOWN_MODULES_BYTES_MAX ((size_t)64 << 20)
#define RUNDOWN_PENDING_MAX ((size_t)1 << 20) /* methods that wait for their module */
/* Bytes of their texts; a million methods have about 200 bytes each. */
#define RUNDOWN_PENDING_BYTES_MAX ((size_t)256 << 20)
#define RUNDOWN_TEXT_MAX ((size_t)32 << 10) /* UTF-16 units of a name or signature */

struct rundown_module {
	uint64_t id;
	const char *assembly; /* simple name; "" if the runtime did not report it */
	const char *il_path;  /* in the target's root; empty: made in memory */
	const char *pdb_path; /* as the compiler named it; may be empty */
	uint32_t flags, pdb_age;
	unsigned char pdb_guid[16];
};

/* Key of a module. The runtime's id alone is reused after a collectible assembly is unloaded. */
uint64_t rundown_module_key(const struct rundown_module *module);

struct rundown_method {
	uint64_t start;
	uint32_t bytes;
	/* METHOD_* and the tier (method_name.h). Bits 28 to 31: the extent (1: cold part). */
	uint32_t flags;
	uint32_t token;
	/* The runtime's MethodDesc, and one of its bodies; as in rundown_il_map. */
	uint64_t id, code_id;
	/* If loaded: time of compilation. Otherwise a time at which the code existed. */
	uint64_t time_ns;
	bool loaded;
	const struct rundown_module *module; /* NULL: not reported */
	/* Raw grammar with the tier, NUL-terminated. Valid during the call. */
	const char *name;
	size_t len;
};

/*
 * Native offsets and their IL offsets, in the runtime's form: -1 no mapping, -2 prolog, -3 epilog.
 */
struct rundown_il_map {
	uint64_t method_id, code_id;
	size_t count;
	const unsigned char *il, *native; /* count little-endian u32 each, unaligned */
};

/* A result other than 0 ends the reading and is returned. */
struct rundown_listener {
	int (*method)(void *ctx, const struct rundown_method *method);
	int (*gone)(void *ctx, uint64_t start, uint64_t time_ns); /* may be NULL */
	/* May be NULL. Comes before or after the map's method. */
	int (*il_map)(void *ctx, const struct rundown_il_map *map);
	/*
	 * Writes the exact "[instance ]RETURN NAME(ARGS)" from a module's metadata. If NULL or not
	 * 0, the name is made from the event's own text.
	 */
	int (*signature)(void *ctx, const struct rundown_module *module, uint32_t token,
			 const char *name, size_t len, struct outbuf *out);
	void *ctx;
	/*
	 * Borrowed: counts the memory of the process's events; NULL: only the limits above. With
	 * too little left, modules are unknown and methods do not wait for them.
	 */
	struct share *memory;
};

struct rundown_stats {
	uint64_t methods, precompiled, gone, il_maps;
	uint64_t collectible; /* events of assemblies that can be unloaded */
	uint64_t inexact;     /* signatures made from the event's text */
	uint64_t no_module;   /* methods without an assembly's name, excluding dynamic ones */
	uint64_t bad;         /* damaged events */
	uint64_t refused;     /* modules, assemblies and waits of methods: too little memory */
	struct nettrace_stats stream;
};

struct rundown;

/* One object serves all sessions with a process. listener is copied. 0, -ENOMEM. */
int rundown_new(struct opener *o, pid_t pid, const struct rundown_listener *listener,
		struct rundown **ret_rundown);
void rundown_free(struct rundown *r);

/*
 * Counts the collectible assemblies that are loaded now in stats.collectible. Lists no methods, so
 * it is safe while the process unloads assemblies. 0; -ENOTSUP: also before .NET 9, whose runtimes
 * always list all methods; errors of session_begin and session_stop.
 */
int rundown_count_collectible(struct rundown *r, uint64_t deadline_ns, struct port_error *err);

/*
 * Reports all methods compiled now. This can crash a runtime that unloads a collectible assembly at
 * that moment. il_maps: with their IL maps, which are many. Before .NET 9
 * runtimes always send them. 0; errors of session_begin and session_stop.
 */
int rundown_snapshot(struct rundown *r, bool il_maps, uint64_t deadline_ns, struct port_error *err);

/*
 * Starts to report methods compiled or freed from now on. il_maps: with their IL maps. Take a
 * snapshot afterwards, which reports the existing modules. -EBUSY: already started.
 */
int rundown_live_begin(struct rundown *r, bool il_maps, uint64_t deadline_ns,
		       struct port_error *err);
int rundown_live_fd(const struct rundown *r); /* for poll; -1: not live */
/* Reads waiting events. Errors of session_read; -ENODATA: the target has ended. */
int rundown_live_read(struct rundown *r, struct port_error *err);
/* Whether the last read left events. Read again soon, or the runtime drops events. */
bool rundown_live_has_more(const struct rundown *r);
/* Stops the live session. Also reports methods that still wait for their module. */
int rundown_live_end(struct rundown *r, uint64_t deadline_ns, struct port_error *err);

struct rundown_stats rundown_stats(const struct rundown *r);

/* For tests: takes an event as sessions do, and reports methods that wait for their module. */
int rundown_take_event(struct rundown *r, const struct nettrace_event *event);
int rundown_flush(struct rundown *r);

#endif
