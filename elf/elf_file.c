#include "elf/elf_file.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "container/holes.h"
#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SECTION_NAME_MAX 256 /* bytes that are searched */

/*
 * Choose the error. libelf reports only failure; errno shows if memory ran out. elf_file_open has
 * cleared errno.
 */
static int failed(int otherwise)
{
	return errno == ENOMEM ? -ENOMEM : otherwise;
}

static int not_elf(struct parse_error *err)
{
	int error = failed(-EBADMSG);

	return parse_fail(err, error, error == -ENOMEM ? "out of memory" : "not an ELF file", 0);
}

static int read_section_names(struct elf_file *f, Elf *elf)
{
	size_t index;
	GElf_Shdr h;
	Elf_Scn *scn;

	if (elf_getshdrstrndx(elf, &index) || !(scn = elf_getscn(elf, index)) ||
	    !gelf_getshdr(scn, &h))
		return failed(0);
	int error = elf_file_read(f, h.sh_offset, h.sh_size, ELF_FILE_SECTION_NAMES_MAX,
				  &f->section_names);

	if (error)
		return error == -ENOMEM ? error : 0;
	for (size_t i = 0; i < f->nsections; i++) {
		struct elf_section *s = &f->sections[i];

		if (s->name_at >= h.sh_size)
			continue;
		s->name = (const char *)f->section_names + s->name_at;
		size_t len = strnlen(s->name, SECTION_NAME_MAX);

		s->text_or_data =
			memmem(s->name, len, "text", 4) || memmem(s->name, len, "data", 4);
	}
	return 0;
}

static int read_sections(struct elf_file *f, Elf *elf, struct parse_error *err)
{
	size_t n;

	/* Without section headers there are no symbols, but the segments are still usable. */
	if (elf_getshdrnum(elf, &n) || !n)
		return failed(0);
	if (n > ELF_FILE_SECTIONS_MAX)
		return parse_fail(err, -E2BIG, "too many ELF sections", 0);
	f->sections = calloc(n, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		Elf_Scn *scn = elf_getscn(elf, i);
		GElf_Shdr h;

		if (!scn || !gelf_getshdr(scn, &h))
			break;
		f->sections[f->nsections++] = (struct elf_section){
			.name = "",
			.name_at = h.sh_name,
			.addr = h.sh_addr,
			.file_off = h.sh_offset,
			.bytes = h.sh_size,
			.entry_bytes = h.sh_entsize,
			.flags = h.sh_flags,
			.type = h.sh_type,
			.link = h.sh_link,
		};
	}
	int error = failed(0);

	return error ? error : read_section_names(f, elf);
}

/* Keeps what a program header says. */
static void take_header(struct elf_file *f, const GElf_Phdr *h)
{
	struct elf_range range = {h->p_vaddr, h->p_offset, h->p_filesz};

	if (h->p_type == PT_NOTE && f->nnotes < ELF_FILE_NOTES_MAX)
		f->notes[f->nnotes++] = range;
	else if (h->p_type == PT_GNU_EH_FRAME && !f->eh_frame_hdr.bytes)
		f->eh_frame_hdr = range;
	else if (h->p_type == PT_LOAD && f->nsegments < ELF_FILE_SEGMENTS_MAX)
		f->segments[f->nsegments++] = (struct elf_segment){
			.vaddr = h->p_vaddr,
			.file_off = h->p_offset,
			.file_bytes = h->p_filesz,
			.mem_bytes = h->p_memsz,
			.flags = h->p_flags,
		};
}

static int read_segments(struct elf_file *f, Elf *elf, struct parse_error *err)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return failed(0);
	if (n > ELF_FILE_HEADERS_MAX)
		return parse_fail(err, -E2BIG, "too many ELF program headers", 0);
	f->nheaders = n;
	f->segments = calloc(n < ELF_FILE_SEGMENTS_MAX ? n + 1 : ELF_FILE_SEGMENTS_MAX,
			     sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(elf, (int)i, &h))
			break;
		take_header(f, &h);
	}
	return failed(0);
}

