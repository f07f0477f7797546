#include "symbols/images_impl.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "symbols/jit_sources.h"
#include "symbols/jitdump.h"
#include "symbols/kallsyms.h"
#include "symbols/r2r_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define IMAGES_VDSO_BYTES_MAX ((size_t)256 << 10)

static jit_sources_open_fn images_open_marker;

int images_new(struct answers *answers, struct kernel_map *kernel, struct opener *opener,
	       const struct images_options *options, struct images **ret_images)
{
	struct images *im = calloc(1, sizeof(*im));

	if (!im)
		return -ENOMEM;
	im->answers = answers;
	im->kernel = kernel;
	im->opener = opener;
	im->options = *options;
	im->pdb_rooms.left = PDB_ROOM_BYTES_MAX;
	im->options.jit.counted = answers;
	int r = jit_sources_new(&im->options.jit, opener, images_open_marker, im, &im->jit);

	if (r)
		images_free(im);
	else
		*ret_images = im;
	return r;
}

void images_free(struct images *im)
{
	if (!im)
		return;
	for (size_t i = 0; i < im->sources.len; i++) {
		function_bounds_free(&im->sources.v[i].bounds);
		line_source_free(im->sources.v[i].lines);
		image_free(im->sources.v[i].elf);
		if (!im->sources.v[i].precompiled_shared)
			symbol_provider_free(im->sources.v[i].precompiled);
		free(im->sources.v[i].beside);
		vec_free(&im->sources.v[i].pieces.symbols);
		vec_free(&im->sources.v[i].precompiled_pieces.symbols);
	}
	for (size_t i = 0; i < im->pdbs.len; i++)
		free(im->pdbs.v[i].name);
	vec_free(&im->pdbs);
	for (size_t i = 0; i < im->process_rooms.len; i++)
		free(im->process_rooms.v[i]);
	vec_free(&im->process_rooms);
	hashmap_free(&im->room_of);
	jit_sources_free(im->jit);
	vec_free(&im->sources);
	vec_free(&im->ids);
	hashmap_free(&im->header_ids);
	hashmap_free(&im->jit_ids);
	hashmap_free(&im->bounds_ids);
	vec_free(&im->bundle_files);
	hashmap_free(&im->bundle_file_ids);
	hashmap_free(&im->bundles_told);
	free(im);
}

struct images_stats images_stats(const struct images *im)
{
	struct images_stats stats = im->stats;

	stats.jit = jit_sources_stats(im->jit);
	stats.pdbs_refused = im->pdb_rooms.refused;
	stats.first_refused = im->pdb_rooms.first;
	return stats;
}

static struct image_build_id images_build_id_of(const struct perfdata_build_id *id)
{
	struct image_build_id out = {.len = id->len <= IMAGE_BUILD_ID_MAX ? id->len : IMAGE_BUILD_ID_MAX};

	_Static_assert(IMAGE_BUILD_ID_MAX == PERFDATA_BUILD_ID_MAX, "build ids are copied whole");
	memcpy(out.bytes, id->bytes, out.len);
	return out;
}

int images_build_id(struct images *im, const char *path, const struct perfdata_build_id *id)
{
	struct images_header_id entry = {.id = images_build_id_of(id)};
	int r = intern_str(&im->answers->texts, path, &entry.path);

	if (r || !id->len)
		return r;
	if (vec_push(&im->ids, entry))
		return -ENOMEM;
	return hashmap_put(&im->header_ids, entry.path, (uint32_t)im->ids.len - 1);
}

static bool images_starts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* perf's notion of memory without a file (tools/perf/util/map.h), which it looks up in the process's perf map. */
static bool images_is_anonymous(const struct perfdata_mmap *m)
{
	return !strcmp(m->filename, "//anon") || images_starts(m->filename, "/dev/zero") ||
	       images_starts(m->filename, "/anon_hugepage") || images_starts(m->filename, "[stack") ||
	       images_starts(m->filename, "/SYSV") || !strcmp(m->filename, "[heap]") || (m->flags & MAP_HUGETLB);
}

static bool images_is_executable(const struct perfdata_record *record)
{
	return record->type == PERF_RECORD_MMAP ? !(record->misc & PERF_RECORD_MISC_MMAP_DATA)
						: !!(record->mmap.prot & PROT_EXEC);
}

