#include "symbols/core/pdb_find.h"

#include "base/cleanup.h"
#include "elf/debug_cache.h"
#include "symbols/core/symbol_file.h"

#include <errno.h>
#include <string.h>

static int find_cached(const struct portable_pdb_id *id, struct pdb_budget *budget,
		       struct portable_pdb **ret_pdb)
{
	struct symbol_file file = {.kind = SYMBOL_FILE_PDB, .name = id->name};
	char key[DEBUG_CACHE_KEY_MAX];
	AUTO_CLOSE int fd = -1;

	_Static_assert(sizeof(file.id) == sizeof(id->guid), "both are GUIDs");
	memcpy(file.id, id->guid, sizeof(file.id));
	if (symbol_file_key(&file, key, sizeof(key)))
		return -ENOENT;
	fd = debug_cache_open_any(key);
	return fd < 0 ? -ENOENT : portable_pdb_open_file(fd, id->guid, budget, ret_pdb);
}

static int find_anywhere(const struct pe *pe, const struct pdb_places *places,
			 struct portable_pdb **ret_pdb)
{
	int found = portable_pdb_open_image(pe, places->open_beside, places->ctx, places->budget,
					    ret_pdb);
	struct portable_pdb_id id;

	if (!found || found == -ENOMEM || found == -E2BIG)
		return found;
	int r = portable_pdb_id(pe, &id);
	if (!r && id.portable)
		r = find_cached(&id, places->budget, ret_pdb);
	else
		return r == -ENOMEM ? r : found;
	if (!r || r == -ENOMEM || r == -E2BIG)
		return r;
	/* No place has it; let the caller note what to download. */
	r = places->missing ? places->missing(places->ctx, &id) : 0;
	return r ? r : found;
}

void pdb_find_count_refused(const struct pe *pe, const struct pdb_places *places)
{
	struct portable_pdb_id id;

	pdb_budget_count_refused(places->budget,
				 portable_pdb_id(pe, &id) ? "one without a name" : id.name);
}

int pdb_find(const struct pe *pe, const struct pdb_places *places, struct portable_pdb **ret_pdb)
{
	struct portable_pdb *pdb;
	int r = find_anywhere(pe, places, &pdb);

	if (r == -E2BIG)
		pdb_find_count_refused(pe, places);
	if (r)
		return r;
	if (!portable_pdb_charge_budget(pdb, places->budget)) {
		pdb_find_count_refused(pe, places);
		portable_pdb_free(pdb);
		return -E2BIG;
	}
	*ret_pdb = pdb;
	return 0;
}
