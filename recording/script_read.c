#include "recording/script_read.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "profile/script_line.h"
#include "profile/script_names.h"
#include "recording/script_frame.h"
#include "recording/script_header.h"

#include <errno.h>
#include <string.h>

#define SCRIPT_READ_BYTES ((size_t)256 << 10)
#define SCRIPT_KNOWN_MAX ((size_t)1 << 17) /* lines, stacks and threads whose results are kept */

/* Result of parsing a frame's line. */
struct script_known {
	uint32_t frame;   /* PROFILE_NONE: not a frame */
	uint32_t sources; /* number of source lines that follow */
};

/* State of the sample that is being read. */
enum script_state {
	SCRIPT_OUTSIDE,
	SCRIPT_OPEN,
	SCRIPT_FILTERED, /* open, but the event is not folded; the script treats this as outside */
};

struct script_reader {
	struct profile *profile;
	const struct script_text_options *options;
	struct script_text_stats *stats;

	VEC(struct script_known) known;
	/* Maps the hash of a frame's line, with its source lines, to an index in known. */
	struct hashmap lines;
	struct hashmap stacks;  /* maps the hash of frames to a stack */
	struct hashmap threads; /* maps the hash of comm and ids, as written, to a thread */
	struct hashmap events;  /* maps the hash of name and kind of line to an event */

	enum script_state state;
	bool half_line; /* the text's last line has no newline */
	struct profile_sample sample;
	VEC(uint32_t) frames; /* leaf first */
	struct outbuf filter; /* the event to fold; has_filter false: unknown yet */
	bool has_filter;

	/* Source lines of the newest frame: how many are missing, and those that came. */
	size_t sources_left;
	bool has_source;
	struct outbuf source, sources;
	struct profile_frame sourced;
	uint64_t sourced_key;

	/* Statistics of the text, for the error message if it is not perf script's. */
	/* evidence: distinct frames with an address, headers with a time or an event */
	uint64_t comments, evidence;
	uint64_t folded_lines, lone_frames, lone_lines;
};

/* Adds a frame to the open sample. */
static int script_add_frame(struct script_reader *s, uint32_t frame)
{
	if (s->frames.len >= SCRIPT_FRAMES_MAX) {
		s->stats->bad_lines++;
		return 0;
	}
	return vec_push(&s->frames, frame);
}

/* Stores the result for a line under the line's hash. */
static int script_store(struct script_reader *s, uint64_t key, struct script_known known)
{
	if (s->known.len >= SCRIPT_KNOWN_MAX) {
		s->known.len = 0;
		hashmap_free(&s->lines);
	}
	int r = vec_push(&s->known, known);

	return r ? r : hashmap_put(&s->lines, key, (uint32_t)s->known.len - 1);
}

/* Adds the frame with its source lines, all of which are known now. */
static int script_add_sourced(struct script_reader *s)
{
	const struct outbuf *text = &s->sources;
	uint32_t *index = hashmap_get(&s->lines, s->sourced_key);
	struct script_known known = {0};
	bool blank = true;
	int r;

	if (index)
		return script_add_frame(s, s->known.v[*index].frame);
	if (text->error)
		return text->error;
	for (size_t i = 0; i < text->len; i++)
		blank = blank && text->data[i] == '\n';
	if (!blank) {
		r = profile_lines(s->profile, text->data, text->len, &s->sourced.srcline);
		if (r)
			return r;
	}
	r = profile_frame(s->profile, &s->sourced, &known.frame);
	if (!r)
		r = script_store(s, s->sourced_key, known);
	return r ? r : script_add_frame(s, known.frame);
}

static int script_source_line(struct script_reader *s, const char *line, size_t len)
{
	if (s->has_source)
		outbuf_char(&s->sources, '\n');
	s->has_source = true;
	size_t at = s->sources.len;

	s->source.len = 0;
	script_names_put_source((struct script_part){line, len}, &s->source);
	if (s->source.error)
		return s->source.error;
	outbuf_printable(&s->sources, s->source.data, s->source.len, PROFILE_TEXT_MAX);
	if (s->sources.len > at)
		s->sourced_key = hash_mix(s->sourced_key,
					  hash_bytes(s->sources.data + at, s->sources.len - at));
	else
		s->sourced_key = hash_u64(s->sourced_key);
	return --s->sources_left ? 0 : script_add_sourced(s);
}

/* Counts a line that is not a frame, inside a sample. */
static void script_count_non_frame(struct script_reader *s, const char *line, size_t len)
{
	/* Source lines without options->srcline: two spaces and a text. */
	if (s->state != SCRIPT_OUTSIDE && s->frames.len && len > 2 && !memcmp(line, "  ", 2))
		s->stats->unused_lines++;
	else
		s->stats->bad_lines++;
}

