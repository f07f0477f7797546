#include "symbols/store/store.h"

#include "base/cleanup.h"
#include "base/outbuf.h"
#include "base/replace.h"
#include "symbols/core/symbol.h"
#include "symbols/store/store_fields.h"
#include "symbols/store/store_lines.h"
#include "symbols/store/store_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void store_put_name(struct outbuf *out, const struct lookup_cache *cache, uint32_t text)
{
	store_text_put_name(out, intern_text(&cache->texts, text), intern_len(&cache->texts, text));
}

static void store_put_image(struct outbuf *out, const struct lookup_cache *cache,
			    const struct image_key *image)
{
	char hex[2 * BUILD_ID_MAX + 1] = "-";

	if (image->build_id.len)
		build_id_hex(&image->build_id, hex);
	outbuf_printf(out, "image %s %s %x %x %llx %llx %d ", store_word_kind(image->kind), hex,
		      image->maj, image->min, (unsigned long long)image->ino,
		      (unsigned long long)image->ino_generation, image->pid);
	store_put_name(out, cache, image->path);
}

static void store_put_symbol(struct outbuf *out, const struct lookup_cache *cache,
			     const struct lookup_cache_symbol *s)
{
	outbuf_printf(out, "symbol %llx %llx %s ", (unsigned long long)s->start,
		      (unsigned long long)(s->end - s->start),
		      symbol_source_name((enum symbol_source)s->source));
	if (s->module == LOOKUP_NONE)
		outbuf_char(out, '-');
	else
		outbuf_put(out, intern_text(&cache->texts, s->module),
			   intern_len(&cache->texts, s->module));
	outbuf_char(out, ' ');
	store_put_name(out, cache, s->name);
	if (s->from_ns || s->until_ns != UINT64_MAX)
		outbuf_printf(out, "during %llx %llx\n", (unsigned long long)s->from_ns,
			      (unsigned long long)s->until_ns);
}

/* Order of the file: by image, then by symbol id with "nothing" last, then by address. */
static int store_compare(const void *x, const void *y)
{
	const struct lookup_cache_entry *a = x, *b = y;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->symbol != b->symbol)
		return a->symbol < b->symbol ? -1 : 1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

static void store_put_entries(struct outbuf *out, const struct lookup_cache *cache,
			      struct store_lines *lines, const struct lookup_cache_entry *e,
			      size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool new_image = !i || e[i].image != e[i - 1].image;
		bool new_symbol = new_image || e[i].symbol != e[i - 1].symbol;
		bool known = e[i].symbol != LOOKUP_NONE;

		if (i && new_symbol)
			outbuf_char(out, '\n');
		if (i && new_symbol && e[i - 1].symbol != LOOKUP_NONE)
			store_lines_put(out, lines, e[i - 1].symbol);
		if (new_image)
			store_put_image(out, cache, &cache->images.v[e[i].image].key);
		if (new_symbol && known)
			store_put_symbol(out, cache, &cache->symbols.v[e[i].symbol]);
		if (new_symbol)
			outbuf_str(out, known ? "at" : "nothing");
		outbuf_char(out, ' ');
		outbuf_hex(out, known        ? e[i].addr - cache->symbols.v[e[i].symbol].start
				: new_symbol ? e[i].addr
					     : e[i].addr - e[i - 1].addr);
	}
	if (n)
		outbuf_char(out, '\n');
	if (n && e[n - 1].symbol != LOOKUP_NONE)
		store_lines_put(out, lines, e[n - 1].symbol);
}

static void store_put_stripped(struct outbuf *out, const struct lookup_cache_stripped *stripped)
{
	char hex[2 * BUILD_ID_MAX + 1];

	build_id_hex(&stripped->build_id, hex);
	outbuf_printf(out, "stripped %s", hex);
	for (size_t i = 0; i < stripped->nsegments; i++) {
		const struct elf_segment *s = &stripped->segments[i];

		outbuf_printf(out, " %llx %llx %llx %llx %x", (unsigned long long)s->vaddr,
			      (unsigned long long)s->file_off, (unsigned long long)s->file_bytes,
			      (unsigned long long)s->mem_bytes, s->flags);
	}
	outbuf_char(out, '\n');
}

