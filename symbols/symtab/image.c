#include "symbols/symtab/image.h"

#include "base/cleanup.h"
#include "elf/budget.h"
#include "elf/debug_file.h"
#include "symbols/symtab/elf_symbols.h"

#include <errno.h>
#include <string.h>

static int load_symbols(struct image *image, const struct elf_file *f,
			const struct debug_file *debug, enum symbol_source source)
{
	struct elf_symbols symbols;
	enum elf_symbols_debug kind = !debug                            ? ELF_SYMBOLS_OWN
				      : debug->place == DEBUG_FILE_MINI ? ELF_SYMBOLS_MINI
									: ELF_SYMBOLS_SEPARATE;
	int error = elf_symbols_load(f, debug ? &debug->elf : NULL, kind, source, &symbols);

	if (error == -ENOMEM)
		return error;
	if (error) {
		image->symbols_error = error == -ENOENT ? image->symbols_error : error;
		return 0;
	}
	image->symbols = &symbols.table->provider;
	image->symbols_taken = symbols.taken;
	image->symbols_error = symbols.over_limit ? -E2BIG : image->symbols_error;
	memcpy(image->strings, symbols.strings, sizeof(image->strings));
	return 0;
}

static int set_segments(struct image *image, const struct elf_segment *segments, size_t n)
{
	image->segments = calloc(n + 1, sizeof(*segments));
	if (!image->segments)
		return -ENOMEM;
	image->nsegments = n;
	if (n)
		memcpy(image->segments, segments, n * sizeof(*segments));
	return 0;
}

/* Make an image from an open file. */
static int make_image(const struct elf_file *f, const char *path, const struct opener_place *roots,
		      size_t nroots, enum symbol_source source, struct image **ret_image)
{
	struct image *image = calloc(1, sizeof(*image));
	struct debug_file debug;

	if (!image)
		return -ENOMEM;
	image->is_elf = true;
	image->has_symtab = debug_file_has(f, DEBUG_FILE_SYMBOLS);
	image->native_aot = elf_file_section(f, ELF_SYMBOLS_AOT_SECTION, 0);
	int error = elf_file_build_id(f, &image->build_id);

	if (error)
		image->build_id.len = 0;
	if (error != -ENOMEM)
		error = debug_file_find(
			&(struct debug_file_query){
				.image = f, .path = path, .roots = roots, .nroots = nroots},
			&debug);
	bool has_debug = !error;

	image->symbols_error = error == -E2BIG ? error : 0;
	image->debug_denied = error == -EACCES;

	if (error != -ENOMEM)
		error = load_symbols(image, f, has_debug ? &debug : NULL, source);
	if (has_debug) {
		image->debug_place = debug.place;
		debug_file_close(&debug);
	}
	if (error) {
		image_free(image);
		return error;
	}
	error = set_segments(image, f->segments, f->nsegments);
	if (error)
		image_free(image);
	else
		*ret_image = image;
	return error;
}

int image_open_debug(const struct build_id *id, const char *path, const struct opener_place *roots,
		     size_t nroots, const struct elf_segment *segments, size_t nsegments,
		     struct image **ret_image)
{
	struct debug_file debug;
	struct image *image;
	int error = debug_file_find(
		&(struct debug_file_query){
			.build_id = *id, .path = path, .roots = roots, .nroots = nroots},
		&debug);

	if (error)
		return error;
	image = calloc(1, sizeof(*image));
	if (!image || set_segments(image, segments, nsegments)) {
		image_free(image);
		debug_file_close(&debug);
		return -ENOMEM;
	}
	image->is_elf = true;
	image->build_id = *id;
	image->debug_place = debug.place;
	/* Only this much of the image is known. */
	struct elf_file absent = {.fd = -1,
				  .is_64 = debug.elf.is_64,
				  .machine = debug.elf.machine,
				  .segments = image->segments,
				  .nsegments = nsegments};

	error = load_symbols(image, &absent, &debug, SYMBOL_NONE);
	debug_file_close(&debug);
	if (!error && !image->symbols)
		error = -ENOENT;
	if (error)
		image_free(image);
	else
		*ret_image = image;
	return error;
}

int image_open(const struct elf_file *file, const char *path, const struct opener_place *roots,
	       size_t nroots, struct image **ret_image)
{
	return make_image(file, path, roots, nroots, SYMBOL_NONE, ret_image);
}

int image_from_memory(const void *data, size_t len, enum symbol_source source,
		      struct image **ret_image, struct parse_error *err)
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
	free(image->strings[0]);
	free(image->strings[1]);
	elf_budget_give(ELF_BUDGET_SYMBOLS, image->symbols_taken);
	free(image->segments);
	free(image);
}

int image_vaddr(const struct image *image, uint64_t file_off, uint64_t *ret_vaddr)
{
	return elf_segments_vaddr(image->segments, image->nsegments, file_off, ret_vaddr);
}
