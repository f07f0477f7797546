#include "symbols/core/symbol_file.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/reader.h"
#include "elf/debug_cache.h"
#include "elf/debug_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PDB_HEADER_MAX ((size_t)4096) /* bytes of metadata headers that are read */
#define PDB_STREAMS_MAX 16
#define PDB_SIGNATURE 0x424a5342u /* "BSJB" */
#define MAP_HEADER_MAX ((size_t)256)

/* Keys */

static bool is_name(const char *name)
{
	return name && name[0] && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

/*
 * The byte order of a written GUID, whose first three parts are little-endian numbers. The
 * permutation is its own inverse.
 */
static const uint8_t guid_order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

static void guid_hex(const uint8_t *id, char *hex)
{
	for (size_t i = 0; i < sizeof(guid_order); i++)
		snprintf(hex + 2 * i, 3, "%02x", id[guid_order[i]]);
}

static void plain_hex(const uint8_t *id, size_t len, char *hex)
{
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
}

int symbol_file_key(const struct symbol_file *f, char *key, size_t cap)
{
	char hex[2 * BUILD_ID_MAX + 1];
	int n;

	if (f->kind == SYMBOL_FILE_ELF) {
		uint8_t padded[BUILD_ID_MAX] = {0};

		if (!f->build_id.len)
			return -EINVAL;
		memcpy(padded, f->build_id.bytes, f->build_id.len);
		plain_hex(padded, sizeof(padded), hex);
		n = snprintf(key, cap, "_.debug/elf-buildid-sym-%s/_.debug", hex);
	} else {
		if (!is_name(f->name))
			return -EINVAL;
		if (f->kind == SYMBOL_FILE_PDB) {
			guid_hex(f->id, hex);
			n = snprintf(key, cap, "%s/%sFFFFFFFF/%s", f->name, hex, f->name);
		} else {
			plain_hex(f->id, sizeof(f->id), hex);
			n = snprintf(key, cap, "%s/r2rmap-v%u-%s/%s", f->name, f->version, hex,
				     f->name);
		}
		/* Lower-case only the names, not "FFFFFFFF". */
		for (char *p = key; n > 0 && (size_t)n < cap && *p; p++)
			if (!(f->kind == SYMBOL_FILE_PDB && p >= key + strlen(f->name) &&
			      p <= key + strlen(f->name) + 40))
				*p = (char)tolower((unsigned char)*p);
	}
	return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

static int hex_bytes(const char *hex, uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char pair[3] = {hex[2 * i], hex[2 * i] ? hex[2 * i + 1] : 0, 0};

		if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
			return -EINVAL;
		bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return 0;
}

/* Parse the middle part of a key. */
static int read_id(const char *id, struct symbol_file *f)
{
	static const char elf[] = "elf-buildid-sym-", map[] = "r2rmap-v";
	uint8_t guid[sizeof(f->id)];
	char *end;

	if (!strncmp(id, elf, strlen(elf))) {
		f->kind = SYMBOL_FILE_ELF;
		f->build_id.len = BUILD_ID_MAX;
		return hex_bytes(id + strlen(elf), f->build_id.bytes, BUILD_ID_MAX);
	}
	if (!strncmp(id, map, strlen(map))) {
		f->kind = SYMBOL_FILE_R2R_MAP;
		f->version = (uint32_t)strtoul(id + strlen(map), &end, 10);
		return *end == '-' ? hex_bytes(end + 1, f->id, sizeof(f->id)) : -EINVAL;
	}
	f->kind = SYMBOL_FILE_PDB;
	if (hex_bytes(id, guid, sizeof(guid)))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(guid); i++)
		f->id[i] = guid[guid_order[i]];
	return 0;
}

int symbol_file_of_key(const char *key, struct symbol_file *ret_file, char *name)
{
	struct symbol_file f = {.name = name};
	const char *id = strchr(key, '/'), *last = id ? strchr(id + 1, '/') : NULL;
	char again[DEBUG_CACHE_KEY_MAX];

	if (!last || (size_t)(id - key) > NAME_MAX)
		return -EINVAL;
	memcpy(name, key, (size_t)(id - key));
	name[id - key] = 0;
	if (read_id(id + 1, &f) || symbol_file_key(&f, again, sizeof(again)) ||
	    strcmp(key, again) != 0)
		return -EINVAL;
	*ret_file = f;
	return 0;
}

/* Checks */

static int check_elf(const struct symbol_file *f, int fd, const char **ret_what)
{
	struct build_id id = {0};
	struct elf_file elf;
	int error = elf_file_open(&elf, fd, NULL, 0, NULL);

	if (error) {
		*ret_what = "is not an ELF file";
		return error == -ENOMEM ? error : -EBADMSG;
	}
	error = elf_file_build_id(&elf, &id);
	if (error == -ENOENT)
		*ret_what = "has no build id";
	/* Both build ids are padded with zeros, as in keys. */
	else if (!error && memcmp(id.bytes, f->build_id.bytes, sizeof(id.bytes)) != 0)
		*ret_what = "has another build id", error = -EBADMSG;
	else if (!error && !debug_file_has(&elf, DEBUG_FILE_SYMBOLS) &&
		 !debug_file_has(&elf, DEBUG_FILE_LINES))
		*ret_what = "has no symbols", error = -EBADMSG;
	elf_file_close(&elf);
	return error == -ENOENT ? -EBADMSG : error;
}

/*
 * Find the offset of the #Pdb stream in a metadata root (ECMA-335, II.24.2). Returns 0 or -EBADMSG.
 */
static int find_pdb_stream(struct reader *r, uint64_t *ret_at)
{
	if (reader_u32(r) != PDB_SIGNATURE)
		return -EBADMSG;
	reader_skip(r, 8);
	uint32_t version_len = reader_u32(r);

	reader_skip(r, version_len);
	reader_skip(r, 2);
	uint16_t streams = reader_u16(r);

	for (uint16_t i = 0; i < streams && i < PDB_STREAMS_MAX && !r->failed; i++) {
		uint32_t at = reader_u32(r);
		size_t len = 0;

		reader_skip(r, 4);
		const char *name = reader_cstr(r, 32, &len);

		reader_skip(r, 3 - len % 4);
		if (name && !strcmp(name, "#Pdb")) {
			*ret_at = at;
			return 0;
		}
	}
	return -EBADMSG;
}

static ssize_t read_head(int fd, unsigned char *head, size_t cap)
{
	ssize_t n = pread(fd, head, cap, 0);

	return n < 0 ? -errno : n;
}

static int check_pdb(const struct symbol_file *f, int fd, const char **ret_what)
{
	unsigned char head[PDB_HEADER_MAX];
	uint8_t id[sizeof(f->id)];
	ssize_t n = read_head(fd, head, sizeof(head));
	uint64_t at;

	if (n < 0)
		return (int)n;
	struct reader r = reader_of(head, (size_t)n);

	*ret_what = "is not a portable PDB";
	if (find_pdb_stream(&r, &at) || file_pread_all(fd, id, sizeof(id), at))
		return -EBADMSG;
	*ret_what = "has another GUID";
	return memcmp(id, f->id, sizeof(id)) ? -EBADMSG : 0;
}

/*
 * Check the first line, "FFFFFFFF 00 SIGNATURE" (PerfMapWriter of dotnet/runtime's
 * ILCompiler.Diagnostics).
 */
static int check_map(const struct symbol_file *f, int fd, const char **ret_what)
{
	static const char mark[] = "FFFFFFFF 00 ";
	char head[MAP_HEADER_MAX + 1], hex[2 * sizeof(f->id) + 1];
	ssize_t n = read_head(fd, (unsigned char *)head, MAP_HEADER_MAX);

	if (n < 0)
		return (int)n;
	head[n] = 0;
	*ret_what = "is not a map of a ReadyToRun image";
	if (strncmp(head, mark, strlen(mark)) != 0)
		return -EBADMSG;
	const char *signature = head + strlen(mark);

	plain_hex(f->id, sizeof(f->id), hex);
	*ret_what = "has another signature";
	return strncasecmp(signature, hex, strlen(hex)) || !strchr("\r\n", signature[strlen(hex)])
		       ? -EBADMSG
		       : 0;
}

int symbol_file_check(const struct symbol_file *f, int fd, const char **ret_what)
{
	switch (f->kind) {
	case SYMBOL_FILE_ELF:
		return check_elf(f, fd, ret_what);
	case SYMBOL_FILE_PDB:
		return check_pdb(f, fd, ret_what);
	default:
		return check_map(f, fd, ret_what);
	}
}
