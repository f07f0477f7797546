/* Debug files of images that lack symbols, from servers into the cache, with what a user sees of it. */
#ifndef PROFCPU_FETCH_H
#define PROFCPU_FETCH_H

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/symbol_fetch.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

#define FETCH_LIMIT_S 60 /* for all that one post-processing fetches */

struct fetch_options {
	bool off; /* --no-download */
	bool quiet;
	struct symbol_servers servers; /* named by --symbol-server; those of the environment come to them */
};

/* An argument of --symbol-server. 0; -errno after one line by log_error. */
int fetch_add_server(struct fetch_options *o, const char *text);
void fetch_options_free(struct fetch_options *o);

/* The servers of the environment are added, once. As fetch_add_server. */
int fetch_know_servers(struct fetch_options *o);

/* What is to be fetched. */
struct fetch_list {
	VEC(struct symbol_fetch_item) items;
	struct intern ids; /* of items, by index */
};

void fetch_list_free(struct fetch_list *list);

/* Adds an image's debug file unless one of this build id is in the list; path is borrowed. *ret_item: which one it is. 0 or
 * -ENOMEM. */
int fetch_add(struct fetch_list *list, const char *path, const struct image_build_id *build_id, size_t *ret_item);

/* The same of a PDB by its GUID; name is borrowed. */
int fetch_add_pdb(struct fetch_list *list, const char *name, const unsigned char guid[16], size_t *ret_item);

/* Opens the cache; -errno after one line, of an error or (is_note) a note. */
int fetch_open_cache(struct debug_cache **ret_cache, bool is_note);

/*
 * Fetches with a progress line. One line by log_warn (quiet: none) for each server and reason for which files did not come, and
 * one for what there was no room for.
 * 0; -errno after one line by log_error.
 */
int fetch_run(const struct debug_cache *cache, struct fetch_list *list, struct symbol_fetch_options *how, bool quiet);

/*
 * What post-processing does: fetches for the images that have addresses without a name, and PDBs that lines need, says so
 * beforehand in one line, and takes at most FETCH_LIMIT_S. Gives the number of files that are new; what is not to be had is no
 * failure.
 */
size_t fetch_for(struct fetch_options *o, const struct symbolizer_images *images);

#endif