enum answers_kind images_kind(const struct perfdata_record *record, bool *ret_anonymous)
{
	const char *name = record->mmap.filename;
	bool executable = images_is_executable(record);

	*ret_anonymous = images_is_anonymous(&record->mmap);
	if (*ret_anonymous)
		return executable ? ANSWERS_JIT : ANSWERS_OTHER;
	if (images_starts(name, "/memfd:"))
		return ANSWERS_JIT;
	if (!strcmp(name, "[vdso]") || !strcmp(name, "[vdso32]") || !strcmp(name, "[vdsox32]"))
		return ANSWERS_VDSO;
	if (!strcmp(name, "[vsyscall]"))
		return ANSWERS_VSYSCALL;
	return name[0] == '/' && name[1] != '/' ? ANSWERS_FILE : ANSWERS_OTHER;
}

/* Whether paths of this process are to be understood in a root of its own. */
static bool images_other_root(const struct images *im, int32_t pid)
{
	struct opener_process process;

	return im->opener && !opener_process(im->opener, pid, &process) && process.other_root;
}

int images_reach(struct images *im, uint32_t image)
{
	struct images_source fresh = {0};

	while (im->sources.len <= image)
		if (vec_push(&im->sources, fresh))
			return -ENOMEM;
	return 0;
}

int images_of_record(struct images *im, const struct perfdata_record *record, uint32_t *ret_image,
		     bool *ret_anonymous)
{
	const struct perfdata_mmap *m = &record->mmap;
	enum answers_kind kind = images_kind(record, ret_anonymous);
	struct answers_image key = {.kind = (uint8_t)kind};
	const uint32_t *header;
	uint32_t jitdump_pid;
	int r = intern_str(&im->answers->texts, m->filename, &key.path);

	if (r)
		return r;
	if (kind == ANSWERS_FILE) {
		key.build_id = images_build_id_of(&m->build_id);
		key.maj = m->maj;
		key.min = m->min;
		key.ino = m->ino;
		key.ino_generation = m->ino_generation;
		header = m->build_id.len ? NULL : hashmap_get(&im->header_ids, key.path);
		if (header)
			key.build_id = im->ids.v[*header].id;
		/* Nothing tells files of equal path in two containers apart but the containers. */
		if (!key.build_id.len && !key.ino && images_other_root(im, record->pid))
			key.pid = record->pid;
		if (images_is_executable(record))
			r = images_tell_bundle(im, record, &key);
	} else if (kind == ANSWERS_JIT) {
		key.pid = record->pid;
	}
	if (!r)
		r = answers_image(im->answers, &key, ret_image);
	if (!r)
		r = images_reach(im, *ret_image);
	if (r)
		return r;
	if (kind == ANSWERS_FILE && images_is_executable(record) && jitdump_is_name(m->filename, &jitdump_pid))
		r = jit_sources_marker(im->jit, record->pid, jitdump_pid, *ret_image);
	if (!im->sources.v[*ret_image].end) {
		im->sources.v[*ret_image].pid = record->pid;
		im->sources.v[*ret_image].start = m->addr;
		im->sources.v[*ret_image].end = m->addr + m->len;
		im->sources.v[*ret_image].mapped_ns = record->time_ns;
	}
	return r;
}

struct image_file_place images_place(const struct images *im, const struct images_source *s)
{
	return (struct image_file_place){.opener = im->opener, .pid = s->pid, .start = s->start, .end = s->end};
}

int images_find_file(const struct images *im, const struct answers_image *key, const struct images_source *s, int *ret_fd)
{
	struct image_file_place place = images_place(im, s);

	return image_file_find(&place, key, intern_text(&im->answers->texts, key->path), ret_fd);
}

/* jit_sources_open_fn: the jitdump that a process has mapped, if it is still the same file. */
static int images_open_marker(void *ctx, uint32_t image, int *ret_fd)
{
	struct images *im = ctx;
	const struct answers_image *key = &im->answers->images.v[image];

	return images_find_file(im, key, &im->sources.v[image], ret_fd);
}

