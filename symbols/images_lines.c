/* Looks up lines and inlined functions of images: a part of symbols/images.h. */
#include "base/cleanup.h"
#include "symbols/images_impl.h"
#include "symbols/r2r_image.h"
#include "symbols/r2r_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define IMAGES_PDBS_MAX 65536

/* portable_pdb_open_image: opens a file in the image's directory. */
static int images_open_pdb(void *ctx, const char *name, int *ret_fd)
{
	struct pe_file file;
	int r = images_open_beside(ctx, name, &file);

	if (!r)
		*ret_fd = file.fd;
	return r;
}

/* Notes a missing PDB, as struct pdb_places and struct jit_lines_files require. */
static int images_note_missing_pdb(void *ctx, const struct portable_pdb_id *id)
{
	const struct images_beside *of = ctx;
	struct images *im = of->images;
	struct images_pdb pdb = {.name = NULL};

	for (size_t i = 0; i < im->pdbs.len; i++)
		if (!memcmp(im->pdbs.v[i].guid, id->guid, sizeof(id->guid)))
			return 0;
	if (im->pdbs.len >= IMAGES_PDBS_MAX)
		return 0;
	memcpy(pdb.guid, id->guid, sizeof(pdb.guid));
	pdb.name = strdup(id->name);
	if (pdb.name && !vec_push(&im->pdbs, pdb))
		return 0;
	free(pdb.name);
	return -ENOMEM;
}

const struct images_pdb *images_pdbs(const struct images *im, size_t *ret_n)
{
	*ret_n = im->pdbs.len;
	return im->pdbs.v;
}

/* Gets the PDB budget of a process, which lives as long as im. */
static int images_process_budget(struct images *im, int32_t pid, struct pdb_budget **ret_budget)
{
	const uint32_t *place = hashmap_get(&im->budget_of, (uint32_t)pid);
	struct pdb_budget *budget;

	if (place) {
		*ret_budget = im->process_budgets.v[*place];
		return 0;
	}
	budget = malloc(sizeof(*budget));
	if (!budget || vec_push(&im->process_budgets, budget)) {
		free(budget);
		return -ENOMEM;
	}
	*budget = (struct pdb_budget){&im->pdb_budget_total, 0};
	*ret_budget = budget;
	return hashmap_put(&im->budget_of, (uint32_t)pid, (uint32_t)im->process_budgets.len - 1);
}

static int images_open_managed_lines(struct images *im, struct images_source *s, int fd)
{
	struct pdb_places places = {.open_beside = images_open_pdb,
				    .missing = images_note_missing_pdb,
				    .ctx = s->beside};
	struct pe_file file = {.fd = fd};
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return 0;
	file.bytes = (uint64_t)st.st_size;
	r = images_process_budget(im, s->pid, &places.budget);
	if (!r)
		r = r2r_lines_open(&file, s->precompiled, &places, &s->lines);

	return r == -ENOMEM ? r : 0;
}

/* jit_lines_files: opens a file of the process that mapped an image. */
static int images_open_process_file(void *ctx, const char *path, int *ret_fd)
{
	const struct images_beside *of = ctx;
	struct image_file_place place = images_place(of->images, &of->images->sources.v[of->image]);

	return image_file_open(&place, path, ret_fd);
}

/* Opens the lines of the code that a process compiled. */
static int images_open_jit_lines(struct images *im, uint32_t image)
{
	struct images_source *s = &im->sources.v[image];
	struct jit_lines_files files = {.open = images_open_process_file,
					.missing = images_note_missing_pdb};
	int r = images_process_budget(im, s->pid, &files.budget);

	if (r)
		return r;
	s->lines_tried = true;
	files.ctx = s->beside = malloc(sizeof(*s->beside));
	if (!s->beside)
		return -ENOMEM;
	*s->beside = (struct images_beside){im, image};
	r = jit_sources_lines(im->jit, im->lookup_cache->images.v[image].key.pid,
			      im->sources.v[image].mapped_ns, &files, &s->lines);

	return r == -ENOENT ? 0 : r;
}

