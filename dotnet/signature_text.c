#include "dotnet/signature_text.h"

#include "dotnet/signature.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Most array, pointer, by-ref and modifier elements before one type. */
#define PREFIXES_MAX 32
#define RANK_MAX 32 /* the runtime loads no array with more dimensions */
/* Deepest nesting of types. Deeper nesting or a cycle is damage. */
#define NESTING_MAX 64

static const char *const primitives[][2] = {
	[0x01] = {"void", "System.Void"},
	[0x02] = {"bool", "System.Boolean"},
	[0x03] = {"char", "System.Char"},
	[0x04] = {"int8", "System.SByte"},
	[0x05] = {"uint8", "System.Byte"},
	[0x06] = {"int16", "System.Int16"},
	[0x07] = {"uint16", "System.UInt16"},
	[0x08] = {"int32", "System.Int32"},
	[0x09] = {"uint32", "System.UInt32"},
	[0x0a] = {"int64", "System.Int64"},
	[0x0b] = {"uint64", "System.UInt64"},
	[0x0c] = {"float32", "System.Single"},
	[0x0d] = {"float64", "System.Double"},
	[CLR_ELEMENT_STRING] = {"string", "System.String"},
	[CLR_ELEMENT_TYPEDBYREF] = {"typedref", "System.TypedReference"},
	[CLR_ELEMENT_I] = {"native int", "System.IntPtr"},
	[CLR_ELEMENT_U] = {"native uint", "System.UIntPtr"},
	[CLR_ELEMENT_OBJECT] = {"object", "System.Object"},
	[CLR_ELEMENT_CANON] = {"class System.__Canon", "System.__Canon"},
};

struct clr_text clr_text_begin(struct outbuf *out, const struct clr_type_resolver *modules)
{
	assert(out->fd < 0);
	return (struct clr_text){.out = out, .modules = modules, .start = out->len};
}

int clr_text_end(struct clr_text *t)
{
	if (!t->error)
		t->error = t->out->error;
	if (t->error && t->out->len >= t->start)
		t->out->len = t->start;
	return t->error;
}

static void fail(struct clr_text *t, int error)
{
	if (!t->error)
		t->error = error;
}

static void put_bytes(struct clr_text *t, const char *p, size_t n)
{
	if (t->error)
		return;
	if (n > CLR_TEXT_BYTES_MAX || t->out->len - t->start > CLR_TEXT_BYTES_MAX - n)
		fail(t, -E2BIG);
	else
		outbuf_put(t->out, p, n);
}

#define put_literal(t, text) put_bytes(t, text, sizeof(text) - 1)

/*
 * Characters that end a run of plain text, as a bit mask. Bit 0: in all names. Bit 1: in reflection
 * names, whose grammar gives these characters a meaning.
 */
static const uint8_t special_chars[256] = {
	[0] = 3,   ['\n'] = 3, ['\r'] = 3, [','] = 2, ['['] = 2,
	[']'] = 2, ['&'] = 2,  ['*'] = 2,  ['+'] = 2, ['\\'] = 2,
};

/*
 * Writes a text from a heap. In reflection names (mask 2) a backslash precedes each special
 * character.
 */
static void put_heap_text(struct clr_text *t, const char *text, uint8_t mask)
{
	for (const char *end = text; !t->error; text = end + 1, end = text) {
		while (!(special_chars[(unsigned char)*end] & mask) &&
		       end - text <= (ptrdiff_t)CLR_TEXT_BYTES_MAX)
			end++;
		put_bytes(t, text, (size_t)(end - text));
		if (!*end || t->error)
			return;
		if (*end == '\n' || *end == '\r') {
			put_literal(t, "?");
		} else {
			put_literal(t, "\\");
			put_bytes(t, end, 1);
		}
	}
}

void clr_text_put(struct clr_text *t, const char *text)
{
	if (text)
		put_heap_text(t, text, 1);
}

