#include "symbols/jit/jitdump.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/path.h"
#include "base/radix_sort.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define JITDUMP_MAGIC 0x4A695444u
#define JITDUMP_MAGIC_OTHER 0x4454694Au /* in the other byte order */
#define JITDUMP_VERSION 1
#define JITDUMP_HEADER_BYTES 40
#define JITDUMP_RECORD_BYTES 16
#define JITDUMP_LOAD_BYTES 40 /* of the record after its head, up to the name */
#define JITDUMP_MOVE_BYTES 48
#define JITDUMP_DEBUG_BYTES 16
#define JITDUMP_ENTRY_BYTES 16 /* up to the file name */
#define JITDUMP_ARCH_TIMESTAMP 1u
#define JITDUMP_V8_PAD 0xdeadbeefu
#define JITDUMP_V8_TEXT 64 /* bytes of the ELF header that perf puts before code */
/* Memory to sort a row, and for a file name besides its text. */
#define JITDUMP_SORT_MEMORY 36
#define JITDUMP_NAME_MEMORY 64
#define JITDUMP_WINDOW ((size_t)256 << 10)

enum {
	JITDUMP_CODE_LOAD,
	JITDUMP_CODE_MOVE,
	JITDUMP_DEBUG_INFO,
	JITDUMP_CODE_CLOSE,
	JITDUMP_UNWINDING_INFO,
	JITDUMP_TYPES,
};

struct jitdump_row {
	uint32_t off; /* from the method's start */
	uint32_t line, discriminator;
	uint32_t file; /* text id */
};

struct jitdump_table {
	uint32_t first, n; /* in rows */
};

struct jitdump {
	struct intern files;
	VEC(struct jitdump_row) rows;
	VEC(struct jitdump_table) tables;
	VEC(uint32_t) table_of; /* by number of the method: table + 1; 0: it has none */
	size_t file_bytes;      /* of files */
	size_t rows_taken;      /* rows whose memory was taken */
	size_t sort_taken;      /* rows for which that to sort them was taken */
};

/*
 * The file, read through a window: code is skipped, and a file that may be shortened must not be
 * mapped.
 */
struct jitdump_input {
	const uint8_t *data; /* NULL: read from fd */
	int fd;
	uint64_t len;
	uint8_t *window;
	uint64_t at;
	size_t n;
	int error;
};

struct jitdump_parser {
	struct jitdump_input in;
	struct jit_methods *methods;
	struct jitdump *dump;
	struct jitdump_stats stats;
	struct hashmap by_index; /* code_index -> number of the method */
	bool swap, v8;
	/* The table of lines that waits for the next load. */
	uint64_t table_start;
	struct jitdump_table table;
};

/*
 * Gets n bytes at an offset, valid until the next call; n is at most the window. NULL: not all of
 * them exist.
 */
static const uint8_t *input_read_at(struct jitdump_input *in, uint64_t at, size_t n)
{
	size_t want;

	if (at > in->len || n > in->len - at)
		return NULL;
	if (in->data)
		return in->data + at;
	if (at >= in->at && at - in->at <= in->n && n <= in->n - (at - in->at))
		return in->window + (at - in->at);
	want = in->len - at < JITDUMP_WINDOW ? (size_t)(in->len - at) : JITDUMP_WINDOW;
	in->n = 0;
	in->at = at;
	in->error = file_pread_all(in->fd, in->window, want, at);
	if (in->error)
		return NULL;
	in->n = want;
	return in->window;
}

static uint32_t get_u32(const struct jitdump_parser *p, const uint8_t *at)
{
	uint32_t x;

	memcpy(&x, at, sizeof(x));
	return p->swap ? __builtin_bswap32(x) : x;
}

static uint64_t get_u64(const struct jitdump_parser *p, const uint8_t *at)
{
	uint64_t x;

	memcpy(&x, at, sizeof(x));
	return p->swap ? __builtin_bswap64(x) : x;
}

void jitdump_free(struct jitdump *d)
{
	if (!d)
		return;
	intern_free(&d->files);
	vec_free(&d->rows);
	vec_free(&d->tables);
	vec_free(&d->table_of);
	free(d);
}