/* Counts a frame's line outside a sample. */
static void script_lone_frame(struct script_reader *s, const char *line, size_t len)
{
	struct script_frame f;
	uint64_t addr;

	if (!script_line_frame(line, len, &f)) {
		s->stats->bad_lines++;
		return;
	}
	s->stats->unused_lines++;
	if (script_line_hex(f.addr, &addr) && f.addr.len > 3)
		s->lone_frames++;
	else
		s->lone_lines++;
}

/* Finds the result for a line by its hash, or parses it. */
static int script_recognize(struct script_reader *s, const char *line, size_t len, uint64_t key,
			    struct script_known *ret_known)
{
	uint32_t *index = hashmap_get(&s->lines, key);
	struct script_known known = {PROFILE_NONE, 0};
	struct profile_frame frame = {0};
	size_t sources = 0;

	if (index) {
		*ret_known = s->known.v[*index];
		return 0;
	}
	int r = script_frame_parse(s->profile, line, len, s->options, &frame, &sources);

	if (!r)
		r = profile_frame(s->profile, &frame, &known.frame);
	else if (r == -ENOENT)
		r = 0;
	s->evidence += known.frame != PROFILE_NONE && !frame.addr_is_text;
	known.sources = (uint32_t)sources;
	if (!r)
		r = script_store(s, key, known);
	if (!r)
		*ret_known = known;
	return r;
}

static int script_frame_line(struct script_reader *s, const char *line, size_t len)
{
	uint64_t key = hash_bytes(line, len);
	struct script_known known;

	if (s->state == SCRIPT_OUTSIDE) {
		script_lone_frame(s, line, len);
		return 0;
	}
	int r = script_recognize(s, line, len, key, &known);

	if (r)
		return r;
	if (known.frame == PROFILE_NONE) {
		script_count_non_frame(s, line, len);
		return 0;
	}
	if (!s->options->srcline || !known.sources || s->state == SCRIPT_FILTERED)
		return script_add_frame(s, known.frame);
	s->sources_left = known.sources;
	s->sources.len = 0;
	s->has_source = false;
	s->sourced = *profile_frame_of(s->profile, known.frame);
	s->sourced_key = hash_mix(key, 0x736f75726365ULL);
	return 0;
}

/* Finds the stack of the frames, by their hash or in the trie. */
static int script_stack(struct script_reader *s, uint32_t *ret_stack)
{
	uint64_t key = s->frames.len;
	uint32_t *place, stack = PROFILE_STACK_EMPTY;

	for (size_t i = 0; i < s->frames.len; i++)
		key = hash_mix(key, s->frames.v[i]);
	place = hashmap_get(&s->stacks, key);
	if (place) {
		*ret_stack = *place;
		return 0;
	}
	bool cut;
	int r = profile_stack_of(s->profile, s->frames.v, s->frames.len, false, &stack, &cut);

	s->stats->cut_stacks += cut;
	if (r)
		return r;
	*ret_stack = stack;
	if (s->stacks.len >= SCRIPT_KNOWN_MAX)
		hashmap_free(&s->stacks);
	return hashmap_put(&s->stacks, key, stack);
}

static int script_empty_line(struct script_reader *s)
{
	int r = 0;

	if (s->state == SCRIPT_OUTSIDE)
		return 0;
	r = script_stack(s, &s->sample.stack);
	if (!r)
		r = profile_sample(s->profile, &s->sample);
	s->stats->samples++;
	s->frames.len = 0;
	s->state = SCRIPT_OUTSIDE;
	return r;
}

/* New texts count for the thread's process, or for the thread if its PID is unknown. */
static void script_take_for(struct script_reader *s, const struct profile_thread *t)
{
	profile_taker(s->profile, t->pid >= 0 ? t->pid : t->tid);
}

static int script_thread(struct script_reader *s, const struct script_header *h,
			 uint32_t *ret_thread)
{
	struct profile_thread thread = {.pid = -1, .tid = -1};
	size_t len = (size_t)(h->ids.at + h->ids.len - h->comm.at);
	uint64_t key = hash_bytes(h->comm.at, len);
	uint32_t *known = hashmap_get(&s->threads, key);
	bool has_pid = h->pid.at == h->ids.at && h->pid.len != h->ids.len;
	int r;

	if (known) {
		script_take_for(s, profile_thread_of(s->profile, *known));
		*ret_thread = *known;
		return 0;
	}
	if (!script_header_id(h->tid, &thread.tid) ||
	    (has_pid && !script_header_id(h->pid, &thread.pid))) {
		r = profile_text(s->profile, h->ids.at, h->ids.len, &thread.ids_text);
		if (r)
			return r;
		thread.ids_text++;
		thread.pid = thread.tid = -1;
	}
	script_take_for(s, &thread);
	r = profile_text(s->profile, h->comm.at, h->comm.len, &thread.comm);
	if (!r)
		r = profile_thread(s->profile, &thread, ret_thread);
	if (s->threads.len >= SCRIPT_KNOWN_MAX)
		hashmap_free(&s->threads);
	return r ? r : hashmap_put(&s->threads, key, *ret_thread);
}

