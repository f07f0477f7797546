#include "elf/debug_file.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "elf/debug_cache.h"
#include "elf/xz.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define LINK_BYTES_MAX ((uint64_t)NAME_MAX + 16)
#define CRC_CHUNK ((size_t)256 << 10)

static _Atomic int64_t crc_left_bytes = DEBUG_FILE_CRC_TOTAL_MAX; /* negative: used up */
static _Atomic uint64_t uncompared;

const char *debug_file_place_name(enum debug_file_place place)
{
	static const char *const names[DEBUG_FILE_PLACES] = {
		[DEBUG_FILE_NOWHERE] = "none",
		[DEBUG_FILE_INSTALLED] = "installed",
		[DEBUG_FILE_BESIDE] = "beside",
		[DEBUG_FILE_CACHED] = "cached",
		[DEBUG_FILE_CACHED_DOTNET] = "dotnet-cache",
		[DEBUG_FILE_CACHED_DEBUGINFOD] = "debuginfod-cache",
		[DEBUG_FILE_CACHED_PERF] = "perf-cache",
		[DEBUG_FILE_MINI] = "mini",
	};

	return place < DEBUG_FILE_PLACES ? names[place] : "none";
}

bool debug_file_has(const struct elf_file *f, enum debug_file_want want)
{
	if (want == DEBUG_FILE_SYMBOLS)
		return elf_file_section(f, ".symtab", SHT_SYMTAB);
	return elf_file_section(f, ".debug_info", SHT_PROGBITS) ||
	       elf_file_section(f, ".zdebug_info", SHT_PROGBITS);
}

/* The query and the state of the search. */
struct search {
	const struct debug_file_query *query;
	struct build_id build_id;
	bool has_symtab, has_wanted; /* the image itself */
	char link[NAME_MAX + 1];     /* debug link; "": none */
	uint32_t link_crc;
	uint64_t crc_bytes; /* bytes read for checksums */
	const struct opener_place *root;
	enum debug_file_place place; /* the one being searched */
	bool no_memory;              /* ends the search */
	bool over_budget;            /* MiniDebugInfo was refused */
	bool denied;                 /* a file that matches was refused because of rights */
	struct debug_file *ret_debug;
};

static void read_link(struct search *s)
{
	const struct elf_file *image = s->query->image;
	const struct elf_section *section = elf_file_section(image, ".gnu_debuglink", 0);
	AUTO_FREE unsigned char *data = NULL;

	int error = section ? elf_file_read(image, section->file_off, section->bytes,
					    LINK_BYTES_MAX, &data)
			    : -ENOENT;

	s->no_memory |= error == -ENOMEM;
	if (error)
		return;
	size_t len = strlen((const char *)data), crc_at = (len + 4) & ~(size_t)3;

	if (!len || len > NAME_MAX || memchr(data, '/', len) || crc_at + 4 > section->bytes)
		return;
	memcpy(s->link, data, len + 1);
	memcpy(&s->link_crc, data + crc_at, 4);
}

uint64_t debug_file_take_uncompared(void)
{
	return atomic_exchange(&uncompared, 0);
}

void debug_file_limit_crc_total(uint64_t bytes)
{
	crc_left_bytes = (int64_t)bytes;
}

/* Compute a file's checksum. All candidates of an image share a limit, and all images another. */
static int crc_of(struct search *s, int fd, uint32_t *ret_crc)
{
	AUTO_FREE unsigned char *chunk = malloc(CRC_CHUNK);
	unsigned long crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	for (;;) {
		if (s->crc_bytes > DEBUG_FILE_CRC_BYTES_MAX || crc_left_bytes < 0) {
			uncompared++;
			return -E2BIG;
		}
		n = pread(fd, chunk, CRC_CHUNK, at);
		if (n <= 0)
			break;
		crc = crc32(crc, chunk, (unsigned int)n);
		at += n;
		s->crc_bytes += (uint64_t)n;
		crc_left_bytes -= n;
	}
	*ret_crc = (uint32_t)crc;
	return n < 0 ? -errno : 0;
}

static bool belongs(struct search *s, const struct elf_file *debug, int fd, bool by_link)
{
	struct build_id id = {0};
	uint32_t crc = 0;
	bool by_id = s->build_id.len;

	if (!debug_file_has(debug, s->query->want) || (!by_id && !by_link))
		return false;
	int error = by_id ? elf_file_build_id(debug, &id) : crc_of(s, fd, &crc);

	s->no_memory |= error == -ENOMEM;
	if (error)
		return false;
	return by_id ? id.len == s->build_id.len && !memcmp(id.bytes, s->build_id.bytes, id.len)
		     : crc == s->link_crc;
}

