#include "symbols/r2r_signature.h"

#include <errno.h>

/* ECMA-335 II.23.1.16, and the runtime's own (dotnet/runtime, src/coreclr/inc/corhdr.h, cortypeinfo.h). */
enum element {
	ELEMENT_VOID = 0x01,
	ELEMENT_STRING = 0x0e,
	ELEMENT_PTR = 0x0f,
	ELEMENT_BYREF = 0x10,
	ELEMENT_VALUETYPE = 0x11,
	ELEMENT_CLASS = 0x12,
	ELEMENT_VAR = 0x13,
	ELEMENT_ARRAY = 0x14,
	ELEMENT_GENERICINST = 0x15,
	ELEMENT_TYPEDBYREF = 0x16,
	ELEMENT_I = 0x18,
	ELEMENT_U = 0x19,
	ELEMENT_FNPTR = 0x1b,
	ELEMENT_OBJECT = 0x1c,
	ELEMENT_SZARRAY = 0x1d,
	ELEMENT_MVAR = 0x1e,
	ELEMENT_CMOD_REQD = 0x1f,
	ELEMENT_CMOD_OPT = 0x20,
	ELEMENT_VAR_ZAPSIG = 0x3b,
	ELEMENT_NATIVE_VALUETYPE = 0x3d,
	ELEMENT_CANON = 0x3e,
	ELEMENT_MODULE = 0x3f,
	ELEMENT_SENTINEL = 0x41,
	ELEMENT_PINNED = 0x45,
	ELEMENT_MASK = 0x7f,
};

enum { CONVENTION_GENERIC = 0x10 };

static const char *const primitives[] = {
	[0x01] = "System.Void",	    [0x02] = "System.Boolean", [0x03] = "System.Char",	 [0x04] = "System.SByte",
	[0x05] = "System.Byte",	    [0x06] = "System.Int16",   [0x07] = "System.UInt16", [0x08] = "System.Int32",
	[0x09] = "System.UInt32",   [0x0a] = "System.Int64",   [0x0b] = "System.UInt64", [0x0c] = "System.Single",
	[0x0d] = "System.Double",   [0x0e] = "System.String",  [0x16] = "System.TypedReference",
	[0x18] = "System.IntPtr",   [0x19] = "System.UIntPtr", [0x1c] = "System.Object",
};

static const char *primitive(uint8_t element)
{
	return element < sizeof(primitives) / sizeof(*primitives) ? primitives[element] : NULL;
}

static void fail(struct reader *r)
{
	r->failed = true;
}

/* ECMA-335 II.23.2: one, two or four bytes, the upper bits say which. */
static uint32_t read_u32(struct reader *r)
{
	uint32_t x = reader_u8(r);

	if (!(x & 0x80))
		return x;
	if (!(x & 0x40))
		return (x & 0x3f) << 8 | reader_u8(r);
	if (x & 0x20)
		fail(r);
	x = (x & 0x1f) << 24 | (uint32_t)reader_u8(r) << 16;
	x |= (uint32_t)reader_u8(r) << 8;
	return x | reader_u8(r);
}

static uint32_t read_count(struct reader *r, uint32_t max)
{
	uint32_t n = read_u32(r);

	if (n > max)
		fail(r);
	return r->failed ? 0 : n;
}

/* TypeDefOrRef: the lowest two bits are the table. */
static uint32_t read_token(struct reader *r)
{
	static const uint32_t tables[] = {0x02000000, 0x01000000, 0x1b000000, 0};
	uint32_t x = read_u32(r);

	return tables[x & 3] | x >> 2;
}

/* Decodes one signature; out NULL: only to find its end. */
struct decoder {
	struct reader *r;
	const struct r2r_signature_names *names;
	uint32_t outer; /* the module that type arguments' tokens are of, also where the generic type is of another one */
	struct outbuf *out;
	size_t out_start;
	int depth, error;
};

static void decode_type(struct decoder *d, uint32_t module);

static void put(struct decoder *d, const char *text)
{
	if (d->out && !d->error)
		outbuf_str(d->out, text);
}

static void put_named(struct decoder *d, uint32_t module)
{
	uint32_t token = read_token(d->r);

	if (d->out && !d->error && !d->r->failed)
		d->error = d->names->token(d->names->ctx, module, token, d->out);
}

static void decode_array(struct decoder *d, uint32_t module)
{
	decode_type(d, module);
	uint32_t rank = read_count(d->r, 32);

	for (uint32_t n = read_count(d->r, rank); n; n--)
		(void)read_u32(d->r);
	for (uint32_t n = read_count(d->r, rank); n; n--)
		(void)read_u32(d->r);
	put(d, rank == 1 ? "[*" : "[");
	for (uint32_t i = 1; i < rank; i++)
		put(d, ",");
	put(d, "]");
}

static void decode_instance(struct decoder *d, uint32_t module)
{
	decode_type(d, module);
	uint32_t n = read_count(d->r, R2R_SIGNATURE_ARGUMENTS_MAX);

	put(d, "[");
	for (uint32_t i = 0; i < n && !d->r->failed; i++) {
		if (i)
			put(d, ",");
		decode_type(d, d->outer);
	}
	put(d, "]");
}

