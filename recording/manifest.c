#include "recording/manifest.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MANIFEST_BYTES_MAX ((size_t)1 << 20)

enum field_kind {
	FIELD_TEXT,
	FIELD_RARE_TEXT,
	FIELD_INT,
	FIELD_U32,
	FIELD_U64,
	FIELD_RARE_U64,
	FIELD_BOOL
};

/*
 * One row for each key, for writing and reading. The last row is never a rare one, because the last
 * line written has no comma.
 */
static const struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
} fields[] = {
	{"format", FIELD_INT, offsetof(struct recording_manifest, format)},
	{"tool", FIELD_TEXT, offsetof(struct recording_manifest, tool)},
	{"host", FIELD_TEXT, offsetof(struct recording_manifest, host)},
	{"os_release", FIELD_TEXT, offsetof(struct recording_manifest, os_release)},
	{"arch", FIELD_TEXT, offsetof(struct recording_manifest, arch)},
	{"target", FIELD_TEXT, offsetof(struct recording_manifest, target)},
	{"event", FIELD_TEXT, offsetof(struct recording_manifest, event)},
	{"freq_hz", FIELD_U32, offsetof(struct recording_manifest, freq_hz)},
	{"start_realtime_ns", FIELD_U64, offsetof(struct recording_manifest, start_realtime_ns)},
	{"start_monotonic_ns", FIELD_U64, offsetof(struct recording_manifest, start_monotonic_ns)},
	{"duration_ns", FIELD_U64, offsetof(struct recording_manifest, duration_ns)},
	{"damage", FIELD_RARE_TEXT, offsetof(struct recording_manifest, damage)},
	{"jit_names", FIELD_RARE_TEXT, offsetof(struct recording_manifest, jit_names)},
	{"ring_memory", FIELD_RARE_TEXT, offsetof(struct recording_manifest, ring_memory)},
	{"ended", FIELD_RARE_TEXT, offsetof(struct recording_manifest, ended)},
	{"forger", FIELD_RARE_U64, offsetof(struct recording_manifest, forger)},
	{"trace_events", FIELD_RARE_TEXT, offsetof(struct recording_manifest, trace_events)},
	{"trace_pid", FIELD_RARE_U64, offsetof(struct recording_manifest, trace_pid)},
	{"trace_sent_ns", FIELD_RARE_U64, offsetof(struct recording_manifest, trace_sent_ns)},
	{"trace_received_ns", FIELD_RARE_U64,
	 offsetof(struct recording_manifest, trace_received_ns)},
#define LIMIT_FIELD(id, key, cost_text, remedy) \
	{"limit_" key, FIELD_RARE_U64,          \
	 offsetof(struct recording_manifest, limits.cost[LIMIT_##id])},
	RECORDING_LIMITS(LIMIT_FIELD)
#undef LIMIT_FIELD
		{"unwound", FIELD_BOOL, offsetof(struct recording_manifest, unwound)},
	{"blanks_copies", FIELD_BOOL, offsetof(struct recording_manifest, blanks_copies)},
	{"finished", FIELD_BOOL, offsetof(struct recording_manifest, finished)},
	{"symbols_complete", FIELD_BOOL, offsetof(struct recording_manifest, symbols_complete)},
};

/* An output without addresses. */
static bool is_picture(const char *name)
{
	static const char *const names[] = {RECORDING_SVG,
					    RECORDING_FOLDED,
					    RECORDING_OFFCPU_SVG,
					    RECORDING_OFFCPU_FOLDED,
					    RECORDING_WALL_SVG,
					    RECORDING_WALL_FOLDED,
					    RECORDING_WAKEUP_SVG,
					    RECORDING_WAKEUP_FOLDED,
					    RECORDING_COMPARE,
					    RECORDING_COMPARE_TEXT,
					    RECORDING_COMPARE_SVG,
					    RECORDING_COMPARE_DIFF,
					    RECORDING_ALLOC_SVG,
					    RECORDING_ALLOC_FOLDED,
					    RECORDING_EXCEPTIONS_SVG,
					    RECORDING_EXCEPTIONS_FOLDED,
					    RECORDING_CONTENTION_SVG,
					    RECORDING_CONTENTION_FOLDED,
					    RECORDING_GC_SVG,
					    RECORDING_GC_FOLDED,
					    RECORDING_JIT_SVG,
					    RECORDING_JIT_FOLDED,
					    RECORDING_CAUSES_SVG,
					    RECORDING_CAUSES_FOLDED,
					    RECORDING_RUNTIME_SVG,
					    RECORDING_RUNTIME_FOLDED};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool recording_is_public(const char *name)
{
	return !strcmp(name, RECORDING_MANIFEST) || is_picture(name);
}

bool recording_is_derived(const char *name)
{
	return is_picture(name) || !strcmp(name, RECORDING_SCRIPT) ||
	       !strcmp(name, RECORDING_REPORT) || !strcmp(name, RECORDING_ARCHIVE);
}

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static void write_field(struct json_writer *w, const struct field *f, const void *at)
{
	const char *text;

	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_RARE_TEXT:
		text = *(char *const *)at;
		if (f->kind == FIELD_TEXT || (text && *text))
			json_put_text(w, f->key, text ? text : "");
		break;
	case FIELD_INT:
		json_put_i64(w, f->key, *(const int *)at);
		break;
	case FIELD_U32:
		json_put_u64(w, f->key, *(const uint32_t *)at);
		break;
	case FIELD_U64:
		json_put_u64(w, f->key, *(const uint64_t *)at);
		break;
	case FIELD_RARE_U64:
		if (*(const uint64_t *)at)
			json_put_u64(w, f->key, *(const uint64_t *)at);
		break;
	case FIELD_BOOL:
		json_put_bool(w, f->key, *(const bool *)at);
		break;
	}
}

/*
 * Wait for the disk only when the recording is finished. An earlier manifest holds nothing worth
 * the wait, in which rings fill.
 */
static int write_new_file(int dir_fd, const struct outbuf *text, bool durably)
{
	struct replace file;
	int r = replace_open(&file, dir_fd, RECORDING_MANIFEST, REPLACE_PUBLIC);

	if (r)
		return r;
	r = file_write_all(file.fd, text->data, text->len);
	if (!r)
		r = durably ? replace_commit_durably(&file) : replace_commit(&file);
	replace_abort(&file);
	return r;
}

/* Overwrites our existing manifest if it needs no more disk space. False: the file is unchanged. */
static bool overwrite_file(int dir_fd, const struct outbuf *text)
{
	AUTO_CLOSE int fd = -1;
	struct stat st;

	return !file_open_to_write(dir_fd, RECORDING_MANIFEST, O_WRONLY, &fd) && !fstat(fd, &st) &&
	       st.st_uid == geteuid() && text->len <= (uint64_t)st.st_blocks * 512 &&
	       !file_pwrite_all(fd, text->data, text->len, 0) && !ftruncate(fd, (off_t)text->len) &&
	       !file_sync(fd);
}

int recording_manifest_begin(struct recording_manifest *m, const char *tool)
{
	struct utsname uts = {0};

	uname(&uts);
	m->format = RECORDING_FORMAT;
	m->tool = strdup(tool);
	m->host = strdup(uts.nodename);
	m->os_release = strdup(uts.release);
	m->arch = strdup(uts.machine);
	return m->tool && m->host && m->os_release && m->arch ? 0 : -ENOMEM;
}

int recording_manifest_write(int dir_fd, const struct recording_manifest *m)
{
	struct outbuf text = outbuf_to(-1);

	struct json_writer w = json_put_document(&text, JSON_LINES_ALL);

	for (size_t i = 0; i < FIELDS; i++)
		write_field(&w, &fields[i], (const char *)m + fields[i].offset);
	json_put_end(&w);
	int r = text.error ? text.error : write_new_file(dir_fd, &text, m->finished);

	/*
	 * A full disk has no room for a second file. Overwrite the first, so that it shows later
	 * why the recording ended.
	 */
	if ((r == -ENOSPC || r == -EDQUOT) && overwrite_file(dir_fd, &text))
		r = 0;
	(void)outbuf_close(&text);
	return r;
}

static int read_u64(struct json *j, uint64_t max, uint64_t *ret_x)
{
	int r = json_u64(j, ret_x);

	if (!r && *ret_x > max) {
		j->error = r = -E2BIG;
		j->what = "a number is too large";
	}
	return r;
}

/* Reads a text that outputs may show: printable, and cut if it is too long. */
static int read_text(struct json *j, char **text_at)
{
	AUTO_FREE char *raw = NULL;
	char text[RECORDING_TEXT_MAX + 1];
	bool cut;
	int r = json_string(j, &raw);

	if (r)
		return r;
	text[printable_copy(raw, strlen(raw), RECORDING_TEXT_MAX, text, &cut)] = 0;
	free(*text_at);
	*text_at = strdup(text);
	return *text_at ? 0 : -ENOMEM;
}

static int read_field(struct json *j, const struct field *f, void *at)
{
	uint64_t x = 0;
	int r;

	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_RARE_TEXT:
		return read_text(j, at);
	case FIELD_INT:
		r = read_u64(j, INT32_MAX, &x);
		*(int *)at = (int)x;
		return r;
	case FIELD_U32:
		r = read_u64(j, UINT32_MAX, &x);
		*(uint32_t *)at = (uint32_t)x;
		return r;
	case FIELD_U64:
	case FIELD_RARE_U64:
		return read_u64(j, UINT64_MAX, at);
	default:
		return json_bool(j, at);
	}
}

static int read_fields(struct json *j, struct recording_manifest *m)
{
	char *key;
	int r = json_object(j);

	while (!r && (r = json_key(j, &key)) > 0) {
		const struct field *f = NULL;

		for (size_t i = 0; i < FIELDS && !f; i++)
			if (!strcmp(fields[i].key, key))
				f = &fields[i];
		free(key);
		r = f ? read_field(j, f, (char *)m + f->offset) : json_skip(j);
	}
	return r ? r : json_end(j);
}

int recording_manifest_parse(const char *text, size_t len, struct recording_manifest *ret_m,
			     struct parse_error *err)
{
	struct recording_manifest m = {0};
	struct json j = json_of(text, len);
	int r = read_fields(&j, &m);

	if (r)
		parse_fail(err, r == -E2BIG ? -EBADMSG : r, j.what, j.pos);
	else if (m.format > RECORDING_FORMAT)
		r = parse_fail(err, -ENOTSUP, "its format is newer than this profcpu supports", 0);
	else if (m.format < 1)
		r = parse_fail(err, -EBADMSG, "it has no format", 0);
	if (r) {
		recording_manifest_free(&m);
		return r == -E2BIG ? -EBADMSG : r;
	}
	*ret_m = m;
	return 0;
}

int recording_manifest_read(int dir_fd, struct recording_manifest *ret_m, struct stat *ret_st,
			    struct parse_error *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1;
	size_t len;
	int r = file_open_regular(dir_fd, RECORDING_MANIFEST, &fd);

	if (!r && ret_st && fstat(fd, ret_st))
		r = -errno;
	if (!r)
		r = file_read_fd(fd, MANIFEST_BYTES_MAX, &text, &len);
	if (r == -ENOENT)
		return parse_fail(err, r, "it does not exist", 0);
	if (r == -E2BIG)
		return parse_fail(err, -EBADMSG, "it is too large", MANIFEST_BYTES_MAX);
	if (r)
		return parse_fail(err, r, file_open_error(r), 0);
	return recording_manifest_parse(text, len, ret_m, err);
}

void recording_manifest_free(struct recording_manifest *m)
{
	free(m->tool);
	free(m->host);
	free(m->os_release);
	free(m->arch);
	free(m->target);
	free(m->event);
	free(m->damage);
	free(m->jit_names);
	free(m->ring_memory);
	free(m->ended);
	free(m->trace_events);
	*m = (struct recording_manifest){0};
}