static void put_number(struct clr_text *t, int64_t number)
{
	char digits[24], *p = digits + sizeof(digits);
	uint64_t x = number < 0 ? -(uint64_t)number : (uint64_t)number;

	do {
		*--p = (char)('0' + x % 10);
	} while (x /= 10);
	if (number < 0)
		*--p = '-';
	put_bytes(t, p, (size_t)(digits + sizeof(digits) - p));
}

/* Reads a TypeDefOrRefOrSpecEncoded token (II.23.2.8). 0: nil. */
static uint32_t type_token(struct reader *r)
{
	static const uint8_t tables[] = {CLR_TYPE_DEF, CLR_TYPE_REF, CLR_TYPE_SPEC, 0};
	uint32_t x = clr_signature_read_number(r);

	return x >> 2 ? (uint32_t)tables[x & 3] << 24 | x >> 2 : 0;
}

/*
 * Writes the name in a type's own row: "NAMESPACE.NAME". Reflection names escape special
 * characters.
 */
static void put_row_name(struct clr_text *t, const struct clr_metadata *m, enum clr_table table,
			 uint32_t rid, enum clr_text_style style)
{
	uint8_t mask = style == CLR_REFLECTION ? 2 : 1;
	bool ref = table == CLR_TYPE_REF;
	uint32_t name_at =
		clr_metadata_cell(m, table, rid, ref ? CLR_TYPE_REF_NAME : CLR_TYPE_DEF_NAME);
	uint32_t namespace_at = clr_metadata_cell(
		m, table, rid, ref ? CLR_TYPE_REF_NAMESPACE : CLR_TYPE_DEF_NAMESPACE);
	const char *name = clr_metadata_string(m, name_at),
		   *namespace = clr_metadata_string(m, namespace_at);

	if (!name || !namespace) {
		fail(t, -EBADMSG);
		return;
	}
	if (*namespace) {
		put_heap_text(t, namespace, mask);
		put_literal(t, ".");
	}
	put_heap_text(t, name, mask);
}

/* Writes the origin of the outermost type, in the spelling of ilasm. */
static void put_scope(struct clr_text *t, const struct clr_metadata *m, uint32_t outermost)
{
	uint32_t scope = clr_metadata_token(m, CLR_TYPE_REF, outermost, CLR_TYPE_REF_SCOPE),
		 rid = clr_token_rid(scope);
	const char *name = NULL;

	if (!clr_metadata_cell(m, CLR_TYPE_REF, outermost, CLR_TYPE_REF_SCOPE)) {
		put_literal(t, "[*]");
	} else if (clr_token_table(scope) == CLR_MODULE_REF) {
		name = clr_metadata_string(
			m, clr_metadata_cell(m, CLR_MODULE_REF, rid, CLR_MODULE_REF_NAME));
		if (name && *name)
			put_literal(t, "[.module ");
	} else if (clr_token_table(scope) == CLR_ASSEMBLY_REF) {
		(void)clr_metadata_assembly_ref(m, rid, &name);
		if (name && *name)
			put_literal(t, "[");
	}
	if (name && *name) {
		clr_text_put(t, name);
		put_literal(t, "]");
	}
}

/* Writes a TypeDef or TypeRef after the types that enclose it. */
static void put_nested(struct clr_text *t, const struct clr_metadata *m, uint32_t token,
		       enum clr_text_style style)
{
	enum clr_table table = clr_token_table(token);
	uint32_t chain[NESTING_MAX];
	size_t n = 0;

	for (uint32_t rid = clr_token_rid(token); rid;) {
		if (n == NESTING_MAX || rid > clr_metadata_rows(m, table)) {
			fail(t, n == NESTING_MAX ? -E2BIG : -EBADMSG);
			return;
		}
		chain[n++] = rid;
		if (table == CLR_TYPE_DEF) {
			rid = clr_metadata_enclosing(m, rid);
		} else {
			uint32_t scope = clr_metadata_token(m, table, rid, CLR_TYPE_REF_SCOPE);

			rid = clr_token_table(scope) == CLR_TYPE_REF ? clr_token_rid(scope) : 0;
		}
	}
	if (!n)
		fail(t, -EBADMSG);
	else if (table == CLR_TYPE_REF && style == CLR_ILASM)
		put_scope(t, m, chain[n - 1]);
	while (n-- && !t->error) {
		put_row_name(t, m, table, chain[n], style);
		if (n)
			put_bytes(t, style == CLR_ILASM ? "/" : "+", 1);
	}
}

