#include "symbols/r2r_image.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "dotnet/metadata_names.h"
#include "dotnet/r2r_functions.h"
#include "dotnet/signature.h"
#include "dotnet/signature_text.h"
#include "elf/budget.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TIER_HOT "PreJIT"
#define TIER_COLD "PreJit-cold"

#define ENTRY_WORK 11 /* bytes of elf_budget_work: an entry takes 30 ns */

#define NAMES_BYTES_MAX ((size_t)4 << 20) /* of the names of an image */

struct r2r_name {
	const char *text; /* in names */
	uint32_t len;
	enum symbol_source source;
};

struct r2r_image {
	struct symbol_provider provider;
	struct r2r_functions functions;
	struct r2r_modules modules;
	struct arena names;
	VEC(struct r2r_name) made;
	struct hashmap made_ids; /* piece -> index into made */
};

/* clr_type_resolver.find */
static int find_module(void *ctx, uint32_t number, const struct clr_metadata **ret_metadata)
{
	return r2r_modules_metadata(ctx, number, ret_metadata);
}

/* Makes a list of pointers to n NUL-terminated texts that follow one another. */
static const char **texts_of(const struct outbuf *texts, uint32_t n)
{
	const char **list = calloc((size_t)n + 1, sizeof(*list)), *p = texts->data;

	for (uint32_t i = 0; list && i < n; i++) {
		list[i] = p;
		p += strlen(p) + 1;
	}
	return list;
}

/* Gets the metadata that define the method of an instance signature. */
static int instance_metadata(struct r2r_image *image, const struct r2r_method_signature *m,
			     const struct clr_metadata **ret_metadata)
{
	if (m->flags & (R2R_METHOD_BY_SLOT | R2R_METHOD_MEMBER_REF))
		return -ENOENT;
	if (m->module == R2R_OWN_MODULE && m->owner_is_primitive && image->modules.ncomponents)
		return r2r_modules_core_library(&image->modules, ret_metadata);
	return r2r_modules_metadata(&image->modules, m->module, ret_metadata);
}

/* Writes the type arguments of an instance's owner, each followed by a NUL. */
static int put_type_arguments(struct r2r_image *image, const struct r2r_method_signature *m,
			      struct outbuf *out, uint32_t *ret_n)
{
	struct reader r = reader_of(image->functions.instances, image->functions.instances_bytes);
	struct clr_type_resolver modules = {.find = find_module, .ctx = &image->modules};
	const struct clr_metadata *context = NULL;
	uint32_t n = 0;
	int error = 0;

	reader_seek(&r, m->owner);
	if (m->flags & R2R_METHOD_HAS_OWNER && clr_signature_enter_generic(&r, &n))
		error = r2r_modules_metadata(&image->modules, m->context, &context);
	if (error == -ENOENT && m->context == R2R_OWN_MODULE)
		error = 0; /* in composite images each type names its module */
	for (uint32_t i = 0; i < n && !error; i++) {
		struct clr_text text = clr_text_begin(out, &modules);

		clr_text_put_type(&text, context, &r, CLR_REFLECTION);
		error = clr_text_end(&text);
		outbuf_char(out, '\0');
	}
	*ret_n = n;
	return error ? error : out->error;
}

static int put_instance(struct r2r_image *image, uint32_t at, const char *tier, struct outbuf *out)
{
	struct reader r = reader_of(image->functions.instances, image->functions.instances_bytes);
	AUTO_FREE const char **texts = NULL;
	struct outbuf args = outbuf_to(-1);
	const struct clr_metadata *metadata;
	struct r2r_method_signature m;
	uint32_t n;
	int error;

	reader_seek(&r, at);
	r2r_signature_read_method(&r, &m);
	error = instance_metadata(image, &m, &metadata);
	if (!error)
		error = put_type_arguments(image, &m, &args, &n);
	if (!error) {
		texts = texts_of(&args, n);
		error = texts ? 0 : -ENOMEM;
	}
	if (!error)
		error = clr_metadata_method_name(metadata, m.rid, NULL,
						 &(struct clr_instantiation){texts, n}, tier, out);
	outbuf_close(&args);
	return error;
}

static int put_method(struct r2r_image *image, const struct r2r_method *m, const char *tier,
		      struct outbuf *out)
{
	const struct clr_metadata *metadata;
	uint32_t module = R2R_OWN_MODULE;
	int error;

