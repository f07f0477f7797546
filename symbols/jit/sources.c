#include "symbols/jit/sources.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "container/proc.h"
#include "symbols/jit/methods_file.h"
#include "symbols/jit/perfmaps.h"
#include "symbols/jit/pids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JIT_STARTS_NS (NS_PER_S / 10) /* what the start of a process is exact to, with room */
#define JIT_LATER_NS (2 * NS_PER_S)   /* tolerated difference between two clocks */
#define JIT_MARKERS_MAX 16            /* mapped jitdumps of a process; older ones are not read */

struct jit_marker {
	uint32_t file_pid, image;
};

struct jit_sources_process {
	bool checked, captured; /* checked: captured is known */
	bool loaded;
	bool open;    /* jit_sources_was_open */
	bool counted; /* struct jit_sources_options */
	bool named;   /* names were looked up, not lines alone */
	int32_t pid;
	uint64_t mapped_ns;             /* as for jit_sources_pid_is_reused */
	VEC(struct jit_marker) markers; /* oldest first */
	struct symbol_provider *names;
	struct jit_methods_file *file; /* header lines of the capture; NULL: there is none */
	struct jit_damage damage;
	/*
	 * Why its code has no names although a source exists; NULL: it has names, or there is no
	 * source.
	 */
	const char *why;
	const char *perfmap_why; /* why its perf map is not used; NULL: it is, or there is none */
};

struct jit_sources {
	struct jit_sources_options options;
	struct opener *opener;
	jit_sources_open_fn *open_image;
	void *ctx;
	VEC(struct jit_sources_process) processes;
	struct hashmap by_pid; /* PID -> index into processes */
	struct jit_pids pids;
	struct jit_perfmaps perfmaps;
	struct jit_users users;
	struct jit_sources_stats stats;
};

int jit_sources_new(const struct jit_sources_options *options, struct opener *opener,
		    jit_sources_open_fn *open_image, void *ctx, struct jit_sources **ret_sources)
{
	struct jit_sources *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->opener = opener;
	s->pids.opener = opener;
	s->users.dir_fd = options->capture_dir_fd;
	s->users.foreign = options->foreign;
	s->users.owner = options->owner;
	s->perfmaps = (struct jit_perfmaps){
		.opener = opener, .users = &s->users, .memory.limit = options->perfmap_memory};
	s->open_image = open_image;
	s->ctx = ctx;
	*ret_sources = s;
	return 0;
}

void jit_sources_free(struct jit_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->processes.len; i++) {
		symbol_provider_free(s->processes.v[i].names);
		vec_free(&s->processes.v[i].markers);
		free(s->processes.v[i].file);
	}
	vec_free(&s->processes);
	jit_pids_free(&s->pids);
	jit_users_free(&s->users);
	fair_share_free(&s->perfmaps.files);
	fair_share_free(&s->perfmaps.memory);
	hashmap_free(&s->by_pid);
	free(s);
}

/* *ret_process is valid until the next new process. */
static int jit_sources_process(struct jit_sources *s, int32_t pid,
			       struct jit_sources_process **ret_process)
{
	uint32_t *place;
	int is_new, r = vec_reserve(&s->processes, 1);

	if (!r)
		r = hashmap_entry(&s->by_pid, (uint32_t)pid, (uint32_t)s->processes.len, &place,
				  &is_new);
	if (r)
		return r;
	if (is_new)
		s->processes.v[s->processes.len++] = (struct jit_sources_process){
			.pid = pid,
			.counted = s->options.counted &&
				   lookup_cache_find_process(s->options.counted, pid)};
	*ret_process = &s->processes.v[*place];
	return 0;
}

static bool jit_is_captured(struct jit_sources *s, struct jit_sources_process *p)
{
	if (!p->checked) {
		p->checked = true;
		p->captured = s->options.capture_dir_fd >= 0 &&
			      jit_pids_is_captured(&s->pids, s->options.capture_dir_fd, p->pid);
	}
	return p->captured;
}

bool jit_sources_has_capture(struct jit_sources *s, int32_t pid)
{
	struct jit_sources_process *p;

	return s->options.capture_dir_fd >= 0 && !jit_sources_process(s, pid, &p) &&
	       jit_is_captured(s, p);
}

int jit_sources_add_jitdump(struct jit_sources *s, int32_t pid, uint32_t file_pid, uint32_t image)
{
	struct jit_sources_process *p;
	int r = jit_sources_process(s, pid, &p);

	for (size_t i = 0; !r && i < p->markers.len; i++)
		if (p->markers.v[i].image == image)
			return 0;
	if (!r && p->markers.len == JIT_MARKERS_MAX) {
		p->markers.len--;
		memmove(p->markers.v, p->markers.v + 1, p->markers.len * sizeof(*p->markers.v));
		p->damage.n[JIT_DUMPS_REFUSED]++;
	}
	return r ? r : vec_push(&p->markers, ((struct jit_marker){file_pid, image}));
}

