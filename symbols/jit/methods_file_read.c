#include "symbols/jit/methods_file_impl.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/holes.h"
#include "symbols/store/store_fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct jit_parser {
	struct jit_methods *methods;
	struct jit_methods_file file;
	uint64_t prev_scan_ns, scan_ns; /* times of the last two scans */
	bool scanned, partial;          /* partial: the last scan was not finished */
	bool begun;                     /* the first line was read */
	bool skips;                     /* the present line is too long */
	size_t modules;                 /* number of modules in the programs before this one */
};

static int jit_parse_pid(char **p, pid_t *ret_pid)
{
	const char *field = store_text_field(p);
	char *end;
	long pid;

	if (!field || *field < '0' || *field > '9')
		return -EBADMSG;
	errno = 0;
	pid = strtol(field, &end, 10);
	if (errno || *end || pid > INT32_MAX)
		return -EBADMSG;
	*ret_pid = (pid_t)pid;
	return 0;
}

static int jit_parse_process(struct jit_parser *s, char *p)
{
	struct jit_methods_file file = s->file;
	uint64_t time_ns;

	if (jit_parse_pid(&p, &file.pid) || jit_parse_pid(&p, &file.ns_pid) ||
	    store_text_hex(&p, &file.start_ticks) || store_text_hex(&p, &time_ns))
		return -EBADMSG;
	if (s->file.pid) {
		jit_methods_end_all(s->methods, time_ns);
		/* Code found next did not exist before: it is another program's. */
		s->scan_ns = time_ns;
		s->scanned = true;
		s->partial = false;
	}
	file.version[0] = file.way[0] = file.why[0] = '\0';
	s->modules = jit_il_modules(jit_methods_il(s->methods));
	s->file = file;
	return 0;
}

/* Reads the rest of a line, which is one text. */
static int jit_parse_text(char *p, char *text, size_t bytes)
{
	size_t len;

	if (store_text_name(p, &len))
		return -EBADMSG;
	snprintf(text, bytes, "%s", p);
	return 0;
}

static int jit_parse_scan(struct jit_parser *s, char *p)
{
	uint64_t time_ns;

	if (store_text_hex(&p, &time_ns))
		return -EBADMSG;
	if (!s->partial)
		s->prev_scan_ns = s->scanned ? s->scan_ns : 0;
	s->scan_ns = time_ns;
	s->scanned = true;
	s->partial = false;
	return 0;
}

/* Reads "found" and, with times of its own, "add". */
static int jit_parse_method(struct jit_parser *s, char *p, struct jit_method *method)
{
	uint64_t bytes;
	size_t len;
	int r;

	if (store_text_hex(&p, &method->start) || store_text_hex(&p, &bytes) || bytes > UINT32_MAX)
		return -EBADMSG;
	method->source = store_text_source(store_text_field(&p));
	r = store_text_name(p, &len);
	if (r || len > UINT32_MAX)
		return -EBADMSG;
	method->bytes = (uint32_t)bytes;
	method->until_ns = UINT64_MAX;
	method->name = p;
	method->len = (uint32_t)len;
	return jit_methods_add(s->methods, method);
}

/* jit_methods_end or jit_methods_doubt. */
typedef int jit_until_fn(struct jit_methods *m, enum symbol_source source, uint64_t start,
			 uint64_t time_ns);

static int jit_parse_end(struct jit_parser *s, char *p, uint64_t time_ns, jit_until_fn *until)
{
	enum symbol_source source;
	uint64_t start;

	if (store_text_hex(&p, &start))
		return -EBADMSG;
	source = store_text_source(store_text_field(&p));
	return until(s->methods, source, start, time_ns);
}

static int jit_parse_id(const char *hex, unsigned char *id)
{
	for (size_t i = 0; i < JIT_IL_ID_BYTES; i++, hex += 2) {
		int high = store_text_digit(hex[0]), low = high < 0 ? -1 : store_text_digit(hex[1]);

		if (low < 0)
			return -EBADMSG;
		id[i] = (unsigned char)(high << 4 | low);
	}
	return *hex ? -EBADMSG : 0;
}