static int jitdump_read_header(struct jitdump_parser *p, uint64_t *ret_at, struct parse_error *err)
{
	const uint8_t *head = input_read_at(&p->in, 0, JITDUMP_HEADER_BYTES);
	uint32_t magic, bytes;

	if (!head)
		return parse_fail(err, p->in.error ? p->in.error : -EBADMSG,
				  "no header of a jitdump", 0);
	magic = get_u32(p, head);
	if (magic != JITDUMP_MAGIC && magic != JITDUMP_MAGIC_OTHER)
		return parse_fail(err, -EBADMSG, "not a jitdump", 0);
	p->swap = magic == JITDUMP_MAGIC_OTHER;
	if (get_u32(p, head + 4) != JITDUMP_VERSION)
		return parse_fail(err, -ENOTSUP, "a jitdump of another version", 4);
	bytes = get_u32(p, head + 8);
	if (bytes < JITDUMP_HEADER_BYTES)
		return parse_fail(err, -EBADMSG, "the header of the jitdump is too short", 8);
	p->v8 = get_u32(p, head + 16) == JITDUMP_V8_PAD;
	p->stats.pid = get_u32(p, head + 20);
	p->stats.untimed = get_u64(p, head + 32) & JITDUMP_ARCH_TIMESTAMP;
	*ret_at = bytes;
	return 0;
}

/* Drops the waiting table, which fits no method. */
static void jitdump_drop_table(struct jitdump_parser *p)
{
	if (p->table.n)
		p->dump->rows.len = p->table.first;
	p->table = (struct jitdump_table){0};
}

/* Gives the waiting table to a method, if its start and addresses fit. */
static int jitdump_attach_table(struct jitdump_parser *p, const struct jit_method *method,
				uint32_t id)
{
	struct jitdump *d = p->dump;
	struct jitdump_table table = p->table;

	if (!table.n)
		return 0;
	for (uint32_t i = 0; i < table.n; i++)
		if (p->table_start != method->start ||
		    d->rows.v[table.first + i].off >= method->bytes) {
			p->stats.bad_tables++;
			return 0;
		}
	p->table = (struct jitdump_table){0};
	p->stats.lines += table.n;
	while (d->table_of.len <= id)
		if (vec_push(&d->table_of, 0))
			return -ENOMEM;
	d->table_of.v[id] = (uint32_t)d->tables.len + 1;
	return vec_push(&d->tables, table);
}

/*
 * The functions below handle one record: at and n are its place and bytes without the head. Returns
 * 0; -EBADMSG: a bad record; -ENOMEM; -errno of reading.
 */
static int jitdump_code_load(struct jitdump_parser *p, uint64_t at, uint64_t n, uint64_t time_ns)
{
	const uint8_t *fixed =
		n < JITDUMP_LOAD_BYTES ? NULL : input_read_at(&p->in, at, JITDUMP_LOAD_BYTES);
	struct jit_method method = {.source = SYMBOL_JITDUMP,
				    .from_ns = p->stats.untimed ? 0 : time_ns,
				    .until_ns = UINT64_MAX};
	uint32_t id = (uint32_t)jit_methods_count(p->methods, SYMBOL_JITDUMP);
	uint64_t bytes, index, max = n - JITDUMP_LOAD_BYTES;
	const uint8_t *name;
	size_t len;
	int r;

	if (!fixed)
		return p->in.error ? p->in.error : -EBADMSG;
	method.start = get_u64(p, fixed + 16);
	bytes = get_u64(p, fixed + 24);
	index = get_u64(p, fixed + 32);
	p->stats.loads++;
	/* Functions without code are allowed. */
	if (!bytes)
		return 0;
	if (bytes > max || bytes > UINT32_MAX)
		return -EBADMSG;
	max -= bytes;
	if (max > JIT_METHODS_NAME_MAX + 1)
		max = JIT_METHODS_NAME_MAX + 1;
	name = input_read_at(&p->in, at + JITDUMP_LOAD_BYTES, (size_t)max);
	if (!name)
		return p->in.error ? p->in.error : -EBADMSG;
	len = strnlen((const char *)name, (size_t)max);
	if (!len)
		return -EBADMSG;
	method.bytes = (uint32_t)bytes;
	method.name = (const char *)name;
	method.len = (uint32_t)len;
	r = jit_methods_add(p->methods, &method);
	if (!r)
		r = hashmap_put(&p->by_index, index, id);
	return r ? r : jitdump_attach_table(p, &method, id);
}