/* Opens the source of an image's lines, once. */
static int images_open_lines(struct images *im, uint32_t image)
{
	const struct image_key *key = &im->lookup_cache->images.v[image].key;
	struct images_source *s = &im->sources.v[image];
	const char *path = intern_text(&im->lookup_cache->texts, key->path);
	struct elf_file file = {.fd = -1};
	struct opener_place roots[2];
	int fd, r;

	if (s->lines_tried)
		return 0;
	if (key->kind == IMAGE_KIND_JIT)
		return images_open_jit_lines(im, image);
	r = images_open(im, image);
	if (r)
		return r;
	s->lines_tried = true;
	s->lines_unread = s->unread;
	bool managed = s->precompiled && r2r_image_is(s->precompiled);

	if (key->kind != IMAGE_KIND_FILE || (!s->elf && !managed))
		return 0;
	r = s->elf ? images_headers(im, image, &file) : images_file(im, image, &fd);
	if (r) {
		s->lines_unread = true;
		return r == -ENOMEM ? r : 0;
	}
	if (!s->elf)
		return images_open_managed_lines(im, s, fd);
	r = line_source_dwarf(&file, path, roots, images_roots(im, s, &file, roots), &s->lines);
	elf_file_close(&file);
	return r == -ENOMEM ? r : 0;
}

/* Bytes of texts and of chains. Tables of addresses are counted by LOOKUP_ENTRY_BYTES. */
static uint64_t images_line_bytes(const struct lookup_cache *cache)
{
	return cache->texts.text.total_bytes +
	       2 * cache->lines.lines.len * sizeof(*cache->lines.lines.v) +
	       cache->lines.chains.len * LOOKUP_ENTRY_BYTES;
}

/* Makes a chain of lookup_cache from the frames of a line source. */
static int images_chain(struct images *im, const struct inline_frame *frames, size_t n,
			uint32_t *ret_chain)
{
	struct line_cache_line lines[INLINES_DEPTH_MAX];
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		lines[i] = (struct line_cache_line){LOOKUP_NONE, LOOKUP_NONE, frames[i].line};
		/* The last frame is named by the symbol. */
		if (frames[i].function && i + 1 < n)
			r = intern_str(&im->lookup_cache->texts, frames[i].function,
				       &lines[i].function);
		if (!r && frames[i].file)
			r = intern_str(&im->lookup_cache->texts, frames[i].file, &lines[i].file);
	}
	return r ? r : line_cache_chain(&im->lookup_cache->lines, lines, n, ret_chain);
}

int images_lookup_lines(struct images *im, uint32_t image, uint32_t symbol, uint64_t addr,
			uint64_t time_ns, uint32_t *ret_chain, bool *ret_unread)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	uint32_t chain = LOOKUP_NONE;
	size_t n;
	int r = images_add_source(im, image);

	_Static_assert(INLINES_DEPTH_MAX <= LINE_CACHE_CHAIN_MAX,
		       "chains hold all frames of an address");
	if (!r)
		r = images_open_lines(im, image);
	if (r)
		return r;
	const struct images_source *s = &im->sources.v[image];

	*ret_unread = s->lines_unread;
	*ret_chain = LOOKUP_NONE;
	if (s->lines_unread)
		return 0;
	im->lookup_cache->images.v[image].lineless = !s->lines;
	if (!s->lines)
		return 0;
	if (fair_share_room(&im->lookup_cache->line_bytes, im->lookup_cache->taker) <
	    LOOKUP_ENTRY_BYTES) {
		im->lookup_cache->left_out++;
		*ret_unread = true;
		return 0;
	}
	r = line_source_find(s->lines, addr, time_ns, frames, &n);
	uint64_t had = images_line_bytes(im->lookup_cache);

	if (!r)
		r = images_chain(im, frames, n, &chain);
	fair_share_take(&im->lookup_cache->line_bytes, im->lookup_cache->taker,
			images_line_bytes(im->lookup_cache) - had + LOOKUP_ENTRY_BYTES);
	if (r == -ENOMEM || r == -E2BIG)
		return r;
	*ret_chain = chain;
	return line_cache_put(&im->lookup_cache->lines, symbol, addr, chain);
}
