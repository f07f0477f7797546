#include "symbols/symtab/elf_symbols.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "symbols/symtab/symtab_finish.h"

#include <elf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of made-up slot names, which are copied: a small file could demand much memory. */
#define SLOT_NAME_MAX 4096
#define SLOT_NAMES_BYTES_MAX ((size_t)64 << 20)

/*
 * Bytes of memory for a symbol until symtab_finish returns, and those that stay: its entry, its
 * piece, and what sorts them.
 */
#define SYMBOL_BYTES_READING 176
#define SYMBOL_BYTES (sizeof(struct symtab_entry) * 5 / 4 + sizeof(struct symtab_piece) + 8)

/* The files, the table and the tags of a load. */
struct loading {
	/* The mapped file: has segments, and sections that a debug file has without bytes */
	const struct elf_file *image;
	const struct elf_file *from; /* the file of the symbol table */
	const char *strings;
	uint64_t string_bytes;
	struct symtab *table;
	enum symbol_source source; /* of all symbols; SYMBOL_NONE: by table */
	enum elf_symbols_debug kind;
	/* Sections of the image with code that .NET compiled ahead of time; NULL: none */
	const struct elf_section *managed[2];
	unsigned char *dynsym; /* the image's, if it was read; its names are in strings */
	uint64_t taken;        /* bytes of ELF_BUDGET_SYMBOLS */
	uint64_t kept;         /* of these, bytes of names, which stay */
};

static uint8_t tag(const struct loading *l, enum symbol_source source)
{
	return (uint8_t)(l->source != SYMBOL_NONE ? l->source : source);
}

static Elf64_Sym symbol_at(const struct elf_file *f, const unsigned char *data, uint64_t i)
{
	Elf64_Sym sym;
	Elf32_Sym small;

	if (f->is_64) {
		memcpy(&sym, data + i * sizeof(sym), sizeof(sym));
		return sym;
	}
	memcpy(&small, data + i * sizeof(small), sizeof(small));
	return (Elf64_Sym){.st_name = small.st_name,
			   .st_info = small.st_info,
			   .st_other = small.st_other,
			   .st_shndx = small.st_shndx,
			   .st_value = small.st_value,
			   .st_size = small.st_size};
}

static uint64_t symbol_bytes(const struct elf_file *f)
{
	return f->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static bool is_label(const Elf64_Sym *s)
{
	int visibility = ELF64_ST_VISIBILITY(s->st_other);

	return ELF64_ST_TYPE(s->st_info) == STT_NOTYPE && s->st_name && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx != SHN_ABS && visibility != STV_HIDDEN && visibility != STV_INTERNAL;
}

static bool is_function_or_object(const Elf64_Sym *s)
{
	int type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT) && s->st_name &&
	       s->st_shndx != SHN_UNDEF;
}

/* Recognize $a, $d, $t and $x of ARM. They mark kinds of code, not functions. */
static bool is_mapping_symbol(uint16_t machine, const char *name)
{
	return (machine == EM_ARM || machine == EM_AARCH64) && name[0] == '$' && name[1] &&
	       strchr("adtx", name[1]) && (!name[2] || name[2] == '.');
}

/*
 * The section of a symbol, or NULL. If the debug file has only its header, the mapped file's
 * section.
 */
static const struct elf_section *section_of(const struct loading *l, const Elf64_Sym *sym)
{
	size_t i = sym->st_shndx;

	if (i >= l->from->nsections)
		return NULL;
	/* MiniDebugInfo numbers its sections differently. */
	if (l->from->sections[i].type != SHT_NOBITS || l->kind == ELF_SYMBOLS_MINI ||
	    !l->image->nsections)
		return &l->from->sections[i];
	return i < l->image->nsections ? &l->image->sections[i] : NULL;
}

static uint64_t file_off_of(const struct elf_file *image, const struct elf_section *section,
			    uint64_t vaddr)
{
	uint64_t file_off;

	if (!elf_segments_file_off(image->segments, image->nsegments, vaddr, &file_off))
		return file_off;
	return vaddr - section->addr + section->file_off;
}

static bool is_managed(const struct loading *l, uint64_t vaddr)
{
	for (size_t i = 0; i < sizeof(l->managed) / sizeof(*l->managed); i++)
		if (l->managed[i] && vaddr - l->managed[i]->addr < l->managed[i]->bytes)
			return true;
	return false;
}

