/* Downloads missing debug files into the cache, with progress and messages for the user. */
#ifndef PROFCPU_POST_DOWNLOAD_MISSING_H
#define PROFCPU_POST_DOWNLOAD_MISSING_H

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/server/symbol_fetch.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

#define FETCH_LIMIT_S 60 /* seconds; limit for all downloads of one post-processing */

struct fetch_options {
	bool off; /* --no-download */
	bool quiet;
	/* Servers of --symbol-server; download_missing_add_environment_servers adds others. */
	struct symbol_servers servers;
};

/* Adds the servers in an argument of --symbol-server. 0; -errno after one log_error line. */
int download_missing_add_server(struct fetch_options *o, const char *text);
void download_missing_options_free(struct fetch_options *o);

/*
 * Adds the servers of DOTNET_SYMBOL_SERVER and DEBUGINFOD_URLS. Call it once. 0; -errno after one
 * log_error line.
 */
int download_missing_add_environment_servers(struct fetch_options *o);

/* Files to download. */
struct fetch_list {
	VEC(struct symbol_fetch_item) items;
	struct intern ids; /* identities of the files; an id is an index of items */
};

void download_missing_list_free(struct fetch_list *list);

/*
 * Adds the debug file of an image, unless one with this build id is in the list. path is borrowed.
 * *ret_item: index of the item. 0 or -ENOMEM.
 */
int download_missing_add(struct fetch_list *list, const char *path, const struct build_id *build_id,
			 size_t *ret_item);

/* Adds a PDB by its GUID, like download_missing_add. name is borrowed. */
int download_missing_add_pdb(struct fetch_list *list, const char *name,
			     const unsigned char guid[16], size_t *ret_item);

/* Opens the cache. On failure -errno after one line: a note if is_note, else an error. */
int download_missing_open_cache(struct debug_cache **ret_cache, bool is_note);

/*
 * Downloads the list with a progress line. Unless quiet, warns once for each server and reason that
 * files failed, and once for files without room. 0; -errno after one log_error line.
 */
int download_missing_run(const struct debug_cache *cache, struct fetch_list *list,
			 struct symbol_fetch_options *how, bool quiet);

/*
 * Downloads for post-processing: debug files of images that have addresses without a name, and PDBs
 * that lines need. One note announces it. Takes at most FETCH_LIMIT_S. Returns the number of new
 * files. A failed download is not an error.
 */
size_t download_missing_files(struct fetch_options *o, const struct symbolizer_images *images);

#endif