bool jit_sources_pid_is_reused(struct jit_sources *s, int32_t pid, uint64_t mapped_ns)
{
	struct opener_process process;
	const uint32_t *uid;
	int root;

	if (!s->opener || opener_root(s->opener, pid, &root) == -ESRCH ||
	    opener_process(s->opener, pid, &process) || process.ended)
		return false;
	uid = jit_users_uid(&s->users, pid);
	if (uid && *uid != process.uid && *uid != process.rights_uid)
		return true;
	uint64_t now_ns = clock_monotonic_ns(),
		 age_ns = proc_age_ns(process.start_ticks, clock_boottime_ns());

	if (!s->options.untimed && mapped_ns && age_ns < now_ns &&
	    now_ns - age_ns > mapped_ns + JIT_STARTS_NS)
		return true;
	if (!s->options.recorded_until_ns)
		return false;
	uint64_t begin_ns = clock_realtime_ns() - age_ns;

	return begin_ns > s->options.recorded_until_ns &&
	       begin_ns - s->options.recorded_until_ns > JIT_LATER_NS;
}

bool jit_sources_user(struct jit_sources *s, int32_t pid, uint32_t *ret_uid)
{
	return jit_users_in_our_root(&s->users, pid, ret_uid);
}

bool jit_sources_in_other_root(struct jit_sources *s, int32_t pid)
{
	return jit_users_in_other_root(&s->users, pid);
}

/* Whether a process runs, so that its runtime may add to its jitdump or perf map. */
static bool jit_is_running(struct jit_sources *s, const struct jit_sources_process *p)
{
	struct proc_status status;

	return !proc_status(p->pid, &status) && status.state != 'Z' && status.state != 'X' &&
	       !jit_sources_pid_is_reused(s, p->pid, p->mapped_ns);
}

/* Loads the perf map that a process has now, if there is one. Returns 0 or -ENOMEM. */
static int jit_load_perfmap(struct jit_sources *s, struct jit_sources_process *p,
			    struct jit_names_sources *names)
{
	struct jit_perfmap map = {0};
	int r = 0;

	if (!jit_sources_pid_is_reused(s, p->pid, p->mapped_ns))
		r = jit_perfmaps_load(&s->perfmaps, p->pid, &p->damage, &map);
	names->perfmap = map.names;
	names->open |= map.found;
	s->stats.perfmaps += map.names != NULL;
	p->perfmap_why = map.why;
	return r;
}

/*
 * Whether a jitdump belongs to a process. Its name and header must have the process's PID, here or
 * in the process's own namespace.
 */
static bool jit_belongs_to(const struct jit_sources *s, int32_t pid, uint32_t file_pid,
			   uint32_t header_pid, int32_t ns_pid)
{
	struct opener_process process;

	if (header_pid != file_pid)
		return false;
	if (file_pid == (uint32_t)pid || (ns_pid > 0 && file_pid == (uint32_t)ns_pid))
		return true;
	/* The namespace PID of an ended process is unknown. */
	return !s->opener || opener_process(s->opener, pid, &process) ||
	       file_pid == (uint32_t)process.ns_pid;
}

/* Whether the runtime of a process still holds its jitdump open, or the file may be its own. */
static bool jit_may_use_dump(struct jit_sources *s, const struct jit_sources_process *p, int fd)
{
	struct stat st;

	return jit_is_running(s, p) ||
	       (!fstat(fd, &st) && jit_users_may_own(&s->users, p->pid, &st));
}

/* Lets more methods take the process's share of the memory. Returns what they have taken. */
static uint64_t jit_limit_memory(struct jit_sources *s, int32_t pid, struct jit_methods *m)
{
	jit_methods_limit_memory(m, jit_perfmaps_memory(&s->perfmaps, pid));
	return jit_methods_taken(m);
}

/*
 * Reads one jitdump. Returns 0; -ENOENT: it belongs to another process; -errno: it could not be
 * read to its end.
 */
static int jit_load_marker(struct jit_sources *s, struct jit_sources_process *p,
			   const struct jit_marker *marker, int32_t ns_pid,
			   struct jit_names_sources *names)
{
	struct jit_damage *damage = &p->damage;
	struct jitdump_stats stats;
	struct jitdump *dump = NULL;
	AUTO_CLOSE int fd = -1;
	int r = s->open_image(s->ctx, marker->image, &fd);

	if (r)
		return r;
	names->open = true;
	r = jitdump_peek(fd, &stats);
	if (!r && (!jit_belongs_to(s, p->pid, marker->file_pid, stats.pid, ns_pid) ||
		   !jit_may_use_dump(s, p, fd)))
		r = -ENOENT;
	if (r) {
		damage->n[JIT_DUMPS_REFUSED]++;
		return -ENOENT;
	}
	uint64_t before = jit_limit_memory(s, p->pid, names->methods);