/*
 * Add one symbol if perf would. Returns 0, -ENOMEM, -E2BIG, or STOP if perf gives up on the table.
 */
#define STOP 1
static int take_symbol(struct loading *l, Elf64_Sym *sym, uint8_t source)
{
	bool label = is_label(sym);

	if ((!label && !is_function_or_object(sym)) || sym->st_name >= l->string_bytes)
		return 0;
	const char *name = l->strings + sym->st_name;

	if (is_mapping_symbol(l->from->machine, name) || sym->st_shndx == SHN_ABS)
		return 0;
	if (sym->st_shndx >= l->from->nsections)
		return STOP;
	if (!(l->from->sections[sym->st_shndx].flags & SHF_ALLOC))
		return 0;
	const struct elf_section *section = section_of(l, sym);

	if (!section)
		return STOP;
	if (label && !section->text_or_data)
		return 0;
	if (l->from->machine == EM_ARM && ELF64_ST_TYPE(sym->st_info) == STT_FUNC)
		sym->st_value &= ~(uint64_t)1; /* clear the mark of Thumb code */
	uint64_t start = file_off_of(l->image, section, sym->st_value);

	if (source != SYMBOL_VDSO && is_managed(l, sym->st_value))
		source = SYMBOL_AOT;
	return symtab_add(l->table,
			  &(struct symtab_entry){.start = start,
						 .end = start + sym->st_size,
						 .name = name,
						 .name_len = SYMTAB_LEN_UNKNOWN,
						 .source = source,
						 .binding = ELF64_ST_BIND(sym->st_info),
						 .type = ELF64_ST_TYPE(sym->st_info)},
			  0);
}

/* Takes memory for so many symbols, until they are sorted. */
static int take_symbols(struct loading *l, uint64_t n)
{
	uint64_t bytes = n * SYMBOL_BYTES_READING;
	int r = elf_budget_take_briefly(ELF_BUDGET_SYMBOLS, bytes);

	l->taken += r ? 0 : bytes;
	return r;
}

static int take(struct loading *l, uint64_t bytes)
{
	int r = elf_budget_take(ELF_BUDGET_SYMBOLS, bytes);

	l->taken += r ? 0 : bytes;
	return r;
}

/* Read a section, within the budget. */
static int read_section(struct loading *l, const struct elf_file *f,
			const struct elf_section *section, unsigned char **ret_data)
{
	int r = take(l, section->bytes);

	return r ? r
		 : elf_file_read(f, section->file_off, section->bytes, ELF_FILE_SECTION_BYTES_MAX,
				 ret_data);
}

/* Read a symbol table and its names. Both are set after an error too, if they were read. */
static int read_table(struct loading *l, const struct elf_file *f,
		      const struct elf_section *section, unsigned char **ret_symbols,
		      unsigned char **ret_strings)
{
	if (!section->link || section->link >= f->nsections)
		return -EBADMSG;
	int error = read_section(l, f, section, ret_symbols);

	return error ? error : read_section(l, f, &f->sections[section->link], ret_strings);
}

/*
 * Read one symbol table as one of perf's passes. *ret_symbols and *ret_strings hold what was read,
 * also after an error.
 */
static int load_table(struct loading *l, const struct elf_section *section, uint8_t source,
		      unsigned char **ret_symbols, unsigned char **ret_strings)
{
	const struct elf_file *f = l->from;
	uint64_t n = section->bytes / symbol_bytes(f);
	int error = read_table(l, f, section, ret_symbols, ret_strings);

	if (!error)
		error = take_symbols(l, n);
	if (error)
		return error;
	const unsigned char *data = *ret_symbols;
	const struct elf_section *strings = &f->sections[section->link];

	l->kept += strings->bytes;
	l->strings = (const char *)*ret_strings;
	l->string_bytes = strings->bytes;
	error = symtab_reserve(l->table, n + n / 4); /* leave room for .dynsym and slots */
	for (uint64_t i = 0; i < n && !error; i++) {
		Elf64_Sym sym = symbol_at(f, data, i);

		error = take_symbol(l, &sym, source);
	}
	symtab_end_pass(l->table, !error);
	return error == STOP ? -EBADMSG : error;
}

