/*
 * The modules of a CoreCLR and their metadata, all read from its memory: so a file that was replaced since, a bundle, and assemblies
 * that were never in a file (Assembly.Load of bytes, Reflection.Emit) are no different from others.
 * dotnet/runtime docs/design/datacontracts/Loader.md and EcmaMetadata.md.
 */
#ifndef SYMBOLS_CLR_MODULES_H
#define SYMBOLS_CLR_MODULES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/clr_contract.h"
#include "symbols/clr_metadata.h"

#define CLR_MODULES_MAX 65536
#define CLR_MODULE_METADATA_MAX ((uint64_t)64 << 20) /* bytes; System.Private.CoreLib has 4 million */
#define CLR_MODULE_PATH_MAX 4096 /* UTF-16 units */
#define CLR_MODULE_PATHS_MAX ((size_t)32 << 20) /* bytes of all paths that were ever read */
#define CLR_METADATA_MAX ((uint64_t)512 << 20) /* of all modules */
#define CLR_MVID_BYTES 16

/* Our copy of a module's metadata; metadata NULL: there is none. */
struct clr_module_copy {
	void *data;
	size_t bytes;
	struct clr_metadata *metadata;
};

struct clr_module {
	uint64_t addr;
	uint64_t assembly_file, dynamic; /* what it pointed to */
	uint64_t mvid_addr; /* where the target has the 16 bytes of now's MVID; 0: not known */
	bool emitted; /* it is in the making, and read as clr_emitted.h says */
	uint32_t looked_at; /* the scan in which these were compared; 0: never, or it has to be read again */
	uint32_t grew; /* the scan in which it was read again for a row that was not in it */
	struct clr_module_copy now, old; /* old: from before it grew, which somebody may be reading until the scan ends */
	char *path; /* as the runtime has it; NULL: was not asked for */
};

struct clr_modules_cache {
	const struct clr_io *io;
	const struct clr_contract *contract;
	uint32_t scan; /* number of the scan under way, from 1 */
	uint32_t checked; /* the last one in which clr_modules_check looked */
	uint32_t replaced; /* counts modules whose metadata became another: names made of types before that may be wrong */
	VEC(struct clr_module) modules;
	struct hashmap by_addr;
	uint64_t bytes; /* of all copies */
	size_t path_bytes; /* of all paths that were ever read */
};

/*
 * To be called before a scan asks for metadata, looks once a scan: an address may have become another module's, as collectible ones are
 * freed. Its PEAssembly can then be at the same address too. 0; -ENOMEM; errors of io.
 */
int clr_modules_check(struct clr_modules_cache *m);

/*
 * The metadata of the module at an address, borrowed until the next scan. rid: a MethodDef or TypeDef (by table) that must be in it;
 * metadata of Reflection.Emit grows and is read again, once a scan, for one that is not. 0; -ENOENT it cannot be had; -ENOMEM; errors
 * of io but -EFAULT.
 */
int clr_modules_get(struct clr_modules_cache *m, uint64_t addr, enum clr_table table, uint32_t rid,
		    const struct clr_metadata **ret_metadata);

/* Of how many of the modules that were asked for there is no metadata. */
size_t clr_modules_failed(const struct clr_modules_cache *m);

/* Its file's path in the process's root, after clr_modules_get; "": it has none. Borrowed as the metadata. 0; -ENOMEM; errors of io but
 * -EFAULT. */
int clr_modules_path(struct clr_modules_cache *m, uint64_t addr, const char **ret_path);

void clr_modules_free(struct clr_modules_cache *m);

#endif