void clr_text_put_token(struct clr_text *t, const struct clr_metadata *m, uint32_t token,
			enum clr_text_style style)
{
	size_t len = 0;

	if (!m) {
		fail(t, -EBADMSG);
		return;
	}
	if (clr_token_table(token) == CLR_TYPE_DEF || clr_token_table(token) == CLR_TYPE_REF) {
		put_nested(t, m, token, style);
		return;
	}
	uint32_t rid = clr_token_rid(token);
	const unsigned char *blob =
		clr_token_table(token) == CLR_TYPE_SPEC && rid &&
				rid <= clr_metadata_rows(m, CLR_TYPE_SPEC)
			? clr_metadata_blob(
				  m,
				  clr_metadata_cell(m, CLR_TYPE_SPEC, rid, CLR_TYPE_SPEC_SIGNATURE),
				  &len)
			: NULL;
	struct reader sig = reader_of(blob, len);

	if (blob)
		clr_text_put_type(t, m, &sig, style);
	else
		fail(t, -EBADMSG);
}

/* Writes the dimensions after an array's element type. Reflection names omit the bounds. */
static void put_dimensions(struct clr_text *t, struct reader *sig, enum clr_text_style style)
{
	uint32_t rank = clr_signature_read_number(sig), sizes[RANK_MAX] = {0};
	int64_t lows[RANK_MAX] = {0};
	uint32_t nsizes = clr_signature_read_number(sig);

	if (!rank || rank > RANK_MAX || nsizes > rank) {
		fail(t, -EBADMSG);
		return;
	}
	for (uint32_t i = 0; i < nsizes; i++)
		sizes[i] = clr_signature_read_number(sig);
	uint32_t nlows = clr_signature_read_number(sig);

	if (nlows > rank) {
		fail(t, -EBADMSG);
		return;
	}
	for (uint32_t i = 0; i < nlows; i++)
		lows[i] = clr_signature_read_signed(sig);
	put_literal(t, "[");
	if (rank == 1 && style == CLR_REFLECTION)
		put_literal(t, "*");
	else if (rank == 1 && !nsizes && !nlows)
		put_literal(t, "...");
	for (uint32_t i = 0; i < rank; i++) {
		if (i)
			put_literal(t, ",");
		if (style == CLR_REFLECTION)
			continue;
		if (!lows[i] && i < nsizes) {
			put_number(t, sizes[i]);
		} else if (i < nlows) {
			put_number(t, lows[i]);
			put_literal(t, "...");
			if (i < nsizes)
				put_number(t, lows[i] + sizes[i] - 1);
		}
	}
	put_literal(t, "]");
}

static void put_convention(struct clr_text *t, uint32_t convention)
{
	static const char *const names[] = {"",
					    "unmanaged cdecl ",
					    "unmanaged stdcall ",
					    "unmanaged thiscall ",
					    "unmanaged fastcall ",
					    "vararg ",
					    "",
					    "",
					    "",
					    "unmanaged "};
	uint32_t kind = convention & CLR_CONVENTION_MASK;

	if (convention & CLR_CONVENTION_EXPLICITTHIS)
		put_literal(t, "explicit ");
	if (convention & CLR_CONVENTION_HASTHIS)
		put_literal(t, "instance ");
	if (kind < sizeof(names) / sizeof(names[0]) && (*names[kind] || !kind))
		clr_text_put(t, names[kind]);
	else
		fail(t, -EBADMSG); /* not the convention of a method */
}

