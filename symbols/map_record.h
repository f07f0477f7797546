/*
 * Finds the image that a map record maps. Naming and unwinding both read MMAP and MMAP2 records
 * through this module, so that they see the same images.
 */
#ifndef SYMBOLS_MAP_RECORD_H
#define SYMBOLS_MAP_RECORD_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "container/opener.h"
#include "recording/perfdata.h"
#include "symbols/core/image_key.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Build ids of a recording's header by path, for map records that carry none. A zeroed struct is
 * empty.
 */
struct map_record_ids {
	struct hashmap by_path; /* text id -> index into ids */
	VEC(struct build_id) ids;
};

void map_record_ids_free(struct map_record_ids *ids);

/*
 * path: text id of the texts that map_record_key gets. An empty build id is ignored. Returns 0 or
 * -ENOMEM.
 */
int map_record_ids_put(struct map_record_ids *ids, uint32_t path,
		       const struct perfdata_build_id *id);

/* NULL: the header has none for this path. Borrowed until the next put. */
const struct build_id *map_record_ids_get(const struct map_record_ids *ids, uint32_t path);

/* Whether the record maps executable memory. */
bool map_record_is_executable(const struct perfdata_record *record);

/*
 * Makes the key of the image that a MMAP or MMAP2 record maps. Its path goes into texts. ids and
 * opener (may be NULL) are borrowed for the call. *ret_anonymous: memory without a file. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int map_record_key(const struct perfdata_record *record, struct intern *texts,
		   const struct map_record_ids *ids, struct opener *opener,
		   struct image_key *ret_key, bool *ret_anonymous);

#endif
