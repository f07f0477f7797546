/*
 * Results after naming: images and the sources of their names, unread sources, notes, the audit.
 * Writes the store.
 */
#include "symbols/symbolizer_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool symbolizer_from_store(const struct symbolizer *s)
{
	return s->from_store;
}

uint64_t symbolizer_cut_stacks(const struct symbolizer *s)
{
	return s->callchains.cut;
}

uint64_t symbolizer_left_out(const struct symbolizer *s)
{
	return s->lookup_cache.left_out + images_stats(s->images).jit.methods_left_out;
}

uint64_t symbolizer_refused_kernel(const struct symbolizer *s)
{
	return s->kernel.refused;
}

bool symbolizer_can_store_all(const struct symbolizer *s)
{
	return !s->lookup_cache.unkept && !symbolizer_left_out(s);
}

bool symbolizer_has_improved(const struct symbolizer *s)
{
	return s->improved;
}

void symbolizer_images_free(struct symbolizer_images *images)
{
	for (size_t i = 0; i < images->list.len; i++)
		free(images->list.v[i].path);
	for (size_t i = 0; i < images->pdbs.len; i++)
		free(images->pdbs.v[i].name);
	vec_free(&images->pdbs);
	vec_free(&images->list);
}

static int symbolizer_image_of(const struct symbolizer *s, uint32_t id,
			       struct symbolizer_image *ret_image)
{
	const struct lookup_cache_image *cached = &s->lookup_cache.images.v[id];
	const struct image_key *key = &cached->key;
	const struct lookup_cache_stripped *stripped =
		cached->stripped ? &s->lookup_cache.stripped.v[cached->stripped - 1] : NULL;
	struct symbolizer_image image = {.build_id = stripped ? stripped->build_id : key->build_id,
					 .stripped = stripped && !stripped->named,
					 .unread = cached->unread};

	image.path = strdup(intern_text(&s->lookup_cache.texts, key->path));
	*ret_image = image;
	if (!image.path)
		return -ENOMEM;
	size_t len = strlen(image.path), tail = strlen(" (deleted)");

	if (len > tail && !strcmp(image.path + len - tail, " (deleted)"))
		image.path[len - tail] = 0;
	return 0;
}

static int symbolizer_copy_pdbs(const struct symbolizer *s, struct symbolizer_images *images)
{
	size_t n;
	const struct images_pdb *pdbs = images_pdbs(s->images, &n);

	for (size_t i = 0; i < n; i++) {
		struct symbolizer_pdb pdb = {.name = strdup(pdbs[i].name)};

		memcpy(pdb.guid, pdbs[i].guid, sizeof(pdb.guid));
		if (!pdb.name || vec_push(&images->pdbs, pdb)) {
			free(pdb.name);
			return -ENOMEM;
		}
	}
	return 0;
}

int symbolizer_images(const struct symbolizer *s, struct symbolizer_images *ret_images)
{
	uint32_t *places =
		calloc(s->lookup_cache.images.len + 1, sizeof(*places)); /* index in the list + 1 */
	struct symbolizer_images images = {0};
	int r = places ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < s->lookup_cache.images.len && !r; i++) {
		struct symbolizer_image image;

		if (s->lookup_cache.images.v[i].key.kind != IMAGE_KIND_FILE)
			continue;
		r = symbolizer_image_of(s, i, &image);
		if (!r && vec_push(&images.list, image)) {
			free(image.path);
			r = -ENOMEM;
		}
		places[i] = (uint32_t)images.list.len;
	}
	for (size_t i = 0; i < s->lookup_cache.entries.len && !r; i++) {
		const struct lookup_cache_entry *e = &s->lookup_cache.entries.v[i];
		uint32_t source = e->symbol == LOOKUP_NONE
					  ? SYMBOL_NONE
					  : s->lookup_cache.symbols.v[e->symbol].source;

		if (places[e->image] && source < SYMBOL_SOURCES)
			images.list.v[places[e->image] - 1].addrs[source]++;
	}
	free(places);
	if (!r)
		r = symbolizer_copy_pdbs(s, &images);
	if (r)
		symbolizer_images_free(&images);
	else
		*ret_images = images;
	return r;
}

/* Writes the name of an image's source of names, at most len bytes. */
static void symbolizer_source_name(const struct symbolizer *s,
				   const struct lookup_cache_image *image, char *text, size_t len)
{
	if (image->key.kind == IMAGE_KIND_JIT)
		snprintf(text, len, "/tmp/perf-%d.map", image->key.pid);
	else
		snprintf(text, len, "%s",
			 image->key.kind == IMAGE_KIND_KERNEL
				 ? "/proc/kallsyms"
				 : intern_text(&s->lookup_cache.texts, image->key.path));
}

void symbolizer_unread(const struct symbolizer *s, struct symbolizer_unread *ret_unread)
{
	struct symbolizer_unread unread = {.searched = !s->options.offline &&
						       (!s->has_store || s->options.recorded_here),
					   .has_store = s->has_store};

	for (size_t i = 0; i < s->lookup_cache.images.len; i++) {
		const struct lookup_cache_image *image = &s->lookup_cache.images.v[i];
		bool is_file = image->key.kind != IMAGE_KIND_JIT;

		if (!image->unread)
			continue;
		if (!unread.sources++ || (is_file && !unread.files))
			symbolizer_source_name(s, image, unread.first, sizeof(unread.first));
		unread.files += is_file;
		unread.closed |= !is_file && images_has_closed(s->images, (uint32_t)i);
		unread.kernel_hidden |=
			image->key.kind == IMAGE_KIND_KERNEL && image->why == IMAGE_REASON_DENIED;
	}
	*ret_unread = unread;
}