int images_open_beside(void *ctx, const char *name, struct pe_file *ret_file)
{
	const struct images_beside *beside = ctx;
	struct images *im = beside->images;
	struct image_file_place place = images_place(im, &im->sources.v[beside->image]);
	const char *path = intern_text(&im->answers->texts, im->answers->images.v[beside->image].path);
	const char *slash = strrchr(path, '/');
	char other[PATH_MAX];
	struct stat st;
	int fd = -1, r = -ENOENT;

	if (slash && snprintf(other, sizeof(other), "%.*s/%s", (int)(slash - path), path, name) < (int)sizeof(other))
		r = image_file_open(&place, other, &fd);
	for (uint32_t i = 0; r && r != -ENOMEM && i < im->answers->images.len && i < im->sources.len; i++) {
		const struct answers_image *key = &im->answers->images.v[i];

		slash = strrchr(intern_text(&im->answers->texts, key->path), '/');
		if (key->kind == ANSWERS_FILE && im->sources.v[i].pid == place.pid && slash && !strcmp(slash + 1, name))
			r = images_find_file(im, key, &im->sources.v[i], &fd);
	}
	if (r)
		return r;
	*ret_file = (struct pe_file){fd, 0, fstat(fd, &st) ? 0 : (uint64_t)st.st_size};
	return 0;
}

/* .NET code that was compiled ahead: in a PE image, or in assemblies that an ELF program carries. 0; -EBADMSG: no PE image with
 * such code; -ESTALE, -ENOENT, -EACCES: the very program cannot be had; -errno. */
static int images_open_precompiled(struct images *im, const struct answers_image *key, struct images_source *s, int fd)
{
	struct r2r_beside beside = {.open = images_open_beside};
	struct pe_file file = {.fd = fd};
	struct parse_error err;
	struct stat st;

	if (s->elf)
		return images_open_bundle(im, key, s, fd);
	beside.ctx = s->beside = malloc(sizeof(*s->beside));
	if (!s->beside)
		return -ENOMEM;
	*s->beside = (struct images_beside){im, (uint32_t)(s - im->sources.v)};
	if (fstat(fd, &st))
		return -errno;
	file.bytes = (uint64_t)st.st_size;
	return r2r_image_open(&file, &beside, &s->precompiled, &err);
}

size_t images_roots(const struct images *im, const struct images_source *s, int roots[2], int *ret_own)
{
	size_t n = 0;

	if (im->opener && !opener_root(im->opener, s->pid, &roots[n]))
		n++;
	*ret_own = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_own >= 0)
		roots[n++] = *ret_own;
	return n;
}

/* Notes why an image's source gives no names. What was known first stays: on another machine files are gone for other reasons. */
static void images_why(struct images *im, const struct answers_image *key, enum answers_why why)
{
	struct answers_image *image = &im->answers->images.v[key - im->answers->images.v];

	/* Its names are known: it is only asked for lines here. */
	if (im->options.has_store && !image->wanted)
		return;
	if (!why || !image->why || (image->why == ANSWERS_DENIED && why == ANSWERS_REPLACED))
		image->why = (uint8_t)why;
}

/* The same for what find_file gives. */
static enum answers_why images_why_not(int error)
{
	switch (error) {
	case -ESTALE:
		return ANSWERS_REPLACED;
	case -EACCES:
		return ANSWERS_DENIED;
	default:
		return ANSWERS_GONE;
	}
}

/* The same for a file that was found. */
static enum answers_why images_why_unread(int error)
{
	return error == -ESTALE || error == -EACCES || error == -ENOENT ? images_why_not(error) : ANSWERS_UNREADABLE;
}

/* The same for the kernel. */
static enum answers_why images_why_kernel(enum kernel_map_live live)
{
	switch (live) {
	case KERNEL_MAP_HIDDEN:
		return ANSWERS_DENIED;
	case KERNEL_MAP_FOREIGN:
		return ANSWERS_OTHER_KERNEL;
	case KERNEL_MAP_FAILED:
		return ANSWERS_UNREADABLE;
	default:
		return ANSWERS_FINE;
	}
}

/* The same for a file that could be read. */
static enum answers_why images_why_nameless(const char *path, const struct images_source *s)
{
	const char *dot = strrchr(path, '.');

