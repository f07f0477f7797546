#include "dotnet/coreclr/modules.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/outbuf.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/emitted.h"

#include <errno.h>

#define PAGE_BYTES 4096
#define PE_HEADERS_BYTES 4096
#define PE_HEADERS_LEAST 512
#define PE_SECTION_BYTES 40
#define PE_OPTIONAL_64 0x20b
#define PE_CLI_DIRECTORY 14
#define CLI_HEADER_BYTES 16
#define LAYOUT_MAPPED 1u

/* Unreadable memory of a module must not end the scan. */
static int as_not_found(int r)
{
	return r == -EFAULT || r == -EBADMSG || r == -E2BIG ? -ENOENT : r;
}

static int read_u64(const struct clr_modules_cache *m, uint64_t addr, uint64_t *ret)
{
	*ret = 0;
	return as_not_found(addr > 4096 ? m->io->read(m->io->ctx, addr, ret, sizeof(*ret))
					: -EFAULT);
}

/* An image as the runtime loaded it. */
struct layout {
	uint64_t base;
	uint32_t bytes;
	bool mapped; /* sections lie at their RVAs; otherwise it has the layout of the file */
};

static int read_layout(const struct clr_modules_cache *m, uint64_t assembly_file,
		       struct layout *ret)
{
	const uint32_t *at = m->contract->at;
	uint64_t image = 0, layout = 0;
	int r = read_u64(m, assembly_file + at[CLR_PEASSEMBLY_IMAGE], &image);

	if (!r)
		r = read_u64(m, image + at[CLR_IMAGE_LAYOUT], &layout);
	if (!r)
		r = read_u64(m, layout + at[CLR_LAYOUT_BASE], &ret->base);
	uint32_t flags = 0;

	if (!r)
		r = as_not_found(
			m->io->read(m->io->ctx, layout + at[CLR_LAYOUT_SIZE], &ret->bytes, 4));
	if (!r)
		r = as_not_found(m->io->read(m->io->ctx, layout + at[CLR_LAYOUT_FLAGS], &flags, 4));
	ret->mapped = flags & LAYOUT_MAPPED;
	return r;
}

/*
 * Converts an RVA into an addr in a layout. headers: first bytes of the image. pe: offset after its
 * signature.
 */
static int rva_addr(const struct layout *l, const unsigned char *headers, size_t len, size_t pe,
		    uint32_t rva, uint32_t bytes, uint64_t *ret_addr)
{
	size_t at = pe + 20 + clr_u16(headers, pe + 16), n = clr_u16(headers, pe + 2);
	uint64_t place = rva;

	for (size_t i = 0; !l->mapped && i < n; i++, at += PE_SECTION_BYTES) {
		if (at + PE_SECTION_BYTES > len)
			return -EBADMSG;
		uint32_t start = clr_u32(headers, at + 12), size = clr_u32(headers, at + 16),
			 file_off = clr_u32(headers, at + 20);

		if (rva < start || rva - start >= size)
			continue;
		place = (uint64_t)file_off + (rva - start);
		break;
	}
	if (place + bytes > l->bytes)
		return -EBADMSG;
	*ret_addr = l->base + place;
	return 0;
}

/* Finds the metadata of an image. Microsoft PE specification; ECMA-335 II.25.3.3. */
static int find_metadata(const struct clr_modules_cache *m, const struct layout *l,
			 uint64_t *ret_addr, uint32_t *ret_bytes)
{
	unsigned char headers[PE_HEADERS_BYTES] = {0}, cli[CLI_HEADER_BYTES];
	size_t len = l->bytes < sizeof(headers) ? l->bytes : sizeof(headers);
	uint64_t cli_addr;
	int r = len < PE_HEADERS_LEAST ? -EBADMSG : m->io->read(m->io->ctx, l->base, headers, len);

	if (r)
		return as_not_found(r);
	size_t pe = clr_u32(headers, 60) + (size_t)4;

	if (memcmp(headers, "MZ", 2) || pe > len - 256 || memcmp(headers + pe - 4, "PE\0", 4))
		return -ENOENT;
	size_t directories = pe + 20 + (clr_u16(headers, pe + 20) == PE_OPTIONAL_64 ? 112 : 96);

	r = rva_addr(l, headers, len, pe, clr_u32(headers, directories + 8 * PE_CLI_DIRECTORY),
		     CLI_HEADER_BYTES, &cli_addr);
	if (!r)
		r = m->io->read(m->io->ctx, cli_addr, cli, sizeof(cli));
	if (!r)
		r = rva_addr(l, headers, len, pe, clr_u32(cli, 8), clr_u32(cli, 12), ret_addr);
	if (!r)
		*ret_bytes = clr_u32(cli, 12);
	return as_not_found(r);
}

