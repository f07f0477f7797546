/* Colours of frames: by what kind of code they are, or as flamegraph.pl's palettes have them. */
#ifndef FLAMEGRAPH_PALETTE_H
#define FLAMEGRAPH_PALETTE_H

#include "base/intern.h"
#include "base/outbuf.h"
#include "base/vec.h"
#include "flamegraph/tree.h"

enum palette_scheme {
	PALETTE_KIND, /* the default: kernel, native, runtime, managed, inlined */
	PALETTE_HOT,
	PALETTE_MEM,
	PALETTE_IO,
	PALETTE_WAKEUP,
	PALETTE_CHAIN,
	PALETTE_JAVA,
	PALETTE_JS,
	PALETTE_PERL,
	PALETTE_RED,
	PALETTE_GREEN,
	PALETTE_BLUE,
	PALETTE_AQUA,
	PALETTE_YELLOW,
	PALETTE_PURPLE,
	PALETTE_ORANGE,
};

/* The scheme of this name. 0 or -ENOENT. */
int palette_scheme_of(const char *name, enum palette_scheme *ret_scheme);

/* What the scheme kind draws apart. */
enum palette_slot {
	PALETTE_UNKNOWN,
	PALETTE_KERNEL,
	PALETTE_NATIVE,
	PALETTE_RUNTIME,
	PALETTE_MANAGED,
	PALETTE_INLINED,
	PALETTE_THREAD,
	PALETTE_ALL,
	PALETTE_IDLE, /* what is idle and no code; other frames that are none are THREAD, or UNKNOWN where they stand for a stack */
	PALETTE_SLOTS,
};
#define PALETTE_SHADES 5u

/* A colour is 0xRRGGBB, or PALETTE_CLASS | class: style class "c<class>" = slot * PALETTE_SHADES + shade. */
#define PALETTE_CLASS 0x1000000u

/* Colours kept from picture to picture, palette.map of --cp. A zeroed struct is empty. */
struct palette_map {
	struct intern names;
	VEC(uint32_t) colors; /* by name id */
};

#define PALETTE_MAP_MAX ((size_t)64 << 20) /* bytes of a palette.map */

/* Reads "name->rgb(1,2,3)" lines; others are skipped, *ret_skipped (may be NULL) counts them. 0, -ENOMEM. */
int palette_map_parse(struct palette_map *m, const char *text, size_t len, uint64_t *ret_skipped);

/* Writes it back, sorted by name. 0 or -ENOMEM; errors of out stay in it. */
int palette_map_write(const struct palette_map *m, struct outbuf *out);
void palette_map_free(struct palette_map *m);

struct palette {
	enum palette_scheme scheme;
	bool by_hash; /* --hash: by the name's letters, alike names look alike */
	bool random; /* --random: not the same in the next picture */
	uint64_t seed; /* of random */
	bool known_kinds; /* the frames' slots are facts: java, js and perl take them for annotations */
	struct palette_map *map; /* --cp; NULL: none. Not for PALETTE_KIND */
};

/* The name's text may hold any bytes. */
struct palette_frame {
	const char *name;
	size_t len;
	enum palette_slot slot;
	char annotation; /* struct tree_node */
};

/* Of a node; the root is PALETTE_ALL. */
enum palette_slot palette_slot_of(const struct tree *t, uint32_t node);

/* 0, or -ENOMEM from the map. Equal frames get equal colours, in every picture (without random). */
int palette_color(struct palette *p, const struct palette_frame *frame, uint32_t *ret_color);

/* Red where delta is above 0, blue below, white at 0; max is the largest that occurs. 0xRRGGBB. */
uint32_t palette_delta_color(double delta, double max);

/* One letter for each slot (in the data for the script), and the word of the legend. */
extern const char palette_slot_letters[PALETTE_SLOTS + 1];
extern const char *const palette_slot_words[PALETTE_SLOTS];

/* Style rules of all classes, for light and (in a media query) dark. */
void palette_css(struct outbuf *out, bool dark_too);

#endif
