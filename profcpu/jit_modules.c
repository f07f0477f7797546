#include "profcpu/jit_modules.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "symbols/clr_signature.h"
#include "symbols/pe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODULES_FILE_MAX ((uint64_t)1 << 30)
#define MODULES_METADATA_MAX ((uint32_t)64 << 20) /* of one; System.Private.CoreLib has 4 million bytes */
#define MODULES_BYTES_MAX ((uint64_t)512 << 20) /* of all */

struct module {
	unsigned char *data;
	struct clr_metadata *metadata; /* NULL: it cannot be had */
};

struct jit_modules {
	struct opener *opener;
	pid_t pid;
	uint64_t bytes;
	struct intern paths;
	VEC(struct module) modules; /* by id of path */
};

int jit_modules_new(struct opener *opener, pid_t pid, struct jit_modules **ret_modules)
{
	struct jit_modules *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->opener = opener;
	m->pid = pid;
	*ret_modules = m;
	return 0;
}

void jit_modules_free(struct jit_modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->modules.len; i++) {
		clr_metadata_free(m->modules.v[i].metadata);
		free(m->modules.v[i].data);
	}
	vec_free(&m->modules);
	intern_free(&m->paths);
	free(m);
}

static struct module read_module(struct jit_modules *m, const char *path)
{
	AUTO_FREE unsigned char *data = NULL;
	AUTO_CLOSE int fd = -1;
	struct module module = {0};
	struct pe_cli cli;
	struct stat st;
	struct pe pe;

	if (path[0] != '/' || opener_file(m->opener, m->pid, path, MODULES_FILE_MAX, &fd) || fstat(fd, &st))
		return module;
	struct pe_file file = {.fd = fd, .bytes = (uint64_t)st.st_size};

	if (pe_open(&file, &pe, NULL) || pe_cli(&pe, pe.directories[PE_CLI], &cli, NULL) ||
	    m->bytes + cli.metadata.bytes > MODULES_BYTES_MAX ||
	    pe_read(&pe, cli.metadata, MODULES_METADATA_MAX, &data, NULL) ||
	    clr_metadata_open(data, cli.metadata.bytes, &module.metadata, NULL))
		return module;
	m->bytes += cli.metadata.bytes;
	module.data = TAKE_PTR(data);
	return module;
}

const struct clr_metadata *jit_modules_get(struct jit_modules *m, const char *path)
{
	struct module none = {0};
	uint32_t id;

	if (intern_str(&m->paths, path, &id))
		return NULL;
	while (m->modules.len < id)
		if (vec_push(&m->modules, none))
			return NULL;
	if (m->modules.len == id && vec_push(&m->modules, read_module(m, path)))
		return NULL;
	return m->modules.v[id].metadata;
}

struct name {
	const char *text;
	size_t len;
};

static void put_name(struct clr_text *t, const void *ctx)
{
	const struct name *name = ctx;

	outbuf_put(t->out, name->text, name->len);
}

int jit_modules_signature(const struct clr_metadata *metadata, uint32_t token, const char *name, size_t len, struct outbuf *out)
{
	struct clr_text text = clr_text_begin(out, NULL);
	struct name n = {name, len};
	const unsigned char *blob;
	uint32_t rid = token & 0xffffff;
	struct reader sig;
	size_t bytes;

	if (token >> 24 != CLR_METHOD_DEF || !rid || rid > clr_metadata_rows(metadata, CLR_METHOD_DEF))
		return -ENOENT;
	blob = clr_metadata_blob(metadata, clr_metadata_cell(metadata, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_SIGNATURE), &bytes);
	if (!blob)
		return -EBADMSG;
	sig = reader_of(blob, bytes);
	clr_text_method(&text, metadata, &sig, put_name, &n);
	return clr_text_end(&text);
}