static void put_star(struct clr_text *t, const void *ctx)
{
	(void)ctx;
	put_literal(t, "*");
}

/* Writes n parameters. A sentinel precedes the variable arguments of a vararg call. */
static void put_parameters(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
			   uint32_t n, const char *comma, enum clr_text_style style)
{
	for (uint32_t i = 0; i < n && !t->error; i++) {
		if (i)
			clr_text_put(t, comma);
		if (reader_left(sig) && sig->data[sig->pos] == CLR_ELEMENT_SENTINEL) {
			reader_skip(sig, 1);
			put_literal(t, "...,");
		}
		clr_text_put_type(t, m, sig, style);
	}
}

void clr_text_put_method(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
			 void (*name)(struct clr_text *t, const void *ctx), const void *ctx)
{
	uint32_t convention = clr_signature_read_number(sig);

	put_convention(t, convention);
	if (convention & CLR_CONVENTION_GENERIC)
		(void)clr_signature_read_number(sig);
	uint32_t nparameters = clr_signature_read_number(sig);

	clr_text_put_type(t, m, sig, CLR_ILASM);
	put_literal(t, " ");
	name(t, ctx);
	put_literal(t, "(");
	put_parameters(t, m, sig, nparameters, ",", CLR_ILASM);
	put_literal(t, ")");
}

static void put_function_pointer(struct clr_text *t, const struct clr_metadata *m,
				 struct reader *sig, enum clr_text_style style)
{
	if (style == CLR_ILASM) {
		put_literal(t, "method ");
		clr_text_put_method(t, m, sig, put_star, NULL);
		return;
	}
	uint32_t convention = clr_signature_read_number(sig);

	if (convention & CLR_CONVENTION_GENERIC)
		(void)clr_signature_read_number(sig);
	uint32_t nparameters = clr_signature_read_number(sig);

	clr_text_put_type(t, m, sig, style);
	put_literal(t, "(");
	put_parameters(t, m, sig, nparameters, ", ", style);
	if ((convention & CLR_CONVENTION_MASK) == CLR_CONVENTION_VARARG)
		clr_text_put(t, nparameters ? ", ..." : "...");
	put_literal(t, ")");
}

/* args: metadata to which the tokens of the type arguments belong. */
static void put_generic(struct clr_text *t, const struct clr_metadata *m,
			const struct clr_metadata *args, struct reader *sig,
			enum clr_text_style style)
{
	clr_text_put_type(t, m, sig, style);
	uint32_t n = clr_signature_read_number(sig);

	put_bytes(t, style == CLR_ILASM ? "<" : "[", 1);
	for (uint32_t i = 0; i < n && !t->error; i++) {
		if (i)
			put_literal(t, ",");
		clr_text_put_type(t, args, sig, style);
	}
	put_bytes(t, style == CLR_ILASM ? ">" : "]", 1);
}

/* Writes a type from another module. Its type arguments belong to the outer module. */
static void put_module_type(struct clr_text *t, const struct clr_metadata *outer,
			    struct reader *sig, enum clr_text_style style)
{
	uint32_t index = clr_signature_read_number(sig);
	const struct clr_metadata *m = NULL;
	int error = !t->modules || !t->modules->find || sig->failed
			    ? -EBADMSG
			    : t->modules->find(t->modules->ctx, index, &m);

	if (error) {
		fail(t, error);
	} else if (reader_left(sig) && sig->data[sig->pos] == CLR_ELEMENT_GENERICINST) {
		reader_skip(sig, 1);
		put_generic(t, m, outer, sig, style);
	} else {
		clr_text_put_type(t, m, sig, style);
	}
}

static void put_handle(struct clr_text *t, struct reader *sig, enum clr_text_style style)
{
	uint64_t addr = reader_u64(sig);
	int error = !t->modules || !t->modules->handle || sig->failed
			    ? -EBADMSG
			    : t->modules->handle(t->modules->ctx, t, addr, style);

	if (error)
		fail(t, error);
}