/* Write the state of the images' sources. */
static void store_put_sources(struct outbuf *out, const struct lookup_cache *cache)
{
	for (size_t i = 0; i < cache->images.len; i++) {
		const struct lookup_cache_image *image = &cache->images.v[i];
		const struct lookup_cache_stripped *stripped =
			image->stripped ? &cache->stripped.v[image->stripped - 1] : NULL;

		if (stripped && stripped->named)
			stripped = NULL;
		if (!image->unread && !stripped && !image->lineless && !image->why)
			continue;
		store_put_image(out, cache, &image->key);
		if (image->unread)
			outbuf_str(out, "unread\n");
		if (stripped)
			store_put_stripped(out, stripped);
		if (image->lineless)
			outbuf_str(out, "lineless\n");
		if (image->why)
			outbuf_printf(out, "note why %s\n", store_word_reason(image->why));
	}
}

static const char *store_text_of(const struct lookup_cache *cache, uint32_t text)
{
	return text == LOOKUP_NONE ? NULL : intern_text(&cache->texts, text);
}

static void store_put_processes(struct outbuf *out, const struct lookup_cache *cache)
{
	for (size_t i = 0; i < cache->processes.len; i++) {
		const struct lookup_cache_process *p = &cache->processes.v[i];
		const char *why = store_text_of(cache, p->why);

		outbuf_printf(out, "note process %d %d %d %llx %llx ", p->pid, p->ns_pid,
			      p->jitdump_early | p->open << 1,
			      (unsigned long long)p->contradictions, (unsigned long long)p->doubts);
		store_text_put_field(out, store_text_of(cache, p->version));
		store_text_put_field(out, store_text_of(cache, p->way));
		store_text_put_name(out, why ? why : "-", why ? strlen(why) : 1);
	}
}

/* Write a count unless it is 0. */
static void store_put_note(struct outbuf *out, const char *key, uint64_t value)
{
	if (value)
		outbuf_printf(out, "note %s %llx\n", key, (unsigned long long)value);
}

int store_print(const struct lookup_cache *cache, const struct store_notes *notes, int fd)
{
	AUTO_FREE struct lookup_cache_entry *sorted =
		malloc((cache->entries.len + 1) * sizeof(*sorted));
	struct outbuf out = outbuf_to(fd);
	struct store_lines lines;

	if (!sorted || store_lines_begin(&lines, cache))
		return -ENOMEM;
	memcpy(sorted, cache->entries.v ? cache->entries.v : sorted,
	       cache->entries.len * sizeof(*sorted));
	qsort(sorted, cache->entries.len, sizeof(*sorted), store_compare);
	outbuf_printf(&out, "profcpu-symbols %d\n", STORE_FORMAT);
	if (notes->kallsyms_hidden)
		outbuf_str(&out, "note kallsyms hidden\n");
	outbuf_printf(&out, "note images_missing %llx\n",
		      (unsigned long long)notes->images_missing);
	outbuf_printf(&out, "note images_replaced %llx\n",
		      (unsigned long long)notes->images_replaced);
	store_put_note(&out, "jit_contradictions", notes->jit_contradictions);
	store_put_note(&out, "jit_doubts", notes->jit_doubts);
	for (enum jit_damage_kind i = 0; i < JIT_DAMAGE_KINDS; i++)
		store_put_note(&out, jit_damage_store_key(i), notes->damage.n[i]);
	store_put_note(&out, "unkept", cache->unkept);
	store_put_entries(&out, cache, &lines, sorted, cache->entries.len);
	store_put_sources(&out, cache);
	store_put_processes(&out, cache);
	outbuf_printf(&out, "end %llx\n", (unsigned long long)cache->entries.len);
	store_lines_end(&lines);
	return outbuf_close(&out);
}

int store_write(const struct lookup_cache *lookup_cache, const struct store_notes *notes,
		int dir_fd)
{
	struct replace file;
	struct stat st;
	int r = replace_open(&file, dir_fd, STORE_FILE, REPLACE_PRIVATE);

	if (!r)
		r = store_print(lookup_cache, notes, file.fd);
	/* Do not replace a readable file by one that is too large to read. */
	if (!r && !fstat(file.fd, &st) && (uint64_t)st.st_size > STORE_BYTES_MAX)
		r = -E2BIG;
	if (!r)
		r = replace_commit_durably(&file);
	replace_abort(&file);
	return r;
}