	if (s->precompiled)
		return ANSWERS_FINE;
	if (s->elf)
		return s->elf->has_symtab || s->elf->debug_place || s->elf->build_id.len ? ANSWERS_FINE : ANSWERS_NO_SYMBOLS;
	return dot && (!strcmp(dot, ".dll") || !strcmp(dot, ".exe")) ? ANSWERS_NO_R2R : ANSWERS_NO_FORMAT;
}

static int images_open_file(struct images *im, const struct answers_image *key, struct images_source *s)
{
	const char *path = intern_text(&im->answers->texts, key->path);
	AUTO_CLOSE int own_root = -1;
	AUTO_CLOSE int fd = -1;
	AUTO_CLOSE int cached = -1;
	struct parse_error err;
	int roots[2], r;

	r = images_find_file(im, key, s, &fd);
	if (r == -ENOMEM)
		return r;
	cached = image_file_perf_cache(key, fd);
	if (fd < 0 && cached < 0) {
		im->stats.replaced += r == -ESTALE;
		im->stats.missing += r != -ESTALE;
		s->unread = true;
		images_why(im, key, images_why_not(r));
		return 0;
	}
	r = image_open(cached < 0 ? fd : cached, path, roots, images_roots(im, s, roots, &own_root), &s->elf, &err);
	/* The copy tells at least whether there is more to be had of the file. */
	if ((fd >= 0 || s->elf) && (!r || r == -EBADMSG))
		r = images_open_precompiled(im, key, s, fd < 0 ? cached : fd);
	if (r == -ENOMEM)
		return r;
	im->stats.opened += !r;
	s->unread = r && r != -EBADMSG && r != -ENOTSUP;
	im->stats.replaced += r == -ESTALE;
	im->stats.missing += s->unread && r != -ESTALE;
	images_why(im, key, s->unread ? images_why_unread(r) : images_why_nameless(path, s));
	return 0;
}

/* Keeps what it takes to name the image later where its symbols are somewhere else. */
static int images_note_stripped(struct images *im, uint32_t image)
{
	const struct image *elf = im->sources.v[image].elf;

	if (!elf || elf->has_symtab || elf->debug_place || !elf->build_id.len)
		return 0;
	return answers_stripped(im->answers, image, &elf->build_id, elf->segments, elf->nsegments);
}

/* The vdso that the running kernel maps into every process, ours among them. */
static int images_open_vdso(struct images *im, const struct answers_image *key, struct images_source *s)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
	const uint32_t *header = hashmap_get(&im->header_ids, key->path);
	struct parse_error err;
	size_t len;
	int r;

	if (!head || strcmp(intern_text(&im->answers->texts, key->path), "[vdso]"))
		return 0;
	len = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
	if (len > IMAGES_VDSO_BYTES_MAX)
		return 0;
	r = header ? 1 : kernel_map_is_running(im->kernel);
	if (r <= 0)
		return r;
	r = image_from_memory(head, len, SYMBOL_VDSO, &s->elf, &err);
	if (r)
		return r == -ENOMEM ? r : 0;
	if (header && memcmp(&im->ids.v[*header].id, &s->elf->build_id, sizeof(s->elf->build_id))) {
		image_free(s->elf);
		s->elf = NULL;
		im->stats.replaced++;
	}
	return 0;
}

int images_open(struct images *im, uint32_t image)
{
	const struct answers_image *key = &im->answers->images.v[image];
	struct images_source *s = &im->sources.v[image];
	int r = 0;

	if (s->tried)
		return 0;
	if (key->kind == ANSWERS_FILE) {
		r = images_open_file(im, key, s);
		if (!r)
			r = images_note_stripped(im, image);
	} else if (key->kind == ANSWERS_VDSO) {
		r = images_open_vdso(im, key, s);
	}
	s->tried = true;
	return r;
}

/* Where functions of a file begin and end, read when the first address without a symbol is met. */
static int images_open_bounds(struct images *im, const struct answers_image *key, struct images_source *s)
{
	AUTO_CLOSE int fd = -1;

	if (s->bounds_tried || key->kind != ANSWERS_FILE)
		return 0;
	s->bounds_tried = true;
	int r = images_find_file(im, key, s, &fd);

	if (r)
		return r == -ENOMEM ? r : 0;
	return function_bounds_open(fd, &s->bounds) == -ENOMEM ? -ENOMEM : 0;
}