/* Take ownership of file. Close it if it does not match. True: a match, or out of memory. */
static bool try_file(struct search *s, int file, bool by_link, const char *path)
{
	AUTO_CLOSE int fd = file;
	struct elf_file debug;

	int error = fd < 0 ? fd : elf_file_open(&debug, fd, NULL, 0, NULL);

	s->no_memory |= error == -ENOMEM;
	if (error)
		return s->no_memory;
	if (!belongs(s, &debug, fd, by_link)) {
		elf_file_close(&debug);
		return s->no_memory;
	}
	s->ret_debug->elf = debug;
	s->ret_debug->fd = TAKE_FD(fd);
	s->ret_debug->memory = NULL;
	s->ret_debug->taken = 0;
	s->ret_debug->place = s->place;
	snprintf(s->ret_debug->path, sizeof(s->ret_debug->path), "%s", path);
	return true;
}

/* Note a file that the target may not read. Our rights open it, to compare its build id only. */
static void note_denied(struct search *s, const char *path)
{
	AUTO_CLOSE int fd = -1;
	struct elf_file debug;

	if (s->denied || !s->build_id.len || !s->root->own ||
	    opener_our_file(s->root->opener, s->root->pid, path, UINT64_MAX, &fd) ||
	    elf_file_open(&debug, fd, NULL, 0, NULL))
		return;
	s->denied = belongs(s, &debug, fd, false);
	elf_file_close(&debug);
}

/* Try one path that is made from format. */
static bool __attribute__((format(printf, 3, 4)))
try_path(struct search *s, bool by_link, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	int fd = -1, r = opener_place_open(s->root, path, &fd);

	if (r == -EACCES)
		note_denied(s, path);
	return try_file(s, r ? r : fd, by_link, path);
}

static bool try_link(struct search *s, const char *path, int dir_len)
{
	return path && s->link[0] &&
	       (try_path(s, true, "%.*s/%s", dir_len, path, s->link) ||
		try_path(s, true, "%.*s/.debug/%s", dir_len, path, s->link) ||
		try_path(s, true, "/usr/lib/debug%.*s/%s", dir_len, path, s->link));
}

static bool try_build_id(struct search *s)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (s->build_id.len < 2)
		return false;
	build_id_hex(&s->build_id, hex);
	return try_path(s, false, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
}

static bool try_root(struct search *s, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	int dir_len = slash ? (int)(slash - path) : 0;

	if (try_link(s, path, dir_len))
		return true;
	if (path && (try_path(s, false, "/usr/lib/debug%s.debug", path) ||
		     try_path(s, false, "/usr/lib/debug%s", path)))
		return true;
	if (try_build_id(s))
		return true;
	if (!path || s->has_symtab)
		return false;
	return try_path(s, false, "%.*s/.debug%s", dir_len, path, slash) ||
	       (!strncmp(path, "/usr/lib/", 9) && try_path(s, false, "/usr/lib/debug%s", path + 4));
}

static bool try_roots(struct search *s, const char *path)
{
	s->place = DEBUG_FILE_INSTALLED;
	for (size_t i = 0; i < s->query->nroots && !s->no_memory; i++) {
		s->root = &s->query->roots[i];
		if (try_root(s, path))
			return true;
	}
	if (s->has_wanted)
		return false;
	s->place = DEBUG_FILE_BESIDE;
	for (size_t i = 0; path && i < s->query->nroots && !s->no_memory; i++) {
		s->root = &s->query->roots[i];
		if (try_path(s, false, "%s.dbg", path) || try_path(s, false, "%s.debug", path))
			return true;
	}
	return false;
}

static bool try_caches(struct search *s)
{
	static const enum debug_file_place places[DEBUG_CACHE_PLACES] = {
		[DEBUG_CACHE_OWN] = DEBUG_FILE_CACHED,
		[DEBUG_CACHE_DOTNET] = DEBUG_FILE_CACHED_DOTNET,
		[DEBUG_CACHE_DEBUGINFOD] = DEBUG_FILE_CACHED_DEBUGINFOD,
		[DEBUG_CACHE_PERF] = DEBUG_FILE_CACHED_PERF,
	};
	char path[PATH_MAX];

	for (enum debug_cache_place i = 0; i < DEBUG_CACHE_PLACES && !s->no_memory; i++) {
		s->place = places[i];
		if (try_file(s, debug_cache_open_build_id(i, &s->build_id, path), false, path))
			return true;
	}
	return false;
}