static int jitdump_code_move(struct jitdump_parser *p, uint64_t at, uint64_t n, uint64_t time_ns)
{
	const uint8_t *fixed =
		n < JITDUMP_MOVE_BYTES ? NULL : input_read_at(&p->in, at, JITDUMP_MOVE_BYTES);
	uint32_t id = (uint32_t)jit_methods_count(p->methods, SYMBOL_JITDUMP), *known, old;
	uint64_t from, to;
	int r;

	if (!fixed)
		return p->in.error ? p->in.error : -EBADMSG;
	from = get_u64(p, fixed + 16);
	to = get_u64(p, fixed + 24);
	p->stats.moves++;
	known = hashmap_get(&p->by_index, get_u64(p, fixed + 40));
	if (!known || jit_methods_get(p->methods, SYMBOL_JITDUMP, *known)->start != from)
		return -EBADMSG;
	old = *known;
	*known = id;
	r = jit_methods_move(p->methods, SYMBOL_JITDUMP, old, to, p->stats.untimed ? 0 : time_ns);
	if (r) {
		*known = old;
		return r;
	}
	if (old >= p->dump->table_of.len || !p->dump->table_of.v[old])
		return 0;
	while (p->dump->table_of.len <= id)
		if (vec_push(&p->dump->table_of, 0))
			return -ENOMEM;
	p->dump->table_of.v[id] = p->dump->table_of.v[old];
	return 0;
}

/* Takes `each` bytes for rows beyond *taken. The memory of dropped tables is used again. */
static bool jitdump_take(struct jitdump_parser *p, size_t *taken, size_t rows, size_t each)
{
	size_t more = rows > *taken ? rows - *taken : 0;

	if (!jit_il_take(jit_methods_il(p->methods), more * each))
		return false;
	*taken += more;
	return true;
}

/*
 * Sorts entries, which only odd writers leave unsorted. Entries of equal address keep their order.
 * Returns 0; -EBADMSG: over a limit; -ENOMEM.
 */
static int jitdump_sort_rows(struct jitdump_parser *p, struct jitdump_row *rows, uint32_t n)
{
	AUTO_FREE struct jitdump_row *copy = NULL;
	AUTO_FREE uint64_t *keys = NULL;
	AUTO_FREE uint32_t *ids = NULL;
	bool sorted = true;

	for (uint32_t i = 1; i < n; i++)
		sorted &= rows[i - 1].off <= rows[i].off;
	if (sorted)
		return 0;
	if (!jitdump_take(p, &p->dump->sort_taken, n, JITDUMP_SORT_MEMORY))
		return -EBADMSG;
	copy = calloc(n, sizeof(*copy));
	keys = calloc(n, sizeof(*keys));
	ids = calloc(n, sizeof(*ids));
	if (!copy || !keys || !ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		copy[i] = rows[i];
		keys[i] = rows[i].off;
	}
	if (radix_sort(keys, n, ids))
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		rows[i] = copy[ids[i]];
	return 0;
}

/*
 * Interns a file name. Names of dropped tables stay, so names have a limit of their own. Returns 0;
 * -EBADMSG: over a limit; -ENOMEM.
 */
static int jitdump_intern_file(struct jitdump_parser *p, const char *name, size_t len,
			       uint32_t *ret_file)
{
	struct jitdump *d = p->dump;

	if (!intern_find(&d->files, name, len, ret_file))
		return 0;
	if (d->files.len >= JITDUMP_FILES_MAX || len > JITDUMP_FILES_BYTES_MAX - d->file_bytes ||
	    !jit_il_take(jit_methods_il(p->methods), JITDUMP_NAME_MEMORY + len))
		return -EBADMSG;
	d->file_bytes += len;
	return intern_put(&d->files, name, len, ret_file);
}

/* Reads one entry at *at. row->off is relative to start. */
static int jitdump_entry(struct jitdump_parser *p, uint64_t *at, uint64_t end, uint64_t start,
			 uint32_t file, struct jitdump_row *ret_row)
{
	uint64_t left = end - *at, addr;
	struct jitdump_row row;
	const uint8_t *entry;
	const char *name;
	size_t max, len;
	int r = 0;

	if (left <= JITDUMP_ENTRY_BYTES)
		return -EBADMSG;
	max = left - JITDUMP_ENTRY_BYTES < JITDUMP_FILE_MAX ? (size_t)(left - JITDUMP_ENTRY_BYTES)
							    : JITDUMP_FILE_MAX;
	entry = input_read_at(&p->in, *at, JITDUMP_ENTRY_BYTES + max);
	if (!entry)
		return p->in.error ? p->in.error : -EBADMSG;
	addr = get_u64(p, entry) - (p->v8 ? JITDUMP_V8_TEXT : 0);
	row.line = get_u32(p, entry + 8);
	row.discriminator = get_u32(p, entry + 12);
	name = (const char *)entry + JITDUMP_ENTRY_BYTES;
	len = strnlen(name, max);
	if (len == max || addr < start || addr - start > UINT32_MAX)
		return -EBADMSG;
	row.off = (uint32_t)(addr - start);
	row.file = file;
	if (len != 1 || name[0] != '\xff')
		r = jitdump_intern_file(p, name, len, &row.file);
	else if (file == UINT32_MAX)
		return -EBADMSG;
	*at += JITDUMP_ENTRY_BYTES + len + 1;
	*ret_row = row;
	return r;
}