static int add_slot(struct loading *l, const char *name, uint64_t file_off, uint64_t bytes)
{
	char text[SLOT_NAME_MAX + sizeof("@plt")];
	int len = snprintf(text, sizeof(text), "%.*s@plt", SLOT_NAME_MAX, name);

	if (len < 0 || l->table->names.total_bytes > SLOT_NAMES_BYTES_MAX)
		return 0;
	int r = take(l, (uint64_t)len + 1);

	if (r)
		return r;
	l->kept += (uint64_t)len + 1;
	return symtab_add(l->table,
			  &(struct symtab_entry){.start = file_off,
						 .end = file_off + bytes,
						 .name = text,
						 .name_len = (uint32_t)len,
						 .source = tag(l, SYMBOL_PLT),
						 .binding = STB_GLOBAL,
						 .type = STT_FUNC},
			  1);
}

/* The sizes of slots. perf fixes them for some machines and uses sh_entsize for others. */
static void slot_sizes(const struct elf_file *f, const struct elf_section *plt, uint64_t *ret_first,
		       uint64_t *ret_slot)
{
	*ret_first = *ret_slot = plt->entry_bytes;
	if (f->machine == EM_ARM) {
		*ret_first = 20;
		*ret_slot = 12;
	} else if (f->machine == EM_AARCH64) {
		*ret_first = 32;
		*ret_slot = 16;
	} else if (!plt->entry_bytes && (f->machine == EM_X86_64 || f->machine == EM_386)) {
		/* lld leaves it 0, for example in libcoreclr.so; perf handles that since 6.3. */
		*ret_first = *ret_slot = 16;
	}
}

/* The index of a relocation's symbol. */
static uint64_t relocated_symbol(const struct elf_file *f, uint32_t type,
				 const unsigned char *entry)
{
	if (f->is_64) {
		Elf64_Rel rel; /* Elf64_Rela begins the same way */

		memcpy(&rel, entry, sizeof(rel));
		return ELF64_R_SYM(rel.r_info);
	}
	Elf32_Rel rel;

	(void)type;
	memcpy(&rel, entry, sizeof(rel));
	return ELF32_R_SYM(rel.r_info);
}

static uint64_t relocation_bytes(const struct elf_file *f, uint32_t type)
{
	if (type == SHT_RELA)
		return f->is_64 ? sizeof(Elf64_Rela) : sizeof(Elf32_Rela);
	return f->is_64 ? sizeof(Elf64_Rel) : sizeof(Elf32_Rel);
}

static int add_slots(struct loading *l, const struct elf_section *dynsym,
		     const struct elf_section *relocs, const struct elf_section *plt)
{
	AUTO_FREE unsigned char *other_syms = NULL;
	AUTO_FREE unsigned char *other_strings = NULL;
	AUTO_FREE unsigned char *rels = NULL;
	const struct elf_file *f = l->image;
	const struct elf_section *str = &f->sections[dynsym->link];
	uint64_t at, slot, step = relocation_bytes(f, relocs->type);
	const unsigned char *syms = l->dynsym;
	const char *strings = l->strings;
	int error = 0;

	if (!syms) {
		error = read_table(l, f, dynsym, &other_syms, &other_strings);
		syms = other_syms;
		strings = (const char *)other_strings;
	}
	if (!error)
		error = read_section(l, f, relocs, &rels);
	if (!error)
		error = take_symbols(l, relocs->bytes / step);
	slot_sizes(f, plt, &at, &slot);
	at += plt->file_off;
	for (uint64_t i = 0; !error && i < relocs->bytes / step; i++, at += slot) {
		uint64_t which = relocated_symbol(f, relocs->type, rels + i * step);

		if (which >= dynsym->bytes / symbol_bytes(f))
			continue;
		Elf64_Sym sym = symbol_at(f, syms, which);

		if (sym.st_name < str->bytes)
			error = add_slot(l, strings + sym.st_name, at, slot);
	}
	return error == -ENOMEM || error == -E2BIG ? error : 0;
}

/*
 * Make up symbols for the slots of the procedure linkage table from relocations, as perf does.
 * Leave out .plt.sec and .plt.got, which perf knows only since 6.3.
 */