/*
 * Unpack MiniDebugInfo within the budget, which also covers the decoder's dictionary: it takes at
 * most as much as the output. *ret_len bytes of the budget stay taken.
 */
static int unpack_mini(const struct elf_file *image, const struct elf_section *section,
		       unsigned char **ret_data, size_t *ret_len)
{
	AUTO_FREE unsigned char *packed = NULL;
	uint64_t left = elf_budget_left(ELF_BUDGET_SYMBOLS), bytes = section->bytes,
		 max = bytes < left ? (left - bytes) / 2 : 0;

	if (bytes > DEBUG_FILE_MINI_MAX)
		return -EBADMSG;
	if (!elf_budget_work(0))
		return -E2BIG;
	max = max < DEBUG_FILE_MINI_MAX ? max : DEBUG_FILE_MINI_MAX;
	int r = elf_budget_take(ELF_BUDGET_SYMBOLS, bytes + 2 * max);

	if (r)
		return r;
	r = elf_file_read(image, section->file_off, bytes, DEBUG_FILE_MINI_MAX, &packed);
	if (!r)
		r = xz_unpack(packed, (size_t)bytes, (size_t)max, ret_data, ret_len);
	/* .xz takes four times as long as other work. */
	elf_budget_worked(4 * *ret_len);
	elf_budget_give(ELF_BUDGET_SYMBOLS, bytes + 2 * max);
	if (r == -E2BIG && max == DEBUG_FILE_MINI_MAX)
		r = -EBADMSG; /* more memory would not help */
	return r ? r : elf_budget_take(ELF_BUDGET_SYMBOLS, *ret_len);
}

/*
 * Try MiniDebugInfo: symbols that some distributions leave in a stripped image, as an ELF file in
 * .xz.
 */
static bool try_mini(struct search *s)
{
	const struct elf_file *image = s->query->image;
	const struct elf_section *section =
		image ? elf_file_section(image, ".gnu_debugdata", SHT_PROGBITS) : NULL;
	AUTO_FREE unsigned char *unpacked = NULL;
	struct elf_file debug;
	size_t len = 0;

	if (!section || s->query->want != DEBUG_FILE_SYMBOLS)
		return false;
	int error = unpack_mini(image, section, &unpacked, &len);

	s->over_budget = error == -E2BIG;
	if (!error) {
		error = elf_file_open(&debug, -1, unpacked, len, NULL);
		if (!error && !debug_file_has(&debug, DEBUG_FILE_SYMBOLS)) {
			elf_file_close(&debug);
			error = -ENOENT;
		}
		if (error)
			elf_budget_give(ELF_BUDGET_SYMBOLS, len);
	}
	s->no_memory |= error == -ENOMEM;
	if (error)
		return s->no_memory;
	s->ret_debug->taken = len;
	s->ret_debug->elf = debug;
	s->ret_debug->fd = -1;
	s->ret_debug->memory = TAKE_PTR(unpacked);
	s->ret_debug->place = DEBUG_FILE_MINI;
	s->ret_debug->path[0] = 0;
	return true;
}

int debug_file_find(const struct debug_file_query *query, struct debug_file *ret_debug)
{
	struct search s = {.query = query, .build_id = query->build_id, .ret_debug = ret_debug};
	const char *path = query->path && query->path[0] == '/' && strlen(query->path) < PATH_MAX
				   ? query->path
				   : NULL;

	if (query->image) {
		int error = elf_file_build_id(query->image, &s.build_id);

		if (error)
			s.build_id.len = 0;
		s.no_memory = error == -ENOMEM;
		s.has_symtab = debug_file_has(query->image, DEBUG_FILE_SYMBOLS);
		s.has_wanted = debug_file_has(query->image, query->want);
		read_link(&s);
	}
	if (s.has_wanted && query->want == DEBUG_FILE_LINES)
		return -ENOENT;
	bool found = !s.no_memory && try_roots(&s, path);

	if (!found && !s.no_memory && !s.has_wanted)
		found = try_caches(&s) || (!s.no_memory && try_mini(&s));
	if (s.no_memory)
		return -ENOMEM;
	return found ? 0 : s.over_budget ? -E2BIG : s.denied ? -EACCES : -ENOENT;
}

void debug_file_close(struct debug_file *d)
{
	elf_file_close(&d->elf);
	cleanup_close(&d->fd);
	free(d->memory);
	elf_budget_give(ELF_BUDGET_SYMBOLS, d->taken);
	d->taken = 0;
	d->memory = NULL;
	d->fd = -1;
}
