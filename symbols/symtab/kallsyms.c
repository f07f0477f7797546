#include "symbols/symtab/kallsyms.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "symbols/symtab/symtab.h"
#include "symbols/symtab/symtab_finish.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KALLSYMS_BYTES_MAX ((size_t)256 << 20)
#define LINE_BYTES 40 /* lower estimate of a line's length */
#define KERNEL_DSO "[kernel.kallsyms]"

struct kallsyms {
	struct symbol_provider provider;
	struct symtab *table; /* names lie in text; a module's name follows its symbol's name */
	char *text;
};

enum group { GROUP_KERNEL, GROUP_MODULE };

static int kallsyms_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
			 struct symbol *ret_symbol)
{
	return symbol_provider_find(&((struct kallsyms *)p)->table->provider, addr, time_ns,
				    ret_symbol);
}

static uint32_t kallsyms_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	return symbol_provider_piece(&((const struct kallsyms *)p)->table->provider, addr, time_ns);
}

static void kallsyms_free(struct symbol_provider *p)
{
	struct kallsyms *k = (struct kallsyms *)p;

	if (k->table)
		symbol_provider_free(&k->table->provider);
	free(k->text);
	free(k);
}

static const struct symbol_provider_ops kallsyms_ops = {
	.name = "kallsyms",
	.find = kallsyms_find,
	.piece = kallsyms_piece,
	.free = kallsyms_free,
};

const char *kallsyms_module(struct symbol_provider *kernel, uint64_t addr)
{
	const struct symtab_entry *e = symtab_entry_at(((struct kallsyms *)kernel)->table, addr);

	return e && e->group == GROUP_MODULE ? e->name + e->name_len + 1 : KERNEL_DSO;
}

uint64_t kallsyms_addr_of(const struct symbol_provider *kernel, const char *name)
{
	const struct symtab *t = ((const struct kallsyms *)kernel)->table;
	size_t len = strlen(name);

	for (size_t i = t->entries.len; i > 0; i--) {
		const struct symtab_entry *e = &t->entries.v[i - 1];

		if (e->name_len == len && !memcmp(e->name, name, len))
			return e->start;
	}
	return 0;
}

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One line, "ADDR TYPE NAME" or "ADDR TYPE NAME\t[MODULE]". */
struct line {
	uint64_t addr;
	char type;
	char *name;
	size_t name_len;
	bool has_module;
};

/* Split a line in place. False: another format. */
static bool split_line(char *p, char *end, struct line *ret_line)
{
	struct line l = {0};
	char *start = p;

	for (int digit; p < end && (digit = hex_digit((unsigned char)*p)) >= 0; p++)
		l.addr = l.addr << 4 | (uint64_t)digit;
	if (p == start || p - start > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	l.type = p[1];
	l.name = p + 3;
	if (end[-1] == '\r')
		end--;
	*end = 0;
	char *tab = memchr(l.name, '\t', (size_t)(end - l.name));

	if (tab) {
		*tab = 0;
		l.has_module = tab[1] == '[';
		end = tab;
	}
	l.name_len = strlen(l.name);
	*ret_line = l;
	return l.name_len > 0 && l.name_len <= SYMTAB_NAME_MAX && l.name + l.name_len == end;
}

/*
 * Select types as perf does (symbol_type__filter: text, weak, data, bss). '$' begins mapping
 * symbols of ARM modules.
 */
static bool wanted(const struct line *l)
{
	return l->type && strchr("tTwWdDbB", l->type) && l->name[0] != '$' &&
	       strcmp(l->name, "__entry_SYSCALL_64_trampoline");
}

static int add_line(struct symtab *t, const struct line *l)
{
	char lower = (char)(l->type | 0x20);

	return symtab_add(t,
			  &(struct symtab_entry){
				  .start = l->addr,
				  .end = l->addr,
				  .name = l->name,
				  .name_len = (uint32_t)l->name_len,
				  .source = SYMBOL_KALLSYMS,
				  .binding = l->type == 'W'  ? STB_WEAK
					     : l->type < 'a' ? STB_GLOBAL
							     : STB_LOCAL,
				  .type = lower == 't' || lower == 'w' ? STT_FUNC : STT_OBJECT,
				  .group = l->has_module ? GROUP_MODULE : GROUP_KERNEL,
			  },
			  0);
}

/* Fill the table from k->text. Cuts the text into lines and names. */
static int parse_lines(struct kallsyms *k, size_t len, struct parse_error *err)
{
	char *end = k->text + len, *eol;
	uint64_t any_addr = 0;
	size_t good = 0;

	for (char *p = k->text; p < end; p = eol + 1) {
		struct line l;

		eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			eol = end;
		if (!split_line(p, eol, &l))
			continue;
		good++;
		any_addr |= l.addr;
		int error = wanted(&l) ? add_line(k->table, &l) : 0;

		if (error)
			return error;
	}
	if (!good)
		return parse_fail(err, -EBADMSG, "no valid line in kallsyms", 0);
	if (!any_addr)
		return parse_fail(err, -EACCES, "kernel addresses are hidden", 0);
	return 0;
}

/* Take ownership of text, which has room for a NUL after len. */
static int kallsyms_take(char *text, size_t len, struct symbol_provider **ret_kernel,
			 struct parse_error *err)
{
	struct kallsyms *k = calloc(1, sizeof(*k));

	if (!k) {
		free(text);
		return -ENOMEM;
	}
	k->provider.ops = &kallsyms_ops;
	k->text = text;
	int error = symtab_new(&k->table);

	if (!error)
		error = symtab_reserve(k->table, len / LINE_BYTES);
	if (!error)
		error = parse_lines(k, len, err);
	if (!error)
		error = symtab_finish(k->table, 0);
	if (error) {
		kallsyms_free(&k->provider);
		return error;
	}
	*ret_kernel = &k->provider;
	return 0;
}

int kallsyms_parse(const char *text, size_t len, struct symbol_provider **ret_kernel,
		   struct parse_error *err)
{
	if (len > KALLSYMS_BYTES_MAX)
		return parse_fail(err, -E2BIG, "kallsyms is too large", 0);
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = 0;
	return kallsyms_take(copy, len, ret_kernel, err);
}

int kallsyms_load(struct symbol_provider **ret_kernel, struct parse_error *err)
{
	char *text;
	size_t len;
	int error = file_read_at(AT_FDCWD, "/proc/kallsyms", KALLSYMS_BYTES_MAX, &text, &len);

	if (error)
		return parse_fail(err, error, "cannot read /proc/kallsyms", 0);
	return kallsyms_take(text, len, ret_kernel, err);
}

int kallsyms_find_live(const char *name, uint64_t *ret_addr)
{
	AUTO_FREE char *line = NULL;
	FILE *f = fopen("/proc/kallsyms", "re");
	ssize_t len;
	size_t cap = 0;
	struct line l;
	int r = -ENOENT;

	if (!f)
		return -errno;
	while (r && (len = getline(&line, &cap, f)) > 0) {
		len -= line[len - 1] == '\n';
		if (!split_line(line, line + len, &l) || l.has_module || strcmp(l.name, name))
			continue;
		*ret_addr = l.addr;
		r = 0;
	}
	if (r && !feof(f))
		r = errno == ENOMEM ? -ENOMEM : -EIO;
	fclose(f);
	return r;
}