static int load_plt(struct loading *l)
{
	const struct elf_file *f = l->image;
	const struct elf_section *dynsym = elf_file_section(f, ".dynsym", SHT_DYNSYM);
	const struct elf_section *relocs = elf_file_section(f, ".rela.plt", 0);
	const struct elf_section *plt = elf_file_section(f, ".plt", 0);

	if (!relocs)
		relocs = elf_file_section(f, ".rel.plt", 0);
	if (!dynsym || !relocs || !plt || relocs->link != (size_t)(dynsym - f->sections))
		return 0;
	if (relocs->type != SHT_RELA && relocs->type != SHT_REL)
		return 0;
	if (!dynsym->link || dynsym->link >= f->nsections)
		return 0;
	int error = add_slots(l, dynsym, relocs, plt);

	symtab_end_pass(l->table, false);
	return error;
}

static int load_all(struct loading *l, struct elf_symbols *s)
{
	static const enum symbol_source sources[] = {
		[ELF_SYMBOLS_OWN] = SYMBOL_SYMTAB,
		[ELF_SYMBOLS_SEPARATE] = SYMBOL_DEBUG_FILE,
		[ELF_SYMBOLS_MINI] = SYMBOL_MINI_DEBUG,
	};
	const struct elf_section *symtab = elf_file_section(l->from, ".symtab", SHT_SYMTAB);
	AUTO_FREE unsigned char *dynamic = NULL;
	int error = -ENOENT;

	if (symtab) {
		AUTO_FREE unsigned char *symbols = NULL;

		error = load_table(l, symtab, tag(l, sources[l->kind]), &symbols, &s->strings[0]);
	}
	if (l->kind == ELF_SYMBOLS_MINI)
		l->from = l->image;
	const struct elf_section *dynsym = elf_file_section(l->from, ".dynsym", SHT_DYNSYM);

	/* Without memory for the larger table, the smaller one may still fit. */
	if (dynsym && (!error || error == -ENOENT || error == -E2BIG)) {
		int r = load_table(l, dynsym, tag(l, SYMBOL_DYNSYM), &dynamic, &s->strings[1]);

		error = r || error == -ENOENT ? r : error;
	}
	if (dynsym && !error && l->from == l->image)
		l->dynsym = dynamic;
	if (!error && l->table->entries.len)
		error = load_plt(l);
	return error;
}

/* Keep of the budget only what the table keeps of memory. */
static void give_back(struct loading *l, struct elf_symbols *s)
{
	uint64_t kept = l->kept + s->table->entries.len * SYMBOL_BYTES;

	s->taken = kept < l->taken ? kept : l->taken;
	elf_budget_give(ELF_BUDGET_SYMBOLS, l->taken - s->taken);
}

int elf_symbols_load(const struct elf_file *image, const struct elf_file *debug,
		     enum elf_symbols_debug kind, enum symbol_source source,
		     struct elf_symbols *ret_symbols)
{
	struct elf_symbols s = {0};
	struct loading l = {
		.image = image, .from = debug ? debug : image, .source = source, .kind = kind};
	int error = symtab_new(&s.table);

	/* A debug file has the headers of all sections, also if the image is not here. */
	l.managed[0] = elf_file_section(l.from, ELF_SYMBOLS_AOT_SECTION, 0);
	l.managed[1] = elf_file_section(l.from, "__unbox", 0);
	if (!error) {
		l.table = s.table;
		error = load_all(&l, &s);
		s.taken = l.taken;
		s.over_limit = error == -E2BIG;
		if (!error || s.table->entries.len) {
			int finished = symtab_finish(s.table, 0);

			/* Use what a damaged table gives, as perf does. */
			error = error == -ENOMEM ? error : finished;
		}
	}
	if (error) {
		elf_symbols_free(&s);
		return error;
	}
	give_back(&l, &s);
	*ret_symbols = s;
	return 0;
}

void elf_symbols_free(struct elf_symbols *s)
{
	if (s->table)
		symbol_provider_free(&s->table->provider);
	free(s->strings[0]);
	free(s->strings[1]);
	elf_budget_give(ELF_BUDGET_SYMBOLS, s->taken);
	*s = (struct elf_symbols){0};
}