	if (m->assembly == R2R_FUNCTIONS_INSTANCE)
		return put_instance(image, m->instance, tier, out);
	if (image->modules.ncomponents)
		module = R2R_MODULES_FIRST_COMPONENT + m->assembly;
	error = r2r_modules_metadata(&image->modules, module, &metadata);
	return error ? error : clr_metadata_method_name(metadata, m->rid, NULL, NULL, tier, out);
}

/* Writes the name of a piece of code, or its place if it has none. Returns 0 or -ENOMEM. */
static int put_code(struct r2r_image *image, const struct r2r_code *code, struct outbuf *out,
		    enum symbol_source *ret_source)
{
	int error;

	*ret_source = SYMBOL_R2R;
	if (code->method == R2R_CODE_IS_THUNK) {
		outbuf_str(out, "stub ReadyToRun<MethodCallThunk>");
		return out->error;
	}
	const struct r2r_method *m = &image->functions.methods.v[code->method & ~R2R_CODE_IS_COLD];

	error = put_method(image, m, code->method & R2R_CODE_IS_COLD ? TIER_COLD : TIER_HOT, out);
	if (!error && !out->error)
		return 0;
	if (error == -ENOMEM || out->error)
		return -ENOMEM;
	out->len = 0;
	outbuf_printf(out, "0x%x", code->begin);
	*ret_source = SYMBOL_BOUNDS;
	return out->error;
}

/* Names are made again if they are needed; lookup results are kept elsewhere. */
static void forget_names(struct r2r_image *image)
{
	arena_free(&image->names);
	vec_free(&image->made);
	hashmap_free(&image->made_ids);
}

/* Gets the name of a piece, which is made at the first lookup. */
static int get_name(struct r2r_image *image, uint32_t piece, struct r2r_name *ret_name)
{
	const uint32_t *known = hashmap_get(&image->made_ids, piece);
	struct outbuf out = outbuf_to(-1);
	struct r2r_name name;
	int error;

	if (known) {
		*ret_name = image->made.v[*known];
		return 0;
	}
	if (image->names.total_bytes > NAMES_BYTES_MAX)
		forget_names(image);
	error = put_code(image, &image->functions.code.v[piece], &out, &name.source);
	if (!error) {
		name.len = (uint32_t)out.len;
		name.text = arena_strndup(&image->names, out.data, out.len);
		error = name.text && !vec_push(&image->made, name) ? 0 : -ENOMEM;
	}
	outbuf_close(&out);
	if (!error)
		error = hashmap_put(&image->made_ids, piece, (uint32_t)image->made.len - 1);
	if (!error)
		*ret_name = name;
	return error;
}

/* The code at an offset; *ret_rva gets the RVA of the same place. */
static const struct r2r_code *find_code(const struct r2r_image *image, uint64_t addr,
					uint32_t *ret_rva)
{
	const struct pe *pe = &image->modules.pe;

	if (addr < pe->file.offset || pe_rva(pe, addr - pe->file.offset, ret_rva))
		return NULL;
	return r2r_functions_find(&image->functions, *ret_rva);
}

static int r2r_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		    struct symbol *ret_symbol)
{
	struct r2r_image *image = (struct r2r_image *)p;
	uint32_t rva, base;
	const struct r2r_code *code = find_code(image, addr, &rva);
	struct r2r_name name;

	(void)time_ns;
	if (!code)
		return -ENOENT;
	uint32_t piece = (uint32_t)(code - image->functions.code.v);
	int error = get_name(image, piece, &name);

	if (error)
		return error;
	base = code->method & R2R_CODE_IS_COLD ? code->begin
					       : image->functions.methods.v[code->method].begin;
	*ret_symbol = (struct symbol){
		.name = name.text,
		.name_len = name.len,
		.source = name.source,
		.start = addr - (rva - code->begin),
		.end = addr + (code->end - rva),
		.base = addr - (rva - base),
		.piece = piece,
		.until_ns = UINT64_MAX,
	};
	return 0;
}

static uint32_t r2r_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	const struct r2r_image *image = (const struct r2r_image *)p;
	uint32_t rva;
	const struct r2r_code *code = find_code(image, addr, &rva);

	(void)time_ns;
	return code ? (uint32_t)(code - image->functions.code.v) : SYMBOL_NO_PIECE;
}