/* Several images can belong to one process: only the first counts. Returns 0 or -ENOMEM. */
static int symbolizer_add_jit_lineless(const struct symbolizer *s,
				       const struct lookup_cache_image *image, struct hashmap *pids,
				       struct symbolizer_missing_lines *l)
{
	uint32_t *place;
	int is_new = 0, r = 0;

	if (s->options.lines && (image->lineless || image->lines_unread))
		r = hashmap_entry(pids, (uint32_t)image->key.pid, 0, &place, &is_new);
	if (r || !is_new || l->jits++)
		return r;
	l->jit_pid = image->key.pid;
	images_jit_way(s->images, image->key.pid, l->jit_way, sizeof(l->jit_way));
	return 0;
}

int symbolizer_missing_lines(const struct symbolizer *s,
			     struct symbolizer_missing_lines *ret_lineless)
{
	struct symbolizer_missing_lines lineless = {0};
	struct hashmap pids = {0};
	int r = 0;

	for (size_t i = 0; i < s->lookup_cache.images.len && !r; i++) {
		const struct lookup_cache_image *image = &s->lookup_cache.images.v[i];

		if (image->key.kind == IMAGE_KIND_JIT)
			r = symbolizer_add_jit_lineless(s, image, &pids, &lineless);
		else if (image->lines_unread && !lineless.files++)
			symbolizer_source_name(s, image, lineless.first, sizeof(lineless.first));
	}
	hashmap_free(&pids);
	if (r)
		return r;
	size_t missing;
	const struct images_pdb *pdbs = images_pdbs(s->images, &missing);

	lineless.pdbs = missing;
	struct images_stats stats = images_stats(s->images);

	lineless.pdbs_refused = stats.pdbs_refused;
	snprintf(lineless.first_refused, sizeof(lineless.first_refused), "%s", stats.first_refused);
	if (missing)
		snprintf(lineless.first_pdb, sizeof(lineless.first_pdb), "%s", pdbs[0].name);
	*ret_lineless = lineless;
	return 0;
}

bool symbolizer_hides_lines(const struct symbolizer *s)
{
	return s->has_store && !s->options.lines && !s->options.inlines &&
	       s->lookup_cache.lines.chains.len;
}

bool symbolizer_can_add_lines(const struct symbolizer *s)
{
	size_t missing;

	(void)images_pdbs(s->images, &missing);
	/* With a complete store, this run did not search for missing lines. */
	return missing ||
	       (!s->options.lines && (s->from_store || images_stats(s->images).jit.il_maps));
}

bool symbolizer_has_new_lines(const struct symbolizer *s)
{
	return s->new_lines;
}

static struct store_notes symbolizer_notes(const struct symbolizer *s)
{
	if (!s->images || s->from_store)
		return s->notes;

	struct images_stats stats = images_stats(s->images);
	struct store_notes notes = {
		.kallsyms_hidden = s->kernel.live == KERNEL_MAP_NOT_TRIED
					   ? s->notes.kallsyms_hidden
					   : s->kernel.live == KERNEL_MAP_HIDDEN,
		.damage = s->notes.damage,
		.images_missing = s->options.offline ? s->notes.images_missing : stats.missing,
		.images_replaced = s->options.offline ? s->notes.images_replaced : stats.replaced,
		.jit_contradictions = s->notes.jit_contradictions + stats.jit.contradictions,
		.jit_doubts = s->notes.jit_doubts + stats.jit.doubts,
	};

	jit_damage_add(&notes.damage, &stats.jit.damage);
	return notes;
}

int symbolizer_store(struct symbolizer *s, int dir_fd)
{
	struct store_notes notes = symbolizer_notes(s);
	int r = images_note_processes(s->images);

	return r || s->store_left_out ? r : store_write(&s->lookup_cache, &notes, dir_fd);
}

static int symbolizer_main_comm(void *ctx, int32_t pid, uint32_t *ret_comm)
{
	struct symbolizer *s = ctx;
	struct process_thread *t;
	int r = processes_thread(s->tracker->processes, pid, pid, &t);

	*ret_comm = PROFILE_NONE;
	return r || !t->named ? r : processes_comm_of(s->tracker->processes, t, ret_comm);
}

int symbolizer_close_sources(struct symbolizer *s)
{
	int r = images_note_processes(s->images);

	s->notes = symbolizer_notes(s);
	images_free(s->images);
	s->images = NULL;
	stripped_free(s->stripped);
	s->stripped = NULL;
	kernel_map_free(&s->kernel);
	return r;
}

int symbolizer_audit(struct symbolizer *s, bool unwound, struct audit *ret_audit)
{
	struct audit_input input = {
		.profile = s->profile,
		.lookup_cache = &s->lookup_cache,
		.frame_images = s->frames.frame_images.v,
		.nframe_images = s->frames.frame_images.len,
		.frame_flags = s->callchains.frame_flags.v,
		.nframe_flags = s->callchains.frame_flags.len,
		.comm = symbolizer_main_comm,
		.ctx = s,
		.runtimes = &s->runtimes,
		.notes = symbolizer_notes(s),
		.by_profcpu = s->options.by_profcpu,
		.jit_names_off = s->options.jit_names_off,
		.unwound = unwound,
	};
	int r = s->images ? images_note_processes(s->images) : 0;

	return r ? r : audit_new(&input, ret_audit);
}
