/* Shared by the parts of unwinder: own rules (unwinder.c), other architectures (unwinder_libdw.c).
 */
#ifndef UNWIND_UNWINDER_IMPL_H
#define UNWIND_UNWINDER_IMPL_H

#include "base/hashmap.h"
#include "base/time_budget.h"
#include "base/vec.h"
#include "symbols/core/image_file.h"
#include "unwind/image_code.h"
#include "unwind/libdw_budget.h"
#include "unwind/libdw_child.h"
#include "unwind/return_cache.h"
#include "unwind/unwinder.h"

/* An image; its index is its number in the tracker's lookup_cache. */
struct unwind_image {
	struct tracker_place place; /* a process that gave its file; end 0: none yet */
	struct image_code *code;
	int32_t holder;   /* the process for which code was opened */
	uint64_t used_ns; /* the last sample that asked for it */
	bool tried;       /* code is the answer */
	bool refused;     /* code is NULL because too many images are open */
	bool late;        /* code is NULL because opening took too long */
	struct libdw_image *libdw;
	bool libdw_tried;      /* libdw is the answer */
	bool counted, missing; /* in stats */
	uint8_t limit;         /* enum recording_limit that left it without rules; LIMITS: none */
};

/* The cached rule of an address in one state of one address space. */
struct cached_rule {
	uint64_t addr;
	uint32_t space; /* processes_generation; 0: free */
	struct unwind_rule rule;
};

/* The cached result of walk_source.is_return for an address, likewise. */
struct cached_call_end {
	uint64_t addr;
	uint32_t space;
	int8_t ends; /* 1, 0 or -1 */
};

#define UNWINDER_PLACES 1024 /* few processes share one */

/* The time that opening images took while recording, by the times of samples. */
struct unwinder_opening {
	struct time_budget all;
	uint32_t us[UNWINDER_PLACES]; /* in all for each process, by hash of its PID */
};

struct unwinder {
	struct unwinder_options options;
	struct tracker *own_tracker;     /* without options.tracker */
	struct lookup_cache own_cache;   /* its texts and images */
	const struct tracker *tracker;   /* the one in use */
	VEC(struct unwind_image) images; /* those that samples asked for */
	struct hashmap held;             /* PID -> its open images */
	uint32_t most_held;              /* the most in held; 0: not known */
	int32_t most_holder;             /* a process that holds so many */
	struct unwinder_opening opening;
	size_t close_next; /* the image at which the next search for one begins */
	struct jit_codes *jit;
	struct cached_rule *rule_cache;
	struct cached_call_end *call_end_cache;
	struct return_cache *returns; /* NULL: no runtime that hijacks returns was seen */
	struct walk walk;
	struct walk other;         /* of a stack walked by libdw */
	struct libdw_child *libdw; /* NULL: not needed yet */
	struct libdw_budget libdw_budget;
	uint64_t libdw_bytes;          /* of the images for it */
	const struct machine *machine; /* of the current sample, if libdw walks it */
	VEC(uint64_t) words;
	struct unwinder_stats stats;
	const struct process_thread *thread; /* of the current sample */
	uint64_t time_ns;
	uint64_t steps_left;                   /* struct unwind_memory */
	uint64_t all_steps_left, all_steps_ns; /* of all stacks; the sample that renewed them */
	uint32_t renumbered;                   /* of the tracker, when images were numbered */
	uint64_t swept_ns;                     /* the time of the last sweep of images */
	size_t unswept;                        /* samples since */
	bool has_limited;                      /* an image lacks rules for a limit */
	bool last;
	uint8_t walk_limit; /* enum recording_limit that ended the current walk; LIMITS: none */
};

/* unwinder_images.c */

const struct image_key *unwinder_key(const struct unwinder *u, uint32_t image);
const char *unwinder_path(const struct unwinder *u, const struct image_key *key);

/* The image of a number; it moves when another one is added. NULL: out of memory. */
struct unwind_image *unwinder_image(struct unwinder *u, uint32_t number);

/*
 * Opens the file of an image within the budget of descriptors. If too many are open, closes an
 * image of the process that holds most, except if the sampled process holds about as many. Returns
 * 0; -ENOENT, -EMFILE, -errno.
 */
int unwinder_open_file(struct unwinder *u, uint32_t number, const struct process_map *map,
		       int *ret_fd);
/* Counts an image whose code was needed. limit: left it without rules; LIMITS: none. */
void unwinder_count_image(struct unwinder *u, struct unwind_image *image, bool missing,
			  enum recording_limit limit);

/* The code of the mapped image number; NULL: unavailable. Returns 0 or -ENOMEM. */
int unwinder_code_of(struct unwinder *u, uint32_t number, const struct process_map *map,
		     struct image_code **ret_code);

/*
 * Closes the images that no sample asked for in a while, also those that are missing. They are
 * opened again when they are needed. So a long recording of processes that come and go does not
 * collect descriptors, and does not keep deleted files. Rules in the caches are copies.
 * Forgets the rules of all images, or the pages of their files, if these take much memory.
 */
void unwinder_sweep_images(struct unwinder *u);
void unwinder_close_images(struct unwinder *u);

/* unwinder_libdw.c */

/* Walks a sample of u->thread into u->other. Returns 0 or -ENOMEM. */
int unwinder_walk_libdw(struct unwinder *u, const struct unwinder_sample *s,
			const struct machine *machine);
/* Frees what libdw has of images; they can be read again. */
void unwinder_drop_libdw(struct unwinder *u);

#endif