	r = jit_perfmaps_charge(&s->perfmaps, p->pid, fd);
	if (r == -EDQUOT)
		p->why = JIT_FILES_EXCEED;
	if (!r)
		r = jitdump_load(fd, names->methods, &dump, &stats, NULL);
	fair_share_take(&s->perfmaps.memory, p->pid, jit_methods_taken(names->methods) - before);
	damage->n[JIT_DUMPS_REFUSED] += r && r != -ENOMEM;
	/* Even if it could not be read to its end: its methods so far were added. */
	names->jitdump_stats = stats;
	if (r)
		return r;
	names->jitdump = dump;
	s->stats.jitdumps++;
	damage->n[JIT_DUMPS_UNTIMED] += stats.untimed;
	damage->n[JIT_DUMP_BAD_RECORDS] += stats.bad;
	damage->n[JIT_DUMP_BAD_TABLES] += stats.bad_tables;
	return 0;
}

/* Loads the jitdump that was mapped last. Returns 0 or -ENOMEM. */
static int jit_load_jitdump(struct jit_sources *s, struct jit_sources_process *p, int32_t ns_pid,
			    struct jit_names_sources *names)
{
	for (size_t i = p->markers.len; i-- > 0;) {
		int r = jit_load_marker(s, p, &p->markers.v[i], ns_pid, names);

		if (!r || r == -ENOMEM)
			return r;
		/* A part of it was added. */
		if (jit_methods_count(names->methods, SYMBOL_JITDUMP))
			break;
	}
	return 0;
}

/* Why the captured methods of a process are not used. */
static const char *jit_reason_not_read(int error)
{
	switch (error) {
	case -E2BIG:
		return "its recorded methods exceed 1 GiB";
	case -ENOTSUP:
		return "a newer profcpu recorded its methods; use that version";
	case -EBADMSG:
		return "its recorded methods are damaged";
	default:
		return "its recorded methods cannot be read";
	}
}

/* Loads the captured methods of a process. Returns 0 or -ENOMEM. */
static int jit_load_capture(struct jit_sources *s, struct jit_sources_process *p,
			    struct jit_methods *m, int32_t *ret_ns_pid)
{
	AUTO_FREE struct jit_methods_file *file = NULL;
	int r;

	if (!jit_is_captured(s, p))
		return 0;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	uint64_t before = jit_limit_memory(s, p->pid, m);

	r = jit_methods_read(s->options.capture_dir_fd, p->pid, m, file, NULL);
	fair_share_take(&s->perfmaps.memory, p->pid, jit_methods_taken(m) - before);
	if (r)
		p->why = jit_reason_not_read(r);
	s->stats.captures += !r;
	s->stats.il_maps += jit_il_maps(jit_methods_il(m));
	p->damage.n[JIT_CAPTURES_CUT] += file->cut;
	p->damage.n[JIT_CAPTURE_BAD_LINES] += file->bad_lines;
	*ret_ns_pid = file->ns_pid;
	free(p->file); /* of a load that found too little memory */
	p->file = TAKE_PTR(file);
	return r == -ENOMEM ? r : 0;
}

static int jit_load(struct jit_sources *s, struct jit_sources_process *p)
{
	struct jit_names_sources names = {.untimed = s->options.untimed};
	int32_t ns_pid = 0;
	int r = jit_methods_new(&names.methods);

	if (!r)
		r = jit_load_capture(s, p, names.methods, &ns_pid);
	bool live = !r && s->options.live;
	bool may_have_perfmap = live && jit_pids_may_have_perfmap(&s->pids, p->pid);
	/*
	 * Before the files are read: what a process wrote before its end is in them. Not for the
	 * thousands of ended processes that have none.
	 */
	bool may_write = live && !(p->file && p->file->way[0]) &&
			 (may_have_perfmap || p->markers.len) && jit_is_running(s, p);
	if (live)
		r = jit_load_jitdump(s, p, ns_pid, &names);
	if (!r && may_have_perfmap)
		r = jit_load_perfmap(s, p, &names);
	if (!r && jit_methods_refused_count(names.methods)) {
		p->damage.n[JIT_METHODS_LEFT_OUT] += jit_methods_refused_count(names.methods);
		p->why = "too little memory is left for all its methods; free some, or raise the "
			 "limit of the container";
	}
	names.open &= may_write && !names.jitdump_stats.closed;
	p->open = names.open;
	if (!r) {
		r = jit_methods_finish(names.methods);
		if (r == -E2BIG) {
			jit_methods_free(names.methods);
			names.methods = NULL;
			p->why = "too many of its methods overlap";
			r = 0;
		}
	}
	if (!r)
		return jit_names_new(&names, &p->names);
	jit_methods_free(names.methods);
	jitdump_free(names.jitdump);
	symbol_provider_free(names.perfmap);
	return r;
}

