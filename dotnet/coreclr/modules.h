/*
 * The modules of a CoreCLR and their metadata, read from its memory. So a file replaced since, a
 * bundle, and assemblies without a file (Assembly.Load of bytes, Reflection.Emit) need no special
 * care. Formats: dotnet/runtime, docs/design/datacontracts/Loader.md and EcmaMetadata.md.
 */
#ifndef DOTNET_CORECLR_MODULES_H
#define DOTNET_CORECLR_MODULES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/coreclr/contract.h"
#include "dotnet/metadata.h"

#define CLR_MODULES_MAX 65536
/* Bytes of one module; System.Private.CoreLib has 4 million. */
#define CLR_MODULE_METADATA_MAX ((uint64_t)64 << 20)
#define CLR_MODULE_PATH_MAX 4096                /* UTF-16 units */
#define CLR_MODULE_PATHS_MAX ((size_t)32 << 20) /* bytes of all paths ever read */
#define CLR_METADATA_MAX ((uint64_t)512 << 20)  /* bytes of all modules */
#define CLR_MVID_BYTES 16

/* Our copy of a module's metadata. metadata NULL: none. */
struct clr_module_copy {
	void *data;
	size_t bytes;
	struct clr_metadata *metadata;
};

struct clr_module {
	uint64_t addr;
	uint64_t assembly_file, dynamic; /* pointers in the runtime's Module */
	/* The target's addr of the 16 bytes of now's MVID; 0: unknown. */
	uint64_t mvid_addr;
	bool emitted; /* Reflection.Emit is making it; read by dotnet/coreclr/emitted.h */
	/* Scan that last compared these; 0: never, or read it again. */
	uint32_t checked_in;
	uint32_t grew; /* scan that read it again for a missing row */
	/* old: copy from before it grew. Readers may use it until the scan ends. */
	struct clr_module_copy now, old;
	char *path; /* the runtime's path; NULL: not read yet */
};

struct clr_modules_cache {
	const struct clr_io *io;
	const struct clr_contract *contract;
	uint32_t scan;    /* number of the current scan, from 1 */
	uint32_t checked; /* last scan that ran clr_modules_check */
	/*
	 * Number of modules whose metadata was replaced. Names of types made before may be wrong.
	 */
	uint32_t replaced;
	VEC(struct clr_module) modules;
	struct hashmap by_addr;
	uint64_t bytes;    /* of all copies */
	size_t path_bytes; /* of all paths ever read */
};

/*
 * Detects replaced modules. Call it before a scan needs metadata; it works once a scan. Collectible
 * modules may be freed and their address reused, even with a PEAssembly at the same address. 0;
 * -ENOMEM; errors of io.
 */
int clr_modules_check(struct clr_modules_cache *m);

/*
 * Finds the metadata of the module at an address; borrowed until the next scan. table and rid: a
 * MethodDef or TypeDef that it must contain. Reflection.Emit metadata grows, so a missing row makes
 * it be read again, once a scan. 0; -ENOENT: unavailable; -ENOMEM; errors of io except -EFAULT.
 */
int clr_modules_get(struct clr_modules_cache *m, uint64_t addr, enum clr_table table, uint32_t rid,
		    const struct clr_metadata **ret_metadata);

/* Number of modules without metadata among those looked up. */
size_t clr_modules_failed(const struct clr_modules_cache *m);

/*
 * The path of the module's file in the process's root, after clr_modules_get; "": no file. Borrowed
 * as the metadata. 0; -ENOMEM; errors of io except -EFAULT.
 */
int clr_modules_path(struct clr_modules_cache *m, uint64_t addr, const char **ret_path);

/* Whether a module that was looked up is made at run time (Reflection.Emit). */
bool clr_modules_is_made(const struct clr_modules_cache *m, uint64_t addr);

void clr_modules_free(struct clr_modules_cache *m);

#endif
