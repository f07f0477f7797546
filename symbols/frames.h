/* From what is known of an address to a frame of the profile, in both forms of names. */
#ifndef SYMBOLS_FRAMES_H
#define SYMBOLS_FRAMES_H

#include "profile/profile.h"
#include "symbols/answers.h"
#include "symbols/callchains.h"

#include <stdbool.h>
#include <stdint.h>

/* What a symbol's name says of the stack it is in. */
enum frames_flag {
	FRAMES_INTERRUPTED = 1, /* entry code of interrupts and faults: its caller's address is no return address */
	FRAMES_TRAMPOLINE = 2, /* signal return code: entered by a return, at its first instruction */
	FRAMES_ROOT = 4, /* where threads begin: nothing calls it */
	FRAMES_IDLE = 8, /* the idle loop */
};

/* What perf and we know of one address. */
struct frames_place {
	uint32_t image; /* in answers; ANSWERS_NONE: nothing is mapped there */
	uint32_t symbol; /* in answers; ANSWERS_NONE: not known */
	uint64_t addr; /* the question (answers.h) */
	uint64_t shown; /* as perf prints it: file offset for mapped files, else the address */
	uint32_t module; /* profile text as perf prints it */
	uint32_t map_name; /* kernel code made at run time: its name, a profile text, from the map; else PROFILE_NONE */
	uint64_t map_start; /* then, where it begins */
	bool perf_blind; /* perf has no map there, so that it prints [unknown] */
	uint8_t grade; /* enum frame_grade */
};

/* With by_function: the frame of all addresses of a function, or of all of an image that have no symbol. */
struct frames_known {
	bool done;
	uint8_t flags;
	uint32_t module; /* profile text that it was made with */
	uint32_t frame;
};

struct frames_symbol_names {
	bool done;
	uint8_t kind, status, flags;
	uint32_t perf_name, name; /* profile texts */
	struct frames_known known;
};

/* A function that is known by its name alone, as inlined ones are. */
struct frames_text_names {
	uint32_t perf_name, name; /* profile texts */
};

struct frames_image_names {
	bool done;
	bool identity; /* perf prints addresses of it as they are */
	bool perf_blind; /* perf cannot open it: it prints [unknown] */
	uint8_t kind; /* enum frame_kind of code in it */
	uint32_t module; /* profile text */
	uint32_t base; /* the last part of its path */
	struct frames_known known;
};

struct frames {
	struct profile *profile; /* borrowed */
	struct answers *answers; /* borrowed */
	bool raw_names, mangled, by_function, perf_names_only, inlines, lines; /* struct symbolizer_options */
	uint32_t checked_module; /* profile text; private: with by_function, what is known of the last frame's module */
	bool checked, module_is_word;
	struct frames_known nowhere; /* where nothing is mapped */
	VEC(uint32_t) frame_images; /* by frame of the profile, without by_function: the image in answers that it was first met in */
	VEC(struct frames_symbol_names) symbols; /* by symbol id of answers */
	VEC(struct frames_image_names) images; /* by image id of answers */
	VEC(struct frames_text_names) texts;
	struct hashmap text_ids; /* text of answers -> index into texts */
	struct hashmap srclines; /* text of answers that is a file, and line -> profile text */
};

void frames_free(struct frames *f);

/* What is said of an image (ret_names may be NULL). Valid until the next call. 0, -ENOMEM, -E2BIG. */
int frames_image(struct frames *f, uint32_t image, const struct frames_image_names **ret_names);

/*
 * The frames for an address. exact: what perf looks up, the sampled or return address; full: what the full form looks up,
 * one byte before a return address. chain: of answers->lines for full, or ANSWERS_NONE. The flags are those of the full
 * form's symbol; timed is left alone. 0, -ENOMEM, -E2BIG.
 */
int frames_make(struct frames *f, const struct frames_place *exact, const struct frames_place *full, uint32_t chain,
		struct callchain_frame *ret_frame);

/* Whether a symbol is a signal trampoline that begins at addr. */
bool frames_is_trampoline(struct frames *f, const struct frames_place *exact);

#endif