static void release(struct clr_modules_cache *m, struct clr_module_copy *copy)
{
	clr_metadata_free(copy->metadata);
	free(copy->data);
	m->bytes -= copy->bytes;
	*copy = (struct clr_module_copy){0};
}

/*
 * Finds the runtime's copy of Reflection.Emit metadata; its size precedes it. Each new type brings
 * a new copy.
 */
static int find_dynamic_copy(const struct clr_modules_cache *m, const struct clr_module *mod,
			     uint64_t *ret_addr, uint32_t *ret_bytes)
{
	*ret_addr = mod->dynamic + m->contract->at[CLR_DYNAMIC_METADATA];
	return as_not_found(m->io->read(m->io->ctx,
					mod->dynamic + m->contract->at[CLR_DYNAMIC_METADATA_SIZE],
					ret_bytes, 4));
}

/* Copies bytes at addr. */
static int read_copy(const struct clr_modules_cache *m, uint64_t addr, uint32_t bytes, size_t max,
		     struct clr_module_copy *copy)
{
	if (!bytes || bytes > max)
		return -ENOENT;
	copy->bytes = bytes;
	copy->data = bigmem_alloc(bytes, 1);
	return copy->data ? as_not_found(m->io->read(m->io->ctx, addr, copy->data, bytes))
			  : -ENOMEM;
}

/*
 * The target's addr of the MVID in a copy; 0: unknown. addr: address of the copied bytes, or of the
 * GUIDs for emitted metadata.
 */
static uint64_t mvid_addr(const struct clr_module_copy *copy, uint64_t addr, bool emitted)
{
	const unsigned char *mvid = clr_metadata_mvid(copy->metadata);
	size_t len;

	if (!mvid)
		return 0;
	if (!emitted)
		return addr + (uint64_t)(mvid - (const unsigned char *)copy->data);
	/* Further GUIDs may be in other segments. */
	return mvid == clr_metadata_stream(copy->metadata, "#GUID", &len) ? addr : 0;
}

/* Reads the metadata. Returns 0 also if the module has none that is readable. */
static int load(struct clr_modules_cache *m, struct clr_module *mod)
{
	uint64_t left = m->bytes < CLR_METADATA_MAX ? CLR_METADATA_MAX - m->bytes : 0;
	size_t max = left < CLR_MODULE_METADATA_MAX ? left : CLR_MODULE_METADATA_MAX;
	struct clr_module_copy copy = {0};
	struct layout layout = {0};
	uint64_t addr = 0;
	uint32_t bytes = 0;
	int r;

	if (mod->emitted) {
		r = clr_emitted_read(m->io, mod->assembly_file, max, &copy.data, &copy.bytes,
				     &addr);
	} else if (mod->dynamic) {
		r = find_dynamic_copy(m, mod, &addr, &bytes);
	} else {
		r = read_layout(m, mod->assembly_file, &layout);
		if (!r)
			r = find_metadata(m, &layout, &addr, &bytes);
	}
	if (!r && !mod->emitted)
		r = read_copy(m, addr, bytes, max, &copy);
	if (!r)
		r = as_not_found(clr_metadata_open(copy.data, copy.bytes, &copy.metadata, NULL));
	if (r) {
		free(copy.data);
		return r == -ENOENT ? 0 : r;
	}
	mod->now = copy;
	mod->mvid_addr = addr ? mvid_addr(&copy, addr, mod->emitted) : 0;
	m->bytes += copy.bytes;
	return 0;
}

/* Whether an assembly has no file, and no copy of its metadata in file format. */
static int is_emitted(const struct clr_modules_cache *m, uint64_t assembly_file, bool *ret)
{
	uint64_t image = 0;
	int r = m->contract->emitted
			? read_u64(m, assembly_file + m->contract->at[CLR_PEASSEMBLY_IMAGE], &image)
			: 0;

	*ret = m->contract->emitted && !r && !image;
	return r;
}