static int read_headers(struct elf_file *f, Elf *elf, struct parse_error *err)
{
	GElf_Ehdr h;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &h))
		return not_elf(err);
	f->is_64 = h.e_ident[EI_CLASS] == ELFCLASS64;
	f->machine = h.e_machine;
	int error = read_segments(f, elf, err);

	if (!error)
		error = read_sections(f, elf, err);
	if (!error && h.e_shoff <= f->bytes)
		f->section_headers_end = h.e_shoff + f->nsections * (uint64_t)h.e_shentsize;
	return error;
}

/*
 * Refuses a file that states too many sections. libelf allocates memory for each one before it
 * tells their number. Bytes that are no ELF header are left to libelf.
 */
static int check_section_count(const struct elf_file *f, struct parse_error *err)
{
	AUTO_FREE unsigned char *head = NULL;
	AUTO_FREE unsigned char *first = NULL;
	Elf64_Ehdr h = {.e_shnum = 0};
	Elf32_Ehdr small;
	Elf64_Shdr section = {0};
	Elf32_Shdr small_section = {0};
	uint64_t have = f->bytes < sizeof(h) ? f->bytes : sizeof(h);
	int r = elf_file_read(f, 0, have, have, &head);

	if (r)
		return r == -ENOMEM ? r : 0;
	memcpy(&h, head, have);
	memcpy(&small, &h, sizeof(small));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	if (h.e_ident[EI_DATA] != ELFDATA2LSB)
		return parse_fail(err, -EBADMSG, "not a little-endian ELF file", EI_DATA);
	bool is_64 = h.e_ident[EI_CLASS] == ELFCLASS64;
	uint64_t n = is_64 ? h.e_shnum : small.e_shnum, at = is_64 ? h.e_shoff : small.e_shoff,
		 bytes = is_64 ? sizeof(section) : sizeof(small_section);

	/* Source: System V ABI, chapter 4. The first section has the number if the field is 0. */
	r = n ? -ENOENT : elf_file_read(f, at, bytes, bytes, &first);
	if (!r) {
		memcpy(&section, first, bytes);
		memcpy(&small_section, first, sizeof(small_section));
		n = is_64 ? section.sh_size : small_section.sh_size;
	}
	if (n > ELF_FILE_SECTIONS_MAX)
		return parse_fail(err, -E2BIG, "too many ELF sections", 0);
	return r == -ENOMEM ? r : 0;
}

int elf_file_open(struct elf_file *f, int fd, const void *memory, size_t len,
		  struct parse_error *err)
{
	struct stat st;
	Elf *elf;
	int error;

	*f = (struct elf_file){.fd = fd, .memory = memory, .bytes = len};
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOSYS;
	errno = 0;
	if (fd >= 0) {
		if (fstat(fd, &st))
			return -errno;
		if (!S_ISREG(st.st_mode))
			return parse_fail(err, -EBADMSG, "not a regular file", 0);
		f->bytes = (uint64_t)st.st_size;
		if (holes_is_sparse(fd) && !elf_budget_work(f->bytes))
			return parse_fail(err, -E2BIG,
					  "it is mostly holes, and larger than what may still be "
					  "read of such files",
					  0);
	}
	error = check_section_count(f, err);
	if (error)
		return error;
	errno = 0;
	if (fd >= 0) {
		/* Do not map: access to a mapped file that is cut meanwhile ends in SIGBUS. */
		elf = elf_begin(fd, ELF_C_READ, NULL);
	} else {
		/* libelf takes char * but does not change an image that was opened like this. */
		elf = elf_memory((char *)(uintptr_t)memory, len);
	}
	if (!elf)
		return not_elf(err);
	error = read_headers(f, elf, err);
	elf_end(elf);
	if (error)
		elf_file_close(f);
	return error;
}

void elf_file_close(struct elf_file *f)
{
	free(f->sections);
	free(f->section_names);
	free(f->segments);
	*f = (struct elf_file){.fd = -1};
}

const struct elf_section *elf_file_section(const struct elf_file *f, const char *name,
					   uint32_t type)
{
	for (size_t i = 1; i < f->nsections; i++) {
		if (!strcmp(f->sections[i].name, name))
			return !type || f->sections[i].type == type ? &f->sections[i] : NULL;
	}
	return NULL;
}