static int jit_provider(struct jit_sources *s, int32_t pid, uint64_t mapped_ns, bool named,
			struct symbol_provider **ret_names)
{
	struct jit_sources_process *p;
	int r = jit_sources_process(s, pid, &p);

	if (!r && !p->loaded) {
		p->mapped_ns = mapped_ns;
		r = jit_load(s, p);
		p->loaded = !r;
		p->damage.n[JIT_DUMPS_EARLY] += !r && jit_names_stats(p->names).jitdump_early;
	}
	if (!r) {
		p->named |= named;
		*ret_names = p->names;
	}
	return r;
}

int jit_sources_provider(struct jit_sources *s, int32_t pid, uint64_t mapped_ns,
			 struct symbol_provider **ret_names)
{
	return jit_provider(s, pid, mapped_ns, true, ret_names);
}

bool jit_sources_was_open(const struct jit_sources *s, int32_t pid)
{
	const uint32_t *place = hashmap_get(&s->by_pid, (uint32_t)pid);

	return place && s->processes.v[*place].open;
}

bool jit_sources_has_closed(struct jit_sources *s, int32_t pid)
{
	const uint32_t *place = hashmap_get(&s->by_pid, (uint32_t)pid);

	return place && s->processes.v[*place].open && !jit_is_running(s, &s->processes.v[*place]);
}

int jit_sources_lines(struct jit_sources *s, int32_t pid, uint64_t mapped_ns,
		      const struct jit_lines_files *files, struct line_source **ret_source)
{
	struct symbol_provider *names;
	int r = jit_provider(s, pid, mapped_ns, false, &names);

	return r ? r : jit_lines_open(names, files, ret_source);
}

const char *jit_sources_way(const struct jit_sources *s, int32_t pid)
{
	const uint32_t *place = hashmap_get(&s->by_pid, (uint32_t)pid);
	const struct jit_methods_file *file = place ? s->processes.v[*place].file : NULL;

	return file && file->way[0] ? file->way : NULL;
}

/* A missing text has no id. */
static int jit_intern_text(struct lookup_cache *a, const char *text, uint32_t *ret_text)
{
	*ret_text = LOOKUP_NONE;
	return text && *text ? intern_str(&a->texts, text, ret_text) : 0;
}

int jit_sources_note(const struct jit_sources *s, struct lookup_cache *lookup_cache)
{
	int r = 0;

	for (size_t i = 0; i < s->processes.len && !r; i++) {
		const struct jit_sources_process *p = &s->processes.v[i];
		struct jit_names_stats stats = jit_names_stats(p->names);
		struct lookup_cache_process note = {
			.pid = p->pid,
			.ns_pid = p->file ? p->file->ns_pid : 0,
			.jitdump_early = stats.jitdump_early,
			.open = p->open,
			.contradictions = stats.contradictions + stats.perfmap_contradictions,
			.doubts = stats.doubts,
		};
		const struct lookup_cache_process *before =
			lookup_cache_find_process(lookup_cache, p->pid);
		const char *why = p->file ? p->file->why : NULL;

		if (!p->loaded || !p->named)
			continue;
		/* This run may have looked up less than an earlier one. */
		if (before && before->contradictions > note.contradictions)
			note.contradictions = before->contradictions;
		if (before && before->doubts > note.doubts)
			note.doubts = before->doubts;
		if (!why || !*why)
			why = p->why;
		/* A process with captured names does not need its perf map. */
		if ((!why || !*why) && !(p->file && p->file->way[0]))
			why = p->perfmap_why;
		r = jit_intern_text(lookup_cache, p->file ? p->file->version : NULL, &note.version);
		if (!r)
			r = jit_intern_text(lookup_cache, p->file ? p->file->way : NULL, &note.way);
		if (!r)
			r = jit_intern_text(lookup_cache, why, &note.why);
		if (!r)
			r = lookup_cache_process(lookup_cache, &note);
	}
	return r;
}

struct jit_sources_stats jit_sources_stats(const struct jit_sources *s)
{
	struct jit_sources_stats stats = s->stats;

	for (size_t i = 0; i < s->processes.len; i++) {
		const struct jit_sources_process *p = &s->processes.v[i];
		struct jit_names_stats n = jit_names_stats(p->names);

		stats.methods_left_out += p->damage.n[JIT_METHODS_LEFT_OUT];
		if (!p->named || p->counted)
			continue;
		jit_damage_add(&stats.damage, &p->damage);
		stats.contradictions += n.contradictions + n.perfmap_contradictions;
		stats.doubts += n.doubts;
	}
	return stats;
}
