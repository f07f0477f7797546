/* Formats: ELF gABI, and the GNU hash table. */
#include "dotnet/coreclr/locate.h"

#include "base/cleanup.h"
#include "container/proc.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEADERS_MAX 128
#define DYNAMIC_MAX 512 /* entries */
#define CHAIN_MAX 128   /* symbols of one bucket; linkers put about four into each */
/* Mapped files to search, and separately files named libcoreclr.so. */
#define MODULES_MAX 8192
#define SYMBOL_MAX 64 /* bytes of a symbol's name */
/* Bytes of a module's data searched for its version. */
#define DATA_MAX ((uint64_t)4 << 20)

/* Tables of the dynamic linker: addrs, 0 if absent. */
struct dynamic {
	uint64_t bias, symbols, strings, hash;
	uint64_t data, data_bytes; /* writable data that the file holds */
};

static int read_at(const struct clr_io *io, uint64_t addr, void *buf, size_t len)
{
	int r = io->read(io->ctx, addr, buf, len);

	return r == -EFAULT ? -ENOENT : r;
}

/* glibc rewrites the addresses in the dynamic section at load time; musl leaves them relative. */
static uint64_t relocated(uint64_t bias, uint64_t value)
{
	return value < bias ? value + bias : value;
}

static int read_dynamic(const struct clr_io *io, uint64_t addr, uint64_t bytes, struct dynamic *d)
{
	Elf64_Dyn entries[DYNAMIC_MAX];
	size_t n = bytes / sizeof(*entries) < DYNAMIC_MAX ? (size_t)(bytes / sizeof(*entries))
							  : DYNAMIC_MAX;
	int r = read_at(io, addr, entries, n * sizeof(*entries));

	for (size_t i = 0; !r && i < n && entries[i].d_tag != DT_NULL; i++) {
		uint64_t value = relocated(d->bias, entries[i].d_un.d_ptr);

		if (entries[i].d_tag == DT_SYMTAB)
			d->symbols = value;
		else if (entries[i].d_tag == DT_STRTAB)
			d->strings = value;
		else if (entries[i].d_tag == DT_GNU_HASH)
			d->hash = value;
	}
	return r ? r : d->symbols && d->strings && d->hash ? 0 : -ENOENT;
}

/* Reads the module whose ELF header is at addr. */
static int read_module(const struct clr_io *io, uint64_t addr, struct dynamic *d)
{
	Elf64_Ehdr elf;
	Elf64_Phdr headers[HEADERS_MAX];
	const Elf64_Phdr *dynamic = NULL, *first = NULL;
	int r = read_at(io, addr, &elf, sizeof(elf));

	if (r)
		return r;
	if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(*headers) || elf.e_phnum > HEADERS_MAX)
		return -ENOENT;
	r = read_at(io, addr + elf.e_phoff, headers, elf.e_phnum * sizeof(*headers));
	for (int i = 0; !r && i < elf.e_phnum; i++) {
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = &headers[i];
		else if (headers[i].p_type == PT_LOAD && !first)
			first = &headers[i];
		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_W) {
			d->data = headers[i].p_vaddr;
			d->data_bytes = headers[i].p_filesz;
		}
	}
	if (r || !dynamic || !first)
		return r ? r : -ENOENT;
	d->bias = addr - (first->p_vaddr - first->p_offset);
	d->data += d->bias;
	return read_dynamic(io, d->bias + dynamic->p_vaddr, dynamic->p_memsz, d);
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

/* Checks whether symbol i has the name, and gives its addr. */
static int check_symbol(const struct clr_io *io, const struct dynamic *d, uint32_t i,
			const char *symbol_name, uint64_t *ret_addr)
{
	size_t len = strlen(symbol_name) + 1;
	char name[SYMBOL_MAX];
	Elf64_Sym symbol;
	int r = read_at(io, d->symbols + (uint64_t)i * sizeof(symbol), &symbol, sizeof(symbol));

	if (!r)
		r = read_at(io, d->strings + symbol.st_name, name, len);
	if (r || memcmp(name, symbol_name, len) || symbol.st_shndx == SHN_UNDEF)
		return r ? r : -ENOENT;
	*ret_addr = d->bias + symbol.st_value;
	return 0;
}

