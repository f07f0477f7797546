/*
 * Signatures of the methods in the instance entry points of ReadyToRun images. An entry's data
 * follows its signature, so decoding also finds the signature's end. Format: readytorun-format.md,
 * "Fixup signatures", method signatures.
 */
#ifndef DOTNET_R2R_SIGNATURE_H
#define DOTNET_R2R_SIGNATURE_H

#include "base/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2R_SIGNATURE_ARGUMENTS_MAX 1024

/*
 * Module number of the image's own metadata, which composite images do not have. Other numbers are
 * as signatures store them.
 */
#define R2R_OWN_MODULE UINT32_MAX

enum r2r_method_flags {
	R2R_METHOD_UNBOXING = 0x01,
	R2R_METHOD_INSTANTIATING = 0x02,
	R2R_METHOD_HAS_ARGUMENTS = 0x04,
	R2R_METHOD_BY_SLOT = 0x08,    /* rid is a slot number */
	R2R_METHOD_MEMBER_REF = 0x10, /* rid is a row of MemberRef */
	R2R_METHOD_CONSTRAINED = 0x20,
	R2R_METHOD_HAS_OWNER = 0x40,
	R2R_METHOD_HAS_MODULE = 0x80,
};

struct r2r_method_signature {
	uint32_t flags, rid;
	uint32_t module;  /* module of rid */
	uint32_t context; /* module of the tokens in the owner's type */
	/* Without a module of its own, the image means the core library. */
	bool owner_is_primitive;
	/* Offset of the owner's type in the reader. Only with R2R_METHOD_HAS_OWNER. */
	size_t owner;
};

/* Reads a method's signature and moves r past it. r fails on a bad one. */
void r2r_signature_read_method(struct reader *r, struct r2r_method_signature *ret_method);

#endif