static int jitdump_debug_info(struct jitdump_parser *p, uint64_t at, uint64_t n)
{
	const uint8_t *fixed =
		n < JITDUMP_DEBUG_BYTES ? NULL : input_read_at(&p->in, at, JITDUMP_DEBUG_BYTES);
	struct jitdump *d = p->dump;
	uint64_t start, entries, end = at + n;
	uint32_t file = UINT32_MAX;
	int r = 0;

	/* If two tables come before one load, the second one counts, as in perf. */
	jitdump_drop_table(p);
	p->table = (struct jitdump_table){.first = (uint32_t)d->rows.len};
	if (!fixed)
		return p->in.error ? p->in.error : -EBADMSG;
	start = get_u64(p, fixed);
	entries = get_u64(p, fixed + 8);
	if (entries > n / JITDUMP_ENTRY_BYTES || entries > JITDUMP_LINES_MAX - d->rows.len ||
	    !jitdump_take(p, &d->rows_taken, d->rows.len + entries, sizeof(*d->rows.v)))
		r = -EBADMSG;
	at += JITDUMP_DEBUG_BYTES;
	for (uint64_t i = 0; i < entries && !r; i++) {
		struct jitdump_row row;

		r = jitdump_entry(p, &at, end, start, file, &row);
		if (!r)
			r = vec_push(&d->rows, row);
		file = r ? file : row.file;
	}
	if (r) {
		d->rows.len = p->table.first;
		return r;
	}
	p->table.n = (uint32_t)(d->rows.len - p->table.first);
	p->table_start = start;
	r = p->table.n ? jitdump_sort_rows(p, d->rows.v + p->table.first, p->table.n) : 0;
	if (r)
		jitdump_drop_table(p);
	return r;
}

static int jitdump_record(struct jitdump_parser *p, uint32_t type, uint64_t at, uint64_t n,
			  uint64_t time_ns)
{
	int r;

	p->stats.records++;
	p->stats.closed = type == JITDUMP_CODE_CLOSE;
	switch (type) {
	case JITDUMP_CODE_LOAD:
		r = jitdump_code_load(p, at, n, time_ns);
		/* In any case the next load has a table of its own. */
		jitdump_drop_table(p);
		return r;
	case JITDUMP_CODE_MOVE:
		return jitdump_code_move(p, at, n, time_ns);
	case JITDUMP_DEBUG_INFO:
		return jitdump_debug_info(p, at, n);
	case JITDUMP_CODE_CLOSE:
	case JITDUMP_UNWINDING_INFO:
		return 0;
	default:
		p->stats.unknown++;
		return 0;
	}
}

static int jitdump_records(struct jitdump_parser *p, uint64_t at, struct parse_error *err)
{
	size_t most = jit_methods_refused_count(p->methods) + JITDUMP_REFUSED_MAX;

	while (at < p->in.len) {
		const uint8_t *head = input_read_at(&p->in, at, JITDUMP_RECORD_BYTES);
		uint64_t bytes, time_ns;
		uint32_t type;
		int r;

		p->stats.cut = !head;
		if (!head)
			return p->in.error ? parse_fail(err, p->in.error,
							"the jitdump cannot be read", at)
					   : 0;
		type = get_u32(p, head);
		bytes = get_u32(p, head + 4);
		time_ns = get_u64(p, head + 8);
		/*
		 * Behind a record without a valid length no other record can be found. Behind a
		 * part of a record none exists.
		 */
		p->stats.cut = bytes < JITDUMP_RECORD_BYTES || bytes > p->in.len - at ||
			       jit_methods_refused_count(p->methods) >= most;
		if (p->stats.cut)
			return 0;
		r = jitdump_record(p, type, at + JITDUMP_RECORD_BYTES, bytes - JITDUMP_RECORD_BYTES,
				   time_ns);
		if (p->in.error || r == -ENOMEM) {
			p->stats.cut = true;
			return parse_fail(err, p->in.error ? p->in.error : r,
					  "the jitdump cannot be read", at);
		}
		*(type == JITDUMP_DEBUG_INFO ? &p->stats.bad_tables : &p->stats.bad) += r != 0;
		p->stats.last_ns = time_ns;
		at += bytes;
	}
	return 0;
}