/* Reads the module that is now at the address. */
static int read_now(struct clr_modules_cache *m, struct clr_module *mod)
{
	const uint32_t *at = m->contract->at;
	int r;

	mod->assembly_file = mod->dynamic = mod->mvid_addr = 0;
	r = read_u64(m, mod->addr + at[CLR_MODULE_PEASSEMBLY], &mod->assembly_file);
	if (!r && at[CLR_MODULE_DYNAMIC] != CLR_NONE)
		r = read_u64(m, mod->addr + at[CLR_MODULE_DYNAMIC], &mod->dynamic);
	if (!r)
		r = is_emitted(m, mod->assembly_file, &mod->emitted);
	if (!r)
		r = load(m, mod);
	/* After an error, read it again at the next lookup. */
	mod->checked_in = r ? 0 : m->scan;
	return r;
}

/* Identifies the module at an address. */
struct identity {
	uint64_t assembly_file, dynamic;
	unsigned char mvid[CLR_MVID_BYTES];
};

static bool is_same(const struct clr_module *mod, const struct identity *now)
{
	const unsigned char *mvid = mod->mvid_addr ? clr_metadata_mvid(mod->now.metadata) : NULL;

	return mod->assembly_file == now->assembly_file && mod->dynamic == now->dynamic &&
	       (!mvid || !memcmp(mvid, now->mvid, sizeof(now->mvid)));
}

static int read_identities(const struct clr_modules_cache *m, struct identity *now,
			   struct clr_batch *batch)
{
	const uint32_t *at = m->contract->at;
	int r = 0;

	for (size_t i = 0; !r && i < m->modules.len; i++) {
		const struct clr_module *mod = &m->modules.v[i];
		bool known = mod->checked_in,
		     has_dynamic = known && at[CLR_MODULE_DYNAMIC] != CLR_NONE;

		r = clr_batch_add(batch, mod->addr + at[CLR_MODULE_PEASSEMBLY],
				  &now[i].assembly_file, known ? 8 : 0);
		if (!r)
			r = clr_batch_add(batch,
					  has_dynamic ? mod->addr + at[CLR_MODULE_DYNAMIC] : 0,
					  &now[i].dynamic, has_dynamic ? 8 : 0);
		if (!r)
			r = clr_batch_add(batch, mod->mvid_addr, now[i].mvid,
					  known && mod->mvid_addr ? CLR_MVID_BYTES : 0);
	}
	return r ? r : clr_batch_run(batch);
}

int clr_modules_check(struct clr_modules_cache *m)
{
	AUTO_FREE struct identity *now = calloc(m->modules.len + 1, sizeof(*now));
	struct clr_batch batch = {.io = m->io};
	int r = !now ? -ENOMEM : m->checked == m->scan ? 0 : read_identities(m, now, &batch);

	for (size_t i = 0; !r && m->checked != m->scan && i < m->modules.len; i++) {
		struct clr_module *mod = &m->modules.v[i];

		/* Left from an earlier scan: no reader remains. */
		release(m, &mod->old);
		if (!mod->checked_in)
			continue;
		if (clr_batch_ok(&batch, 3 * i) && clr_batch_ok(&batch, 3 * i + 1) &&
		    clr_batch_ok(&batch, 3 * i + 2) && is_same(mod, &now[i])) {
			mod->checked_in = m->scan;
			continue;
		}
		release(m, &mod->now);
		free(mod->path);
		mod->path = NULL;
		mod->checked_in = 0;
		m->replaced++;
	}
	if (!r)
		m->checked = m->scan;
	clr_batch_free(&batch);
	return r;
}

/* Reads the metadata again. Keeps the old copy, because the caller may be using it for a name. */
static int read_grown(struct clr_modules_cache *m, struct clr_module *mod)
{
	mod->grew = m->scan;
	release(m, &mod->old);
	mod->old = mod->now;
	mod->now = (struct clr_module_copy){0};
	return read_now(m, mod);
}

static bool has_row(const struct clr_module *mod, enum clr_table table, uint32_t rid)
{
	return mod->now.metadata && rid && rid <= clr_metadata_rows(mod->now.metadata, table);
}

