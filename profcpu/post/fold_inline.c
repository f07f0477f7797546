#include "profcpu/post/fold_inline.h"

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/vec.h"
#include "elf/elf_file.h"
#include "elf/inlines.h"
#include "symbols/core/image_file.h"
#include "symbols/names/demangle.h"
#include "symbols/symtab/image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FOLD_INLINE_SYMTAB_MAX ((uint64_t)1 << 30) /* bytes of .symtab, and of its names */

struct fold_inline_module {
	struct inlines *inlines; /* NULL: no DWARF */
	struct image *image;     /* NULL: does not exist, or no ELF file */
	int fd;                  /* -1: does not exist */
};

struct fold_inline {
	bool context;
	struct opener *opener;
	struct intern paths;
	uint64_t denied; /* modules that may not be read, or are no regular files */
	VEC(struct fold_inline_module) modules; /* the index is the id of the path */
};

int post_fold_inline_new(bool context, struct fold_inline **ret_inline)
{
	struct fold_inline *in = calloc(1, sizeof(*in));

	if (!in)
		return -ENOMEM;
	in->context = context;
	int r = opener_new(&in->opener);

	if (r)
		free(in);
	else
		*ret_inline = in;
	return r;
}

void post_fold_inline_free(struct fold_inline *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->modules.len; i++) {
		struct fold_inline_module *m = &in->modules.v[i];

		inlines_free(m->inlines);
		image_free(m->image);
		if (m->fd >= 0)
			close(m->fd);
	}
	vec_free(&in->modules);
	intern_free(&in->paths);
	opener_free(in->opener);
	free(in);
}

void post_fold_inline_warn(const struct fold_inline *in)
{
	if (in->denied)
		log_warn("--inline: files not read: %llu; not regular, or permission denied%s",
			 (unsigned long long)in->denied,
			 getuid() ? ""
				  : "; root reads only files that everybody may read, so run it as "
				    "their user");
}

static bool fold_inline_has(struct script_part p, const char *text)
{
	return memmem(p.at, p.len, text, strlen(text)) != NULL;
}

/* Whether the name contains "perf-DIGITS", any byte, "map", as the script tests it. */
static bool fold_inline_is_map(struct script_part module)
{
	const char *p = module.at, *end = p + module.len;

	while ((p = memmem(p, (size_t)(end - p), "perf-", 5))) {
		const char *digits = p += 5;

		while (p < end && *p >= '0' && *p <= '9')
			p++;
		if (p > digits && end - p >= 4 && !memcmp(p + 1, "map", 3))
			return true;
	}
	return false;
}

static bool fold_inline_is_bracketed(struct script_part module)
{
	const char *open = memchr(module.at, '[', module.len);
	const char *close =
		open ? memchr(open, ']', module.len - (size_t)(open - module.at)) : NULL;

	return close && close > open + 1;
}

/* Whether stackcollapse-perf.pl would pass the module to addr2line. */
static bool fold_inline_is_wanted(struct script_part module)
{
	static const char shell[] = " \t\n\v\f\r'\"\\$`&|;<>()*?[]{}~#!";

	if (!module.len || *module.at == '-' || fold_inline_is_map(module) ||
	    fold_inline_has(module, "kernel.") || fold_inline_is_bracketed(module))
		return false;
	for (size_t i = 0; i < module.len; i++)
		if (!module.at[i] || strchr(shell, module.at[i]))
			return false;
	return true;
}

/* Opens the module at a path. A missing or unreadable one is not a failure. */
static int fold_inline_open(struct fold_inline *in, const char *path,
			    struct fold_inline_module *ret_module)
{
	struct fold_inline_module m = {.fd = -1};
	struct elf_file file = {.fd = -1};
	struct opener_place root = opener_named_place(in->opener);
	/* The text chose the path. perf writes absolute ones. */
	int r = *path == '/' ? opener_named_file(in->opener, path, IMAGE_FILE_BYTES_MAX, &m.fd)
			     : -ENOENT;

	in->denied += r == -EACCES || r == -EPERM;
	if (!r)
		r = elf_file_open(&file, m.fd, NULL, 0, NULL);
	if (!r)
		r = image_open(&file, path, &root, 1, &m.image);
	if (!r)
		r = inlines_open(&file, path, &root, 1, &m.inlines, NULL);
	elf_file_close(&file);
	*ret_module = m;
	return r == -ENOMEM ? r : 0;
}

static int fold_inline_module(struct fold_inline *in, struct script_part path,
			      struct fold_inline_module **ret_module)
{
	struct fold_inline_module m = {.fd = -1};
	uint32_t id;
	int r = intern_put(&in->paths, path.at, path.len, &id);

	if (!r && id >= in->modules.len) {
		r = vec_reserve(&in->modules, 1);
		if (r)
			return r;
		r = fold_inline_open(in, intern_text(&in->paths, id), &m);
		in->modules.v[in->modules.len++] = m;
	}
	if (!r)
		*ret_module = &in->modules.v[id];
	return r;
}