/* Writes a type whose prefixes have been read. */
static void put_element(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
			uint8_t element, enum clr_text_style style)
{
	switch (element) {
	case CLR_ELEMENT_VALUETYPE:
	case CLR_ELEMENT_CLASS:
		if (style == CLR_ILASM)
			clr_text_put(t, element == CLR_ELEMENT_CLASS ? "class " : "valuetype ");
		clr_text_put_token(t, m, type_token(sig), style);
		return;
	case CLR_ELEMENT_VAR:
	case CLR_ELEMENT_MVAR:
		put_bytes(t, "!!", element == CLR_ELEMENT_VAR ? 1 : 2);
		put_number(t, clr_signature_read_number(sig));
		return;
	case CLR_ELEMENT_ARRAY:
		clr_text_put_type(t, m, sig, style);
		put_dimensions(t, sig, style);
		return;
	case CLR_ELEMENT_GENERICINST:
		put_generic(t, m, m, sig, style);
		return;
	case CLR_ELEMENT_FNPTR:
		put_function_pointer(t, m, sig, style);
		return;
	case CLR_ELEMENT_NATIVE_VALUETYPE:
		clr_text_put_type(t, m, sig, style);
		return;
	case CLR_ELEMENT_MODULE:
		put_module_type(t, m, sig, style);
		return;
	case CLR_ELEMENT_INTERNAL:
		put_handle(t, sig, style);
		return;
	default:
		break;
	}
	if (element < sizeof(primitives) / sizeof(primitives[0]) && primitives[element][style])
		clr_text_put(t, primitives[element][style]);
	else
		fail(t, -EBADMSG);
}

struct prefix {
	uint32_t element, token;
};

/*
 * Writes a prefix as a suffix. Elements before a type in a signature follow it in text, innermost
 * first.
 */
static void put_suffix(struct clr_text *t, const struct clr_metadata *m,
		       const struct prefix *prefix, enum clr_text_style style)
{
	switch (prefix->element) {
	case CLR_ELEMENT_SZARRAY:
		put_literal(t, "[]");
		return;
	case CLR_ELEMENT_PTR:
		put_literal(t, "*");
		return;
	case CLR_ELEMENT_BYREF:
		put_literal(t, "&");
		return;
	default:
		break;
	}
	if (style == CLR_REFLECTION) /* reflection names omit modifiers */
		return;
	if (prefix->element == CLR_ELEMENT_PINNED) {
		put_literal(t, " pinned");
		return;
	}
	clr_text_put(t, prefix->element == CLR_ELEMENT_CMOD_REQD ? " modreq(" : " modopt(");
	clr_text_put_token(t, m, prefix->token, style);
	put_literal(t, ")");
}

void clr_text_put_type(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
		       enum clr_text_style style)
{
	struct prefix prefixes[PREFIXES_MAX];
	size_t nprefixes = 0;
	uint8_t element = reader_u8(sig);

	if (t->error)
		return;
	while (clr_signature_is_prefix(element) && nprefixes < PREFIXES_MAX) {
		bool modifier = element == CLR_ELEMENT_CMOD_REQD || element == CLR_ELEMENT_CMOD_OPT;

		prefixes[nprefixes++] = (struct prefix){element, modifier ? type_token(sig) : 0};
		element = reader_u8(sig);
	}
	if (sig->failed) {
		fail(t, -EBADMSG);
	} else if (clr_signature_is_prefix(element) || t->depth == CLR_TEXT_DEPTH_MAX ||
		   t->elements == CLR_TEXT_ELEMENTS_MAX) {
		fail(t, -E2BIG);
	} else {
		t->depth++;
		t->elements++;
		put_element(t, m, sig, element, style);
		if (sig->failed)
			fail(t, -EBADMSG);
		while (nprefixes && !t->error)
			put_suffix(t, m, &prefixes[--nprefixes], style);
		t->depth--;
	}
}