static void decode_function(struct decoder *d, uint32_t module)
{
	uint8_t convention = reader_u8(d->r);

	if (convention & CONVENTION_GENERIC)
		(void)read_u32(d->r);
	uint32_t n = read_count(d->r, R2R_SIGNATURE_ARGUMENTS_MAX);

	decode_type(d, module);
	put(d, "(");
	for (uint32_t i = 0; i < n && !d->r->failed; i++) {
		if (i)
			put(d, ", ");
		decode_type(d, module);
	}
	put(d, ")");
}

static void decode_variable(struct decoder *d, const char *mark)
{
	uint32_t n = read_u32(d->r);

	if (d->out && !d->error)
		outbuf_printf(d->out, "%s%u", mark, n);
}

static void decode_suffixed(struct decoder *d, uint32_t module, const char *suffix)
{
	decode_type(d, module);
	put(d, suffix);
}

static void decode_element(struct decoder *d, uint8_t element, uint32_t module)
{
	switch (element) {
	case ELEMENT_PTR:
		decode_suffixed(d, module, "*");
		break;
	case ELEMENT_BYREF:
		decode_suffixed(d, module, "&");
		break;
	case ELEMENT_SZARRAY:
		decode_suffixed(d, module, "[]");
		break;
	case ELEMENT_VALUETYPE:
	case ELEMENT_CLASS:
		put_named(d, module);
		break;
	case ELEMENT_VAR:
	case ELEMENT_VAR_ZAPSIG:
		decode_variable(d, "!");
		break;
	case ELEMENT_MVAR:
		decode_variable(d, "!!");
		break;
	case ELEMENT_ARRAY:
		decode_array(d, module);
		break;
	case ELEMENT_GENERICINST:
		decode_instance(d, module);
		break;
	case ELEMENT_FNPTR:
		decode_function(d, module);
		break;
	case ELEMENT_CMOD_REQD:
	case ELEMENT_CMOD_OPT:
		(void)read_token(d->r);
		decode_type(d, module);
		break;
	case ELEMENT_NATIVE_VALUETYPE:
	case ELEMENT_PINNED:
	case ELEMENT_SENTINEL:
		decode_type(d, module);
		break;
	case ELEMENT_CANON:
		put(d, "System.__Canon");
		break;
	case ELEMENT_MODULE:
		decode_type(d, read_u32(d->r));
		break;
	default:
		fail(d->r);
	}
}

static void decode_type(struct decoder *d, uint32_t module)
{
	uint8_t element = reader_u8(d->r) & ELEMENT_MASK;
	const char *name = primitive(element);

	if (d->out && d->out->len - d->out_start > R2R_SIGNATURE_NAME_MAX && !d->error)
		d->error = -E2BIG;
	if (d->r->failed || d->error)
		return;
	if (name) {
		put(d, name);
	} else if (d->depth == R2R_SIGNATURE_DEPTH_MAX) {
		fail(d->r);
	} else {
		d->depth++;
		decode_element(d, element, module);
		d->depth--;
	}
}

void r2r_signature_method(struct reader *r, struct r2r_method_signature *ret_method)
{
	struct r2r_method_signature m = {.module = R2R_OWN_MODULE, .context = R2R_OWN_MODULE};
	struct decoder skip = {.r = r};

	m.flags = read_u32(r);
	if (m.flags & R2R_METHOD_HAS_MODULE)
		m.module = m.context = read_u32(r);
	if (m.flags & R2R_METHOD_HAS_OWNER) {
		struct reader owner = *r;
		uint8_t element = reader_u8(&owner) & ELEMENT_MASK;

		m.owner = r->pos;
		/* A module that is said before the owner's type is the method's too. */
		if (element == ELEMENT_MODULE && !(m.flags & R2R_METHOD_HAS_MODULE))
			m.module = read_u32(&owner);
		m.owner_is_primitive = primitive(element) != NULL;
		decode_type(&skip, 0);
	}
	m.rid = read_u32(r);
	if (m.flags & R2R_METHOD_HAS_ARGUMENTS) {
		m.narguments = read_count(r, R2R_SIGNATURE_ARGUMENTS_MAX);
		m.arguments = r->pos;
		for (uint32_t i = 0; i < m.narguments && !r->failed; i++)
			decode_type(&skip, 0);
	}
	if (m.flags & R2R_METHOD_CONSTRAINED)
		decode_type(&skip, 0);
	*ret_method = m;
}

static int end(const struct decoder *d)
{
	if (d->r->failed)
		return -EBADMSG;
	return d->error ? d->error : d->out->error;
}

int r2r_signature_type(struct reader *r, const struct r2r_signature_names *names, uint32_t module, struct outbuf *out)
{
	struct decoder d = {.r = r, .names = names, .outer = module, .out = out, .out_start = out->len};

	decode_type(&d, module);
	return end(&d);
}

int r2r_signature_type_arguments(struct reader *r, const struct r2r_signature_names *names, uint32_t module,
				 struct outbuf *out, uint32_t *ret_n)
{
	struct decoder d = {.r = r, .names = names, .outer = module, .out = out, .out_start = out->len};
	struct decoder skip = {.r = r};
	uint8_t element;
	uint32_t n = 0;

	while ((element = reader_u8(r) & ELEMENT_MASK) == ELEMENT_MODULE)
		(void)read_u32(r);
	if (element == ELEMENT_GENERICINST) {
		decode_type(&skip, 0);
		n = read_count(r, R2R_SIGNATURE_ARGUMENTS_MAX);
		for (uint32_t i = 0; i < n && !r->failed; i++) {
			decode_type(&d, module);
			outbuf_char(out, '\0');
		}
	}
	*ret_n = n;
	return end(&d);
}