int elf_file_read(const struct elf_file *f, uint64_t file_off, uint64_t bytes, uint64_t max,
		  unsigned char **ret_data)
{
	if (bytes > max)
		return -E2BIG;
	if (file_off > f->bytes || bytes > f->bytes - file_off)
		return -EBADMSG;
	AUTO_FREE unsigned char *data = bigmem_alloc((size_t)bytes + 1, 1);

	if (!data)
		return -ENOMEM;
	if (f->memory) {
		memcpy(data, f->memory + file_off, (size_t)bytes);
	} else {
		int error = file_pread_all(f->fd, data, (size_t)bytes, file_off);

		if (error)
			return error == -ENODATA ? -EBADMSG : error;
	}
	data[bytes] = 0;
	*ret_data = TAKE_PTR(data);
	return 0;
}

/*
 * Find the build id in notes. Elf64_Nhdr and Elf32_Nhdr are equal. Entries are aligned to 4 bytes,
 * in some PT_NOTE segments to 8.
 */
static int find_build_id(const unsigned char *data, size_t len, struct build_id *ret_build_id)
{
	size_t at = 0;
	Elf64_Nhdr note;

	while (at <= len && len - at >= sizeof(note)) {
		memcpy(&note, data + at, sizeof(note));
		at += sizeof(note);
		size_t name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		size_t desc_bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;

		if (name_bytes > len - at || note.n_descsz > len - at - name_bytes)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(data + at, "GNU", sizeof("GNU")) && note.n_descsz) {
			size_t n = note.n_descsz < BUILD_ID_MAX ? note.n_descsz : BUILD_ID_MAX;

			*ret_build_id = (struct build_id){.len = (uint8_t)n};
			memcpy(ret_build_id->bytes, data + at + name_bytes, n);
			return 0;
		}
		at += name_bytes + desc_bytes;
	}
	return -ENOENT;
}

static int build_id_in(const struct elf_file *f, uint64_t file_off, uint64_t bytes,
		       struct build_id *ret_build_id)
{
	AUTO_FREE unsigned char *data = NULL;

	int error = elf_file_read(f, file_off, bytes, ELF_FILE_NOTE_BYTES_MAX, &data);

	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	return find_build_id(data, (size_t)bytes, ret_build_id);
}

static uint64_t note_bytes(uint64_t bytes)
{
	return bytes <= ELF_FILE_NOTE_BYTES_MAX ? bytes : 0;
}

uint64_t elf_file_note_bytes(const struct elf_file *f)
{
	size_t searched = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < f->nsections && searched < ELF_FILE_NOTES_MAX; i++)
		if (f->sections[i].type == SHT_NOTE) {
			searched++;
			sum += note_bytes(f->sections[i].bytes);
		}
	for (size_t i = 0; i < f->nnotes && searched < ELF_FILE_NOTES_MAX; i++, searched++)
		sum += note_bytes(f->notes[i].bytes);
	return sum;
}

int elf_file_build_id(const struct elf_file *f, struct build_id *ret_build_id)
{
	size_t searched = 0;
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && i < f->nsections && searched < ELF_FILE_NOTES_MAX; i++) {
		const struct elf_section *s = &f->sections[i];

		if (s->type != SHT_NOTE)
			continue;
		searched++;
		r = build_id_in(f, s->file_off, s->bytes, ret_build_id);
	}
	for (size_t i = 0; r == -ENOENT && i < f->nnotes && searched < ELF_FILE_NOTES_MAX; i++) {
		searched++;
		r = build_id_in(f, f->notes[i].file_off, f->notes[i].bytes, ret_build_id);
	}
	return r;
}

int elf_file_build_id_of(int fd, struct build_id *ret_build_id)
{
	struct elf_file f;
	int error = elf_file_open(&f, fd, NULL, 0, NULL);

	if (error)
		return error;
	error = elf_file_build_id(&f, ret_build_id);
	elf_file_close(&f);
	return error;
}