static int script_event(struct script_reader *s, struct script_part name, bool has_period,
			bool has_fields, uint32_t *ret_event)
{
	struct profile_event event = {.has_period = has_period, .has_fields = has_fields};
	uint64_t key =
		hash_mix(hash_bytes(name.at, name.len), (uint64_t)has_period << 1 | has_fields);
	uint32_t *known = hashmap_get(&s->events, key);
	int r;

	if (known) {
		*ret_event = *known;
		return 0;
	}
	r = profile_text(s->profile, name.at, name.len, &event.name);
	if (!r)
		r = profile_event(s->profile, &event, ret_event);
	return r ? r : hashmap_put(&s->events, key, *ret_event);
}

/* Returns whether the event is not folded. The first event becomes the one to fold. */
static bool script_is_filtered_out(struct script_reader *s, struct script_part name, uint32_t event)
{
	if (s->stats->first_event == PROFILE_NONE)
		s->stats->first_event = profile_event_of(s->profile, event)->name;
	if (!s->has_filter) {
		outbuf_put(&s->filter, name.at, name.len);
		s->has_filter = true;
	}
	return s->filter.len != name.len ||
	       (name.len && memcmp(s->filter.data, name.at, name.len) != 0);
}

/* Opens a sample after a header, unless the rules of script_read.h forbid it. */
static void script_open_sample(struct script_reader *s, const struct profile_sample *sample,
			       bool filtered)
{
	if (filtered && s->state == SCRIPT_OPEN) {
		s->stats->unused_lines++;
		return;
	}
	if (s->state == SCRIPT_FILTERED)
		s->frames.len = 0;
	s->sample = *sample;
	s->state = filtered ? SCRIPT_FILTERED : SCRIPT_OPEN;
}

static int script_header_line(struct script_reader *s, const char *line, size_t len,
			      const struct script_header *h)
{
	struct profile_sample sample = {.cpu = -1};
	struct script_event event = {.period = {0}};
	struct script_part rest = {h->rest, (size_t)(line + len - h->rest)};
	bool seen = script_line_event(line, len, &event);
	int r;

	if (!seen)
		event.name = script_header_event(rest);
	/* So many names come only from damaged text. The other half is for names after a period. */
	if (profile_nevents(s->profile) > (seen ? PROFILE_EVENTS_MAX - 8 : PROFILE_EVENTS_MAX / 2))
		event.name = (struct script_part){"unknown", 7};
	script_header_place(rest, &sample);
	s->evidence += seen || sample.time_ns;
	sample.weight = script_line_weight(event.period);
	r = script_thread(s, h, &sample.thread);
	if (!r)
		r = script_event(s, event.name, event.period.len > 0, !seen, &sample.event);
	if (r)
		return r;
	bool filtered = seen && script_is_filtered_out(s, event.name, sample.event);

	if (s->filter.error)
		return s->filter.error;
	script_open_sample(s, &sample, filtered);
	return 0;
}

static bool script_looks_folded(const char *line, size_t len)
{
	const char *space = memrchr(line, ' ', len), *end = line + len;

	if (!space || space + 1 == end || !memchr(line, ';', (size_t)(space - line)))
		return false;
	for (const char *p = space + 1; p < end; p++)
		if ((*p < '0' || *p > '9') && *p != '.')
			return false;
	return true;
}

static int script_line(struct script_reader *s, const char *line, size_t len)
{
	struct script_header header;

	s->stats->lines++;
	if (s->sources_left)
		return script_source_line(s, line, len);
	if (!len || (len == 1 && *line == '\r'))
		return script_empty_line(s);
	if (*line == '#') {
		s->comments++;
		return 0;
	}
	if (!script_line_is_space(*line)) {
		if (script_line_header(line, len, &header))
			return script_header_line(s, line, len, &header);
		s->folded_lines += script_looks_folded(line, len);
	}
	return script_frame_line(s, line, len);
}