static int jitdump_read(struct jitdump_parser *p, struct jitdump **ret_dump,
			struct jitdump_stats *ret_stats, struct parse_error *err)
{
	uint64_t at = 0;
	int r;

	p->dump = calloc(1, sizeof(*p->dump));
	r = p->dump ? jitdump_read_header(p, &at, err) : -ENOMEM;
	if (!r)
		r = jitdump_records(p, at, err);
	hashmap_free(&p->by_index);
	if (r || !ret_dump)
		jitdump_free(p->dump);
	else
		*ret_dump = p->dump;
	*ret_stats = p->stats;
	return r;
}

int jitdump_parse(const void *data, size_t len, struct jit_methods *m, struct jitdump **ret_dump,
		  struct jitdump_stats *ret_stats, struct parse_error *err)
{
	struct jitdump_parser p = {.in = {.data = data, .len = len}, .methods = m};

	return jitdump_read(&p, ret_dump, ret_stats, err);
}

/* Checks the file and prepares a parser that reads it through window. */
static int jitdump_begin(int fd, uint8_t *window, struct jitdump_parser *ret_parser,
			 struct parse_error *err)
{
	struct stat st;

	if (!window)
		return -ENOMEM;
	if (fstat(fd, &st))
		return parse_fail(err, -errno, "the jitdump cannot be read", 0);
	if (!S_ISREG(st.st_mode))
		return parse_fail(err, -EBADMSG, "not a regular file", 0);
	if ((uint64_t)st.st_size > JITDUMP_BYTES_MAX)
		return parse_fail(err, -E2BIG, "the jitdump is too large", 0);
	ret_parser->in =
		(struct jitdump_input){.fd = fd, .window = window, .len = (uint64_t)st.st_size};
	return 0;
}

int jitdump_load(int fd, struct jit_methods *m, struct jitdump **ret_dump,
		 struct jitdump_stats *ret_stats, struct parse_error *err)
{
	AUTO_FREE uint8_t *window = malloc(JITDUMP_WINDOW);
	struct jitdump_parser p = {.methods = m};
	int r = jitdump_begin(fd, window, &p, err);

	*ret_stats = p.stats;
	return r ? r : jitdump_read(&p, ret_dump, ret_stats, err);
}

int jitdump_peek(int fd, struct jitdump_stats *ret_stats)
{
	AUTO_FREE uint8_t *window = malloc(JITDUMP_WINDOW);
	struct jitdump_parser p = {0};
	uint64_t at;
	int r = jitdump_begin(fd, window, &p, NULL);

	if (!r)
		r = jitdump_read_header(&p, &at, NULL);
	if (!r)
		*ret_stats = p.stats;
	return r;
}

bool jitdump_has_lines(const struct jitdump *d)
{
	return d->rows.len > 0;
}

int jitdump_line(const struct jitdump *d, const struct jit_methods_result *result, uint64_t addr,
		 struct jitdump_line *ret_line)
{
	const struct jitdump_table *table;
	const struct jitdump_row *rows;
	uint32_t low = 0, high;

	if (!result->method || result->id >= d->table_of.len || !d->table_of.v[result->id] ||
	    addr < result->method->start)
		return -ENOENT;
	table = &d->tables.v[d->table_of.v[result->id] - 1];
	rows = d->rows.v + table->first;
	high = table->n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (rows[mid].off <= addr - result->method->start)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return -ENOENT;
	*ret_line = (struct jitdump_line){intern_text(&d->files, rows[low - 1].file),
					  rows[low - 1].line, rows[low - 1].discriminator};
	return 0;
}

bool jitdump_is_name(const char *path, uint32_t *ret_pid)
{
	const char *base = path_base(path);
	unsigned long long pid;
	char *end;

	if (strncmp(base, "jit-", 4) || base[4] < '0' || base[4] > '9')
		return false;
	errno = 0;
	pid = strtoull(base + 4, &end, 10);
	if (errno || pid > INT32_MAX || (strcmp(end, ".dump") && strcmp(end, ".dump (deleted)")))
		return false;
	*ret_pid = (uint32_t)pid;
	return true;
}
