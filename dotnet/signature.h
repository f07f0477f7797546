/*
 * Reader of ECMA-335 signatures (II.23.2): numbers, and types as sequences of elements. ReadyToRun
 * images add elements of their own. signature_text.h writes types as text.
 */
#ifndef DOTNET_SIGNATURE_H
#define DOTNET_SIGNATURE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

/* Deepest nesting of types that is read */
#define CLR_SIGNATURE_DEPTH_MAX 64

/* Element types (II.23.1.16), and those that only ReadyToRun images have. */
enum clr_element {
	CLR_ELEMENT_END = 0x00,
	CLR_ELEMENT_VOID = 0x01, /* VOID to R8 are the primitive types */
	CLR_ELEMENT_R8 = 0x0d,
	CLR_ELEMENT_STRING = 0x0e,
	CLR_ELEMENT_PTR = 0x0f,
	CLR_ELEMENT_BYREF = 0x10,
	CLR_ELEMENT_VALUETYPE = 0x11,
	CLR_ELEMENT_CLASS = 0x12,
	CLR_ELEMENT_VAR = 0x13,
	CLR_ELEMENT_ARRAY = 0x14,
	CLR_ELEMENT_GENERICINST = 0x15,
	CLR_ELEMENT_TYPEDBYREF = 0x16,
	CLR_ELEMENT_I = 0x18,
	CLR_ELEMENT_U = 0x19,
	CLR_ELEMENT_FNPTR = 0x1b,
	CLR_ELEMENT_OBJECT = 0x1c,
	CLR_ELEMENT_SZARRAY = 0x1d,
	CLR_ELEMENT_MVAR = 0x1e,
	CLR_ELEMENT_CMOD_REQD = 0x1f,
	CLR_ELEMENT_CMOD_OPT = 0x20,
	CLR_ELEMENT_INTERNAL = 0x21,
	CLR_ELEMENT_NATIVE_VALUETYPE = 0x3d,
	CLR_ELEMENT_CANON = 0x3e,
	CLR_ELEMENT_MODULE = 0x3f,
	CLR_ELEMENT_SENTINEL = 0x41,
	CLR_ELEMENT_PINNED = 0x45,
};

/* Calling conventions (II.23.2.3). */
enum clr_convention {
	CLR_CONVENTION_MASK = 0x0f,
	CLR_CONVENTION_VARARG = 0x05,
	CLR_CONVENTION_FIELD = 0x06,
	CLR_CONVENTION_GENERIC = 0x10,
	CLR_CONVENTION_HASTHIS = 0x20,
	CLR_CONVENTION_EXPLICITTHIS = 0x40,
};

/* Moves r past a type. r fails on a bad type, and beyond CLR_SIGNATURE_DEPTH_MAX. */
void clr_signature_skip(struct reader *r);

/*
 * Moves r to the first type argument of a generic type. False: the type at r is not generic; r must
 * not be used any more.
 */
bool clr_signature_enter_generic(struct reader *r, uint32_t *ret_nargs);

/*
 * Reads the module index that precedes a type. False: none precedes it; r must not be used any
 * more.
 */
bool clr_signature_read_module(struct reader *r, uint32_t *ret_module);

/* Whether the type at r has an element type of its own, as System.Int32 has. */
bool clr_signature_is_primitive(struct reader r);

/* Reads a compressed unsigned number (II.23.2). A bad one makes r fail. */
uint32_t clr_signature_read_number(struct reader *r);

/* Reads a compressed signed number (II.23.2). A bad one makes r fail. */
int64_t clr_signature_read_signed(struct reader *r);

/*
 * Whether a type follows the element: array, pointer, by-ref, pinned, or custom modifier. A custom
 * modifier has a type token before that type.
 */
bool clr_signature_is_prefix(uint8_t element);

#endif