/* Handles all whole lines in buf; *ret_used is their length. */
static int script_lines(struct script_reader *s, const char *buf, size_t len, size_t *ret_used)
{
	const char *p = buf, *end = buf + len, *newline;
	int r = 0;

	while (!r && (newline = memchr(p, '\n', (size_t)(end - p)))) {
		r = script_line(s, p, (size_t)(newline - p));
		p = newline + 1;
	}
	*ret_used = (size_t)(p - buf);
	return r;
}

/* The buffer holds only the start of a line: enlarges it, or handles the start as the line. */
static int script_long_line(struct script_reader *s, char **buf, size_t *cap, size_t *len,
			    bool *skipping)
{
	if (*skipping || *len >= SCRIPT_LINE_MAX) {
		uint64_t bad = s->stats->bad_lines + !*skipping;
		int r = *skipping ? 0 : script_line(s, *buf, SCRIPT_LINE_MAX);

		s->stats->bad_lines = bad;
		*skipping = true;
		*len = 0;
		return r;
	}
	char *more = realloc(*buf, *cap * 2);

	if (!more)
		return -ENOMEM;
	*buf = more;
	*cap *= 2;
	return 0;
}

/* Drops the rest of a line that was cut. */
static void script_skip(char *buf, size_t *len, bool *skipping)
{
	char *newline = *skipping ? memchr(buf, '\n', *len) : NULL;

	if (newline) {
		*len -= (size_t)(newline + 1 - buf);
		memmove(buf, newline + 1, *len);
		*skipping = false;
	}
}

static int script_read_all(struct script_reader *s, int fd, uint64_t *ret_offset)
{
	size_t cap = SCRIPT_READ_BYTES, len = 0, used;
	AUTO_FREE char *buf = malloc(cap);
	bool skipping = false;
	int r = buf ? 0 : -ENOMEM;

	while (!r) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n ? -errno : 0;
			break;
		}
		*ret_offset += (uint64_t)n;
		len += (size_t)n;
		script_skip(buf, &len, &skipping);
		used = 0;
		if (!skipping)
			r = script_lines(s, buf, len, &used);
		len -= used;
		memmove(buf, buf + used, len);
		if (!r && (len == cap || len >= SCRIPT_LINE_MAX || skipping))
			r = script_long_line(s, &buf, &cap, &len, &skipping);
	}
	/* A last line without a newline is a line too. */
	s->half_line = len > 0;
	if (!r && len && !skipping)
		r = script_line(s, buf, len);
	return r;
}

/* Returns why a text without samples cannot be folded; NULL: it is a recording without samples. */
static const char *script_problem(const struct script_reader *s)
{
	const struct script_text_stats *st = s->stats;

	if (s->evidence)
		return NULL;
	if (!st->lines)
		return "it is empty";
	if (s->folded_lines > st->lines / 2)
		return "it holds folded stacks already; draw them with `profcpu flamegraph`";
	if (s->lone_lines > st->lines / 2)
		return "its samples have no stacks; record with stacks (perf record -g)";
	if (s->lone_frames)
		return "its samples have no thread; let perf script print the fields comm and tid "
		       "(-F comm,tid,..)";
	if (s->comments && !st->bad_lines && !st->unused_lines)
		return NULL;
	return "it is not the text of perf script";
}

static void script_reader_free(struct script_reader *s)
{
	vec_free(&s->known);
	vec_free(&s->frames);
	hashmap_free(&s->lines);
	hashmap_free(&s->stacks);
	hashmap_free(&s->threads);
	hashmap_free(&s->events);
	outbuf_close(&s->filter);
	outbuf_close(&s->source);
	outbuf_close(&s->sources);
}

int script_text_read(int fd, const struct script_text_options *options, struct profile *profile,
		     struct script_text_stats *ret_stats, struct parse_error *err)
{
	struct script_text_stats stats = {.first_event = PROFILE_NONE};
	struct script_reader s = {
		.profile = profile,
		.options = options,
		.stats = &stats,
		.filter = outbuf_to(-1),
		.source = outbuf_to(-1),
		.sources = outbuf_to(-1),
	};
	const char *filter = options->event_filter;
	uint64_t offset = 0;
	int r;

	if (filter && *filter) {
		outbuf_str(&s.filter, filter);
		s.has_filter = true;
	}
	r = s.filter.error ? s.filter.error : script_read_all(&s, fd, &offset);
	if (r)
		parse_fail(err, r, strerrordesc_np(-r), offset);
	const char *why = r ? NULL : script_problem(&s);

	if (why)
		r = parse_fail(err, -EBADMSG, why, 0);
	stats.unended = s.state != SCRIPT_OUTSIDE && (s.frames.len || s.half_line);
	script_reader_free(&s);
	if (!r)
		*ret_stats = stats;
	return r;
}