static int find_symbol(const struct clr_io *io, const struct dynamic *d, const char *name,
		       uint64_t *ret_addr)
{
	/* Buckets, first symbol, words of the filter, shift of the filter */
	uint32_t head[4];
	uint32_t at, hash = gnu_hash(name), entry = 0;
	int r = read_at(io, d->hash, head, sizeof(head));

	if (r || !head[0])
		return r ? r : -ENOENT;
	uint64_t buckets = d->hash + sizeof(head) + (uint64_t)head[2] * 8,
		 chains = buckets + (uint64_t)head[0] * 4;

	r = read_at(io, buckets + (uint64_t)(hash % head[0]) * 4, &at, sizeof(at));
	if (r || at < head[1])
		return r ? r : -ENOENT;
	for (int i = 0; i < CHAIN_MAX && !(entry & 1); i++, at++) {
		r = read_at(io, chains + (uint64_t)(at - head[1]) * 4, &entry, sizeof(entry));
		if (r)
			return r;
		if ((entry | 1) != (hash | 1))
			continue;
		r = check_symbol(io, d, at, name, ret_addr);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* Finds the version in the module's data: "@(#)Version 8.0.3126.42015 @Commit: ...". */
static int find_version(const struct clr_io *io, const struct dynamic *d, uint32_t *ret_major)
{
	static const char before[] = "@(#)Version ";
	uint64_t bytes = d->data_bytes < DATA_MAX ? d->data_bytes : DATA_MAX;
	AUTO_FREE char *data = malloc(bytes + 1);
	const char *at;
	int r = data ? read_at(io, d->data, data, bytes) : -ENOMEM;

	*ret_major = 0;
	if (r)
		return r;
	data[bytes] = 0;
	at = memmem(data, bytes, before, sizeof(before) - 1);
	for (at = at ? at + sizeof(before) - 1 : ""; *at >= '0' && *at <= '9' && *ret_major < 1000;
	     at++)
		*ret_major = *ret_major * 10 + (uint32_t)(*at - '0');
	return 0;
}

int clr_locate_in_module(const struct clr_io *io, uint64_t addr, struct clr_anchors *ret_anchors)
{
	struct clr_anchors anchors = {0};
	struct dynamic d = {0};
	int r = read_module(io, addr, &d);

	if (r)
		return r;
	r = find_symbol(io, &d, "DotNetRuntimeContractDescriptor", &anchors.descriptor);
	if (!r || r == -ENOENT)
		r = find_symbol(io, &d, "g_dacTable", &anchors.dac_table);
	if (!r)
		r = find_version(io, &d, &anchors.major);
	if (r && r != -ENOENT)
		return r;
	if (!anchors.descriptor && !anchors.dac_table)
		return -ENOENT;
	*ret_anchors = anchors;
	return 0;
}

static bool is_coreclr(const struct proc_map *map)
{
	static const char name[] = "/libcoreclr.so";
	const char *at = strstr(map->path, name);

	return at && (!at[strlen(name)] || at[strlen(name)] == ' '); /* " (deleted)" */
}

/*
 * Reads the mappings at which an ELF module may begin. Prefers libcoreclr.so, otherwise takes the
 * first with the symbol.
 */
int clr_locate_in_process(const struct clr_io *io, char *maps, struct clr_anchors *ret_anchors)
{
	unsigned tried[2] = {0};
	struct clr_anchors anchors;
	struct proc_map map;
	char *cursor = maps;
	bool found = false, sure = false;

	while (!sure && proc_map_next(&cursor, &map)) {
		if (map.pgoff || map.path[0] != '/' || !(map.prot & PROT_READ) ||
		    (map.flags & MAP_SHARED))
			continue;
		sure = is_coreclr(&map);
		if ((found && !sure) || ++tried[sure] > MODULES_MAX)
			continue;
		int r = clr_locate_in_module(io, map.start, &anchors);

		if (r && r != -ENOENT)
			return r;
		if (!r) {
			*ret_anchors = anchors;
			found = true;
		}
		sure = sure && !r;
	}
	return found ? 0 : -ENOENT;
}
