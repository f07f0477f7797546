#include "symbols/jit/lines.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "dotnet/metadata.h"
#include "elf/inlines.h"
#include "symbols/jit/names.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The PDB of a module, read at the first lookup of a line. */
struct module_pdb {
	bool tried;
	struct portable_pdb *pdb; /* NULL: none was found */
};

struct jit_lines {
	struct line_source base;
	struct symbol_provider *names;
	struct jit_lines_files files;
	const struct jit_il *il; /* NULL: no maps */
	struct module_pdb *pdbs; /* by module */
};

/* ctx of the callbacks of pdb_find. */
struct beside {
	const struct jit_lines *lines;
	const char *path; /* of the assembly */
};

static int open_beside(void *ctx, const char *name, int *ret_fd)
{
	const struct beside *b = ctx;
	const char *slash = strrchr(b->path, '/');
	char path[PATH_MAX];

	if (!slash || snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - b->path), b->path,
			       name) >= (int)sizeof(path))
		return -ENOENT;
	return b->lines->files.open(b->lines->files.ctx, path, ret_fd);
}

static int note_missing(void *ctx, const struct portable_pdb_id *id)
{
	const struct beside *b = ctx;

	return b->lines->files.missing ? b->lines->files.missing(b->lines->files.ctx, id) : 0;
}

/* 0: the MVIDs are equal; -ESTALE: the file is another build; -errno. */
static int check_mvid(const struct pe *pe, const unsigned char *mvid)
{
	AUTO_FREE unsigned char *data = NULL;
	struct clr_metadata *metadata = NULL;
	const unsigned char *own;
	struct pe_cli cli;
	int r = pe_cli(pe, pe->directories[PE_CLI], &cli, NULL);

	if (!r)
		r = pe_read(pe, cli.metadata, JIT_LINES_METADATA_MAX, &data, NULL);
	if (!r)
		r = clr_metadata_open(data, cli.metadata.bytes, &metadata, NULL);
	if (r)
		return r;
	own = clr_metadata_mvid(metadata);
	r = own && !memcmp(own, mvid, JIT_IL_ID_BYTES) ? 0 : -ESTALE;
	clr_metadata_free(metadata);
	return r;
}

static int check_id(const struct pe *pe, const struct jit_il_module *module)
{
	struct portable_pdb_id id;
	int r;

	switch (module->kind) {
	case JIT_IL_MVID:
		return check_mvid(pe, module->id);
	case JIT_IL_PDB:
		r = portable_pdb_id(pe, &id);
		return r ? r : memcmp(id.guid, module->id, JIT_IL_ID_BYTES) ? -ESTALE : 0;
	default:
		/*
		 * The module had no PDB when it was compiled, so one that exists now is of another
		 * build.
		 */
		return -ENOENT;
	}
}

static int open_pdb(const struct jit_lines *l, const struct jit_il_module *module,
		    struct portable_pdb **ret_pdb)
{
	struct beside beside = {l, module->path};
	AUTO_CLOSE int fd = -1;
	struct stat st;
	struct pe pe;
	int r = module->path[0] == '/' ? l->files.open(l->files.ctx, module->path, &fd) : -ENOENT;

	if (!r && fstat(fd, &st))
		r = -errno;
	if (r)
		return r;
	r = pe_open(&(struct pe_file){.fd = fd, .bytes = (uint64_t)st.st_size}, &pe, NULL);
	if (!r)
		r = check_id(&pe, module);
	const struct pdb_places places = {.open_beside = open_beside,
					  .missing = note_missing,
					  .ctx = &beside,
					  .budget = l->files.budget};

	return r ? r : pdb_find(&pe, &places, ret_pdb);
}

/* Finds the source line of a place in IL. Returns 0, -ENOENT, -ENOMEM. */
static int find_line(struct jit_lines *l, const struct jit_il_place *place,
		     struct inline_frame *frame)
{
	struct module_pdb *m = &l->pdbs[place->module];

	if (!m->tried) {
		m->tried = true;
		if (open_pdb(l, jit_il_module(l->il, place->module), &m->pdb) == -ENOMEM)
			return -ENOMEM;
	}
	return m->pdb ? portable_pdb_line(m->pdb, place->rid, place->il, &frame->file, &frame->line)
		      : -ENOENT;
}

static int lines_find(struct line_source *base, uint64_t addr, uint64_t time_ns,
		      struct inline_frame *frames, size_t *ret_n)
{
	struct jit_lines *l = (struct jit_lines *)base;
	struct inline_frame frame = {0};
	struct jit_il_place place;
	struct jitdump_line line;
	int r = jit_names_line(l->names, addr, time_ns, &line);

	if (!r) {
		frame.file = path_base(line.file);
		frame.line = line.line;
	} else {
		r = l->il ? jit_names_il(l->names, addr, time_ns, &place) : -ENOENT;
		if (!r)
			r = find_line(l, &place, &frame);
	}
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	frames[0] = frame;
	*ret_n = 1;
	return 0;
}

static void lines_free(struct line_source *base)
{
	struct jit_lines *l = (struct jit_lines *)base;

	for (size_t i = 0; l->pdbs && i < jit_il_modules(l->il); i++)
		portable_pdb_free(l->pdbs[i].pdb);
	free(l->pdbs);
	free(l);
}

static const struct line_source_ops lines_ops = {.find = lines_find, .free = lines_free};

int jit_lines_open(struct symbol_provider *names, const struct jit_lines_files *files,
		   struct line_source **ret_source)
{
	const struct jit_il *il;
	struct jit_lines *l;

	if (!jit_names_has_lines(names, &il))
		return -ENOENT;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct jit_lines){.base = {&lines_ops}, .names = names, .files = *files, .il = il};
	if (il) {
		l->pdbs = calloc(jit_il_modules(il) + 1, sizeof(*l->pdbs));
		if (!l->pdbs) {
			free(l);
			return -ENOMEM;
		}
	}
	*ret_source = &l->base;
	return 0;
}
