#include "dotnet/signature.h"

/* Reads 1, 2 or 4 bytes, most significant first. Returns their count; 0: bad number. */
static unsigned read_compressed(struct reader *r, uint32_t *ret)
{
	uint32_t first = reader_u8(r);

	if (!(first & 0x80)) {
		*ret = first;
		return 1;
	}
	if (!(first & 0x40)) {
		*ret = (first & 0x3f) << 8 | reader_u8(r);
		return 2;
	}
	if (first & 0x20)
		return 0;
	const unsigned char *rest = reader_bytes(r, 3);

	*ret = rest ? (first & 0x1f) << 24 | (uint32_t)rest[0] << 16 | (uint32_t)rest[1] << 8 |
			       rest[2]
		    : 0;
	return 4;
}

uint32_t clr_signature_read_number(struct reader *r)
{
	uint32_t x = 0;

	if (!read_compressed(r, &x))
		(void)reader_bytes(r, SIZE_MAX); /* makes r fail */
	return r->failed ? 0 : x;
}

/* The lowest bit holds the sign. */
int64_t clr_signature_read_signed(struct reader *r)
{
	static const int bits[] = {0, 6, 13, 0, 28};
	uint32_t x = 0;
	unsigned bytes = read_compressed(r, &x);

	if (!bytes)
		(void)reader_bytes(r, SIZE_MAX);
	return x & 1 ? (int64_t)(x >> 1) - (1 << bits[bytes]) : (int64_t)(x >> 1);
}

bool clr_signature_is_prefix(uint8_t element)
{
	return element == CLR_ELEMENT_SZARRAY || element == CLR_ELEMENT_PTR ||
	       element == CLR_ELEMENT_BYREF || element == CLR_ELEMENT_PINNED ||
	       element == CLR_ELEMENT_CMOD_REQD || element == CLR_ELEMENT_CMOD_OPT;
}

/* Whether an element is a whole type: a primitive type, string, object, typedref or __Canon. */
static bool is_plain_type(uint8_t element)
{
	switch (element) {
	case CLR_ELEMENT_STRING:
	case CLR_ELEMENT_TYPEDBYREF:
	case CLR_ELEMENT_I:
	case CLR_ELEMENT_U:
	case CLR_ELEMENT_OBJECT:
	case CLR_ELEMENT_CANON:
		return true;
	default:
		return element >= CLR_ELEMENT_VOID && element <= CLR_ELEMENT_R8;
	}
}

static void skip_numbers(struct reader *r)
{
	for (uint32_t n = clr_signature_read_number(r); n && !r->failed; n--)
		(void)clr_signature_read_number(r);
}

static void skip_types(struct reader *r, unsigned depth);

/* Skips the operands of an element. */
static void skip_rest(struct reader *r, uint8_t element, unsigned depth)
{
	switch (element) {
	case CLR_ELEMENT_VALUETYPE:
	case CLR_ELEMENT_CLASS:
	case CLR_ELEMENT_VAR:
	case CLR_ELEMENT_MVAR:
		(void)clr_signature_read_number(r);
		return;
	case CLR_ELEMENT_ARRAY:
		skip_types(r, depth);
		(void)clr_signature_read_number(r);
		skip_numbers(r);
		skip_numbers(r);
		return;
	case CLR_ELEMENT_GENERICINST:
		skip_types(r, depth);
		for (uint32_t n = clr_signature_read_number(r); n && !r->failed; n--)
			skip_types(r, depth);
		return;
	case CLR_ELEMENT_FNPTR:
		if (clr_signature_read_number(r) & CLR_CONVENTION_GENERIC)
			(void)clr_signature_read_number(r);
		for (uint64_t n = (uint64_t)clr_signature_read_number(r) + 1; n && !r->failed; n--)
			skip_types(r, depth);
		return;
	default:
		if (!is_plain_type(element))
			(void)reader_bytes(r, SIZE_MAX);
	}
}

/* Reads the next element after those that only say more about it. They add no depth. */
static uint8_t skip_prefixes(struct reader *r)
{
	for (;;) {
		uint8_t element = reader_u8(r);

		if (element == CLR_ELEMENT_CMOD_REQD || element == CLR_ELEMENT_CMOD_OPT ||
		    element == CLR_ELEMENT_MODULE)
			(void)clr_signature_read_number(r);
		else if (r->failed ||
			 (element != CLR_ELEMENT_NATIVE_VALUETYPE &&
			  element != CLR_ELEMENT_SENTINEL && !clr_signature_is_prefix(element)))
			return element;
	}
}

static void skip_types(struct reader *r, unsigned depth)
{
	uint8_t element = skip_prefixes(r);

	if (depth == CLR_SIGNATURE_DEPTH_MAX)
		(void)reader_bytes(r, SIZE_MAX);
	if (!r->failed)
		skip_rest(r, element, depth + 1);
}

void clr_signature_skip(struct reader *r)
{
	skip_types(r, 0);
}

bool clr_signature_enter_generic(struct reader *r, uint32_t *ret_nargs)
{
	uint8_t element = reader_u8(r);

	while (element == CLR_ELEMENT_MODULE) {
		(void)clr_signature_read_number(r);
		element = reader_u8(r);
	}
	if (element != CLR_ELEMENT_GENERICINST)
		return false;
	clr_signature_skip(r);
	*ret_nargs = clr_signature_read_number(r);
	return !r->failed;
}

bool clr_signature_read_module(struct reader *r, uint32_t *ret_module)
{
	if (reader_u8(r) != CLR_ELEMENT_MODULE)
		return false;
	*ret_module = clr_signature_read_number(r);
	return !r->failed;
}

bool clr_signature_is_primitive(struct reader r)
{
	uint8_t element = reader_u8(&r);

	return element != CLR_ELEMENT_CANON && is_plain_type(element);
}