static int jit_parse_module(struct jit_parser *s, char *p)
{
	struct jit_il *il = jit_methods_il(s->methods);
	struct jit_il_module module = {.path = NULL};
	const char *kind, *id;
	uint64_t number;
	uint32_t fresh;
	size_t len;

	if (store_text_hex(&p, &number) || number != jit_il_modules(il) - s->modules ||
	    !(kind = store_text_field(&p)) || !(id = store_text_field(&p)))
		return -EBADMSG;
	if (!strcmp(kind, jit_id_kinds[JIT_IL_MVID]))
		module.kind = JIT_IL_MVID;
	else if (!strcmp(kind, jit_id_kinds[JIT_IL_PDB]))
		module.kind = JIT_IL_PDB;
	if ((module.kind && jit_parse_id(id, module.id)) || store_text_name(p, &len))
		return -EBADMSG;
	module.path = p;
	return jit_il_add_module(il, &module, &fresh);
}

static int jit_parse_il(struct jit_parser *s, char *p)
{
	uint64_t start, module, rid;
	enum symbol_source source;
	uint32_t map = 0;

	if (store_text_hex(&p, &start))
		return -EBADMSG;
	source = store_text_source(store_text_field(&p));
	if (store_text_hex(&p, &module) || store_text_hex(&p, &rid) ||
	    module > JIT_IL_MODULES_MAX || rid > UINT32_MAX)
		return -EBADMSG;
	int r = jit_il_add(jit_methods_il(s->methods), (uint32_t)(module + s->modules),
			   (uint32_t)rid, p, &map);

	return r ? r : jit_methods_set_il(s->methods, source, start, map);
}

/* Reads one line. Returns 0, -ENOMEM; anything else: a bad line. */
static int jit_parse_line(struct jit_parser *s, char *p)
{
	struct jit_method method = {0};
	const char *word = store_text_field(&p);
	uint64_t time_ns;

	if (!word)
		return 0;
	if (!strcmp(word, "found")) {
		method.from_ns = s->prev_scan_ns;
		method.sure_ns = s->scan_ns;
		return s->scanned ? jit_parse_method(s, p, &method) : -EBADMSG;
	}
	if (!strcmp(word, "doubt"))
		return store_text_hex(&p, &time_ns)
			       ? -EBADMSG
			       : jit_parse_end(s, p, time_ns, jit_methods_doubt);
	if (!strcmp(word, "lost"))
		return s->scanned ? jit_parse_end(s, p, s->scan_ns, jit_methods_end) : -EBADMSG;
	if (!strcmp(word, "scan"))
		return jit_parse_scan(s, p);
	if (!strcmp(word, "partial")) {
		s->partial = s->scanned;
		return s->scanned ? 0 : -EBADMSG;
	}
	if (!strcmp(word, "add"))
		return store_text_hex(&p, &method.from_ns) ? -EBADMSG
							   : jit_parse_method(s, p, &method);
	if (!strcmp(word, "gone"))
		return store_text_hex(&p, &time_ns) ? -EBADMSG
						    : jit_parse_end(s, p, time_ns, jit_methods_end);
	if (!strcmp(word, "il"))
		return jit_parse_il(s, p);
	if (!strcmp(word, "module"))
		return jit_parse_module(s, p);
	if (!strcmp(word, "process"))
		return jit_parse_process(s, p);
	if (!strcmp(word, "way"))
		return jit_parse_text(p, s->file.way, sizeof(s->file.way));
	if (!strcmp(word, "why"))
		return jit_parse_text(p, s->file.why, sizeof(s->file.why));
	return strcmp(word, "runtime")
		       ? -EBADMSG
		       : jit_parse_text(p, s->file.version, sizeof(s->file.version));
}