static int module_at(struct clr_modules_cache *m, uint64_t addr, struct clr_module **ret)
{
	const uint32_t *index = hashmap_get(&m->by_addr, addr);
	int r = 0;

	if (index) {
		*ret = &m->modules.v[*index];
		return 0;
	}
	if (m->modules.len >= CLR_MODULES_MAX)
		return -ENOENT;
	r = vec_push(&m->modules, (struct clr_module){.addr = addr});
	if (!r)
		r = hashmap_put(&m->by_addr, addr, (uint32_t)(m->modules.len - 1));
	if (!r)
		*ret = &m->modules.v[m->modules.len - 1];
	return r;
}

int clr_modules_get(struct clr_modules_cache *m, uint64_t addr, enum clr_table table, uint32_t rid,
		    const struct clr_metadata **ret_metadata)
{
	struct clr_module *mod = NULL;
	int r = module_at(m, addr, &mod);

	if (!r && mod->checked_in != m->scan)
		r = read_now(m, mod);
	if (!r && (mod->dynamic || mod->emitted) && !has_row(mod, table, rid) &&
	    mod->grew != m->scan)
		r = read_grown(m, mod);
	if (r)
		return r;
	if (!has_row(mod, table, rid))
		return -ENOENT;
	*ret_metadata = mod->now.metadata;
	return 0;
}

size_t clr_modules_failed(const struct clr_modules_cache *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->modules.len; i++)
		n += m->modules.v[i].checked_in && !m->modules.v[i].now.metadata;
	return n;
}

/* Reads a text without a length, which may end just before unmapped memory. */
static int read_path(const struct clr_modules_cache *m, uint64_t addr, uint16_t *units,
		     size_t *ret_n)
{
	size_t n = 0;

	while (n < CLR_MODULE_PATH_MAX) {
		size_t step = (PAGE_BYTES - (addr + 2 * n) % PAGE_BYTES) / 2;
		int r;

		step = step > CLR_MODULE_PATH_MAX - n ? CLR_MODULE_PATH_MAX - n : step;
		r = step ? m->io->read(m->io->ctx, addr + 2 * n, units + n, 2 * step) : -EFAULT;
		if (r)
			return as_not_found(r);
		for (size_t end = n + step; n < end; n++)
			if (!units[n]) {
				*ret_n = n;
				return 0;
			}
	}
	return -ENOENT;
}

/* Finds the path; the caller frees it. 0; -ENOENT: none. */
static int find_path(const struct clr_modules_cache *m, uint64_t addr, char **ret_path)
{
	AUTO_FREE uint16_t *units = malloc(CLR_MODULE_PATH_MAX * sizeof(*units));
	uint32_t at = m->contract->at[CLR_MODULE_PATH];
	struct outbuf text = outbuf_to(-1);
	uint64_t place = 0;
	size_t n = 0;
	int r = !units ? -ENOMEM : at == CLR_NONE ? -ENOENT : read_u64(m, addr + at, &place);

	if (!r)
		r = place > PAGE_BYTES ? read_path(m, place, units, &n) : -ENOENT;
	if (!r) {
		outbuf_utf16(&text, units, n);
		r = text.error;
	}
	if (!r)
		*ret_path = strndup(text.data ? text.data : "", text.len);
	(void)outbuf_close(&text);
	return r ? r : *ret_path ? 0 : -ENOMEM;
}

int clr_modules_path(struct clr_modules_cache *m, uint64_t addr, const char **ret_path)
{
	struct clr_module *mod = NULL;
	int r = module_at(m, addr, &mod);

	if (!r && !mod->path) {
		r = m->path_bytes < CLR_MODULE_PATHS_MAX ? find_path(m, addr, &mod->path) : -ENOENT;
		m->path_bytes += r ? 0 : strlen(mod->path);
		if (r == -ENOENT)
			r = (mod->path = strdup("")) ? 0 : -ENOMEM;
	}
	if (!r)
		*ret_path = mod->path;
	return r;
}

bool clr_modules_is_made(const struct clr_modules_cache *m, uint64_t addr)
{
	const uint32_t *index = hashmap_get(&m->by_addr, addr);

	return index && (m->modules.v[*index].dynamic || m->modules.v[*index].emitted);
}

void clr_modules_free(struct clr_modules_cache *m)
{
	for (size_t i = 0; i < m->modules.len; i++) {
		release(m, &m->modules.v[i].now);
		release(m, &m->modules.v[i].old);
		free(m->modules.v[i].path);
	}
	vec_free(&m->modules);
	hashmap_free(&m->by_addr);
}
