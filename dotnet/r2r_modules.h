/*
 * Metadata behind the names in a ReadyToRun image: the image's own, and that of other assemblies.
 * Code and signatures refer to assemblies by number. Each one is read on its first lookup.
 */
#ifndef DOTNET_R2R_MODULES_H
#define DOTNET_R2R_MODULES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/metadata.h"
#include "dotnet/pe.h"
#include "dotnet/r2r_header.h"
#include "dotnet/r2r_signature.h"

#include <stdbool.h>
#include <stdint.h>

#define R2R_MODULES_METADATA_BYTES_MAX ((uint32_t)256 << 20) /* bytes of one assembly */
/* Bytes of all assemblies. Those of a composite image may share bytes of the file. */
#define R2R_MODULES_BYTES_MAX ((uint64_t)1 << 30)
#define R2R_MODULES_CORE_LIBRARY "System.Private.CoreLib"

/*
 * Opens the file of another assembly by its name, for example "System.Linq.dll". The caller closes
 * ret_file->fd. 0; -ENOENT: not available; -ENOMEM. ctx must live as long as the image.
 */
struct r2r_assembly_opener {
	int (*open)(void *ctx, const char *name, struct pe_file *ret_file);
	/* Frees memory, if the caller has some that it does not need now. NULL: it never has. */
	bool (*make_room)(void *ctx);
	void *ctx;
};

struct r2r_module {
	char *name; /* of the assembly; NULL: the image's own metadata or its manifest */
	unsigned char *data;
	struct clr_metadata *metadata; /* NULL: not available */
};

struct r2r_modules {
	/* The image. Owns its descriptor, which is -1 once nothing more will be read from it. */
	struct pe pe;
	struct pe_range own, manifest; /* metadata; bytes 0: none */
	/*
	 * Assemblies of a composite image, or NULL. Their numbers begin at
	 * R2R_MODULES_FIRST_COMPONENT.
	 */
	struct r2r_component *components;
	size_t ncomponents;
	struct r2r_assembly_opener beside;
	VEC(struct r2r_module) modules;
	struct hashmap by_number; /* index into modules */
	unsigned char *mvids;     /* MVIDs of the assemblies that the manifest refers to, by row */
	size_t nmvids;
	uint64_t bytes; /* bytes of metadata read so far */
};

/* Module numbers in composite images: 0 is unused, 1 is the manifest, then the assemblies. */
#define R2R_MODULES_FIRST_COMPONENT 2

/*
 * Prepares for an image. Keeps a duplicate of pe->file.fd, which is borrowed. Takes components, on
 * failure too. 0; errors as pe_read.
 */
int r2r_modules_init(struct r2r_modules *m, const struct pe *pe, const struct r2r_header *h,
		     struct r2r_component *components, size_t ncomponents,
		     const struct r2r_assembly_opener *beside);
void r2r_modules_free(struct r2r_modules *m);

/*
 * Finds the metadata with a number (R2R_OWN_MODULE: the image's own). Borrowed; valid as long as m.
 * 0; -ENOENT: not available, or not the assembly that the image was compiled with; -ENOMEM.
 */
int r2r_modules_metadata(struct r2r_modules *m, uint32_t number,
			 const struct clr_metadata **ret_metadata);

/* Finds the metadata of the core library. Composite images omit the module of a primitive type. */
int r2r_modules_core_library(struct r2r_modules *m, const struct clr_metadata **ret_metadata);

#endif
