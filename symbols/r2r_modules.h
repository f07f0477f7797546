/*
 * The metadata that names in a ReadyToRun image are made of: its own, and that of other assemblies, which code and signatures
 * name by numbers. It is read when it is asked for the first time.
 */
#ifndef SYMBOLS_R2R_MODULES_H
#define SYMBOLS_R2R_MODULES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/clr_metadata.h"
#include "symbols/pe.h"
#include "symbols/r2r_header.h"
#include "symbols/r2r_signature.h"

#include <stdbool.h>
#include <stdint.h>

#define R2R_MODULES_METADATA_BYTES_MAX ((uint32_t)256 << 20) /* of one assembly */
#define R2R_MODULES_BYTES_MAX ((uint64_t)1 << 30) /* of all: those of a composite image can be one and the same in the file */
#define R2R_MODULES_CORE_LIBRARY "System.Private.CoreLib"

/*
 * Opens the file of another assembly, "System.Linq.dll": the caller closes ret_file->fd. 0; -ENOENT: it is not to be had; -ENOMEM.
 * It may be asked as long as the image lives.
 */
struct r2r_beside {
	int (*open)(void *ctx, const char *name, struct pe_file *ret_file);
	void *ctx;
};

struct r2r_module {
	char *name; /* of the assembly; NULL: the image's own, or its manifest */
	unsigned char *data;
	struct clr_metadata *metadata; /* NULL: not to be had */
};

struct r2r_modules {
	struct pe pe; /* of the image; its descriptor is ours, -1 once nothing is left to be read */
	struct pe_range own, manifest; /* metadata; bytes 0: none */
	struct r2r_component *components; /* of a composite image: module R2R_MODULES_FIRST_COMPONENT + index; NULL */
	size_t ncomponents;
	struct r2r_beside beside;
	VEC(struct r2r_module) modules;
	struct hashmap by_number; /* -> index into modules */
	unsigned char *mvids; /* of the assemblies that the manifest refers to, by row */
	size_t nmvids;
	uint64_t bytes; /* of metadata that was read */
};

/* Numbers in composite images: 0 is nothing, 1 the manifest, then the assemblies. */
#define R2R_MODULES_FIRST_COMPONENT 2

/*
 * Prepares for an image; pe->file.fd is borrowed (a duplicate is kept). components is taken, also on failure. 0; as pe_read.
 */
int r2r_modules_init(struct r2r_modules *m, const struct pe *pe, const struct r2r_header *h,
		     struct r2r_component *components, size_t ncomponents, const struct r2r_beside *beside);
void r2r_modules_free(struct r2r_modules *m);

/* The metadata of a number (R2R_OWN_MODULE: the image's own); borrowed, it lives as long as m. 0; -ENOENT: not to be had, or
 * not the assembly that the image was compiled with; -ENOMEM. */
int r2r_modules_metadata(struct r2r_modules *m, uint32_t number, const struct clr_metadata **ret_metadata);

/* The core library's, where a composite image does not say the module of a primitive type. */
int r2r_modules_core_library(struct r2r_modules *m, const struct clr_metadata **ret_metadata);

#endif
