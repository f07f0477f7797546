#include "symbols/image.h"

#include "base/cleanup.h"
#include "symbols/debug_file.h"
#include "symbols/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* perf keeps symbols by file offset; so does the table inside, and vaddrs are translated on the way in and out. */
struct image_provider {
	struct symbol_provider provider;
	struct elf_symbols symbols;
	const struct image *image;
};

static const struct image_segment *segment_of(const struct image *image, uint64_t vaddr)
{
	for (size_t i = 0; i < image->nsegments; i++) {
		const struct image_segment *s = &image->segments[i];
		uint64_t bytes = s->mem_bytes > s->file_bytes ? s->mem_bytes : s->file_bytes;

		if (vaddr >= s->vaddr && vaddr - s->vaddr < bytes)
			return s;
	}
	return NULL;
}

static int image_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		      struct symbol *ret_symbol)
{
	const struct image_provider *ip = (const struct image_provider *)p;
	const struct image_segment *s = segment_of(ip->image, addr);

	if (!s)
		return -ENOENT;
	uint64_t delta = s->vaddr - s->file_off;
	int error = symbol_provider_find(&ip->symbols.table->provider, addr - delta, time_ns, ret_symbol);

	if (error)
		return error;
	uint64_t bytes = s->mem_bytes > s->file_bytes ? s->mem_bytes : s->file_bytes;
	uint64_t last = bytes - 1 > UINT64_MAX - s->vaddr ? UINT64_MAX : s->vaddr + (bytes - 1);
	uint64_t before = addr - delta - ret_symbol->start, behind = ret_symbol->end - (addr - delta);

	/* A symbol without a size may reach over the end of its segment: there it answers no more. */
	ret_symbol->start = before > addr - s->vaddr ? s->vaddr : addr - before;
	ret_symbol->end = behind > last - addr ? last : addr + behind;
	if (ret_symbol->end <= addr)
		ret_symbol->end = addr + 1;
	ret_symbol->base += delta;
	return 0;
}

static uint32_t image_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	const struct image_provider *ip = (const struct image_provider *)p;
	const struct image_segment *s = segment_of(ip->image, addr);

	return s ? symbol_provider_piece(&ip->symbols.table->provider, addr - (s->vaddr - s->file_off), time_ns)
		 : SYMBOL_NO_PIECE;
}

static void image_provider_free(struct symbol_provider *p)
{
	struct image_provider *ip = (struct image_provider *)p;

	elf_symbols_free(&ip->symbols);
	free(ip);
}

static const struct symbol_provider_ops image_ops = {
	.name = "image",
	.find = image_find,
	.piece = image_piece,
	.free = image_provider_free,
};

static int load_symbols(struct image *image, const struct elf_file *f, const struct elf_file *debug,
			enum symbol_source source)
{
	struct image_provider *ip = calloc(1, sizeof(*ip));

	if (!ip)
		return -ENOMEM;
	ip->provider.ops = &image_ops;
	ip->image = image;
	int error = elf_symbols_load(f, debug, source, &ip->symbols);

	if (error) {
		free(ip);
		if (error == -ENOMEM)
			return error;
		image->symbols_error = error == -ENOENT ? 0 : error;
		return 0;
	}
	image->symbols = &ip->provider;
	return 0;
}

/* Takes what is needed of an open file. */
static int make_image(struct elf_file *f, const char *path, const int *roots, size_t nroots,
		      enum symbol_source source, struct image **ret_image)
{
	struct image *image = calloc(1, sizeof(*image));
	struct elf_file debug;
	AUTO_CLOSE int debug_fd = -1;

	if (!image)
		return -ENOMEM;
	image->is_elf = true;
	int error = elf_file_build_id(f, &image->build_id);

	if (error)
		image->build_id.len = 0;
	if (error != -ENOMEM)
		error = debug_file_find(f, path, roots, nroots, &debug, &debug_fd);
	bool has_debug = !error;

	if (error != -ENOMEM)
		error = load_symbols(image, f, has_debug ? &debug : NULL, source);
	if (has_debug)
		elf_file_close(&debug);
	if (error) {
		image_free(image);
		return error;
	}
	image->has_debug_file = has_debug;
	image->nsegments = f->nsegments;
	image->segments = TAKE_PTR(f->segments);
	*ret_image = image;
	return 0;
}

int image_open(int fd, const char *path, const int *roots, size_t nroots, struct image **ret_image,
	       struct parse_error *err)
{
	struct elf_file f;
	int error = elf_file_open(&f, fd, NULL, 0, err);

	if (error)
		return error;
	error = make_image(&f, path, roots, nroots, SYMBOL_NONE, ret_image);
	elf_file_close(&f);
	return error;
}

int image_from_memory(const void *data, size_t len, enum symbol_source source, struct image **ret_image,
		      struct parse_error *err)
{
	struct elf_file f;
	int error = elf_file_open(&f, -1, data, len, err);

	if (error)
		return error;
	error = make_image(&f, NULL, NULL, 0, source, ret_image);
	elf_file_close(&f);
	return error;
}

void image_free(struct image *image)
{
	if (!image)
		return;
	symbol_provider_free(image->symbols);
	free(image->segments);
	free(image);
}

int image_vaddr(const struct image *image, uint64_t file_off, uint64_t *ret_vaddr)
{
	for (size_t i = 0; i < image->nsegments; i++) {
		const struct image_segment *s = &image->segments[i];

		if (file_off >= s->file_off && file_off - s->file_off < s->file_bytes) {
			*ret_vaddr = file_off - s->file_off + s->vaddr;
			return 0;
		}
	}
	return -ENOENT;
}

int image_build_id_of(int fd, struct image_build_id *ret_build_id)
{
	struct elf_file f;
	int error = elf_file_open(&f, fd, NULL, 0, NULL);

	if (error)
		return error;
	error = elf_file_build_id(&f, ret_build_id);
	elf_file_close(&f);
	return error;
}

void image_build_id_hex(const struct image_build_id *id, char *buf)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->len && i < IMAGE_BUILD_ID_MAX; i++) {
		*buf++ = digits[id->bytes[i] >> 4];
		*buf++ = digits[id->bytes[i] & 15];
	}
	*buf = 0;
}
