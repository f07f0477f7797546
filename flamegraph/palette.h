/* Colours of frames: by their kind of code, or from the palettes of flamegraph.pl. */
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

/* Finds a scheme by name. Returns 0 or -ENOENT. */
int palette_scheme_find(const char *name, enum palette_scheme *ret_scheme);

/* Groups of frames that PALETTE_KIND gives different colours. */
enum palette_slot {
	PALETTE_UNKNOWN,
	PALETTE_KERNEL,
	PALETTE_NATIVE,
	PALETTE_RUNTIME,
	PALETTE_MANAGED,
	PALETTE_INLINED,
	PALETTE_THREAD,
	PALETTE_ALL,
	PALETTE_IDLE,    /* idle waits; other frames that are not code are THREAD or UNKNOWN */
	PALETTE_WAITING, /* time without a CPU */
	PALETTE_SLOTS,
};
#define PALETTE_SHADES 5u

/*
 * A colour is 0xRRGGBB, or PALETTE_CLASS | class for the style class "c<class>". class = slot *
 * PALETTE_SHADES + shade.
 */
#define PALETTE_CLASS 0x1000000u

/* Colours to keep from picture to picture: the palette.map of --cp. Zeroed is empty. */
struct palette_map {
	struct intern names;
	VEC(uint32_t) colors; /* by name id */
};

#define PALETTE_MAP_MAX ((size_t)64 << 20) /* bytes of a palette.map */

/*
 * Reads lines "name->rgb(1,2,3)". Skips others; *ret_skipped counts them and may be NULL. Returns
 * 0, -ENOMEM.
 */
int palette_map_parse(struct palette_map *m, const char *text, size_t len, uint64_t *ret_skipped);

/* Writes the lines, sorted by name. Returns 0 or -ENOMEM; write errors stay in out. */
int palette_map_write(const struct palette_map *m, struct outbuf *out);
void palette_map_free(struct palette_map *m);

struct palette {
	enum palette_scheme scheme;
	bool by_hash;            /* --hash: by the name's letters; similar names look similar */
	bool random;             /* --random: different in the next picture */
	uint64_t seed;           /* for random */
	bool known_kinds;        /* slots are facts, so java, js and perl use them as annotations */
	struct palette_map *map; /* --cp; NULL: none; not with PALETTE_KIND */
};

/* The name may have any bytes. */
struct palette_frame {
	const char *name;
	size_t len;
	enum palette_slot slot;
	char annotation; /* see struct tree_node */
};

/* The slot of a node; the root is PALETTE_ALL. */
enum palette_slot palette_node_slot(const struct tree *t, uint32_t node);

/*
 * Chooses a colour. Equal frames get equal colours, in every picture (except with random). Returns
 * 0; -ENOMEM.
 */
int palette_color(struct palette *p, const struct palette_frame *frame, uint32_t *ret_color);

/* Red for delta > 0, blue for delta < 0, white for 0. max: the largest |delta|. 0xRRGGBB. */
uint32_t palette_delta_color(double delta, double max);

/*
 * Whether white letters are easier to read on 0xRRGGBB than black ones; the better ones have a
 * contrast of at least 4.58. Source: WCAG 2.2, relative luminance and contrast ratio.
 */
bool palette_needs_white(uint32_t color);

/* For each slot, its letter in the script's data and its word in the legend. */
extern const char palette_slot_letters[PALETTE_SLOTS + 1];
extern const char *const palette_slot_words[PALETTE_SLOTS];

/* Writes the style rules of all classes, for light mode and, with dark_too, dark mode. */
void palette_css(struct outbuf *out, bool dark_too);

#endif