static void r2r_free(struct symbol_provider *p)
{
	struct r2r_image *image = (struct r2r_image *)p;

	r2r_functions_free(&image->functions);
	r2r_modules_free(&image->modules);
	forget_names(image);
	free(image);
}

static const struct symbol_provider_ops r2r_ops = {
	.name = "r2r",
	.find = r2r_find,
	.piece = r2r_piece,
	.free = r2r_free,
};

static int read_image(struct r2r_image *image, const struct pe_file *file,
		      const struct r2r_assembly_opener *beside, struct parse_error *err)
{
	struct r2r_component *components = NULL;
	size_t ncomponents = 0;
	struct r2r_header h;
	uint64_t entries;
	struct pe pe;
	int error = pe_open(file, &pe, err);

	if (!error)
		error = r2r_header_read(&pe, &h, err);
	if (!error && h.composite)
		error = r2r_header_components(&pe, &h, &components, &ncomponents, err);
	if (error)
		return error;
	/* A target can map many images, also under many names. */
	if (elf_budget_work(0)) {
		error = r2r_functions_read(&pe, &h, components, ncomponents, &image->functions,
					   &entries, err);
		elf_budget_worked(entries * ENTRY_WORK);
	} else {
		error = parse_fail(err, -E2BIG, "too many entries in ReadyToRun images", 0);
	}
	if (error) {
		free(components);
		return error;
	}
	return r2r_modules_init(&image->modules, &pe, &h, components, ncomponents, beside);
}

int r2r_image_open(const struct pe_file *file, const struct r2r_assembly_opener *beside,
		   struct symbol_provider **ret_symbols, struct parse_error *err)
{
	struct r2r_image *image = calloc(1, sizeof(*image));

	if (!image)
		return -ENOMEM;
	image->provider.ops = &r2r_ops;
	image->modules.pe.file.fd = -1;
	int error = read_image(image, file, beside, err);

	if (error)
		r2r_free(&image->provider);
	else
		*ret_symbols = &image->provider;
	return error;
}

bool r2r_image_is(const struct symbol_provider *symbols)
{
	return symbols->ops == &r2r_ops;
}

/* The row of a method in the image's own metadata; 0: another image defines the method. */
static uint32_t own_rid(const struct r2r_image *image, const struct r2r_method *m)
{
	struct r2r_method_signature s;

	if (image->modules.ncomponents)
		return 0;
	if (m->assembly != R2R_FUNCTIONS_INSTANCE)
		return m->rid;
	struct reader r = reader_of(image->functions.instances, image->functions.instances_bytes);

	reader_seek(&r, m->instance);
	r2r_signature_read_method(&r, &s);
	return r.failed || s.flags & (R2R_METHOD_BY_SLOT | R2R_METHOD_MEMBER_REF) ||
			       s.module != R2R_OWN_MODULE
		       ? 0
		       : s.rid;
}

int r2r_image_method(const struct symbol_provider *symbols, uint64_t addr,
		     struct r2r_image_method *ret_method)
{
	const struct r2r_image *image = (const struct r2r_image *)symbols;
	uint32_t rva;
	const struct r2r_code *code = find_code(image, addr, &rva);

	if (!code || code->method & R2R_CODE_IS_COLD)
		return -ENOENT;
	const struct r2r_method *m = &image->functions.methods.v[code->method];
	struct r2r_image_method method = {
		.rid = own_rid(image, m), .begin = m->begin, .native = rva - m->begin};

	if (!method.rid)
		return -ENOENT;
	*ret_method = method;
	return 0;
}

uint64_t r2r_image_bytes(const struct symbol_provider *symbols)
{
	const struct r2r_image *image = (const struct r2r_image *)symbols;
	const struct r2r_functions *f = &image->functions;

	return f->code.cap * sizeof(*f->code.v) + f->methods.cap * sizeof(*f->methods.v) +
	       f->instances_bytes + image->modules.bytes + image->names.total_bytes;
}

uint32_t r2r_image_pieces(const struct symbol_provider *symbols)
{
	return (uint32_t)((const struct r2r_image *)symbols)->functions.code.len;
}

uint64_t r2r_image_piece_file_off(const struct symbol_provider *symbols, uint32_t piece)
{
	const struct r2r_image *image = (const struct r2r_image *)symbols;
	uint64_t at = 0;

	(void)pe_file_off(&image->modules.pe, image->functions.code.v[piece].begin, &at);
	return image->modules.pe.file.offset + at;
}
