#include "symbols/map_record.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

void map_record_ids_free(struct map_record_ids *ids)
{
	hashmap_free(&ids->by_path);
	vec_free(&ids->ids);
}

static struct build_id map_record_build_id(const struct perfdata_build_id *id)
{
	struct build_id out = {.len = id->len <= BUILD_ID_MAX ? id->len : BUILD_ID_MAX};

	_Static_assert(BUILD_ID_MAX == PERFDATA_BUILD_ID_MAX, "build ids are copied whole");
	memcpy(out.bytes, id->bytes, out.len);
	return out;
}

int map_record_ids_put(struct map_record_ids *ids, uint32_t path,
		       const struct perfdata_build_id *id)
{
	if (!id->len)
		return 0;
	if (vec_push(&ids->ids, map_record_build_id(id)))
		return -ENOMEM;
	return hashmap_put(&ids->by_path, path, (uint32_t)ids->ids.len - 1);
}

const struct build_id *map_record_ids_get(const struct map_record_ids *ids, uint32_t path)
{
	const uint32_t *index = hashmap_get(&ids->by_path, path);

	return index ? &ids->ids.v[*index] : NULL;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/*
 * Memory without a file, as perf defines it (tools/perf/util/map.h); perf looks it up in the
 * process's perf map.
 */
static bool is_anonymous(const struct perfdata_mmap *m)
{
	return !strcmp(m->filename, "//anon") || starts_with(m->filename, "/dev/zero") ||
	       starts_with(m->filename, "/anon_hugepage") || starts_with(m->filename, "[stack") ||
	       starts_with(m->filename, "/SYSV") || !strcmp(m->filename, "[heap]") ||
	       (m->flags & MAP_HUGETLB);
}

bool map_record_is_executable(const struct perfdata_record *record)
{
	return record->type == PERF_RECORD_MMAP ? !(record->misc & PERF_RECORD_MISC_MMAP_DATA)
						: !!(record->mmap.prot & PROT_EXEC);
}

static enum image_kind image_kind_of(const struct perfdata_record *record, bool anonymous)
{
	const char *name = record->mmap.filename;

	if (anonymous)
		return map_record_is_executable(record) ? IMAGE_KIND_JIT : IMAGE_KIND_OTHER;
	if (starts_with(name, "/memfd:"))
		return IMAGE_KIND_JIT;
	if (!strcmp(name, "[vdso]") || !strcmp(name, "[vdso32]") || !strcmp(name, "[vdsox32]"))
		return IMAGE_KIND_VDSO;
	if (!strcmp(name, "[vsyscall]"))
		return IMAGE_KIND_VSYSCALL;
	return name[0] == '/' && name[1] != '/' ? IMAGE_KIND_FILE : IMAGE_KIND_OTHER;
}

/* Whether the paths of a process belong to a root of its own. */
static bool has_other_root(struct opener *opener, int32_t pid)
{
	struct opener_process process;

	return opener && !opener_process(opener, pid, &process) && process.other_root;
}

static void fill_file_key(const struct perfdata_record *record, const struct map_record_ids *ids,
			  struct opener *opener, struct image_key *key)
{
	const struct perfdata_mmap *m = &record->mmap;
	const struct build_id *header = m->build_id.len ? NULL : map_record_ids_get(ids, key->path);

	key->build_id = header ? *header : map_record_build_id(&m->build_id);
	key->maj = m->maj;
	key->min = m->min;
	key->ino = m->ino;
	key->ino_generation = m->ino_generation;
	/* Files of equal path in two containers differ only by container. */
	if (!key->build_id.len && !key->ino && has_other_root(opener, record->pid))
		key->pid = record->pid;
}

int map_record_key(const struct perfdata_record *record, struct intern *texts,
		   const struct map_record_ids *ids, struct opener *opener,
		   struct image_key *ret_key, bool *ret_anonymous)
{
	bool anonymous = is_anonymous(&record->mmap);
	struct image_key key = {.kind = (uint8_t)image_kind_of(record, anonymous)};
	const char *path = record->mmap.filename;

	/* The kernel has two, and one name for both. */
	if (!strcmp(path, "[vdso]") && record->mmap.addr <= UINT32_MAX)
		path = "[vdso32]";
	int r = intern_str(texts, path, &key.path);

	if (r)
		return r;
	if (key.kind == IMAGE_KIND_FILE)
		fill_file_key(record, ids, opener, &key);
	else if (key.kind == IMAGE_KIND_JIT)
		key.pid = record->pid;
	*ret_key = key;
	*ret_anonymous = anonymous;
	return 0;
}