static void fold_inline_put(const struct fold_inline *in, const struct inline_frame *frame,
			    const char *raw, struct outbuf *out)
{
	char *demangled = demangle_full(raw);

	outbuf_str(out, demangled ? demangled : raw);
	free(demangled);
	if (!in->context)
		return;
	outbuf_printf(out, ":%s:", frame->file ? frame->file : "??");
	if (frame->line)
		outbuf_u64(out, frame->line);
	else
		outbuf_char(out, '?');
}

/* Writes the functions at vaddr, root first. -ENOENT: none is known. */
static int fold_inline_at(const struct fold_inline *in, const struct fold_inline_module *m,
			  uint64_t vaddr, struct outbuf *out)
{
	struct inline_frame frames[INLINES_DEPTH_MAX] = {{0}};
	struct symbol symbol;
	size_t n = 1;
	int r = m->inlines ? inlines_find(m->inlines, vaddr, frames, &n) : -ENOENT;

	if (r == -ENOMEM)
		return r;
	if (r)
		frames[0] = (struct inline_frame){0}, n = 1;
	if ((!frames[0].function || frames[0].is_unqualified) && m->image->symbols &&
	    !symbol_provider_find(m->image->symbols, vaddr, 0, &symbol))
		frames[0].function = symbol.name;
	if (!frames[0].function && !frames[0].file)
		return -ENOENT;
	for (size_t i = n; i-- > 0;) {
		fold_inline_put(in, &frames[i], frames[i].function ? frames[i].function : "??",
				out);
		if (i)
			outbuf_char(out, ';');
	}
	return out->error;
}

/* The value of the first symbol with that name in .symtab. 0 or -ENOENT. */
static int fold_inline_symbol(const struct elf_file *elf, struct script_part name,
			      uint64_t *ret_vaddr)
{
	const struct elf_section *table = elf_file_section(elf, ".symtab", SHT_SYMTAB);
	AUTO_FREE unsigned char *symbols = NULL;
	AUTO_FREE unsigned char *names = NULL;
	Elf64_Sym symbol;

	if (!elf->is_64 || !table || table->link >= elf->nsections)
		return -ENOENT;
	const struct elf_section *strings = &elf->sections[table->link];

	if (elf_file_read(elf, table->file_off, table->bytes, FOLD_INLINE_SYMTAB_MAX, &symbols) ||
	    elf_file_read(elf, strings->file_off, strings->bytes, FOLD_INLINE_SYMTAB_MAX, &names))
		return -ENOENT;
	for (uint64_t i = 0; i + sizeof(symbol) <= table->bytes; i += sizeof(symbol)) {
		memcpy(&symbol, symbols + i, sizeof(symbol));
		unsigned int type = ELF64_ST_TYPE(symbol.st_info);

		if (symbol.st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE ||
		    symbol.st_name >= strings->bytes || strings->bytes - symbol.st_name < name.len)
			continue;
		/* elf_file_read adds a NUL after the names. */
		if (!memcmp(names + symbol.st_name, name.at, name.len) &&
		    !names[symbol.st_name + name.len]) {
			*ret_vaddr = symbol.st_value;
			return 0;
		}
	}
	return -ENOENT;
}

/* Writes the functions at symbol plus offset, for an address that is not in the file. */
static int fold_inline_by_symbol(const struct fold_inline *in, const struct fold_inline_module *m,
				 struct script_part symbol, struct outbuf *out)
{
	struct script_part name = script_line_symbol(symbol);
	struct elf_file file;
	uint64_t offset, vaddr;
	int r;

	if (!name.len || name.len == symbol.len ||
	    !script_line_hex(
		    (struct script_part){name.at + name.len + 3, symbol.len - name.len - 3},
		    &offset))
		return -ENOENT;
	r = elf_file_open(&file, m->fd, NULL, 0, NULL);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	r = fold_inline_symbol(&file, name, &vaddr);
	elf_file_close(&file);
	return r ? r : fold_inline_at(in, m, vaddr + offset, out);
}

int post_fold_inline_names(void *ctx, const struct script_frame *frame, struct outbuf *out)
{
	struct fold_inline *in = ctx;
	struct fold_inline_module *m;
	uint64_t addr;
	int r;

	if (!fold_inline_is_wanted(frame->module) || !script_line_hex(frame->addr, &addr))
		return -ENOENT;
	r = fold_inline_module(in, frame->module, &m);
	if (r)
		return r == -E2BIG ? -ENOENT : r;
	if (!m->image)
		return -ENOENT;
	r = fold_inline_at(in, m, addr, out);
	return r == -ENOENT ? fold_inline_by_symbol(in, m, frame->symbol, out) : r;
}
