/*
 * Signatures of the methods that instance entry points of ReadyToRun images belong to (readytorun-format.md, "Fixup signatures",
 * method signatures). What belongs to one stands behind it, so decoding it is also the way to find its end.
 */
#ifndef SYMBOLS_R2R_SIGNATURE_H
#define SYMBOLS_R2R_SIGNATURE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2R_SIGNATURE_ARGUMENTS_MAX 1024

/* The image's own metadata; in composite images there is none. Others are the numbers that signatures have for them. */
#define R2R_OWN_MODULE UINT32_MAX

enum r2r_method_flags {
	R2R_METHOD_UNBOXING = 0x01,
	R2R_METHOD_INSTANTIATING = 0x02,
	R2R_METHOD_HAS_ARGUMENTS = 0x04,
	R2R_METHOD_BY_SLOT = 0x08, /* rid is a slot's number */
	R2R_METHOD_MEMBER_REF = 0x10, /* rid is of a MemberRef */
	R2R_METHOD_CONSTRAINED = 0x20,
	R2R_METHOD_HAS_OWNER = 0x40,
	R2R_METHOD_HAS_MODULE = 0x80,
};

struct r2r_method_signature {
	uint32_t flags, rid;
	uint32_t module; /* in which rid is */
	uint32_t context; /* whose tokens the owner's type has */
	bool owner_is_primitive; /* its method is of the core library where the image has no module of its own */
	size_t owner; /* where the owner's type is in the reader's bytes, with R2R_METHOD_HAS_OWNER */
};

/* A method's signature at r, which stands behind it then. r fails where it cannot be read. */
void r2r_signature_method(struct reader *r, struct r2r_method_signature *ret_method);

#endif