/* Where an image's names come from. */
struct images_asked {
	struct symbol_provider *symbols; /* NULL: there are none */
	uint64_t addr; /* the question as the provider takes it */
	bool precompiled; /* symbols is the image's source.precompiled */
};

static int images_provider(struct images *im, uint32_t image, uint64_t addr, struct images_asked *ret_asked)
{
	const struct answers_image *key = &im->answers->images.v[image];
	struct images_asked asked = {.addr = addr};
	const struct images_source *source;
	int r;

	if (key->kind == ANSWERS_KERNEL) {
		r = kernel_map_load(im->kernel);
		asked.symbols = im->kernel->live == KERNEL_MAP_NAMED ? im->kernel->kallsyms : NULL;
		asked.addr = addr + im->kernel->delta;
		images_why(im, key, images_why_kernel(im->kernel->live));
	} else if (key->kind == ANSWERS_JIT) {
		r = jit_sources_provider(im->jit, key->pid, &asked.symbols);
	} else {
		r = images_open(im, image);
		source = &im->sources.v[image];
		asked.symbols = source->elf ? source->elf->symbols : source->precompiled;
		asked.precompiled = source->precompiled && (!source->elf || symbol_provider_piece(source->precompiled, addr, 0) !=
										    SYMBOL_NO_PIECE);
		if (asked.precompiled)
			asked.symbols = source->precompiled;
	}
	if (!r)
		*ret_asked = asked;
	return r;
}

/* Whether the source of an image, which was looked for, could not be read. What was read and has no names is no such one. */
static bool images_is_unread(const struct images *im, uint32_t image, const struct images_asked *asked)
{
	switch ((enum answers_kind)im->answers->images.v[image].kind) {
	case ANSWERS_FILE:
		return im->sources.v[image].unread;
	case ANSWERS_JIT:
	case ANSWERS_VDSO:
	case ANSWERS_KERNEL:
		return !asked->symbols;
	default:
		return false;
	}
}

/* Makes the symbol of answers for a function without a name, kept by where it begins. 0, -ENOENT, -ENOMEM, -E2BIG. */
static int images_ask_bounds(struct images *im, uint32_t image, uint64_t addr, uint32_t *ret_symbol)
{
	struct answers_symbol found = {.image = image, .module = ANSWERS_NONE, .source = SYMBOL_BOUNDS,
				       .until_ns = UINT64_MAX};
	struct images_source *source = &im->sources.v[image];
	uint64_t start, end, vaddr;
	char buf[24];
	uint32_t *place;
	int r = source->elf ? image_vaddr(source->elf, addr, &vaddr) : -ENOENT;

	if (!r)
		r = images_open_bounds(im, &im->answers->images.v[image], source);
	if (!r)
		r = function_bounds_find(&source->bounds, vaddr, &start, &end);
	if (!r)
		r = hashmap_entry(&im->bounds_ids, hash_mix(start, image), ANSWERS_NONE, &place, NULL);
	if (!r && *place == ANSWERS_NONE) {
		found.start = start - vaddr + addr;
		found.end = end - vaddr + addr;
		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)start);
		r = intern_str(&im->answers->texts, buf, &found.name);
		if (!r)
			r = answers_symbol(im->answers, &found, place);
	}
	if (!r)
		*ret_symbol = *place;
	return r;
}

/* Makes the symbol of answers for what the provider says, which covers addr. */
static int images_ask_provider(struct images *im, uint32_t image, uint64_t addr, const struct images_asked *asked,
			       uint64_t time_ns, uint32_t *ret_symbol)
{
	struct answers_symbol found = {.image = image, .module = ANSWERS_NONE};
	struct symbol s;
	int r = symbol_provider_find(asked->symbols, asked->addr, time_ns, &s);

	if (r)
		return r;
	found.start = s.base - asked->addr + addr;
	found.end = s.end - asked->addr + addr;
	found.source = (uint32_t)s.source;
	/* Nobody asks for a time before the first: what held then may be kept as if it always had. */
	found.from_ns = s.from_ns <= im->began_ns ? 0 : s.from_ns;
	found.until_ns = s.until_ns;
	r = intern_put(&im->answers->texts, s.name, s.name_len, &found.name);
	if (!r && s.source == SYMBOL_KALLSYMS)
		r = intern_str(&im->answers->texts, kallsyms_module(asked->symbols, asked->addr), &found.module);
	return r ? r : answers_symbol(im->answers, &found, ret_symbol);
}