/* Reads the first line. 0: methods may follow; 1: the file ends within it. */
static int jit_parse_head(const char *text, size_t len, struct parse_error *err)
{
	size_t head = strlen(JIT_FILE_HEAD), n = len < head ? len : head;

	if (strncmp(text, JIT_FILE_HEAD, n))
		return parse_fail(err, -EBADMSG, "no file of methods", 0);
	if (!memchr(text, '\n', len))
		return 1;
	return atoi(text + head) == JIT_FILE_FORMAT
		       ? 0
		       : parse_fail(err, -ENOTSUP, "a file of methods of another version", head);
}

/* Reads the whole lines of a part of the file. *ret_used: their bytes. Returns as the file's. */
static int jit_parse_lines(struct jit_parser *s, char *text, size_t len, size_t *ret_used,
			   struct parse_error *err)
{
	char *line = text, *end = text + len, *newline;
	int r = s->begun ? 0 : jit_parse_head(text, len, err);

	if (r < 0)
		return r;
	if (!s->begun && !r) {
		s->begun = true;
		line = (char *)memchr(text, '\n', len) + 1;
	}
	while (!r && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		*newline = '\0';
		s->file.lines++;
		r = s->skips || strlen(line) != (size_t)(newline - line) ? -EBADMSG
									 : jit_parse_line(s, line);
		if (r == -ENOMEM)
			return r;
		s->file.bad_lines += r != 0;
		s->skips = false;
		line = newline + 1;
		r = 0;
	}
	*ret_used = (size_t)(line - text);
	return 0;
}

int jit_methods_parse(char *text, size_t len, struct jit_methods *m,
		      struct jit_methods_file *ret_file, struct parse_error *err)
{
	struct jit_parser s = {.methods = m};
	size_t used = 0;
	int r = jit_parse_lines(&s, text, len, &used, err);

	if (r)
		return r;
	s.file.cut = !s.begun || used < len;
	*ret_file = s.file;
	return 0;
}

/* Reads the file through a buffer that holds the longest line. Returns as the file's. */
static int jit_parse_fd(struct jit_parser *s, int fd, uint64_t size, struct parse_error *err)
{
	size_t room = size < JIT_FILE_READ_BYTES ? (size_t)size : JIT_FILE_READ_BYTES, have = 0;
	AUTO_FREE char *text = malloc(room + 1);

	if (!text)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	for (uint64_t at = 0; at < size;) {
		size_t n = size - at < room - have ? (size_t)(size - at) : room - have, used = 0;
		int r = file_pread_all(fd, text + have, n, at);

		if (r)
			return parse_fail(err, r, "the file of methods cannot be read", at);
		at += n;
		have += n;
		text[have] = '\0';
		r = jit_parse_lines(s, text, have, &used, err);
		if (r)
			return r;
		if (!used && have == room) {
			s->skips = true;
			used = have;
		}
		have -= used;
		memmove(text, text + used, have);
	}
	s->file.cut = !s->begun || s->skips || have;
	return 0;
}

int jit_methods_read(int dir_fd, pid_t pid, struct jit_methods *m,
		     struct jit_methods_file *ret_file, struct parse_error *err)
{
	struct jit_parser s = {.methods = m};
	char name[JIT_FILE_NAME_BYTES];
	AUTO_CLOSE int fd = -1;
	struct stat st;

	jit_file_name(pid, name);
	int r = file_open_regular(dir_fd, name, &fd);

	if (!r && fstat(fd, &st))
		r = -errno;
	if (!r && (uint64_t)st.st_size > JIT_METHODS_FILE_BYTES_MAX)
		r = -E2BIG;
	if (!r && holes_is_sparse(fd))
		r = -EBADMSG;
	if (r)
		return parse_fail(err, r, "the file of methods cannot be read", 0);
	r = jit_parse_fd(&s, fd, (uint64_t)st.st_size, err);
	if (!r)
		*ret_file = s.file;
	return r;
}
