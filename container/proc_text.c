#include "container/proc_text.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

bool proc_number(const char **p, unsigned base, uint64_t *ret)
{
	const char *s = *p;
	uint64_t x = 0;

	for (;; s++) {
		unsigned c = (unsigned char)*s, digit;

		if (c - '0' < 10)
			digit = c - '0';
		else if (base == 16 && (c | 32) - 'a' < 6)
			digit = (c | 32) - 'a' + 10;
		else
			break;
		if (x > (UINT64_MAX - digit) / base)
			return false;
		x = x * base + digit;
	}
	if (s == *p)
		return false;
	*p = s;
	*ret = x;
	return true;
}

static bool proc_char(const char **p, char c)
{
	if (**p != c)
		return false;
	++*p;
	return true;
}

static bool proc_map_perms(const char **p, struct proc_map *m)
{
	const char *s = *p;

	if (!memchr("r-", s[0], 2) || !memchr("w-", s[1], 2) || !memchr("x-", s[2], 2) ||
	    !memchr("ps", s[3], 2))
		return false;
	m->prot = (s[0] == 'r' ? PROT_READ : 0) | (s[1] == 'w' ? PROT_WRITE : 0) |
		  (s[2] == 'x' ? PROT_EXEC : 0);
	m->flags = s[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*p += 4;
	return true;
}

/* Restores newlines that the kernel wrote as "\012", in place. Returns the new length. */
static size_t proc_unescape(char *path, size_t len)
{
	char *to = memchr(path, '\\', len), *end = path + len;

	if (!to)
		return len;
	for (char *from = to; from < end;) {
		if (end - from >= 4 && !memcmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
	return (size_t)(to - path);
}

/* Parses "start-end perms pgoff maj:min ino   path". *end is NUL instead of a newline. */
static bool proc_map_parse(char *line, char *end, struct proc_map *m)
{
	const char *p = line;
	uint64_t maj, min;

	if (!proc_number(&p, 16, &m->start) || !proc_char(&p, '-') ||
	    !proc_number(&p, 16, &m->end) || !proc_char(&p, ' ') || end - p < 5 ||
	    !proc_map_perms(&p, m) || !proc_char(&p, ' ') || !proc_number(&p, 16, &m->pgoff) ||
	    !proc_char(&p, ' ') || !proc_number(&p, 16, &maj) || !proc_char(&p, ':') ||
	    !proc_number(&p, 16, &min) || !proc_char(&p, ' ') || !proc_number(&p, 10, &m->ino) ||
	    m->start >= m->end || maj > UINT32_MAX || min > UINT32_MAX)
		return false;
	while (*p == ' ')
		p++;
	char *path = line + (p - line);

	m->maj = (uint32_t)maj;
	m->min = (uint32_t)min;
	m->path_len = proc_unescape(path, (size_t)(end - path));
	m->path = path;
	return true;
}

int proc_map_next(char **cursor, struct proc_map *ret_map)
{
	struct proc_map m = {0};

	while (**cursor) {
		char *line = *cursor;
		char *end = strchrnul(line, '\n');

		*cursor = *end ? end + 1 : end;
		*end = 0;
		if (proc_map_parse(line, end, &m)) {
			*ret_map = m;
			return 1;
		}
	}
	return 0;
}

/* Decodes \n and \\ in the value of "Name:" (fs/proc/array.c, proc_task_name). */
static void proc_status_name(const char *p, char *comm)
{
	size_t n = 0;

	for (; *p && *p != '\n' && n + 1 < PROC_COMM_BYTES; p++) {
		if (*p == '\\' && p[1] == 'n') {
			comm[n++] = '\n';
			p++;
		} else {
			if (*p == '\\' && p[1] == '\\')
				p++;
			comm[n++] = *p;
		}
	}
	comm[n] = 0;
}

/*
 * Returns number `index` (from 0) of a line, or 0 if the line has fewer. *ret_count (may be NULL):
 * how many it has. A negative index returns the last number.
 */
static uint64_t proc_status_number(const char *p, int index, unsigned base, int *ret_count)
{
	uint64_t value = 0, x;
	int n = 0;

	for (;; n++) {
		while (*p == '\t' || *p == ' ')
			p++;
		if (!proc_number(&p, base, &x))
			break;
		if (n == index || index < 0)
			value = x;
	}
	if (ret_count)
		*ret_count = n;
	return value;
}

static struct proc_ids proc_status_ids(const char *p)
{
	return (struct proc_ids){(uint32_t)proc_status_number(p, 0, 10, NULL),
				 (uint32_t)proc_status_number(p, 1, 10, NULL),
				 (uint32_t)proc_status_number(p, 2, 10, NULL),
				 (uint32_t)proc_status_number(p, 3, 10, NULL)};
}

static unsigned proc_status_line(const char *key, const char *value, struct proc_status *s)
{
	if (!strcmp(key, "Name")) {
		proc_status_name(value, s->comm);
	} else if (!strcmp(key, "State")) {
		s->state = *value;
	} else if (!strcmp(key, "Tgid")) {
		s->tgid = (pid_t)proc_status_number(value, 0, 10, NULL);
	} else if (!strcmp(key, "Pid")) {
		s->pid = (pid_t)proc_status_number(value, 0, 10, NULL);
		return PROC_STATUS_PID;
	} else if (!strcmp(key, "PPid")) {
		s->ppid = (pid_t)proc_status_number(value, 0, 10, NULL);
	} else if (!strcmp(key, "Uid")) {
		s->uids = proc_status_ids(value);
		s->uid = s->uids.effective;
	} else if (!strcmp(key, "Gid")) {
		s->gids = proc_status_ids(value);
	} else if (!strcmp(key, "NSpid")) {
		s->ns_pid = (pid_t)proc_status_number(value, -1, 10, &s->ns_depth);
		return PROC_STATUS_NSPID;
	} else if (!strcmp(key, "Kthread")) {
		s->kernel_thread = *value == '1';
		return PROC_STATUS_KTHREAD;
	} else if (!strcmp(key, "VmSize")) {
		return PROC_STATUS_VM;
	} else if (!strcmp(key, "Threads")) {
		s->threads = (int)proc_status_number(value, 0, 10, NULL);
	} else if (!strcmp(key, "CapEff")) {
		s->cap_effective = proc_status_number(value, 0, 16, NULL);
	} else if (!strcmp(key, "CapPrm")) {
		s->cap_permitted = proc_status_number(value, 0, 16, NULL);
	} else if (!strcmp(key, "Seccomp")) {
		s->seccomp = (int)proc_status_number(value, 0, 10, NULL);
	} else if (!strcmp(key, "NoNewPrivs")) {
		s->no_new_privs = *value == '1';
	}
	return 0;
}

unsigned proc_status_scan(const char *text, struct proc_status *s)
{
	unsigned seen = 0;

	while (*text) {
		const char *end = strchrnul(text, '\n');
		const char *colon = memchr(text, ':', (size_t)(end - text));
		char key[24];

		if (colon && (size_t)(colon - text) < sizeof(key)) {
			memcpy(key, text, (size_t)(colon - text));
			key[colon - text] = 0;
			for (colon++; *colon == '\t' || *colon == ' ';)
				colon++;
			seen |= proc_status_line(key, colon, s);
		}
		text = *end ? end + 1 : end;
	}
	/* Linux before 4.1 has no NSpid. */
	if (!(seen & PROC_STATUS_NSPID) || !s->ns_depth) {
		s->ns_pid = s->pid;
		s->ns_depth = 1;
	}
	return seen;
}

int proc_status_parse(const char *text, struct proc_status *ret_status)
{
	struct proc_status s = {.seccomp = -1};

	if (!(proc_status_scan(text, &s) & PROC_STATUS_PID))
		return -EBADMSG;
	*ret_status = s;
	return 0;
}

int proc_stat_field(const char *text, int n, uint64_t *ret_value)
{
	/*
	 * The name in field 2 may contain any text, even " )". Therefore parse from the last ')'.
	 */
	const char *p = strrchr(text, ')');

	if (!p)
		return -EBADMSG;
	p++;
	for (int i = 3;; i++) {
		while (*p == ' ')
			p++;
		if (!*p || *p == '\n')
			return -EBADMSG;
		if (i == n)
			break;
		p += strcspn(p, " \n");
	}
	return proc_number(&p, 10, ret_value) ? 0 : -EBADMSG;
}

int proc_auxv_find(const void *auxv, size_t len, size_t word, uint64_t type, uint64_t *ret_value)
{
	const unsigned char *at = auxv;

	for (size_t i = 0; i + 2 * word <= len; i += 2 * word) {
		uint64_t pair[2] = {0};

		memcpy(&pair[0], at + i, word);
		memcpy(&pair[1], at + i + word, word);
		if (pair[0] != type)
			continue;
		*ret_value = pair[1];
		return 0;
	}
	return -ENOENT;
}

size_t proc_auxv_word(const void *auxv, size_t len)
{
	uint64_t bytes;

	if (!proc_auxv_find(auxv, len, 8, AT_PHENT, &bytes) && bytes == sizeof(Elf64_Phdr))
		return 8;
	if (!proc_auxv_find(auxv, len, 4, AT_PHENT, &bytes) && bytes == sizeof(Elf32_Phdr))
		return 4;
	return 0;
}
