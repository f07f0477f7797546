#include "profcpu/crash_symbols.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The bytes of a section, NULL if the file lacks some of them. */
static const void *section_data(const struct crash_symbols *s, const Elf64_Shdr *section)
{
	return section->sh_offset <= s->bytes && section->sh_size <= s->bytes - section->sh_offset
		       ? s->file + section->sh_offset
		       : NULL;
}

static void find_table(struct crash_symbols *s)
{
	const Elf64_Ehdr *head = (const void *)s->file;
	const Elf64_Shdr *sections;

	if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_shentsize != sizeof(*sections) || head->e_shoff % _Alignof(Elf64_Shdr) ||
	    head->e_shoff > s->bytes ||
	    head->e_shnum > (s->bytes - head->e_shoff) / sizeof(*sections))
		return;
	sections = (const void *)(s->file + head->e_shoff);
	for (size_t i = 0; i < head->e_shnum; i++) {
		const Elf64_Shdr *table = &sections[i];

		if (table->sh_type != SHT_SYMTAB || table->sh_link >= head->e_shnum ||
		    table->sh_offset % _Alignof(Elf64_Sym))
			continue;
		const Elf64_Shdr *names = &sections[table->sh_link];
		const Elf64_Sym *symbols = section_data(s, table);
		const char *text = section_data(s, names);

		if (!symbols || !text || !names->sh_size || text[names->sh_size - 1])
			continue;
		s->symbols = symbols;
		s->nsymbols = table->sh_size / sizeof(*symbols);
		s->names = text;
		s->names_bytes = names->sh_size;
	}
}

void crash_symbols_open(struct crash_symbols *s)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *file;

	*s = (struct crash_symbols){0};
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size >= (off_t)sizeof(Elf64_Ehdr)) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			s->file = file;
			s->bytes = (size_t)st.st_size;
			find_table(s);
		}
	}
	close(fd);
}

const char *crash_symbols_find(const struct crash_symbols *s, uint64_t vaddr, uint64_t *ret_off)
{
	const char *name = NULL;

	for (size_t i = 0; i < s->nsymbols && !name; i++) {
		const Elf64_Sym *symbol = &s->symbols[i];

		if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && vaddr >= symbol->st_value &&
		    vaddr - symbol->st_value < symbol->st_size &&
		    symbol->st_name < s->names_bytes) {
			name = s->names + symbol->st_name;
			*ret_off = vaddr - symbol->st_value;
		}
	}
	return name;
}