/* The place that keeps the symbol of answers + 1 for a provider's piece: addresses are many, what covers them is met again
 * and again. */
static int images_piece_place(struct images *im, uint32_t image, const struct images_asked *asked, uint32_t piece,
			      uint32_t **ret_place)
{
	struct images_source *source = &im->sources.v[image];
	struct images_pieces *pieces = asked->precompiled ? &source->precompiled_pieces : &source->pieces;

	if (im->answers->images.v[image].kind == ANSWERS_JIT)
		return hashmap_entry(&im->jit_ids, (uint64_t)image << 32 | piece, 0, ret_place, NULL);
	if (piece >= pieces->symbols.len) {
		size_t had = pieces->symbols.len;

		if (vec_reserve(&pieces->symbols, piece + (size_t)1 - had))
			return -ENOMEM;
		pieces->symbols.len = pieces->symbols.cap;
		memset(pieces->symbols.v + had, 0, (pieces->symbols.len - had) * sizeof(*pieces->symbols.v));
	}
	*ret_place = &pieces->symbols.v[piece];
	return 0;
}

static int images_ask_anew(struct images *im, uint32_t image, uint64_t addr, uint64_t time_ns, uint32_t *ret_symbol,
			   bool *ret_timed)
{
	struct images_asked asked;
	uint32_t piece = SYMBOL_NO_PIECE, *place;
	int r = images_reach(im, image);

	if (!r)
		r = images_provider(im, image, addr, &asked);
	if (r)
		return r;
	im->answers->images.v[image].unread = images_is_unread(im, image, &asked);
	if (asked.symbols)
		piece = symbol_provider_piece(asked.symbols, asked.addr, time_ns);
	*ret_timed = asked.symbols && asked.symbols->ops->timed;
	if (piece == SYMBOL_NO_PIECE)
		return im->options.no_bounds ? 0 : images_ask_bounds(im, image, addr, ret_symbol);
	r = images_piece_place(im, image, &asked, piece, &place);
	if (!r && !*place) {
		r = images_ask_provider(im, image, addr, &asked, time_ns, ret_symbol);
		*place = r ? 0 : *ret_symbol + 1;
	}
	if (!r)
		*ret_symbol = *place - 1;
	return r;
}

int images_note_processes(struct images *im)
{
	return jit_sources_note(im->jit, im->answers);
}

void images_way(const struct images *im, int32_t pid, char *text, size_t len)
{
	const struct answers_process *process = answers_process_of(im->answers, pid);
	const char *way = jit_sources_way(im->jit, pid);

	if (!way && process && process->way != ANSWERS_NONE)
		way = intern_text(&im->answers->texts, process->way);
	snprintf(text, len, "%s", way ? way : "");
}

bool images_is_captured(const struct images *im, uint32_t image)
{
	return jit_sources_captured(im->jit, im->answers->images.v[image].pid);
}

int images_ask(struct images *im, uint32_t image, uint64_t addr, uint64_t time_ns, uint32_t *ret_symbol,
	       bool *ret_timed)
{
	uint32_t symbol = ANSWERS_NONE;
	bool can_be_timed = false, timed;
	int r;

	if (!im->began) {
		im->began = true;
		im->began_ns = time_ns;
	}
	r = images_ask_anew(im, image, addr, time_ns, &symbol, &can_be_timed);

	if (r != -ENOMEM)
		r = 0;
	timed = can_be_timed && (symbol == ANSWERS_NONE || answers_timed(im->answers, symbol));
	/* Where a part of the source could not be read, what the rest of it names is kept. */
	if (!r && im->options.keep_answers && (symbol != ANSWERS_NONE || (!timed && !im->answers->images.v[image].unread)))
		r = answers_put(im->answers, image, addr, symbol);
	if (!r) {
		*ret_symbol = symbol;
		*ret_timed = timed;
	}
	return r;
}
