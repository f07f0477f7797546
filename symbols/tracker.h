/*
 * Follows the processes of a recording: threads, names, and maps with the images behind them.
 * Naming and unwinding share one tracker, so each record is applied once and both see the same
 * images. One thread uses it.
 */
#ifndef SYMBOLS_TRACKER_H
#define SYMBOLS_TRACKER_H

#include "base/vec.h"
#include "container/opener.h"
#include "recording/perfdata.h"
#include "symbols/core/processes.h"
#include "symbols/store/lookup_cache.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Memory for the maps of processes, and for the images of a recording. Each is at most this part of
 * the memory that is left when tracking begins, and at least TRACKER_BYTES_MIN. One family of
 * processes (symbols/core/families.h) gets at most half.
 */
#define TRACKER_PART_OF_MEMORY 16
#define TRACKER_BYTES_MIN ((size_t)1 << 20)
#define TRACKER_IMAGES_BYTES_MAX ((size_t)128 << 20)
/* The same if images without maps are forgotten. */
#define TRACKER_MAPPED_BYTES_MAX ((size_t)32 << 20)
/* The memory of an image, its source and its code, without its name; about. */
#define TRACKER_IMAGE_BYTES ((size_t)704)

/*
 * Gets the image that a MMAP or MMAP2 record maps. *ret_anonymous: memory without a file. Returns
 * 0, -ENOMEM, -E2BIG.
 */
typedef int tracker_image_fn(void *ctx, const struct perfdata_record *record, uint32_t *ret_image,
			     bool *ret_anonymous);

struct tracker_options {
	struct lookup_cache *lookup_cache; /* gets texts and images; borrowed */
	struct opener *opener;             /* tells roots of processes apart; borrowed, or NULL */
	tracker_image_fn *image;           /* NULL: as the record says (symbols/map_record.h) */
	processes_comm_fn *comm;           /* NULL: names of threads do not matter */
	void *ctx;
	/*
	 * While recording: forgets images that no process maps, and ignores maps of PID 0, which
	 * stands for all processes of other PID namespaces. Needs image NULL.
	 */
	bool recording;
	uint64_t bytes; /* memory that is left, which may shrink the limits; 0: memory_left() */
};

/* The first process that mapped an image, and where. end 0: none did. */
struct tracker_place {
	int32_t pid;
	uint32_t family, bytes; /* its memory, and the family that it is counted for; private */
	uint64_t start, end;
};

/* Other modules read it; only this module changes it, except through processes_thread. */
struct tracker {
	struct tracker_options options;
	struct processes *processes;
	VEC(struct tracker_place) places; /* by image of lookup_cache; may be shorter */
	uint32_t renumbered;              /* how often images got other numbers */
	/* The rest is private. */
	size_t maps_bytes, images_bytes, images_bytes_max;
	size_t records, visits; /* records of maps since images were forgotten; the cost of that */
};

/* Returns 0 or -ENOMEM. */
int tracker_new(const struct tracker_options *options, struct tracker **ret_tracker);
void tracker_free(struct tracker *t);

/*
 * Applies an MMAP, MMAP2, COMM, FORK or EXIT record; ignores others, and maps of kernels. Drops and
 * counts maps over a limit. Returns 0 or -ENOMEM.
 */
int tracker_apply(struct tracker *t, const struct perfdata_record *record);

/* Maps that were dropped for a limit: PROCESS_MAPS_MAX for each process, or the bytes for all. */
struct tracker_dropped {
	uint64_t maps;
	int32_t most_pid;                /* a process of the family that lost most */
	size_t maps_bytes, images_bytes; /* the limits */
};
struct tracker_dropped tracker_dropped(const struct tracker *t);

#endif
