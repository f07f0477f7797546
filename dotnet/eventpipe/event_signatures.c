#include "dotnet/eventpipe/event_signatures.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/metadata.h"
#include "dotnet/pe.h"
#include "dotnet/portable_pdb.h"
#include "dotnet/signature_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct event_module {
	unsigned char *data;
	struct clr_metadata *metadata;
	int error; /* why metadata is NULL */
};

struct event_signatures {
	struct opener *opener;
	pid_t pid;
	uint64_t bytes; /* bytes of metadata read */
	struct share *memory;
	uint64_t counted; /* bytes in memory */
	VEC(struct event_module) modules;
	struct hashmap by_key; /* by rundown_module_key */
};

int event_signatures_new(struct opener *o, pid_t pid, struct share *memory,
			 struct event_signatures **ret_signatures)
{
	struct event_signatures *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->opener = o;
	s->pid = pid;
	s->memory = memory;
	*ret_signatures = s;
	return 0;
}

static void event_module_free(struct event_module *m)
{
	clr_metadata_free(m->metadata);
	free(m->data);
}

void event_signatures_free(struct event_signatures *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->modules.len; i++)
		event_module_free(&s->modules.v[i]);
	vec_free(&s->modules);
	hashmap_free(&s->by_key);
	share_release(s->memory, &s->counted);
	free(s);
}

/*
 * Whether the file was built together with the PDB of the loaded module. True also if neither names
 * a PDB.
 */
static bool event_same_build(const struct pe *pe, const unsigned char *guid)
{
	static const unsigned char no_guid[16];
	struct portable_pdb_id id;
	int r = portable_pdb_id(pe, &id);

	return memcmp(guid, no_guid, sizeof(no_guid))
		       ? !r && !memcmp(id.guid, guid, sizeof(no_guid))
		       : r == -ENOENT;
}

static int event_module_open(struct event_signatures *s, const struct rundown_module *module,
			     struct event_module *ret)
{
	AUTO_FREE unsigned char *data = NULL;
	AUTO_CLOSE int fd = -1;
	struct pe_cli cli;
	struct stat st;
	struct pe pe;
	int r = module->il_path[0] == '/' ? opener_file(s->opener, s->pid, module->il_path,
							EVENT_SIGNATURES_FILE_MAX, &fd)
					  : -ENOENT;

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	const struct pe_file file = {.fd = fd, .bytes = (uint64_t)st.st_size};

	r = pe_open(&file, &pe, NULL);
	if (!r)
		r = pe_cli(&pe, pe.directories[PE_CLI], &cli, NULL);
	if (!r && !event_same_build(&pe, module->pdb_guid))
		r = -ENOENT;
	if (!r && s->bytes + cli.metadata.bytes > EVENT_SIGNATURES_BYTES_MAX)
		r = -E2BIG;
	if (!r)
		r = share_count(s->memory, &s->counted, s->bytes + cli.metadata.bytes);
	/*
	 * Count also metadata that turns out to be invalid. A target may have any number of files.
	 */
	if (!r)
		s->bytes += cli.metadata.bytes;
	if (!r)
		r = pe_read(&pe, cli.metadata, EVENT_SIGNATURES_METADATA_MAX, &data, NULL);
	if (!r)
		r = clr_metadata_open(data, cli.metadata.bytes, &ret->metadata, NULL);
	if (r)
		return r;
	ret->data = TAKE_PTR(data);
	return 0;
}

static int event_module_get(struct event_signatures *s, const struct rundown_module *module,
			    const struct clr_metadata **ret_metadata)
{
	uint64_t key = rundown_module_key(module);
	const uint32_t *known = hashmap_get(&s->by_key, key);
	struct event_module fresh = {0};

	if (!known) {
		fresh.error = event_module_open(s, module, &fresh);
		if (vec_push(&s->modules, fresh)) {
			event_module_free(&fresh);
			return -ENOMEM;
		}
		if (hashmap_put(&s->by_key, key, (uint32_t)(s->modules.len - 1)))
			return -ENOMEM; /* the next lookup opens it again */
		known = hashmap_get(&s->by_key, key);
	}
	const struct event_module *m = &s->modules.v[*known];

	if (!m->error)
		*ret_metadata = m->metadata;
	return m->error;
}

struct event_text {
	const char *text;
	size_t len;
};

static void put_event_name(struct clr_text *t, const void *ctx)
{
	const struct event_text *name = ctx;

	outbuf_put(t->out, name->text, name->len);
}

/*
 * Whether the row has the event's method name. A module made anew with the same id has other
 * methods.
 */
static bool event_names_row(const struct clr_metadata *m, uint32_t rid, const char *name,
			    size_t len)
{
	const char *row = clr_metadata_string(
		m, clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_NAME));
	size_t n = row ? strlen(row) : 0;

	return n && len > n + 2 && !memcmp(name + len - n, row, n) &&
	       !memcmp(name + len - n - 2, "::", 2);
}

int event_signatures_put(void *ctx, const struct rundown_module *module, uint32_t token,
			 const char *name, size_t len, struct outbuf *out)
{
	const struct event_text text = {name, len};
	const struct clr_metadata *m;
	uint32_t rid = token & 0xffffff;
	size_t blob_len = 0;
	int r = token >> 24 == CLR_METHOD_DEF ? event_module_get(ctx, module, &m) : -ENOENT;

	if (r)
		return r;
	if (!rid || rid > clr_metadata_rows(m, CLR_METHOD_DEF) ||
	    !event_names_row(m, rid, name, len))
		return -ENOENT;
	const unsigned char *blob = clr_metadata_blob(
		m, clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_SIGNATURE), &blob_len);

	if (!blob)
		return -ENOENT;
	struct reader sig = reader_of(blob, blob_len);
	struct clr_text t = clr_text_begin(out, NULL);

	clr_text_put_method(&t, m, &sig, put_event_name, &text);
	return clr_text_end(&t);
}
