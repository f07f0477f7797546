/* A palette.map that is read, written and read again is unchanged. The input is also a frame that
 * gets a colour. */
#include "flamegraph/palette.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void map_text(const struct palette_map *m, struct outbuf *out)
{
	*out = outbuf_to(-1);
	if (palette_map_write(m, out) || out->error)
		abort();
}

static void check_color(const struct palette *p, uint32_t color)
{
	uint32_t most = p->scheme == PALETTE_KIND
				? PALETTE_CLASS | (PALETTE_SLOTS * PALETTE_SHADES - 1)
				: 0xffffff;

	if (color > most || (p->scheme == PALETTE_KIND) != !!(color & PALETTE_CLASS))
		abort();
}

/* Uses the input as a frame's name with all palettes, annotations and kinds of shades. */
static void color_frame(const char *name, size_t len)
{
	static const char annotations[] = {0, 'j', 'i', 'k', 'w'};
	struct palette p = {.known_kinds = len & 1};
	struct palette_frame frame = {.name = name, .len = len};
	uint32_t color;

	for (unsigned scheme = 0; scheme <= PALETTE_ORANGE; scheme++) {
		for (unsigned i = 0; i < 3 * sizeof(annotations); i++) {
			p.scheme = scheme;
			p.by_hash = i % 3 == 1;
			p.random = i % 3 == 2;
			frame.annotation = annotations[i / 3];
			frame.slot = (scheme + i) % PALETTE_SLOTS;
			if (palette_color(&p, &frame, &color))
				abort();
			check_color(&p, color);
		}
	}
}

/* Styles do not depend on the input. */
static void write_styles(void)
{
	static bool written;
	struct outbuf css = outbuf_to(-1);

	if (!written)
		palette_css(&css, true);
	written = true;
	outbuf_close(&css);
}

/* A known name selects its scheme. */
static void find_scheme(const char *text, size_t len)
{
	enum palette_scheme scheme;
	char name[16] = "";

	if (len >= sizeof(name))
		return;
	memcpy(name, text, len);
	if (!palette_scheme_find(name, &scheme) && scheme > PALETTE_ORANGE)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct palette_map m = {0}, again = {0};
	struct palette p = {.scheme = PALETTE_HOT, .map = &m};
	struct palette_frame frame = {.name = (const char *)data, .len = size, .annotation = 'j'};
	struct outbuf one, two;
	uint32_t color;
	uint64_t skipped;

	if (palette_map_parse(&m, (const char *)data, size, &skipped) ||
	    (size < INTERN_TEXT_MAX - 8 && palette_color(&p, &frame, &color)))
		abort();
	map_text(&m, &one);
	if (palette_map_parse(&again, one.len ? one.data : "", one.len, &skipped) || skipped)
		abort();
	map_text(&again, &two);
	if (one.len != two.len || (one.len && memcmp(one.data, two.data, one.len) != 0))
		abort();
	write_styles();
	find_scheme((const char *)data, size);
	if (size < 1024)
		color_frame((const char *)data, size);
	if (size && palette_delta_color((double)data[0] - 128, data[size - 1]) > 0xffffff)
		abort();
	outbuf_close(&one);
	outbuf_close(&two);
	palette_map_free(&m);
	palette_map_free(&again);
	return 0;
}
