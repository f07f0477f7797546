/*
 * Makes a frame of the profile from the facts about an address, in both forms of names (full, and
 * perf's). Decides the name of code without a symbol, such as [kernel], and the kind of each frame.
 */
#ifndef SYMBOLS_FRAMES_H
#define SYMBOLS_FRAMES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbols/callchain_frame.h"
#include "symbols/store/lookup_cache.h"

#include <stdbool.h>
#include <stdint.h>

/* The facts that a lookup found about one address. */
struct frames_place {
	uint32_t image;  /* in lookup_cache; LOOKUP_NONE: nothing is mapped there */
	uint32_t symbol; /* in lookup_cache; LOOKUP_NONE: not known */
	uint64_t addr;   /* the address looked up, in the form of lookup_cache.h */
	uint64_t shown;  /* as perf prints it: file offset for mapped files, else the address */
	uint32_t module; /* profile text, as perf prints it */
	/*
	 * Kernel code made at run time: its name from the kernel map, a profile text; else
	 * PROFILE_NONE.
	 */
	uint32_t map_name;
	uint64_t map_start; /* start of the code of map_name */
	bool perf_blind;    /* perf has no map there and prints [unknown] */
	uint8_t grade;      /* enum frame_grade */
};

/*
 * With by_function: one frame for all addresses of a function, or for all addresses of an image
 * that have no symbol.
 */
struct frames_known {
	bool done;
	uint8_t flags;
	uint32_t module; /* profile text that the frame was made with */
	uint32_t frame;
};

struct frames_symbol_names {
	bool done;
	uint8_t kind, status, flags;
	uint32_t perf_name, name; /* profile texts */
	struct frames_known known;
};

/* A function known only by its name, as inlined ones are. */
struct frames_text_names {
	uint32_t perf_name, name; /* profile texts */
};

struct frames_image_names {
	bool done;
	bool identity;   /* perf prints addresses in it unchanged */
	bool perf_blind; /* perf cannot open it and prints [unknown] */
	uint8_t kind;    /* enum frame_kind of its code */
	uint32_t module; /* profile text */
	uint32_t base;   /* profile text: the last part of its path */
	struct frames_known known;
};

struct frames {
	struct profile *profile;           /* borrowed */
	struct lookup_cache *lookup_cache; /* borrowed */
	bool raw_names, mangled, by_function, perf_names_only, inlines,
		lines; /* struct symbolizer_options */
	/*
	 * Profile text, private: with by_function, the module of the last frame, whose properties
	 * follow.
	 */
	uint32_t checked_module;
	bool checked, module_is_word;
	struct frames_known nowhere; /* for addresses where nothing is mapped */
	/*
	 * By frame of the profile, without by_function: the image in lookup_cache of its first
	 * address.
	 */
	VEC(uint32_t) frame_images;
	VEC(struct frames_symbol_names) symbols; /* by symbol id of lookup_cache */
	VEC(struct frames_image_names) images;   /* by image id of lookup_cache */
	VEC(struct frames_text_names) texts;
	struct hashmap text_ids; /* text of lookup_cache -> index into texts */
	struct hashmap srclines; /* a file's text of lookup_cache and a line -> profile text */
};

void frames_free(struct frames *f);

/*
 * Gets the names of an image (ret_names may be NULL). Valid until the next call. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int frames_image(struct frames *f, uint32_t image, const struct frames_image_names **ret_names);

/*
 * Makes the frames for an address. The flags are those of the symbol of full; timed is left
 * unchanged. Returns 0, -ENOMEM, -E2BIG.
 *
 * - exact: the place that perf looks up, the sampled or return address.
 * - full: the place for the full form, one byte before a return address.
 * - chain: in lookup_cache->lines, for full; or LOOKUP_NONE.
 */
int frames_make(struct frames *f, const struct frames_place *exact, const struct frames_place *full,
		uint32_t chain, struct callchain_frame *ret_frame);

/* Whether the symbol is a signal trampoline that begins at exact->addr. */
bool frames_is_trampoline(struct frames *f, const struct frames_place *exact);

#endif
